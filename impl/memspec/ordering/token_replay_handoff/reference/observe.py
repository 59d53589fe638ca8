"""The coordinator for strangers: plain events in, plain outcomes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memspec.explore import Rejected
from memspec.ordering.token_replay_handoff.reference.coordinator import Handoff, step

ARGUMENTS = {"append": ("first", "tokens"), "ack": ("count",), "commit": ("count",), "fail": ("reason",)}


def replay(config: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Put ``events`` through one handoff of epoch ``config["epoch"]``; one outcome an event.

    An event has ``event`` (its name), ``epoch`` (the handoff's own when left out), and what its name asks for:
    ``first`` and ``tokens``, ``count``, or ``reason``.
    """
    state = Handoff(config["epoch"])
    outcomes = []
    for given in events:
        name = given["event"]
        arguments = [given[key] for key in ARGUMENTS.get(name, ())]
        if name == "append":
            arguments[1] = tuple(arguments[1])
        after = step(state, (name, given.get("epoch", state.epoch), *arguments))
        if not isinstance(after, Rejected):
            state = after
        outcomes.append({"rejected": after.reason if isinstance(after, Rejected) else "", **observed(state)})
    return outcomes


def observed(state: Handoff) -> dict[str, Any]:
    """What a stranger sees of a handoff. ``produced`` is the length of the log."""
    return {
        "phase": state.phase, "owner": state.owner, "log": list(state.log), "produced": len(state.log),
        "replayed": state.replayed, "sealed": state.sealed, "committed": state.committed,
    }  # fmt: skip
