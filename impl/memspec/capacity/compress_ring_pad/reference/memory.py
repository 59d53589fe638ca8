"""The ring at work: what a step compresses, what it leaves behind, and in which order.

An extend (a prefill chunk or a verify step) reads the ring as it was before the step and writes afterwards; rows of
its own come from the batch. A single-token decode step writes its row first and reads the whole window from the ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from memspec.capacity.compress_ring_pad.data import (
    SENTINEL,
    Arena,
    BatchRefused,
    CommitRefused,
    Compression,
    Geometry,
    Plan,
    Request,
    Row,
    Write,
)
from memspec.capacity.compress_ring_pad.reference.plan import check_batch, compression, host_plan
from memspec.capacity.compress_ring_pad.reference.sizes import overlaps, window_of
from memspec.capacity.compress_ring_pad.reference.slots import ring_slot


def window_rows(geometry: Geometry, arena: Arena, base: int, entry: Compression, rows: Sequence[Row]) -> list[Row]:
    """The rows of one window, oldest first: from the ring, then from the batch. Before the first token of a request
    there is nothing.
    """
    window, ratio = window_of(geometry.ratio), geometry.ratio
    kept: list[Row] = []
    if entry.from_ring:
        groups = (entry.previous_page, entry.own_page) if overlaps(ratio) else (entry.own_page,)
        for group in groups:
            kept += arena[base + group * ratio : base + (group + 1) * ratio]
    found = kept[: entry.from_ring] + list(rows[entry.token + 1 - window + entry.from_ring : entry.token + 1])
    return found[missing_rows(window, entry.length) :]


def missing_rows(window: int, length: int) -> int:
    """Rows of a window that lie before the first token: a whole half in the first window of ratio 4."""
    return max(0, window - length)


def weighted(window: Sequence[Row]) -> float:
    """One compressed entry: the values, weighted with the softmax of their scores."""
    top = max(score for _, score in window)
    weights = [exp(score - top) for _, score in window]
    return sum(w * value for w, (value, _) in zip(weights, window, strict=True)) / sum(weights)


def compress_rows(geometry: Geometry, arena: Arena, base: int, compressions: Sequence[Compression],
                  rows: Sequence[Row]) -> dict[int, float]:  # fmt: skip
    """The compressed entry of every window of a plan, by its batch token. The layer's first row is ``arena[base]``;
    sentinels are skipped.
    """
    entries = {}
    for entry in compressions:
        if entry.token != SENTINEL:
            entries[entry.token] = weighted(window_rows(geometry, arena, base, entry, rows))
    return entries


def write_rows(arena: Arena, base: int, writes: Sequence[Write], rows: Sequence[Row]) -> None:
    """Put the batch's rows where the plan says, in place; sentinels are skipped."""
    for token, slot in writes:
        if token != SENTINEL:
            arena[base + slot] = rows[token]


def decode_plan(geometry: Geometry, requests: Sequence[Request]) -> Plan:
    """Every request's one token is written; a window that it completes is read from the ring, that token included."""
    writes = [Write(token, ring_slot(geometry, r, r.prefix)) for token, r in enumerate(requests)]
    ending = [(token, r) for token, r in enumerate(requests) if (r.prefix + 1) % geometry.ratio == 0]
    entries = [compression(geometry, r, token, token, r.prefix) for token, r in ending]
    return Plan([entry._replace(from_ring=window_of(geometry.ratio)) for entry in entries], writes)


def check_decode(geometry: Geometry, requests: Sequence[Request], tokens: int) -> None:
    """Raise BatchRefused for a batch that cannot be planned, or in which a request has more than its one token."""
    check_batch(geometry, requests, tokens)
    for request in requests:
        if request.extend != 1:
            raise BatchRefused(f"an extend of {request.extend} tokens in a decode step; exactly 1")


def extend_step(
    geometry: Geometry, arena: Arena, base: int, requests: Sequence[Request], rows: Sequence[Row]
) -> dict[int, float]:
    """A prefill chunk or a verify step: compress, then write."""
    plan = host_plan(geometry, requests, len(rows))
    entries = compress_rows(geometry, arena, base, plan.compressions, rows)
    write_rows(arena, base, plan.writes, rows)
    return entries


def decode_step(
    geometry: Geometry, arena: Arena, base: int, requests: Sequence[Request], rows: Sequence[Row]
) -> dict[int, float]:
    """One token for each request: write, then compress."""
    check_decode(geometry, requests, len(rows))
    plan = decode_plan(geometry, requests)
    write_rows(arena, base, plan.writes, rows)
    return compress_rows(geometry, arena, base, plan.compressions, rows)


def step(
    geometry: Geometry, arena: Arena, base: int, kind: str, requests: Sequence[Request], rows: Sequence[Row]
) -> dict[int, float]:
    """One step over the ring in ``arena``, in place. ``kind`` is "extend" or "decode", ``rows`` the batch's raw rows.

    Returns the compressed entries by batch token, those of drafts included: which of them are committed is decided
    after sampling. Raises what the planners raise, and BatchRefused for another kind.
    """
    if kind == "decode":
        return decode_step(geometry, arena, base, requests, rows)
    if kind == "extend":
        return extend_step(geometry, arena, base, requests, rows)
    raise BatchRefused(f"no step {kind!r}; extend and decode are known")


def commit(prefix: int, drafts: int, accepted: int) -> int:
    """The prefix after a verify step of ``drafts`` tokens. Raises CommitRefused unless at least one of them is
    committed.
    """
    if not 1 <= accepted <= drafts:
        raise CommitRefused(f"{accepted} of {drafts} tokens committed; at least 1 and at most {drafts}")
    return prefix + accepted
