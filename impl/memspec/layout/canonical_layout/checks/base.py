"""The clauses' registry and what a subject offers to be checked: four facets of plain callables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from memspec.conformance import Checks
from memspec.layout.canonical_layout.data import (
    Cell,
    CopyPlan,
    Direction,
    Form,
    Grid,
    Identity,
    Layer,
    PageMap,
    Region,
    Spec,
)

CHECKS = Checks("canonical-layout")


class Mapper(Protocol):
    """Where a rank's bytes lie in the canonical page."""

    def map_layer(self, layer: Layer, grid: Grid) -> tuple[PageMap, ...]: ...
    def check_layer(self, maps: Sequence[PageMap], page_bytes: int) -> None: ...


class Transfers(Mapper, Protocol):
    """Which pages move where, who writes them, and the copy itself."""

    def page_ids(self, chunks: Sequence[int], blocks_per_chunk: int, count: int, skip: int = 0) -> tuple[int, ...]: ...
    def lay_out(self, tensors: Sequence[Sequence[Sequence[PageMap]]], blocks_per_chunk: int) -> Region: ...
    def rows(self, capacity_bytes: int, region: Region) -> int: ...
    def submitting_ranks(self, maps: Sequence[PageMap]) -> tuple[int, ...]: ...
    def complete(self, acknowledged: Collection[int], world: int) -> bool: ...
    def plan_copies(self, direction: Direction, page: PageMap, blocks: Sequence[int], pages: Sequence[int], padded_page: int,
                    cell: Cell) -> CopyPlan: ...  # fmt: skip
    def copy_path(self, direction: Direction, page: PageMap, pages: int) -> str: ...
    def moved(self, plan: CopyPlan, source: bytes, destination: bytes) -> bytes: ...


class Sharing(Mapper, Protocol):
    """Who may share a namespace, and what a worker refuses at start."""

    def may_share(self, specs: Sequence[Spec], grid: Grid, canonical: bool) -> bool: ...
    def start_worker(self, shared: bool, layers: Sequence[tuple[str, Sequence[PageMap]]]) -> bool: ...


class Names(Protocol):
    """The format's identity, the namespace and the files."""

    def format_id(self, layout: str, forms: Iterable[Form], version: int = 1) -> str: ...
    def namespace_fields(self, identity: Identity) -> dict[str, Any]: ...
    def fingerprint(self, identity: Identity, digits: int = 12) -> str: ...
    def file_name(self, root: str, identity: Identity, rank: int, key: bytes) -> str: ...
    def short_read(self, held: int, wanted: int, recorded: int | None) -> str: ...
