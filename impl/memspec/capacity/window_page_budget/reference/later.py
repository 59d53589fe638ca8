"""What later releases changed, as a variant of its own: a budget read anew after each resumed request, and evictable window pages.

Source: sgl-project/sglang 0.5.19 (window budget read anew, evictable window pages count, new requests evict them), 0.5.21
(full budget too; the allocator is asked whether a request fits) and PR #40309 (a pass evicts the pages that it counted). The
demand of a request is the same, but for the tail that a decode radix cache needs (0.5.19).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from memspec.capacity.window_page_budget.data import Budget, Charge, Load, Plan, PoolState, Request, Worker
from memspec.capacity.window_page_budget.reference.budget import resume_budget
from memspec.capacity.window_page_budget.reference.demand import charge, demand, fill
from memspec.capacity.window_page_budget.reference.pools import Pools, evict, report
from memspec.capacity.window_page_budget.reference.queue import misfit
from memspec.capacity.window_page_budget.reference.scheduler import Policy, allocate, replay_with


def evictable_counted(state: PoolState) -> PoolState:
    """The pools as a worker sees them that can evict window pages."""
    return replace(state, window_available=state.window_available + state.window_evictable, window_evictable=0)


def reread_budget(worker: Worker, state: PoolState, load: Load) -> Budget:
    """Tokens for the retracted queue where evictable window pages count as available. Raises WorkerRefused."""
    return resume_budget(worker, evictable_counted(state), load)


def make_room(worker: Worker, pools: Pools, pages: Charge) -> Pools:
    """Evict pages that were counted as available before they are asked for: window pages, and full ones of a decode radix cache."""
    return evict(pools, pages.full if worker.decode_radix else 0, pages.window)


def resume_rereading(
    worker: Worker,
    pools: Pools,
    queue: tuple[Request, ...],
    running: int,
    slots: int,
    only: Collection[str] | None,
) -> tuple[Pools, Plan]:
    """One pass that allocates as it goes and reads both budgets anew; a resumed request counts as running from then on.

    Raises PagesRefused where the budget promised too much.
    """
    resumed: list[str] = []
    left: list[str] = []
    stopped = ""
    for request in queue:
        if not stopped and (only is None or request.name in only):
            budget = reread_budget(worker, report(pools), Load(running=running + len(resumed)))
            stopped = misfit(worker, demand(worker, request), budget, slots - len(resumed))
            if not stopped:
                pages = charge(worker, fill(request))
                pools = allocate(make_room(worker, pools, pages), request, pages)
                resumed.append(request.name)
                continue
        left.append(request.name)
    budget = reread_budget(worker, report(pools), Load(running=running + len(resumed)))
    return pools, Plan(tuple(resumed), tuple(left), budget, stopped)


def replay_rereading(
    worker: Worker, full_pages: int, window_pages: int, events: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The events of ``replay`` on a worker that re-reads and evicts. Raises PagesRefused where an admitted request gets no pages."""
    tailed = replace(worker, radix_tail=worker.decode_radix)
    return replay_with(tailed, full_pages, window_pages, events, Policy(resume_rereading, evictable_counted, make_room))
