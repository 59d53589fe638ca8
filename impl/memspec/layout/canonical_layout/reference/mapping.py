"""From a rank's page to the canonical page: runs of fragments, coalesced; opaque pages where anything is in doubt.

With N = block tokens x context ranks, global head g, canonical token t and half 0 for K and 1 for V, a cell of D
elements of e bytes lies at ``((half * N + t) * H + g) * D * e`` (split NHD), ``((half * H + g) * N + t) * D * e``
(split HND), ``(t * H + g) * 2D * e`` (packed NHD), ``(g * N + t) * 2D * e`` (packed HND); a latent row at ``t * row``.
Source: vllm-project/vllm PR #48408 and #48414.
"""

from __future__ import annotations

from collections.abc import Iterator

from memspec.layout.canonical_layout.data import CopyRun, Family, Form, Grid, Layer, NotCertified, PageMap, Spec
from memspec.layout.canonical_layout.reference.certify import certify
from memspec.layout.canonical_layout.reference.sharding import Share, head_share, latent_share

OPAQUE_KINDS = ("mamba", "sliding-latent")  # known, and never certified
HEADED_KINDS = ("full", "sliding")


def map_layer(layer: Layer, grid: Grid) -> tuple[PageMap, ...]:
    """The map of every rank of a layer; empty where there is none (pipeline parallelism, a kind of cache that is not
    known).

    One rank that cannot be certified makes the layer opaque on all of them.
    """
    if grid.pp > 1 or layer.spec.kind not in (*HEADED_KINDS, *OPAQUE_KINDS, "latent"):
        return ()
    try:
        return tuple(map_rank(layer, grid, rank) for rank in range(grid.world))
    except NotCertified:
        return tuple(opaque_map(layer.spec, grid, rank) for rank in range(grid.world))


def map_rank(layer: Layer, grid: Grid, rank: int) -> PageMap:
    """The canonical map of one rank. Raises NotCertified."""
    spec = layer.spec
    if spec.kind in OPAQUE_KINDS:
        raise NotCertified(f"a {spec.kind} page has no canonical form; full, sliding and latent pages have")
    if spec.kind == "latent":
        form: Form = "latent"
        share = latent_share(spec, grid, rank)
    else:
        form = certify(layer.views[rank] if rank < len(layer.views) else None, spec, layer.family)
        share = head_share(spec, grid, rank)
    runs = [
        run
        for region in regions(form, layer.family, spec, share, grid)
        for run in token_runs(*region, spec.block_tokens, share, grid)
    ]
    return PageMap(
        form,
        grid.context * share.shards * spec.page_bytes,
        share.writers,
        share.writer_index,
        coalesce(runs),
        grid.context == 1,
    )


def opaque_map(spec: Spec, grid: Grid, rank: int) -> PageMap:
    """The whole unpadded page, verbatim, at the rank's own place: bound to the topology that wrote it."""
    return PageMap(
        "opaque", grid.world * spec.page_bytes, 1, 0, (CopyRun(0, rank * spec.page_bytes, spec.page_bytes),), False
    )


def regions(form: Form, family: Family, spec: Spec, share: Share, grid: Grid) -> Iterator[tuple[int, int, int, int]]:
    """Stretches of the local page in which the token is the only coordinate.

    Yields ``(local start, canonical start of token 0, bytes of a token, canonical bytes between two tokens)``.
    """
    tokens, all_tokens, heads, all_heads = (
        spec.block_tokens,
        spec.block_tokens * grid.context,
        spec.heads,
        spec.heads * share.shards,
    )
    if form == "latent":
        row = spec.page_bytes // tokens
        yield 0, 0, row, row
        return
    halves, cell = (
        (1, 2 * spec.head_size * spec.element_bytes) if form == "packed" else (2, spec.head_size * spec.element_bytes)
    )
    for half in range(halves):
        if family == "nhd":
            yield (
                half * tokens * heads * cell,
                (half * all_tokens * all_heads + share.first_head) * cell,
                heads * cell,
                all_heads * cell,
            )
        else:
            for head in range(heads):
                first = half * all_heads + share.first_head + head
                yield (half * heads + head) * tokens * cell, first * all_tokens * cell, cell, cell


def token_runs(
    local: int, canonical: int, size: int, pitch: int, tokens: int, share: Share, grid: Grid
) -> Iterator[CopyRun]:
    """The runs of one region. Local token l is canonical token ``(l // I * cp + k) * I + l mod I`` for interleave I
    and context rank k.
    """
    stretch = grid.interleave if grid.context > 1 else tokens
    first = canonical + share.context_rank * stretch * pitch
    jump = grid.context * stretch * pitch
    if size == pitch:
        yield CopyRun(local, first, stretch * size, tokens // stretch, stretch * size, jump)
        return
    for i in range(tokens // stretch):
        yield CopyRun(local + i * stretch * size, first + i * jump, size, stretch, size, pitch)


def coalesce(runs: list[CopyRun]) -> tuple[CopyRun, ...]:
    """Fewer, longer fragments: a run that is dense on both sides is one fragment; neighbours that touch on both
    sides are one.
    """
    joined: list[CopyRun] = []
    for run in map(densified, runs):
        last = joined[-1] if joined else None
        if (
            last
            and last.count == run.count == 1
            and run.local - last.local == run.canonical - last.canonical == last.size
        ):
            joined[-1] = CopyRun(last.local, last.canonical, last.size + run.size)
        else:
            joined.append(run)
    return tuple(joined)


def densified(run: CopyRun) -> CopyRun:
    """The run as a single fragment where that is the same bytes."""
    if run.count == 1 or run.local_stride == run.canonical_stride == run.size:
        return CopyRun(run.local, run.canonical, run.size * run.count)
    return run


def fragments(page: PageMap) -> tuple[tuple[int, int, int], ...]:
    """Every fragment of a map, unrolled: ``(local offset, canonical offset, bytes)``."""
    return tuple((run.local + i * run.local_stride, run.canonical + i * run.canonical_stride, run.size)
                 for run in page.runs for i in range(run.count))  # fmt: skip
