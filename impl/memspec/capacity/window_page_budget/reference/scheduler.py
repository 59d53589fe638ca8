"""A decode worker with its queue and its pools, small enough to run: what was admitted is allocated at once.

Events, one outcome for each: ``retract`` (a request without pages joins the queue, or a running one gives its pages up), ``resume``,
``admit`` (a new request), ``decode`` (every running request grows by one token), ``finish`` (the named request, or the oldest; with
``cache`` its pages stay in a prefix cache that nobody reads).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memspec.capacity.window_page_budget.data import Load, NeverFits, PagesRefused, Plan, Request, Worker
from memspec.capacity.window_page_budget.reference.budget import admission_budget, resume_budget
from memspec.capacity.window_page_budget.reference.demand import charge, check_fits, demand, fill
from memspec.capacity.window_page_budget.reference.pools import (
    Pools,
    empty_pools,
    evict,
    release,
    report,
    resize,
    take,
)
from memspec.capacity.window_page_budget.reference.queue import may_admit, resume

SLOTS = 1 << 20

Resume = Callable[[Worker, Pools, tuple[Request, ...], int, int, Collection[str] | None], tuple[Pools, Plan]]
Outcome = dict[str, Any]


@dataclass(frozen=True)
class State:
    """``running`` requests hold pages, oldest first; ``retracted`` ones hold none and wait in order. Sizes of the pools in pages."""

    full_pages: int
    window_pages: int
    pools: Pools
    running: tuple[Request, ...] = ()
    retracted: tuple[Request, ...] = ()


def allocate(worker: Worker, pools: Pools, request: Request) -> Pools:
    """Give an admitted request its pages; full pages of a decode radix cache are evicted where needed. Raises PagesRefused."""
    pages = charge(worker, fill(request))
    pools = evict(pools, pages.full if worker.decode_radix else 0, 0)
    free = (len(pools.full_free), len(pools.window_free))
    pools, lack = take(pools, request.name, pages)
    if lack:  # masked by the budget, which never exceeds the pages that are free
        raise PagesRefused(
            f"{request.name} was admitted and needs {tuple(pages)} pages; {free} are free ({lack} lacks)"
        )
    return pools


def resume_and_allocate(
    worker: Worker,
    pools: Pools,
    queue: tuple[Request, ...],
    running: int,
    slots: int,
    only: Collection[str] | None,
) -> tuple[Pools, Plan]:
    """One pass with a budget that is computed once, then the allocations. Raises PagesRefused where admission promised too much."""
    plan = resume(worker, queue, resume_budget(worker, report(pools), Load(running=running)), slots, only)
    for request in queue:
        if request.name in plan.resumed:
            pools = allocate(worker, pools, request)
    return pools, plan


def retract(worker: Worker, state: State, request: Request) -> tuple[State, Outcome]:
    """Put a request at the end of the queue; a running one gives its pages back. One that can never fit is rejected, not queued."""
    if running := [r for r in state.running if r.name == request.name]:
        request = running[0]
        rest = tuple(r for r in state.running if r is not request)
        state = replace(state, pools=release(state.pools, request.name), running=rest)
    page = worker.page_size
    try:
        check_fits(worker, request, state.full_pages * page, state.window_pages * page)
    except NeverFits as why:
        return state, {"rejected": "never-fits", "why": str(why)}
    return replace(state, retracted=(*state.retracted, request)), {}


def admit(worker: Worker, state: State, request: Request, slots: int) -> tuple[State, Outcome]:
    """Allocate for a new request, or say what keeps it out. Raises PagesRefused where admission promised too much."""
    page = worker.page_size
    try:
        check_fits(worker, request, state.full_pages * page, state.window_pages * page)
    except NeverFits as why:
        return state, {"rejected": "never-fits", "why": str(why)}
    budget = admission_budget(worker, report(state.pools), Load(running=len(state.running)), state.retracted)
    if lack := may_admit(worker, demand(worker, request), budget, slots, state.retracted):
        return state, {"admitted": False, "stopped": lack}
    pools = allocate(worker, state.pools, request)
    return replace(state, pools=pools, running=(*state.running, request)), {"admitted": True, "stopped": ""}


def decode(worker: Worker, state: State) -> tuple[State, Outcome]:
    """Every running request stores one token more. Where a page lacks, the youngest is retracted until the rest fits."""
    retracted: list[str] = []
    rejected: list[str] = []
    for name in [request.name for request in state.running]:
        while request := next((r for r in state.running if r.name == name), None):
            sampled = request.outputs + (1 if request.rebootstrap else 0)
            grown = replace(request, outputs=max(sampled, 1) + 1, rebootstrap=False)
            pools, lack = resize(state.pools, name, charge(worker, fill(grown)))
            if not lack:
                running = tuple(grown if r.name == name else r for r in state.running)
                state = replace(state, pools=pools, running=running)
                break
            youngest = state.running[-1]
            state, outcome = retract(worker, state, youngest)
            (rejected if outcome else retracted).append(youngest.name)
    return state, {"retracted": retracted, "dropped": rejected}


def finish(state: State, name: str, cache: bool) -> tuple[State, Outcome]:
    """Take the pages of ``name`` back, or those of the oldest running request where no name is given."""
    name = name or next((r.name for r in state.running), "")
    if not name:
        return state, {"finished": ""}
    rest = tuple(r for r in state.running if r.name != name)
    return replace(state, pools=release(state.pools, name, cache), running=rest), {"finished": name}


def step(worker: Worker, state: State, event: Mapping[str, Any], resume_with: Resume) -> tuple[State, Outcome]:
    """The state after one event, and what was seen. Raises PagesRefused for a request that does not run, or a broken promise."""
    kind, slots = event["do"], event.get("slots", SLOTS)
    if kind == "decode":
        return decode(worker, state)
    if kind == "resume":
        pools, plan = resume_with(worker, state.pools, state.retracted, len(state.running), slots, event.get("only"))
        back = tuple(r for r in state.retracted if r.name in plan.resumed)
        left = tuple(r for r in state.retracted if r.name not in plan.resumed)
        state = replace(state, pools=pools, retracted=left, running=state.running + back)
        return state, {"resumed": list(plan.resumed), "stopped": plan.stopped}
    if kind == "finish":
        return finish(state, event.get("name", ""), event.get("cache", False))
    name = event["name"]
    if kind == "retract":
        lengths = (event.get("prompt", 0), event.get("outputs", 0), event.get("rebootstrap", False))
        return retract(worker, state, Request(name, *lengths))
    return admit(worker, state, Request(name, event["prompt"]), slots)


def replay(worker: Worker, full_pages: int, window_pages: int, events: Iterable[Mapping[str, Any]]) -> list[Outcome]:
    """Run ``events`` on a worker whose pools are free, and give one outcome for each.

    An outcome has what was asked for, pages ``free`` and ``cached`` in both pools, names ``running`` and ``queued``, and
    ``rejected``. Raises PagesRefused where an admitted request gets no pages.
    """
    return replay_with(worker, full_pages, window_pages, events, resume_and_allocate)


def replay_with(
    worker: Worker,
    full_pages: int,
    window_pages: int,
    events: Iterable[Mapping[str, Any]],
    resume_with: Resume,
) -> list[Outcome]:
    """:func:`replay` with another way to resume."""
    state = State(full_pages, window_pages, empty_pools(full_pages, window_pages, worker.page_size))
    outcomes: list[Outcome] = []
    for event in events:
        state, seen = step(worker, state, event, resume_with)
        outcomes.append(
            {
                "rejected": "",
                **seen,
                "free": [len(state.pools.full_free), len(state.pools.window_free)],
                "cached": [len(state.pools.full_cached), len(state.pools.window_cached)],
                "running": [r.name for r in state.running],
                "queued": [r.name for r in state.retracted],
            }
        )
    return outcomes
