"""Paged sliding-window admission: what a retracted request needs is counted in whole pages of both pools, as the allocator charges it.

Demand: tokens with KV, rounded up to pages, then the reserve; the window pool is charged the pages that hold one of the
last tokens. Counted in tokens, the pages' unused ends add up unseen, more requests are admitted than there are pages, and
the allocation fails; counted in more than those pages, or with one price for both pools, requests that fit wait. The queue
comes back in order and stops at the first misfit.

Lineage: sgl-project/sglang PR #33794 (first release 0.5.18), demand unchanged up to 0.5.23; budgets as in 0.5.18, and those of 0.5.19 to
0.5.23 (read anew, evictable window pages counted and evicted) as the variant ``reference.later``.
Deliberate differences: a request that exceeds the empty full pool with its reserve is refused instead of waiting for ever; the window pool
is tested without tail allocation too; without a window the whole reserve is kept there; senseless settings and lengths are refused.
"""

from memspec.capacity.window_page_budget.data import (
    Budget,
    BudgetRefused,
    Charge,
    Demand,
    LengthRefused,
    Load,
    NeverFits,
    PagesRefused,
    Plan,
    PoolState,
    Request,
    Worker,
    WorkerRefused,
)
from memspec.capacity.window_page_budget.reference import (
    admission_budget,
    allocations,
    charge,
    check_fits,
    demand,
    fill,
    replay,
    replay_rereading,
    resume,
    resume_budget,
    window_tail,
)

__all__ = [
    "Budget",
    "BudgetRefused",
    "Charge",
    "Demand",
    "LengthRefused",
    "Load",
    "NeverFits",
    "PagesRefused",
    "Plan",
    "PoolState",
    "Request",
    "Worker",
    "WorkerRefused",
    "admission_budget",
    "allocations",
    "charge",
    "check_fits",
    "demand",
    "fill",
    "replay",
    "replay_rereading",
    "resume",
    "resume_budget",
    "window_tail",
]
