"""A decode worker with its queue and its pools, small enough to run: what was admitted is allocated at once.

Events, one outcome for each: ``retract`` (a request without pages joins the queue, or a running one gives its pages up), ``resume``,
``admit`` (a new request), ``decode`` (every running request grows by one token), ``finish`` (the named request, or the oldest; with
``cache`` its pages stay in the radix cache, where nobody reads them).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from memspec.capacity.window_page_budget.data import (
    Charge,
    Load,
    NeverFits,
    PagesRefused,
    Plan,
    PoolState,
    Request,
    Worker,
)
from memspec.capacity.window_page_budget.reference.budget import admission_budget, resume_budget
from memspec.capacity.window_page_budget.reference.demand import charge, check_fits, demand, fill
from memspec.capacity.window_page_budget.reference.pools import (
    Pools,
    empty_pools,
    evict,
    held_by,
    release,
    report,
    resize,
    take,
)
from memspec.capacity.window_page_budget.reference.queue import may_admit, resume

SLOTS = 1 << 20

Resume = Callable[[Worker, Pools, tuple[Request, ...], int, int, Collection[str] | None], tuple[Pools, Plan]]
Outcome = dict[str, Any]


class Policy(NamedTuple):
    """What differs between releases: a pass over the queue, which of the pools' pages count, and what is evicted for a charge."""

    resume: Resume
    counted: Callable[[PoolState], PoolState]
    make_room: Callable[[Worker, Pools, Charge], Pools]


@dataclass(frozen=True)
class State:
    """``running`` requests hold pages, oldest first; ``retracted`` ones hold none and wait in order. Sizes of the pools in pages."""

    full_pages: int
    window_pages: int
    pools: Pools
    running: tuple[Request, ...] = ()
    retracted: tuple[Request, ...] = ()


def as_reported(state: PoolState) -> PoolState:
    """The pools as they tell of themselves."""
    return state


def full_room(worker: Worker, pools: Pools, pages: Charge) -> Pools:
    """Evict full pages of a decode radix cache where ``pages`` lack them; window pages stay."""
    return evict(pools, pages.full if worker.decode_radix else 0, 0)


def allocate(pools: Pools, request: Request, pages: Charge) -> Pools:
    """Give an admitted request its pages. Raises PagesRefused."""
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
            pages = charge(worker, fill(request))
            pools = allocate(full_room(worker, pools, pages), request, pages)
    return pools, plan


def retract(worker: Worker, state: State, request: Request) -> tuple[State, Outcome]:
    """Put a request at the end of the queue; a running one gives its pages back. One that can never fit is rejected, not queued.

    Raises PagesRefused for one that waits already.
    """
    if any(r.name == request.name for r in state.retracted):  # masked by the allocator, once both come back
        raise PagesRefused(f"{request.name} waits already; it can be retracted once")
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


def admit(worker: Worker, state: State, request: Request, slots: int, policy: Policy) -> tuple[State, Outcome]:
    """Allocate for a new request, or say what keeps it out. Raises PagesRefused where admission promised too much."""
    page = worker.page_size
    try:
        check_fits(worker, request, state.full_pages * page, state.window_pages * page)
    except NeverFits as why:
        return state, {"rejected": "never-fits", "why": str(why)}
    seen, load = policy.counted(report(state.pools)), Load(running=len(state.running))
    budget = admission_budget(worker, seen, load, state.retracted)
    if lack := may_admit(worker, demand(worker, request), budget, slots, state.retracted):
        return state, {"admitted": False, "stopped": lack}
    pages = charge(worker, fill(request))
    pools = allocate(policy.make_room(worker, state.pools, pages), request, pages)
    return replace(state, pools=pools, running=(*state.running, request)), {"admitted": True, "stopped": ""}


def decode(worker: Worker, state: State, policy: Policy) -> tuple[State, Outcome]:
    """Every running request stores one token more. Where pages lack after eviction, the youngest is retracted until the rest fits."""
    retracted: list[str] = []
    rejected: list[str] = []
    for name in [request.name for request in state.running]:
        while request := next((r for r in state.running if r.name == name), None):
            sampled = request.outputs + (1 if request.rebootstrap else 0)
            grown = replace(request, outputs=max(sampled, 1) + 1, rebootstrap=False)
            pages = charge(worker, fill(grown))
            more = pages.full - len(held_by(state.pools, name).full)
            pools, lack = resize(policy.make_room(worker, state.pools, Charge(more, more)), name, pages)
            if not lack:
                running = tuple(grown if r.name == name else r for r in state.running)
                state = replace(state, pools=pools, running=running)
                break
            youngest = state.running[-1]
            state, outcome = retract(worker, state, youngest)
            (rejected if outcome else retracted).append(youngest.name)
    return state, {"retracted": retracted, "dropped": rejected}


def finish(worker: Worker, state: State, name: str, cache: bool) -> tuple[State, Outcome]:
    """Take the pages of ``name`` back, or those of the oldest request; with ``cache`` a radix cache keeps them, if there is one."""
    name = name or next((r.name for r in state.running), "")
    if not name:
        return state, {"finished": ""}
    rest = tuple(r for r in state.running if r.name != name)
    return replace(state, pools=release(state.pools, name, cache and worker.radix_cache), running=rest), {
        "finished": name
    }


def step(worker: Worker, state: State, event: Mapping[str, Any], policy: Policy) -> tuple[State, Outcome]:
    """The state after one event, and what was seen.

    Raises PagesRefused for an unknown event, for a request that does not run or waits already, and for a broken promise.
    """
    kind, slots = event["do"], event.get("slots", SLOTS)
    if kind == "decode":
        return decode(worker, state, policy)
    if kind == "resume":
        pools, plan = policy.resume(worker, state.pools, state.retracted, len(state.running), slots, event.get("only"))
        back = tuple(r for r in state.retracted if r.name in plan.resumed)
        left = tuple(r for r in state.retracted if r.name not in plan.resumed)
        state = replace(state, pools=pools, retracted=left, running=state.running + back)
        return state, {"resumed": list(plan.resumed), "stopped": plan.stopped}
    if kind == "finish":
        return finish(worker, state, event.get("name", ""), event.get("cache", False))
    name = event.get("name", "")
    if kind == "retract":
        lengths = (event.get("prompt", 0), event.get("outputs", 0), event.get("rebootstrap", False))
        return retract(worker, state, Request(name, *lengths))
    if kind == "admit":
        return admit(worker, state, Request(name, event["prompt"]), slots, policy)
    raise PagesRefused(f"no event {kind!r}; retract, resume, admit, decode and finish are known")


def replay(worker: Worker, full_pages: int, window_pages: int, events: Iterable[Mapping[str, Any]]) -> list[Outcome]:
    """Run ``events`` on a worker whose pools are free, and give one outcome for each.

    An outcome has what was asked for, pages ``free`` and ``cached`` in both pools, names ``running`` and ``queued``, and
    ``rejected``. Raises PagesRefused where an admitted request gets no pages.
    """
    return replay_with(worker, full_pages, window_pages, events, Policy(resume_and_allocate, as_reported, full_room))


def replay_with(
    worker: Worker,
    full_pages: int,
    window_pages: int,
    events: Iterable[Mapping[str, Any]],
    policy: Policy,
) -> list[Outcome]:
    """:func:`replay` by the policy of any release."""
    state = State(full_pages, window_pages, empty_pools(full_pages, window_pages, worker.page_size))
    outcomes: list[Outcome] = []
    for event in events:
        state, seen = step(worker, state, event, policy)
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
