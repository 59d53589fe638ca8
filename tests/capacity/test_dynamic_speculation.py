"""Dynamic speculation: each rule against a second formulation, and the figures that were reported."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memspec.capacity.dynamic_speculation import (
    Arrival,
    Graph,
    Hypotheses,
    Loop,
    Scheduled,
    Settings,
    SpeculationRefused,
    World,
    compared,
    decode,
    dense_table,
    dispatch,
    fall_out,
    follow,
    k_trace,
    percentile,
    planned,
    reference,
    simulate,
    tax,
    uncovered,
    verified_trace,
)
from memspec.capacity.dynamic_speculation.checks import CHECKS, oracle
from memspec.capacity.dynamic_speculation.data import Costs
from memspec.capacity.dynamic_speculation.faults import FAULTS
from memspec.capacity.dynamic_speculation.reference import simulator
from memspec.conformance import Violation, judge, variant

WIDE_THEN_NARROW = [[1, 16, 16], [17, 256, 2]]
DRAWS = tuple((37 * n + 11) % 100 for n in range(101))


@st.composite
def schedules(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    """(ranges in any order, with gaps and a tail; max_batch; k_max)."""
    edges = draw(st.lists(st.integers(2, 80), unique=True, max_size=7))
    bounds = sorted([1, *edges])
    entries = [
        [first, draw(st.integers(first, following - 1)), draw(st.integers(0, 9))]
        for first, following in pairwise([*bounds, draw(st.integers(81, 90))])
    ]
    return draw(st.permutations(entries)), draw(st.integers(1, 100)), draw(st.integers(1, 8))


def test_the_table_is_the_last_range_that_has_begun_on_a_thousand_random_configurations() -> None:
    draw = random.Random(20260723)
    for _ in range(1_200):
        starts = sorted({1, *(draw.randint(2, 90) for _ in range(draw.randint(0, 6)))})
        entries = [(s, draw.randint(s, e - 1), draw.randint(0, 9)) for s, e in pairwise([*starts, 99])]
        max_batch, k_max = draw.randint(1, 100), draw.randint(1, 8)
        shuffled = draw.sample(entries, len(entries))
        table = dense_table(shuffled, max_batch, k_max)
        assert table == oracle.table_of(entries, max_batch, k_max), (shuffled, max_batch, k_max)


@given(
    schedules(), st.lists(st.lists(st.sampled_from(["decode", "chunk", "last-chunk", "idle"]), max_size=9), max_size=9)
)
@settings(max_examples=80, deadline=None)
def test_widths_are_the_trace_one_step_later(
    configuration: tuple[list[list[int]], int, int], roles: list[list[str]]
) -> None:
    entries, max_batch, k_max = configuration
    chosen = Settings(k_max, max(max_batch, 9), tuple((a, b, k) for a, b, k in entries))
    steps = [[Scheduled("decode" if r == "idle" else r, int(r != "idle")) for r in step] for step in roles]  # type: ignore[arg-type]
    counts = [sum(r != "idle" for r in step) for step in roles]
    due = [oracle.k_of(chosen.schedule or (), k_max, count) if count else k_max for count in counts]
    assert list(k_trace(chosen, steps)) == due
    assert list(verified_trace(chosen, steps)) == ([0, *due[:-1]] if due else [])


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 40)), max_size=30), st.sampled_from(["every-step", "catch-up"])
)
def test_the_drafter_writes_each_row_once_and_before_it_proposes(steps: list[tuple[int, int]], policy: str) -> None:
    written: list[int] = []
    committed = 0
    for (k, tokens), step in zip(steps, follow(steps, policy), strict=True):  # type: ignore[arg-type]
        committed += tokens
        written += range(step.first, step.end)
        assert written == list(range(len(written)))
        assert committed - len(written) == step.debt
        assert k == step.proposed
        assert not (k and step.debt)


@st.composite
def loops(draw: st.DrawFn) -> Loop:
    size = draw(st.integers(2, 5))
    rows = st.lists(st.integers(0, size - 1), min_size=size, max_size=size).map(tuple)
    tables = st.lists(rows, min_size=size, max_size=size).map(tuple)
    target = draw(tables)
    drafter = draw(st.one_of(st.just(target), tables))
    prompt = tuple(draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=6)))
    ks = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=12)))
    return Loop(
        target, drafter, prompt, draw(st.integers(1, 25)), ks, draw(st.sampled_from(["every-step", "catch-up"]))
    )


@given(loops())
@settings(max_examples=100, deadline=None)
def test_output_does_not_depend_on_the_k_trace(loop: Loop) -> None:
    found = decode(loop)
    assert found.tokens == oracle.greedy(loop)
    if loop.drafter == loop.target:
        assert found.accepted == found.verified


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 6)), max_size=12), st.integers(1, 45), st.integers(1, 7))
def test_dispatch_is_the_first_captured_shape_going_upwards(
    shapes: list[tuple[int, int]], batch: int, query: int
) -> None:
    found = dispatch([Graph(*shape) for shape in shapes], batch, query)
    due = oracle.smallest({*shapes}, batch, query)
    assert (None if found is None else found.batch) == due


@given(schedules(), st.one_of(st.none(), st.integers(1, 400)))
@settings(max_examples=80, deadline=None)
def test_covered_and_uncovered_shapes_are_all_shapes(
    configuration: tuple[list[list[int]], int, int], ceiling: int | None
) -> None:
    table = dense_table(*configuration)
    graphs = planned(table, (), ceiling)
    missing = {(shape.batch, shape.query) for shape in uncovered(table, graphs)}
    for batch in range(1, len(table)):
        shape = (batch, table[batch] + 1)
        assert (shape in missing) == (oracle.smallest({*graphs}, *shape) is None)
    assert ceiling is not None or not missing
    assert ceiling is None or all(graph.tokens <= ceiling for graph in graphs)


def test_the_released_planner_and_dispatcher_lose_what_was_counted() -> None:
    table = dense_table(WIDE_THEN_NARROW, 256, 16)
    wide, tiered = fall_out(table, "widest-only"), fall_out(table, "each-tier")
    assert (wide.dispatched, wide.widest_covered[3], tiered.dispatched) == (190, 227, 79)
    assert (tiered.uncovered, uncovered(table, planned(table))) == (0, ())


def test_the_default_plan_of_a_release_is_the_one_that_was_worked_out_apart() -> None:
    """Said again from the sizes on: every size, rounded up to every length, below the ceiling."""
    table, ceiling = dense_table(WIDE_THEN_NARROW, 256, 16), 512
    sizes = {1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)}
    sizes |= {17 * n for n in (1, 2, 4, 8, 16)} | {3 * n for n in (1, 2, 4, *range(8, 256, 8), 256) if 3 * n <= ceiling}
    full = {(size + -size % q, q) for size in sizes for q in (3, 17) if size + -size % q <= ceiling}
    missed = 0
    for batch in range(1, 257):
        query = table[batch] + 1
        larger = min((size for size, _ in full if size >= batch * query), default=None)
        missed += (larger, query) not in full
    assert fall_out(table, "each-tier", ceiling, mixed=True).dispatched == missed == 120


def test_model_runner_v1_runs_a_table_in_pieces() -> None:
    kinds = {runner: reference.resolve(Settings(2, 8, ((1, 4, 2),), runner=runner)).graphs for runner in ("V1", "V2")}  # type: ignore[arg-type]
    assert kinds == {"V1": "pieces", "V2": "full"}
    assert reference.resolve(Settings(2, 8, runner="V1")).graphs == "full"


@pytest.mark.parametrize("query", [1, 3, 17])
def test_graphs_of_one_length_alone_are_all_found_by_both_searches(query: int) -> None:
    graphs = planned((0, *[query - 1] * 60))
    for batch in range(1, 61):
        assert dispatch(graphs, batch, query) == reference.next_size(graphs, batch, query)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    arrivals = draw(
        st.lists(
            st.builds(Arrival, st.integers(0, 90_000), st.integers(1, 40), st.integers(1, 14)), min_size=1, max_size=7
        )
    )
    k_max, block = draw(st.integers(1, 4)), draw(st.sampled_from([4, 16]))
    most = max(-(-(a.prompt + a.answer - 1 + 2 * k_max) // block) for a in arrivals)
    edge = draw(st.integers(1, 6))
    table = ((1, edge, draw(st.integers(0, 4))), (edge + 1, 99, draw(st.integers(0, 4))))
    return World(
        tuple(arrivals), k_max, table, draw(st.integers(1, 8)), draw(st.integers(0, 100)), DRAWS,
        draw(st.integers(k_max + 1, 60)), block, most + draw(st.integers(0, 12)))  # fmt: skip


@given(worlds(), st.sampled_from(["none", "static", "dynamic"]), st.sampled_from(["every-step", "catch-up"]),
       st.sampled_from(["static", "needed"]))  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_every_world_is_served_within_its_pool(world: World, mode: str, sync: str, lookahead: str) -> None:
    report = simulate(world, mode, Hypotheses(sync=sync, lookahead=lookahead))  # type: ignore[arg-type]
    assert report.delivered == sum(arrival.answer for arrival in world.arrivals)
    assert len(report.latencies) == report.delivered - len(world.arrivals)
    for row in report.rows:
        assert 0 < row.tokens <= world.budget
        assert row.scheduled <= world.max_batch
        assert row.blocks <= world.pool
        assert row.width <= world.k_max
    if mode == "none":
        assert report.draft_forwards == report.verified == report.switches == 0


def looked_at(world: World, share: Any, k: int, *rest: Any) -> tuple[int, int]:
    """Tokens are given out as ever, to a request that has a place for every draft that it is asked for."""
    ahead = 0 if share.role == "chunk" else k
    assert reference.reserved_blocks(share.request.computed, share.tokens, ahead, world.block) <= share.request.blocks
    return simulator.deliver(world, share, k, *rest)


WATCHED = variant(reference, deliver=looked_at)


@given(worlds(), st.sampled_from(["scheduled", "sampling"]))
@settings(max_examples=80, deadline=None)
def test_every_draft_has_a_place_when_places_follow_k(world: World, counting: str) -> None:
    WATCHED.simulate(world, "dynamic", Hypotheses(lookahead="needed", counting=counting))  # type: ignore[arg-type]


def test_places_are_for_the_k_of_those_that_are_left_when_a_request_gives_way() -> None:
    """Three requests would be asked for no draft; one gives way for lack of blocks, and two are asked for three."""
    given = (
        (58469, 1, 12),
        (68748, 9, 2),
        (32769, 11, 2),
        (39562, 2, 14),
        (50362, 2, 12),
        (34210, 11, 12),
        (17040, 9, 13),
    )
    world = World(tuple(Arrival(*one) for one in given), 4, ((1, 2, 3), (3, 99, 0)), 5, 12, DRAWS, 32, 2, 21)
    assert WATCHED.simulate(world, "dynamic", Hypotheses(lookahead="needed")).preempted > 0


def test_a_table_beyond_the_ladder_of_a_release_is_covered() -> None:
    table = dense_table([[1, 1_500, 1]], 1_500, 1)
    assert uncovered(table, planned(table)) == ()


def test_a_world_with_k_at_zero_pays_for_the_drafter_alone() -> None:
    world = World((Arrival(0, 20, 50),), 2, ((1, 9, 0),), accepts=DRAWS)
    synced, owed = compared(world), compared(world, Hypotheses(sync="catch-up"))
    passes = synced["dynamic"].microseconds - synced["none"].microseconds
    costs = Costs()
    tokens = 20 + 49
    assert passes == 50 * (costs.draft_launch + costs.draft_weights) + tokens * costs.draft_token
    assert (tax(owed), tax(synced) > 0) == (0, True)


def test_percentiles_are_latencies_that_occurred() -> None:
    values = tuple(range(1, 101))
    assert [percentile(values, share) for share in (50, 95, 100, 0)] == [50, 95, 100, 1]
    assert percentile((), 50) == 0


@given(st.fractions(0, 1), st.integers(0, 6))
def test_expected_tokens_are_those_of_all_outcomes(acceptance: Fraction, k: int) -> None:
    outcomes = sum((n + 1) * acceptance**n * (1 - acceptance) for n in range(k)) + (k + 1) * acceptance**k
    assert reference.expected_tokens(acceptance, k) == outcomes


@pytest.mark.parametrize(
    "wrong",
    [
        [[1, 4]],
        [[1, 4, 2, 0]],
        {1: 2},
        "1-4:2",
        None,
        [],
        [None],
        [[1, 4, "x"]],
        [[True, 0, 1]],
        [[1, float("inf"), 1]],
    ],
)
def test_what_is_no_schedule_is_refused(wrong: object) -> None:
    with pytest.raises(SpeculationRefused):
        dense_table(wrong, 8, 2)


def test_counting_and_holding_change_k_only_when_asked_for() -> None:
    chunk, one = Scheduled("chunk", 64), Scheduled("decode", 1)
    steps = [[one] * 4, [one] * 4 + [chunk], [one] * 4, [one] * 5, [one] * 5]
    plain = Settings(2, 8, ((1, 4, 2), (5, 8, 0)))
    found = {
        (counting, hold): k_trace(Settings(2, 8, plain.schedule, counting=counting, hold=hold), steps)
        for counting in ("scheduled", "sampling")
        for hold in (1, 2)
    }
    assert k_trace(plain, steps) == found["scheduled", 1] == (2, 0, 2, 0, 0)
    assert found["sampling", 1] == (2, 2, 2, 0, 0)
    assert found["scheduled", 2] == (2, 2, 2, 2, 0)


def test_a_fault_shows_the_step_in_which_rows_were_missing() -> None:
    skipped = next(fault for fault in FAULTS if fault.name == "skipped-at-zero").subject()
    decide = next(c.decide for n, c in CHECKS.clauses.items() if n.endswith("current-before-proposal"))
    with pytest.raises(Violation) as broken:
        decide(skipped, (((3, 2), (0, 1), (0, 1), (3, 1)), "every-step"))
    assert broken.value.trace[-1]["missing"] == 2


def test_the_reference_is_in_order() -> None:
    outcomes = {verdict.outcome for verdict in judge(CHECKS, reference).values()}
    assert outcomes == {"pass"}
