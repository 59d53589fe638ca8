"""Guards removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memspec.layout.canonical_layout import reference
from memspec.layout.canonical_layout.data import (
    Cell,
    CopyPlan,
    Grid,
    Identity,
    Layer,
    PageMap,
    Spec,
    View,
)
from memspec.layout.canonical_layout.faults.making import fault
from memspec.layout.canonical_layout.reference import mapping, names, plan, sharding, sharing, tiling


def mapped_regardless(layer: Layer, grid: Grid) -> tuple[PageMap, ...]:
    known = replace(layer.spec, kind="full") if layer.spec.kind == "other" else layer.spec
    return mapping.map_layer(replace(layer, spec=known), replace(grid, pp=1))


def replicas_unchecked(spec: Spec, grid: Grid) -> int:
    return max(1, grid.tp // spec.model_heads)


def context_unchecked(spec: Spec, grid: Grid, rank: int) -> sharding.Share:
    return replace(
        sharding.head_share(spec, replace(grid, dcp=1), rank), context_rank=sharding.context_rank(grid, rank)
    )


def latent_unchecked(spec: Spec, grid: Grid, rank: int) -> sharding.Share:
    sharding.require_plain_tokens(spec, grid)
    return sharding.Share(
        0, 1, sharding.context_rank(grid, rank), max(1, grid.tp // grid.dcp), rank % grid.tp // grid.dcp
    )


def page_size_unchecked(view: View | None, spec: Spec, family: str) -> Any:
    fitting = 2 * spec.heads * spec.block_tokens * spec.head_size * spec.element_bytes
    return reference.certify(view, replace(spec, page_bytes=fitting), family)  # type: ignore[arg-type]


def further_axes_unseen(view: View | None, spec: Spec, family: str) -> Any:
    short = View(view.shape[:4], view.strides[:4]) if view and len(view.shape) > 5 else view
    return reference.certify(short, spec, family)  # type: ignore[arg-type]


def agreement_unchecked(maps: Sequence[PageMap], page_bytes: int) -> None:
    first = maps[0]
    tiling.check_layer(
        [replace(m, canonical_bytes=first.canonical_bytes, writers=first.writers) for m in maps], page_bytes
    )


def pages_unchecked(chunks: Sequence[int], blocks_per_chunk: int, count: int, skip: int = 0) -> tuple[int, ...]:
    return tuple(c * blocks_per_chunk + i for c in chunks for i in range(blocks_per_chunk))[skip : skip + count]


def plan_unchecked(
    direction: str, page: PageMap, blocks: Sequence[int], pages: Sequence[int], padded_page: int, cell: Cell
) -> CopyPlan:
    pairs = list(zip(blocks, pages, strict=False))
    wide = replace(cell, page_bytes=max(cell.page_bytes, page.canonical_bytes))
    return plan.plan_copies(direction, page, [b for b, _ in pairs], [p for _, p in pairs], padded_page, wide)  # type: ignore[arg-type]


def direct_names_shared(identity: Identity) -> dict[str, Any]:
    fields = names.namespace_fields(replace(identity, format=identity.format or "direct"))
    return fields if identity.format else {key: value for key, value in fields.items() if key != "canonical_format"}


def spec_gate_open(spec: Spec, grid: Grid) -> bool:
    return spec.kind in (*mapping.HEADED_KINDS, "latent") and sharing.portable_spec(spec, replace(grid, dcp=1, pcp=1))


UNGUARDED = (
    fault(
        "context-parallel-shares",
        "shared-iff-portable",
        "guard removed",
        "The gate does not look at context parallelism.",
        portable_spec=spec_gate_open,
    ),
    fault(
        "maps-outside-the-grid",
        "missing-map",
        "guard removed",
        "A pipeline stage is mapped as if it were the grid, an unknown cache as if it were full attention.",
        map_layer=mapped_regardless,
    ),
    fault(
        "cells-unchecked",
        "plain-cells context-divides",
        "guard removed",
        "Scales, pooled states and odd interleaves are mapped as plain cells.",
        require_plain_tokens=lambda spec, grid: None,
    ),
    fault(
        "heads-unchecked",
        "heads-divide",
        "guard removed",
        "Heads that do not divide are mapped by truncation.",
        head_replicas=replicas_unchecked,
    ),
    fault(
        "context-unchecked",
        "context-divides",
        "guard removed",
        "Tokens are divided among ranks of different heads.",
        head_share=context_unchecked,
    ),
    fault(
        "latent-unchecked",
        "latent-from-spec context-divides",
        "guard removed",
        "Rows that do not divide the page, ranks that do not divide the group.",
        latent_share=latent_unchecked,
    ),
    fault(
        "shape-unchecked",
        "exact-evidence",
        "guard removed",
        "Strides alone are looked at.",
        expected_shape=lambda form, spec: {},
    ),
    fault(
        "strides-unchecked",
        "exact-evidence",
        "guard removed",
        "The shape alone is looked at.",
        expected_strides=lambda form, spec, family: {},
    ),
    fault(
        "page-size-unchecked",
        "exact-evidence",
        "guard removed",
        "The page is larger than keys and values, and what else it holds is lost.",
        certify=page_size_unchecked,
    ),
    fault(
        "further-axes-unseen",
        "exact-evidence",
        "guard removed",
        "Axes behind the fourth are not looked at.",
        certify=further_axes_unseen,
    ),
    fault(
        "tiling-unchecked",
        "start-check",
        "guard removed",
        "No gap and no overlap is noticed at start.",
        require_tiling=lambda pieces, size, what: None,
    ),
    fault(
        "agreement-unchecked",
        "start-check",
        "guard removed",
        "Ranks may differ in page size and writers.",
        check_layer=agreement_unchecked,
    ),
    fault(
        "pages-unchecked",
        "page-id",
        "guard removed",
        "A transfer may name more pages than its chunks hold.",
        page_ids=pages_unchecked,
    ),
    fault(
        "plan-unchecked",
        "cell-width page-id",
        "guard removed",
        "A page may be wider than its cell, a block may lack its page.",
        plan_copies=plan_unchecked,
    ),
    fault(
        "direct-names-shared",
        "collapsed-name",
        "guard removed",
        "Direct bytes get a name without a topology.",
        namespace_fields=direct_names_shared,
    ),
    fault(
        "format-of-nothing",
        "format-in-namespace",
        "guard removed",
        "A format without a form is spelled.",
        format_id=lambda layout, forms, version=1: names.format_id(layout, forms or ("packed",), version),
    ),
)
