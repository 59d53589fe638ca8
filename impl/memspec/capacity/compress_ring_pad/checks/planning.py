"""Plans: which windows, which writes, where. Due comes from what later windows read; both planners are judged wherever
a subject has both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, Protocol

from memspec.capacity.compress_ring_pad.checks import cases
from memspec.capacity.compress_ring_pad.checks.cases import BATCHES, C4, C128, PADS, PLAIN4, PLAIN128, REQUEST4, request
from memspec.capacity.compress_ring_pad.checks.facets import CHECKS, DevicePlanner, GeometryGuard, HostPlanner
from memspec.capacity.compress_ring_pad.data import (
    NO_COMPRESSION,
    NO_WRITE,
    SENTINEL,
    Compression,
    Geometry,
    Plan,
    Request,
    Write,
)
from memspec.conformance import CannotRun, Violation, expect, once, refused

Batch = tuple[Geometry, tuple[Request, ...]]


class Planners(HostPlanner, DevicePlanner, Protocol):
    """Both planners, of one subject."""


def total(requests: Sequence[Request]) -> int:
    return sum(of.extend for of in requests)


def real(plan: Plan) -> Plan:
    """The plan as plain tuples without its sentinels."""
    return Plan(
        [Compression(*c) for c in plan.compressions if tuple(c) != NO_COMPRESSION],
        [Write(*w) for w in plan.writes if tuple(w) != NO_WRITE],
    )


@once
def planned(subject: Any, batch: Batch) -> dict[str, Plan]:
    """What each planner of the subject plans for a batch, sentinels left out. The device's last thread arrives first."""
    geometry, requests = batch
    found = {}
    if callable(getattr(subject, "host_plan", None)):
        found["host"] = real(subject.host_plan(geometry, requests, total(requests)))
    if callable(getattr(subject, "device_plan", None)):
        arrival = range(total(requests))[::-1]
        found["device"] = real(subject.device_plan(geometry, requests, total(requests), arrival))
    if not found:
        raise CannotRun("the subject has no host_plan() and no device_plan()")
    return found


def written(subject: Any, batch: Batch) -> Iterator[tuple[str, Request, set[int]]]:
    """Planner, request, and the positions that the planner writes for it. Tokens outside the batch count for its first
    request.
    """
    owner = cases.owners(batch[1])
    for planner, plan in planned(subject, batch).items():
        found: dict[int, set[int]] = {number: set() for number in range(len(batch[1]))}
        for token, _ in plan.writes:
            number, position = owner.get(token, (0, batch[1][0].prefix + token))
            found[number].add(position)
        yield from ((planner, of, found[number]) for number, of in enumerate(batch[1]))


@CHECKS.clause(lambda: BATCHES, facet=Planners)
def planners_agree(subject: Any, batch: Batch) -> None:
    plans = planned(subject, batch)
    for kind in ("writes", "compressions"):
        expect(sorted(getattr(plans["device"], kind)), sorted(getattr(plans["host"], kind)))


def verifies() -> Iterator[Batch]:
    """As many drafts as the ring serves and fewer, at every residue of ratio 4 and some of ratio 128; then batches of several."""
    for geometry, drafts in ((C4, (1, 5, 8, 10)), (REQUEST4, (5, 10)), (C128, (2, 130))):
        for prefix in cases.residues(geometry, 512) if geometry.ratio == 4 else (256, 300, 382):
            yield from ((geometry, (request(1, prefix, count),)) for count in drafts)
    yield from (b for b in BATCHES if all(of.extend <= PADS[b[0]] for of in b[1]))


@CHECKS.clause(verifies)
def drafts_retained(subject: Any, batch: Batch) -> None:
    for planner, of, positions in written(subject, batch):
        lost = sorted(set(range(of.prefix, of.prefix + of.extend)) - positions)
        expect((planner, lost), (planner, []))


def extends(*geometries: Geometry) -> Iterator[Batch]:
    for geometry in geometries:
        for prefix, count in ((3, 6), (0, 140), (245, 16), (230, 40), (127, 1)):
            yield geometry, (request(1, prefix, count),)


def unspeculated() -> Iterator[Batch]:
    """One request, rings by request, several requests, and a chunk with the ends of two pages inside."""
    yield from extends(PLAIN4, PLAIN128, Geometry(4, 8, by_request=True))
    yield from (batch for batch in BATCHES if not PADS[batch[0]])
    yield PLAIN4, (request(1, 200, 400),)


@CHECKS.clause(unspeculated)
def base_rule(subject: Any, batch: Batch) -> None:
    for planner, of, positions in written(subject, batch):
        expect(
            (planner, sorted(positions)),
            (planner, sorted(cases.due_positions(batch[0], 0, of.prefix, of.prefix + of.extend))),
        )


@CHECKS.clause(lambda: [*extends(C4, C128, REQUEST4), *BATCHES])
def nothing_beyond(subject: Any, batch: Batch) -> None:
    for planner, of, positions in written(subject, batch):
        due = cases.due_positions(batch[0], PADS[batch[0]], of.prefix, of.prefix + of.extend)
        expect((planner, sorted(positions - due)), (planner, []))


@CHECKS.clause(lambda: [*extends(C4, C128), *BATCHES])
def one_write_per_slot(subject: Any, batch: Batch) -> None:
    for planner, plan in planned(subject, batch).items():
        slots = sorted(slot for _, slot in plan.writes)
        expect((planner, [a for a, b in pairwise(slots) if a == b]), (planner, []))


SHARED = (Request(1, 20, 4, (7, 9)), Request(2, 20, 4, (7, 4)))
OWNERS = (request(0, 0, 1), request(3, 0, 1), *SHARED)
Place = tuple[Geometry, Request, int]


def places(*geometries: Geometry) -> Iterator[Place | Batch]:
    """Positions whose row is asked for, and batches whose writes go to rows."""
    for geometry, of in product(geometries, OWNERS):
        asked = (0, 15, 16, 17, 127, 128, 239, 240, 255, 256, 257, 271, 500, 511)
        yield from ((geometry, of, p) for p in asked if not cases.paged(geometry) or p < 256 * len(of.pages))
    yield from (batch for batch in BATCHES if batch[0] in geometries)


def lies(subject: Any, case: Place | Batch) -> None:
    """Where a subject says that a row lies, and where its planners put it; whichever it has."""
    if not any(callable(getattr(subject, name, None)) for name in ("ring_slot", "host_plan", "device_plan")):
        raise CannotRun("the subject has no ring_slot(), host_plan() or device_plan()")
    if len(case) == 3:
        if callable(getattr(subject, "ring_slot", None)):
            expect(subject.ring_slot(*case), cases.due_slot(*case))
    elif callable(getattr(subject, "host_plan", None)) or callable(getattr(subject, "device_plan", None)):
        due = {token: cases.due_slot(case[0], of, position) for token, _, of, position in cases.tokens_of(case[1])}
        for planner, plan in planned(subject, case).items():
            expect(
                (planner, {w.token: w.slot for w in plan.writes if due.get(w.token, w.slot) != w.slot}), (planner, {})
            )


@CHECKS.clause(lambda: places(C4, PLAIN4))
def page_anchored(subject: Any, case: Place | Batch) -> None:
    lies(subject, case)


@CHECKS.clause(lambda: places(C128, PLAIN128, REQUEST4))
def request_anchored(subject: Any, case: Place | Batch) -> None:
    lies(subject, case)


@CHECKS.clause(
    lambda: [
        (Geometry(4, 24), (24,)),
        (Geometry(4, 18), (18,)),
        (Geometry(128, 192), (192,)),
        (Geometry(4, 4), (4,)),
        (Geometry(2, 8), (2,)),
        (Geometry(8, 16), (8,)),
        (Geometry(4, 16, 128), (128,)),
        (Geometry(4, 16, 512), (512,)),
        *(
            (g, ())
            for g in (*PADS, Geometry(4, 32), Geometry(128, 512), Geometry(128, 256, 64), Geometry(4, 16, 64, True))
        ),
    ],
    facet=GeometryGuard,
)
def geometry_checked(guard: GeometryGuard, case: tuple[Geometry, tuple[int, ...]]) -> None:
    geometry, named = case
    if named:
        refused(lambda: guard.check_geometry(geometry), *named)
    else:
        accepted(lambda: guard.check_geometry(geometry), geometry)


def accepted(call: Callable[[], object], what: object) -> None:
    try:
        call()
    except ValueError as refusal:
        raise Violation(f"refusal {str(refusal)!r}", f"{what} is served") from refusal


@CHECKS.clause(lambda: BATCHES)
def window_entries(subject: Any, batch: Batch) -> None:
    due = sorted((c.token, c.length, c.previous_page, c.own_page) for c in cases.due_plan(*batch).compressions)
    for planner, plan in planned(subject, batch).items():
        expect(
            (planner, sorted((c.token, c.length, c.previous_page, c.own_page) for c in plan.compressions)),
            (planner, due),
        )


@CHECKS.clause(lambda: BATCHES)
def batch_rows_first(subject: Any, batch: Batch) -> None:
    due = sorted((c.length, c.from_ring) for c in cases.due_plan(*batch).compressions)
    for planner, plan in planned(subject, batch).items():
        expect((planner, sorted((c.length, c.from_ring) for c in plan.compressions)), (planner, due))


def paddings() -> Iterator[tuple[Geometry, tuple[Request, ...], int]]:
    yield from ((geometry, requests, more) for geometry, requests in BATCHES[::3] for more in (0, 5))
    yield C4, (), 4


@CHECKS.clause(paddings, facet=DevicePlanner)
def sentinels_last(subject: Any, case: tuple[Geometry, tuple[Request, ...], int]) -> None:
    geometry, requests, more = case
    rows = total(requests) + more
    plans = [subject.device_plan(geometry, requests, rows)]
    if callable(getattr(subject, "host_plan", None)):
        plans.append(subject.host_plan(geometry, requests, total(requests), rows))
    for plan in plans:
        for kind, due, empty in zip(
            ("compressions", "writes"), cases.due_plan(geometry, requests), (NO_COMPRESSION, NO_WRITE), strict=True
        ):
            entries = [tuple(entry) for entry in getattr(plan, kind)]
            expect((kind, len(entries)), (kind, rows))
            expect((kind, entries[len(due) :]), (kind, [tuple(empty)] * (rows - len(due))))
            expect((kind, SENTINEL in [entry[0] for entry in entries[: len(due)]]), (kind, False))


@CHECKS.clause(
    lambda: [
        (geometry, tuple(request(n, prefix + n, extend) for n in range(count)), bucket)
        for geometry, prefix, extend, count, bucket in (
            (C4, 61, 5, 6, 40),
            (C4, 40, 1, 3, 8),
            (C128, 254, 2, 5, 16),
            (C128, 100, 32, 2, 128),
        )
    ],
    facet=DevicePlanner,
)
def no_invented_requests(subject: Any, case: tuple[Geometry, tuple[Request, ...], int]) -> None:
    geometry, requests, bucket = case
    plan, due = real(subject.device_plan(geometry, requests, bucket)), cases.due_plan(geometry, requests)
    expect(sorted(plan.writes), sorted(due.writes))
    expect(sorted(plan.compressions), sorted(due.compressions))


METHODS = ("host_plan", "device_plan", "step", "check_size")


def bad_batches() -> Iterator[tuple[str, tuple[Any, ...], tuple[int, ...]]]:
    """Method, what it is given, and what a refusal names; nothing named: the batch is served. The last number is
    tokens (host) or rows (device).
    """
    for geometry in (C4, C128):
        yield "host_plan", (geometry, (request(1, 20, 0), request(2, 20, 5)), 5), (0, 20)
        yield "host_plan", (geometry, (request(1, 20, -2), request(2, 20, 5)), 3), (-2, 18)
        yield "host_plan", (geometry, (request(1, -3, 8),), 8), (8, 5)
        yield "host_plan", (geometry, (request(1, 20, 5),), 6), (5, 6)
        yield "host_plan", (geometry, (request(1, 20, 5), request(2, 30, 5)), 9), (10, 9)
        yield "device_plan", (geometry, (request(1, 20, 5), request(2, 30, 5)), 9), (10, 9)
        yield "device_plan", (geometry, (request(1, 20, 0), request(2, 20, 5)), 5), (0, 20)
        yield "host_plan", (geometry, (request(1, 0, 1),), 1), ()
    yield "device_plan", (C4, (request(1, 8, 1),) * 1_025, 1_025), (1_025, 1_024)
    yield "device_plan", (C4, tuple(request(n, 8, 1) for n in range(16)), 16), ()
    arena, rows = [(0.0, 0.0)] * 512, [(0.0, 0.0)] * 2
    yield "step", (C4, arena, 0, "decode", (request(1, 20, 2),), rows), (2, 1)
    yield "step", (C128, arena, 0, "decode", (request(1, 20, 1),), rows), (1, 2)
    yield "check_size", (65_537, 1), (65_537, 65_536)
    yield "check_size", (65_536, 65_536), (65_536, 65_535)
    yield from (("check_size", sizes, ()) for sizes in ((65_536, 65_535), (65_536, 1), (1, 1)))


@CHECKS.clause(bad_batches)
def batch_checked(subject: Any, case: tuple[str, tuple[Any, ...], tuple[int, ...]]) -> None:
    method, given, named = case
    call = getattr(subject, method, None)
    if not any(callable(getattr(subject, name, None)) for name in METHODS):
        raise CannotRun(f"the subject has none of {', '.join(METHODS)}")
    if call is None:
        return
    if named:
        refused(lambda: call(*given), *named)
    else:
        accepted(lambda: call(*given), f"{method} of {given[-2] if method == 'check_size' else len(given[1])}")
