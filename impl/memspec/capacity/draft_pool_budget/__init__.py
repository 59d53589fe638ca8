"""The draft's share of a KV budget: a draft that every rank keeps whole is charged once for each id that a target row stands for.

Under decode context parallelism a target row stands for as many ids as the group has ranks; the draft's pool is indexed by ids
and has a row for each. One budget is divided by the target's bytes plus group size times the draft's own bytes. Charged once, the
pools outgrow the device, in the limit by the group size; charged as so many target layers, or with a target that is multiplied
too, memory lies idle or is not there. Division first, then whole pages, then caps, and every pool is computed again from what is
left; all of it can be told in words.

Lineage: sgl-project/sglang PRs #32828, #33348, #34234 and #33912 (first release 0.5.18), as in 0.5.23.
Deliberate differences: EAGLE's replicated draft is charged for the group too; hybrid models fall back to layers and widen heads
by the group; the fallback's layer price is not widened; a draft without a price is refused; the fraction that a refusal names
counts the reserves.
"""

from memspec.capacity.draft_pool_budget.data import (
    BudgetRefused,
    Cell,
    CellRefused,
    Draft,
    DraftPool,
    Geometry,
    Heads,
    Latent,
    Memory,
    NoRoom,
    NotEnoughMemory,
    Parallel,
    Plan,
    Pools,
    Serving,
    SettingRefused,
    Window,
)
from memspec.capacity.draft_pool_budget.reference import (
    available,
    cell,
    draft_pool,
    draft_term,
    explain,
    gain,
    overshoot,
    own_cell,
    plan,
)

__all__ = [
    "BudgetRefused",
    "Cell",
    "CellRefused",
    "Draft",
    "DraftPool",
    "Geometry",
    "Heads",
    "Latent",
    "Memory",
    "NoRoom",
    "NotEnoughMemory",
    "Parallel",
    "Plan",
    "Pools",
    "Serving",
    "SettingRefused",
    "Window",
    "available",
    "cell",
    "draft_pool",
    "draft_term",
    "explain",
    "gain",
    "overshoot",
    "own_cell",
    "plan",
]
