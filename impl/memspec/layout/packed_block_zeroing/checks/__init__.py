"""The checks: one ``decide`` for each clause of the page, in the page's order, and the operations of its vectors."""

from memspec.layout.packed_block_zeroing.checks import scope, plan, clearing, launching, keeping, operations  # noqa: I001
from memspec.layout.packed_block_zeroing.checks.facets import CHECKS

__all__ = ["CHECKS", "clearing", "keeping", "launching", "operations", "plan", "scope"]
