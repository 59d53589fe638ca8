"""What the checks run on: allocations with their views, and a second formulation that walks every element of a
view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from memspec.layout.packed_block_zeroing.data import CacheGroup, Interval, View


@dataclass(frozen=True)
class Slab:
    """An allocation of ``size`` bytes, the views into it, and the blocks to clear. It starts ``shift`` bytes after
    a 16-byte boundary.
    """

    name: str
    size: int
    views: tuple[View, ...]
    blocks: tuple[int, ...]
    shift: int = 0


def runs(view: View, block: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Every element of logical block ``block``, as (column, start, end) in bytes; a column is what one segment has
    to cover.

    Walks all indices; elements that follow each other in the last dimension come as one run.
    """
    ratio, last = view.block_size // view.kernel_block_size, len(view.shape) - 1
    joined = last != view.block_dim and view.strides[last] == 1
    ranges = [range(block * ratio, (block + 1) * ratio) if d == view.block_dim else range(1 if joined and d == last else size)
              for d, size in enumerate(view.shape)]  # fmt: skip
    length = view.element * (view.shape[last] if joined else 1)
    step, only = view.strides[view.block_dim], view.shape[view.block_dim] == 1
    far = [d for d in range(view.block_dim) if view.strides[d] > step or (only and view.strides[d] == step)]
    for index in product(*ranges):
        start = view.address + view.element * sum(i * s for i, s in zip(index, view.strides, strict=True))
        yield (index[view.block_dim], *(index[d] for d in far)), start, start + length


def merged(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same bytes, ascending, no two intervals touching."""
    done: list[Interval] = []
    for start, end in sorted(intervals):
        if done and start <= done[-1][1]:
            start, end = done[-1][0], max(end, done.pop()[1])
        done.append((start, end))
    return tuple(done)


@cache
def due(views: tuple[View, ...], blocks: tuple[int, ...]) -> tuple[Interval, ...]:
    """The bytes of every element of ``blocks``."""
    return merged((start, end) for view in views for b in set(blocks) for _, start, end in runs(view, b))


@cache
def columns(view: View, block: int) -> tuple[Interval, ...]:
    """From the first to the last byte of every kernel block of ``block``, one interval for each column, ascending."""
    found: dict[tuple[int, ...], Interval] = {}
    for column, start, end in runs(view, block):
        low, high = found.get(column, (start, end))
        found[column] = (min(low, start), max(high, end))
    return tuple(sorted(found.values()))


@cache
def allowed(views: tuple[View, ...], blocks: tuple[int, ...]) -> tuple[Interval, ...]:
    """The bytes that clearing ``blocks`` may touch."""
    return merged(interval for view in views for b in set(blocks) for interval in columns(view, b))


def beyond(intervals: Iterable[Interval], limits: Sequence[Interval]) -> tuple[Interval, ...]:
    """What of ``intervals`` lies outside ``limits`` (which are ascending and disjoint)."""
    left = []
    for start, end in intervals:
        for low, high in limits:
            if high <= start or end <= low:
                continue
            if start < low:
                left.append((start, low))
            start = high
        if start < end:
            left.append((start, end))
    return tuple(left)


def packed(blocks: int, row: int, layers: Sequence[tuple[int, tuple[int, ...]]], element: int = 1) -> tuple[View, ...]:
    """Views of one allocation whose rows of ``row`` bytes hold all layers of a block; a layer is (offset in the
    row, shape of its block).
    """
    return tuple(View(f"layer-{n}", offset, (blocks, *shape), (row // element, *contiguous(shape)), element)
                 for n, (offset, shape) in enumerate(layers))  # fmt: skip


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a dense array of ``shape``."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)


def deepseek(blocks: Sequence[int]) -> Slab:
    """DeepSeek-V4's packed cache as upstream's geometry test has it: four layers of (100, 64, 584) bytes, rows of
    149,760 bytes.
    """
    layers = [(37_440 * n, (64, 584)) for n in range(4)]
    return Slab("deepseek-v4", 14_976_000, packed(100, 149_760, layers), tuple(blocks))


def deepseek_row() -> tuple[Interval, ...]:
    """One block of the 181-segment plan as (address, bytes): pages of 37,376 and 1,168 bytes, each at the next
    multiple of 576.
    """
    row, address = [], 0
    for span in [37_376] + [1_168, 37_376] * 90:
        row.append((address, span))
        address += -(-span // 576) * 576
    return tuple(row)


NARROW = View("narrow", 0, (4, 2, 4), (16, 8, 1), 1)
WIDE = View("wide", 0, (4, 16), (16, 1), 1)
SMALL_ROW = packed(5, 48, [(0, (2, 4)), (12, (2, 4)), (24, (2, 4)), (36, (2, 4))])


def layouts() -> Iterator[Slab]:
    """One cache of 5 blocks, K and V, 4 tokens, 2 heads and 8 bytes, in the ways that engines lay it out."""
    shape = (2, 5, 4, 2, 8)
    yield Slab("k and v apart", 640, (View("kv", 0, shape, (320, 64, 16, 8, 1), 1, 1),), (1, 4))
    yield Slab("k and v in the block", 640, (View("kv", 0, (5, 2, 4, 2, 8), (128, 64, 16, 8, 1), 1),), (1, 4), 4)
    yield Slab("heads before tokens", 640, (View("kv", 0, (5, 2, 2, 4, 8), (128, 64, 32, 8, 1), 1),), (0, 4))
    yield Slab(
        "heads outside the block dimension",
        640,
        (View("kv", 0, (2, 5, 4, 2, 8), (64, 128, 16, 8, 1), 1, 1),),
        (0, 4),
        8,
    )
    yield Slab("block, head, token, content", 640, (View("kv", 0, (5, 2, 4, 16), (128, 16, 32, 1), 1),), (2, 4), 12)


MANY = (65_999, 65_536, 65_535, 32_768, 32_767, 257, 256, 255, *range(2, 60))  # of 66,000: ids past 8, 15 and 16 bits


def slabs() -> list[Slab]:
    """Allocations that the clearing clauses run on; each list of blocks holds the last one, most a block with
    neighbours on both sides.
    """
    return [
        deepseek((0, 98, 99)),
        Slab("small packed rows", 240, SMALL_ROW, (2, 4)),
        Slab("words with an offset", 192, (View("segment", 12, (4, 4), (12, 1), 4),), (3,)),
        Slab("two page sizes", 201_728, (View("large", 0, (4, 10_496), (10_496, 1), 4),
                                         View("small", 167_936, (4, 2_112), (2_112, 1), 4)), (1, 2, 3)),
        Slab("one block of two tokens", 16, (View("storage", 0, (4, 1, 2, 2), (4, 4, 2, 1), 1, 0, 2, 2),), (1, 3)),
        Slab("two ratios", 272, (View("halves", 0, (8, 3), (3, 1), 4, 0, 32, 16), View("whole", 192, (4, 5), (5, 1), 4)), (1, 3)),
        *layouts(),
        Slab("kernel blocks in packed rows", 384, (View("quarters", 8, (16, 4, 2), (24, 2, 1), 1, 0, 64, 16),
                                                   View("beside", 16, (16, 8), (24, 1), 1, 0, 64, 16)), (1, 3)),
        Slab("narrow view first", 64, (NARROW, WIDE), (1, 3)),
        Slab("holes in the page", 240, (View("holed", 0, (5, 3, 4), (48, 12, 1), 1),), (2, 4)),
        Slab("one block", 32, (View("only", 8, (1, 16), (24, 1), 1),), (0,)),
        Slab("k and v apart, two kernel blocks", 640, (View("kv", 0, (2, 10, 4, 8), (320, 32, 8, 1), 1, 1, 32, 16),), (1, 4)),
        Slab("two dimensions outside", 244, (View("kv of heads", 4, (2, 3, 5, 8), (120, 40, 8, 1), 1, 2),), (1, 4)),
        Slab("elements of two bytes", 240, (View("bfloat16", 4, (5, 3, 4), (24, 4, 1), 2),), (2, 4), 4),
        Slab("many blocks", 528_000, (View("rows", 4, (66_000, 4), (8, 1), 1),), MANY),
    ]  # fmt: skip


def group(name: str, kind: str = "full-attention", **more: object) -> CacheGroup:
    return CacheGroup(name, kind, (f"{name}.0", f"{name}.1"), **more)  # type: ignore[arg-type]


MIXED = (group("plain"), group("eight", dtype="float8_e4m3"))
