"""What crosses the boundary: geometries, widths, drafts, servings, prices, pools, plans, refusals. Bytes and tokens of one rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Heads:
    """Layers that keep K and V by head: ``layers`` x ``heads`` x (``head_dim`` + ``v_head_dim``) elements of ``itemsize`` bytes a token.

    ``heads`` are the model's, before sharding. ``extra`` bytes a token lie beside all layers together and are sharded with them (scales);
    ``indexer`` bytes a token are kept whole by every rank of a context-parallel group (index keys).
    """

    layers: int
    heads: int
    head_dim: int
    v_head_dim: int
    itemsize: int = 2
    extra: int = 0
    indexer: int = 0


@dataclass(frozen=True)
class Latent:
    """Layers that keep one latent of ``width`` elements a token, whole on each rank (MLA)."""

    layers: int
    width: int
    itemsize: int = 2
    extra: int = 0
    indexer: int = 0


Geometry = Heads | Latent


@dataclass(frozen=True)
class Parallel:
    """Widths in ranks. ``attention`` ranks share the target's heads; ``group`` of them, as formed, share a sequence.

    ``draft`` is the width over which the draft's heads are sharded when its pool is allocated; None means ``attention``. The rule reads
    neither ``tensor``, the width of the whole server, nor ``asked``, the group size on the command line: both are there to be mistaken.
    """

    attention: int = 1
    group: int = 1
    draft: int | None = None
    tensor: int | None = None
    asked: int | None = None


@dataclass(frozen=True)
class Draft:
    """A draft model. ``geometry`` is its own, None where it cannot be read; ``cell``, where given, is its own bytes a token instead.

    ``layers`` is the layer count that the target's configurator knows; of these, ``window_layers`` keep a row for each token of the window
    pool, and ``local_layers`` have the window's geometry but a row for each token of the full pool.
    """

    algorithm: str
    geometry: Geometry | None = None
    layers: int | None = None
    cell: int | None = None
    window_layers: int = 0
    local_layers: int = 0


@dataclass(frozen=True)
class Window:
    """Sliding-window layers with a pool of their own: ``ratio`` (decimal or fraction, as text) of the full pool's tokens, or, where
    ``request_cap`` is given, that many tokens. ``tokens`` is how far a layer looks back, None where nobody says.
    """

    geometry: Geometry
    ratio: str = "0.8"
    tokens: int | None = None
    request_cap: int | None = None


@dataclass(frozen=True)
class Serving:
    """What one rank is to serve. ``target`` is the full-attention part; with 0 layers and a ``window`` there is a window pool only.

    ``draft_worker``: this is the draft's own worker, whose target is the draft. ``max_total_tokens`` is the user's cap;
    ``other_stages`` are the tokens that the other pipeline stages can hold.
    """

    target: Geometry
    parallel: Parallel = Parallel()
    page_size: int = 1
    draft: Draft | None = None
    window: Window | None = None
    draft_worker: bool = False
    max_total_tokens: int | None = None
    other_stages: tuple[int, ...] = ()


@dataclass(frozen=True)
class Memory:
    """Bytes of a device: free ``before`` the weights were loaded and ``after``. ``fraction`` (text) of ``before`` may be used statically.

    ``multimodal`` and ``state_pools`` are set aside; ``activation`` is the least slack, where pools are made after graphs were captured.
    """

    before: int
    after: int
    fraction: str
    multimodal: int = 0
    state_pools: int = 0
    activation: int = 0


class Cell(NamedTuple):
    """Bytes for one token. ``own`` is the draft by its own geometry, ``layers_*`` the draft by the target's layers: one of the two is 0.

    Whatever is replicated is counted for every id that a target row stands for. Without a full pool, "full" means the only pool.
    """

    target_full: int
    target_window: int
    own: int
    layers_full: int
    layers_window: int


class Pools(NamedTuple):
    """Rows of a worker's pools: full, window, compressed by 4 and by 128, and compression states."""

    full: int
    window: int = 0
    c4: int = 0
    c128: int = 0
    state: int = 0


class DraftPool(NamedTuple):
    """The draft's pools, the ids in one of its pages, and the rows that back ids: the full pool and the padding page before it."""

    pools: Pools
    page_size: int
    backing_rows: int


@dataclass(frozen=True)
class Plan:
    """A budget and what becomes of it. ``divided`` tokens come out of the division, ``profiled`` are whole pages of them.

    ``tokens`` are what is left after caps.

    ``padding_bytes`` are for the padding page of each pool and come from outside the budget.
    """

    budget: int
    cell: Cell
    divided: int
    profiled: int
    tokens: int
    window_tokens: int
    draft: DraftPool | None
    target_bytes: int
    draft_bytes: int
    padding_bytes: int

    @property
    def headroom(self) -> int:
        """Bytes of the budget that no pool takes."""
        return self.budget - self.target_bytes - self.draft_bytes


class BudgetRefused(ValueError):
    """What was asked for has no safe meaning, or does not fit."""


class SettingRefused(BudgetRefused):
    """A setting without meaning; names the value and the limit."""


class CellRefused(BudgetRefused):
    """A price that cannot be: not above 0, or a draft whose price nobody knows."""


class NoRoom(BudgetRefused):
    """Weights and reserves leave nothing for pools; names the bytes and a fraction that would leave some."""


class NotEnoughMemory(BudgetRefused):
    """The budget holds less than one page, or a window pool that admits no request; names both numbers."""
