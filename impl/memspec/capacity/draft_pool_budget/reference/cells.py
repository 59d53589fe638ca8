"""What a token costs: the target's rows on one rank, and the draft's rows for every id that a target row stands for.

Decode context parallelism spreads a sequence over a group of ranks: each keeps one token in ``group``, so one target row
stands for ``group`` ids. The draft is not spread; its pool is indexed by those ids and has a row for each. Source:
sgl-project/sglang PRs #34234 and #33912 as in 0.5.23; where this is stricter, the page says so.
"""

from __future__ import annotations

from fractions import Fraction

from memspec.capacity.draft_pool_budget.data import (
    Cell,
    CellRefused,
    Draft,
    Geometry,
    Latent,
    Parallel,
    Serving,
    SettingRefused,
)

OWN_GEOMETRY = ("DFLASH", "DSPARK")  # algorithms whose draft is priced by its own geometry
TARGET_LAYERS = ("EAGLE", "STANDALONE")  # algorithms whose draft is priced as so many of the target's layers


def check_serving(serving: Serving) -> None:
    """Raise SettingRefused unless page size, widths, geometries, draft and window pool mean something."""
    if serving.page_size < 1:
        raise SettingRefused(f"a page of {serving.page_size} tokens; at least 1")
    check_parallel(serving.parallel)
    check_geometry(serving.target)
    if serving.window is not None:
        check_geometry(serving.window.geometry)
    if serving.draft is not None:
        check_geometry(serving.draft.geometry)
    check_draft(serving.draft)
    check_window(serving)
    check_caps(serving)


def check_caps(serving: Serving) -> None:
    """Raise SettingRefused for a cap or a stage below 0 tokens."""
    for tokens in (serving.max_total_tokens or 0, *serving.other_stages):
        if tokens < 0:
            raise SettingRefused(f"a cap or a stage of {tokens} tokens; at least 0")


def check_parallel(parallel: Parallel) -> None:
    """Raise SettingRefused for widths below 1 and for a group that does not divide the attention width."""
    for name, width in (("attention", parallel.attention), ("group", parallel.group), ("draft", draft_ranks(parallel))):
        if width < 1:
            raise SettingRefused(f"{name} width {width}; at least 1")
    if parallel.attention % parallel.group:
        raise SettingRefused(
            f"a group of {parallel.group} ranks does not divide the attention width of {parallel.attention}"
        )


def check_geometry(geometry: Geometry | None) -> None:
    """Raise SettingRefused for a size below 0."""
    for name, size in vars(geometry).items() if geometry else ():
        if size < 0:
            raise SettingRefused(f"{name} {size} of {geometry}; at least 0")


def check_draft(draft: Draft | None) -> None:
    """Raise for an unknown algorithm, for more window layers than layers, and for a given cell that is not above 0."""
    if draft is None:
        return
    known = (*OWN_GEOMETRY, *TARGET_LAYERS, "NGRAM")
    if draft.algorithm not in known:
        raise SettingRefused(f"algorithm {draft.algorithm!r} is none of {', '.join(known)}")
    windowed = (draft.window_layers, draft.local_layers)
    if min(windowed) < 0 or sum(windowed) > max(draft.layers or 0, 0):
        raise SettingRefused(f"{windowed} window and local layers of a draft of {draft.layers} layers")
    if draft.cell is not None and draft.cell <= 0:
        raise CellRefused(f"a draft of {draft.cell} bytes a token; a cell that is given is above 0")


def fraction_of(text: str) -> Fraction:
    """A decimal or a fraction as text. Raises ValueError for anything else, SettingRefused for a division by 0."""
    try:
        return Fraction(text)
    except ZeroDivisionError as nothing:
        raise SettingRefused(f"{text!r} divides by 0") from nothing


def check_window(serving: Serving) -> None:
    """Raise SettingRefused for a ratio, window or request cap that is not above 0."""
    if serving.window is None:
        return
    cap, reach = serving.window.request_cap, serving.window.tokens
    for name, number in (("ratio", fraction_of(serving.window.ratio)), ("window", reach), ("request cap", cap)):
        if number is not None and number <= 0:
            raise SettingRefused(f"{name} {number} of the window pool; above 0")


def heads_per_rank(heads: int, ranks: int) -> int:
    """Heads of one rank; with more ranks than heads, each keeps one."""
    return max(1, heads // ranks)


def row(geometry: Geometry, ranks: int) -> int:
    """Bytes of one token in one layer on one of ``ranks`` ranks. A latent is not sharded."""
    if isinstance(geometry, Latent):
        return geometry.width * geometry.itemsize
    return heads_per_rank(geometry.heads, ranks) * (geometry.head_dim + geometry.v_head_dim) * geometry.itemsize


def group_size(parallel: Parallel) -> int:
    """Ids that one target row stands for: the size of the group as it was formed."""
    return parallel.group


def target_ranks(parallel: Parallel) -> int:
    """Ranks that share the target's heads. All ranks of a group keep the same heads, so rows get wider as the group grows."""
    return parallel.attention // group_size(parallel)


def window_ranks(parallel: Parallel) -> int:
    """The same for the pools of a hybrid model."""
    return target_ranks(parallel)


def draft_ranks(parallel: Parallel) -> int:
    """Ranks that share the draft's heads. The draft never joins the group."""
    return parallel.attention if parallel.draft is None else parallel.draft


def stored(geometry: Geometry, ranks: int, replicas: int) -> int:
    """Bytes of one token in all layers: rows, what is sharded with them, and ``replicas`` times what is kept whole."""
    return geometry.layers * row(geometry, ranks) + geometry.extra + geometry.indexer * replicas


def own_cell(serving: Serving) -> int | None:
    """The draft's own bytes for one id, from its own heads, dims, layers and element size; None where nobody can tell."""
    if serving.draft is None:
        return None
    if serving.draft.cell is not None:
        return serving.draft.cell
    geometry = serving.draft.geometry
    return None if geometry is None else stored(geometry, draft_ranks(serving.parallel), 1)


def replicated(bytes_per_id: int, parallel: Parallel) -> int:
    """Bytes for each target row of what is kept for every id."""
    return bytes_per_id * group_size(parallel)


def draft_term(serving: Serving) -> int:
    """The draft's own bytes for one target row; 0 in the draft's worker, outside the family, and where they are not known."""
    if serving.draft_worker or serving.draft is None or serving.draft.algorithm not in OWN_GEOMETRY:
        return 0
    return replicated(max(own_cell(serving) or 0, 0), serving.parallel)


def fallback_ranks(serving: Serving) -> int:
    """Ranks for the price of a target layer that stands for a draft layer: like the draft's own, not widened by the group."""
    return serving.parallel.attention


def layer_price(geometry: Geometry, ranks: int) -> Fraction:
    """Bytes of one id in one layer, with the layer's part of what lies beside all of them."""
    if geometry.layers == 0:
        return Fraction(row(geometry, ranks))
    return Fraction(stored(geometry, ranks, 1), geometry.layers)


def rounded_up(amount: Fraction) -> int:
    """Whole bytes."""
    return -(-amount.numerator // amount.denominator)


def prices_by_layers(serving: Serving) -> bool:
    """Whether the draft is charged as so many target layers: its own bytes are not known, or its algorithm is priced so."""
    draft = serving.draft
    return not serving.draft_worker and draft is not None and draft.algorithm != "NGRAM" and not draft_term(serving)


def by_layers(serving: Serving) -> tuple[int, int]:
    """The draft as so many target layers, (bytes a token of the full pool, of the window pool). Raises CellRefused without a count."""
    draft, group = serving.draft, group_size(serving.parallel)
    if draft is None or not prices_by_layers(serving):
        return 0, 0
    if not draft.layers or draft.layers < 0:
        raise CellRefused(
            f"a {draft.algorithm} draft of {draft.layers} layers and {own_cell(serving)} bytes has no price"
        )
    ranks = fallback_ranks(serving)
    in_window = layer_price(serving.window.geometry, ranks) if serving.window else Fraction(0)
    if serving.window is None:
        return rounded_up(layer_price(serving.target, ranks) * draft.layers * group), 0
    in_full = layer_price(serving.target, ranks) * (draft.layers - draft.window_layers - draft.local_layers)
    return (
        rounded_up((in_full + in_window * draft.local_layers) * group),
        rounded_up(in_window * draft.window_layers * group),
    )


def cell(serving: Serving) -> Cell:
    """The price of one token. Raises SettingRefused, and CellRefused for a target of no bytes or a draft without a price."""
    check_serving(serving)
    group, window = group_size(serving.parallel), serving.window
    ranks = target_ranks(serving.parallel) if window is None else window_ranks(serving.parallel)
    full = stored(serving.target, ranks, group) if serving.target.layers else 0
    in_window = stored(window.geometry, ranks, group) if window else 0
    if full + in_window <= 0:
        raise CellRefused(f"a target of {full + in_window} bytes a token; above 0")
    return Cell(full, in_window, draft_term(serving), *by_layers(serving))
