"""Worlds of machines that send each other messages over a network that may lose, duplicate, delay and reorder them.

A composed state is a tuple of small numbers, and each machine's step is worked out once per (machine state, event),
however many states of the world contain it: that is where the speed of the search comes from, and why a step must be
pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memspec.explore import Event, Invariant, Move, Moved, Rejected, State, World, WorldError, event_name, event_row


@dataclass(frozen=True)
class Machine:
    """One side of a conversation. ``events`` are what it, or its surroundings, may do of its own accord in a state.

    An ``at_once`` machine (a client, an observer) gets effects in the step that sends them, not over the network; it
    must neither refuse nor send. ``misfortunes`` names those of its ``events`` that nobody may wait for: a crash, a failure.
    """

    initial: State
    step: Callable[[State, Event], Moved | Rejected]
    events: Callable[[State], Iterable[Event]] = lambda state: ()
    at_once: bool = False
    misfortunes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Network:
    """Delays and reorders always. ``losses`` and ``duplicates`` are bounds, None for no bound.

    A message that is still under way is not added a second time. Messages named in ``sure`` (local notices) are only
    delayed and reordered.
    """

    losses: int | None = 0
    duplicates: int | None = 0
    sure: frozenset[str] = frozenset()


def compose(
    machines: Mapping[str, Machine],
    network: Network,
    terminal: Callable[..., str],
    invariants: Mapping[str, Invariant] | None = None,
    show: Callable[..., Mapping[str, object]] = lambda *parts: {},
) -> World:
    """A world of machines and the network between them.

    ``terminal``, each invariant and ``show`` (further columns of the event table) take the machines' states in order,
    then the messages under way, a tuple of ``(machine, event)``. Events are named ``prefill append`` (of its own
    accord), ``prefill gets seal`` (delivered), ``prefill gets copy of seal`` (delivered and still under way), ``lost
    seal``. A refused message is consumed all the same. Copies, losses and ``misfortunes`` are no ways to an end.

    Raises WorldError for a bound below 0; the search does for a step that changes the state it is given, that answers
    with something else than Moved or Rejected, or that sends to nobody of ``machines``.
    """
    for name, bound in (("losses", network.losses), ("duplicates", network.duplicates)):
        if bound is not None and bound < 0:
            raise WorldError(f"{name} is {bound}; it must be at least 0, or None for no bound")
    order, sides = tuple(machines), tuple(machines.values())
    place = {name: i for i, name in enumerate(order)}
    known = [_Ids(machine.initial) for machine in sides]
    messages, nets = _Ids(), _Ids(((), network.losses, network.duplicates))
    own: dict[tuple[int, int], list[tuple[Event, Any, str]]] = {}
    got: dict[tuple[int, int, int], tuple[Any, str]] = {}
    seen: dict[tuple[int, int, Event], int] = {}
    sent: dict[tuple[int, tuple[int, ...]], int] = {}
    flights: dict[int, list[tuple[Event, int, int, int]]] = {}

    def named(who: str, event: Event) -> Event:
        return (f"{who} {event_name(event)}", *(() if isinstance(event, str) else event[1:]))

    def outcome(side: int, state: int, event: Event) -> tuple[Any, str]:
        """(next state, messages to send, effects on observers), and the reason of a refusal; all as numbers."""
        given = known[side].things[state]
        after = sides[side].step(given, event)
        if known[side].numbers.get(given) != state:
            raise WorldError(
                f"machine {order[side]} changed the state that it was given with {event!r}; it must be pure"
            )
        if isinstance(after, Rejected):
            return None, after.reason
        if not isinstance(after, Moved):
            raise WorldError(f"machine {order[side]} answered {event!r} with {after!r}; it must be Moved or Rejected")
        if strangers := [to for to, _ in after.effects if to not in place]:
            raise WorldError(f"machine {order[side]} sends to {strangers[0]!r}; it must be one of {', '.join(order)}")
        direct = tuple((place[to], effect) for to, effect in after.effects if sides[place[to]].at_once)
        sends = tuple(messages.of(effect) for effect in after.effects if not sides[place[effect[0]]].at_once)
        return (known[side].of(after.state), sends, direct), ""

    def applied(ids: tuple[int, ...], side: int, result: Any, net: int) -> tuple[int, ...]:
        after, sends, direct = result
        new = [*ids[:-1], net]
        new[side] = after
        if sends:
            if (net, sends) not in sent:
                flight, losses, duplicates = nets.things[net]
                sent[net, sends] = nets.of((tuple(sorted({*flight, *sends})), losses, duplicates))
            new[-1] = sent[net, sends]
        for to, effect in direct:
            key = (to, new[to], effect)
            if key not in seen:
                reply, reason = outcome(*key)
                if reason or reply[1] or reply[2]:
                    deed = f"refused it: {reason}" if reason else "sent something"
                    raise WorldError(f"machine {order[to]} must take {effect!r} at once and send nothing; it {deed}")
                seen[key] = reply[0]
            new[to] = seen[key]
        return tuple(new)

    def flight_moves(net: int) -> list[tuple[Event, int, int, int]]:
        flight, losses, duplicates = nets.things[net]
        found: list[tuple[Event, int, int, int]] = []
        for message in flight:
            to, event = messages.things[message]
            name, *rest = named("", event)
            without = tuple(m for m in flight if m != message)
            found.append(((f"{to} gets{name}", *rest), place[to], message, nets.of((without, losses, duplicates))))
            if event_name(event) in network.sure:
                continue
            if duplicates != 0:
                kept = nets.of((flight, losses, duplicates and duplicates - 1))
                found.append(((f"{to} gets copy of{name}", *rest), place[to], message, kept))
            if losses != 0:
                after = nets.of((without, losses and losses - 1, duplicates))
                found.append(((f"lost{name}", *rest), -1, message, after))
        return found

    def moves(ids: tuple[int, ...]) -> Iterable[Move]:
        net = ids[-1]
        for side, machine in enumerate(sides):
            here = (side, ids[side])
            if here not in own:
                state = known[side].things[ids[side]]
                own[here] = [(named(order[side], event), *outcome(*here, event)) for event in machine.events(state)]
            for event, result, reason in own[here]:
                yield (event, ids, reason) if reason else (event, applied(ids, side, result, net), "")
        if net not in flights:
            flights[net] = flight_moves(net)
        for event, side, message, after in flights[net]:
            if side < 0:
                yield event, (*ids[:-1], after), ""
                continue
            key = (side, ids[side], message)
            if key not in got:
                got[key] = outcome(side, ids[side], messages.things[message][1])
            result, reason = got[key]
            yield event, (*ids[:-1], after) if reason else applied(ids, side, result, after), reason

    def view(ids: tuple[int, ...]) -> tuple[State, ...]:
        flight = tuple(messages.things[m] for m in nets.things[ids[-1]][0])
        return (*(known[i].things[n] for i, n in enumerate(ids[:-1])), flight)

    def row(event: Event, *parts: State) -> Mapping[str, object]:
        return {**event_row(event), **show(*parts)}

    unlucky = frozenset(f"{name} {event}" for name, machine in machines.items() for event in machine.misfortunes)

    def misfortune(event: Event) -> bool:
        name = event_name(event)
        return name in unlucky or name.startswith("lost ") or " gets copy of " in name

    return World((0,) * (len(sides) + 1), moves, terminal, invariants or {}, row, view, misfortune)


class _Ids:
    """Numbers things in the order in which they come."""

    def __init__(self, *first: Hashable) -> None:
        self.things: list[Any] = list(first)
        self.numbers: dict[Hashable, int] = {thing: i for i, thing in enumerate(first)}

    def of(self, thing: Hashable) -> int:
        """The number of ``thing``; the next free one when it is new."""
        number = self.numbers.setdefault(thing, len(self.things))
        if number == len(self.things):
            self.things.append(thing)
        return number
