"""The closed form against enumeration, byte by byte, over random layers and grids."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memspec.layout.canonical_layout import check_layer, lay_out, map_layer, may_share, reference
from memspec.layout.canonical_layout.checks.maps import worlds
from memspec.layout.canonical_layout.checks.moving import device_of, round_trip, trip_pages
from memspec.layout.canonical_layout.checks.world import FORMS, LATENT, World, due, layer_of, seen, spec_of


def modest(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, derandomize=True)


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


@st.composite
def headed(draw: st.DrawFn) -> World:
    """A layer with heads that is to be certified: sharded or replicated, tokens divided or not."""
    form, family = draw(st.sampled_from(FORMS))
    shards, replicas, each = (
        draw(st.sampled_from([1, 2, 3, 4])),
        draw(st.sampled_from([1, 1, 2, 4])),
        draw(st.integers(1, 3)),
    )
    block = draw(st.integers(1, 6))
    return World(
        form, family,
        heads=shards * (each if replicas == 1 else 1),
        tp=shards * replicas,
        dcp=draw(st.sampled_from(divisors(replicas))),
        pcp=draw(st.sampled_from([1, 1, 2])),
        interleave=draw(st.sampled_from(divisors(block))),
        block=block,
        head_size=draw(st.integers(1, 3)),
        element_bytes=draw(st.sampled_from([1, 2, 4])),
        kind=draw(st.sampled_from(["full", "sliding"])),
    )  # fmt: skip


@st.composite
def latent(draw: st.DrawFn) -> World:
    tp, block = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    dcp, interleave = draw(st.sampled_from(divisors(tp))), draw(st.sampled_from(divisors(block)))
    row = draw(st.integers(1, 7))
    return replace(
        LATENT, tp=tp, dcp=dcp, pcp=draw(st.integers(1, 2)), interleave=interleave, block=block, head_size=row
    )


def both_formulations_agree(world: World) -> None:
    maps = map_layer(layer_of(world), world.grid)
    assert [page.form for page in maps] == [world.form] * world.grid.world
    for rank, page in enumerate(maps):
        assert seen(page) == tuple(enumerate(due(world)[rank]))
    check_layer(maps, spec_of(world).page_bytes)
    assert all(page.portable == (world.dcp * world.pcp == 1) for page in maps)
    assert may_share([spec_of(world)], world.grid, True) == maps[0].portable


@modest(700)
@given(headed())
def test_layers_with_heads(world: World) -> None:
    both_formulations_agree(world)


@modest(200)
@given(latent())
def test_latent_layers(world: World) -> None:
    both_formulations_agree(world)


@modest(300)
@given(
    st.sampled_from(FORMS), *[st.integers(1, 8)] * 2, *[st.integers(1, 4)] * 3, st.integers(1, 6), st.integers(1, 3)
)  # fmt: skip
def test_certified_exactly_when_everything_divides(
    form: tuple[str, str], heads: int, tp: int, dcp: int, pcp: int, interleave: int, block: int, local: int
) -> None:
    world = World(*form, heads=heads, tp=tp, dcp=dcp, pcp=pcp, interleave=interleave, block=block)  # type: ignore[arg-type]
    honest = replace(world, heads=local * tp, dcp=1)  # the view of a rank with ``local`` heads
    layer = replace(layer_of(honest), spec=replace(spec_of(honest), model_heads=heads))
    layer = replace(layer, views=layer.views[:1] * world.grid.world)
    divides = heads == tp * local if heads >= tp else tp % heads == 0 and local == 1
    replicas = tp // heads if heads < tp else 1
    due_here = divides and replicas % dcp == 0 and (dcp * pcp == 1 or block % interleave == 0)
    assert {page.form != "opaque" for page in map_layer(layer, world.grid)} == {due_here}


@modest(250)
@given(headed(), st.data())
def test_round_trips_between_sizes(world: World, data: st.DataObject) -> None:
    heads = world.heads
    sizes = [tp for tp in range(1, 13) if max(tp, heads) % min(tp, heads) == 0]
    flat = replace(world, dcp=1, pcp=1)
    writer, reader = (replace(flat, tp=data.draw(st.sampled_from(sizes))) for _ in range(2))
    blocks_per_chunk = data.draw(st.integers(1, 3))
    outside, loaded = round_trip(reference, writer, reader, blocks_per_chunk)
    assert outside.count(0xEE) == len(outside)
    assert list(loaded) == [device_of(reader, rank, trip_pages(blocks_per_chunk)) for rank in range(reader.tp)]


@modest(100)
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from(FORMS))
def test_rows_have_one_length_at_every_size(block: int, blocks_per_chunk: int, form: tuple[str, str]) -> None:
    rows = set()
    for tp in (1, 2, 4, 8, 16):
        world = World(*form, heads=4, tp=tp, block=block, head_size=64, element_bytes=2)  # type: ignore[arg-type]
        rows.add(lay_out([[map_layer(layer_of(world), world.grid)]] * 3, blocks_per_chunk).row_bytes)
    assert len(rows) == 1


@pytest.mark.slow
def test_all_small_grids() -> None:
    """Every divisible grid of up to 12 heads, 12 ranks, 2 prefill groups, all forms; 2 and 4 tokens."""
    count = 0
    for (form, family), heads, tp, pcp, block in product(FORMS, range(1, 13), range(1, 13), (1, 2), (2, 4)):
        if max(heads, tp) % min(heads, tp):
            continue
        for dcp, interleave in product(divisors(max(1, tp // heads)), divisors(block)):
            both_formulations_agree(World(form, family, heads, tp, dcp, pcp, interleave, block, 1))
            count += 1
    assert count > 3000
    assert len(set(worlds())) == len(worlds())
