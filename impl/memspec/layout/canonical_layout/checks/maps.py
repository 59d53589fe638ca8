"""Positions, tiling, the check at start, coalescing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from memspec.conformance import Violation, expect, once, refused
from memspec.layout.canonical_layout.checks.base import CHECKS, Mapper
from memspec.layout.canonical_layout.checks.world import (
    FORMS,
    LATENT,
    World,
    due,
    layer_of,
    local_payload,
    payload,
    seen,
    spec_of,
)
from memspec.layout.canonical_layout.data import CopyRun, PageMap


@once
def maps_of(mapper: Mapper, world: World) -> tuple[PageMap, ...]:
    return mapper.map_layer(layer_of(world), world.grid)


@cache
def worlds() -> tuple[World, ...]:
    """All forms and families over grids with sharding, replication and context parallelism; block and interleave of
    1 to 4.
    """
    grids = [
        {"tp": 1},
        {"tp": 2},
        {"tp": 4},
        {"tp": 8},
        {"tp": 4, "heads": 2},
        {"tp": 2, "heads": 6, "block": 3},
        {"tp": 4, "heads": 2, "dcp": 2},
        {"tp": 8, "heads": 2, "dcp": 2, "interleave": 2},
        {"tp": 2, "heads": 2, "pcp": 2},
        {"tp": 4, "heads": 1, "dcp": 2, "pcp": 2, "block": 4, "interleave": 2},
        {"tp": 2, "heads": 2, "block": 1},
        {"tp": 2, "element_bytes": 2},
        {"tp": 4, "heads": 2, "dcp": 2, "element_bytes": 2},
    ]
    headed = [World(form, family, **{"heads": 4, **grid}) for form, family in FORMS for grid in grids]  # type: ignore[arg-type]
    latent = [
        replace(LATENT, tp=t, dcp=d, pcp=p, interleave=i, block=4)
        for t, d, p, i in [
            (1, 1, 1, 1),
            (2, 1, 1, 1),
            (4, 1, 1, 1),
            (2, 2, 1, 1),
            (4, 2, 1, 2),
            (2, 1, 2, 4),
            (4, 2, 2, 1),
        ]
    ]
    return (*headed, *latent)


@CHECKS.clause(worlds, Mapper)
def position(mapper: Mapper, world: World) -> None:
    for rank, page in enumerate(maps_of(mapper, world)):
        expect((rank, page.form, seen(page)), (rank, world.form, tuple(enumerate(due(world)[rank]))))


@CHECKS.clause(lambda: [World(form, family, heads=h) for form, family in FORMS for h in (1, 2, 4)] + [LATENT], Mapper)
def same_page_from_every_tp(mapper: Mapper, world: World) -> None:
    """The page that the ranks of each size write together, byte for byte."""
    pages = {}
    for tp in (1, 2, 4, 8):
        sized = replace(world, tp=tp)
        page = dict.fromkeys(range(len(payload(world, 0))), -1)
        for rank, mapped in enumerate(maps_of(mapper, sized)):
            held_here = local_payload(sized, rank, 0)
            page.update({canonical: held_here[local] for local, canonical in seen(mapped)})
        pages[tp] = list(page.values())
    expect(pages, {tp: list(payload(world, 0)) for tp in pages})


@CHECKS.clause(worlds, Mapper)
def tiling(mapper: Mapper, world: World) -> None:
    maps, page_bytes = maps_of(mapper, world), spec_of(world).page_bytes
    for rank, page in enumerate(maps):
        expect((rank, [local for local, _ in seen(page)]), (rank, list(range(page_bytes))))
    for residue in range(max(page.writers for page in maps)):
        written = sorted(c for page in maps if page.writer_index == residue for _, c in seen(page))
        expect((residue, written), (residue, list(range(maps[0].canonical_bytes))))
    require_accepted(mapper, maps, page_bytes)


def require_accepted(mapper: Mapper, maps: Sequence[PageMap], page_bytes: int) -> None:
    """Raise Violation where the check at start refuses maps that tile."""
    try:
        mapper.check_layer(maps, page_bytes)
    except ValueError as refusal:
        raise Violation(f"refusal {str(refusal)!r}", "maps that tile are accepted") from refusal


def whole(local: int, canonical: int, size: int, page: int = 16, writers: int = 1, index: int = 0) -> PageMap:
    return PageMap("packed", page, writers, index, (CopyRun(local, canonical, size),), True)


@CHECKS.clause(
    lambda: [
        ((whole(0, 0, 8), whole(0, 8, 8, page=24)), (24, 16)),
        ((whole(0, 0, 8), whole(0, 8, 8, writers=2)), (2, 1)),
        ((whole(0, 0, 8), whole(0, 0, 8)), (0,)),
        ((whole(0, 0, 8), whole(0, 7, 8)), (7,)),
        ((whole(0, 0, 8, page=17), whole(0, 9, 8, page=17)), (8,)),
        ((whole(0, 0, 8, page=17), whole(0, 8, 8, page=17)), (16,)),
        ((whole(0, 0, 8), whole(1, 8, 8)), (0,)),
        ((whole(0, 0, 8), whole(0, 8, 7)), (7,)),
        ((whole(0, 0, 8, page=8, writers=2), whole(0, 0, 8, page=8, writers=2)), (0,)),
        ((whole(0, 0, 8, page=8, writers=2), whole(0, 0, 4, page=8, writers=2, index=1)), (4,)),
        ((whole(0, 0, 8, page=8, writers=2), whole(0, 2, 8, page=8, writers=2, index=1)), (0,)),
        ((whole(0, 0, 8, page=8, writers=0),), (0,)),
        ((), (0,)),
        ((whole(0, 0, 8, page=8, writers=2), whole(0, 0, 8, page=8, writers=2, index=1)), None),
    ],
    Mapper,
)
def start_check(mapper: Mapper, case: tuple[tuple[PageMap, ...], tuple[object, ...] | None]) -> None:
    maps, named = case
    if named:
        refused(lambda: mapper.check_layer(maps, 8), *named)
    else:
        require_accepted(mapper, maps, 8)


TWO_HEADS = World("packed", "hnd", heads=2, tp=4, block=4)


@CHECKS.clause(
    lambda: (
        [
            (World(form, family, heads=8, tp=tp, block=4), copies if tp > 1 else 1)
            for (form, family), copies in zip(FORMS, (4, 1, 8, 2), strict=True)
            for tp in (1, 2, 4, 8)
        ]
        + [
            (replace(TWO_HEADS, dcp=2, interleave=2), 2),
            (replace(LATENT, tp=2, dcp=2, block=4, interleave=2), 2),
            (World("packed", "nhd", heads=2, tp=4, dcp=2, block=4), 4),
        ]
    ),
    Mapper,
)
def coalesced(mapper: Mapper, case: tuple[World, int]) -> None:
    world, copies = case
    for page in maps_of(mapper, world):
        if sum(run.count for run in page.runs) > copies:
            raise Violation(sum(run.count for run in page.runs), f"at most {copies} copies a page")


@CHECKS.clause(worlds, Mapper)
def context_not_portable(mapper: Mapper, world: World) -> None:
    expect([page.portable for page in maps_of(mapper, world)], [world.dcp * world.pcp == 1] * world.grid.world)
