"""A scheduler watched from outside: books are kept of what it says, and before each step the books say what is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memspec.capacity.window_page_budget.checks.cases import Trace
from memspec.capacity.window_page_budget.checks.model import due_budget, due_demand, due_plan, pages_of, stored
from memspec.capacity.window_page_budget.data import Demand, Load, PoolState, Request, Worker
from memspec.conformance import Violation

Outcome = Mapping[str, Any]
Replay = Callable[..., Sequence[Outcome]]


def grown(request: Request) -> Request:
    """After one decode step. A rebootstrap has stored every token, and samples the next one."""
    sampled = request.outputs + (1 if request.rebootstrap else 0)
    return replace(request, outputs=max(sampled, 1) + 1, rebootstrap=False)


@dataclass
class Books:
    """What the outcomes so far say: who runs, who waits, and pages that are free or cached, [full, window]."""

    worker: Worker
    pages: tuple[int, int]
    running: dict[str, Request] = field(default_factory=dict)
    queued: dict[str, Request] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    cached: list[int] = field(default_factory=lambda: [0, 0])

    def held(self) -> list[int]:
        """Pages that the running requests are due."""
        charges = [pages_of(self.worker, stored(request)) for request in self.running.values()]
        return [sum(charge[pool] for charge in charges) for pool in (0, 1)]

    def possible(self, need: Demand) -> bool:
        """Whether empty pools would do."""
        full, window = (number * self.worker.page_size for number in self.pages)
        return need.full <= full and (not self.worker.window_pool or need.window <= window)

    def state(self) -> PoolState:
        """The same, as pools would tell admission."""
        page = self.worker.page_size
        return PoolState(
            self.free[0] * page,
            self.free[1] * page,
            self.held()[1] * page,
            self.cached[0] * page,
            self.cached[1] * page,
        )

    def present(self, event: Mapping[str, Any], outcome: Outcome) -> tuple[str, ...]:
        """Who has to be there after the event: whoever was, unless it ends, gives its pages up, or outgrows the pools."""
        gone = {event.get("name"), outcome.get("finished")}
        if event["do"] == "decode":
            gone |= {name for name, of in self.running.items() if not self.possible(due_demand(self.worker, grown(of)))}
        return (*self.queued, *(name for name in self.running if name not in gone))

    def enter(self, event: Mapping[str, Any], outcome: Outcome) -> None:
        """Follow one outcome."""
        known = {**self.queued, **self.running}
        if "name" in event:
            fresh = Request(
                event["name"], event.get("prompt", 0), event.get("outputs", 0), event.get("rebootstrap", False)
            )
            known.setdefault(event["name"], fresh)
        before = set(self.running)
        self.running = {name: known[name] for name in outcome["running"]}
        self.queued = {name: known[name] for name in outcome["queued"]}
        if event["do"] == "decode":
            for name in before & set(self.running):
                self.running[name] = grown(self.running[name])
        self.free, self.cached = list(outcome["free"]), list(outcome["cached"])


@dataclass(frozen=True)
class Seen:
    """One event: its outcome, and what was due: who comes back, why the pass stops, whether a new request gets in, who waits then."""

    event: Mapping[str, Any]
    outcome: Outcome
    waiting: int
    resumed: tuple[str, ...] = ()
    stopped: str = ""
    admitted: bool = False
    queued: tuple[str, ...] | None = None
    present: tuple[str, ...] = ()
    total: tuple[int, int] = (0, 0)

    def row(self) -> dict[str, object]:
        """For the event table."""
        shown = ("resumed", "admitted", "stopped", "rejected", "retracted", "free", "running", "queued")
        return {
            "event": " ".join(str(v) for v in self.event.values()),
            **{key: self.outcome[key] for key in shown if self.outcome.get(key) not in (None, "")},
        }


def watch(replay: Replay, trace: Trace, rereading: bool = False) -> list[Seen]:
    """Run a trace and keep books. Raises Violation with the events so far where the scheduler refuses to go on."""
    worker, full, window, events = trace
    try:
        outcomes = replay(worker, full, window, events)
    except ValueError as refusal:
        raise Violation(
            f"refusal {str(refusal)!r}", "pages for every admitted request", until(replay, trace)
        ) from refusal
    worker = replace(worker, radix_tail=rereading and worker.decode_radix)
    books = Books(worker, (full, window), free=[full, window])
    rows: list[Seen] = []
    for event, outcome in zip(events, outcomes, strict=True):
        rows.append(replace(due(books, event, outcome, rereading), present=books.present(event, outcome)))
        books.enter(event, outcome)
        held = books.held()
        rows[-1] = replace(rows[-1], total=tuple(books.free[p] + books.cached[p] + held[p] for p in (0, 1)))  # type: ignore[arg-type]
    return rows


def until(replay: Replay, trace: Trace) -> list[dict[str, object]]:
    """The last outcomes before a scheduler refuses to go on, and the event that it refuses, one row each."""
    worker, full, window, events = trace
    served, refused, outcomes, why = 0, len(events), list[Outcome](), ""
    while refused - served > 0:
        number = (served + refused) // 2
        try:
            outcomes = list(replay(worker, full, window, events[: number + 1]))
        except ValueError as refusal:
            refused, why = number, str(refusal)
        else:
            served = number + 1
    if refused == len(events):
        return []
    told = [Seen(event, outcome, 0).row() for event, outcome in zip(events[:refused], outcomes, strict=False)]
    return [*told[-7:], {"event": " ".join(str(v) for v in events[refused].values()), "refused": why}]


def due(books: Books, event: Mapping[str, Any], outcome: Outcome, rereading: bool) -> Seen:
    """What the books say before the event."""
    worker, queue = books.worker, tuple(books.queued.values())
    slots = event.get("slots", 99)
    if event["do"] == "resume":
        if rereading:
            return Seen(event, outcome, len(queue), *reread(books, slots, event.get("only")))
        budget = due_budget(worker, books.state(), Load(running=len(books.running)))
        plan = due_plan(worker, queue, budget, slots, event.get("only"))
        return Seen(event, outcome, len(queue), plan.resumed, plan.stopped)
    if event["do"] == "retract":
        running = books.running.get(event["name"])
        request = running or Request(
            event["name"], event.get("prompt", 0), event.get("outputs", 0), event.get("rebootstrap", False)
        )
        queued = (*books.queued, *([event["name"]] if books.possible(due_demand(worker, request)) else []))
        return Seen(event, outcome, len(queue), queued=queued)
    if event["do"] == "admit":
        request = Request(event["name"], event["prompt"])
        state = evicted_first(books.state()) if rereading else books.state()
        budget = due_budget(worker, state, Load(running=len(books.running)))
        need = due_demand(worker, request)
        fits = need.full <= budget.full and (not worker.window_pool or need.window <= budget.window)
        return Seen(event, outcome, len(queue), admitted=fits and books.possible(need) and not queue and slots > 0)
    return Seen(event, outcome, len(queue))


def evicted_first(state: PoolState) -> PoolState:
    """Pages of the window cache are as good as free where they can be evicted."""
    return replace(state, window_available=state.window_available + state.window_evictable, window_evictable=0)


def reread(books: Books, slots: int, only: tuple[str, ...] | None) -> tuple[tuple[str, ...], str]:
    """Who comes back where every pool is looked at anew: pages of the window cache count, as they can be evicted."""
    worker, stopped = books.worker, ""
    resumed: list[str] = []
    now = Books(worker, books.pages, dict(books.running), free=list(books.free), cached=list(books.cached))
    for name, request in books.queued.items():
        if only is not None and name not in only:
            continue
        budget = due_budget(worker, evicted_first(now.state()), Load(running=len(now.running)))
        need = due_demand(worker, request)
        if slots <= len(resumed):
            stopped = "slots"
        elif need.full > budget.full:
            stopped = "full"
        elif worker.window_pool and need.window > budget.window:
            stopped = "window"
        if stopped:
            break
        resumed.append(name)
        now.running[name] = request
        charge = pages_of(worker, stored(request))
        for pool in (0, 1):
            from_cache = max(0, charge[pool] - now.free[pool])
            now.cached[pool] -= from_cache
            now.free[pool] += from_cache - charge[pool]
    return tuple(resumed), stopped
