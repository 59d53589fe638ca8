"""Steps, consumers and audits, each with one thing wrong."""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.compress_ring_pad.data import (
    NO_COMPRESSION,
    SENTINEL,
    Arena,
    Compression,
    Geometry,
    Request,
    Row,
    StaleRead,
    Write,
)
from memspec.capacity.compress_ring_pad.reference import audit, memory, plan, sizes


def write_first(
    geometry: Geometry, arena: Arena, base: int, requests: Sequence[Request], rows: Sequence[Row]
) -> dict[int, float]:
    made = plan.host_plan(geometry, requests, len(rows))
    memory.write_rows(arena, base, made.writes, rows)
    return memory.compress_rows(geometry, arena, base, made.compressions, rows)


def read_first(
    geometry: Geometry, arena: Arena, base: int, requests: Sequence[Request], rows: Sequence[Row]
) -> dict[int, float]:
    made = memory.decode_plan(geometry, requests)
    entries = memory.compress_rows(geometry, arena, base, made.compressions, rows)
    memory.write_rows(arena, base, made.writes, rows)
    return entries


def none_missing(window: int, length: int) -> int:
    return 0


def missing_half_as_zeros(
    geometry: Geometry, arena: Arena, base: int, entry: Compression, rows: Sequence[Row]
) -> list[Row]:
    found = memory.window_rows(geometry, arena, base, entry, rows)
    return [(0.0, 0.0)] * memory.missing_rows(sizes.window_of(geometry.ratio), entry.length) + found


def nothing_compressed(
    geometry: Geometry, arena: Arena, base: int, compressions: Sequence[Compression], rows: Sequence[Row]
) -> dict[int, float]:
    return {}


def place_is_token(arena: Arena, base: int, writes: Sequence[Write], rows: Sequence[Row]) -> None:
    first = min((w.token for w in writes if w.token != SENTINEL), default=0)
    for place, (token, slot) in enumerate(writes):
        if token != SENTINEL:
            arena[base + slot] = rows[min(first + place, len(rows) - 1)]


def entries_by_place(
    geometry: Geometry, arena: Arena, base: int, compressions: Sequence[Compression], rows: Sequence[Row]
) -> dict[int, float]:
    found = memory.compress_rows(geometry, arena, base, compressions, rows)
    return dict(zip(sorted(found), found.values(), strict=True))


def sentinel_slot(arena: Arena, base: int, writes: Sequence[Write], rows: Sequence[Row]) -> None:
    """The sentinel as a signed 32-bit number is -1: the row before the layer, and the last token of the batch."""
    for token, slot in writes:
        arena[base + (-1 if slot == SENTINEL else slot)] = rows[-1 if token == SENTINEL else token]


def sentinel_entry(
    geometry: Geometry, arena: Arena, base: int, compressions: Sequence[Compression], rows: Sequence[Row]
) -> dict[int, float]:
    found = memory.compress_rows(geometry, arena, base, compressions, rows)
    return found | ({-1: 0.0} if NO_COMPRESSION in compressions else {})


def rejected_as_well(geometry: Geometry, prefix: int, after: int, end: int) -> range:
    return audit.committed_ends(geometry, prefix, end, end)


def position_alone(position: int, step: int) -> tuple[int, int]:
    return position, 0


def nothing_stale(
    geometry: Geometry, pad: int, prefix: int, drafts: int, accepts: Sequence[int]
) -> tuple[StaleRead, ...]:
    return ()


def every_drop(geometry: Geometry, pad: int, prefix: int, drafts: int, accepts: Sequence[int]) -> tuple[StaleRead, ...]:
    found = []
    for accepted in accepts:
        kept = set(plan.written_positions(geometry, pad, prefix, prefix + drafts))
        dropped = tuple(p for p in range(prefix, prefix + accepted) if p not in kept)
        found += [StaleRead(prefix + drafts, dropped)] if dropped else []
        prefix += accepted
    return tuple(found)


def drops_alone(
    geometry: Geometry, pad: int, prefix: int, drafts: int, accepts: Sequence[int]
) -> tuple[StaleRead, ...]:
    """Looks for rows that were not written, and overlooks those that were replaced."""
    if pad >= drafts:
        return ()
    return audit.stale_reads(geometry, pad, prefix, drafts, accepts)
