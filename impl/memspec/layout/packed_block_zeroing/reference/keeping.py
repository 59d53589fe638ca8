"""When it is due: the scheduler records blocks that it hands out, and every step delivers the record before
anything reads them.

A pure machine: ``step(state, event)`` gives the next state and what the worker is told to do, or a named rejection
that changes nothing. Source: vllm-project/vllm #35219, #43990 and the block manager of 0.33.0, whose record is not
withdrawn; the page marks the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Event = Mapping[str, Any]
Action = tuple[Any, ...]  # ("zero", blocks) | ("copy", source, target) | ("forward", runner)


@dataclass(frozen=True)
class Duty:
    """``pending`` blocks are recorded and not yet delivered; ``copies`` wait for the next step; ``loads`` are on
    their way.
    """

    pending: tuple[int, ...] = ()
    copies: tuple[tuple[int, int], ...] = ()
    loads: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Rejected:
    """The event has no meaning in this state, which stays as it was."""

    reason: str


def recorded(state: Duty, blocks: Sequence[int]) -> Duty:
    """The state with ``blocks`` in the record, each once."""
    return replace(state, pending=tuple(sorted({*state.pending, *blocks})))


def withdrawn(state: Duty, blocks: Sequence[int]) -> Duty:
    """The state with ``blocks`` out of the record."""
    return replace(state, pending=tuple(b for b in state.pending if b not in blocks))


def begin_load(state: Duty, load: str, blocks: tuple[int, ...]) -> Duty:
    """A load that the worker does not order with its own stream: its blocks are no longer due, whoever recorded
    them.
    """
    return replace(withdrawn(state, blocks), loads=(*state.loads, (load, blocks)))


def end_load(state: Duty, load: str, unwritten: tuple[int, ...]) -> Duty | Rejected:
    """A load is over; what it did not write is due again."""
    own = {block for name, blocks in state.loads if name == load for block in blocks}
    if not own.issuperset(unwritten):
        return Rejected("not-of-this-load")
    return recorded(replace(state, loads=tuple(entry for entry in state.loads if entry[0] != load)), unwritten)


def deliver(state: Duty, runner: str) -> tuple[Duty, tuple[Action, ...]]:
    """One step of the worker, whichever runner it has: clear, then copy, then compute. The record is empty
    afterwards.
    """
    zero: tuple[Action, ...] = (("zero", state.pending),) if state.pending else ()
    copies: tuple[Action, ...] = tuple(("copy", source, target) for source, target in state.copies)
    return replace(state, pending=(), copies=()), (*zero, *copies, ("forward", runner))


def step(state: Duty, event: Event) -> tuple[Duty, tuple[Action, ...]] | Rejected:
    """The next state and the actions of ``event``, or why it is rejected.

    Events: ``{"do": "allocate", "blocks": [...]}``, ``{"do": "free", "blocks": [...]}``, ``{"do": "copy", "source":
    b, "target": b}``, ``{"do": "load", "load": name, "blocks": [...]}``, ``{"do": "load-ended", "load": name,
    "unwritten": [...]}``, ``{"do": "step", "runner": name}``.
    """
    match event["do"]:
        case "allocate":
            return recorded(state, event["blocks"]), ()
        case "free":
            return state, ()
        case "copy":
            return replace(state, copies=(*state.copies, (event["source"], event["target"]))), ()
        case "load":
            return begin_load(state, event["load"], tuple(event["blocks"])), ()
        case "load-ended":
            after = end_load(state, event["load"], tuple(event["unwritten"]))
            return after if isinstance(after, Rejected) else (after, ())
        case "step":
            return deliver(state, event["runner"])
    return Rejected("unknown-event")


def duty(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The outcome of each event: its ``actions`` and what is ``pending`` after it, or what it was ``rejected`` for."""
    state, outcomes = Duty(), []
    for event in events:
        answer = step(state, event)
        if isinstance(answer, Rejected):
            outcomes.append({"rejected": answer.reason, "actions": (), "pending": state.pending})
            continue
        state, actions = answer
        outcomes.append({"actions": actions, "pending": state.pending})
    return outcomes
