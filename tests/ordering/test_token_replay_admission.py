"""Admission: the closed form against a producer and a consumer that move token by token, both in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memspec.ordering.token_replay_handoff.reference import admission
from memspec.ordering.token_replay_handoff.reference.admission import (
    AdmissionError,
    CatchUp,
    PageTail,
    ReplayPlan,
    admit,
    backlog_by_round,
    batched_replay_plan,
    bridge_budget,
    estimate_catch_up,
    kv_tail_bytes,
    log_bytes,
    page_tail,
    place_bridge,
)

times = st.fractions(min_value=0, max_value=40, max_denominator=12)  # ms
steps = st.fractions(min_value=1, max_value=40, max_denominator=12)  # ms a token
ratios = st.fractions(min_value=Fraction(5, 4), max_value=20, max_denominator=12)  # replay rate to decode rate
exactly = settings(deadline=None, max_examples=80)


def simulated(waiting: Fraction, per_token: Fraction, rate: Fraction, rounds: int) -> tuple[Fraction, int] | None:
    """Producer: token k is finished at ``k * per_token``. Consumer: starts at ``waiting``, one token in ``1000 / rate``.

    Returns when the consumer first has all that is finished, counted from ``waiting``, and how many tokens that is.
    """
    consumed = 0
    while consumed <= rounds:
        now = consumed * 1000 / rate
        if consumed == (waiting + now) // per_token:
            return now, consumed
        consumed += 1
    return None


def test_public_vectors() -> None:
    assert estimate_catch_up(100, 20, 50) == CatchUp(False, 5, 5, math.inf)
    quick = estimate_catch_up(100, 20, 500, replay_startup_ms=10)
    assert (quick.feasible, quick.backlog_tokens) == (True, 6)
    assert batched_replay_plan([21, 22, 23, 24]) == ReplayPlan((21, 22, 23), 24)
    with pytest.raises(AdmissionError, match=r"1 tokens.*at least 2"):
        batched_replay_plan([21])


@exactly
@given(times, times, steps, ratios)
def test_the_closed_form_is_never_early_and_less_than_two_tokens_of_gain_late(
    copying: Fraction, startup: Fraction, per_token: Fraction, ratio: Fraction
) -> None:
    rate = ratio * 1000 / per_token
    gain = rate - 1000 / per_token
    predicted = estimate_catch_up(copying, per_token, rate, startup)
    waiting, replaying = copying + startup, 1000 * predicted.backlog_tokens / gain
    caught_up = simulated(waiting, per_token, rate, predicted.bridge_tokens)
    assert predicted.feasible
    assert caught_up is not None
    at, tokens = caught_up
    assert at <= replaying < at + 2000 / gain or at == replaying == 0
    assert tokens <= predicted.bridge_tokens
    assert predicted.catch_up_ms == float(startup + replaying)


@exactly
@given(times, times, steps, ratios)
def test_tokens_that_have_been_started_are_counted_one_by_one(
    copying: Fraction, startup: Fraction, per_token: Fraction, ratio: Fraction
) -> None:
    predicted = estimate_catch_up(copying, per_token, ratio * 1000 / per_token, startup)
    end = copying + startup + predicted.backlog_tokens * per_token / (ratio - 1)
    for started, until in ((predicted.backlog_tokens, copying + startup), (predicted.bridge_tokens, end)):
        assert (started - 1) * per_token < until <= started * per_token or started == until == 0


@exactly
@given(times, steps, st.fractions(min_value=Fraction(1, 10), max_value=1, max_denominator=20))
def test_a_replay_that_is_not_faster_never_catches_up(copying: Fraction, per_token: Fraction, share: Fraction) -> None:
    rate = share * 1000 / per_token
    predicted = estimate_catch_up(copying, per_token, rate)
    assert predicted == CatchUp(False, predicted.backlog_tokens, predicted.backlog_tokens, math.inf)
    if copying >= per_token:
        assert simulated(copying, per_token, rate, 60) is None


def test_equal_rates_are_not_feasible_and_a_little_more_is() -> None:
    assert not estimate_catch_up(0, 20, 50).feasible
    assert estimate_catch_up(100, 20, Fraction(501, 10)).feasible


def test_doubles_count_one_token_more_where_the_quotient_is_whole() -> None:
    in_doubles = math.ceil(1000.0 / 15.0 * 15.0 / 1000.0)
    assert in_doubles == 2
    assert estimate_catch_up(15.0, 15.0, 1e6).backlog_tokens == 1
    assert estimate_catch_up(0.9, 0.3, 1e9).backlog_tokens == 3  # a float is the decimal that it prints
    assert math.ceil(Fraction(0.9) / Fraction(0.3)) == 4  # what its bits say
    assert estimate_catch_up(0.1 * 3, 0.1, 1e9).backlog_tokens == 4  # 0.30000000000000004


@pytest.mark.parametrize(
    ("arguments", "name", "limit"),
    [
        ((-1, 20, 500, 0), "remaining_copy_ms is -1", "at least 0"),
        ((100, 0, 500, 0), "prefill_tpot_ms is 0", "above 0"),
        ((100, -2, 500, 0), "prefill_tpot_ms is -2", "above 0"),
        ((100, 20, 0, 0), "replay_tokens_per_s is 0", "above 0"),
        ((100, 20, 500, -0.5), "replay_startup_ms is -0.5", "at least 0"),
        ((math.inf, 20, 500, 0), "remaining_copy_ms is inf", "finite"),
        ((100, 20, math.nan, 0), "replay_tokens_per_s is nan", "finite"),
    ],
)
def test_meaningless_quantities_are_named(arguments: tuple[float, ...], name: str, limit: str) -> None:
    with pytest.raises(AdmissionError, match=f"{name};.*{limit}"):
        estimate_catch_up(*arguments)


def test_the_queue_delay_counts_as_start_up() -> None:
    with_queue = admit(100, 20, 500, budget_tokens=15, replay_startup_ms=10, queue_delay_ms=40)
    assert with_queue.predicted == estimate_catch_up(100, 20, 500, 50)
    with pytest.raises(AdmissionError, match=r"queue_delay_ms is -1"):
        admit(100, 20, 500, budget_tokens=15, replay_startup_ms=10, queue_delay_ms=-1)
    with pytest.raises(AdmissionError, match=r"replay_startup_ms is -1"):
        admit(100, 20, 500, budget_tokens=15, replay_startup_ms=-1, queue_delay_ms=5)


def test_admission_says_which_condition_failed() -> None:
    needed = estimate_catch_up(100, 20, 500, 10).bridge_tokens
    assert admit(100, 20, 500, budget_tokens=needed, replay_startup_ms=10).admitted
    assert admit(100, 20, 500, budget_tokens=needed - 1, replay_startup_ms=10).reason == "over-budget"
    assert admit(100, 20, 50, budget_tokens=99).reason == "replay-not-faster"
    assert admit(100, 20, 50, budget_tokens=0).reason == "ordinary-length"


@exactly
@given(times, times, times, steps, ratios, st.integers(0, 40))
def test_admitted_means_that_the_simulated_bridge_fits(
    copying: Fraction, startup: Fraction, queue: Fraction, per_token: Fraction, ratio: Fraction, budget: int
) -> None:
    rate = ratio * 1000 / per_token
    verdict = admit(copying, per_token, rate, budget_tokens=budget, replay_startup_ms=startup, queue_delay_ms=queue)
    if verdict.admitted:
        caught_up = simulated(copying + startup + queue, per_token, rate, budget)
        assert caught_up is not None
        assert caught_up[1] <= budget
    elif verdict.reason == "over-budget":
        assert verdict.predicted.bridge_tokens > budget


@exactly
@given(st.integers(0, 30), st.integers(1, 20), st.integers(1, 20))
def test_the_decode_side_always_has_a_token_left(wanted: int, first: int, second: int) -> None:
    least, most = bridge_budget(wanted, max(first, second), min(first, second))
    legal = [n for n in range(1, wanted) if n <= max(first, second)]
    assert most == max(legal, default=0)
    assert least == min(most, min(first, second))


def test_a_configuration_without_room_is_refused() -> None:
    with pytest.raises(AdmissionError, match=r"configured_min is 0 tokens.*at least 1"):
        bridge_budget(10, 5, 0)
    with pytest.raises(AdmissionError, match=r"configured_max is 2 tokens.*at least 3"):
        bridge_budget(10, 2, 3)


@exactly
@given(st.integers(1, 200), st.integers(1, 40))
def test_the_page_tail_is_found_by_laying_out_the_prompt(prompt: int, page_size: int) -> None:
    page_of = [position // page_size for position in range(prompt + 1)]
    assert page_tail(prompt, page_size) == PageTail(page_of[prompt], page_of[:prompt].count(page_of[prompt]))


def test_pages_and_prompts_have_at_least_one_token() -> None:
    with pytest.raises(AdmissionError, match=r"prompt_tokens is 0.*at least 1"):
        page_tail(0, 16)
    with pytest.raises(AdmissionError, match=r"page_size is 0.*at least 1"):
        page_tail(5, 0)


@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize("copy_on_write", [False, True])
@pytest.mark.parametrize("delay", [False, True])
def test_the_choices_are_tried_in_order(free: int, copy_on_write: bool, delay: bool) -> None:
    assert place_bridge(32, 16, free, copy_on_write=copy_on_write, delay=delay) == "aligned"
    due = "copy-on-write" if copy_on_write and free else "delay" if delay else "refuse"
    assert place_bridge(33, 16, free, copy_on_write=copy_on_write, delay=delay) == due


def test_the_log_is_small_beside_the_rows_that_it_replaces() -> None:
    assert log_bytes(15) == 60
    assert kv_tail_bytes(15, layers=36, kv_heads=8, head_dim=128, dtype_bytes=2) == 15 * 147456


@exactly
@given(st.integers(1, 50), steps, ratios, times)
def test_a_start_up_of_one_token_time_never_lets_a_live_producer_be_drained(
    backlog: int, per_token: Fraction, ratio: Fraction, extra: Fraction
) -> None:
    waiting = backlog_by_round(backlog, per_token, ratio * 1000 / per_token, per_token + extra, 12)
    assert len(waiting) == 12
    assert min(waiting) >= 1


@exactly
@given(st.integers(1, 30), steps, ratios, times)
def test_rounds_are_those_of_a_clock_that_ticks(
    backlog: int, per_token: Fraction, ratio: Fraction, startup: Fraction
) -> None:
    rate, now, replayed = ratio * 1000 / per_token, backlog * per_token, 0
    seen = []
    while len(seen) < 6:
        finished = replayed
        while (finished + 1) * per_token <= now:
            finished += 1
        seen.append(finished - replayed)
        if seen[-1] == 0:
            break
        now += startup + seen[-1] * 1000 / rate
        replayed = finished
    assert backlog_by_round(backlog, per_token, rate, startup, 6) == tuple(seen)


def test_a_short_start_up_can_be_drained_without_a_seal() -> None:
    assert backlog_by_round(10, 20, 10_000, 1, 8)[-1] == 0


def test_errors_are_value_errors() -> None:
    assert issubclass(admission.AdmissionError, ValueError)
