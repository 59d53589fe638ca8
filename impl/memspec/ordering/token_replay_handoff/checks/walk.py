"""Short scripts of events, and what is due after each of them.

A line is an event, ``->``, and what is due: ``ok``, ``!name`` for a refusal that leaves everything as it was, or fields of the
outcome such as ``phase=REPLAYING owner=decode``. ``@8`` at the end of an event is its epoch; without it, it is 9.
"""

from __future__ import annotations

from typing import Any

from memspec.conformance import Violation, expect
from memspec.explore import Moved, Rejected
from memspec.ordering.token_replay_handoff.checks.base import Coordinator, DecodeSide, Event, Outcome, PrefillSide
from memspec.ordering.token_replay_handoff.data import Plan

EPOCH = 9
PATIENCE = 20  # more than the tokens of any walk
TO_THE_END = "nothing, in the end"  # in place of a refusal: put the event again until it is refused as "nothing"
Script = tuple[str, ...]


def parsed(line: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """The event as a mapping, the refusal that is due ("" for none), and the fields that are due."""
    left, _, due = (part.strip() for part in line.partition("->"))
    words, epoch = left.partition("@")[0].split(), left.partition("@")[2]
    event: dict[str, Any] = {"event": words[0]}
    if words[0] == "append":
        event |= {"first": int(words[1]), "tokens": [int(word) for word in words[2:]]}
    elif words[0] in ("ack", "commit"):
        event["count"] = int(words[1])
    elif words[0] == "fail":
        event["reason"] = words[1]
    if epoch:
        event["epoch"] = int(epoch)
    if due == "ok" or due.startswith("!"):
        return event, due[1:] if due != "ok" else "", {}
    fields = dict(word.split("=") for word in due.split())
    return event, "", {name: int(value) if value.isdigit() else value for name, value in fields.items()}


def walk(subject: Coordinator, script: Script) -> list[Outcome]:
    """Put a script through a coordinator; raise Violation, with the events so far, at the first outcome that is not due."""
    lines = [parsed(line) for line in script]
    events = [event for event, _, _ in lines]
    outcomes = subject.replay({"epoch": EPOCH}, events)
    expect(len(outcomes), len(events))
    nothing = {"phase": "COPYING_PROMPT_KV", "owner": "prefill", "log": [], "produced": 0, "replayed": 0}
    before: Outcome = {**nothing, "sealed": None, "committed": 0}
    for number, ((_, refusal, fields), outcome) in enumerate(zip(lines, outcomes, strict=True)):
        trace = [{"step": i, **event} for i, event in enumerate(events[: number + 1], 1)]
        seen = {name: outcome[name] for name in ("rejected", *fields)}
        if seen != (due := {"rejected": refusal, **fields}):
            raise Violation(seen, due, trace)
        state = {name: value for name, value in outcome.items() if name != "rejected"}
        if refusal and state != before:
            raise Violation(state, f"{refusal} leaves the state as it was: {before}", trace)
        before = state
    return outcomes


def prefill_walk(subject: PrefillSide, plan: Plan, *steps: tuple[Event, str]) -> list[tuple[str, Event]]:
    """Put events through a prefill side, each with its refusal ("" for none). Returns the effects of the last one.

    With ``TO_THE_END`` as its refusal an event is put until it is refused as "nothing": a side may take one token at a
    time or all of them.
    """
    return _walk(subject.prefill_initial(plan), subject.prefill_step, steps)


def decode_walk(subject: DecodeSide, plan: Plan, *steps: tuple[Event, str]) -> list[tuple[str, Event]]:
    """The same for a decode side."""
    return _walk(subject.decode_initial(plan), subject.decode_step, steps)


def _walk(state: Any, step: Any, steps: tuple[tuple[Event, str], ...]) -> list[tuple[str, Event]]:
    effects: list[tuple[str, Event]] = []
    trace: list[dict[str, object]] = []
    for number, (event, refusal) in enumerate(steps, 1):
        trace.append({"step": number, "event": event[0], "with": ", ".join(map(str, event[1:]))})
        after = step(state, event)
        for _ in range(PATIENCE if refusal == TO_THE_END else 0):
            if isinstance(after, Moved):
                state, effects = after.state, list(after.effects)
                after = step(state, event)
        if refusal == TO_THE_END:
            expect(after, Rejected("nothing"))
            continue
        seen = after.reason if isinstance(after, Rejected) else ""
        if seen != refusal:
            raise Violation(
                f"rejected: {seen}" if seen else "accepted", f"rejected: {refusal}" if refusal else "accepted", trace
            )
        effects = []
        if not isinstance(after, Rejected):
            state, effects = after.state, list(after.effects)
    return effects
