"""What the rule says about a choice: how far a budget is exceeded without it, and what a group buys in context with it."""

from __future__ import annotations

from dataclasses import replace

from memspec.capacity.draft_pool_budget.data import Serving
from memspec.capacity.draft_pool_budget.reference.sizes import ids, plan


def overshoot(target: int, own: int, group: int) -> tuple[int, int]:
    """(bytes needed, bytes charged) for one target row when a draft that is kept for ``group`` ids is charged for one of them."""
    return target + group * own, target + own


def gain(serving: Serving, budget: int) -> tuple[int, int]:
    """(ids that the group can hold, ids that one rank alone could): what context parallelism buys once the draft's copies are paid."""
    alone = replace(serving, parallel=replace(serving.parallel, group=1))
    return ids(serving, plan(serving, budget).tokens), plan(alone, budget).tokens
