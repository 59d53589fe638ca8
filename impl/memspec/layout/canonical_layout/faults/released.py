"""What was released or reported: the reference with one function replaced for all its callers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memspec.layout.canonical_layout.data import (
    CopyPlan,
    CopyRun,
    Grid,
    Identity,
    Layer,
    NotCertified,
    PageMap,
    Region,
    Spec,
)
from memspec.layout.canonical_layout.faults.making import fault
from memspec.layout.canonical_layout.reference import mapping, names, plan, sharding, sharing


def rank_zero_for_latent(maps: Sequence[PageMap]) -> tuple[int, ...]:
    return (0,) if maps[0].form == "latent" and maps[0].writers > 1 else tuple(range(len(maps)))


def replicated_flag(identity: Identity) -> dict[str, Any]:
    latent_alone = (identity.format or "").endswith("latent")
    return names.namespace_fields(identity) | ({"replicated_layout": True} if latent_alone and identity.tp > 1 else {})


def row_of_all_workers(tensors: Sequence[Sequence[Sequence[PageMap]]], blocks_per_chunk: int) -> Region:
    region = plan.lay_out(tensors, blocks_per_chunk)
    workers = sum(
        max(sum(r.size * r.count for r in layer[0].runs) * len(layer) for layer in layers) for layers in tensors
    )
    row = -(-workers * blocks_per_chunk // plan.ROW_ALIGNMENT) * plan.ROW_ALIGNMENT
    return Region(row, tuple(replace(cell, row_bytes=row) for cell in region.cells))


def family_alone(layout: str, forms: Sequence[str], version: int = 1) -> str:
    names.format_id(layout, forms, version)  # type: ignore[arg-type]
    return f"v{version}-{names.FAMILY_OF.get(layout.lower(), layout.lower())}"


def whole_words(transfer: CopyPlan, source: bytes, destination: bytes) -> bytes:
    return plan.moved(
        replace(transfer, copies=tuple((a, b, size // 8 * 8) for a, b, size in transfer.copies)), source, destination
    )


def family_by_head_stride(layer: Layer, grid: Grid, rank: int) -> PageMap:
    view = layer.views[rank] if rank < len(layer.views) else None
    if view is None or layer.spec.heads > 1 or len(view.shape) != 4:
        return mapping.map_rank(layer, grid, rank)
    cell = 2 * layer.spec.head_size
    families = {cell: "nhd", layer.spec.block_tokens * cell: "hnd"}
    if view.strides[1] not in families:
        raise NotCertified(f"stride {view.strides[1]} of the head axis; {list(families)} are certified")
    return mapping.map_rank(replace(layer, family=families[view.strides[1]]), grid, rank)  # type: ignore[arg-type]


def remove_if_shorter(held: int, wanted: int, recorded: int | None) -> str:
    return "load" if held >= wanted else "remove"


def path_by_page(direction: str, page: PageMap, pages: int) -> str:
    size, fragments = sum(r.size * r.count for r in page.runs), len(mapping.fragments(page))
    small = size < plan.KERNEL_LIMIT and size % plan.KERNEL_WORD == 0
    return "kernel" if direction == "load" and small and pages * fragments >= plan.KERNEL_LEAST else "copy-engine"


def direct_bytes_shared(specs: Sequence[Spec], grid: Grid, canonical: bool) -> bool:
    plain = (
        len(specs) == 1
        and specs[0].kind == "full"
        and specs[0].heads * grid.tp == specs[0].model_heads
        and grid.context == 1
    )
    return sharing.may_share(specs, grid, canonical) or (plain and not canonical)


def one_group_alone(specs: Sequence[Spec], grid: Grid, canonical: bool) -> bool:
    return len({spec.kind for spec in specs}) == 1 and sharing.may_share(specs, grid, canonical)


def local_heads_unseen(spec: Spec, grid: Grid) -> bool:
    return sharing.portable_spec(
        replace(spec, heads=max(1, spec.model_heads // grid.tp)) if spec.kind == "full" else spec, grid
    )


def heads_by_modulo(spec: Spec, grid: Grid, rank: int) -> sharding.Share:
    share = sharding.head_share(spec, grid, rank)
    return replace(share, first_head=rank % grid.tp % share.shards * spec.heads)


def local_count_as_global(spec: Spec, grid: Grid) -> int:
    sharding.head_replicas(spec, grid)
    return max(1, grid.tp // spec.heads)


def direct_as_canonical(layer: Layer, grid: Grid, rank: int) -> PageMap:
    page, size = mapping.map_rank(layer, grid, rank), layer.spec.page_bytes
    places = page.canonical_bytes // size
    return replace(page, runs=(CopyRun(0, rank * places // grid.world * size, size),))


def name_of_the_rank(root: str, identity: Identity, rank: int, key: bytes) -> str:
    return names.file_name(root, identity, rank, key).replace("_r0/", f"_r{rank}/")


def one_block_a_file(identity: Identity) -> dict[str, Any]:
    return {**names.namespace_fields(identity), "blocks_per_file": 1}


def layout_left_out(identity: Identity) -> dict[str, Any]:
    return {key: value for key, value in names.namespace_fields(identity).items() if key != "canonical_format"}


RELEASED = (
    fault(
        "rotation-elects-ranks-that-do-not-submit",
        "all-submit round-trips round-trip-processes",
        "released",
        "Replicated rows were given to rank 0 alone, while the writers rotate over all ranks: all pages but rank 0's are lost.",
        "vLLM 0.28.0 to 0.30.0",
        submitting_ranks=rank_zero_for_latent,
    ),
    fault(
        "replicated-flag-in-the-name",
        "collapsed-name",
        "released",
        "Equal bytes, two directories: the flag is hashed for more than one rank only.",
        "vLLM 0.28.0 to 0.30.0",
        namespace_fields=replicated_flag,
    ),
    fault(
        "row-counts-workers",
        "row-length",
        "released",
        "The row is sized by worker, so replicas of a head lengthen it in the same namespace.",
        "vLLM 0.33.0",
        lay_out=row_of_all_workers,
    ),
    fault(
        "format-without-form",
        "format-in-namespace",
        "released",
        "Packed and split caches write different pages under one id.",
        "vLLM 0.28.0 to 0.33.0",
        format_id=family_alone,
    ),
    fault(
        "words-only",
        "whole-fragment round-trips",
        "released",
        "The load kernel counts 8-byte words, so up to 7 bytes at a fragment's end stay behind.",
        "vLLM 0.28.0 to 0.33.0, PR #57343",
        moved=whole_words,
    ),
    fault(
        "family-of-a-size-one-axis",
        "declared-family",
        "released",
        "With one local head both families fit the bytes; the stride of that axis is taken for evidence.",
        "vLLM 0.28.0 to 0.33.0",
        map_rank=family_by_head_stride,
    ),
    fault(
        "one-block-a-file",
        "every-field-separates direct-unchanged",
        "released",
        "The object tier leaves blocks per file at its default of 1, so files of other lengths share a name.",
        "vLLM 0.28.0",
        namespace_fields=one_block_a_file,
    ),
    fault(
        "short-read-deletes",
        "short-file",
        "released",
        "A file shorter than my row is called broken, although another engine wrote it whole.",
        "vLLM 0.28.0 to 0.33.0",
        short_read=remove_if_shorter,
    ),
    fault(
        "path-by-page-size",
        "path-by-fragment",
        "released",
        "The page is measured, the fragments are copied.",
        "vLLM 0.28.0 to 0.33.0, PR #57343",
        copy_path=path_by_page,
    ),
    fault(
        "direct-bytes-shared",
        "shared-iff-portable",
        "released",
        "One full-attention group is called topology-agnostic although its pages are rank by rank.",
        "vLLM PR #55191",
        may_share=direct_bytes_shared,
    ),
    fault(
        "one-group-alone",
        "shared-iff-portable",
        "released",
        "A full and sliding-window hybrid is refused although every layer is portable.",
        "vLLM 0.28.0, PR #51689",
        may_share=one_group_alone,
    ),
    fault(
        "local-heads-unseen-by-the-gate",
        "shared-iff-portable",
        "released",
        "The gate looks at the model's heads and not at the rank's.",
        "vLLM 0.28.0",
        portable_spec=local_heads_unseen,
    ),
    fault(
        "heads-by-modulo",
        "position tiling same-page-from-every-tp round-trips",
        "reported",
        "Rank to head by modulo: neighbouring replicas are given different heads.",
        "sgl-project/sglang#23746",
        head_share=heads_by_modulo,
    ),
    fault(
        "local-count-as-global",
        "position same-page-from-every-tp round-trips",
        "reported",
        "The rank-local head count is read as the model's.",
        "vllm-project/vllm-ascend#11885",
        head_replicas=local_count_as_global,
    ),
    fault(
        "rank-zero-alone-copies",
        "all-submit round-trips",
        "reported",
        "Rank 0 is copied and the page is called ready; the other shards are missing.",
        "vllm-project/vllm#52516",
        submitting_ranks=lambda maps: (0,),
    ),
    fault(
        "direct-read-as-canonical",
        "position same-page-from-every-tp round-trips round-trip-processes",
        "reported",
        "The rank's page verbatim at the rank's place, under the canonical name.",
        "vllm-project/vllm PR #55191",
        map_rank=direct_as_canonical,
    ),
    fault(
        "context-shards-as-replicas",
        "position tiling",
        "reported",
        "Ranks that hold different tokens are taken for copies of one another.",
        "LMCache PR #3561",
        context_rank=lambda grid, rank: 0,
    ),
    fault(
        "every-replica-writes",
        "one-writer all-submit accounting",
        "reported",
        "The latent is stored world-size times.",
        "vllm-project/vllm#47929",
        elected=lambda page, page_id: True,
    ),
    fault(
        "name-of-the-rank",
        "collapsed-name",
        "reported",
        "A shared file is put and looked up under the rank's own name.",
        "LMCache/LMCache#1728",
        file_name=name_of_the_rank,
    ),
    fault(
        "layout-left-out-of-the-name",
        "format-in-namespace",
        "reported",
        "Pages of two layouts share files of equal size.",
        "vllm-project/vllm#55904",
        namespace_fields=layout_left_out,
    ),
    fault(
        "one-fixed-writer",
        "one-writer accounting",
        "prototype",
        "The first replica writes every page, the others idle.",
        "vllm-project/vllm PR #48414, early drafts",
        elected=lambda page, page_id: page.writer_index == 0,
    ),
)
