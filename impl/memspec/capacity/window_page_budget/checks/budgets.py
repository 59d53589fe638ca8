"""What may be promised, and how it is spent. What is due comes from a ledger kept request by request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memspec.capacity.window_page_budget.checks.cases import Pass, passes, pools_and_loads
from memspec.capacity.window_page_budget.checks.facets import CHECKS, Budgeter, Queue
from memspec.capacity.window_page_budget.checks.model import due_budget, due_demand, due_plan
from memspec.capacity.window_page_budget.data import NOTHING, Budget, Demand, Load, Plan, PoolState, Request, Worker
from memspec.conformance import Violation, expect, once

Pool = tuple[Worker, PoolState, Load]

ROOMY = PoolState(4096, 4096)
SINGLES = (NOTHING, Demand(300, 40), Demand(900, 900))
RETRACTED = (Request("a", 129), Request("b", 5, 3), Request("c", 64, 1, True))


def promised(budget: tuple[int, int]) -> Budget:
    """Below 0 nothing is promised, and a budget that ends there says the same."""
    return Budget(*(max(0, tokens) for tokens in budget))


@CHECKS.clause(
    lambda: (
        *((*case, NOTHING) for case in pools_and_loads()),
        *(
            (Worker(64, 128, 100), ROOMY, Load(*load), single)
            for load in ((1, 0, 0), (1, 1, 1), (2, 0, 0, 3))
            for single in SINGLES
        ),
    ),
    facet=Budgeter,
)
def active_reserve(budgeter: Budgeter, case: tuple[Worker, PoolState, Load, Demand]) -> None:
    worker, state, load, single = case
    if single == NOTHING:
        expect(
            promised(budgeter.resume_budget(worker, state, load)).full, promised(due_budget(worker, state, load)).full
        )
    seen = promised(budgeter.admission_budget(*case[:3], (), single))
    expect(seen.full, promised(due_budget(*case[:3], (), single)).full)


@CHECKS.clause(
    lambda: (
        *((*case, NOTHING) for case in pools_and_loads()),
        *((Worker(64, 128, 100), PoolState(4096, 4096, used), Load(2, prebuilt=built), single)
          for used in (0, 128, 192, 256, 512) for built in (0, 1, 4) for single in SINGLES),
    ),
    facet=Budgeter,
)  # fmt: skip
def window_growth_bound(budgeter: Budgeter, case: tuple[Worker, PoolState, Load, Demand]) -> None:
    worker, state, load, single = case
    if single == NOTHING:
        expect(
            promised(budgeter.resume_budget(worker, state, load)).window,
            promised(due_budget(worker, state, load)).window,
        )
    seen = promised(budgeter.admission_budget(*case[:3], (), single))
    expect(seen.window, promised(due_budget(*case[:3], (), single)).window)


@CHECKS.clause(pools_and_loads, facet=Budgeter)
def retracted_counted_once(budgeter: Budgeter, case: Pool) -> None:
    pools = 2 if case[0].window_pool else 1
    seen, due = budgeter.admission_budget(*case, RETRACTED, NOTHING), due_budget(*case, RETRACTED, NOTHING)
    expect(promised(seen)[:pools], promised(due)[:pools])
    expect(promised(budgeter.resume_budget(*case))[:pools], promised(due_budget(*case))[:pools])


@CHECKS.clause(pools_and_loads, facet=Budgeter)
def budget_within_free(budgeter: Budgeter, case: Pool) -> None:
    worker, state, _ = case
    most = (state.full_available + state.full_evictable * worker.decode_radix, state.window_available)
    for budget in map(promised, (budgeter.resume_budget(*case), budgeter.admission_budget(*case, (), NOTHING))):
        if budget.full > most[0] or budget.window > most[1]:
            raise Violation(tuple(budget), f"at most {most}")


def ample() -> Iterator[Pass]:
    """The same queues with budgets that never end a pass."""
    return ((worker, queue, Budget(10**6, 10**6), slots, only) for worker, queue, _, slots, only in passes())


def one_pool_short() -> Iterator[Pass]:
    """Queues that would empty one pool while the other has room."""
    queue = tuple(Request(f"r{i}", 129) for i in range(6))
    for worker in (
        Worker(128, 2047, 0),
        Worker(64, 128, 10, True),
        Worker(1, 4, 0),
        Worker(16, None, 0, tail_allocation=False),
    ):
        for full, window in ((10**6, 700), (1290, 10**6), (3 * 256 + 3 * worker.reserve, 10**6)):
            yield worker, queue, Budget(full, window), 9, None


def every_pass() -> Iterator[Pass]:
    yield from passes()
    yield from one_pool_short()


@once
def passed(queue: Any, case: Pass) -> Plan:
    plan: Plan = queue.resume(*case)
    return plan


def spent(worker: Worker, queue: tuple[Request, ...], plan: Plan) -> list[Budget]:
    """What the resumed requests have asked for after each of them."""
    totals, full, window = [], 0, 0
    for request in (r for name in plan.resumed for r in queue if r.name == name):
        need = due_demand(worker, request)
        full, window = full + need.full, window + need.window
        totals.append(Budget(full, window))
    return totals


@CHECKS.clause(every_pass, facet=Queue)
def conservation(queue: Queue, case: Pass) -> None:
    worker, requests, budget, *_ = case
    plan = passed(queue, case)
    total = (spent(worker, requests, plan) or [Budget(0, 0)])[-1]
    expect(plan.budget.full, budget.full - total.full)
    if worker.window_pool:
        expect(plan.budget.window, budget.window - total.window)


@CHECKS.clause(every_pass, facet=Queue)
def both_pools_fit(queue: Queue, case: Pass) -> None:
    worker, requests, budget, *_ = case
    for total in spent(worker, requests, passed(queue, case)):
        if total.full > budget.full or (worker.window_pool and total.window > budget.window):
            raise Violation(tuple(total), f"at most {tuple(budget)} in either pool")


@CHECKS.clause(every_pass, facet=Queue)
def fits_is_resumed(queue: Queue, case: Pass) -> None:
    plan = passed(queue, case)
    expect([name for name in due_plan(*case).resumed if name not in plan.resumed], [])


@CHECKS.clause(every_pass, facet=Queue)
def in_order(queue: Queue, case: Pass) -> None:
    plan = passed(queue, case)
    names = [request.name for request in case[1]]
    expect(sorted((*plan.resumed, *plan.left)), sorted(names))
    expect(list(plan.resumed), [name for name in names if name in plan.resumed])
    expect(list(plan.left), [name for name in names if name in plan.left])


@CHECKS.clause(every_pass, facet=Queue)
def first_misfit_stops(queue: Queue, case: Pass) -> None:
    plan, due = passed(queue, case), due_plan(*case)
    allowed = [request.name for request in case[1] if case[4] is None or request.name in case[4]]
    first = next((name for name in allowed if name not in plan.resumed), None)
    behind = allowed[allowed.index(first) :] if first else []
    expect([name for name in plan.resumed if name in behind], [])
    if plan.resumed == due.resumed:
        expect(plan.stopped, due.stopped)


@CHECKS.clause(lambda: (case for case in ample() if case[4] is not None), facet=Queue)
def filter_skips(queue: Queue, case: Pass) -> None:
    allowed = [request.name for request in case[1] if request.name in (case[4] or ())]
    expect(list(passed(queue, case).resumed), allowed[: case[3]])


@CHECKS.clause(
    lambda: ((w, q, b, slots, None) for w, q, b, _, _ in ample() if len(q) > 3 for slots in (0, 1, 3)), facet=Queue
)
def slots_bound(queue: Queue, case: Pass) -> None:
    expect(len(passed(queue, case).resumed), min(case[3], len(case[1])))
