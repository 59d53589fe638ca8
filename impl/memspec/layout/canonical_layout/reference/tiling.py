"""The check at start: what every rank writes, taken together, is the canonical page, each byte once.

Source: vllm-project/vllm PR #48414 (bare assertions there).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memspec.layout.canonical_layout.data import PageMap, TilingBroken
from memspec.layout.canonical_layout.reference.mapping import fragments


def check_layer(maps: Sequence[PageMap], page_bytes: int) -> None:
    """Raise TilingBroken unless the maps of one layer, one per rank, agree and tile.

    Each rank's runs tile its local page of ``page_bytes`` exactly; for each residue of the page id modulo the writers,
    the elected ranks' runs tile the canonical page exactly once.
    """
    size, writers = (maps[0].canonical_bytes, maps[0].writers) if maps else (0, 0)
    if writers < 1:
        raise TilingBroken(f"{len(maps)} maps that count {writers} writers; at least 1 is due")
    for rank, page in enumerate(maps):
        if page.canonical_bytes != size:
            raise TilingBroken(f"rank {rank} has a canonical page of {page.canonical_bytes} B; rank 0 has {size} B")
        if page.writers != writers:
            raise TilingBroken(f"rank {rank} counts {page.writers} writers; rank 0 counts {writers}")
        require_tiling(
            ((local, length) for local, _, length in fragments(page)), page_bytes, f"the local page of rank {rank}"
        )
    for residue in range(writers):
        elected = [page for page in maps if page.writer_index == residue]
        written = ((canonical, length) for page in elected for _, canonical, length in fragments(page))
        require_tiling(written, size, f"the canonical page of residue {residue}")


def require_tiling(pieces: Iterable[tuple[int, int]], size: int, what: str) -> None:
    """Raise TilingBroken unless the pieces ``(offset, bytes)`` cover ``[0, size)`` exactly once."""
    end = 0
    for offset, length in sorted(pieces):
        if offset != end:
            raise TilingBroken(
                f"{what} has {'a gap' if offset > end else 'an overlap'} at byte {min(offset, end)} of {size}"
            )
        end = offset + length
    if end != size:
        raise TilingBroken(f"{what} is tiled up to byte {end} of {size}")
