"""What the checks run on, and what is due: from what later windows read, from the raw history, or given with the case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp

from memspec.capacity.compress_ring_pad.data import (
    NO_COMPRESSION,
    NO_WRITE,
    Compression,
    Geometry,
    Plan,
    Request,
    Row,
    StaleRead,
    Write,
)

WINDOW = {4: 8, 128: 128}  # rows that one compression reads

C4, C128 = Geometry(4, 16), Geometry(128, 256)  # with speculation
PLAIN4, PLAIN128 = Geometry(4, 8), Geometry(128, 128)  # without
REQUEST4 = Geometry(4, 16, by_request=True)
PADS = {C4: 10, C128: 130, PLAIN4: 0, PLAIN128: 0, REQUEST4: 10}


def paged(geometry: Geometry) -> bool:
    return geometry.ratio == 4 and not geometry.by_request


def pages_of(slot: int, count: int = 8) -> tuple[int, ...]:
    """Physical SWA pages of a request: none shared, not in order."""
    return tuple(8 * slot + (5 * n + 3) % 8 for n in range(count))


def request(slot: int, prefix: int, extend: int) -> Request:
    return Request(slot, prefix, extend, pages_of(slot))


def due_slot(geometry: Geometry, of: Request, position: int) -> int:
    """The row by counting: whole rings before it, then the place in its own."""
    rings = of.pages[position // geometry.page] if paged(geometry) else of.slot
    return rings * geometry.ring + position % geometry.ring


def first_needed(geometry: Geometry, end: int) -> int:
    """The earliest position that the first window ending at or after ``end`` reads."""
    ending = next(p for p in range(end, end + geometry.ratio) if (p + 1) % geometry.ratio == 0)
    return ending - WINDOW[geometry.ratio] + 1


@cache
def due_positions(geometry: Geometry, pad: int, prefix: int, end: int) -> frozenset[int]:
    """What the ring has to hold when ``end`` tokens are known, of them the last ``pad`` unsure."""
    later = first_needed(geometry, end)
    due = {p for p in range(prefix, end) if p >= later or end - p <= pad}
    if paged(geometry):  # the first window behind a page boundary reads the group before it
        due |= {p for p in range(prefix, end) if (p + geometry.ratio) // geometry.page != p // geometry.page}
    return frozenset(due)


@cache
def tokens_of(requests: tuple[Request, ...]) -> tuple[tuple[int, int, Request, int], ...]:
    """(batch token, request number, request, position) of every token of a batch."""
    every = [
        (number, of, position)
        for number, of in enumerate(requests)
        for position in range(of.prefix, of.prefix + of.extend)
    ]
    return tuple((token, *found) for token, found in enumerate(every))


@cache
def owners(requests: tuple[Request, ...]) -> dict[int, tuple[int, int]]:
    """Request number and position of every batch token."""
    return {token: (number, position) for token, number, _, position in tokens_of(requests)}


@cache
def due_plan(geometry: Geometry, requests: tuple[Request, ...], pad: int | None = None) -> Plan:
    """The plan of a batch, each entry from its definition. An entry that reads nothing from the ring has pages (-1,
    request number).
    """
    compressions, writes = [], []
    window = WINDOW[geometry.ratio]
    for token, number, of, position in tokens_of(requests):
        if (position + 1) % geometry.ratio == 0:
            early = sum(p < of.prefix for p in range(position + 1 - window, position + 1))
            before, own = (
                due_slot(geometry, of, p) // geometry.ratio for p in (max(0, position - geometry.ratio), position)
            )
            compressions.append(Compression(position + 1, token, early, *((before, own) if early else (-1, number))))
        if position in due_positions(
            geometry, PADS[geometry] if pad is None else pad, of.prefix, of.prefix + of.extend
        ):
            writes.append(Write(token, due_slot(geometry, of, position)))
    return Plan(compressions, writes)


def filled(plan: Plan, more: int) -> Plan:
    return Plan([*plan.compressions, *[NO_COMPRESSION] * more], [*plan.writes, *[NO_WRITE] * more])


BATCHES: tuple[tuple[Geometry, tuple[Request, ...]], ...] = (
    (C4, (request(1, 515, 5),)),
    (C4, (request(1, 0, 3), request(2, 250, 9), request(3, 7, 10))),
    (C4, tuple(request(n, 61 + n, 5) for n in range(6))),
    (C4, (request(2, 100, 170), request(0, 1021, 6))),
    (PLAIN4, (request(1, 0, 270), request(2, 509, 1), request(3, 5, 16))),
    (REQUEST4, (request(1, 250, 40), request(2, 500, 10))),
    (C128, (request(1, 0, 150), request(2, 381, 130))),
    (C128, tuple(request(n, 125 + n, 6) for n in range(4))),
    (PLAIN128, (request(1, 100, 60), request(2, 255, 1), request(3, 120, 16))),
)


# --- raw rows, steps, and what they add up to ---


def raw_row(stream: int, position: int, draft: int = 0) -> Row:
    """The raw row of a token, in steps of 1/256; a rejected ``draft`` at the same position has another one."""
    number = position * 7919 + stream * 104_729 + draft * 1_299_709
    return number % 513 / 256 - 1, number // 513 % 257 / 256


def softmax_mean(rows: Sequence[Row]) -> float:
    total = sum(exp(score) for _, score in rows)
    return sum(value * exp(score) / total for value, score in rows)


@dataclass(frozen=True)
class Stage:
    """One batch: ``parts`` are (request, tokens, committed). Of a "hit", (request, whose pages, tokens found)."""

    kind: str  # "extend" | "verify" | "decode" | "hit"
    parts: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Story:
    name: str
    geometry: Geometry
    stages: tuple[Stage, ...]


def extend(*parts: tuple[int, int]) -> Stage:
    return Stage("extend", tuple((of, tokens, tokens) for of, tokens in parts))


def verify(*parts: tuple[int, int, int]) -> Stage:
    return Stage("verify", parts)


def decode(*requests: int) -> Stage:
    return Stage("decode", tuple((of, 1, 1) for of in requests))


def hit(of: int, donor: int, tokens: int) -> Stage:
    return Stage("hit", ((of, donor, tokens),))


@cache
def true_entry(ratio: int, stream: int, donor: int, found: int, length: int) -> float:
    """What the window that ends at ``length`` compresses to, from the whole history; the first ``found`` tokens are
    ``donor``'s.
    """
    positions = range(max(0, length - WINDOW[ratio]), length)
    return softmax_mean([raw_row(donor if p < found else stream, p) for p in positions])


# --- reading a log of writes: what a committed window finds ---


@cache
def due_stale_reads(
    geometry: Geometry, pad: int, prefix: int, drafts: int, accepts: tuple[int, ...]
) -> tuple[StaleRead, ...]:
    """Steps as a log of writes; a reader takes the newest entry of the row before its own step began."""
    window, of = WINDOW[geometry.ratio], Request(0, 0, 1, tuple(range(64)))
    log = [(due_slot(geometry, of, p), p, -1) for p in range(max(0, prefix - geometry.ring), prefix)]
    starts, begin = [], prefix
    for accepted in accepts:
        starts.append(begin)
        begin += accepted
    stale = []
    for step, (start, accepted) in enumerate(zip(starts, accepts, strict=True)):
        newest = {slot: (p, by) for slot, p, by in log}
        for position in range(start, start + accepted):
            if (position + 1) % geometry.ratio == 0:
                wrong = tuple(
                    p
                    for p in range(max(0, position + 1 - window), start)
                    if newest.get(due_slot(geometry, of, p)) != (p, writer(p, prefix, starts))
                )
                stale += [StaleRead(position + 1, wrong)] if wrong else []
        log += [
            (due_slot(geometry, of, p), p, step) for p in sorted(due_positions(geometry, pad, start, start + drafts))
        ]
    return tuple(stale)


def writer(position: int, prefix: int, starts: Sequence[int]) -> int:
    """The step that committed a position: the last one that began at or before it; -1 for what was there at first."""
    return -1 if position < prefix else max(n for n, start in enumerate(starts) if start <= position)


def residues(geometry: Geometry, near: int) -> Iterable[int]:
    """One prefix near ``near`` for each residue of the ratio; for ratio 128 those around a boundary and some between."""
    start = near // geometry.ratio * geometry.ratio
    return (start + r for r in (range(4) if geometry.ratio == 4 else (0, 1, 64, 125, 126, 127)))
