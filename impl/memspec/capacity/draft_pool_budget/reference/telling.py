"""The budget in words: every price, every rounding with the number before and after, and what lies outside the budget."""

from __future__ import annotations

from memspec.capacity.draft_pool_budget.data import Geometry, Heads, Plan, Serving
from memspec.capacity.draft_pool_budget.reference.cells import (
    draft_ranks,
    group_size,
    heads_per_rank,
    own_cell,
    target_ranks,
    window_ranks,
)
from memspec.capacity.draft_pool_budget.reference.sizes import (
    capped_window,
    charged_full,
    charged_window,
    ids,
    plan,
    window_share,
)


def bytes_told(number: int) -> str:
    return f"{number:,} B"


def layers_told(geometry: Geometry, ranks: int) -> str:
    """How a row comes about: "5 layers x 4 of 8 heads x (128 + 128) x 2 B"."""
    count = f"{geometry.layers} layer{'s' * (geometry.layers != 1)}"
    if isinstance(geometry, Heads):
        kept = f"{heads_per_rank(geometry.heads, ranks)} of {geometry.heads} heads"
        return f"{count} x {kept} x ({geometry.head_dim} + {geometry.v_head_dim}) x {geometry.itemsize} B"
    return f"{count} x {geometry.width} latent elements, whole on each rank, x {geometry.itemsize} B"


def told_prices(serving: Serving, found: Plan) -> list[str]:
    parallel, price, group = serving.parallel, found.cell, group_size(serving.parallel)
    lines = []
    ranks = target_ranks(parallel) if serving.window is None else window_ranks(parallel)
    if price.target_full:
        lines.append(
            f"target: {layers_told(serving.target, ranks)} = {bytes_told(price.target_full)} a token on each rank"
        )
    if serving.window:
        lines.append(
            f"window layers: {layers_told(serving.window.geometry, ranks)} = {bytes_told(price.target_window)} a token of their pool"
        )
    if price.own:
        geometry = serving.draft.geometry if serving.draft and serving.draft.cell is None else None
        how = f"{layers_told(geometry, draft_ranks(parallel))} = " if geometry else ""
        lines.append(
            f"draft: {how}{bytes_told(own_cell(serving) or 0)} an id; a target row stands for {group} ids: {bytes_told(price.own)} a token"
        )
    elif price.layers_full or price.layers_window:
        lines.append(
            f"draft: priced by the target's layers, times {group} ids, rounded up: {bytes_told(price.layers_full)} a token"
            + (f" and {bytes_told(price.layers_window)} a token of the window pool" if price.layers_window else "")
        )
    else:
        lines.append("draft: none is charged")
    return lines


def told_division(serving: Serving, found: Plan) -> list[str]:
    full, in_window, fixed = charged_full(found.cell), charged_window(found.cell), capped_window(serving)
    if fixed is not None and serving.window:
        cost, asked = bytes_told(fixed * in_window), serving.window.request_cap
        return [
            f"window pool: {asked:,} tokens for requests, up to whole pages: {fixed:,}, for {cost}",
            f"({bytes_told(found.budget)} - {cost}) / {bytes_told(full)}, rounded down: {found.divided:,} tokens",
        ]
    share = window_share(serving)
    each = bytes_told(full) + (f" + {share} x {bytes_told(in_window)}" if share else "")
    return [f"{bytes_told(found.budget)} / ({each}), rounded down: {found.divided:,} tokens"]


def told_pages(serving: Serving, found: Plan) -> list[str]:
    page = serving.page_size
    lines = [f"pages of {page:,} tokens, rounded down: {found.divided:,} -> {found.profiled:,} tokens"]
    if serving.max_total_tokens is not None:
        lines.append(f"user's cap of {serving.max_total_tokens:,} tokens: it can only lower {found.profiled:,}")
    if serving.other_stages:
        lines.append(f"least of the other pipeline stages: {min(serving.other_stages):,} tokens")
    if found.tokens != found.profiled:
        lines.append(f"after caps, whole pages again: {found.profiled:,} -> {found.tokens:,} tokens")
    if serving.window and serving.target.layers:
        lines.append(f"window pool: {found.window_tokens:,} tokens, whole pages, rounded down")
    return lines


def explain(serving: Serving, budget: int) -> tuple[str, ...]:
    """The plan for ``budget`` bytes in sentences, one a line, in the order of the arithmetic. Raises what :func:`plan` raises."""
    found = plan(serving, budget)
    lines = [*told_prices(serving, found), *told_division(serving, found), *told_pages(serving, found)]
    if found.draft:
        lines.append(
            f"draft pool: {ids(serving, found.tokens):,} ids and a padding page of {found.draft.page_size:,}: "
            f"{found.draft.backing_rows:,} rows"
        )
    lines.append(f"target pools take {bytes_told(found.target_bytes)}, the draft's {bytes_told(found.draft_bytes)}")
    lines.append(f"left of the budget: {bytes_told(found.headroom)}")
    lines.append(f"outside the budget: {bytes_told(found.padding_bytes)} for the padding page of every pool")
    return tuple(lines)
