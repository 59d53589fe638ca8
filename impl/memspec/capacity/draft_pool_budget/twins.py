"""The wrong halves of the broken twins: each function stands in for the one of the reference that it gets wrong."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from memspec.capacity.draft_pool_budget.data import (
    Cell,
    Draft,
    DraftPool,
    Geometry,
    Heads,
    Memory,
    NotEnoughMemory,
    Parallel,
    Pools,
    Serving,
)
from memspec.capacity.draft_pool_budget.reference import cells, room, sizes, telling


def no_check(*_: Any) -> None:
    return None


def once(bytes_per_id: int, parallel: Parallel) -> int:
    return bytes_per_id


def twice(bytes_per_id: int, parallel: Parallel) -> int:
    return bytes_per_id * parallel.group**2


def asked_group(parallel: Parallel) -> int:
    return parallel.asked or parallel.group


def never_own(serving: Serving) -> int:
    return 0


def all_ranks(parallel: Parallel) -> int:
    return parallel.tensor or parallel.attention


def group_shares_heads(parallel: Parallel) -> int:
    return max(1, parallel.attention // parallel.group)


def unwidened(parallel: Parallel) -> int:
    return parallel.attention


def widened(serving: Serving) -> int:
    return serving.parallel.attention // serving.parallel.group


def whole_heads_only(heads: int, ranks: int) -> int:
    return heads // ranks


def heads_rounded_up(heads: int, ranks: int) -> int:
    return -(-heads // ranks)


def sharded_latent(geometry: Geometry, ranks: int) -> int:
    return cells.row(geometry, ranks) // (1 if isinstance(geometry, Heads) else ranks)


def keys_and_values_alike(geometry: Geometry, ranks: int) -> int:
    if not isinstance(geometry, Heads):
        return cells.row(geometry, ranks)
    return cells.heads_per_rank(geometry.heads, ranks) * 2 * geometry.head_dim * geometry.itemsize


def one_indexer(geometry: Geometry, ranks: int, replicas: int) -> int:
    return cells.stored(geometry, ranks, 1)


def rows_alone(geometry: Geometry, ranks: int, replicas: int) -> int:
    return geometry.layers * cells.row(geometry, ranks)


def all_of_it_replicated(geometry: Geometry, ranks: int, replicas: int) -> int:
    return cells.stored(geometry, ranks, 1) * replicas


def targets_element_size(serving: Serving) -> int | None:
    draft = serving.draft
    if draft is None or draft.geometry is None or draft.cell is not None:
        return cells.own_cell(serving)
    geometry = replace(draft.geometry, itemsize=serving.target.itemsize)
    return cells.own_cell(replace(serving, draft=replace(draft, geometry=geometry)))


def any_algorithm(serving: Serving) -> int:
    if serving.draft_worker or serving.draft is None:
        return 0
    return cells.replicated(max(cells.own_cell(serving) or 0, 0), serving.parallel)


def in_the_draft_worker_too(serving: Serving) -> int:
    return cells.draft_term(replace(serving, draft_worker=False))


def plain_models_only(serving: Serving) -> int:
    return 0 if serving.window else cells.draft_term(serving)


def no_layers(serving: Serving) -> tuple[int, int]:
    return 0, 0


def layers_once(serving: Serving) -> tuple[int, int]:
    return cells.by_layers(replace(serving, parallel=Parallel(serving.parallel.attention)))


def one_replica_for_others(serving: Serving) -> tuple[int, int]:
    other = serving.draft is not None and serving.draft.algorithm in cells.TARGET_LAYERS
    return layers_once(serving) if other else cells.by_layers(serving)


def plain_models_by_layers(serving: Serving) -> tuple[int, int]:
    family = serving.draft is not None and serving.draft.algorithm in cells.OWN_GEOMETRY
    return (0, 0) if serving.window and family else cells.by_layers(serving)


def free_without_a_count(serving: Serving) -> tuple[int, int]:
    return cells.by_layers(serving) if serving.draft and serving.draft.layers else (0, 0)


def counted_or_free(serving: Serving) -> int:
    return cells.draft_term(serving) if serving.draft and serving.draft.layers else 0


def both_prices(serving: Serving) -> bool:
    draft = serving.draft
    return not serving.draft_worker and draft is not None and draft.algorithm != "NGRAM" and bool(draft.layers)


def rounded_down(amount: Fraction) -> int:
    return int(amount)


def activation_added(memory: Memory, fraction: Fraction) -> int:
    return room.slack(replace(memory, activation=0), fraction) + memory.activation


def of_what_is_left(memory: Memory, fraction: Fraction) -> int:
    return room.slack(replace(memory, before=memory.after), fraction)


def reserves_forgotten(memory: Memory, fraction: Fraction) -> int:
    return memory.after - room.slack(memory, fraction)


def by_weights_alone(memory: Memory) -> Fraction | None:
    thousandths = 1000 - 1000 * memory.after // memory.before
    return Fraction(thousandths, 1000)


def nothing_at_least(memory: Memory) -> int:
    return max(room.left(memory, Fraction(memory.fraction)), 0)


def target_alone(price: Cell) -> int:
    return price.target_full


def without_draft_by_requests(serving: Serving, price: Cell, budget: int) -> int:
    fixed = sizes.capped_window(serving)
    return sizes.divide(serving, price if fixed is None else price._replace(own=0, layers_full=0), budget)


def window_unpaid(serving: Serving, price: Cell, budget: int) -> int:
    fixed = sizes.capped_window(serving)
    return sizes.divide(serving, price, budget + (fixed or 0) * sizes.charged_window(price))


def a_page_to_spare(serving: Serving, price: Cell, budget: int) -> int:
    return sizes.divide(serving, price, budget) - serving.page_size


def half(serving: Serving, price: Cell, budget: int) -> int:
    return sizes.divide(serving, price, budget) // 2


def nearest_page(tokens: int, page_size: int) -> int:
    return (tokens + page_size // 2) // page_size * page_size


def as_it_is(tokens: int, page_size: int) -> int:
    return tokens


def cap_is_the_size(serving: Serving, tokens: int) -> int:
    return sizes.page_down(serving.max_total_tokens or min(tokens, *serving.other_stages, tokens), serving.page_size)


def cap_ignored(serving: Serving, tokens: int) -> int:
    return sizes.constrained(replace(serving, max_total_tokens=None), tokens)


def cap_not_whole_pages(serving: Serving, tokens: int) -> int:
    return sizes.constrained(replace(serving, page_size=1), tokens)


def own_stage(serving: Serving, tokens: int) -> int:
    return sizes.constrained(replace(serving, other_stages=()), tokens)


def largest_stage(serving: Serving, tokens: int) -> int:
    return max(own_stage(serving, tokens), *(sizes.page_down(n, serving.page_size) for n in (*serving.other_stages, 0)))


def one_page_at_least(serving: Serving, tokens: int) -> int:
    return max(sizes.constrained(serving, tokens), serving.page_size)


def whole_window(serving: Serving) -> Fraction:
    return Fraction(0) if serving.window is None else Fraction(1)


def ratio_always(serving: Serving) -> Fraction:
    return Fraction(0) if serving.window is None else Fraction(serving.window.ratio)


def window_as_it_is(serving: Serving, tokens: int) -> int:
    fixed = sizes.capped_window(serving)
    return sizes.window_pool(serving, tokens) if fixed is not None else int(tokens * sizes.window_share(serving))


def a_fifth_more(serving: Serving, tokens: int) -> int:
    return sizes.page_down(tokens * 6 // 5, serving.page_size) if serving.window else 0


def one_page_narrower(serving: Serving, tokens: int) -> int:
    try:
        return sizes.window_pool(serving, tokens)
    except NotEnoughMemory:
        window = serving.window
        reach = None if window is None or window.tokens is None else window.tokens - serving.page_size
        return sizes.window_pool(replace(serving, window=window and replace(window, tokens=reach or None)), tokens)


def cap_in_whole_pages_down(serving: Serving) -> int | None:
    fixed = sizes.capped_window(serving)
    return fixed and sizes.page_down(serving.window.request_cap or 0, serving.page_size) if serving.window else None


def ratio_despite_the_cap(serving: Serving) -> int | None:
    return None


def rows_of_the_target(pools: Pools, page_size: int, group: int) -> DraftPool:
    return DraftPool(Pools(pools.full, pools.window), page_size, pools.full + page_size)


def full_pool_only(pools: Pools, page_size: int, group: int) -> DraftPool:
    found = sizes.draft_pool(pools, page_size, group)
    return found._replace(pools=found.pools._replace(window=pools.window))


def page_of_the_target(pools: Pools, page_size: int, group: int) -> DraftPool:
    return DraftPool(Pools(pools.full * group, pools.window * group), page_size, pools.full * group + page_size)


def without_a_padding_page(pools: Pools, page_size: int, group: int) -> DraftPool:
    found = sizes.draft_pool(pools, page_size, group)
    return found._replace(backing_rows=found.pools.full)


def a_page_too_many(pools: Pools, page_size: int, group: int) -> DraftPool:
    found = sizes.draft_pool(pools, page_size, group)
    return found._replace(backing_rows=found.backing_rows + found.page_size)


def everything_copied(pools: Pools, page_size: int, group: int) -> DraftPool:
    found = sizes.draft_pool(pools, page_size, group)
    return found._replace(pools=Pools(*(rows * group for rows in pools)))


def totals_only(serving: Serving, budget: int) -> tuple[str, ...]:
    found = sizes.plan(serving, budget)
    return (f"max_total_num_tokens={found.tokens}", f"{found.headroom / 2**30:.2f} GB left")


def padding_left_out(serving: Serving, budget: int) -> tuple[str, ...]:
    return telling.explain(serving, budget)[:-1]


def any_draft(draft: Draft | None) -> None:
    if draft is not None and draft.cell is not None and draft.cell <= 0:
        cells.check_draft(Draft("DFLASH", cell=draft.cell))


def any_cell(draft: Draft | None) -> None:
    cells.check_draft(draft and replace(draft, cell=None))
