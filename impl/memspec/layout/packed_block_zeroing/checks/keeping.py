"""The scheduler's duty, decided by playing what the worker is told against a memory that knows what each block
holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memspec.conformance import Violation
from memspec.layout.packed_block_zeroing.checks.facets import CHECKS, DutyKeeper

Event = Mapping[str, Any]
Script = tuple[Event, ...]


def allocate(*blocks: int) -> Event:
    return {"do": "allocate", "blocks": blocks}


def free(*blocks: int) -> Event:
    return {"do": "free", "blocks": blocks}


def load(name: str, *blocks: int) -> Event:
    return {"do": "load", "load": name, "blocks": blocks}


def ended(name: str, *unwritten: int) -> Event:
    return {"do": "load-ended", "load": name, "unwritten": unwritten}


def copy(source: int, target: int) -> Event:
    return {"do": "copy", "source": source, "target": target}


def step(runner: str = "second") -> Event:
    return {"do": "step", "runner": runner}


def play(keeper: DutyKeeper, script: Script) -> None:
    """Raise Violation where a block is read before it is clear, or cleared when it holds something, where a step does
    not compute, or makes other copies than were asked for; the trace is the run so far.

    A block that is handed out holds stale bytes. A load owns its blocks from the moment it begins.
    """
    holds: dict[int, str] = {}
    in_use: set[int] = set()
    loads: dict[str, set[int]] = {}
    rows: list[Mapping[str, object]] = []
    asked: list[tuple[int, int]] = []

    def act(action: Sequence[Any]) -> None:
        if action[0] == "zero":
            for block in action[1]:
                if (now := holds.get(block, "stale")) in ("a load", "a copy", "live keys"):
                    raise Violation(
                        f"block {block} is cleared and holds {now}", "only blocks that hold nothing are cleared", rows
                    )
                holds[block] = "zeros"
        elif action[0] == "copy":
            if (action[1], action[2]) not in asked:
                raise Violation(f"block {action[1]} is copied to {action[2]}", "only copies that were asked for", rows)
            asked.remove((action[1], action[2]))
            holds[action[2]] = "a copy"
        elif action[0] == "forward":
            if asked:
                raise Violation(f"computed before the copies {asked}", "copies come before the computation", rows)
            for block in sorted(in_use):
                if holds[block] == "stale":
                    raise Violation(
                        f"block {block} is read with stale bytes",
                        "a block is clear before the first step reads it",
                        rows,
                    )
                holds[block] = "live keys" if holds[block] == "zeros" else holds[block]

    for event, outcome in zip(script, keeper.duty(script), strict=True):
        rows.append({**event, "actions": outcome.get("actions", ())})
        match event["do"]:
            case "allocate":
                holds.update(dict.fromkeys(event["blocks"], "stale"))
                in_use |= set(event["blocks"])
            case "free":
                in_use -= set(event["blocks"])
            case "load":
                holds.update(dict.fromkeys(event["blocks"], "a load"))
                in_use |= set(event["blocks"])
                loads[event["load"]] = set(event["blocks"])
            case "copy":
                asked.append((event["source"], event["target"]))
            case "step":
                computed = [tuple(action) for action in outcome.get("actions", ()) if action[0] == "forward"]
                if computed != [("forward", event["runner"])]:
                    raise Violation(f"the step computes {computed}", f"runner {event['runner']} computes once", rows)
            case "load-ended":
                holds.update(dict.fromkeys(loads.pop(event["load"], set()) & set(event["unwritten"]), "stale"))
        for action in outcome.get("actions", ()):
            act(action)


@CHECKS.clause(lambda: [(allocate(1, 2), step()), (allocate(3), free(3), allocate(3, 4), step(), allocate(5), step()),
                        (allocate(1), step(), free(1), allocate(1), step()), (allocate(*range(40)), step())], facet=DutyKeeper)  # fmt: skip
def clear_before_read(keeper: DutyKeeper, script: Script) -> None:
    play(keeper, script)


@CHECKS.clause(
    lambda: [(allocate(1), step(), step()), (allocate(1), step(), allocate(2), step(), step())], facet=DutyKeeper
)
def drained_every_step(keeper: DutyKeeper, script: Script) -> None:
    play(keeper, script)


@CHECKS.clause(lambda: [(allocate(1), step(), allocate(2, *others), copy(1, 2), step(), step()) for others in ((), (3,))],
               facet=DutyKeeper)  # fmt: skip
def before_the_copies(keeper: DutyKeeper, script: Script) -> None:
    play(keeper, script)


@CHECKS.clause(lambda: [script for runner in ("first", "second") for script in
                        ((allocate(1), step(runner)), (allocate(1), step(runner), free(1), allocate(1), step(runner)))],
               facet=DutyKeeper)  # fmt: skip
def whichever_runner(keeper: DutyKeeper, script: Script) -> None:
    play(keeper, script)


@CHECKS.clause(lambda: [(load("a", 5, 6), step(), ended("a"), step()), (allocate(1), load("a", 5), step(), step(), ended("a"))],
               facet=DutyKeeper)  # fmt: skip
def loads_left_alone(keeper: DutyKeeper, script: Script) -> None:
    play(keeper, script)


@CHECKS.clause(lambda: [(allocate(5), free(5), load("a", 5), step()),
                        (allocate(4, 5), free(5), load("a", 5, 6), step(), ended("a"), step())],
               facet=DutyKeeper)  # fmt: skip
def record_withdrawn(keeper: DutyKeeper, script: Script) -> None:
    play(keeper, script)


@CHECKS.clause(
    lambda: [
        (load("a", 5, 6), step(), ended("a", 6), step(), step()),
        (load("a", 5), ended("a", 5), step()),
        (load("a", 5), load("b", 6), step(), ended("a", 5), step(), ended("b", 6), step()),
    ],
    facet=DutyKeeper,
)
def failed_load_restores(keeper: DutyKeeper, script: Script) -> None:
    play(keeper, script)


@CHECKS.clause(lambda: [(load("a", 5), allocate(1), step(), ended("a", 1), step()), (allocate(2), step(), ended("unknown", 2), step())],
               facet=DutyKeeper)  # fmt: skip
def only_its_own_blocks(keeper: DutyKeeper, script: Script) -> None:
    play(keeper, script)
