"""From bytes to tokens and from tokens to rows: one budget is divided once, for target and draft together.

Source: SGLang 0.5.23 (pool configurators, token constraints, draft pool sizes).
"""

from __future__ import annotations

from fractions import Fraction

from memspec.capacity.draft_pool_budget.data import (
    Cell,
    DraftPool,
    NotEnoughMemory,
    Plan,
    Pools,
    Serving,
    SettingRefused,
)
from memspec.capacity.draft_pool_budget.reference.cells import cell, group_size, replicated


def page_down(tokens: int, page_size: int) -> int:
    """Whole pages; a page that is not whole is not there."""
    return tokens // page_size * page_size


def page_up(tokens: int, page_size: int) -> int:
    """Whole pages that hold ``tokens``."""
    return -(-tokens // page_size) * page_size


def charged_full(price: Cell) -> int:
    """Bytes for each token of the full pool, the draft's included."""
    return price.target_full + price.own + price.layers_full


def charged_window(price: Cell) -> int:
    """Bytes for each token of the window pool, the draft's included."""
    return price.target_window + price.layers_window


def capped_window(serving: Serving) -> int | None:
    """Tokens of a window pool that is sized by requests, in whole pages; None where it is a part of the full pool."""
    if serving.window is None or serving.window.request_cap is None or not serving.target.layers:
        return None
    return page_up(serving.window.request_cap, serving.page_size)


def window_share(serving: Serving) -> Fraction:
    """Tokens of the window pool for each token that the division gives; all of them where there is no full pool."""
    if serving.window is None:
        return Fraction(0)
    return Fraction(serving.window.ratio) if serving.target.layers else Fraction(1)


def divide(serving: Serving, price: Cell, budget: int) -> int:
    """Tokens that ``budget`` bytes hold, before pages. A window pool of fixed size is paid first; below 0 when it costs too much."""
    fixed = capped_window(serving)
    if fixed is not None:
        return (budget - fixed * charged_window(price)) // charged_full(price)
    return int(budget // (charged_full(price) + window_share(serving) * charged_window(price)))


def constrained(serving: Serving, tokens: int) -> int:
    """The least of what was profiled, the user's cap and every pipeline stage, in whole pages."""
    cap = tokens if serving.max_total_tokens is None else serving.max_total_tokens
    return page_down(min(tokens, cap, *serving.other_stages), serving.page_size)


def window_pool(serving: Serving, tokens: int) -> int:
    """Tokens of the window pool beside ``tokens`` of the full pool. Raises NotEnoughMemory where it could not admit a request."""
    fixed, window = capped_window(serving), serving.window
    if window is None:
        return 0
    part = page_down(int(tokens * window_share(serving)), serving.page_size)
    found = part if fixed is None else min(fixed, tokens)
    if serving.target.layers and window.tokens is not None and found <= window.tokens + serving.page_size:
        raise NotEnoughMemory(
            f"a window pool of {found} tokens admits no request: a window of {window.tokens} and a page of {serving.page_size}"
        )
    return found


def draft_pool(pools: Pools, page_size: int, group: int) -> DraftPool:
    """The draft's pools beside the target's ``pools``: rows for every id, pages as the allocator hands them out, nothing compressed.

    The allocator hands out whole pages of ``page_size * group`` ids after one padding page, so the pool backs one page more than it has.
    """
    if min(*pools, page_size - 1, group - 1) < 0:
        raise SettingRefused(f"{pools} in pages of {page_size} for groups of {group}; at least 0, 1 and 1")
    page = page_size * group
    return DraftPool(Pools(pools.full * group, pools.window * group), page, pools.full * group + page)


def draft_pool_beside(serving: Serving, price: Cell, tokens: int, in_window: int) -> DraftPool | None:
    """The draft's pools beside the target's; None where no draft is charged. A draft without window layers has no window pool."""
    if not price.own + price.layers_full + price.layers_window:
        return None
    beside = Pools(tokens, in_window if price.layers_window else 0)
    return draft_pool(beside, serving.page_size, group_size(serving.parallel))


def padding_bytes(serving: Serving, price: Cell) -> int:
    """Bytes of the padding page that every pool has beside its rows: one page of each, the draft's of ``page_size * group`` ids."""
    return serving.page_size * sum(price)


def plan(serving: Serving, budget: int) -> Plan:
    """Divide ``budget`` bytes among the pools of target and draft.

    Raises what :func:`cell` raises, and NotEnoughMemory when less than one page fits or the window pool could admit nothing.
    """
    price = cell(serving)
    divided = divide(serving, price, budget)
    profiled = page_down(divided, serving.page_size)
    tokens = constrained(serving, profiled)
    if tokens <= 0:
        raise NotEnoughMemory(
            f"{budget} bytes hold {max(divided, 0)} tokens, {max(tokens, 0)} after caps; one page of {serving.page_size} is the least"
        )
    in_window = window_pool(serving, tokens)
    return Plan(
        budget, price, divided, profiled, tokens, in_window, draft_pool_beside(serving, price, tokens, in_window),
        tokens * price.target_full + in_window * price.target_window,
        tokens * (price.own + price.layers_full) + in_window * price.layers_window, padding_bytes(serving, price),
    )  # fmt: skip


def ids(serving: Serving, tokens: int) -> int:
    """Ids that ``tokens`` target rows stand for: the context that a group can hold."""
    return replicated(tokens, serving.parallel)
