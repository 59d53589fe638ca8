"""Two planners of one rule: which windows a batch compresses, and which of its raw rows it leaves in the ring.

The host planner goes request by request and works with ranges; the device planner asks one question of each token and
appends answers in whatever order its threads arrive. Both write ``p`` if ``p >= min(last_c - overlap, end - pad)`` or
if ``p`` is among the last ``ratio`` positions of an SWA page that has a ring. A planner cannot tell a prefill chunk
from a verify step, and writes too little for more draft tokens than the pad.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from memspec.capacity.compress_ring_pad.data import (
    NO_COMPRESSION,
    NO_WRITE,
    BatchRefused,
    Compression,
    Geometry,
    Plan,
    Request,
    Write,
)
from memspec.capacity.compress_ring_pad.reference.sizes import overlaps, window_of, write_pad
from memspec.capacity.compress_ring_pad.reference.slots import anchored_by_page, check_geometry, ring_slot

MAX_TOKENS = 65_536  # ids 0..65,535 fit 16 bits
MAX_REQUESTS = 65_535  # the pair of ids (65,535, 65,535) is the sentinel
MAX_DEVICE_REQUESTS = 1_024
MAX_UNIFORM_EXTEND = 32  # tokens; longer or mixed extends are searched for


def check_size(tokens: int, requests: int) -> None:
    """Raise BatchRefused unless every pair of token id and request id differs from the sentinel."""
    if tokens > MAX_TOKENS:
        raise BatchRefused(f"{tokens} tokens in a batch; at most {MAX_TOKENS}")
    if requests > MAX_REQUESTS:
        raise BatchRefused(f"{requests} requests in a batch; at most {MAX_REQUESTS}")


def check_rows(tokens: int, rows: int) -> None:
    """Raise BatchRefused for a plan with fewer rows than the batch has tokens."""
    if rows < tokens:
        raise BatchRefused(f"{tokens} tokens do not fit a plan of {rows} rows")


def check_batch(geometry: Geometry, requests: Sequence[Request], tokens: int) -> None:
    """Raise BatchRefused unless the requests make up ``tokens`` tokens and each can be planned."""
    check_geometry(geometry)
    check_size(tokens, len(requests))
    for request in requests:
        end = request.prefix + request.extend
        if not 0 < request.extend <= end:
            raise BatchRefused(
                f"an extend of {request.extend} tokens up to a length of {end}; at least 1 and at most the length"
            )
        held = len(request.pages) * geometry.page
        if anchored_by_page(geometry) and held < end:  # masked by the page list, which has no entry there
            raise BatchRefused(f"{len(request.pages)} SWA pages of {geometry.page} tokens do not hold {end} positions")
    if sum(request.extend for request in requests) != tokens:
        raise BatchRefused(f"extends add up to {sum(r.extend for r in requests)} tokens, the batch has {tokens}")


def check_device_batch(geometry: Geometry, requests: Sequence[Request], rows: int) -> None:
    """Raise BatchRefused for a batch that the device planner cannot plan into ``rows`` rows."""
    tokens = sum(request.extend for request in requests)
    check_batch(geometry, requests, tokens)
    check_rows(tokens, rows)
    if len(requests) > MAX_DEVICE_REQUESTS:
        raise BatchRefused(f"{len(requests)} requests on the device; at most {MAX_DEVICE_REQUESTS}")


def first_write(geometry: Geometry, end: int, pad: int) -> int:
    """From which position on everything up to ``end`` is written. May lie before the first token of the batch."""
    last_boundary = end // geometry.ratio * geometry.ratio
    return min(last_boundary - (geometry.ratio if overlaps(geometry.ratio) else 0), end - pad)


def in_page_tail(geometry: Geometry, position: int) -> bool:
    """Whether a prefix-cache hit at the end of the position's SWA page would need its row."""
    return anchored_by_page(geometry) and position % geometry.page >= geometry.page - geometry.ratio


def host_pad(geometry: Geometry) -> int:
    return write_pad(geometry.ratio, geometry.ring)


def device_pad(geometry: Geometry) -> int:
    return write_pad(geometry.ratio, geometry.ring)


def compression(geometry: Geometry, request: Request, batch: int, first_token: int, position: int) -> Compression:
    """The entry of the window that ends with ``position``; ``first_token`` is the batch index of the request's first
    token.
    """
    window, index = window_of(geometry.ratio), position - request.prefix
    from_ring = window - min(index + 1, window)
    if not from_ring:
        return Compression(position + 1, first_token + index, 0, -1, batch)
    before = ring_slot(geometry, request, max(position - geometry.ratio, 0)) // geometry.ratio
    own = ring_slot(geometry, request, position) // geometry.ratio
    return Compression(position + 1, first_token + index, from_ring, before, own)


def written_positions(geometry: Geometry, pad: int, prefix: int, end: int) -> Iterator[int]:
    """What of ``[prefix, end)`` is written, ascending: page tails, then everything from :func:`first_write` on."""
    first = max(prefix, first_write(geometry, end, pad))
    if anchored_by_page(geometry):
        page = geometry.page
        for page_end in range((prefix // page + 1) * page, first + geometry.ratio, page):
            yield from range(max(prefix, page_end - geometry.ratio), min(first, page_end))
    yield from range(first, end)


def host_plan(geometry: Geometry, requests: Sequence[Request], tokens: int, rows: int | None = None) -> Plan:
    """The plan of a batch of ``tokens`` tokens, request by request; filled up with sentinels to ``rows`` entries where
    that is given.

    Raises GeometryRefused and BatchRefused.
    """
    check_batch(geometry, requests, tokens)
    check_rows(tokens, tokens if rows is None else rows)
    ratio, pad, first_token = geometry.ratio, host_pad(geometry), 0
    compressions: list[Compression] = []
    writes: list[Write] = []
    for batch, request in enumerate(requests):
        end, offset = request.prefix + request.extend, first_token - request.prefix
        for position in range(request.prefix + (-request.prefix - 1) % ratio, end, ratio):
            compressions.append(compression(geometry, request, batch, first_token, position))
        for position in written_positions(geometry, pad, request.prefix, end):
            writes.append(Write(offset + position, ring_slot(geometry, request, position)))
        first_token += request.extend
    return Plan(compressions, writes) if rows is None else filled(Plan(compressions, writes), rows)


def filled(plan: Plan, rows: int) -> Plan:
    """The plan with sentinels after its entries, ``rows`` of each kind."""
    compressions = [*plan.compressions, *[NO_COMPRESSION] * (rows - len(plan.compressions))]
    return Plan(compressions, [*plan.writes, *[NO_WRITE] * (rows - len(plan.writes))])


def walked(requests: Sequence[Request], rows: int) -> int:
    """Tokens that have a thread: those of the batch, however many rows the captured graph has."""
    return sum(request.extend for request in requests)


def owners(requests: Sequence[Request]) -> tuple[int, list[int]]:
    """The common extend of short uniform batches (else 0), and where each request's tokens begin."""
    starts = [0, *accumulate(request.extend for request in requests)]
    uniform = {request.extend for request in requests}
    return (min(uniform) if len(uniform) == 1 and max(uniform) <= MAX_UNIFORM_EXTEND else 0), starts


def owner_of(token: int, extend: int, starts: Sequence[int]) -> tuple[int, int]:
    """Which request a token belongs to, and its index in it."""
    if extend:
        return divmod(token, extend)
    batch = bisect_right(starts, token) - 1
    return batch, token - starts[batch]


def device_plan(
    geometry: Geometry, requests: Sequence[Request], rows: int, arrival: Sequence[int] | None = None
) -> Plan:
    """The plan of the same batch, token by token, in ``rows`` entries of each kind, sentinels last.

    ``arrival`` is the order in which the tokens' threads reach the counter that hands out places, which no device
    promises; ascending by default. Raises GeometryRefused and BatchRefused.
    """
    check_device_batch(geometry, requests, rows)
    pad, (extend, starts) = device_pad(geometry), owners(requests)
    compressions: list[Compression] = []
    writes: list[Write] = []
    for token in range(walked(requests, rows)) if arrival is None else arrival:
        batch, index = owner_of(token, extend, starts)
        request = requests[batch]
        position, end = request.prefix + index, request.prefix + request.extend
        if (position + 1) % geometry.ratio == 0:
            compressions.append(compression(geometry, request, batch, token - index, position))
        if position >= first_write(geometry, end, pad) or in_page_tail(geometry, position):
            writes.append(Write(token, ring_slot(geometry, request, position)))
    return filled(Plan(compressions, writes), rows)
