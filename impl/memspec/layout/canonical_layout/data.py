"""What crosses the boundary of the canonical layout: grids, specs, live views, maps, plans, names, refusals. Plain
data only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal["nhd", "hnd"]
Form = Literal["packed", "split", "latent", "opaque"]
Kind = Literal["full", "sliding", "latent", "sliding-latent", "mamba", "other"]
Quantisation = Literal["none", "per-tensor", "per-token-head"]
Direction = Literal["store", "load"]


class NotCertified(ValueError):
    """A rank of a layer cannot prove where its bytes lie; the layer falls back to opaque pages on every rank."""


class TilingBroken(ValueError):
    """The maps of a layer overlap, leave a gap, or disagree between ranks; names the byte and the limit."""


class StartRefused(ValueError):
    """A worker must not start: a layer has no map, or a portable claim covers a layer that is not portable."""


class PlanRefused(ValueError):
    """A transfer that does not fit its chunks or its pages; names the count and the limit."""


class NameRefused(ValueError):
    """A namespace or file name that would mix bytes; names the field."""


@dataclass(frozen=True)
class Grid:
    """The ranks that share one model: tensor parallel (``tp``), decode and prefill context parallel, pipeline parallel.

    ``interleave`` is the number of neighbouring tokens that stay on one context-parallel rank. Decode context
    parallelism lives inside the tensor-parallel ranks, so the world is ``tp * pcp * pp``.
    """

    tp: int = 1
    dcp: int = 1
    pcp: int = 1
    interleave: int = 1
    pp: int = 1

    @property
    def context(self) -> int:
        """Ranks between which the tokens of one page are divided."""
        return self.dcp * self.pcp

    @property
    def world(self) -> int:
        return self.tp * self.pcp * self.pp


@dataclass(frozen=True)
class Spec:
    """One layer's cache as one rank sees it. ``heads`` is LOCAL to the rank, ``model_heads`` is GLOBAL; sizes in
    elements or bytes as named.
    """

    kind: Kind
    block_tokens: int
    heads: int
    model_heads: int
    head_size: int
    element_bytes: int
    page_bytes: int
    quantisation: Quantisation = "none"
    tokens_per_state: int = 1


@dataclass(frozen=True)
class View:
    """Shape and strides, both in elements, of a live cache tensor; axis 0 is the block."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """A layer on all ranks: one view per rank (none where the cache is no single tensor) and the family that the
    engine declares.
    """

    name: str
    spec: Spec
    views: tuple[View | None, ...] = ()
    family: Family = "nhd"


@dataclass(frozen=True)
class CopyRun:
    """``count`` fragments of ``size`` bytes; fragment i lies at ``offset + i * stride`` of the local and of the
    canonical page.
    """

    local: int
    canonical: int
    size: int
    count: int = 1
    local_stride: int = 0
    canonical_stride: int = 0


@dataclass(frozen=True)
class PageMap:
    """Where one rank's page of one layer lies in the canonical page, and which pages this rank writes."""

    form: Form
    canonical_bytes: int
    writers: int
    writer_index: int
    runs: tuple[CopyRun, ...]
    portable: bool


@dataclass(frozen=True)
class Cell:
    """One tensor's place in every row of the region: row length, start inside the row, one page's width, pages a row
    holds.
    """

    row_bytes: int
    start: int
    page_bytes: int
    blocks_per_chunk: int = 1


@dataclass(frozen=True)
class Region:
    """The shared file: its row length in bytes and one cell per tensor, carved from the start of the row."""

    row_bytes: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class CopyPlan:
    """Copies as ``(source, destination, bytes)`` addresses, the pages that this rank moves, and their bytes."""

    copies: tuple[tuple[int, int, int], ...]
    pages: int
    moved_bytes: int


@dataclass(frozen=True)
class Group:
    """A cache group as it enters the namespace: tokens of one block (decode context parallelism counted) and its
    layers.
    """

    tokens_per_block: int
    layer_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Identity:
    """Everything that decides whether two engines may read each other's files. ``format`` is None for direct bytes."""

    model_name: str
    tokens_per_hash: int = 16
    blocks_per_file: int = 1
    dtype: str = "float16"
    groups: tuple[Group, ...] = ()
    tp: int = 1
    pp: int = 1
    pcp: int = 1
    dcp: int = 1
    format: str | None = None
    shared: bool = False
