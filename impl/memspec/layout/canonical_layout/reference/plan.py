"""Transfers: which pages, which addresses, who writes, when a page may be read, and the copy itself.

A store writes only the pages whose rank-consistent id elects this rank; a load is never filtered. Source:
vllm-project/vllm PR #48414, #56799 (every rank submits), #57343 (open: path by fragment).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memspec.layout.canonical_layout.data import Cell, CopyPlan, Direction, PageMap, PlanRefused, Region
from memspec.layout.canonical_layout.reference.mapping import fragments

ROW_ALIGNMENT = 4096  # bytes
KERNEL_LIMIT = 28 * 1024  # bytes; from here on the copy engine is faster (PCIe 5, vllm-project/vllm PR #57343)
KERNEL_WORD = 8  # bytes
KERNEL_LEAST = 16  # descriptors


def page_ids(chunks: Sequence[int], blocks_per_chunk: int, count: int, skip: int = 0) -> tuple[int, ...]:
    """Ids of ``count`` pages in the given chunks of the store, sub-block included, after ``skip`` pages of the first
    chunk.

    The same on every rank. Raises PlanRefused where skip is not inside the first chunk or the chunks do not hold that
    many pages.
    """
    if not 0 <= skip < blocks_per_chunk:
        raise PlanRefused(f"skip of {skip} pages; the first chunk has {blocks_per_chunk}")
    if min((count, *chunks)) < 0:
        raise PlanRefused(f"{count} pages of the chunks {tuple(chunks)}; none of the numbers is below 0")
    if count + skip > len(chunks) * blocks_per_chunk:
        raise PlanRefused(
            f"{count} pages after {skip} skipped; {len(chunks)} chunks hold {len(chunks) * blocks_per_chunk}"
        )
    return tuple(chunk * blocks_per_chunk + i for chunk in chunks for i in range(blocks_per_chunk))[skip : skip + count]


def lay_out(tensors: Sequence[Sequence[Sequence[PageMap]]], blocks_per_chunk: int) -> Region:
    """The region's row: for each tensor a cell as wide as the largest canonical page of its layers, times the blocks of
    a chunk.

    ``tensors[i][j]`` holds the maps of all ranks of layer j in tensor i. The row length follows from canonical pages
    alone: in a shared namespace two topologies must read files of equal length. Released versions count the bytes of
    all workers. Raises PlanRefused for a row without a tensor, and for a layer without a map.
    """
    if not tensors or not all(layers and all(layers) for layers in tensors):
        raise PlanRefused(
            f"{len(tensors)} tensors of {[len(layers) for layers in tensors]} layers; 0 of them may lack a map"
        )
    widths = [max(layer[0].canonical_bytes for layer in layers) for layers in tensors]
    row = -(-sum(widths) * blocks_per_chunk // ROW_ALIGNMENT) * ROW_ALIGNMENT
    starts = [sum(widths[:i]) * blocks_per_chunk for i in range(len(widths))]
    return Region(
        row, tuple(Cell(row, start, width, blocks_per_chunk) for start, width in zip(starts, widths, strict=True))
    )


def rows(capacity_bytes: int, region: Region) -> int:
    """Chunks that ``capacity_bytes`` hold."""
    return capacity_bytes // region.row_bytes


def canonical_address(cell: Cell, page: int) -> int:
    """Byte address of page ``page`` in the region."""
    chunk, block = divmod(page, cell.blocks_per_chunk)
    return chunk * cell.row_bytes + cell.start + block * cell.page_bytes


def elected(page: PageMap, page_id: int) -> bool:
    """Whether this rank writes the page: exactly one of the ranks that hold the same bytes does."""
    return page_id % page.writers == page.writer_index


def submitting_ranks(maps: Sequence[PageMap]) -> tuple[int, ...]:
    """The ranks that submit a store: all of them, whatever is replicated, since the rotation may elect any."""
    return tuple(range(len(maps)))


def complete(acknowledged: Collection[int], world: int) -> bool:
    """Whether a stored page may be read: every rank has acknowledged its part."""
    return set(acknowledged) >= set(range(world))


def plan_copies(
    direction: Direction, page: PageMap, blocks: Sequence[int], pages: Sequence[int], padded_page: int, cell: Cell
) -> CopyPlan:
    """The copies of one layer on one rank: device block ``blocks[i]`` and store page ``pages[i]`` belong together.

    ``padded_page`` is the distance between two device pages in bytes; only the page's own bytes move. Raises
    PlanRefused where blocks and pages differ in number or the canonical page does not fit its cell.
    """
    if len(blocks) != len(pages):
        raise PlanRefused(f"{len(blocks)} device blocks for {len(pages)} store pages")
    if min((0, *blocks, *pages)) < 0:
        raise PlanRefused(f"device block or store page {min((*blocks, *pages))}; none is below 0")
    if page.canonical_bytes > cell.page_bytes:
        raise PlanRefused(f"a canonical page of {page.canonical_bytes} B; the cell is {cell.page_bytes} B wide")
    kept = [(b, p) for b, p in zip(blocks, pages, strict=True) if direction == "load" or elected(page, p)]
    pieces = fragments(page)
    copies = []
    for block, page_id in kept:
        device, store = block * padded_page, canonical_address(cell, page_id)
        for local, canonical, size in pieces:
            ends = (device + local, store + canonical)
            copies.append((*(ends if direction == "store" else ends[::-1]), size))
    return CopyPlan(tuple(copies), len(kept), sum(size for _, _, size in copies))


def copy_path(direction: Direction, page: PageMap, pages: int) -> str:
    """ "kernel" or "copy-engine", decided on the fragments that are really copied. Released versions decide on the
    page.
    """
    pieces = fragments(page)
    small = max(size for _, _, size in pieces) < KERNEL_LIMIT
    whole_words = all(number % KERNEL_WORD == 0 for piece in pieces for number in piece)
    return (
        "kernel"
        if direction == "load" and small and whole_words and pages * len(pieces) >= KERNEL_LEAST
        else "copy-engine"
    )


def check_buffers(plan: CopyPlan, source_bytes: int, destination_bytes: int) -> None:
    """Raise PlanRefused where a copy reads or writes past the end of its buffer."""
    for start, end, size in plan.copies:
        if start + size > source_bytes or end + size > destination_bytes:
            raise PlanRefused(
                f"{size} bytes from {start} of {source_bytes} to {end} of {destination_bytes} leave their buffer"
            )


def moved(plan: CopyPlan, source: bytes, destination: bytes) -> bytes:
    """``destination`` after the copies of ``plan`` from ``source``; every fragment whole, whatever its length. Raises
    PlanRefused where one leaves its buffer.
    """
    check_buffers(plan, len(source), len(destination))
    after = bytearray(destination)
    for start, end, size in plan.copies:
        after[end : end + size] = source[start : start + size]
    return bytes(after)
