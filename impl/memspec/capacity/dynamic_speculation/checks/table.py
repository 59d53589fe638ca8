"""From schedule to K, and from K to the next step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from memspec.capacity.dynamic_speculation.checks import oracle
from memspec.capacity.dynamic_speculation.checks.facets import CHECKS, HandOver, Padder, Publishing, Tables, granted
from memspec.capacity.dynamic_speculation.data import Form, Scheduled, Settings
from memspec.conformance import Violation, expect, refused

Steps = tuple[tuple[Scheduled, ...], ...]
ONE = Scheduled("decode", 1)
CHUNK = Scheduled("chunk", 512)
LAST = Scheduled("last-chunk", 70)
IDLE = Scheduled("decode", 0)


def batches(inside: bool) -> Iterator[tuple[oracle.Schedule, int, int, int]]:
    """Batches inside a range, or in a gap and after the last range."""
    for schedule, max_batch, k_max in oracle.SCHEDULES:
        edges = {1, max_batch, *(edge for first, last, _ in schedule for edge in (first - 1, first, last, last + 1))}
        for batch in sorted(edge for edge in edges if 1 <= edge <= max_batch):
            if any(first <= batch <= last for first, last, _ in schedule) == inside:
                yield schedule, max_batch, k_max, batch


@CHECKS.clause(lambda: batches(inside=True), Tables)
def clamped(tables: Tables, case: tuple[oracle.Schedule, int, int, int]) -> None:
    schedule, max_batch, k_max, batch = case
    table = granted(lambda: tables.dense_table(list(schedule), max_batch, k_max))
    expect((len(table), table[0], table[batch]), (max_batch + 1, 0, oracle.k_of(schedule, k_max, batch)))


@CHECKS.clause(lambda: batches(inside=False), Tables)
def gaps_inherit(tables: Tables, case: tuple[oracle.Schedule, int, int, int]) -> None:
    schedule, max_batch, k_max, batch = case
    table = granted(lambda: tables.dense_table(list(schedule), max_batch, k_max))
    expect(table[batch], oracle.k_of(schedule, k_max, batch))


WRONG: tuple[tuple[Any, int, int, tuple[Any, ...]], ...] = (
    ("142", 8, 2, ("142",)),
    ([], 8, 2, ("[]",)),
    (None, 8, 2, ("None",)),
    ([[1, 4]], 8, 2, ("1, 4", 3)),
    ([[1, 4, 2], 7], 8, 2, (7, 3)),
    ([[1, 4, "two"]], 8, 2, ("two",)),
    ([[1, 4, None]], 8, 2, ("None",)),
    ([[1, float("inf"), 2]], 8, 2, ("inf",)),
    ([[0, 4, 2]], 8, 2, ("0, 4, 2", 1)),
    ([[1, 4, 2], [-3, -2, 1]], 8, 2, ("-3, -2, 1", 1)),
    ([[1, 4, 2], [7, 6, 1]], 8, 2, ("7, 6, 1",)),
    ([[1, 4, 2], [5, 512, -1]], 8, 2, ("5, 512, -1", 0)),
    ([[2, 4, 2]], 8, 2, ("2, 4, 2", 1)),
    ([[1, 4, 2], [4, 9, 1]], 8, 2, ("4, 9, 1", 4)),
    ([[5, 9, 1], [1, 6, 2]], 8, 2, ("5, 9, 1", 6)),
    ([[1, 4, 2]], 0, 2, (0, 1)),
    ([[1, 4, 2]], 8, 0, (0, 1)),
)


@CHECKS.clause(lambda: WRONG, Tables)
def entry_named(tables: Tables, case: tuple[Any, int, int, tuple[Any, ...]]) -> None:
    schedule, max_batch, k_max, named = case
    refused(lambda: tables.dense_table(schedule, max_batch, k_max), *named)


def traces() -> Iterator[tuple[Settings, Steps]]:
    """Counts that go up and down across thresholds, with prompts that come and go."""
    ups = [oracle.decodes(n) for n in (1, 4, 5, 4, 5, 6, 2, 8, 3)]
    mixed = [
        (*oracle.decodes(4), CHUNK),
        (*oracle.decodes(4), LAST),
        oracle.decodes(5),
        (*oracle.decodes(3), IDLE, LAST),
    ]
    for schedule, max_batch, k_max in oracle.SCHEDULES:
        settings = Settings(k_max, max(max_batch, 8), tuple(schedule))
        yield settings, tuple(ups)
        yield settings, tuple(reversed(ups))
        yield settings, tuple(mixed)


def count_of(requests: Iterable[Scheduled]) -> int:
    return len([request for request in requests if request.tokens])


def due_ks(settings: Settings, steps: Steps) -> list[int]:
    schedule = settings.schedule or ()
    return [
        oracle.k_of(schedule, settings.k_max, count_of(requests)) if count_of(requests) else settings.k_max
        for requests in steps
    ]


@CHECKS.clause(traces, Publishing)
def pure_of_count(publishing: Publishing, case: tuple[Settings, Steps]) -> None:
    settings, steps = case
    expect(list(granted(lambda: publishing.k_trace(settings, steps))), due_ks(settings, steps))


@CHECKS.clause(lambda: [(16, -1), (16, -16), (16, 17), (1, 2), (256, 300)], Tables)
def outside_the_table(tables: Tables, case: tuple[int, int]) -> None:
    max_batch, scheduled = case
    table = (0, *[2] * max_batch)
    try:
        refused(lambda: tables.k_for(table, scheduled, 2), scheduled, max_batch)
    except IndexError as bare:
        raise Violation(f"IndexError: {bare}", f"a refusal that names {scheduled} and {max_batch}") from bare


@CHECKS.clause(lambda: [(3, ((), oracle.decodes(5), ())), (2, ((IDLE, IDLE), oracle.decodes(2)))], Publishing)
def nothing_scheduled(publishing: Publishing, case: tuple[int, Steps]) -> None:
    k_max, steps = case
    settings = Settings(k_max, 8, ((1, 4, 1), (5, 8, 0)))
    expect(list(granted(lambda: publishing.k_trace(settings, steps))), due_ks(settings, steps))


def toggles() -> Iterator[tuple[Settings, Steps, list[int]]]:
    """Defaults, and what the two options do when they are asked for."""
    plain = Settings(2, 8, tuple(oracle.REPORTED))
    flapping = tuple(oracle.decodes(n) for n in (4, 5, 4, 5, 5, 5, 4))
    chunked = ((ONE,) * 4, (ONE,) * 4 + (CHUNK,), (ONE,) * 4 + (LAST,))
    yield plain, flapping, [2, 0, 2, 0, 0, 0, 2]
    yield plain, chunked, [2, 0, 0]
    yield Settings(2, 8, tuple(oracle.REPORTED), hold=2), flapping, [2, 2, 2, 2, 0, 0, 0]
    yield Settings(2, 8, tuple(oracle.REPORTED), hold=3), flapping, [2, 2, 2, 2, 2, 0, 0]
    yield Settings(2, 8, tuple(oracle.REPORTED), counting="sampling"), chunked, [2, 2, 0]


@CHECKS.clause(toggles, Publishing)
def steadying_off(publishing: Publishing, case: tuple[Settings, Steps, list[int]]) -> None:
    settings, steps, due = case
    expect(list(granted(lambda: publishing.k_trace(settings, steps))), due)


@CHECKS.clause(traces, Publishing)
def one_step_late(publishing: Publishing, case: tuple[Settings, Steps]) -> None:
    settings, steps = case
    expect(list(granted(lambda: publishing.verified_trace(settings, steps))), [0, *due_ks(settings, steps)[:-1]])


def proposals() -> Iterator[tuple[tuple[tuple[int, ...], ...], int, Form]]:
    forms: tuple[Form, ...] = ("narrow", "wide")
    for form in forms:
        yield ((5, 6), (), (7, 8)), 2, form
        yield ((1, 2, 3, 4, 5, 6, 7), (1, 2, 3, 4, 5), (9,), ()), 7, form
        yield ((), (3, 3, 3), (0, 0), (0,)), 3, form


@CHECKS.clause(proposals, HandOver)
def handed_over_as_proposed(hand_over: HandOver, case: tuple[tuple[tuple[int, ...], ...], int, Form]) -> None:
    sent, k_max, form = case
    got = granted(lambda: hand_over.received(sent, k_max, form))
    expect([tuple(drafts) for drafts in got], list(sent))


@CHECKS.clause(lambda: product((1, 70), (1, 4), (True, False), (0, 32), (True, False), (3, 100), (64, 512)), Padder)
def padded_only_static(padder: Padder, case: tuple[int, int, bool, int, bool, int, int]) -> None:
    new_tokens, k_max, running, computed, prefill, room, budget = case
    answer = padder.padded_tokens(new_tokens, k_max, True, running, computed, prefill, room, budget)
    expect(answer, min(new_tokens, budget))


def shapes() -> Sequence[tuple[tuple[int, int, bool, int, bool, int, int], int | None]]:
    """(new tokens, k_max, running, computed, prefill, room, budget) and the tokens due."""
    return [
        ((1, 4, True, 0, False, 100, 64), 5),
        ((1, 4, False, 32, False, 100, 64), 5),
        ((1, 4, False, 0, False, 100, 64), 1),
        ((1, 4, True, 0, True, 100, 64), 1),
        ((1, 4, False, 32, True, 100, 64), 1),
        ((1, 4, True, 32, False, 100, 64), 5),
        ((7, 4, True, 0, False, 100, 64), 7),
        ((1, 4, True, 0, False, 6, 64), 5),
        ((1, 4, True, 0, False, 5, 64), 1),
        ((1, 4, True, 0, False, 100, 5), 5),
        ((1, 4, True, 0, False, 100, 4), None),
        ((1, 4, True, 0, False, 100, 0), None),
        ((1, 4, False, 0, False, 100, 0), 0),
        ((1, 0, True, 0, False, 100, 1), 1),
        ((700, 4, True, 0, False, 900, 64), 64),
    ]


@CHECKS.clause(shapes, Padder)
def padding_keeps_the_shape(
    padder: Padder, case: tuple[tuple[int, int, bool, int, bool, int, int], int | None]
) -> None:
    (new_tokens, k_max, running, computed, prefill, room, budget), due = case
    answer = padder.padded_tokens(new_tokens, k_max, False, running, computed, prefill, room, budget)
    expect(answer, due)
