"""The wrong halves of the broken twins: each function stands in for the one of the reference that it gets wrong."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from memspec.layout.packed_block_zeroing.data import CacheGroup, Interval, Segment, View, ViewRefused
from memspec.layout.packed_block_zeroing.reference import keeping, launch, plan, released, scope
from memspec.layout.packed_block_zeroing.reference.keeping import Action, Duty


def changed_segments(change: Callable[[Segment], Segment]) -> Callable[[View], tuple[Segment, ...]]:
    return lambda view: tuple(change(segment) for segment in plan.segments_of(view))


def first_wins(views: Sequence[View]) -> tuple[Segment, ...]:
    kept: dict[int, Segment] = {}
    for view in views:
        for segment in plan.segments_of(view):
            kept.setdefault(segment.address, segment)
    plan.block_count(views)
    return tuple(kept[address] for address in sorted(kept))


def one_page_size(views: Sequence[View]) -> tuple[Segment, ...]:
    found = plan.segments(views)
    if len({segment.span for segment in found}) > 1:
        raise ViewRefused(f"page sizes {sorted({segment.span for segment in found})} are not uniform")
    return found


def kernel_strides(view: View) -> tuple[Segment, ...]:
    return tuple(s._replace(block_stride=plan.kernel_block_stride(view)) for s in plan.segments_of(view))


def spanning_outer(view: View) -> tuple[Segment, ...]:
    parts = plan.segments_of(view)
    if not plan.outer_dimensions(view):
        return parts
    first, last = min(parts), max(parts)
    return (first._replace(span=last.address - first.address + first.span),)


def everything_outer(view: View) -> tuple[int, ...]:
    return tuple(range(view.block_dim))


def dense_span(view: View) -> int:
    span = view.element
    for dimension in {*range(len(view.shape))} - {view.block_dim, *plan.outer_dimensions(view)}:
        span *= view.shape[dimension]
    return span


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def narrow_intervals(views: Sequence[View], block_ids: Sequence[int]) -> tuple[Interval, ...]:
    parts, blocks = plan.segments(views), plan.check_blocks(block_ids, plan.block_count(views))
    starts = ((p.address + wrapped(b * p.block_stride), p.span) for b in blocks for p in parts)
    return plan.joined((start, start + span) for start, span in starts)


def count_without_repeats(arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
    plan.clear(arena, base, views, list(block_ids)[: len(set(block_ids))])


def whole_rows(arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
    parts = plan.segments(views)
    if parts and plan.check_blocks(block_ids, plan.block_count(views)):
        end = max(p.address + (plan.block_count(views) - 1) * p.block_stride + p.span for p in parts)
        arena[base : base + end] = bytes(end)


def first_half(arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
    for start, end in plan.cleared_intervals(views, block_ids):
        arena[base + start : base + (start + end) // 2] = bytes((start + end) // 2 - start)


def written_as_ones(arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
    for start, end in plan.cleared_intervals(views, block_ids):
        arena[base + start : base + end] = b"\1" * (end - start)


def at_least_block_0(arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
    plan.clear(arena, base, views, block_ids or (0,))


def nothing(arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
    plan.cleared_intervals(views, block_ids)


def no_check(*_: Any) -> None:
    return None


def any_blocks(block_ids: Iterable[int], count: int) -> tuple[int, ...]:
    return tuple(sorted(set(block_ids)))


def clamped(block_ids: Iterable[int], count: int) -> tuple[int, ...]:
    return tuple(sorted({min(max(b, 0), count - 1) for b in block_ids}))


def long_spans(view: View) -> tuple[Segment, ...]:
    plan.check_view(view)
    if 0 in view.shape:
        return ()
    ratio, stride = plan.kernel_blocks_per_block(view), plan.kernel_block_stride(view)
    if plan.page_span(view) <= stride:
        return plan.segments_of(view)
    made = tuple(Segment(view.address + v * stride, stride * ratio, plan.page_span(view)) for v in range(ratio))
    for segment in made:
        plan.check_words(view.name, segment)
    return made


def any_ratio(view: View) -> int:
    return max(1, view.block_size // view.kernel_block_size)


def first_count(views: Iterable[View]) -> int:
    return next((v.shape[v.block_dim] // plan.kernel_blocks_per_block(v) for v in views if 0 not in v.shape), 0)


def any_strides(views: Sequence[View]) -> tuple[Segment, ...]:
    kept: dict[int, Segment] = {}
    for segment in (s for view in views for s in plan.segments_of(view)):
        kept[segment.address] = max(kept.get(segment.address, segment), segment, key=lambda s: s.span)
    plan.block_count(views)
    return tuple(kept[address] for address in sorted(kept))


def with_empty_pages(view: View) -> tuple[Segment, ...]:
    return plan.segments_of(view) or (Segment(view.address, 16, view.element),)


def full_attention(group: CacheGroup) -> bool:
    return group.kind in ("full-attention", "mla")


def full_attention_layers(groups: Sequence[CacheGroup]) -> tuple[str, ...]:
    layers = scope.zeroed_layers(groups)
    return tuple(n for g in groups if full_attention(g) for n in g.layers if n in layers)


def full_attention_groups(groups: Sequence[CacheGroup]) -> tuple[str, ...]:
    names = scope.recorded_groups(groups)
    return tuple(g.name for g in groups if full_attention(g) and g.name in names)


def all_layers(groups: Sequence[CacheGroup]) -> tuple[str, ...]:
    return tuple(n for g in groups for n in g.layers) if scope.needs_zeroing(groups) else ()


def all_groups(groups: Sequence[CacheGroup]) -> tuple[str, ...]:
    return tuple(g.name for g in groups) if scope.needs_zeroing(groups) else ()


def ring_recorded(groups: Sequence[CacheGroup]) -> tuple[str, ...]:
    return scope.recorded_groups([replace(group, ring=False) for group in groups])


def every_storage(groups: Sequence[CacheGroup]) -> tuple[str, ...]:
    return scope.zeroed_layers([replace(group, storage="tensor", kernel_block_size=16) for group in groups])


def state_caches_alone(groups: Sequence[CacheGroup]) -> bool:
    return any(not scope.is_attention(group) for group in groups)


def counting_the_host(groups: Sequence[CacheGroup]) -> bool:
    return scope.needs_zeroing([replace(group, host_resident=False) for group in groups])


def always(groups: Sequence[CacheGroup]) -> bool:
    return True


def divisor_grid(spans: Sequence[int], block_count: int, multiprocessors: int) -> tuple[int, int, int]:
    return released.common_divisor_grid(spans, block_count).grid


def divisor_work(
    spans: Sequence[int], block_count: int, multiprocessors: int, program: tuple[int, int, int]
) -> tuple[launch.Work, ...]:
    geometry = released.common_divisor_grid(spans, block_count)
    chunk, chunks = geometry.chunk * released.WORD, geometry.grid[0] // (block_count * len(spans))
    position, rest = divmod(program[0], chunks * len(spans))
    segment, piece = divmod(rest, chunks)
    return ((position, segment, piece * chunk, chunk),) if piece * chunk < spans[segment] else ()


def rectangle(spans: Sequence[int], block_count: int, multiprocessors: int) -> tuple[int, int, int]:
    return released.rectangular_grid(spans, block_count).grid


def rectangle_work(
    spans: Sequence[int], block_count: int, multiprocessors: int, program: tuple[int, int, int]
) -> tuple[launch.Work, ...]:
    chunk = released.rectangular_grid(spans, block_count).chunk * released.WORD
    position, segment, start = program[0], program[1], program[2] * chunk
    return ((position, segment, start, min(chunk, spans[segment] - start)),) if start < spans[segment] else ()


def whole_chunks(spans: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (s, n * launch.CHUNK, launch.CHUNK) for s, span in enumerate(spans) for n in range(max(span // launch.CHUNK, 1))
    )


def pieces_on_y(spans: Sequence[int], block_count: int, multiprocessors: int) -> tuple[int, int, int]:
    return (1, block_count * len(launch.work_list(spans)), 1)


def one_piece_on_y(
    spans: Sequence[int], block_count: int, multiprocessors: int, program: tuple[int, int, int]
) -> tuple[launch.Work, ...]:
    pieces = launch.work_list(spans)
    return ((program[1] // len(pieces), *pieces[program[1] % len(pieces)]),)


def everything_wide(address: int, length: int) -> tuple[int, int]:
    return (address, address + length)


def all_words(address: int, length: int) -> tuple[int, int]:
    return (address, address)


def shared_buffer() -> Callable[[Iterable[int]], array[int]]:
    buffer: array[int] = array("q")

    def refill(block_ids: Iterable[int]) -> array[int]:
        buffer[:] = array("q", block_ids)
        return buffer

    return refill


def warm_up_always(block_count: int) -> tuple[int, ...]:
    return (0,)


def record_kept(state: Duty, load: str, blocks: tuple[int, ...]) -> Duty:
    return replace(state, loads=(*state.loads, (load, blocks)))


def load_recorded(state: Duty, load: str, blocks: tuple[int, ...]) -> Duty:
    return keeping.recorded(record_kept(state, load, blocks), blocks)


def forgotten(state: Duty, load: str, unwritten: tuple[int, ...]) -> Duty | keeping.Rejected:
    after = keeping.end_load(state, load, unwritten)
    return after if isinstance(after, keeping.Rejected) else replace(after, pending=state.pending)


def anybodys_blocks(state: Duty, load: str, unwritten: tuple[int, ...]) -> Duty:
    return keeping.recorded(replace(state, loads=tuple(entry for entry in state.loads if entry[0] != load)), unwritten)


def first_runner_only(state: Duty, runner: str) -> tuple[Duty, tuple[Action, ...]]:
    after, actions = keeping.deliver(state, runner)
    return after, actions if runner == "first" else tuple(a for a in actions if a[0] != "zero")


def not_drained(state: Duty, runner: str) -> tuple[Duty, tuple[Action, ...]]:
    return replace(state, copies=()), keeping.deliver(state, runner)[1]


def copies_first(state: Duty, runner: str) -> tuple[Duty, tuple[Action, ...]]:
    after, actions = keeping.deliver(state, runner)
    return after, tuple(sorted(actions, key=lambda action: ("copy", "zero", "forward").index(action[0])))


def forward_first(state: Duty, runner: str) -> tuple[Duty, tuple[Action, ...]]:
    after, actions = keeping.deliver(state, runner)
    return after, (*actions[-1:], *actions[:-1])
