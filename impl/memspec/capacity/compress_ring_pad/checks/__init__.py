"""The checks: one ``decide`` for each clause of the page, and the operations of its vectors."""

from memspec.capacity.compress_ring_pad.checks import sizes, planning, memory, consuming, audit, operations  # noqa: I001 (the page's order)
from memspec.capacity.compress_ring_pad.checks.facets import CHECKS

__all__ = ["CHECKS", "audit", "consuming", "memory", "operations", "planning", "sizes"]
