"""A second formulation: bytes by walking layers, heads and ids; tokens by filling pages until the budget is spent."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil

from memspec.capacity.draft_pool_budget.data import Cell, Geometry, Latent, Serving

FAMILY = {"DFLASH", "DSPARK"}


def heads_held(heads: int, ranks: int) -> int:
    """Heads are dealt to the ranks in rounds; only whole rounds count, and no rank stays without one."""
    rounds = 0
    while heads >= ranks:
        heads, rounds = heads - ranks, rounds + 1
    return rounds or 1


def layer_bytes(geometry: Geometry, ranks: int) -> int:
    """One token in one layer."""
    if isinstance(geometry, Latent):
        return geometry.width * geometry.itemsize
    held = 0
    for _ in range(heads_held(geometry.heads, ranks)):
        held += geometry.head_dim * geometry.itemsize
        held += geometry.v_head_dim * geometry.itemsize
    return held


@cache
def held_bytes(geometry: Geometry, ranks: int, ids: int) -> int:
    """One token in all layers, with index keys for each of the ``ids`` that it stands for."""
    rows = sum(layer_bytes(geometry, ranks) for _ in range(geometry.layers))
    return rows + geometry.extra + sum(geometry.indexer for _ in range(ids))


def one_layer(geometry: Geometry, ranks: int) -> Fraction:
    if not geometry.layers:
        return Fraction(layer_bytes(geometry, ranks))
    return Fraction(held_bytes(geometry, ranks, 1), geometry.layers)


@cache
def due_cell(serving: Serving) -> Cell:
    """The bytes of one token, draft rows for every id of the group counted one by one."""
    width, group, draft, window = serving.parallel.attention, serving.parallel.group, serving.draft, serving.window
    full = held_bytes(serving.target, width // group, group) if serving.target.layers else 0
    in_window = held_bytes(window.geometry, width // group, group) if window else 0
    if draft is None or serving.draft_worker or draft.algorithm == "NGRAM":
        return Cell(full, in_window, 0, 0, 0)
    one_id = draft.cell or 0
    if not one_id and draft.geometry:
        one_id = held_bytes(draft.geometry, serving.parallel.draft or width, 1)
    if draft.algorithm in FAMILY and one_id > 0:
        return Cell(full, in_window, sum(one_id for _ in range(group)), 0, 0)
    full_side, window_side = Fraction(0), Fraction(0)
    for layer in range(draft.layers or 0):
        for _ in range(group):
            if window and layer < draft.window_layers:
                window_side += one_layer(window.geometry, width)
            elif window and layer < draft.window_layers + draft.local_layers:
                full_side += one_layer(window.geometry, width)
            else:
                full_side += one_layer(serving.target, width)
    return Cell(full, in_window, 0, ceil(full_side), ceil(window_side))


@cache
def fixed_window(serving: Serving) -> int | None:
    """Tokens of a window pool that is sized by requests."""
    if serving.window is None or not serving.window.request_cap or not serving.target.layers:
        return None
    pages = 0
    while pages * serving.page_size < serving.window.request_cap:
        pages += 1
    return pages * serving.page_size


def bytes_for(serving: Serving, price: Cell, tokens: int) -> Fraction:
    """What ``tokens`` of the full pool cost, with the part of a window pool that comes with them."""
    fixed = fixed_window(serving)
    if fixed is not None:
        share = Fraction(fixed)
    elif serving.window is None:
        share = Fraction(0)
    else:
        share = tokens * (Fraction(serving.window.ratio) if serving.target.layers else Fraction(1))
    return tokens * (price.target_full + price.own + price.layers_full) + share * (
        price.target_window + price.layers_window
    )


@cache
def filled(serving: Serving, budget: int) -> int:
    """Pages are bought one after the other until the next one is too dear. For small budgets."""
    price, tokens = due_cell(serving), 0
    while bytes_for(serving, price, tokens + serving.page_size) <= budget:
        tokens += serving.page_size
    return tokens


@cache
def searched(serving: Serving, budget: int) -> int:
    """The same by bisection: the largest number of pages that is not too dear."""
    price, low, high = due_cell(serving), 0, 1
    while bytes_for(serving, price, high * serving.page_size) <= budget:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if bytes_for(serving, price, middle * serving.page_size) <= budget:
            low = middle
        else:
            high = middle
    return low * serving.page_size


@cache
def due_tokens(serving: Serving, budget: int) -> int:
    """The largest number of whole pages that the budget, the user and every stage allow."""
    tokens = searched(serving, budget)
    limits = [*serving.other_stages, *([] if serving.max_total_tokens is None else [serving.max_total_tokens])]
    while tokens and any(tokens > limit for limit in limits):
        tokens = min(tokens - serving.page_size, max(0, min(limits) // serving.page_size * serving.page_size))
    return tokens


@cache
def due_window(serving: Serving, tokens: int) -> int:
    """Tokens of the window pool beside ``tokens``: pages are added while they stay within its part."""
    fixed = fixed_window(serving)
    if serving.window is None:
        return 0
    if fixed is not None:
        return min(fixed, tokens)
    share = tokens * (Fraction(serving.window.ratio) if serving.target.layers else Fraction(1))
    pages = int(share / serving.page_size)
    return pages * serving.page_size


@cache
def rows_cost(serving: Serving, tokens: int, window_tokens: int) -> int:
    """Bytes of the rows that are there: the target's, and the draft's for every id."""
    price = due_cell(serving)
    return tokens * (price.target_full + price.own + price.layers_full) + window_tokens * (
        price.target_window + price.layers_window
    )
