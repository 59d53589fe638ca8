"""Who comes back: the retracted queue in order, until the first request that does not fit."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from memspec.capacity.window_page_budget.data import Budget, Demand, Plan, Request, Worker
from memspec.capacity.window_page_budget.reference.budget import less
from memspec.capacity.window_page_budget.reference.demand import demand


def misfit(worker: Worker, need: Demand, budget: Budget, slots: int) -> str:
    """What a request lacks: "slots", "full", "window", or "" when it fits."""
    if slots <= 0:
        return "slots"
    if need.full > budget.full:
        return "full"
    return "window" if worker.window_pool and need.window > budget.window else ""


def resume(
    worker: Worker, queue: Iterable[Request], budget: Budget, slots: int, only: Collection[str] | None = None
) -> Plan:
    """Resume requests in the queue's order while they fit. ``slots`` is the number of free request slots.

    A request that is not in ``only`` (when given) is passed over; the first that does not fit ends the pass. Raises WorkerRefused and
    LengthRefused.
    """
    resumed: list[str] = []
    left: list[str] = []
    stopped = ""
    for request in queue:
        if not stopped and (only is None or request.name in only):
            need = demand(worker, request)
            stopped = misfit(worker, need, budget, slots - len(resumed))
            if not stopped:
                resumed.append(request.name)
                budget = less(budget, need)
                continue
        left.append(request.name)
    return Plan(tuple(resumed), tuple(left), budget, stopped)


def may_admit(worker: Worker, need: Demand, budget: Budget, slots: int, retracted: Collection[Request]) -> str:
    """What keeps a new request out: "retracted" while anyone waits to come back, else what it lacks, else ""."""
    return "retracted" if retracted else misfit(worker, need, budget, slots)
