"""Which bytes: segments from shapes and strides, and the intervals that a list of block ids clears.

A packed allocation keeps all layers of one block together, so the distance between two blocks of a layer is the
whole row and says nothing about how much of the row is the layer's own. Address, distance and length are therefore
three numbers. Source: vllm-project/vllm PR #50276, as it stands in 0.33.0; where this is stricter, the page says
so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from memspec.layout.packed_block_zeroing.data import BlockRefused, Interval, Segment, View, ViewRefused

WORD = 4  # bytes; address, stride and span are multiples of it


def check_view(view: View) -> None:
    """Raise ViewRefused unless the description of ``view`` holds together."""
    if len(view.shape) != len(view.strides):
        raise ViewRefused(f"{view.name}: {len(view.shape)} sizes but {len(view.strides)} strides")
    if not 0 <= view.block_dim < len(view.shape):
        raise ViewRefused(f"{view.name}: block dimension {view.block_dim} is none of the {len(view.shape)} dimensions")
    if min(view.element, view.block_size, view.kernel_block_size) < 1:
        raise ViewRefused(
            f"{view.name}: element of {view.element} bytes, blocks of {view.block_size} tokens in kernel blocks of "
            f"{view.kernel_block_size}; each is at least 1"
        )
    if min(view.address, *view.shape, *view.strides) < 0:
        raise ViewRefused(
            f"{view.name}: address {view.address}, shape {view.shape}, strides {view.strides}; none is below 0"
        )


def kernel_blocks_per_block(view: View) -> int:
    """How many kernel blocks make one logical block. Raises ViewRefused when that is no whole number, for a block
    or for all of them.
    """
    if view.block_size % view.kernel_block_size:
        raise ViewRefused(
            f"{view.name}: a block of {view.block_size} tokens is not made of kernel blocks of {view.kernel_block_size}"
        )
    ratio, kernel_blocks = view.block_size // view.kernel_block_size, view.shape[view.block_dim]
    if kernel_blocks % ratio:
        raise ViewRefused(
            f"{view.name}: {kernel_blocks} kernel blocks are not a multiple of {ratio}, the kernel blocks of one block"
        )
    return ratio


def kernel_block_stride(view: View) -> int:
    """Bytes from one kernel block to the next."""
    return view.strides[view.block_dim] * view.element


def outer_dimensions(view: View) -> tuple[int, ...]:
    """Dimensions before the block dimension that step over whole block columns, such as K and V one after the other.

    In a cache of one kernel block the column is one block long, so a step of just that length counts as well.
    """
    column = kernel_block_stride(view) + (view.shape[view.block_dim] > 1)
    return tuple(d for d in range(view.block_dim) if view.strides[d] * view.element >= column)


def page_span(view: View) -> int:
    """Bytes from the first byte of one kernel block to its last: the bounding interval, holes included."""
    outside = {view.block_dim, *outer_dimensions(view)}
    steps = sum((view.shape[d] - 1) * view.strides[d] for d in range(len(view.shape)) if d not in outside)
    return (1 + steps) * view.element


def segments_of(view: View) -> tuple[Segment, ...]:
    """The segments of one view: one for each outer combination and each kernel block of a logical block.

    Empty when a dimension has size 0. Raises ViewRefused for a description that does not hold together, for block
    sizes that do not divide, for a span longer than the distance between kernel blocks (so also for a distance of
    0), and for anything that is not whole words.
    """
    check_view(view)
    if 0 in view.shape:
        return ()
    ratio, stride, span = kernel_blocks_per_block(view), kernel_block_stride(view), page_span(view)
    if span > stride:
        raise ViewRefused(f"{view.name}: a span of {span} bytes is longer than the block stride of {stride} bytes")
    outer = outer_dimensions(view)
    made = []
    for index in product(*(range(view.shape[d]) for d in outer), range(ratio)):
        column = sum(i * view.strides[d] * view.element for i, d in zip(index[:-1], outer, strict=True))
        made.append(Segment(view.address + column + index[-1] * stride, stride * ratio, span))
    for segment in made:
        check_words(view.name, segment)
    return tuple(made)


def check_words(name: str, segment: Segment) -> None:
    """Raise ViewRefused unless address, block stride and span are whole words."""
    for what, value in zip(("address", "block stride", "span"), segment, strict=True):
        if value % WORD:
            raise ViewRefused(f"{name}: {what} {value} is not a multiple of {WORD} bytes")


def block_count(views: Iterable[View]) -> int:
    """Logical blocks of the cache, 0 when no view has any. Raises ViewRefused when two views disagree."""
    count = 0
    for view in views:
        if 0 in view.shape:
            continue
        own = view.shape[view.block_dim] // kernel_blocks_per_block(view)
        if count not in (0, own):
            raise ViewRefused(f"{view.name}: {own} blocks, but the views before it have {count}")
        count = own
    return count


def segments(views: Sequence[View]) -> tuple[Segment, ...]:
    """The segments of a cache, by address. Views laid over each other at one address keep the widest span.

    The result does not depend on the order of the views. Raises ViewRefused where one address has two strides,
    where two views have different numbers of blocks, and for whatever :func:`segments_of` refuses.
    """
    kept: dict[int, Segment] = {}
    for view in views:
        for segment in segments_of(view):
            known = kept.get(segment.address, segment)
            if known.block_stride != segment.block_stride:
                raise ViewRefused(
                    f"{view.name}: block stride {segment.block_stride} at address {segment.address}, where an earlier "
                    f"view has {known.block_stride}"
                )
            kept[segment.address] = segment._replace(span=max(known.span, segment.span))
    block_count(views)
    return tuple(kept[address] for address in sorted(kept))


def check_blocks(block_ids: Iterable[int], count: int) -> tuple[int, ...]:
    """The ids in ascending order, each once. Raises BlockRefused for an id outside ``range(count)``."""
    blocks = tuple(sorted(set(block_ids)))
    for block in blocks:
        if not 0 <= block < count:
            raise BlockRefused(f"block {block} is none of the {count} blocks")
    return blocks


def cleared_intervals(views: Sequence[View], block_ids: Sequence[int]) -> tuple[Interval, ...]:
    """The bytes that clearing ``block_ids`` clears, as disjoint ascending intervals that do not touch. Nothing
    where there are no segments.
    """
    parts = segments(views)
    if not parts:
        return ()
    blocks = check_blocks(block_ids, block_count(views))
    return joined(
        (p.address + b * p.block_stride, p.address + b * p.block_stride + p.span) for b in blocks for p in parts
    )


def joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same bytes as disjoint ascending intervals that do not touch."""
    done: list[Interval] = []
    for start, end in sorted(intervals):
        if done and start <= done[-1][1]:
            done[-1] = (done[-1][0], max(end, done[-1][1]))
        else:
            done.append((start, end))
    return tuple(done)


def clear(arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
    """Clear ``block_ids`` of the allocation that starts at byte ``base`` of ``arena``, in place. Refuses before the
    first write.
    """
    for start, end in cleared_intervals(views, block_ids):
        arena[base + start : base + end] = bytes(end - start)
