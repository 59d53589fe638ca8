"""The rule against second formulations: brute force over tokens, a descending search, closed forms over whole periods."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memspec.capacity.chunked_attention_window import (
    AnswerRefused,
    DeviceHit,
    KindRefused,
    LayerGroup,
    SizeRefused,
    WindowRefused,
    admission_blocks,
    chunks_to_load,
    covers_every_boundary,
    demanded_chunks,
    device_hit,
    external_hit,
    find_prefix,
    find_run,
    mean_need,
    needed_chunks,
    planned_chunks,
    reference,
    reported_window,
    suffix_hit,
    window_in_chunks,
    worst_need,
)
from memspec.capacity.chunked_attention_window.checks import CHECKS
from memspec.capacity.chunked_attention_window.checks.oracle import (
    World,
    chunked,
    full,
    least_hit,
    scan,
    sliding,
    tokens_read,
    unreadable,
)
from memspec.capacity.chunked_attention_window.checks.spaces import walk
from memspec.capacity.chunked_attention_window.faults import FAULTS
from memspec.capacity.chunked_attention_window.reference import lookup
from memspec.conformance import judge, variant

SIZES = st.integers(1, 60)


def twin(name: str) -> object:
    return next(fault for fault in FAULTS if fault.name == name).subject()


def reads(boundary: int, attention_chunk: int, offload_chunk: int) -> int:
    """Offload chunks between the first and the last token that is read, by their indices."""
    back = boundary % attention_chunk
    return (boundary - 1) // offload_chunk - (boundary - back) // offload_chunk + 1 if back else 0


def test_the_condition_and_the_worst_need_over_whole_periods_up_to_48() -> None:
    for attention_chunk in range(1, 49):
        for offload_chunk in range(1, 49):
            period = attention_chunk * offload_chunk // gcd(attention_chunk, offload_chunk)
            needs = [reads(n, attention_chunk, offload_chunk) for n in range(period)]
            window = window_in_chunks(attention_chunk, offload_chunk)
            assert worst_need(attention_chunk, offload_chunk) == max(needs)
            assert covers_every_boundary(attention_chunk, offload_chunk) == (max(needs) <= window)
            own = [need for n, need in enumerate(needs) if n % offload_chunk in (0, offload_chunk - 1)]
            assert max(own, default=0) <= window


@given(st.integers(0, 500), SIZES, SIZES)
def test_the_needed_chunks_hold_exactly_the_tokens_of_the_open_attention_chunk(n: int, c: int, t: int) -> None:
    due = {token // t for token in range(n) if token // c == n // c}
    assert set(needed_chunks(n, c, t)) == due
    assert len(due) == reads(n, c, t)


@pytest.mark.parametrize(
    ("offload_chunk", "mean", "window"),
    [
        (1024, Fraction(7, 2), 8),
        (256, Fraction(31, 2), 32),
        (4096, Fraction(1, 2), 2),
        (3000, Fraction(243, 128), 3),
        (768, Fraction(11, 2), 11),
    ],
)
def test_mean_need_of_an_attention_chunk_of_8192(offload_chunk: int, mean: Fraction, window: int) -> None:
    assert mean_need(8192, offload_chunk) == mean
    assert window_in_chunks(8192, offload_chunk) == window
    if 8192 % offload_chunk == 0:
        assert mean == Fraction(8192 // offload_chunk - 1, 2)


def test_the_published_counterexamples() -> None:
    assert (len(needed_chunks(16_383, 8192, 768)), window_in_chunks(8192, 768)) == (12, 11)
    assert (len(needed_chunks(7, 4, 6)), window_in_chunks(4, 6)) == (2, 1)
    assert not covers_every_boundary(8192, 768)
    assert not covers_every_boundary(4, 6)
    assert covers_every_boundary(8192, 1024)


@given(st.integers(0, 400), SIZES, SIZES)
def test_the_demand_is_the_window_on_the_grid_and_never_below_what_is_read(n: int, c: int, t: int) -> None:
    group, window = chunked(c, t), window_in_chunks(c, t)
    asked = demanded_chunks(n, group)
    assert asked == max(window, reads(n, c, t))
    if n % t in (0, t - 1):
        assert asked == window


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 40), st.integers(0, 4))
def test_a_sliding_window_is_covered_at_every_boundary(n: int, window: int, t: int, extra: int) -> None:
    read = {token // t for token in range(max(0, n - window + 1 - extra), n)}
    assert (demanded_chunks(n, sliding(window, t, extra)) or 0) >= len(read)


@given(st.text("HMPU", max_size=14), st.integers(1, 6))
def test_the_lookup_agrees_with_one_scan_from_the_right(answers: str, window: int) -> None:
    assert find_run(answers, window) == scan(answers, window)


@pytest.mark.parametrize(
    ("answers", "first_window", "end"),
    [
        ("HHH", 3, 3),
        ("MHH", 3, 0),
        ("HMHH", 3, 1),
        ("HHMHH", 3, 2),
        ("HH", 3, 2),
        ("MHHMH", 3, 3),
        ("MHHH", 3, 4),
        ("MHH", 0, 3),
    ],
)
def test_only_the_run_at_the_right_edge_is_asked_for_more(answers: str, first_window: int, end: int) -> None:
    assert find_run(answers, 2, first_window) == end


def random_worlds(count: int, letters: str, same_grid: bool) -> Iterator[World]:
    draw = random.Random(51161)
    for _ in range(count):
        grid, prompt = draw.choice((1, 2, 3, 4, 6)), draw.randint(1, 40)
        groups, answers = [], []
        for _ in range(draw.randint(1, 4)):
            size = grid if same_grid else draw.choice((1, 2, 3, 4, 6))
            groups.append(
                draw.choice((full(size), chunked(draw.randint(1, 14), size), sliding(draw.randint(1, 10), size)))
            )
            odds = [draw.choice((6, 20)), 1, 1, 1][: len(letters)]
            answers.append("".join(draw.choices(letters, odds, k=prompt // size)))
        cap = None if same_grid or draw.random() < 0.5 else draw.randint(0, prompt)
        yield World(prompt, draw.choice((0, 0, draw.randint(0, prompt))), tuple(groups), tuple(answers), cap)


def test_2000_random_prompts_find_what_a_search_over_all_boundaries_finds() -> None:
    found = 0
    for world in random_worlds(2000, "HM", same_grid=True):
        hit = external_hit(*world)
        assert hit == least_hit(world), world
        found += bool(hit)
    assert found > 500


def test_3000_random_prompts_off_the_grid_claim_nothing_that_is_not_stored() -> None:
    found = 0
    for world in random_worlds(3000, "HMPU", same_grid=False):
        hit = external_hit(*world)
        if hit:
            found += 1
            for group, answers in zip(world.groups, world.answers, strict=True):
                assert not unreadable(group, answers, world.local, world.local + hit), world
            assert hit <= world.prompt - world.local
    assert found > 400


def descending(world: World) -> int | None:
    """The furthest boundary at which no group asks for a shorter one; every group's answer is one scan."""
    limit = world.prompt - any(reported_window(group) is not None for group in world.groups)
    size = world.groups[0].offload_chunk
    limit = min(limit, world.prompt // size * size)
    first = world.local // size
    for boundary in (limit, *range((limit - 1) // size * size, 0, -size)):
        if boundary - world.local < size:
            return 0
        end, own = -(-boundary // size), []
        for group, answers in zip(world.groups, world.answers, strict=True):
            part, window = answers[first:end], reported_window(group)
            before_a_miss = part.split("M")[0]
            found = len(before_a_miss) if set(before_a_miss) <= {"H"} else None
            own.append(found if window is None else scan(part, window))
        if all(end_found in (None, end - first) for end_found in own):
            return None if None in own else boundary - world.local
    return 0


def test_2000_random_prompts_with_open_answers_agree_with_a_descending_search() -> None:
    waiting = 0
    for world in random_worlds(2000, "HMPU", same_grid=True):
        hit = external_hit(*world)
        assert hit == descending(world), world
        waiting += hit is None
    assert waiting > 100


def cap_in_full(prompt: int, local: int, groups: Sequence[LayerGroup], cap: int | None = None) -> int:
    """Leaves a token of the prompt, and none of the cap."""
    whole = lookup.furthest_boundary(prompt, local, groups)
    return whole if cap is None else min(whole, local + cap)


def asking_for_what_is_read(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Sequence[str]], cap: int | None = None
) -> int | None:
    """A lookup without false misses: tries every boundary and looks at the tokens that are read there."""
    lookup.check_request(prompt, local, cap)
    lookup.check_groups(prompt, groups, answers)
    size = max(group.offload_chunk for group in groups)
    for boundary in range(cap_in_full(prompt, local, groups, cap), local + size - 1, -1):
        met = {
            own[token // group.offload_chunk]
            for group, own in zip(groups, answers, strict=True)
            for token in tokens_read(group, boundary)
            if token >= local
        }
        if "M" not in met:
            return boundary - local if met <= {"H"} else None
    return 0


def test_a_lookup_without_false_misses_conforms_as_well() -> None:
    verdicts = judge(CHECKS, variant(reference, external_hit=asking_for_what_is_read))
    assert {verdict.outcome for verdict in verdicts.values()} == {"pass"}
    groups, stored = [full(1024), chunked(8192, 1024)], ["H" * 8, "M" + "H" * 7]
    assert (asking_for_what_is_read(8193, 0, groups, stored), external_hit(8193, 0, groups, stored)) == (8192, 0)


def cap_rounded_down(prompt: int, local: int, groups: Sequence[LayerGroup], cap: int | None = None) -> int:
    """Gives no boundary off the grid to a capped prompt."""
    end = prompt - any(reported_window(group) is not None for group in groups)
    if cap is not None and local + cap < end:
        size = groups[0].offload_chunk
        end = (local + cap) // size * size
    return min(end, *(prompt // group.offload_chunk * group.offload_chunk for group in groups))


@pytest.mark.parametrize("alternative", [cap_rounded_down, cap_in_full])
def test_a_lookup_may_end_at_the_cap_or_at_the_grid_before_it(alternative: Callable[..., int]) -> None:
    verdicts = judge(CHECKS, variant(reference, furthest_boundary=alternative))
    assert {verdict.outcome for verdict in verdicts.values()} == {"pass"}


def test_a_bounded_prompt_off_the_grid_is_a_false_hit_with_the_released_demand() -> None:
    groups = (full(768), chunked(8192, 768))
    without_10, with_10 = ("H" * 40, "M" * 11 + "H" * 29), ("H" * 40, "M" * 10 + "H" * 30)
    released = twin("window-off-the-grid")
    assert released.external_hit(30_720, 0, groups, without_10, 16_384) == 16_383  # type: ignore[attr-defined]
    assert needed_chunks(16_383, 8192, 768)[0] == 10
    assert external_hit(30_720, 0, groups, without_10, 16_384) == 0
    assert external_hit(30_720, 0, groups, with_10, 16_384) == 16_383


@given(st.integers(0, 60), st.integers(1, 8), st.integers(1, 6), st.lists(st.booleans(), min_size=61, max_size=61))
def test_the_device_rule_walks_block_by_block(m: int, block: int, times: int, cached: list[bool]) -> None:
    assert tuple(device_hit(m, block * times, block, cached)) == walk(m, block * times, block, cached)


@pytest.mark.parametrize("block", range(1, 13))
@pytest.mark.parametrize("attention_chunk", range(1, 13))
def test_blocks_that_neither_divide_nor_are_divided_leave_a_placeholder_that_is_read(
    attention_chunk: int, block: int
) -> None:
    released = twin("any-block-size")
    misread = False
    for length in range(6 * block):
        tokens, empty = released.device_hit(length, attention_chunk, block, [False] * 8)  # type: ignore[attr-defined]
        misread |= any(chunk < empty for chunk in needed_chunks(tokens, attention_chunk, block))
    fits = attention_chunk % block == 0 or block % attention_chunk == 0
    assert misread != fits
    if not fits:
        with pytest.raises(SizeRefused, match=f"block of {block} .* {attention_chunk}"):
            device_hit(8, attention_chunk, block, [False] * 8)


def test_the_two_rules_disagree_on_an_empty_cache() -> None:
    assert device_hit(16, 8, 4, [False] * 4) == DeviceHit(16, 4)
    assert external_hit(16, 0, [chunked(8, 4)], ["MMMM"]) == 0


def test_a_suffix_counts_attention_chunks_from_token_0() -> None:
    cached = [False, False, False, True, True, True]
    assert suffix_hit(24, 4, 8, 4, cached) == 0
    assert twin("suffix-relative-chunks").suffix_hit(24, 4, 8, 4, [False] * 6) == 16  # type: ignore[attr-defined]
    assert suffix_hit(24, 8, 8, 4, [False] * 4 + [True] * 2) == 12


@given(st.integers(0, 300), st.integers(0, 300), SIZES, SIZES)
def test_what_is_loaded_is_what_is_read_and_not_there(n: int, local: int, c: int, t: int) -> None:
    due = {token // t for token in range(local, n) if token // c == n // c}
    assert set(chunks_to_load(local, n, c, t)) == due
    assert len(due) <= max(window_in_chunks(c, t), reads(n, c, t))


@given(st.integers(1, 400), SIZES, SIZES)
def test_the_plan_covers_what_a_prompt_of_any_length_reads_at_a_boundary_on_the_grid(m: int, c: int, t: int) -> None:
    planned = planned_chunks(m, window_in_chunks(c, t), t)
    assert all(reads(n, c, t) <= planned for n in range(0, m + 1, t))


def test_a_prefix_waits_only_for_what_lies_before_a_miss() -> None:
    assert [find_prefix(answers) for answers in ("HHMP", "HPM", "UMH", "MHH", "")] == [2, None, None, 0, 0]


def test_refusals_are_value_errors_of_their_kind() -> None:
    for wrong, call in (
        (SizeRefused, lambda: window_in_chunks(0, 16)),
        (SizeRefused, lambda: find_run("H", 0)),
        (SizeRefused, lambda: needed_chunks(8, 0, 4)),
        (SizeRefused, lambda: needed_chunks(-8, 8, 4)),
        (SizeRefused, lambda: worst_need(8, 0)),
        (SizeRefused, lambda: covers_every_boundary(0, 4)),
        (SizeRefused, lambda: mean_need(-8, 4)),
        (SizeRefused, lambda: chunks_to_load(-1, 8, 8, 4)),
        (SizeRefused, lambda: planned_chunks(-1, 8, 4)),
        (SizeRefused, lambda: planned_chunks(8, 0, 4)),
        (SizeRefused, lambda: demanded_chunks(-3, sliding(4, 4))),
        (SizeRefused, lambda: device_hit(-1, 8, 4, [])),
        (SizeRefused, lambda: suffix_hit(24, -8, 8, 4, [True] * 6)),
        (SizeRefused, lambda: suffix_hit(0, 0, 8, 4, [])),
        (SizeRefused, lambda: external_hit(8, 0, [chunked(4, 2), full(0)], ["HHHH"] * 2)),
        (SizeRefused, lambda: admission_blocks(8, -1, 16, 4)),
        (SizeRefused, lambda: suffix_hit(8, 4, 8, 0, [True])),
        (KindRefused, lambda: reported_window(LayerGroup("cross-attention", 16))),
        (KindRefused, lambda: external_hit(8, 0, [full(2), LayerGroup("mamba", 2)], ["MMMM"] * 2)),
        (AnswerRefused, lambda: find_run("h", 1)),
    ):
        assert issubclass(wrong, WindowRefused)
        with pytest.raises(wrong):
            call()
        with pytest.raises(ValueError, match=r"\S"):
            call()
