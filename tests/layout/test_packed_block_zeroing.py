"""Packed block zeroing: properties that hold two formulations together, and what the checks themselves have to tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memspec.conformance import ClauseId, Violation, decide, judge
from memspec.layout.packed_block_zeroing import View, ZeroingRefused, cleared_intervals, page_span, reference, segments
from memspec.layout.packed_block_zeroing.checks import CHECKS, cases, clearing, keeping
from memspec.layout.packed_block_zeroing.faults import FAULTS

SENTINEL = 0xA5


@st.composite
def caches(draw: st.DrawFn) -> tuple[int, tuple[View, ...], tuple[int, ...]]:
    """(bytes, views, blocks): packed rows of one to four layers, padded or not, in kernel blocks, K and V apart or not."""
    element = draw(st.sampled_from([1, 2, 4]))
    ratio, blocks = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    layers = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=4))
    halves = draw(st.integers(1, 2))
    views, offset = [], draw(st.sampled_from([0, 4, 12]))
    for tokens, width, gap in layers:
        padded = 4 * (width + gap)  # elements from one token to the next
        views.append((offset, (tokens, 4 * width), (padded, 1)))
        offset += padded * tokens * element + 4 * draw(st.integers(0, 3))
    row = offset // 4 * 4 + 4 * draw(st.integers(0, 2))
    row += -row % max(4, element)
    made = []
    for n, (at, shape, strides) in enumerate(views):
        outer = draw(st.booleans()) and halves == 2
        sizes, steps = (ratio * blocks, *shape), (row // element, *strides)
        if outer:
            sizes, steps = (2, *sizes), (ratio * blocks * row // element, *steps)
        made.append(View(f"layer-{n}", at, sizes, steps, element, int(outer), 16 * ratio, 16))
    ids = draw(st.lists(st.integers(0, blocks - 1), max_size=5))
    return halves * ratio * blocks * row, tuple(made), tuple(ids)


def bytes_of(views: Sequence[View], blocks: Sequence[int]) -> set[int]:
    """Every byte of every element of the blocks, one at a time."""
    found = set()
    for view in views:
        ratio = view.block_size // view.kernel_block_size
        for index in product(*map(range, view.shape)):
            if index[view.block_dim] // ratio in blocks:
                start = view.address + view.element * sum(i * s for i, s in zip(index, view.strides, strict=True))
                found |= set(range(start, start + view.element))
    return found


@given(caches())
@settings(max_examples=80, deadline=None)
def test_intervals_hold_every_byte_and_none_of_another_block(
    cache: tuple[int, tuple[View, ...], tuple[int, ...]],
) -> None:
    size, views, blocks = cache
    cleared = {byte for start, end in cleared_intervals(views, blocks) for byte in range(start, end)}
    others = [b for b in range(reference.block_count(views)) if b not in blocks]
    assert bytes_of(views, blocks) <= cleared
    assert not cleared & bytes_of(views, others)
    assert all(0 <= byte < size for byte in cleared)


@given(caches())
@settings(max_examples=50, deadline=None)
def test_the_checks_second_formulation_is_the_byte_by_byte_one(
    cache: tuple[int, tuple[View, ...], tuple[int, ...]],
) -> None:
    _, views, blocks = cache
    assert {byte for start, end in cases.due(views, blocks) for byte in range(start, end)} == bytes_of(views, blocks)
    assert cleared_intervals(views, blocks) == cases.allowed(views, blocks)


@given(caches(), st.integers(0, 3))
@settings(max_examples=50, deadline=None)
def test_tensors_clear_what_the_reference_clears(
    cache: tuple[int, tuple[View, ...], tuple[int, ...]], shift: int
) -> None:
    pytest.importorskip("torch")
    from memspec.layout.packed_block_zeroing import tensors

    size, views, blocks = cache
    base = 64 + 4 * shift
    ours, theirs = (bytearray([SENTINEL]) * (size + base + 64) for _ in range(2))
    reference.clear(ours, base, views, blocks)
    tensors.subject("cpu").clear(theirs, base, views, blocks)
    assert ours == theirs


@given(st.permutations(range(4)), caches())
@settings(max_examples=50, deadline=None)
def test_the_order_of_views_does_not_matter(
    order: list[int], cache: tuple[int, tuple[View, ...], tuple[int, ...]]
) -> None:
    _, views, _ = cache
    assert segments([views[n % len(views)] for n in order]) == segments([views[n % len(views)] for n in sorted(order)])


@given(
    st.lists(st.integers(1, 20_000), min_size=1, max_size=4).map(lambda words: tuple(4 * w for w in words)),
    st.integers(1, 4),
    st.integers(1, 4),
)
@settings(max_examples=50, deadline=None)
def test_programs_tile_every_span(spans: tuple[int, ...], blocks: int, multiprocessors: int) -> None:
    seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
    grid = reference.launch_grid(spans, blocks, multiprocessors)
    for program in product(*map(range, grid)):
        for position, segment, start, length in reference.program_work(spans, blocks, multiprocessors, program):
            seen.setdefault((position, segment), []).append((start, length))
    assert set(seen) == set(product(range(blocks), range(len(spans))))
    for (_, segment), found in seen.items():
        assert sum(length for _, length in found) == spans[segment]
        assert sorted(start for start, _ in found) == list(range(0, spans[segment], reference.launch.CHUNK))


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20))
def test_a_wide_body_is_the_longest_aligned_one(address: int, length: int) -> None:
    start, end = reference.wide_body(address, length)
    assert start % 16 == end % 16 == 0 or start == end
    assert address <= start <= end <= address + length
    if start < end:
        assert start - address < 16
        assert address + length - end < 16
    else:
        assert length < 31


def test_no_launch_without_work() -> None:
    assert reference.launch_grid((), 5, 132) == reference.launch_grid((64,), 0, 132) == (0, 0, 0)


def test_the_deepseek_plan_goes_all_but_entirely_by_wide_stores() -> None:
    row = [reference.segments_of(View("p", at, (100, span), (5_000_000, 1), 1))[0] for at, span in cases.deepseek_row()]
    wide, total = reference.wide_bytes(row, range(100))
    assert (len(row), total) == (181, 100 * (91 * 37_376 + 90 * 1_168))
    assert 100 * wide >= 99 * total


@st.composite
def scripts(draw: st.DrawFn) -> tuple[keeping.Event, ...]:
    """What a scheduler can do with eight blocks: hand out, free, copy, load, end a load, step."""
    idle, used, live, loads = set(range(8)), set[int](), set[int](), dict[str, tuple[int, ...]]()
    events: list[keeping.Event] = []
    for number in range(draw(st.integers(1, 14))):
        busy = {block for blocks in loads.values() for block in blocks}
        match draw(st.sampled_from(["allocate", "free", "copy", "load", "ended", "step"])):
            case "allocate" if idle:
                block = draw(st.sampled_from(sorted(idle)))
                events.append(keeping.allocate(block))
                idle.discard(block)
                used.add(block)
            case "free" if used - busy:
                block = draw(st.sampled_from(sorted(used - busy)))
                events.append(keeping.free(block))
                used.discard(block)
                live.discard(block)
                idle.add(block)
            case "copy" if idle and live:
                source, target = draw(st.sampled_from(sorted(live))), draw(st.sampled_from(sorted(idle)))
                events += [keeping.allocate(target), keeping.copy(source, target), keeping.step()]
                idle.discard(target)
                used.add(target)
                live = set(used) - busy
            case "load" if idle:
                blocks = tuple(draw(st.lists(st.sampled_from(sorted(idle)), min_size=1, max_size=3, unique=True)))
                loads[f"load-{number}"] = blocks
                events.append(keeping.load(f"load-{number}", *blocks))
                idle -= set(blocks)
                used |= set(blocks)
            case "ended" if loads:
                name = draw(st.sampled_from(sorted(loads)))
                blocks = loads.pop(name)
                events.append(keeping.ended(name, *draw(st.lists(st.sampled_from(blocks), unique=True))))
            case "step":
                events.append(keeping.step(draw(st.sampled_from(["first", "second"]))))
                live = set(used) - busy
    return (*events, keeping.step())


@given(scripts())
@settings(max_examples=150, deadline=None)
def test_no_script_reads_stale_bytes_or_wipes_live_ones(script: tuple[keeping.Event, ...]) -> None:
    keeping.play(reference, script)  # type: ignore[arg-type]


class FiveLines:
    """What a newcomer writes first: it clears, and refuses nothing."""

    def clear(self, arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
        for view in views:
            for block in block_ids:
                for _, start, end in cases.runs(view, block):
                    arena[base + start : base + end] = bytes(end - start)


def test_a_subject_that_only_clears_is_judged_for_clearing() -> None:
    outcomes = {name.partition(".")[2]: verdict.outcome for name, verdict in judge(CHECKS, FiveLines()).items()}
    judged = {name: outcome for name, outcome in outcomes.items() if outcome != "not-run"}
    assert judged.pop("id-in-range") == "fail"
    assert set(judged.values()) == {"pass"}
    assert len(judged) == 5


def test_a_write_around_the_allocation_is_seen_wherever_it_lands() -> None:
    class Scribbler(FiveLines):
        def __init__(self, at: int) -> None:
            self.at = at

        def clear(self, arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
            super().clear(arena, base, views, block_ids)
            arena[self.at] = 7

    clause = CHECKS.clauses[ClauseId("packed-block-zeroing.inside-the-allocation")]
    for at in (0, -1):
        assert decide(clause, Scribbler(at)).outcome == "fail"
    with pytest.raises(Violation, match="due 560"):
        clearing.effect(_Longer(), cases.Slab("rows", 240, cases.SMALL_ROW, (4,)))


class _Longer(FiveLines):
    def clear(self, arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
        arena += b"\0"


@pytest.mark.parametrize("view", [View("v", 0, (4, 24), (16, 1), 1), View("v", 0, (4, 16), (0, 1), 1)])
def test_a_refusal_is_one_of_ours_and_names_the_view(view: View) -> None:
    with pytest.raises(ZeroingRefused, match=r"^v: "):
        segments([view])


def test_a_hole_belongs_to_the_span() -> None:
    assert page_span(View("holed", 0, (5, 3, 4), (48, 12, 1), 1)) == 28


def test_the_released_grids_are_those_of_their_time() -> None:
    spans = [37_376] * 91 + [1_168] * 90
    for geometry in (reference.common_divisor_grid(spans, 6_870), reference.rectangular_grid(spans, 6_870)):
        assert geometry.programs == prod(geometry.grid)
        assert 0 < geometry.useful < geometry.programs


def test_each_reported_defect_wipes_what_the_thread_says() -> None:
    old = next(fault for fault in FAULTS if fault.name == "span-is-stride").subject()
    slab = cases.deepseek((98,))
    wiped = cases.beyond(old.cleared_intervals(slab.views[1:2], (98,)), cleared_intervals(slab.views[1:2], (98,)))
    lost = [
        (layer, block)
        for layer, view in enumerate(slab.views)
        for block in range(97, 100)
        if cases.beyond(cases.due((view,), (block,)), wiped) != cases.due((view,), (block,))
    ]
    assert lost == [(0, 99), (2, 98), (3, 98)]


def test_ids_that_can_be_read_once_are_not_lost_to_the_check() -> None:
    view = View("layer", 0, (4, 16), (16, 1), 1)
    assert cleared_intervals((view,), iter((1, 3))) == ((16, 32), (48, 64))  # type: ignore[arg-type]
    with pytest.raises(ZeroingRefused, match="block 4 "):
        cleared_intervals((view,), iter((1, 4)))  # type: ignore[arg-type]


def test_a_load_that_is_named_twice_restores_the_blocks_of_both() -> None:
    events = [keeping.load("a", 5), keeping.load("a", 6), keeping.ended("a", 5, 6)]
    assert reference.duty(events)[-1]["pending"] == (5, 6)
