"""Whoever acts on a plan: a plan is turned around and filled up, and what it does to a ring is compared."""

from __future__ import annotations

from memspec.capacity.compress_ring_pad.checks import cases
from memspec.capacity.compress_ring_pad.checks.cases import C4, C128, raw_row, request
from memspec.capacity.compress_ring_pad.checks.facets import CHECKS, Consumer
from memspec.capacity.compress_ring_pad.checks.memory import BASE, TOLERANCE, layer
from memspec.capacity.compress_ring_pad.data import Geometry, Plan, Request
from memspec.conformance import Violation, expect

Act = tuple[
    Geometry, tuple[Request, ...], int
]  # a batch, and how its plan is turned: reversed and moved on by so many places
ACTS: tuple[Act, ...] = (
    (C4, (request(0, 21, 10), request(1, 30, 9)), 3),
    (C4, (request(1, 250, 8), request(0, 2, 2)), 0),
    (C128, (request(0, 250, 40), request(1, 120, 9)), 7),
)


def act(consumer: Consumer, case: Act, sentinels: int) -> None:
    """Compare a consumer's ring and entries with those that follow from the plan, its entries turned around."""
    geometry, requests, turn = case
    plan = cases.due_plan(geometry, requests)
    tokens = list(cases.tokens_of(requests))
    rows = [raw_row(number, position) for _, number, _, position in tokens]
    size = (16 if cases.paged(geometry) else 2) * geometry.ring
    arena, due = layer(size), layer(size)
    for number, of in enumerate(requests):
        for position in range(max(0, of.prefix - geometry.ring), of.prefix):
            arena[BASE + cases.due_slot(geometry, of, position)] = raw_row(number, position)
    due = list(arena)
    for token, slot in plan.writes:
        due[BASE + slot] = rows[token]
    turned = cases.filled(Plan(*([*part[turn:], *part[:turn]][::-1] for part in plan)), sentinels)
    entries = consumer.compress_rows(geometry, arena, BASE, turned.compressions, rows)
    truth = {
        token: cases.true_entry(geometry.ratio, number, 0, 0, position + 1)
        for token, number, _, position in tokens
        if (position + 1) % geometry.ratio == 0
    }
    expect(sorted(entries), sorted(truth))
    wrong = {token: entries[token] for token in truth if not abs(entries[token] - truth[token]) <= TOLERANCE}
    if wrong:
        raise Violation(wrong, {token: truth[token] for token in wrong})
    consumer.write_rows(arena, BASE, turned.writes, rows)
    expect({n - BASE: tuple(row) for n, row in enumerate(arena) if tuple(row) != due[n]}, {})


@CHECKS.clause(lambda: ACTS, facet=Consumer)
def any_order(consumer: Consumer, case: Act) -> None:
    act(consumer, case, 0)


@CHECKS.clause(lambda: ACTS, facet=Consumer)
def sentinels_skipped(consumer: Consumer, case: Act) -> None:
    act(consumer, case, 6)
