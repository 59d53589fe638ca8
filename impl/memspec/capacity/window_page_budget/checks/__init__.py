"""The checks: one ``decide`` for each clause of the page, and the operations of its vectors."""

from memspec.capacity.window_page_budget.checks import prices, budgets, worlds, operations  # noqa: I001 (the page's order)
from memspec.capacity.window_page_budget.checks.facets import CHECKS

__all__ = ["CHECKS", "budgets", "operations", "prices", "worlds"]
