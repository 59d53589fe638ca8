"""What there is to spend, and how it is divided, decided."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from memspec.capacity.draft_pool_budget.checks import cases, model
from memspec.capacity.draft_pool_budget.checks.cases import GIB, Budgeted, dflash, listed
from memspec.capacity.draft_pool_budget.checks.facets import CHECKS, DraftSizer, Room, Sizer, Teller
from memspec.capacity.draft_pool_budget.data import Heads, Latent, Memory, Parallel, Pools, Serving, Window
from memspec.conformance import Violation, expect, refused

TIGHT = (
    Memory(80 * GIB, 20 * GIB, "0.7"),
    Memory(80 * GIB, 20 * GIB, "0.70", multimodal=GIB, state_pools=3 * GIB),
    Memory(1000, 500, "0.5"),
    Memory(1000, 500, "0.5", multimodal=1),
)
HOPELESS = (Memory(80 * GIB, 2 * GIB, "0.9", activation=3 * GIB), Memory(80 * GIB, GIB, "0.9", state_pools=2 * GIB))


def due_room(memory: Memory, fraction: Fraction) -> int:
    """Bytes that are left, with the slack counted from below: what may be used statically is rounded down."""
    slack = memory.before - int(memory.before * fraction)
    return memory.after - max(slack, memory.activation) - memory.multimodal - memory.state_pools


@CHECKS.clause(cases.memories, Room)
def slack_and_reserves(room: Room, memory: Memory) -> None:
    expect(room.available(memory), due_room(memory, Fraction(memory.fraction)))


@CHECKS.clause(lambda: (*TIGHT, *HOPELESS), Room)
def no_room_refused(room: Room, memory: Memory) -> None:
    refused(lambda: room.available(memory), due_room(memory, Fraction(memory.fraction)), memory.fraction)


@cache
def least_thousandth(memory: Memory) -> int:
    """The first one that leaves a byte, tried one after the other."""
    return next(n for n in range(1, 1001) if due_room(memory, Fraction(n, 1000)) > 0)


@CHECKS.clause(lambda: TIGHT, Room)
def fraction_suffices(room: Room, memory: Memory) -> None:
    refused(lambda: room.available(memory), f"{least_thousandth(memory) / 1000:.3f}")


@listed
def caps() -> Iterator[Budgeted]:
    for serving in (cases.plain()[0], cases.plain()[2], cases.windowed()[0], cases.windowed()[5]):
        for cap in (None, 70_001, 65_536, 10**9):
            yield Budgeted(replace(serving, max_total_tokens=cap), 10**10)


@CHECKS.clause(lambda: (*cases.own(), *caps()), Sizer)
def fits_the_budget(sizer: Sizer, case: Budgeted) -> None:
    plan = sizer.plan(case.serving, case.budget)
    cost = model.rows_cost(case.serving, plan.tokens, plan.window_tokens)
    if cost > case.budget:
        raise Violation(f"{plan.tokens} tokens, whose rows take {cost} bytes", f"at most {case.budget} bytes")


@CHECKS.clause(lambda: (*cases.own(), *cases.small()), Sizer)
def nothing_wasted(sizer: Sizer, case: Budgeted) -> None:
    found = sizer.plan(case.serving, case.budget).tokens
    expect(found, model.searched(case.serving, case.budget))
    if case.budget < 10_000:
        expect(found, model.filled(case.serving, case.budget))


@CHECKS.clause(lambda: (*cases.own(), *cases.small(), *caps()), Sizer)
def pages_after_division(sizer: Sizer, case: Budgeted) -> None:
    plan = sizer.plan(case.serving, case.budget)
    expect((plan.tokens % case.serving.page_size, plan.window_tokens % case.serving.page_size), (0, 0))
    due = model.searched(case.serving, case.budget)
    if plan.tokens > due:
        raise Violation(f"{plan.tokens} tokens", f"at most {due}, rounded down")


@CHECKS.clause(caps, Sizer)
def caps_only_lower(sizer: Sizer, case: Budgeted) -> None:
    expect(sizer.plan(case.serving, case.budget).tokens, model.due_tokens(case.serving, case.budget))


@listed
def stages() -> Iterator[Budgeted]:
    for serving in (cases.plain()[2], cases.windowed()[1], cases.windowed()[5]):
        for others in ((30_000, 40_016), (10**9,), (40_000, 20_001, 10**8)):
            yield Budgeted(replace(serving, other_stages=others), 10**10)
    yield Budgeted(replace(cases.plain()[2], other_stages=(30_000,), max_total_tokens=20_000), 10**10)


@CHECKS.clause(stages, Sizer)
def smallest_stage(sizer: Sizer, case: Budgeted) -> None:
    tokens, plan = model.due_tokens(case.serving, case.budget), sizer.plan(case.serving, case.budget)
    expect((plan.tokens, plan.window_tokens), (tokens, model.due_window(case.serving, tokens)))


@dataclass(frozen=True)
class Scarce:
    serving: Serving
    budget: int
    named: tuple[str, ...] = ()


@listed
def scarce() -> Iterator[Scarce]:
    public, paged, capped = cases.plain()[0], cases.plain()[2], cases.windowed()[4]
    yield Scarce(public, 114_687, ("114687", "1"))
    yield Scarce(paged, 63 * sum(model.due_cell(paged)), ("64",))
    yield Scarce(paged, -1, ("-1",))
    yield Scarce(replace(paged, max_total_tokens=63), 10**10, ("64",))
    yield Scarce(replace(paged, max_total_tokens=0), 10**10, ("64",))
    yield Scarce(replace(paged, other_stages=(0,)), 10**10, ("64",))
    yield Scarce(capped, 20_032 * model.due_cell(capped).target_window, ("64",))
    yield Scarce(capped, 1_000, ("1000", "64"))


@CHECKS.clause(scarce, Sizer)
def not_enough_refused(sizer: Sizer, case: Scarce) -> None:
    refused(lambda: sizer.plan(case.serving, case.budget), *case.named)


@listed
def hybrids() -> Iterator[Budgeted]:
    for serving in cases.windowed()[:4]:
        yield from cases.budgets(serving)
        yield from cases.budgets(replace(serving, max_total_tokens=50_001))


@CHECKS.clause(hybrids, Sizer)
def window_by_ratio(sizer: Sizer, case: Budgeted) -> None:
    tokens, plan = model.due_tokens(case.serving, case.budget), sizer.plan(case.serving, case.budget)
    expect((plan.tokens, plan.window_tokens), (tokens, model.due_window(case.serving, tokens)))


@listed
def narrow_windows() -> Iterator[Scarce]:
    """Pools of exactly 1,024 window tokens: windows of 1,024 less a page are one token too wide."""
    for page, reach, fits in (
        (64, 960, False),
        (64, 959, True),
        (16, 1_008, False),
        (16, 4_096, False),
        (1, 1_022, True),
    ):
        serving = Serving(cases.DEEPSEEK_V3, Parallel(8, 4), page, dflash(None, cell=512),
                          Window(Latent(61, 288), "0.5", reach), max_total_tokens=2_048)  # fmt: skip
        yield Scarce(serving, 10**10, () if fits else ("1024", str(reach), str(page)))
        by_requests = replace(serving, window=Window(Latent(61, 288), tokens=reach, request_cap=1_024))
        yield Scarce(by_requests, 10**10, () if fits else ("1024", str(reach), str(page)))


@CHECKS.clause(narrow_windows, Sizer)
def window_pool_admits(sizer: Sizer, case: Scarce) -> None:
    if case.named:
        refused(lambda: sizer.plan(case.serving, case.budget), *case.named)
    else:
        expect(sizer.plan(case.serving, case.budget).window_tokens, 1_024)


@listed
def request_capped() -> Iterator[Budgeted]:
    for serving in cases.windowed()[4:]:
        yield from cases.budgets(serving)
        yield from cases.budgets(replace(serving, draft=None))
    yield from (Budgeted(replace(cases.windowed()[5], max_total_tokens=cap), 10**10) for cap in (3_200, 4_095))


@CHECKS.clause(request_capped, Sizer)
def request_cap_first(sizer: Sizer, case: Budgeted) -> None:
    tokens, plan = model.due_tokens(case.serving, case.budget), sizer.plan(case.serving, case.budget)
    expect((plan.tokens, plan.window_tokens), (tokens, model.due_window(case.serving, tokens)))


@dataclass(frozen=True)
class Beside:
    """The target's pools, its page, and the group."""

    pools: Pools
    page_size: int
    group: int


BESIDE = (
    Beside(Pools(87_193), 1, 8), Beside(Pools(4_096, 1_024), 64, 4), Beside(Pools(640), 64, 1),
    Beside(Pools(256, 128, 64, 2, 99), 32, 2), Beside(Pools(48), 16, 2),
)  # fmt: skip


@CHECKS.clause(lambda: BESIDE, DraftSizer)
def draft_rows(sizer: DraftSizer, case: Beside) -> None:
    pool = sizer.draft_pool(case.pools, case.page_size, case.group)
    due = tuple(sum(rows for _ in range(case.group)) for rows in case.pools[:2])
    expect((pool.pools.full, pool.pools.window, pool.page_size), (*due, case.page_size * case.group))


@cache
def last_id(case: Beside) -> int:
    """The largest id of all pages: each holds ``page_size`` ids for every rank, and page 0 is padding."""
    largest = 0
    for page in range(1, case.pools.full // case.page_size + 1):
        largest = max(largest, *(page * case.page_size * case.group + n for n in range(case.page_size * case.group)))
    return largest


@CHECKS.clause(lambda: BESIDE, DraftSizer)
def last_page_backed(sizer: DraftSizer, case: Beside) -> None:
    """Every id of every page that the allocator hands out, the padding page before them, has a row; no row is without an id."""
    expect(sizer.draft_pool(case.pools, case.page_size, case.group).backing_rows, last_id(case) + 1)


@CHECKS.clause(lambda: BESIDE, DraftSizer)
def compressed_pools_empty(sizer: DraftSizer, case: Beside) -> None:
    expect(tuple(sizer.draft_pool(case.pools, case.page_size, case.group).pools[2:]), (0, 0, 0))


@listed
def told() -> Iterator[Budgeted]:
    yield from (Budgeted(serving, 10**10) for serving in (*cases.plain(), *cases.windowed()))
    yield Budgeted(replace(cases.plain()[2], max_total_tokens=70_001, other_stages=(69_999,)), 10**10)
    yield Budgeted(Serving(Heads(7, 4, 96, 64, 1, extra=37), Parallel(8, 2), 16, dflash(None)), 10**10)


@CHECKS.clause(told, Teller)
def explained(teller: Teller, case: Budgeted) -> None:
    """Every number that a rounding starts from or leads to is in the text, and so are the bytes on both sides of the budget."""
    text, price = "\n".join(teller.explain(case.serving, case.budget)), model.due_cell(case.serving)
    told = set(re.findall(r"\d+", text.replace(",", "")))
    tokens = model.due_tokens(case.serving, case.budget)
    window = model.due_window(case.serving, tokens)
    single = (
        model.searched(replace(case.serving, page_size=1), case.budget)
        if not model.fixed_window(case.serving)
        else tokens
    )
    cost = model.rows_cost(case.serving, tokens, window)
    padding = case.serving.page_size * sum(price)
    numbers = {
        case.budget,
        *price,
        single,
        tokens,
        model.searched(case.serving, case.budget),
        window,
        case.budget - cost,
        padding,
    }
    ids = (tokens + case.serving.page_size) * case.serving.parallel.group
    missing = [str(number) for number in sorted({*numbers, ids}) if number and str(number) not in told]
    if missing:
        raise Violation(text, f"a text that also has {', '.join(missing)}")
