"""Draft pool budget: two formulations held together on random configurations, and the published figures."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memspec.capacity.draft_pool_budget import (
    BudgetRefused,
    Draft,
    Geometry,
    Heads,
    Latent,
    Memory,
    NoRoom,
    NotEnoughMemory,
    Parallel,
    Pools,
    Serving,
    Window,
    available,
    cell,
    draft_pool,
    explain,
    gain,
    overshoot,
    own_cell,
    plan,
    reference,
)
from memspec.capacity.draft_pool_budget.checks import CHECKS, cases, model
from memspec.capacity.draft_pool_budget.faults import FAULTS
from memspec.conformance import ClauseId, judge

GIB = 1 << 30


def geometry(chance: random.Random) -> Geometry:
    beside = (chance.choice([0, 0, 3, 17]), chance.choice([0, 0, 5]))
    if chance.random() < 0.4:
        return Latent(chance.randint(1, 6), chance.randint(1, 20), chance.choice([1, 2]), *beside)
    return Heads(
        chance.randint(1, 6),
        chance.randint(1, 16),
        chance.randint(1, 9),
        chance.randint(1, 9),
        chance.choice([1, 2]),
        *beside,
    )


def serving(chance: random.Random) -> Serving:
    """Any kind of target, draft and parallelism, small enough that pages can be bought one by one."""
    group = chance.choice([1, 1, 2, 4, 8])
    layers, exact = chance.randint(1, 6), chance.random() < 0.6
    draft = Draft(chance.choice(["DFLASH", "DSPARK", "EAGLE", "STANDALONE", "NGRAM"]), geometry(chance) if exact else None, layers,
                  window_layers=chance.choice([0, 0, 1]))  # fmt: skip
    window = None
    if chance.random() < 0.5:
        cap = chance.choice([None, chance.randint(1, 200)])
        window = Window(geometry(chance), chance.choice(["0.8", "0.5", "1/3", "1.5"]), request_cap=cap)
    target = geometry(chance)
    if window and chance.random() < 0.3:
        target = replace(target, layers=0)
    parallel = Parallel(group * chance.choice([1, 2, 4]), group, chance.choice([None, None, 2]))
    return Serving(target, parallel, chance.choice([1, 2, 16, 64]), chance.choice([draft, draft, draft, None]), window)


def test_closed_form_and_page_by_page_agree_on_many_configurations() -> None:
    chance, sizes = random.Random(33912), 0
    for _ in range(2_000):
        what = serving(chance)
        price = model.due_cell(what)
        assert cell(what) == price, what
        dearest = what.page_size * sum(price)
        budget = chance.randint(0, 40 * dearest)
        due = (
            0
            if (model.fixed_window(what) or 0) * (price.target_window + price.layers_window) > budget
            else model.filled(what, budget)
        )
        try:
            found = plan(what, budget)
        except BudgetRefused:
            assert due == 0, (what, budget)
            continue
        sizes += 1
        assert (found.tokens, found.window_tokens) == (due, model.due_window(what, due)), (what, budget)
        assert found.target_bytes + found.draft_bytes == model.rows_cost(what, due, found.window_tokens) <= budget
    assert sizes > 1_000


def test_rows_bought_one_by_one_exhaust_the_budget_as_planned() -> None:
    """Every id gets its draft row by itself: an allocator with a purse, not a formula."""
    chance = random.Random(8)
    for _ in range(200):
        group, page = chance.choice([1, 2, 4, 8]), chance.choice([1, 3, 8])
        target, own, budget = chance.randint(1, 50), chance.randint(1, 50), chance.randint(2_000, 20_000)
        purse, tokens, rows = budget, 0, 0
        while True:
            spent = sum(target for _ in range(page)) + sum(own for _ in range(page * group))
            if spent > purse:
                break
            purse, tokens, rows = purse - spent, tokens + page, rows + page * group
        what = Serving(Latent(1, target, 1), Parallel(group, group), page, Draft("DFLASH", cell=own))
        if not tokens:
            with pytest.raises(BudgetRefused):
                plan(what, budget)
            continue
        found = plan(what, budget)
        assert (found.tokens, found.headroom, found.draft and found.draft.pools.full) == (tokens, purse, rows)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.sampled_from([1, 2, 4, 8, 16]), st.integers(10**7, 10**12))
@settings(max_examples=200, deadline=None)
def test_overshoot_is_what_charging_once_takes_beyond_the_budget(
    target: int, own: int, group: int, budget: int
) -> None:
    need, charged = overshoot(target, own, group)
    tokens = budget // charged
    assert Fraction(1) <= Fraction(need, charged) < group or group == 1
    assert (tokens * need > budget) == (Fraction(tokens * need, budget) > 1)
    assert tokens * need <= Fraction(need, charged) * budget


@given(st.sampled_from([1, 2, 4, 8]), st.integers(0, 500_000))
@settings(max_examples=60, deadline=None)
def test_a_cap_never_raises_and_a_longer_one_never_lowers(group: int, cap: int) -> None:
    what = Serving(cases.DEEPSEEK_V3, Parallel(8, group), 64, Draft("DFLASH", cases.BLOCK, 5))
    free = plan(what, 40 * GIB).tokens
    if cap < 64:
        with pytest.raises(BudgetRefused, match="64"):
            plan(replace(what, max_total_tokens=cap), 40 * GIB)
        return
    capped, longer = (plan(replace(what, max_total_tokens=n), 40 * GIB).tokens for n in (cap, cap + 64))
    assert capped <= longer <= free
    assert capped == min(free, cap // 64 * 64)


@given(st.integers(1, 200), st.integers(0, 200), st.integers(0, 30), st.integers(0, 30), st.integers(1, 999))
@settings(max_examples=200, deadline=None)
def test_the_fraction_that_is_named_is_enough_and_the_one_below_is_not(
    before: int, after: int, multimodal: int, activation: int, thousandths: int
) -> None:
    memory = Memory(
        before * GIB, min(before, after) * GIB, f"0.{thousandths:03}", multimodal * GIB, 0, activation * GIB
    )
    try:
        assert available(memory) > 0
    except NoRoom as refusal:
        named = str(refusal).rpartition("fraction to ")[2].partition(" or more")[0]
        if "no fraction" in str(refusal):
            assert memory.after - memory.activation - memory.multimodal <= 0
            return
        assert available(replace(memory, fraction=named)) > 0
        below = Fraction(named) - Fraction(1, 1000)
        if below > 0:
            with pytest.raises(NoRoom):
                available(replace(memory, fraction=str(below)))


def test_published_figures() -> None:
    public = Serving(Latent(1, 32_768, 1), Parallel(8, 8), draft=Draft("DFLASH", layers=5, cell=10_240))
    assert (sum(cell(replace(public, parallel=Parallel(8, 1)))), sum(cell(public))) == (43_008, 114_688)
    found = plan(public, 10**10)
    assert (found.tokens, found.headroom) == (87_193, 10**10 - 87_193 * 114_688)
    assert overshoot(32_768, 10_240, 8) == (114_688, 43_008)
    assert 10**10 // 43_008 == 232_514
    assert gain(public, 10**10) == (697_544, 232_514)


def test_every_released_or_reported_overcommit_is_one_by_bytes() -> None:
    """DeepSeek-V3 with a draft of eight layers: between 1.3 and 1.5 times the budget."""
    deepseek = Serving(cases.DEEPSEEK_V3, Parallel(8, 8, tensor=8), 64, Draft("DFLASH", Heads(8, 8, 128, 128), 8))
    ways = {fault.name: fault.subject() for fault in FAULTS}
    spent = {
        name: model.rows_cost(deepseek, ways[name].plan(deepseek, 40 * GIB).tokens, 0) / (40 * GIB)
        for name in ("own-cell-once", "two-owners")
    }
    assert 1.3 < spent["own-cell-once"] < spent["two-owners"] < 1.5


def test_latent_draft_and_unknown_draft() -> None:
    assert own_cell(Serving(cases.DEEPSEEK_V3, draft=Draft("DFLASH", Latent(2, 576)))) == 2_304
    assert own_cell(Serving(cases.DEEPSEEK_V3)) is None
    assert own_cell(Serving(cases.DEEPSEEK_V3, draft=Draft("DFLASH", layers=3))) is None


def test_words_follow_the_numbers() -> None:
    text = explain(Serving(cases.DEEPSEEK_V3, Parallel(8, 2), 16, Draft("EAGLE", layers=1), max_total_tokens=999), GIB)
    assert any("priced by the target's layers, times 2 ids" in line for line in text)
    assert any("992 tokens" in line for line in text)
    assert explain(Serving(cases.DEEPSEEK_V3), GIB)[1] == "draft: none is charged"


def test_a_pool_without_a_group_is_the_targets() -> None:
    assert draft_pool(Pools(640, 128), 64, 1) == ((640, 128, 0, 0, 0), 64, 704)
    with pytest.raises(BudgetRefused, match="groups of 0"):
        draft_pool(Pools(640), 64, 0)


def test_an_engine_that_only_prices_is_checked_for_prices() -> None:
    class Pricer:
        def cell(self, serving: Serving) -> tuple[int, int, int, int, int]:
            return tuple(reference.cell(serving))  # type: ignore[return-value]

    verdicts = judge(CHECKS, Pricer())
    assert verdicts[ClauseId("draft-pool-budget.draft-times-group")].outcome == "pass"
    assert verdicts[ClauseId("draft-pool-budget.fits-the-budget")].outcome == "not-run"


def test_a_window_pool_by_requests_holds_more_than_a_window_and_a_page_or_is_refused() -> None:
    capped = Serving(Latent(61, 576), page_size=64, window=Window(Latent(61, 288), tokens=960, request_cap=1000))
    with pytest.raises(NotEnoughMemory, match="1024 tokens admits no request: a window of 960 and a page of 64"):
        plan(capped, 10**10)
    roomier = replace(capped, window=Window(Latent(61, 288), tokens=960, request_cap=1025))
    assert plan(roomier, 10**10).window_tokens == 1088


def test_a_fraction_by_0_is_a_refusal() -> None:
    with pytest.raises(BudgetRefused, match="'1/0' divides by 0"):
        available(Memory(100, 90, "1/0"))
    with pytest.raises(BudgetRefused, match="'1/0' divides by 0"):
        cell(Serving(Latent(61, 576), window=Window(Latent(61, 288), "1/0")))
