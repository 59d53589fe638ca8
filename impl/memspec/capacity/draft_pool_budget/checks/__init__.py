"""The checks: one ``decide`` for each clause of the page, in the page's order, and the operations of its vectors."""

from memspec.capacity.draft_pool_budget.checks import prices, sizing, operations  # noqa: I001
from memspec.capacity.draft_pool_budget.checks.facets import CHECKS

__all__ = ["CHECKS", "operations", "prices", "sizing"]
