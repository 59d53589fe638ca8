"""How a vector's plain input reaches an implementation, and how the answer becomes plain data again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memspec.capacity.window_page_budget.checks.facets import (
    CHECKS,
    Allocator,
    Budgeter,
    Gate,
    Pricer,
    Queue,
    RadixTail,
    Rereader,
    Scheduler,
)
from memspec.capacity.window_page_budget.data import Budget, Demand, Load, PoolState, Request, Worker

Input = Mapping[str, Any]


def requests(entries: list[Mapping[str, Any]]) -> tuple[Request, ...]:
    return tuple(Request(**entry) for entry in entries)


@CHECKS.operation(facet=Pricer)
def demand(pricer: Pricer, given: Input) -> Any:
    return list(pricer.demand(Worker(**given["worker"]), Request(**given["request"])))


@CHECKS.operation(facet=Pricer)
def charge(pricer: Pricer, given: Input) -> Any:
    return list(pricer.charge(Worker(**given["worker"]), given["tokens"]))


@CHECKS.operation(facet=Budgeter)
def budgets(budgeter: Budgeter, given: Input) -> Any:
    """Budgets for the retracted queue and for new requests behind it, [full, window] tokens each."""
    what = (Worker(**given["worker"]), PoolState(**given["state"]), Load(**given["load"]))
    single = Demand(*given.get("single", (0, 0)))
    return {"resume": list(budgeter.resume_budget(*what)),
            "admission": list(budgeter.admission_budget(*what, requests(given["retracted"]), single))}  # fmt: skip


@CHECKS.operation(facet=Queue)
def resume(queue: Queue, given: Input) -> Any:
    plan = queue.resume(
        Worker(**given["worker"]), requests(given["queue"]), Budget(*given["budget"]), given["slots"], given.get("only")
    )
    return {
        "resumed": list(plan.resumed),
        "left": list(plan.left),
        "budget": list(plan.budget),
        "stopped": plan.stopped,
    }


@CHECKS.operation(facet=Gate)
def check_fits(gate: Gate, given: Input) -> Any:
    gate.check_fits(Worker(**given["worker"]), Request(**given["request"]), *given["pools"])
    return "accepted"


@CHECKS.operation(facet=Allocator)
def allocations(allocator: Allocator, given: Input) -> Any:
    full, window = given["pages"]
    return [dict(outcome) for outcome in allocator.allocations(full, window, given["events"])]


@CHECKS.operation(facet=Scheduler)
def replay(scheduler: Scheduler, given: Input) -> Any:
    full, window = given["pages"]
    return [dict(outcome) for outcome in scheduler.replay(Worker(**given["worker"]), full, window, given["events"])]


@CHECKS.operation(facet=Rereader)
def replay_rereading(rereader: Rereader, given: Input) -> Any:
    full, window = given["pages"]
    outcomes = rereader.replay_rereading(Worker(**given["worker"]), full, window, given["events"])
    return [dict(outcome) for outcome in outcomes]


@CHECKS.operation(facet=RadixTail)
def decode_radix_start(subject: RadixTail, given: Input) -> Any:
    return subject.decode_radix_start(given["tokens"], given["window"], given["page_size"])
