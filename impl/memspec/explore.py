"""Explicit-state search: every interleaving of a small world, its invariants, and the shortest way to break them.

A *world* says how it starts and which moves each of its states has. The search is breadth-first, so the first state
that breaks an invariant is reached by a shortest path; that path becomes the event table of a
:class:`memspec.conformance.Violation`. "Never stuck" means that a terminal state stays reachable from every state, by
moves that one may wait for: not by a crash or a copy that the network happens to make. A search that hit its bound is
"incomplete": it may have found a counterexample, it never says "holds".

Two ways to make a world: :func:`stepwise`, from one ``step(state, event)``; and :func:`memspec.compose.compose`, from
machines that send each other messages over a network that may lose, duplicate, delay and reorder them.

Lineage: stateright's models and TLC's breadth-first search. Deliberate differences: no symmetry, no fairness, no
parallelism; a world that needs them is too large for a specification that is checked on every build.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from memspec.conformance import NotExercised, Violation

State = Any  # hashable and frozen
Event = Any  # a string, or a tuple that begins with the event's name
Move = tuple[Event, State, str]  # the event, the state after it, and why it was rejected ("" when it was not)
Invariant = Callable[..., "str | None"]  # None when all is well, else what is wrong


class WorldError(ValueError):
    """A world cannot be searched as it is written; names the machine or the value, and what is asked of it."""


@dataclass(frozen=True)
class Rejected:
    """A machine's refusal of an event; its state is unchanged. Raises WorldError without a reason."""

    reason: str

    def __post_init__(self) -> None:
        if not self.reason:
            raise WorldError(f"a refusal gives {self.reason!r} as its reason; it must name one")


@dataclass(frozen=True)
class Moved:
    """A machine's next state and its effects: ``(machine, event)`` pairs, in the order in which they are sent."""

    state: State
    effects: tuple[tuple[str, Event], ...] = ()


def event_name(event: Event) -> str:
    """The name under which an event is counted: itself, or its first member."""
    return event if isinstance(event, str) else str(event[0])


def event_row(event: Event, *parts: State) -> Mapping[str, object]:
    """The default row of an event table."""
    return {"event": event_name(event), "with": "" if isinstance(event, str) else ", ".join(map(str, event[1:]))}


@dataclass(frozen=True)
class World:
    """``terminal`` names the end that a state is, "" for none. ``row`` shows an event and the state that it led to.

    ``view`` turns a state into the parts that ``terminal``, each invariant and ``row`` are given. A ``misfortune`` is a
    move that may happen and that nobody may wait for: "never stuck" finds its ways to an end without it.
    """

    initial: State
    moves: Callable[[State], Iterable[Move]]
    terminal: Callable[..., str]
    invariants: Mapping[str, Invariant] = field(default_factory=dict)
    row: Callable[..., Mapping[str, object]] = event_row
    view: Callable[[State], tuple[State, ...]] = lambda state: (state,)
    misfortune: Callable[[Event], bool] = lambda event: False


@dataclass(frozen=True)
class Counterexample:
    """What is wrong, and a shortest way there: one row an event, numbered from 1."""

    message: str
    trace: tuple[Mapping[str, object], ...]
    state: tuple[State, ...] = ()


@dataclass(frozen=True)
class Exploration:
    """What a search saw. ``events`` are the accepted ones; ``rejections`` counts ``name: reason``.

    ``stuck`` is None too where the search is incomplete; ask :func:`verdict`.
    """

    world: World
    complete: bool
    broken: Mapping[str, Counterexample]
    stuck: Counterexample | None
    events: Mapping[str, int]
    rejections: Mapping[str, int]
    terminals: Mapping[str, int]
    states: tuple[State, ...] = field(repr=False)
    edges: tuple[Event | None, ...] = field(repr=False)  # None: a rejected event
    targets: array[int] = field(repr=False)
    starts: array[int] = field(repr=False)  # state i has the edges starts[i] up to, not including, starts[i + 1]

    @property
    def transitions(self) -> int:
        """Events looked at, each counted in every state where it can happen, the rejected ones included."""
        return len(self.targets)


def stepwise(
    initial: State,
    events: Callable[[State], Iterable[Event]],
    step: Callable[[State, Event], State | Rejected],
    terminal: Callable[[State], str],
    invariants: Mapping[str, Invariant] | None = None,
    row: Callable[..., Mapping[str, object]] = event_row,
) -> World:
    """A world of one machine: ``events`` may happen in a state, ``step`` gives the next state or refuses.

    The search raises WorldError for a ``step`` that changes the state it is given.
    """

    def moves(state: State) -> Iterable[Move]:
        for event in events(state):
            before = hash(state)
            after = step(state, event)
            if hash(state) != before:
                raise WorldError(f"the step of {event!r} changed the state that it was given; it must be pure")
            yield (event, state, after.reason) if isinstance(after, Rejected) else (event, after, "")

    return World(initial, moves, terminal, invariants or {}, row)


def explore(world: World, limit: int = 100_000) -> Exploration:
    """Search breadth-first until every state is known, or every invariant has its counterexample.

    A state beyond ``limit`` is left out and the search is incomplete. Raises WorldError for a limit below 1.
    """
    if limit < 1:
        raise WorldError(f"limit is {limit} states; it must be at least 1")
    states, number, came = [world.initial], {world.initial: 0}, [(-1, None)]
    edges: list[Event | None] = []
    targets, starts = array("q"), array("q", [0])
    refused: list[tuple[Event, str]] = []
    broken: dict[str, tuple[str, int]] = {}
    waiting = dict(world.invariants)
    ends: dict[int, str] = {}
    complete, moves, view, here = True, world.moves, world.view, 0

    def look(there: int) -> None:
        parts = view(states[there])
        if end := world.terminal(*parts):
            ends[there] = end
        for name, wrong in tuple(waiting.items()):
            if (message := wrong(*parts)) is not None:
                broken[name] = (message, there)
                del waiting[name]

    look(0)
    while here < len(states) and (waiting or not world.invariants):
        for event, after, reason in moves(states[here]):
            there = number.get(after, -1)
            if there < 0:
                if len(states) >= limit:
                    complete = False
                    continue
                there = number[after] = len(states)
                states.append(after)
                came.append((here, event))
                look(there)
            if reason:
                refused.append((event, reason))
                event = None
            edges.append(event)
            targets.append(there)
        starts.append(len(edges))
        here += 1
    complete = complete and here == len(states)

    def path(message: str, there: int) -> Counterexample:
        last, rows = view(states[there]), []
        while came[there][0] >= 0:
            rows.append(world.row(came[there][1], *view(states[there])))
            there = came[there][0]
        return Counterexample(message, tuple({"step": i, **row} for i, row in enumerate(reversed(rows), 1)), last)

    # by identity: cheap, and most edges share their event object, which edges keeps alive
    things = {id(event): event for event in edges if event is not None}
    unlucky = {key for key, event in things.items() if world.misfortune(event)}
    trap = _first_stuck(unlucky, edges, targets, starts, ends) if complete else None
    stuck = None
    if trap is not None:
        leaves = any(there != trap for there in targets[starts[trap] : starts[trap + 1]])
        stuck = path("an end is out of reach" if leaves else "nothing can happen any more", trap)
    accepted: Counter[str] = Counter()
    for key, count in Counter(map(id, edges)).items():
        if key in things:
            accepted[event_name(things[key])] += count
    rejections: Counter[str] = Counter()
    for (event, reason), count in Counter(refused).items():
        rejections[f"{event_name(event)}: {reason}"] += count
    return Exploration(
        world, complete, {name: path(*found) for name, found in broken.items()}, stuck, accepted,
        rejections, Counter(ends.values()),
        tuple(states), tuple(edges), targets, starts)  # fmt: skip


def _first_stuck(
    unlucky: set[int], edges: list[Event | None], targets: array[int], starts: array[int], ends: Iterable[int]
) -> int | None:
    """The state nearest to the start from which no end can be reached: walk the edges backwards from the ends.

    ``unlucky`` are the identities of misfortunes. A refused one may be walked: a network only consumes it.
    """
    count = len(starts) - 1
    before: list[list[int]] = [[] for _ in range(count)]
    for here in range(count):
        for i in range(starts[here], starts[here + 1]):
            if id(edges[i]) not in unlucky:
                before[targets[i]].append(here)
    saved, todo = bytearray(count), list(ends)
    for end in todo:
        saved[end] = 1
    while todo:
        for earlier in before[todo.pop()]:
            if not saved[earlier]:
                saved[earlier] = 1
                todo.append(earlier)
    return next((i for i in range(count) if not saved[i]), None)


def verdict(found: Exploration, invariant: str | None) -> Literal["holds", "broken", "incomplete"]:
    """What the search says about an invariant, or with None about "never stuck".

    Raises WorldError for an invariant that the world does not have.
    """
    if invariant is not None and invariant not in found.world.invariants:
        raise WorldError(f"invariant {invariant!r} is not one of {', '.join(found.world.invariants)}")
    if (found.stuck if invariant is None else found.broken.get(invariant)) is not None:
        return "broken"
    return "holds" if found.complete else "incomplete"


def require(
    found: Exploration,
    invariant: str | None,
    due: str,
    events: Iterable[str] = (),
    rejections: Iterable[str] = (),
    terminals: Iterable[str] = (),
) -> None:
    """Decide a clause on a search: ``invariant`` holds (None: never stuck), and what the clause speaks of was reached.

    Raises Violation with the event table when it is broken; NotExercised when the search is incomplete or missed one of
    the names; WorldError for an invariant that the world does not have.
    """
    said = verdict(found, invariant)
    wrong = found.stuck if invariant is None else found.broken.get(invariant)
    if wrong is not None:
        raise Violation(wrong.message, due, wrong.trace)
    if said == "incomplete":
        raise NotExercised(f"incomplete: the search stopped after {len(found.states):,} states")
    missed = [f"event {name}" for name in events if name not in found.events]
    missed += [f"rejection {name}" for name in rejections if name not in found.rejections]
    missed += [f"end {name}" for name in terminals if name not in found.terminals]
    if missed:
        raise NotExercised(f"the search never reached {', '.join(missed)}")


def diagram(found: Exploration, project: Callable[..., str]) -> tuple[tuple[str, str, str], ...]:
    """The state diagram: sorted (label, event name, label), one for every accepted kind of edge.

    ``project`` gives a state its label; states of one label become one node.
    """
    labels = [project(*found.world.view(state)) for state in found.states]
    seen: set[tuple[str, str, str]] = set()
    for here in range(len(found.starts) - 1):
        for i in range(found.starts[here], found.starts[here + 1]):
            if found.edges[i] is not None:
                seen.add((labels[here], event_name(found.edges[i]), labels[found.targets[i]]))
    return tuple(sorted(seen))
