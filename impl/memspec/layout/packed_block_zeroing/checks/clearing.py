"""Clearing: every byte of the allocation, and of the memory around it, is compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memspec.conformance import expect, lacks, once, refused
from memspec.layout.packed_block_zeroing.checks import cases
from memspec.layout.packed_block_zeroing.checks.cases import SMALL_ROW, Slab, slabs
from memspec.layout.packed_block_zeroing.checks.facets import CHECKS, Intervals, Zeroer
from memspec.layout.packed_block_zeroing.data import Interval, View

SENTINEL = 0xA5


def unlike(arena: bytes | bytearray) -> Iterator[Interval]:
    """Runs of bytes that are no longer the sentinel. Whole pages of sentinels are skipped."""
    page, plain = 4096, bytes([SENTINEL]) * 4096
    for at in range(0, len(arena), page):
        part = arena[at : at + page]
        if part != plain:
            yield from ((at + m.start(), at + m.end()) for m in re.finditer(rb"[^\xa5]+", part))


def zeros(part: bytes | bytearray) -> Iterator[Interval]:
    """Runs of zero bytes."""
    return iter([(0, len(part))]) if part == bytes(len(part)) else (m.span() for m in re.finditer(rb"\0+", part))


@once
def effect(zeroer: Zeroer, slab: Slab) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """One call, with sentinels in and far around the allocation: what became zero, and what became anything else;
    from its first byte.
    """
    reach = 2 * max((v.strides[v.block_dim] * v.element for v in slab.views), default=0)
    base = reach // 16 * 16 + 64 + slab.shift
    arena = bytearray([SENTINEL]) * (base + slab.size + reach + 64)
    length = len(arena)
    zeroer.clear(arena, base, slab.views, slab.blocks)
    expect(len(arena), length)
    changed = cases.merged(unlike(arena))
    zero = cases.merged((low + start, low + end) for low, high in changed for start, end in zeros(arena[low:high]))
    return tuple((a - base, b - base) for a, b in zero), tuple(
        (a - base, b - base) for a, b in cases.beyond(changed, zero)
    )


@CHECKS.clause(slabs, facet=Zeroer)
def every_due_byte(zeroer: Zeroer, slab: Slab) -> None:
    zero, _ = effect(zeroer, slab)
    expect(cases.beyond(cases.due(slab.views, slab.blocks), zero), ())


@CHECKS.clause(slabs, facet=Zeroer)
def neighbours_untouched(zeroer: Zeroer, slab: Slab) -> None:
    zero, other = effect(zeroer, slab)
    inside = [(max(a, 0), min(b, slab.size)) for a, b in (*zero, *other) if b > 0 and a < slab.size]
    expect(cases.beyond(inside, cases.allowed(slab.views, slab.blocks)), ())


@CHECKS.clause(slabs, facet=Zeroer)
def inside_the_allocation(zeroer: Zeroer, slab: Slab) -> None:
    zero, other = effect(zeroer, slab)
    expect(cases.beyond((*zero, *other), [(0, slab.size)]), ())


QUARTERS = (View("quarters", 0, (16, 8), (8, 1), 1, 0, 64, 16),)  # 4 blocks of 4 kernel blocks
APART = (View("k and v apart", 0, (2, 5, 8), (40, 8, 1), 1, 1),)  # 5 blocks in the second dimension
OUTSIDE = [(SMALL_ROW, 5, -1), (SMALL_ROW, 5, 5), (SMALL_ROW, 5, 6), (QUARTERS, 4, 5), (QUARTERS, 4, 15), (APART, 5, 6)]


@CHECKS.clause(lambda: [(*case, blocks) for case in OUTSIDE for blocks in ((case[2],), (2, case[2]))], facet=Zeroer)
def id_in_range(zeroer: Zeroer, case: tuple[tuple[View, ...], int, int, tuple[int, ...]]) -> None:
    views, count, block, blocks = case
    arena = bytearray([SENTINEL]) * 1024
    refused(lambda: zeroer.clear(arena, 384, views, blocks), block, count)
    expect(tuple(unlike(arena)), ())
    zeroer.clear(arena, 384, views, (count - 1,))
    expect(bool(tuple(unlike(arena))), True)


@CHECKS.clause(lambda: [(1, 1, 3), (3, 1, 3, 1), (2, 2)], facet=Zeroer)
def duplicates_count_once(zeroer: Zeroer, blocks: tuple[int, ...]) -> None:
    expect(effect(zeroer, Slab("rows", 240, SMALL_ROW, blocks)), (cases.due(SMALL_ROW, blocks), ()))


@CHECKS.clause(lambda: [Slab("no ids", 240, SMALL_ROW, ()), Slab("no views", 64, (), (0, 1)),
                        Slab("no elements", 64, (View("none", 0, (4, 0), (16, 1), 1),), (0, 3))], facet=Zeroer)  # fmt: skip
def nothing_to_do(zeroer: Zeroer, slab: Slab) -> None:
    expect(effect(zeroer, slab), ((), ()))


F1 = View("all layers in one row", 0, (2_100, 64), (259_920, 1), 4)  # stride 1,039,680 bytes
F2 = View("slots", 0, (4_000_000, 144), (144, 1), 4)  # stride 576 bytes


@CHECKS.clause(lambda: [(F1, 2065), (F1, 2066), (F2, 3_728_270), (F2, 3_728_271), (View("far", 0, (8, 256), (2**28, 1), 4), 3),
                        (View("farther", 2**33, (8, 256), (2**28, 1), 4), 7),
                        (View("values far behind keys", 0, (2, 8, 256), (2**31, 256, 1), 4, 1), 3),
                        (View("far kernel blocks", 0, (8, 256), (2**30, 1), 4, 0, 32, 16), 3)], facet=Intervals)  # fmt: skip
def wide_offsets(subject: Intervals, case: tuple[View, int]) -> None:
    view, block = case
    expect(declared(subject, (view,), (block,)), cases.due((view,), (block,)))


def declared(subject: Intervals, views: tuple[View, ...], blocks: tuple[int, ...]) -> tuple[Interval, ...]:
    """The bytes that the subject says a call clears, however it cuts them into intervals."""
    return cases.merged((start, end) for start, end in subject.cleared_intervals(views, blocks))


@CHECKS.clause(slabs, facet=Intervals)
def declared_intervals(subject: Intervals, slab: Slab) -> None:
    """All that is due, nothing outside the spans, and, of a subject that clears, exactly what it clears."""
    said = declared(subject, slab.views, slab.blocks)
    expect(cases.beyond(cases.due(slab.views, slab.blocks), said), ())
    expect(cases.beyond(said, cases.allowed(slab.views, slab.blocks)), ())
    if not lacks(subject, Zeroer):
        zero, other = effect(subject, slab)
        expect(said, cases.merged((*zero, *other)))
