"""What is certified, what is not, and the fallback."""

from __future__ import annotations

from dataclasses import replace

from memspec.conformance import expect
from memspec.layout.canonical_layout.checks.base import CHECKS, Mapper
from memspec.layout.canonical_layout.checks.maps import TWO_HEADS, maps_of
from memspec.layout.canonical_layout.checks.world import (
    LATENT,
    World,
    due,
    layer_of,
    seen,
    spec_of,
)
from memspec.layout.canonical_layout.data import Grid, Layer, View


def require_opaque(mapper: Mapper, layer: Layer, grid: Grid) -> None:
    """Every rank has the whole page at its own place, one writer, not portable."""
    size = layer.spec.page_bytes
    rows = [
        (p.form, p.canonical_bytes, p.writers, p.writer_index, p.portable, seen(p))
        for p in mapper.map_layer(layer, grid)
    ]
    expect(
        rows,
        [
            ("opaque", grid.world * size, 1, 0, False, tuple((i, rank * size + i) for i in range(size)))
            for rank in range(grid.world)
        ],
    )


def with_view(world: World, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layer:
    return replace(layer_of(world), views=(View(shape, strides),) * world.grid.world)


PACKED_HND, SPLIT_NHD = World("packed", "hnd", tp=2), World("split", "nhd", tp=2)  # h 2, block 2, D 2: page 16 elements
PACKED_NHD, SPLIT_HND = World("packed", "nhd", tp=2), World("split", "hnd", tp=2)


@CHECKS.clause(
    lambda: [
        (with_view(PACKED_HND, (8, 2, 2, 4), (64, 8, 4, 1)), "packed"),  # padded blocks: the block stride is free
        (with_view(SPLIT_NHD, (8, 2, 2, 2, 2), (16, 8, 4, 2, 1)), "split"),
        (with_view(PACKED_HND, (8, 2, 2, 4), (16, 4, 8, 1)), None),  # the other family's strides
        (with_view(SPLIT_NHD, (2, 8, 2, 2, 2), (64, 8, 4, 2, 1)), None),  # K and V outermost
        (with_view(SPLIT_NHD, (8, 2, 2, 2, 2), (16, 16, 4, 2, 1)), None),  # V does not follow K
        (with_view(PACKED_HND, (16, 2, 1, 4), (8, 4, 4, 1)), None),  # kernel blocks of half a block
        (with_view(PACKED_HND, (8, 2, 2, 3), (16, 8, 4, 1)), None),  # V narrower than K
        (with_view(PACKED_HND, (8, 2, 2, 4), (32, 16, 8, 2)), None),  # every second element
        (with_view(PACKED_HND, (8, 2, 2, 4), (20, 10, 5, 1)), None),  # padded cells
        (with_view(PACKED_HND, (8, 2, 2, 4, 1, 1), (16, 8, 4, 1, 1, 1)), None),  # six axes
        (with_view(PACKED_HND, (8, 2, 2, 4), (20, 10, 4, 1)), None),  # padded heads
        (with_view(PACKED_HND, (8, 2, 2, 4), (16, 8)), None),  # two strides for four axes
        (with_view(PACKED_NHD, (8, 2, 2, 4), (64, 4, 8, 1)), "packed"),
        (with_view(PACKED_NHD, (8, 2, 2, 4), (20, 4, 10, 1)), None),  # padded tokens
        (with_view(SPLIT_HND, (8, 2, 2, 2, 2), (16, 8, 2, 4, 1)), "split"),
        (with_view(SPLIT_HND, (8, 2, 2, 2, 2), (32, 16, 2, 4, 1)), None),  # V does not follow K
        (with_view(SPLIT_HND, (8, 2, 2, 2, 2), (20, 10, 2, 5, 1)), None),  # padded heads
        (with_view(SPLIT_NHD, (8, 2, 2, 2, 2), (20, 10, 5, 2, 1)), None),  # padded tokens
        (with_view(SPLIT_NHD, (8, 2, 2, 2, 2), (16, 8, 2, 4, 1)), None),  # the other family's strides
        (
            replace(layer_of(PACKED_HND), spec=replace(spec_of(PACKED_HND), page_bytes=20)),
            None,
        ),  # the page is larger than K and V
        (replace(layer_of(PACKED_HND), views=(None, None)), None),  # a list of tensors
        (replace(layer_of(PACKED_HND), views=()), None),  # no tensor
        (replace(layer_of(PACKED_HND), spec=replace(spec_of(PACKED_HND), kind="sliding-latent")), None),
        (replace(layer_of(PACKED_HND), spec=replace(spec_of(PACKED_HND), kind="mamba")), None),
    ],
    Mapper,
)
def exact_evidence(mapper: Mapper, case: tuple[Layer, str | None]) -> None:
    layer, form = case
    if form is None:
        require_opaque(mapper, layer, Grid(2))
    else:
        expect([page.form for page in mapper.map_layer(layer, Grid(2))], [form] * 2)


@CHECKS.clause(
    lambda: [
        (layer_of(LATENT), Grid(2), True),
        (layer_of(LATENT), Grid(4, 2), True),
        (replace(layer_of(LATENT), views=(View((1,), (1,)),) * 2), Grid(2), True),
        (replace(layer_of(LATENT), spec=replace(spec_of(LATENT), page_bytes=7)), Grid(2), False),
    ],
    Mapper,
)
def latent_from_spec(mapper: Mapper, case: tuple[Layer, Grid, bool]) -> None:
    layer, grid, certified = case
    if not certified:
        require_opaque(mapper, layer, grid)
        return
    expect(
        [(p.form, p.canonical_bytes, p.writers, p.writer_index) for p in mapper.map_layer(layer, grid)],
        [("latent", 6 * grid.dcp, grid.tp // grid.dcp, rank // grid.dcp) for rank in range(grid.world)],
    )


@CHECKS.clause(
    lambda: (
        [
            (World("packed", family, heads=2, tp=2, block=3), (8, 1, 3, 4), strides)
            for family in ("nhd", "hnd")
            for strides in ((12, 4, 4, 1), (12, 12, 4, 1), (12, 99, 4, 1))
        ]
        + [
            (World("packed", family, tp=2, block=1), (8, 2, 1, 4), strides)
            for family in ("nhd", "hnd")
            for strides in ((8, 4, 4, 1), (8, 4, 8, 1), (8, 4, 99, 1))
        ]
    ),
    Mapper,
)
def declared_family(mapper: Mapper, case: tuple[World, tuple[int, ...], tuple[int, ...]]) -> None:
    """One local head, or blocks of one token: the same bytes in both families, whatever that axis's stride says."""
    world, shape, strides = case
    maps = mapper.map_layer(with_view(world, shape, strides), world.grid)
    expect([(p.form, seen(p)) for p in maps], [(world.form, tuple(enumerate(places))) for places in due(world)])


def resized(world: World, **changed: int) -> Layer:
    return replace(layer_of(world), spec=replace(spec_of(world), **changed))  # type: ignore[arg-type]


ONE_HEAD = World("packed", "nhd", heads=4, tp=4)  # a rank's page has 1 head


def certified_or_opaque(mapper: Mapper, layer: Layer, grid: Grid, certified: bool) -> None:
    if certified:
        expect({page.form for page in mapper.map_layer(layer, grid)} & {"opaque"}, set())
    else:
        require_opaque(mapper, layer, grid)


@CHECKS.clause(
    lambda: [
        (resized(ONE_HEAD, model_heads=6), Grid(4), False),
        (resized(ONE_HEAD, model_heads=3), Grid(4), False),
        (resized(ONE_HEAD, model_heads=8), Grid(4), False),
        (resized(World(tp=2), model_heads=2), Grid(2), False),
        (resized(ONE_HEAD, model_heads=0), Grid(4), False),
        (resized(ONE_HEAD, model_heads=2), Grid(4), True),
        (layer_of(ONE_HEAD), Grid(4), True),
    ],
    Mapper,
)
def heads_divide(mapper: Mapper, case: tuple[Layer, Grid, bool]) -> None:
    certified_or_opaque(mapper, *case)


@CHECKS.clause(
    lambda: [
        (TWO_HEADS, Grid(4, 2), True),
        (TWO_HEADS, Grid(4, 4), False),
        (World(tp=4), Grid(4, 2), False),
        (TWO_HEADS, Grid(4, 2, 1, 4), True),
        (TWO_HEADS, Grid(4, 2, 1, 3), False),
        (TWO_HEADS, Grid(4, 2, 1, 8), False),
        (TWO_HEADS, Grid(4, 2, 1, -1), False),
        (TWO_HEADS, Grid(4, 2, 1, 0), False),
        (TWO_HEADS, Grid(4, 0), False),
        (TWO_HEADS, Grid(4, 1, 1, 3), True),
        (replace(LATENT, block=4), Grid(3, 2), False),
        (replace(LATENT, block=4), Grid(2, 2, 1, 3), False),
    ],
    Mapper,
)
def context_divides(mapper: Mapper, case: tuple[World, Grid, bool]) -> None:
    world, grid, certified = case
    certified_or_opaque(mapper, layer_of(world), grid, certified)


@CHECKS.clause(
    lambda: (
        [(world, {"quantisation": "per-token-head"}) for world in (PACKED_HND, replace(LATENT, tp=2))]
        + [(world, {"tokens_per_state": 4}) for world in (PACKED_HND, replace(LATENT, tp=2))]
    ),
    Mapper,
)
def plain_cells(mapper: Mapper, case: tuple[World, dict[str, object]]) -> None:
    world, changed = case
    layer = replace(layer_of(world), spec=replace(spec_of(world), **changed))  # type: ignore[arg-type]
    certified_or_opaque(mapper, layer_of(world), world.grid, True)
    require_opaque(mapper, layer, world.grid)


@CHECKS.clause(
    lambda: [
        replace(PACKED_HND, kind="sliding"),
        replace(PACKED_HND, quantisation="per-tensor"),
        replace(SPLIT_NHD, kind="sliding", quantisation="per-tensor"),
        replace(LATENT, quantisation="per-tensor"),
    ],
    Mapper,
)
def windows_and_fp8(mapper: Mapper, world: World) -> None:
    expect(
        [(p.form, p.portable, seen(p)) for p in maps_of(mapper, world)],
        [(world.form, True, tuple(enumerate(places))) for places in due(world)],
    )


@CHECKS.clause(
    lambda: [
        (world, odd, view)
        for world in (World("packed", "hnd", tp=4), World("split", "nhd", tp=2))
        for odd in range(world.tp)
        for view in (None, View((8, 2, 2, 4), (32, 16, 8, 2)))
    ],
    Mapper,
)
def opaque_for_all(mapper: Mapper, case: tuple[World, int, View | None]) -> None:
    """One rank without a tensor, or with one that proves nothing; also a rank for which there is no view at all."""
    world, odd, without = case
    layer = layer_of(world)
    views = tuple(without if rank == odd else view for rank, view in enumerate(layer.views))
    require_opaque(mapper, replace(layer, views=views), world.grid)
    require_opaque(mapper, replace(layer, views=layer.views[:odd]), world.grid)
