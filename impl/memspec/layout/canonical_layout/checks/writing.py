"""Page ids, writers, completion, what a load covers, accounting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, product

from memspec.conformance import Violation, expect, refused
from memspec.layout.canonical_layout.checks.base import CHECKS, Transfers
from memspec.layout.canonical_layout.checks.maps import maps_of
from memspec.layout.canonical_layout.checks.world import (
    LATENT,
    World,
    due,
    payload,
    seen,
    spec_of,
)
from memspec.layout.canonical_layout.data import Cell, CopyRun, PageMap

LATENT_BLOCK = replace(LATENT, block=4)
FAR = 2**22 + 2  # page id and device block whose addresses need more than 32 bits


@CHECKS.clause(
    lambda: [
        (((3, 7, 9), 4, 10, 2), (14, 15, 28, 29, 30, 31, 36, 37, 38, 39)),
        (((5,), 4, 4, 0), (20, 21, 22, 23)),
        (((6, 2), 1, 2, 0), (6, 2)),
        (((3, 7), 4, 7, 2), ("7", "8")),
        (((3, 7), 4, 2, 4), ("4",)),
        (((3,), 4, 2, -1), ("-1",)),
        (((3,), 4, -1, 0), ("-1",)),
        (((3, -2), 4, 8, 0), ("-2",)),
    ],
    Transfers,
)
def page_id(
    transfers: Transfers, case: tuple[tuple[tuple[int, ...], int, int, int], tuple[int, ...] | tuple[str, ...]]
) -> None:
    request, answer = case
    if isinstance(answer[0], str):
        refused(lambda: transfers.page_ids(*request), *answer)
    else:
        expect(tuple(transfers.page_ids(*request)), answer)
        expect(tuple(transfers.page_ids((), request[1], 0)), ())
        pages, byte = tuple(int(page) for page in answer), PageMap("latent", 1, 1, 0, (CopyRun(0, 0, 1),), True)
        blocks = range(len(pages) + 1)
        refused(lambda: transfers.plan_copies("load", byte, blocks, pages, 1, Cell(1, 0, 1)), len(blocks), len(pages))
        refused(lambda: transfers.plan_copies("load", byte, (0,), (-1,), 1, Cell(1, 0, 1)), -1)
        far = transfers.plan_copies("store", byte, (3, FAR), (5, FAR), 4096, Cell(8192, 16, 1, 4))
        expect(sorted(tuple(c) for c in far.copies), [(12288, 8209, 1), (FAR * 4096, FAR // 4 * 8192 + 18, 1)])


def stored_pages(transfers: Transfers, page: PageMap, pages: Sequence[int]) -> list[int]:
    """The pages that a rank writes, read from where its copies end; a chunk has two of them."""
    cell = Cell(2 * page.canonical_bytes, 0, page.canonical_bytes, 2)
    plan = transfers.plan_copies("store", page, range(len(pages)), pages, spec_bytes(page), cell)
    return sorted({end // page.canonical_bytes for _, end, _ in plan.copies})


def spec_bytes(page: PageMap) -> int:
    return sum(run.size * run.count for run in page.runs)


REPLICATED = [
    replace(LATENT_BLOCK, tp=4),
    replace(LATENT_BLOCK, tp=4, dcp=2),
    World("packed", "hnd", heads=2, tp=8),
    World("split", "nhd", heads=1, tp=2),
]


@CHECKS.clause(lambda: [*REPLICATED, World("packed", "nhd", tp=4)], Transfers)
def one_writer(transfers: Transfers, world: World) -> None:
    """Among the ranks that hold the same bytes, in rank order, page p is written by the (p mod number)-th."""
    for pages in ((0, 1, 2, 3, 4, 5, 6, 7), (11, 6, 1)):
        writers: dict[tuple[int, ...], list[list[int]]] = {}
        for rank, page in enumerate(maps_of(transfers, world)):
            writers.setdefault(due(world)[rank], []).append(stored_pages(transfers, page, pages))
        for places, seen_here in writers.items():
            expect(
                (places[0], seen_here),
                (places[0], [sorted(p for p in pages if p % len(seen_here) == i) for i in range(len(seen_here))]),
            )


@CHECKS.clause(lambda: [*REPLICATED, World("packed", "nhd", tp=4)], Transfers)
def all_submit(transfers: Transfers, world: World) -> None:
    """Together the ranks that really submit write every page, every byte once."""
    maps, pages = maps_of(transfers, world), tuple(range(12))
    written: dict[int, list[int]] = {page: [] for page in pages}
    for rank in transfers.submitting_ranks(maps):
        for page in stored_pages(transfers, maps[rank], pages):
            written[page].extend(canonical for _, canonical in seen(maps[rank]))
    lost = [page for page in pages if sorted(written[page]) != list(range(len(payload(world, 0))))]
    if lost:
        raise Violation(
            f"pages {lost} written in part, twice or not at all",
            "every page written once",
            [{"page": p, "bytes written": len(written[p]), "bytes due": len(payload(world, 0))} for p in lost],
        )


@CHECKS.clause(lambda: [1, 2, 4], Transfers)
def complete_after_writers(transfers: Transfers, world: int) -> None:
    """For every set of acknowledgements: complete exactly when no rank is missing, however often the others answer."""
    for heard in chain.from_iterable(combinations(range(world), n) for n in range(world + 1)):
        for answers in (heard, heard * 4, (*heard, *range(world, 2 * world))):
            expect((answers, bool(transfers.complete(answers, world))), (answers, len(heard) == world))


@CHECKS.clause(lambda: [*REPLICATED, World("packed", "nhd", tp=4), replace(LATENT_BLOCK, tp=2, pcp=2)], Transfers)
def load_is_whole(transfers: Transfers, world: World) -> None:
    size = spec_of(world).page_bytes
    for rank, page in enumerate(maps_of(transfers, world)):
        cell = Cell(page.canonical_bytes, 0, page.canonical_bytes)
        plan = transfers.plan_copies("load", page, (0, 1, 2), (4, 1, 3), size, cell)
        expect(
            (rank, sorted(end + b for _, end, length in plan.copies for b in range(length))),
            (rank, list(range(3 * size))),
        )


@CHECKS.clause(
    lambda: product(
        (replace(LATENT_BLOCK, tp=4), World("packed", "nhd", tp=4), World("split", "hnd", heads=2, tp=4)),
        ("store", "load"),
    ),
    Transfers,
)
def accounting(transfers: Transfers, case: tuple[World, str]) -> None:
    world, direction = case
    size, pages = spec_of(world).page_bytes, (3, 4, 5, 6, 7)
    sharers = max(sum(places == other for other in due(world)) for places in due(world))
    for rank, page in enumerate(maps_of(transfers, world)):
        cell = Cell(page.canonical_bytes, 0, page.canonical_bytes)
        plan = transfers.plan_copies(direction, page, range(5), pages, size, cell)  # type: ignore[arg-type]
        turn = sum(due(world)[rank] == other for other in due(world)[:rank])
        kept = 5 if direction == "load" else sum(p % sharers == turn for p in pages)
        expect(
            (rank, plan.pages, plan.moved_bytes, sum(size for *_, size in plan.copies)),
            (rank, kept, kept * size, kept * size),
        )
