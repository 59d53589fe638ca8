"""Which heads and tokens a rank holds, and which rank writes a replicated page.

T = ``grid.tp``, H = ``spec.model_heads`` (global), h = ``spec.heads`` (local). Rank r has ``tp_rank = r mod T`` and
``pcp_rank = r // T``. Source: vllm-project/vllm PR #48414, as released in 0.33.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from memspec.layout.canonical_layout.data import Grid, NotCertified, Spec


@dataclass(frozen=True)
class Share:
    """``first_head``: the rank's first global head; ``shards``: different head shards; ``context_rank``: its slice
    of the tokens.
    """

    first_head: int
    shards: int
    context_rank: int
    writers: int
    writer_index: int


def context_rank(grid: Grid, rank: int) -> int:
    """The rank's place among the ranks that divide the tokens of a page: prefill groups outside, decode groups
    inside.
    """
    return rank // grid.tp * grid.dcp + rank % grid.tp % grid.dcp


def require_plain_tokens(spec: Spec, grid: Grid) -> None:
    """Raise NotCertified where a page is not an array of one cell per token, or tokens do not divide into whole
    interleaves.
    """
    if spec.quantisation == "per-token-head":
        raise NotCertified(
            "quantisation is per-token-head; scales beside each head are not a cell of the page, limit is per-tensor"
        )
    if spec.tokens_per_state != 1:
        raise NotCertified(f"a state stands for {spec.tokens_per_state} tokens; the limit is 1")
    if min(grid.dcp, grid.pcp, grid.interleave, spec.block_tokens) < 1:
        raise NotCertified(
            f"context parallelism {grid.dcp} x {grid.pcp}, interleave {grid.interleave}, blocks of {spec.block_tokens} "
            "tokens; each is at least 1"
        )
    if grid.context > 1 and spec.block_tokens % grid.interleave:
        raise NotCertified(f"interleave {grid.interleave} does not divide the block of {spec.block_tokens} tokens")


def head_replicas(spec: Spec, grid: Grid) -> int:
    """Ranks of one tensor-parallel group that hold the same heads. Raises NotCertified where heads and ranks do not
    divide.
    """
    heads, ranks = spec.model_heads, grid.tp
    if min(heads, ranks) < 1 or max(heads, ranks) % min(heads, ranks):
        raise NotCertified(f"{heads} heads and {ranks} tensor-parallel ranks: neither divides the other")
    if spec.heads != max(1, heads // ranks):
        raise NotCertified(
            f"the spec names {spec.heads} local heads; {heads} heads over {ranks} ranks leave {max(1, heads // ranks)}"
        )
    return max(1, ranks // heads)


def head_share(spec: Spec, grid: Grid, rank: int) -> Share:
    """The share of a rank of a layer with heads (MHA, GQA, MQA). Raises NotCertified.

    Replicas of a head are neighbours: rank 1 of 4 holds head 0 of 2, not head 1. Decode context parallelism may divide
    tokens only among replicas.
    """
    require_plain_tokens(spec, grid)
    replicas = head_replicas(spec, grid)
    if replicas % grid.dcp:
        raise NotCertified(
            f"decode context parallelism {grid.dcp} does not divide the {replicas} ranks that hold the same heads"
        )
    tp_rank = rank % grid.tp
    return Share(tp_rank // replicas * spec.heads, grid.tp // replicas, context_rank(grid, rank),
                 replicas // grid.dcp, tp_rank % replicas // grid.dcp)  # fmt: skip


def latent_share(spec: Spec, grid: Grid, rank: int) -> Share:
    """The share of a rank of a latent layer (MLA): every tensor-parallel rank holds the same rows. Raises NotCertified.

    Certified from the spec alone; no tensor is looked at.
    """
    require_plain_tokens(spec, grid)
    if spec.page_bytes % spec.block_tokens:
        raise NotCertified(f"a page of {spec.page_bytes} B is no whole number of rows for {spec.block_tokens} tokens")
    if grid.tp % grid.dcp:
        raise NotCertified(f"decode context parallelism {grid.dcp} does not divide {grid.tp} tensor-parallel ranks")
    return Share(0, 1, context_rank(grid, rank), grid.tp // grid.dcp, rank % grid.tp // grid.dcp)
