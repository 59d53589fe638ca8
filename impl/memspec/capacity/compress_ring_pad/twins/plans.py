"""Planners and slots, each with one thing wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memspec.capacity.compress_ring_pad.data import (
    NO_COMPRESSION,
    NO_WRITE,
    SENTINEL,
    BatchRefused,
    Compression,
    Geometry,
    Plan,
    Request,
    Write,
)
from memspec.capacity.compress_ring_pad.reference import plan, sizes, slots


def tokens_below_65536(tokens: int, requests: int) -> None:
    if tokens > 65_535:
        raise BatchRefused(f"{tokens} tokens in a batch; at most 65535")
    plan.check_size(tokens, requests)


def from_the_start(geometry: Geometry, end: int, pad: int) -> int:
    return 0


def pad_alone(geometry: Geometry, end: int, pad: int) -> int:
    return end - pad


def own_group_alone(geometry: Geometry, end: int, pad: int) -> int:
    return min(end // geometry.ratio * geometry.ratio, end - pad)


def always_a_window(geometry: Geometry, end: int, pad: int) -> int:
    return min(plan.first_write(geometry, end, pad), end - sizes.window_of(geometry.ratio))


def no_tail(geometry: Geometry, position: int) -> bool:
    return False


def any_tail(geometry: Geometry, position: int) -> bool:
    return position % geometry.page >= geometry.page - geometry.ratio


def without_tails(geometry: Geometry, pad: int, prefix: int, end: int) -> Iterator[int]:
    yield from range(max(prefix, plan.first_write(geometry, end, pad)), end)


def tails_everywhere(geometry: Geometry, pad: int, prefix: int, end: int) -> Iterator[int]:
    first = plan.first_write(geometry, end, pad)
    yield from (p for p in range(prefix, end) if p >= first or any_tail(geometry, p))


def below_the_prefix(geometry: Geometry, pad: int, prefix: int, end: int) -> Iterator[int]:
    yield from range(max(0, min(prefix, plan.first_write(geometry, end, pad))), end)


def no_positions(geometry: Geometry, pad: int, prefix: int, end: int) -> Iterator[int]:
    yield from ()


def longest_extend(geometry: Geometry, requests: Sequence[Request], tokens: int, rows: int | None = None) -> Plan:
    """The host planner with the longest extend of the batch as its pad."""
    made, pad, first = plan.host_plan(geometry, requests, tokens, rows), max((r.extend for r in requests), default=0), 0
    writes = []
    for request in requests:
        for position in plan.written_positions(geometry, pad, request.prefix, request.prefix + request.extend):
            writes.append(Write(first + position - request.prefix, slots.ring_slot(geometry, request, position)))
        first += request.extend
    return Plan(made.compressions, writes) if rows is None else plan.filled(Plan(made.compressions[:], writes), rows)


def one_position_late(geometry: Geometry, request: Request, batch: int, first_token: int, position: int) -> Compression:
    return plan.compression(geometry, request, batch, first_token, position)._replace(length=position)


def pages_without_need(
    geometry: Geometry, request: Request, batch: int, first_token: int, position: int
) -> Compression:
    own, before = (
        slots.ring_slot(geometry, request, max(p, 0)) // geometry.ratio for p in (position, position - geometry.ratio)
    )
    return plan.compression(geometry, request, batch, first_token, position)._replace(
        previous_page=before, own_page=own
    )


def pages_swapped(geometry: Geometry, request: Request, batch: int, first_token: int, position: int) -> Compression:
    made = plan.compression(geometry, request, batch, first_token, position)
    return made if not made.from_ring else made._replace(previous_page=made.own_page, own_page=made.previous_page)


def all_from_the_ring(geometry: Geometry, request: Request, batch: int, first_token: int, position: int) -> Compression:
    own, before = (
        slots.ring_slot(geometry, request, max(p, 0)) // geometry.ratio for p in (position, position - geometry.ratio)
    )
    return Compression(
        position + 1, first_token + position - request.prefix, sizes.window_of(geometry.ratio), before, own
    )


def own_token_from_the_ring(
    geometry: Geometry, request: Request, batch: int, first_token: int, position: int
) -> Compression:
    made = all_from_the_ring(geometry, request, batch, first_token, position)
    index = position - request.prefix
    return made._replace(from_ring=made.from_ring - min(index, made.from_ring))


def raced_tokens(
    geometry: Geometry, requests: Sequence[Request], rows: int, arrival: Sequence[int] | None = None
) -> Plan:
    """The offsets of the requests are read before another thread has stored them: every request's tokens count from 0."""
    made = plan.device_plan(geometry, requests, rows, arrival)
    extend, starts = plan.owners(requests)

    def raced(token: int) -> int:
        return token if token == SENTINEL else plan.owner_of(token, extend, starts)[1]

    return Plan(
        [c._replace(token=raced(c.token)) for c in made.compressions],
        [w._replace(token=raced(w.token)) for w in made.writes],
    )


def whole_bucket(requests: Sequence[Request], rows: int) -> int:
    uniform, _ = plan.owners(requests)
    return rows if uniform else plan.walked(requests, rows)


def owner_of_stale(token: int, extend: int, starts: Sequence[int]) -> tuple[int, int]:
    """A static buffer has a row for every request of the captured graph; the rows past the batch are those of an older
    one.
    """
    batch, index = plan.owner_of(token, extend, starts)
    return (batch % (len(starts) - 1), index) if extend else (batch, index)


def sentinels_first(made: Plan, rows: int) -> Plan:
    full, windows, writes = plan.filled(made, rows), len(made.compressions), len(made.writes)
    return Plan(
        [*full.compressions[windows:], *full.compressions[:windows]], [*full.writes[writes:], *full.writes[:writes]]
    )


def not_filled(made: Plan, rows: int) -> Plan:
    return made


def zeros_for_sentinels(made: Plan, rows: int) -> Plan:
    full = plan.filled(made, rows)
    return Plan([Compression(0, 0, 0, 0, 0) if c == NO_COMPRESSION else c for c in full.compressions],
                [Write(0, 0) if w == NO_WRITE else w for w in full.writes])  # fmt: skip


def one_ring_for_all_pages(geometry: Geometry, request: Request, position: int) -> int:
    return slots.ring_slot(Geometry(geometry.ratio, geometry.ring, geometry.page, True), request, position)


def logical_pages(geometry: Geometry, request: Request, position: int) -> int:
    return position // geometry.page * geometry.page + position % geometry.page


def page_mod_ring(geometry: Geometry, request: Request, position: int) -> int:
    if slots.anchored_by_page(geometry):
        return slots.ring_slot(geometry, request, position)
    return request.pages[position // geometry.page] * geometry.ring + position % geometry.ring
