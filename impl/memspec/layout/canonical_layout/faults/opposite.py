"""The opposite errors: too strict, too lax, or misplaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from memspec.layout.canonical_layout.data import (
    Cell,
    CopyPlan,
    Grid,
    Identity,
    Layer,
    NotCertified,
    PageMap,
    Region,
    Spec,
)
from memspec.layout.canonical_layout.faults.making import fault
from memspec.layout.canonical_layout.reference import mapping, names, plan, sharding


def never(*_: Any) -> Any:
    raise NotCertified("0 layers are certified; the limit is 0")


def each_for_itself(layer: Layer, grid: Grid) -> tuple[PageMap, ...]:
    def one(rank: int) -> PageMap:
        try:
            return mapping.map_rank(layer, grid, rank)
        except NotCertified:
            return mapping.opaque_map(layer.spec, grid, rank)

    return tuple(one(rank) for rank in range(grid.world)) if mapping.map_layer(layer, grid) else ()


def always_portable(layer: Layer, grid: Grid, rank: int) -> PageMap:
    return replace(mapping.map_rank(layer, grid, rank), portable=True)


def turn_of(pick: Callable[[str, PageMap, int, int], bool]) -> Callable[..., CopyPlan]:
    """A planner that keeps the pages that ``pick(direction, map, block, page)`` picks."""

    def planned(
        direction: str, page: PageMap, blocks: Sequence[int], pages: Sequence[int], padded_page: int, cell: Cell
    ) -> CopyPlan:
        plan.plan_copies("load", page, blocks, pages, padded_page, cell)
        kept = [(b, p) for b, p in zip(blocks, pages, strict=True) if pick(direction, page, b, p)]
        unfiltered = replace(page, writers=1, writer_index=0)
        chosen = [b for b, _ in kept], [p for _, p in kept]
        return plan.plan_copies(direction, unfiltered, *chosen, padded_page, cell)  # type: ignore[arg-type]

    return planned


def padding_too(
    direction: str, page: PageMap, blocks: Sequence[int], pages: Sequence[int], padded_page: int, cell: Cell
) -> CopyPlan:
    exact = plan.plan_copies(direction, page, blocks, pages, padded_page, cell)  # type: ignore[arg-type]
    fragments, more = len(mapping.fragments(page)), padded_page - sum(r.size * r.count for r in page.runs)
    return replace(
        exact,
        copies=tuple(
            (a, b, size + (more if i % fragments == fragments - 1 else 0))
            for i, (a, b, size) in enumerate(exact.copies)
        ),
    )


def all_pages_counted(
    direction: str, page: PageMap, blocks: Sequence[int], pages: Sequence[int], padded_page: int, cell: Cell
) -> CopyPlan:
    exact = plan.plan_copies(direction, page, blocks, pages, padded_page, cell)  # type: ignore[arg-type]
    return replace(exact, pages=len(pages), moved_bytes=len(pages) * sum(r.size * r.count for r in page.runs))


def in_one_stretch(
    local: int, canonical: int, size: int, pitch: int, tokens: int, share: sharding.Share, grid: Grid
) -> Any:
    return mapping.token_runs(local, canonical, size, pitch, tokens, share, replace(grid, interleave=tokens))


def writers_without_context(spec: Spec, grid: Grid, rank: int) -> sharding.Share:
    share = sharding.latent_share(spec, grid, rank)
    return replace(share, writers=grid.tp, writer_index=rank % grid.tp)


def no_quantised_cache(spec: Spec, grid: Grid) -> None:
    sharding.require_plain_tokens(spec, grid)
    if spec.quantisation != "none":
        raise NotCertified(f"quantisation is {spec.quantisation}; the limit is none")


def no_window(layer: Layer, grid: Grid, rank: int) -> PageMap:
    return never() if layer.spec.kind == "sliding" else mapping.map_rank(layer, grid, rank)


def latent_by_tensor(layer: Layer, grid: Grid, rank: int) -> PageMap:
    return never() if layer.spec.kind == "latent" and not layer.views else mapping.map_rank(layer, grid, rank)


def cell_of_the_first(tensors: Sequence[Sequence[Sequence[PageMap]]], blocks_per_chunk: int) -> Region:
    return plan.lay_out([layers[:1] for layers in tensors], blocks_per_chunk)


def group_left_out(root: str, identity: Identity, rank: int, key: bytes) -> str:
    return names.file_name(root, identity, rank, key).replace(f"_g{int.from_bytes(key[-4:], 'big')}/", "/")


OPPOSITE = (
    fault(
        "never-certifies",
        "position declared-family windows-and-fp8 latent-from-spec heads-divide row-length",
        "opposite",
        "Everything is opaque: safe, and no engine of another size ever finds a page.",
        map_rank=never,
    ),
    fault(
        "never-shares",
        "shared-iff-portable",
        "opposite",
        "The gate is always shut.",
        may_share=lambda specs, grid, canonical: False,
    ),
    fault(
        "each-rank-for-itself",
        "opaque-for-all",
        "opposite",
        "Only the rank in doubt falls back, silently; the others write canonical bytes.",
        map_layer=each_for_itself,
    ),
    fault(
        "portable-under-context-parallelism",
        "context-not-portable",
        "opposite",
        "Pages that hold several ranks' tokens are called portable.",
        map_rank=always_portable,
    ),
    fault(
        "silent-start",
        "missing-map portable-claim",
        "opposite",
        "A worker without a map, or with a false claim, starts and stores what it has.",
        start_worker=lambda shared, layers: all(p.portable for _, m in layers for p in m),
    ),
    fault(
        "loads-filtered",
        "load-is-whole accounting round-trips",
        "opposite",
        "The store's filter is applied to loads: a rank reads only the pages that it would write.",
        plan_copies=turn_of(lambda direction, page, block, page_id: plan.elected(page, page_id)),
    ),
    fault(
        "election-by-device-block",
        "one-writer all-submit round-trips",
        "opposite",
        "Ranks elect by their own block number; blocks differ, ids do not.",
        plan_copies=turn_of(
            lambda direction, page, block, page_id: direction == "load" or plan.elected(page, block + page.writer_index)
        ),
    ),
    fault(
        "page-id-without-sub-block",
        "page-id round-trips",
        "opposite",
        "The chunk's id stands for all its pages.",
        page_ids=lambda chunks, blocks_per_chunk, count, skip=0: tuple(
            i // blocks_per_chunk for i in plan.page_ids(chunks, blocks_per_chunk, count, skip)
        ),
    ),
    fault(
        "first-acknowledgement-completes",
        "complete-after-writers",
        "opposite",
        "A page is called ready when some rank has answered.",
        complete=lambda acknowledged, world: bool(acknowledged),
    ),
    fault(
        "never-completes",
        "complete-after-writers",
        "opposite",
        "No store ever ends.",
        complete=lambda acknowledged, world: False,
    ),
    fault(
        "padding-moves",
        "only-cells-move",
        "opposite",
        "The padded page is copied, over whatever follows in the store.",
        plan_copies=padding_too,
    ),
    fault(
        "all-pages-counted",
        "accounting",
        "opposite",
        "Bytes of pages that the rank did not write are counted.",
        plan_copies=all_pages_counted,
    ),
    fault("uncoalesced", "coalesced", "opposite", "Every token is a copy of its own.", coalesce=tuple),
    fault(
        "interleave-forgotten",
        "position",
        "opposite",
        "Each rank's tokens are laid down in one stretch.",
        token_runs=in_one_stretch,
    ),
    fault(
        "rotation-over-all-latent-ranks",
        "tiling latent-from-spec",
        "opposite",
        "Ranks that hold different tokens take turns at one page.",
        latent_share=writers_without_context,
    ),
    fault(
        "quantised-caches-refused",
        "windows-and-fp8 shared-iff-portable",
        "opposite",
        "Per-tensor fp8 has no scales in the page, and is refused all the same.",
        require_plain_tokens=no_quantised_cache,
    ),
    fault(
        "windows-refused",
        "windows-and-fp8",
        "opposite",
        "A window changes which tokens are kept, not where they lie.",
        map_rank=no_window,
    ),
    fault(
        "latent-by-tensor",
        "latent-from-spec",
        "opposite",
        "A latent layer without a single tensor is refused.",
        map_rank=latent_by_tensor,
    ),
    fault(
        "cell-of-the-first-layer",
        "cell-width",
        "opposite",
        "The cell is as wide as the first layer that the tensor holds.",
        lay_out=cell_of_the_first,
    ),
    fault(
        "old-spelling-dropped",
        "format-in-namespace",
        "opposite",
        "The renamed layouts get new ids, and old files are never found again.",
        FAMILY_OF={},
    ),
    fault(
        "absent-key-as-false",
        "direct-unchanged one-file-name",
        "opposite",
        "A null for the unused feature renames every direct directory.",
        namespace_fields=lambda identity: {"canonical_format": False} | names.namespace_fields(identity),
    ),
    fault(
        "group-left-out",
        "one-file-name",
        "opposite",
        "Groups of one block overwrite one another.",
        file_name=group_left_out,
    ),
    fault(
        "broken-files-stay",
        "short-file",
        "opposite",
        "A truncated file is kept, and a store skips what exists.",
        short_read=lambda held, wanted, recorded: "load" if held >= wanted else "miss",
    ),
)
