"""The rule, in parts: what a token costs, what there is to spend, how it is divided, the same in words, and what follows for a choice."""

from __future__ import annotations

from memspec.capacity.draft_pool_budget.reference.cells import cell, draft_term, own_cell
from memspec.capacity.draft_pool_budget.reference.compare import gain, overshoot
from memspec.capacity.draft_pool_budget.reference.room import available
from memspec.capacity.draft_pool_budget.reference.sizes import draft_pool, plan
from memspec.capacity.draft_pool_budget.reference.telling import explain

__all__ = ["available", "cell", "draft_pool", "draft_term", "explain", "gain", "overshoot", "own_cell", "plan"]
