"""The checks: one ``decide`` for each clause of the page, in the page's order, and the operations of its vectors."""

from memspec.capacity.dynamic_speculation.checks import table, drafting, graphs, blocks, running, operations  # noqa: I001
from memspec.capacity.dynamic_speculation.checks.facets import CHECKS

__all__ = ["CHECKS", "blocks", "drafting", "graphs", "operations", "running", "table"]
