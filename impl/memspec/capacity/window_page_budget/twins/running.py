"""Budgets, queues and pools that go wrong. Each twin says in its name what it gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from memspec.capacity.window_page_budget import reference
from memspec.capacity.window_page_budget.data import (
    NOTHING,
    Budget,
    Charge,
    Demand,
    Load,
    Plan,
    PoolState,
    Request,
    Worker,
)
from memspec.capacity.window_page_budget.reference import budget as budgets
from memspec.capacity.window_page_budget.reference import pools as allocator
from memspec.capacity.window_page_budget.reference import queue as queues
from memspec.capacity.window_page_budget.reference.demand import window_reserve
from memspec.capacity.window_page_budget.reference.pools import Held, Pools
from memspec.capacity.window_page_budget.twins.pricing import Priced


def running_only(load: Load) -> int:
    return load.running


def prebuilt_forgotten(worker: Worker, state: PoolState, load: Load, single: Demand) -> Budget:
    return budgets.kept_for_others(worker, state, replace(load, prebuilt=0), single)


def single_forgotten(worker: Worker, state: PoolState, load: Load, single: Demand) -> Budget:
    return budgets.kept_for_others(worker, state, load, NOTHING)


def single_added(worker: Worker, state: PoolState, load: Load, single: Demand) -> Budget:
    keep = budgets.kept_for_others(worker, state, load, NOTHING)
    return Budget(keep.full + single.full, keep.window + single.window)


def growth_unbounded(worker: Worker, requests: int, window_used: int) -> int:
    return worker.reserve * requests


def growth_ignored(worker: Worker, requests: int, window_used: int) -> int:
    return 0


def nothing_used(worker: Worker, requests: int, window_used: int) -> int:
    return reference.window_growth(worker, requests, 0)


def everything_ever_owned(worker: Worker, state: PoolState) -> Budget:
    return Budget(
        state.full_available + state.full_evictable, state.window_available + state.window_used + state.window_evictable
    )


def retracted_ignored(
    worker: Worker, state: PoolState, load: Load, retracted: Iterable[Request], single: Demand = NOTHING
) -> Budget:
    return reference.admission_budget(worker, state, load, (), single)


def retracted_in_tokens(
    worker: Worker, state: PoolState, load: Load, retracted: Iterable[Request], single: Demand = NOTHING
) -> Budget:
    budget = reference.admission_budget(worker, state, load, (), single)
    for request in retracted:
        tokens = reference.fill(request)
        budget = Budget(
            budget.full - tokens - worker.reserve,
            budget.window - reference.window_tail(worker, tokens) - window_reserve(worker),
        )
    return budget


def a_page_for_the_queue(worker: Worker, state: PoolState, load: Load) -> Budget:
    return reference.admission_budget(worker, state, load, [Request("the head of the queue", worker.page_size)])


def spending(
    compared: Priced | None = None,
    subtracted: Callable[[Worker, Request], Demand] | None = None,
    skips_misfits: bool = False,
    filter_stops: bool = False,
    backwards: bool = False,
    slots_ignored: bool = False,
) -> Callable[..., Plan]:
    """The pass over the queue with one thing changed."""

    def pass_over(
        worker: Worker, queue: Iterable[Request], budget: Budget, slots: int, only: Collection[str] | None = None
    ) -> Plan:
        resumed: list[str] = []
        left: list[str] = []
        stopped = ""
        order = tuple(queue)[::-1] if backwards else tuple(queue)
        for request in order:
            allowed = only is None or request.name in only
            stopped = stopped or ("slots" if filter_stops and not allowed else "")
            if allowed and (not stopped or skips_misfits):
                need = (compared or reference.demand)(worker, request)
                stopped = queues.misfit(worker, need, budget, 1 if slots_ignored else slots - len(resumed))
                if not stopped:
                    budget = budgets.less(budget, (subtracted or reference.demand)(worker, request))
                    resumed.append(request.name)
                    continue
            left.append(request.name)
        return Plan(tuple(resumed), tuple(left), budget, stopped)

    return pass_over


def full_only(worker: Worker, need: Demand, budget: Budget, slots: int) -> str:
    return "slots" if slots <= 0 else "full" if need.full > budget.full else ""


def window_in_tail_mode_only(worker: Worker, need: Demand, budget: Budget, slots: int) -> str:
    lack = queues.misfit(worker, need, budget, slots)
    return lack if lack != "window" or reference.tail_mode(worker) else ""


def exact_fit_refused(worker: Worker, need: Demand, budget: Budget, slots: int) -> str:
    return queues.misfit(worker, Demand(need.full + 1, need.window + 1), budget, slots)


def nobody(
    worker: Worker, queue: Iterable[Request], budget: Budget, slots: int, only: Collection[str] | None = None
) -> Plan:
    return Plan((), tuple(request.name for request in queue), budget, "full")


def forgets_the_rest(
    worker: Worker, queue: Iterable[Request], budget: Budget, slots: int, only: Collection[str] | None = None
) -> Plan:
    plan = reference.resume(worker, queue, budget, slots, only)
    return replace(plan, left=plan.left[:1])


def anybody(worker: Worker, need: Demand, budget: Budget, slots: int, retracted: Collection[Request]) -> str:
    return queues.misfit(worker, need, budget, slots)


def never_new(worker: Worker, need: Demand, budget: Budget, slots: int, retracted: Collection[Request]) -> str:
    return "retracted"


def full_taken_all_the_same(pools: Pools, owner: str, charge: Charge) -> tuple[Pools, str]:
    after, lack = reference.take(pools, owner, charge)
    if lack == "window":
        held = Held(owner, pools.full_free[: charge.full], ())
        after = replace(pools, full_free=pools.full_free[charge.full :], held=(*pools.held, held))
    return after, lack


def any_pages(pools: Pools, owner: str, charge: Charge) -> tuple[Pools, str]:
    if lack := allocator.lacking(pools, charge.full, charge.window):
        return pools, lack
    return reference.take(pools, owner, Charge(max(0, charge.full), max(0, charge.window)))


def window_given_up_all_the_same(pools: Pools, owner: str, charge: Charge) -> tuple[Pools, str]:
    after, lack = reference.resize(pools, owner, charge)
    if lack:
        trimmed = tuple(replace(h, window=()) if h.owner == owner else h for h in pools.held)
        after = replace(pools, held=trimmed)
    return after, lack


def window_pages_leak(pools: Pools, owner: str, cache: bool = False) -> Pools:
    after = reference.release(pools, owner, cache)
    return replace(after, window_free=pools.window_free)


def window_never_slides(pools: Pools, owner: str, charge: Charge) -> tuple[Pools, str]:
    held = allocator.held_by(pools, owner)
    after, lack = reference.resize(pools, owner, charge)
    return (
        (pools, lack)
        if lack
        else (replace(after, window_free=tuple(p for p in after.window_free if p not in held.window)), "")
    )


def pages_given_twice(pools: Pools, owner: str, charge: Charge) -> tuple[Pools, str]:
    after, lack = reference.take(pools, owner, charge)
    return replace(after, full_free=pools.full_free), lack


def full_only_evicted(worker: Worker, pools: Pools, pages: Charge) -> Pools:
    return allocator.evict(pools, pages.full if worker.decode_radix else 0, 0)


def cache_not_counted(state: PoolState) -> PoolState:
    return state


def all_of_the_cache_dropped_twice(worker: Worker, pools: Pools, pages: Charge) -> Pools:
    return replace(pools, window_free=pools.window_free + pools.window_cached)
