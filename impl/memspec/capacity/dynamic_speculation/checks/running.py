"""Simulated runs: figures that add up, compared with no speculation, one reading at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from memspec.capacity.dynamic_speculation.checks import oracle
from memspec.capacity.dynamic_speculation.checks.facets import CHECKS, Simulator
from memspec.capacity.dynamic_speculation.data import Arrival, Costs, Hypotheses, Mode, Report, StepRow, World
from memspec.conformance import Violation, expect, once

DRAWS = tuple((37 * n + 11) % 100 for n in range(101))
BURST = World(
    tuple(Arrival(800 * n, 20, 4 + n) for n in range(6)), 2, tuple(oracle.REPORTED), accepts=DRAWS, budget=48,
    costs=Costs(weights=0),
)  # fmt: skip
TIGHT = World((Arrival(0, 9, 8),) * 3, 3, ((1, 2, 3), (3, 9, 0)), accepts=DRAWS, block=4, pool=11)
NEVER = World((Arrival(0, 20, 5), Arrival(0, 20, 5)), 2, ((1, 9, 0),), accepts=DRAWS)
CHUNKED = World((Arrival(0, 8, 30), Arrival(20_000, 60, 2)), 2, ((1, 1, 2), (2, 9, 0)), accepts=DRAWS, budget=16)
SURE = World((Arrival(0, 4, 10),), 2, ((1, 9, 2),), acceptance=100, accepts=DRAWS)
VAIN = replace(SURE, acceptance=0)
CALM = replace(NEVER, schedule=((1, 1, 2), (2, 9, 0)), block=4, arrivals=(Arrival(0, 21, 3), Arrival(0, 21, 9)))
WORLDS = {"burst": BURST, "tight": TIGHT, "K always 0": NEVER, "calm": CALM, "chunked": CHUNKED,
          "all accepted": SURE, "none accepted": VAIN}  # fmt: skip
DELIVERED = {"all accepted": [1, 3, 3, 3], "none accepted": [1] * 10}
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
    yield "tight", "none", AS_READ
    yield "tight", "static", AS_READ
    yield "burst", "dynamic", READINGS["sync"]
    yield "tight", "dynamic", READINGS["lookahead"]
    for name in DELIVERED:
        yield name, "static", AS_READ


def draft_due(mode: Mode, readings: Hypotheses, k: int) -> int:
    if mode == "none":
        return 0
    return k or int(readings.sync == "every-step")


def ks_due(world: World, mode: Mode) -> tuple[int, ...]:
    """K by the number of scheduled requests."""
    table = oracle.table_of(world.schedule, world.max_batch, world.k_max)
    return table if mode == "dynamic" else (0, *[world.k_max if mode == "static" else 0] * world.max_batch)


def timed(row: StepRow, costs: Costs) -> None:
    """The target's part by its tokens, padding included; what is left is the drafter's, at least a pass for each forward."""
    launch = costs.launch_full if row.graph == "full" else costs.launch_pieces
    left = row.microseconds - launch - max(costs.weights, costs.token * (row.tokens + row.padded))
    passes = row.draft_forwards * (costs.draft_launch + costs.draft_weights)
    if left < passes or (left and not passes):
        raise Violation(row, f"{row.microseconds - left} microseconds for the target, {passes} or more for the drafter")


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
    expect([r.delivered for r in rows], DELIVERED.get(name, [r.delivered for r in rows]))
    expect(list(report.latencies), sorted(report.latencies))
    if name == "K always 0" and mode != "static":  # both requests get a token in every step
        expect(list(report.latencies), sorted(row.microseconds for row in rows[1:] for _ in world.arrivals))
    for share in (50, 95):
        value = simulator.percentile(report.latencies, share)
        below, reached = (sum(n < value for n in report.latencies), sum(n <= value for n in report.latencies))
        if not 100 * below < share * len(report.latencies) <= 100 * reached:
            raise Violation(value, f"the smallest latency that {share} in 100 do not exceed")
    if mode == "none":  # a request that gave way computes its tokens again
        again = sum(r.tokens for r in rows) - sum(arrival.prompt + arrival.answer - 1 for arrival in world.arrivals)
        expect((again > 0, report.preempted > 0), (name == "tight",) * 2)
    for before, after in pairwise(rows):
        if after.width not in (
            0,
            before.k,
        ):  # no budget is short here, so every decode verifies what the step before asked for
            raise Violation(after, f"{before.k} drafts a request, or none where nobody decodes")
    table = ks_due(world, mode)
    for row in rows:
        expect(row.k, table[row.scheduled])
        timed(row, world.costs)
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
    world = WORLDS[name]
    held = [
        sum(oracle.blocks_touched(a.prompt + step, world.block) for a in world.arrivals if step < a.answer)
        for step in range(9)
    ]
    expect(silent.peak_blocks, max(held))  # nobody drafts, so there are no places for drafts
    owing = simulator.compared(WORLDS[name], READINGS["sync"])
    expect(owing["dynamic"].zero_forwards, 0)
    if name == "K always 0":
        expect((Fraction(simulator.tax(owing)), simulator.tax(found) > 0), (0, True))


FIGURES: dict[str, tuple[str, ...]] = {  # what each reading can move in a run in which no block is short
    "sync": ("draft_forwards", "zero_forwards", "microseconds", "latencies"),
    "graphs": ("padded", "microseconds", "latencies"),
    "lookahead": ("peak_blocks",),
}


@CHECKS.clause(lambda: [*FIGURES, "counting"], Simulator)
def one_reading_at_a_time(simulator: Simulator, reading: str) -> None:
    if (
        reading == "counting"
    ):  # moves K itself: a second request takes it to 0 in all steps of its prompt, or in the last
        for which, due in ((AS_READ, [0]), (READINGS[reading], [2])):
            ks = [row.k for row in run(simulator, "chunked", "dynamic", which).rows if row.prefills][1:]
            expect(ks, due * (len(ks) - 1) + [0])
            expect(len(ks) > 2, True)
        return
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
