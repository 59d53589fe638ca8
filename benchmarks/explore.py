"""How fast the search is, as a ratio to the plain way of writing it.

The world: a sender passes ``TOKENS`` tokens to a receiver, numbered and acknowledged, over a network that loses, duplicates and
reorders. The plain search keeps whole worlds as frozen dataclasses, changed with ``dataclasses.replace``, in a dictionary and a deque; it
checks the same invariants and remembers the same predecessors. Both must count the same states. Run: ``python benchmarks/explore.py``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memspec.compose import Machine, Network, compose
from memspec.explore import Exploration, Moved, Rejected, World, explore

TOKENS = 4
LOSSES = 2
DUPLICATES = 2


@dataclass(frozen=True)
class Sender:
    produced: int = 0
    acknowledged: int = 0
    closed: bool = False


@dataclass(frozen=True)
class Receiver:
    tokens: tuple[int, ...] = ()
    closed: bool = False


def sender_step(state: Sender, event: tuple[object, ...]) -> Moved | Rejected:
    """Append a token, send one again, or take an acknowledgement."""
    kind, number = event[0], int(str(event[1]))
    if kind == "append":
        return Moved(replace(state, produced=number + 1), (("receiver", ("token", number)),))
    if kind == "again":
        return Moved(state, (("receiver", ("token", number)),))
    if number < state.acknowledged:
        return Rejected("stale-ack")
    return Moved(replace(state, acknowledged=number, closed=number == TOKENS))


def sender_events(state: Sender) -> Iterator[tuple[object, ...]]:
    """What the sender may do of its own accord."""
    if state.produced < TOKENS:
        yield "append", state.produced
    if state.acknowledged < state.produced:
        yield "again", state.acknowledged


def receiver_step(state: Receiver, event: tuple[object, ...]) -> Moved | Rejected:
    """Take the next token in order; acknowledge what is there."""
    number = int(str(event[1]))
    if number > len(state.tokens):
        return Rejected("gap")
    if number == len(state.tokens):
        state = replace(state, tokens=(*state.tokens, number), closed=number + 1 == TOKENS)
    return Moved(state, (("sender", ("ack", len(state.tokens))),))


def in_order(sender: Sender, receiver: Receiver, *_: object) -> str | None:
    """No token is lost or repeated."""
    return None if receiver.tokens == tuple(range(len(receiver.tokens))) else f"tokens {receiver.tokens}"


def not_ahead(sender: Sender, receiver: Receiver, *_: object) -> str | None:
    """Nobody knows of more than was produced."""
    return None if sender.acknowledged <= len(receiver.tokens) <= sender.produced else "ahead of the sender"


def finished(sender: Sender, receiver: Receiver, *_: object) -> str:
    """The end: both have closed."""
    return "closed" if sender.closed and receiver.closed else ""


def composed_world() -> World:
    """The world as the project writes it."""
    return compose(
        {"sender": Machine(Sender(), sender_step, sender_events), "receiver": Machine(Receiver(), receiver_step)},
        Network(LOSSES, DUPLICATES),
        finished,
        {"in order": in_order, "not ahead": not_ahead},
    )


@dataclass(frozen=True)
class Plain:
    sender: Sender = Sender()
    receiver: Receiver = Receiver()
    flight: frozenset[tuple[str, tuple[object, ...]]] = frozenset()
    losses: int = LOSSES
    duplicates: int = DUPLICATES


def plain_moves(world: Plain) -> Iterator[tuple[str, Plain]]:
    """The same moves, on whole worlds."""
    for event in sender_events(world.sender):
        after = sender_step(world.sender, event)
        if isinstance(after, Moved):
            yield f"sender {event[0]}", replace(world, sender=after.state, flight=world.flight | set(after.effects))
    for message in world.flight:
        to, event = message
        ways = [("gets", replace(world, flight=world.flight - {message}))]
        if world.duplicates:
            ways.append(("gets copy of", replace(world, duplicates=world.duplicates - 1)))
        for way, base in ways:
            after = (sender_step if to == "sender" else receiver_step)(getattr(world, to), event)
            if isinstance(after, Rejected):
                yield f"{to} {way} {event[0]}", base
            else:
                changed = replace(base, flight=base.flight | set(after.effects))
                changed = (
                    replace(changed, sender=after.state) if to == "sender" else replace(changed, receiver=after.state)
                )
                yield f"{to} {way} {event[0]}", changed
        if world.losses:
            yield f"lost {event[0]}", replace(world, flight=world.flight - {message}, losses=world.losses - 1)


def plain_search() -> tuple[int, int]:
    """States and transitions of the plain search."""
    start = Plain()
    came: dict[Plain, tuple[Plain, str] | None] = {start: None}
    todo, transitions = deque([start]), 0
    while todo:
        world = todo.popleft()
        for name, after in plain_moves(world):
            transitions += 1
            if after not in came:
                came[after] = (world, name)
                todo.append(after)
                for wrong in (in_order, not_ahead):
                    if wrong(after.sender, after.receiver) is not None:
                        raise RuntimeError(f"{name} broke {wrong.__name__}")
    return len(came), transitions


def compare(rounds: int = 3) -> tuple[Exploration, float, float]:
    """The search, and transitions a second (of processor time, best of ``rounds``) of the search and of the plain one."""
    fast, slow = [], []
    for _ in range(rounds):
        began = time.process_time()
        found = explore(composed_world(), limit=1_000_000)
        middle = time.process_time()
        states, transitions = plain_search()
        ended = time.process_time()
        if (states, transitions) != (len(found.states), found.transitions):
            seen = f"{len(found.states)} states, {found.transitions} moves"
            raise RuntimeError(f"plain: {states} states, {transitions} moves; search: {seen}")
        fast.append(found.transitions / (middle - began))
        slow.append(transitions / (ended - middle))
    return found, max(fast), max(slow)


if __name__ == "__main__":
    exploration, fast, slow = compare()
    print(
        f"states {len(exploration.states):,}  transitions {exploration.transitions:,}  complete {exploration.complete}"
    )
    print(f"search {fast:,.0f} transitions/s, plain {slow:,.0f} transitions/s, ratio {fast / slow:.2f}")
