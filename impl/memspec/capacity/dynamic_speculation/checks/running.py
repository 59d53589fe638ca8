"""Simulated runs: figures that add up, compared with no speculation, one reading at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from memspec.capacity.dynamic_speculation.checks import oracle
from memspec.capacity.dynamic_speculation.checks.facets import CHECKS, Simulator
from memspec.capacity.dynamic_speculation.data import Arrival, Hypotheses, Mode, Report, World
from memspec.conformance import Violation, expect, once

DRAWS = tuple((37 * n + 11) % 100 for n in range(101))
BURST = World(
    tuple(Arrival(3_000 * n, 20, 4 + n) for n in range(6)), 2, tuple(oracle.REPORTED), accepts=DRAWS, budget=48
)
TIGHT = World((Arrival(0, 9, 8),) * 3, 3, ((1, 2, 3), (3, 9, 0)), accepts=DRAWS, block=4, pool=14)
NEVER = World((Arrival(0, 20, 5), Arrival(0, 20, 5)), 2, ((1, 9, 0),), accepts=DRAWS)
CALM = replace(NEVER, schedule=((1, 1, 2), (2, 9, 0)), block=4, arrivals=(Arrival(0, 21, 3), Arrival(0, 21, 9)))
WORLDS = {"burst": BURST, "tight": TIGHT, "K always 0": NEVER, "calm": CALM}
AS_READ = Hypotheses()
MODES: tuple[Mode, ...] = ("none", "static", "dynamic")
READINGS = {
    "sync": Hypotheses(sync="catch-up"),
    "graphs": Hypotheses(graphs="pieces"),
    "counting": Hypotheses(counting="sampling"),
    "lookahead": Hypotheses(lookahead="needed"),
}


@once
def run(simulator: Simulator, name: str, mode: Mode, readings: Hypotheses = AS_READ) -> Report:
    return simulator.simulate(WORLDS[name], mode, readings)


def runs() -> Iterator[tuple[str, Mode, Hypotheses]]:
    for name in ("burst", "K always 0"):
        for mode in MODES:
            yield name, mode, AS_READ
    yield "tight", "static", AS_READ
    yield "burst", "dynamic", READINGS["sync"]
    yield "tight", "dynamic", READINGS["lookahead"]


def draft_due(mode: Mode, readings: Hypotheses, k: int) -> int:
    if mode == "none":
        return 0
    return k or int(readings.sync == "every-step")


@CHECKS.clause(runs, Simulator)
def counters_add_up(simulator: Simulator, case: tuple[str, Mode, Hypotheses]) -> None:
    name, mode, readings = case
    world, report = WORLDS[name], run(simulator, name, mode, readings)
    rows = report.rows
    seen = {
        "delivered": report.delivered, "verified": report.verified, "draft forwards": report.draft_forwards,
        "at K=0": report.zero_forwards, "padded": report.padded, "switches": report.switches, "peak": report.peak_blocks,
        "gaps": len(report.latencies), "time": report.microseconds,
    }  # fmt: skip
    changes = [after for before, after in pairwise(rows) if after.k != before.k]
    first = min(arrival.at for arrival in world.arrivals)
    due = {
        "delivered": oracle.owed_tokens(world), "verified": sum(r.verified for r in rows),
        "draft forwards": sum(draft_due(mode, readings, r.k) for r in rows),
        "at K=0": sum(r.draft_forwards for r in rows if not r.k), "padded": sum(r.padded for r in rows),
        "switches": len(changes), "peak": max(r.blocks for r in rows),
        "gaps": oracle.owed_tokens(world) - len(world.arrivals),
        "time": first + sum(r.microseconds for r in rows),
    }  # fmt: skip
    expect(seen, due)
    expect(sum(r.delivered for r in rows), oracle.owed_tokens(world))
    for row in rows:
        if row.blocks > world.pool or row.verified > row.width * row.scheduled or row.padded < 0:
            raise Violation(row, f"at most {world.pool} blocks and {row.width} drafts a request")


@CHECKS.clause(lambda: ["calm", "K always 0"], Simulator)
def compared_with_none(simulator: Simulator, name: str) -> None:
    found = simulator.compared(WORLDS[name])
    expect(sorted(found), sorted(MODES))
    silent = found["none"]
    expect((silent.draft_forwards, silent.verified, {row.k for row in silent.rows}), (0, 0, {0}))
    due = Fraction(found["dynamic"].microseconds - silent.microseconds, silent.microseconds)
    expect(Fraction(simulator.tax(found)), due)


FIGURES: dict[str, tuple[str, ...]] = {  # what each reading can move in a run in which no block is short
    "sync": ("draft_forwards", "zero_forwards", "microseconds", "latencies"),
    "graphs": ("padded", "microseconds", "latencies"),
    "lookahead": ("peak_blocks",),
}


@CHECKS.clause(lambda: list(FIGURES), Simulator)
def one_reading_at_a_time(simulator: Simulator, reading: str) -> None:
    plain, other = (run(simulator, "calm", "dynamic", which) for which in (AS_READ, READINGS[reading]))
    moved = {n for n in Report._fields if n != "rows" and getattr(plain, n) != getattr(other, n)}
    if not moved or moved - set(FIGURES[reading]):
        raise Violation(sorted(moved), f"some of {', '.join(FIGURES[reading])} and nothing else")


@CHECKS.clause(
    lambda: [
        ("4/5", 2, "61/25"),
        ("3/5", 2, "49/25"),
        ("0", 4, "1"),
        ("1", 4, "5"),
        ("1/2", 0, "1"),
        ("1/2", 3, "15/8"),
    ],
    Simulator,
)
def expected_tokens(simulator: Simulator, case: tuple[str, int, str]) -> None:
    acceptance, k, due = case
    seen: Any = simulator.expected_tokens(Fraction(acceptance), k)
    expect(Fraction(seen), Fraction(due))
