"""The checks: one ``decide`` for each clause of the page, and the operations of its vectors."""

from memspec.capacity.chunked_attention_window.checks import windows, lookups, spaces, operations  # noqa: I001 (the page's order)
from memspec.capacity.chunked_attention_window.checks.facets import CHECKS

__all__ = ["CHECKS", "lookups", "operations", "spaces", "windows"]
