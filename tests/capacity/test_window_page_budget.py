"""The rule, its refusals, the upstream figures, and the pools, case by case."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from memspec.capacity import window_page_budget as rule
from memspec.capacity.window_page_budget import (
    Budget,
    Demand,
    LengthRefused,
    Load,
    NeverFits,
    PagesRefused,
    PoolState,
    Request,
    Worker,
    WorkerRefused,
    reference,
)
from memspec.capacity.window_page_budget.faults import FAULTS
from memspec.capacity.window_page_budget.reference import empty_pools, release, report, resize, take
from memspec.capacity.window_page_budget.reference.budget import window_growth
from memspec.capacity.window_page_budget.reference.pools import evict

UPSTREAM = Worker(page_size=128, window=2047, reserve=0)


def queue_of(tokens: int, number: int) -> list[Request]:
    return [Request(f"r{i}", tokens) for i in range(number)]


def twin(name: str) -> Any:
    return next(fault for fault in FAULTS if fault.name == name).subject()


def test_the_rule_imports_without_torch_and_re_exports_the_reference() -> None:
    assert rule.resume is reference.resume
    assert set(rule.__all__) <= set(vars(rule))
    assert isinstance(sys.modules["memspec.capacity.window_page_budget.reference"], ModuleType)


def test_upstream_test_three_of_four_come_back_and_three_pages_are_left() -> None:
    plan = reference.resume(UPSTREAM, queue_of(574, 4), Budget(2304, 2304), 4)
    assert (plan.resumed, plan.left, plan.budget.full // 128) == (("r0", "r1", "r2"), ("r3",), 3)


def test_the_old_arithmetic_admits_the_fourth_and_its_allocation_fails() -> None:
    events = [*({"do": "retract", "name": f"r{i}", "prompt": 574} for i in range(4)), {"do": "resume"}]
    old = twin("token-arithmetic")
    assert old.resume(UPSTREAM, queue_of(574, 4), Budget(2304, 2304), 4).resumed == ("r0", "r1", "r2", "r3")
    with pytest.raises(
        PagesRefused, match=r"r3 was admitted and needs \(5, 5\) pages; \(3, 25\) are free \(full lacks\)"
    ):
        old.replay(UPSTREAM, 18, 40, events)
    assert reference.replay(UPSTREAM, 18, 40, events)[-1]["free"] == [3, 25]


def overcommitted(page_size: int, tokens: int, pages: int) -> float:
    """Pages that the requests admitted by the old arithmetic need, over pages that there are."""
    worker = Worker(page_size, reserve=0, window_pool=False)
    queue = queue_of(tokens, pages * page_size // tokens + 1)
    old = twin("token-arithmetic").resume(worker, queue, Budget(pages * page_size, 0), len(queue)).resumed
    return len(old) * rule.charge(worker, tokens).full / pages


@pytest.mark.parametrize(("page_size", "pages"), [(16, 100), (64, 200), (128, 200)])
def test_above_a_page_the_old_arithmetic_overcommits_up_to_nearly_twice(page_size: int, pages: int) -> None:
    ratios = {tokens: overcommitted(page_size, tokens, pages) for tokens in range(page_size, 3 * page_size + 1)}
    assert max(ratios, key=lambda tokens: ratios[tokens]) == page_size + 1
    assert 2 * page_size / (page_size + 1) - 0.05 < ratios[page_size + 1] < 2
    assert ratios[page_size] == ratios[2 * page_size] == 1


def test_below_a_page_the_old_arithmetic_overcommits_without_that_bound() -> None:
    assert overcommitted(128, 1, 2) == 128


def test_hundred_free_tokens_do_not_hold_a_request_of_hundred() -> None:
    worker = Worker(64, reserve=0, window_pool=False)
    assert reference.resume(worker, [Request("r", 100)], Budget(100, 0), 1).resumed == ()
    assert reference.resume(worker, [Request("r", 100)], Budget(128, 0), 1).resumed == ("r",)


@pytest.mark.parametrize(
    ("tokens", "window", "page", "start", "pages"),
    [
        (1000, 128, 64, 832, 3),
        (100, 128, 64, 0, 2),
        (128, 128, 64, 0, 2),
        (129, 128, 64, 0, 3),
        (192, 128, 64, 64, 2),
        (0, 128, 64, 0, 0),
    ],
)
def test_the_tail_begins_with_the_page_of_the_oldest_token_in_the_window(
    tokens: int, window: int, page: int, start: int, pages: int
) -> None:
    assert reference.window_start(tokens, window, page) == start
    assert rule.charge(Worker(page, window), tokens).window == pages


@pytest.mark.parametrize(
    ("outputs", "rebootstrap", "tokens"), [(0, False, 7), (1, False, 7), (2, False, 8), (0, True, 7), (2, True, 9)]
)
def test_fill(outputs: int, rebootstrap: bool, tokens: int) -> None:
    assert rule.fill(Request("r", 7, outputs, rebootstrap)) == tokens


@pytest.mark.parametrize(
    ("worker", "mode"),
    [
        (Worker(64, 128), True),
        (Worker(1, 128), False),
        (Worker(64, 128, window_pool=False), False),
        (Worker(64, 128, tail_allocation=False), False),
        (Worker(64), True),
    ],
)
def test_tail_mode(worker: Worker, mode: bool) -> None:
    assert reference.tail_mode(worker) is mode


def test_refusals_name_the_value_and_the_limit() -> None:
    for worker, request, kind, words in (
        (Worker(0), Request("r", 1), WorkerRefused, "page_size is 0 tokens; it must be at least 1"),
        (Worker(4, reserve=-1), Request("r", 1), WorkerRefused, "reserve is -1 tokens; it must be at least 0"),
        (Worker(4), Request("r", -1), LengthRefused, "r has a prompt of -1 tokens; it must be at least 0"),
        (Worker(4), Request("r", 1, -2), LengthRefused, "r has -2 outputs; it must be at least 0"),
    ):
        with pytest.raises(kind, match=words):
            rule.demand(worker, request)
    with pytest.raises(WorkerRefused, match="page_size is -3"):
        rule.resume_budget(Worker(-3), PoolState(1, 1), Load())
    with pytest.raises(WorkerRefused, match="page_size is -3"):
        rule.admission_budget(Worker(-3), PoolState(1, 1), Load(), [])


def test_a_request_that_can_never_fit_is_the_clients_error() -> None:
    with pytest.raises(NeverFits, match="r needs 1664 tokens of the full pool; it has 1280") as refusal:
        rule.check_fits(Worker(128, 2047), Request("r", 1100), 1280, 9999)
    assert refusal.value.status == 400
    with pytest.raises(NeverFits, match="r needs 192 tokens of the window pool; it has 128"):
        rule.check_fits(Worker(64, 128), Request("r", 1000), 9999, 128)
    rule.check_fits(Worker(64, 128, window_pool=False), Request("r", 1000), 9999, 0)


def test_a_budget_can_be_negative_and_then_nobody_comes_back() -> None:
    budget = rule.resume_budget(Worker(64, 128), PoolState(64, 64), Load(running=9))
    assert budget.full == 64 - 9 * 512
    assert rule.resume(Worker(64, 128, reserve=0), [Request("r", 0)], budget, 1).stopped == "full"


@pytest.mark.parametrize(("used", "due"), [(0, 100), (156, 100), (200, 56), (256, 0), (300, 0)])
def test_window_growth_ends_with_full_windows(used: int, due: int) -> None:
    assert window_growth(Worker(64, 128, reserve=50), 2, used) == due


def test_without_a_window_the_whole_reserve_is_kept() -> None:
    assert window_growth(Worker(64, None, reserve=50), 3, 10_000) == 150


def test_retracted_requests_are_set_aside_for_new_ones_only() -> None:
    state, waiting = PoolState(6400, 6400), queue_of(129, 3)
    worker = Worker(128, 2047, reserve=10)
    assert rule.resume_budget(worker, state, Load()) == (6400, 6400)
    assert rule.admission_budget(worker, state, Load(), waiting) == (6400 - 3 * 266, 6400 - 3 * 256)
    assert rule.admission_budget(worker, state, Load(), (), Demand(700, 70)) == (5700, 6330)


def test_decode_evicts_pages_that_the_window_has_passed_and_retracts_the_youngest() -> None:
    worker = Worker(4, 4, reserve=0)
    events: list[dict[str, Any]] = [{"do": "admit", "name": n, "prompt": 4} for n in ("old", "young")] + [
        {"do": "decode"}
    ] * 9
    seen = rule.replay(worker, 4, 5, events)
    both = [[0, 1], [0, 1], [0, 1], [0, 3]]
    assert [o["free"] for o in seen] == [[3, 4], [2, 3], *both, [1, 3], [1, 3], [1, 3], [1, 4], [0, 3]]
    assert seen[6]["retracted"] == ["young"]
    assert seen[-1]["running"] == ["old"]
    assert sum(len(o.get("retracted", [])) for o in seen) == 1


def test_a_running_request_that_is_retracted_keeps_its_outputs() -> None:
    worker = Worker(4, 8, reserve=0)
    events = [
        {"do": "admit", "name": "r", "prompt": 4},
        {"do": "decode"},
        {"do": "retract", "name": "r"},
        {"do": "resume"},
    ]
    assert [o["free"][0] for o in rule.replay(worker, 9, 9, events)] == [8, 7, 9, 7]


def test_finish_without_anybody_changes_nothing() -> None:
    assert rule.replay(Worker(4), 2, 2, [{"do": "finish"}])[0]["finished"] == ""
    with pytest.raises(PagesRefused, match="x holds no pages; the owners are none"):
        rule.replay(Worker(4), 2, 2, [{"do": "finish", "name": "x"}])


@pytest.mark.parametrize(("radix_cache", "cached"), [(True, [2, 1]), (False, [0, 0])])
def test_pages_stay_cached_only_where_there_is_a_radix_cache(radix_cache: bool, cached: list[int]) -> None:
    worker = Worker(4, 4, reserve=0, radix_cache=radix_cache)
    seen = rule.replay(worker, 9, 9, [{"do": "admit", "name": "r", "prompt": 8}, {"do": "finish", "cache": True}])
    assert seen[-1]["cached"] == cached


def test_decode_evicts_full_pages_before_it_retracts() -> None:
    worker = Worker(4, 4, reserve=0, radix_cache=True, decode_radix=True)
    events = [
        {"do": "admit", "name": "old", "prompt": 8},
        {"do": "finish", "cache": True},
        {"do": "admit", "name": "r", "prompt": 4},
        {"do": "decode"},
    ]
    last = rule.replay(worker, 3, 9, events)[-1]
    assert (last["running"], last["cached"][0], last["free"][0]) == (["r"], 1, 0)


def test_pools_report_free_used_and_cached_tokens() -> None:
    pools, lack = take(empty_pools(6, 5, 16), "a", rule.Charge(3, 2))
    assert (lack, report(pools)) == ("", PoolState(48, 48, 32, 0, 0))
    cached = release(pools, "a", cache=True)
    assert report(cached) == PoolState(48, 48, 0, 48, 32)
    assert report(evict(cached, 5, 4)) == PoolState(80, 64, 0, 16, 16)
    assert report(evict(cached, 99, 99)) == PoolState(96, 80)


def test_growth_takes_new_pages_and_gives_old_window_pages_back() -> None:
    pools, _ = take(empty_pools(8, 3, 16), "a", rule.Charge(3, 2))
    grown, lack = resize(pools, "a", rule.Charge(5, 2))
    assert lack == ""
    assert (len(grown.held[0].full), len(grown.held[0].window), len(grown.window_free)) == (5, 2, 1)
    assert grown.held[0].full[:3] == pools.held[0].full
    same, lack = resize(grown, "a", rule.Charge(9, 2))
    assert (same, lack) == (grown, "full")


def test_the_later_variant_resumes_where_the_first_release_waits() -> None:
    worker = Worker(128, 512, reserve=0, radix_cache=True, decode_radix=True)
    events = [
        {"do": "admit", "name": "old", "prompt": 384},
        {"do": "finish", "cache": True},
        {"do": "retract", "name": "back", "prompt": 384},
        {"do": "resume"},
    ]
    assert rule.replay(worker, 4, 3, events)[-1]["stopped"] == "window"
    assert rule.replay_rereading(worker, 4, 3, events)[-1]["resumed"] == ["back"]
    with pytest.raises(PagesRefused, match="window lacks"):
        twin("counted-not-evicted").replay_rereading(worker, 4, 3, events)


def test_a_full_budget_that_is_read_anew_is_the_one_that_was_subtracted() -> None:
    worker, queue = Worker(16, 64, reserve=5), tuple(queue_of(33, 4))
    pools = empty_pools(40, 40, 16)
    once = reference.resume_and_allocate(worker, pools, queue, 0, 9, None)[1]
    anew = reference.resume_rereading(worker, pools, queue, 0, 9, None)[1]
    assert (once.resumed, once.budget.full) == (anew.resumed, anew.budget.full)
    assert anew.budget.window < once.budget.window


def test_filters_reach_both_ways_to_resume() -> None:
    worker, queue = Worker(16, 64, reserve=0), tuple(queue_of(33, 4))
    pools = empty_pools(40, 40, 16)
    for resume_with in (reference.resume_and_allocate, reference.resume_rereading):
        plan = resume_with(worker, pools, queue, 0, 1, ("r1", "r2"))[1]
        assert (plan.resumed, plan.left, plan.stopped) == (("r1",), ("r0", "r2", "r3"), "slots")


@pytest.mark.parametrize(
    ("events", "named"),
    [
        ([{"do": "adopt", "name": "r"}], "'adopt'"),
        ([{"do": "retract", "name": "r", "prompt": 4}] * 2, "r waits already"),
        ([{"do": "admit", "name": "r", "prompt": 4}] * 2, "r holds pages already"),
        ([{"do": "retract", "name": "r", "prompt": 4}, {"do": "finish", "name": "r"}], "r holds no pages"),
    ],
)
def test_events_without_sense_are_refused_by_name(events: list[dict[str, Any]], named: str) -> None:
    for run in (reference.replay, reference.replay_rereading):
        with pytest.raises(PagesRefused, match=named):
            run(Worker(4, 8, 0), 9, 9, events)


def test_an_unknown_allocation_and_a_charge_without_a_page_are_refused() -> None:
    with pytest.raises(PagesRefused, match="'borrow'"):
        reference.allocations(4, 4, [{"do": "borrow", "owner": "r", "full": 1, "window": 1}])
    with pytest.raises(WorkerRefused, match="0 tokens; it must be at least 1"):
        reference.charge(Worker(0, 8), 4)
    with pytest.raises(LengthRefused, match="-4 stored tokens"):
        reference.charge(Worker(4, 8), -4)


def test_a_decode_radix_cache_makes_the_tail_longer_in_the_later_variant_only() -> None:
    worker = Worker(64, 128, 0, radix_cache=True, decode_radix=True)
    new: list[dict[str, Any]] = [{"do": "admit", "name": "r", "prompt": 192}]
    assert reference.replay(worker, 4, 4, new)[-1]["free"] == [1, 2]
    assert reference.replay_rereading(worker, 4, 4, new)[-1]["free"] == [1, 1]
