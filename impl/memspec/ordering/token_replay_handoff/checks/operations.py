"""How the vectors reach a subject, and the state diagrams of the page."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memspec.explore import Moved, Rejected, diagram, explore, stepwise
from memspec.ordering.token_replay_handoff.checks.base import (
    CHECKS,
    Coordinator,
    DecodeSide,
    Event,
    Negotiation,
    PrefillSide,
)
from memspec.ordering.token_replay_handoff.checks.decode import Text
from memspec.ordering.token_replay_handoff.checks.exploration import SEARCHES
from memspec.ordering.token_replay_handoff.checks.planning import Admission
from memspec.ordering.token_replay_handoff.checks.world import handoff_world
from memspec.ordering.token_replay_handoff.data import Plan, Request, Settings


def frozen(value: Any) -> Any:
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value


def walked(state: Any, step: Any, events: list[Mapping[str, Any]], shown: tuple[str, ...]) -> list[dict[str, Any]]:
    """One outcome an event ``{"event": name, "with": [...]}``: the refusal, what was sent, and some fields of the state."""
    outcomes = []
    for given in events:
        after: Moved | Rejected = step(state, (given["event"], *frozen(given.get("with", []))))
        refused = isinstance(after, Rejected)
        sent = [] if isinstance(after, Rejected) else [[to, *event] for to, event in after.effects]
        state = state if isinstance(after, Rejected) else after.state
        fields = {name: getattr(state, name) for name in shown}
        outcomes.append({"rejected": after.reason if refused else "", "sent": sent, **fields})  # type: ignore[union-attr]
    return outcomes


@CHECKS.operation(Coordinator)
def replay(subject: Coordinator, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return subject.replay({"epoch": given["epoch"]}, given["events"])


@CHECKS.operation(PrefillSide)
def prefill_side(subject: PrefillSide, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    start = subject.prefill_initial(Plan(**given["plan"]))
    return walked(start, subject.prefill_step, given["events"], ("handoff", "log"))


@CHECKS.operation(DecodeSide)
def decode_side(subject: DecodeSide, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    start = subject.decode_initial(Plan(**given["plan"]))
    return walked(start, subject.decode_step, given["events"], ("phase", "log", "emitted"))


@CHECKS.operation(Negotiation)
def plan(subject: Negotiation, given: Mapping[str, Any]) -> dict[str, Any]:
    sides = (Settings(**given["prefill"]), Settings(**given["decode"]))
    verdict = subject.handoff_plan(*sides, Request(**given["request"]))
    if verdict.plan is None:
        return {"handoff": False}
    return {"handoff": True, "bridge_max": verdict.plan.bridge_max, "placement": verdict.plan.placement}


@CHECKS.operation(Admission)
def catch_up(subject: Admission, given: Mapping[str, Any]) -> dict[str, Any]:
    """An infinite time is given as null."""
    predicted = subject.estimate_catch_up(**given)
    time = predicted.catch_up_ms
    return {
        "feasible": predicted.feasible,
        "backlog_tokens": predicted.backlog_tokens,
        "catch_up_ms": None if math.isinf(time) else time,
    }


@CHECKS.operation(Admission)
def replay_plan(subject: Admission, given: Mapping[str, Any]) -> dict[str, Any]:
    made = subject.batched_replay_plan(given["log"])
    return {"inputs": list(made.inputs), "expected": made.expected}


@CHECKS.operation(Text)
def detokenizer(subject: Text, given: Mapping[str, Any]) -> dict[str, Any]:
    prime = subject.detokenizer_prime(given["prompt"], given["log"], given["owned"])
    return {"ids": list(prime.ids), "read_offset": prime.read_offset}


@CHECKS.operation(Admission)
def page_tail(subject: Admission, given: Mapping[str, Any]) -> dict[str, int]:
    tail = subject.page_tail(**given)
    return {"page": tail.page, "rows": tail.rows}


@CHECKS.operation(Admission)
def bridge_budget(subject: Admission, given: Mapping[str, Any]) -> list[int]:
    return list(subject.bridge_budget(**given))


def state_diagrams() -> dict[str, tuple[tuple[str, str, str], ...]]:
    """What explorations of the reference found: the coordinator's phases, and the stages of each side."""
    reference = importlib.import_module("memspec.ordering.token_replay_handoff.reference")

    def events(state: Any) -> Iterator[Event]:
        if len(state.log) < 2:
            yield "append", state.epoch, len(state.log), (len(state.log),)
        yield from ((name, state.epoch) for name in ("prompt_kv_ready", "seal", "cancel"))
        yield "fail", state.epoch, "lost"
        for count in range(3):
            yield from ((name, state.epoch, count) for name in ("ack", "commit"))

    whole = stepwise(reference.Handoff(1), events, reference.step, lambda state: state.phase)
    found = {"Coordinator": diagram(explore(whole), lambda state: str(state.phase))}
    sides: dict[str, set[tuple[str, str, str]]] = {"prefill": set(), "decode": set()}
    labels: dict[str, Callable[..., str]] = {
        "prefill": lambda side, *_: str(side.handoff),
        "decode": lambda _, side, *__: str(side.phase) if side.alive else "dead",
    }
    for search in SEARCHES.values():
        both = explore(handoff_world(reference, search.setting))
        for name, label in labels.items():
            edges = diagram(both, label)
            sides[name] |= {
                (here, event.removeprefix(f"{name} ").replace("copy of ", ""), there)
                for here, event, there in edges
                if here != there
            }
    return found | {f"{name.capitalize()} side": tuple(sorted(edges)) for name, edges in sides.items()}
