"""The round trip, which bytes move, fragments of any length, cells and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from memspec.conformance import Violation, expect, once, refused
from memspec.layout.canonical_layout.checks.base import CHECKS, Transfers
from memspec.layout.canonical_layout.checks.maps import maps_of
from memspec.layout.canonical_layout.checks.world import (
    FORMS,
    LATENT,
    World,
    layer_of,
    local_payload,
    payload,
    spec_of,
)
from memspec.layout.canonical_layout.checks.writing import LATENT_BLOCK
from memspec.layout.canonical_layout.data import Cell, CopyRun, Grid, PageMap

GAP = 0xEE  # what lies where no byte of a page does


PADDING = 3  # bytes after each device page


CHUNKS = (2, 0)  # of the three in the store


def trip_pages(blocks_per_chunk: int) -> tuple[int, ...]:
    """The store pages of a round trip; with several blocks a chunk the first one is skipped."""
    return tuple(chunk * blocks_per_chunk + i for chunk in CHUNKS for i in range(blocks_per_chunk))[
        blocks_per_chunk > 1 :
    ]


def device_of(world: World, rank: int, pages: Sequence[int]) -> bytes:
    """A device whose blocks, last to first, hold the given pages, each followed by padding."""
    return b"".join(local_payload(world, rank, page) + bytes([GAP]) * PADDING for page in reversed(pages))


@once
def round_trip(
    transfers: Transfers, writer: World, reader: World, blocks_per_chunk: int
) -> tuple[bytes, tuple[bytes, ...]]:
    """Store with one grid, load with the other: what the store holds outside the pages, and what every reader's device
    holds.

    The store is full of GAP before, and everything outside the pages is scrambled before the load.
    """
    try:
        return carried(transfers, writer, reader, blocks_per_chunk)
    except ValueError as refusal:
        raise Violation(
            f"refused: {refusal}", f"pages that {writer.tp} ranks write and {reader.tp} ranks read"
        ) from refusal


def carried(
    transfers: Transfers, writer: World, reader: World, blocks_per_chunk: int
) -> tuple[bytes, tuple[bytes, ...]]:
    due_pages = trip_pages(blocks_per_chunk)
    ids = transfers.page_ids(CHUNKS, blocks_per_chunk, len(due_pages), int(blocks_per_chunk > 1))
    blocks = tuple(reversed(range(len(ids))))
    maps = maps_of(transfers, writer)
    region = transfers.lay_out([[maps], [maps]], blocks_per_chunk)
    cell, width = region.cells[1], len(payload(writer, 0))
    store = bytes([GAP]) * (3 * region.row_bytes)
    for rank in transfers.submitting_ranks(maps):
        plan = transfers.plan_copies("store", maps[rank], blocks, ids, spec_of(writer).page_bytes + PADDING, cell)
        store = transfers.moved(plan, device_of(writer, rank, due_pages), store)
    outside, scrambled, end = [], bytearray(bytes(range(251)) * (len(store) // 251 + 1))[: len(store)], 0
    for page in sorted(due_pages):
        start = page // blocks_per_chunk * region.row_bytes + cell.start + page % blocks_per_chunk * cell.page_bytes
        outside.append(store[end:start])
        end = start + width
        scrambled[start:end] = store[start:end]
    padded = spec_of(reader).page_bytes + PADDING
    loaded = [
        transfers.moved(
            transfers.plan_copies("load", page, blocks, ids, padded, cell),
            bytes(scrambled),
            bytes([GAP]) * (padded * len(ids)),
        )
        for page in maps_of(transfers, reader)
    ]
    return b"".join(outside) + store[end:], tuple(loaded)


@cache
def trips() -> tuple[tuple[World, World, int], ...]:
    """Writer and reader sizes that divide or multiply the heads, replication on either side, one block and two
    blocks a chunk.
    """
    sizes = [(1, 2), (2, 4), (4, 2), (2, 1), (4, 4), (8, 2), (2, 8)]
    headed = [
        (World(form, family, tp=w), World(form, family, tp=r), 1 + (w > r)) for form, family in FORMS for w, r in sizes
    ]
    latent = [(replace(LATENT_BLOCK, tp=w), replace(LATENT_BLOCK, tp=r), 2) for w, r in ((4, 1), (1, 4), (2, 4))]
    same = World("packed", "nhd", heads=2, tp=4, dcp=2)
    return (*headed, *latent, (same, same, 2))


@CHECKS.clause(trips, Transfers)
def round_trips(transfers: Transfers, case: tuple[World, World, int]) -> None:
    writer, reader, blocks_per_chunk = case
    _, loaded = round_trip(transfers, writer, reader, blocks_per_chunk)
    size, pages = spec_of(reader).page_bytes, trip_pages(blocks_per_chunk)
    for rank, device in enumerate(loaded):
        held_here = [device[start : start + size] for start in range(0, (size + PADDING) * len(pages), size + PADDING)]
        wrong = [
            page
            for page, bytes_here in zip(reversed(pages), held_here, strict=True)
            if bytes_here != local_payload(reader, rank, page)
        ]
        if wrong:
            raise Violation(
                f"rank {rank} of {reader.tp} reads other bytes in pages {wrong}",
                f"the bytes that {writer.tp} ranks wrote",
                [{"rank": rank, "page": page, "written": writer.tp, "read": reader.tp} for page in wrong],
            )


@CHECKS.clause(trips, Transfers)
def only_cells_move(transfers: Transfers, case: tuple[World, World, int]) -> None:
    """No byte lands between pages, in the other tensor's cell, in the row's tail or in a device page's padding, and
    none comes from there.
    """
    writer, reader, blocks_per_chunk = case
    outside, loaded = round_trip(transfers, writer, reader, blocks_per_chunk)
    size = spec_of(reader).page_bytes
    expect(outside.count(GAP), len(outside))
    for device in loaded:
        expect(len(device), (size + PADDING) * len(trip_pages(blocks_per_chunk)))
        padding = b"".join(
            device[start + size : start + size + PADDING] for start in range(0, len(device), size + PADDING)
        )
        expect(set(padding), {GAP})


INDEXER = replace(LATENT, head_size=132, block=64, tp=2, dcp=2)  # 128 B of keys and a 4 B scale a token


@CHECKS.clause(
    lambda: [
        (size, pitch) for size in (1, 7, 8, 9, 15, 63, 132, 4097, 40007, 70001) for pitch in (size, size + 1, 2 * size)
    ],
    Transfers,
)
def whole_fragment(transfers: Transfers, case: tuple[int, int]) -> None:
    size, pitch = case
    page = PageMap("latent", 3 * pitch, 1, 0, (CopyRun(0, 0, size, 3, size, pitch),), True)
    source = (bytes(range(1, 200)) * (3 * size // 199 + 1))[: 3 * size]
    plan = transfers.plan_copies("store", page, (0,), (0,), 3 * size, Cell(3 * pitch, 0, 3 * pitch))
    after = transfers.moved(plan, source, bytes(3 * pitch))
    expect(after, b"".join(source[i * size : (i + 1) * size] + bytes(pitch - size) for i in range(3)))
    short = 2 * pitch + size - 1
    refused(lambda: transfers.moved(plan, source, bytes(short)), short)
    refused(lambda: transfers.moved(plan, source[:-1], bytes(3 * pitch)), 3 * size - 1)


@CHECKS.clause(
    lambda: [
        ("load", INDEXER, 4, "copy-engine"),  # fragments of 132 B in a page of 8448 B, which is a multiple of 8
        (
            "load",
            World("split", "nhd", heads=2, tp=2, block=256, head_size=128),
            1,
            "kernel",
        ),  # 512 fragments of 128 B in a page of 64 KiB
        (
            "load",
            World("packed", "hnd", heads=2, tp=2, block=256, head_size=128),
            16,
            "copy-engine",
        ),  # one fragment of 64 KiB
        ("load", World("packed", "hnd", heads=2, tp=2, block=16, head_size=128), 16, "kernel"),
        ("load", World("packed", "hnd", heads=2, tp=2, block=16, head_size=128), 15, "copy-engine"),
        ("store", World("packed", "hnd", heads=2, tp=2, block=16, head_size=128), 64, "copy-engine"),
    ],
    Transfers,
)
def path_by_fragment(transfers: Transfers, case: tuple[str, World, int, str]) -> None:
    direction, world, pages, path = case
    expect(transfers.copy_path(direction, transfers.map_layer(layer_of(world), world.grid)[0], pages), path)  # type: ignore[arg-type]


def bare(size: int, ranks: int = 1) -> tuple[PageMap, ...]:
    return (PageMap("latent", size, ranks, 0, (CopyRun(0, 0, size),), True),) * ranks


@CHECKS.clause(
    lambda: [
        (((4096, 2048),), 1, (4096,), (0,)),
        (((2048, 4096), (512,)), 4, (4096, 512), (0, 16384)),
        (((100,), (7,), (1,)), 1, (100, 7, 1), (0, 100, 107)),
    ],
    Transfers,
)
def cell_width(
    transfers: Transfers, case: tuple[tuple[tuple[int, ...], ...], int, tuple[int, ...], tuple[int, ...]]
) -> None:
    tensors, blocks_per_chunk, widths, starts = case
    region = transfers.lay_out([[bare(size) for size in layers] for layers in tensors], blocks_per_chunk)
    expect((tuple(c.page_bytes for c in region.cells), tuple(c.start for c in region.cells)), (widths, starts))
    expect(
        {c.blocks_per_chunk for c in region.cells} | {c.row_bytes - region.row_bytes for c in region.cells},
        {blocks_per_chunk, 0},
    )
    refused(lambda: transfers.lay_out([], blocks_per_chunk), 0)
    refused(lambda: transfers.lay_out([[()]], blocks_per_chunk), 0)
    wide = bare(widths[0] + 1)[0]
    refused(
        lambda: transfers.plan_copies("store", wide, (0,), (0,), widths[0] + 1, region.cells[0]),
        widths[0] + 1,
        widths[0],
    )


@CHECKS.clause(
    lambda: [
        ([World("packed", "hnd", heads=4, block=16, head_size=128, element_bytes=2)] * 2, (1, 2, 4, 8, 16), 65536, 9),
        (
            [replace(LATENT, head_size=656, block=64)] * 4 + [replace(LATENT, head_size=132, block=64)] * 3,
            (1, 2, 4),
            196608,
            8,
        ),
    ],
    Transfers,
)
def row_length(transfers: Transfers, case: tuple[list[World], tuple[int, ...], int, int]) -> None:
    layers, sizes, row, chunks = case
    for tp in sizes:
        tensors = [[transfers.map_layer(layer_of(replace(world, tp=tp)), Grid(tp))] for world in layers]
        region = transfers.lay_out(tensors, 1)
        expect((tp, region.row_bytes, transfers.rows(chunks * row + row - 1, region)), (tp, row, chunks))
