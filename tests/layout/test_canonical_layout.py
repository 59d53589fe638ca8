"""The mapping on real models and on the small cases of public reports."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from memspec.layout.canonical_layout import (
    Grid,
    Group,
    Identity,
    NotCertified,
    PlanRefused,
    TilingBroken,
    check_layer,
    elected,
    file_name,
    fingerprint,
    fragments,
    lay_out,
    map_layer,
    page_ids,
    plan_copies,
    reference,
    start_worker,
)
from memspec.layout.canonical_layout.checks.world import LATENT, World, layer_of, spec_of

LLAMA_70B = World("packed", "hnd", heads=8, block=16, head_size=128, element_bytes=2)
DEEPSEEK_V3 = replace(LATENT, block=64, head_size=576, element_bytes=2)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("form", ["packed", "split"])
@pytest.mark.parametrize("family", ["nhd", "hnd"])
def test_every_size_of_a_70b_model_tiles(ranks: int, form: str, family: str) -> None:
    world = replace(LLAMA_70B, tp=ranks, form=form, family=family)
    maps = map_layer(layer_of(world), world.grid)
    check_layer(maps, spec_of(world).page_bytes)
    assert {page.canonical_bytes for page in maps} == {8 * 16 * 2 * 128 * 2}


@pytest.mark.parametrize("ranks", [1, 2, 8, 16])
def test_a_latent_page_is_stored_once_whatever_the_ranks(ranks: int) -> None:
    world = replace(DEEPSEEK_V3, tp=ranks)
    maps = map_layer(layer_of(world), world.grid)
    check_layer(maps, spec_of(world).page_bytes)
    assert [sum(elected(page, number) for page in maps) for number in range(2 * ranks)] == [1] * 2 * ranks
    assert maps[0].canonical_bytes == 64 * 576 * 2


@pytest.mark.parametrize(("ranks", "heads"), [(4, [0, 0, 1, 1]), (8, [0, 0, 0, 0, 1, 1, 1, 1])])
def test_two_heads_on_more_ranks_go_to_neighbours(ranks: int, heads: list[int]) -> None:
    world = World("packed", "hnd", heads=2, tp=ranks)
    size = spec_of(world).page_bytes
    assert [page.runs[0].canonical // size for page in map_layer(layer_of(world), world.grid)] == heads


def test_eight_ranks_store_four_heads_in_any_one_replica_of_each() -> None:
    world = World("packed", "hnd", heads=4, tp=8, block=16, head_size=1024, element_bytes=2)
    maps = map_layer(layer_of(world), world.grid)
    assert [maps[rank].runs[0].canonical for rank in (0, 2, 4, 6)] == [0, 65536, 131072, 196608]
    assert maps[0].canonical_bytes == 262144
    with pytest.raises(TilingBroken, match="65536 of 262144"):
        check_layer([replace(maps[0], writers=1)], 65536)


def test_a_refusal_names_the_value_and_the_limit() -> None:
    cases = [
        (World(tp=4), {"model_heads": 6}, Grid(4), "6 heads and 4"),
        (World(tp=2), {"heads": 3}, Grid(2), "3"),
        (World("packed", "hnd", heads=2, tp=4), {}, Grid(4, 4), "4 does not divide the 2"),
        (
            World("packed", "hnd", heads=2, tp=4, block=4),
            {},
            Grid(4, 2, 1, 3),
            "interleave 3 does not divide the block of 4",
        ),
        (World(tp=2), {"quantisation": "per-token-head"}, Grid(2), "per-token-head"),
    ]
    for world, changed, grid, named in cases:
        layer = replace(layer_of(world), spec=replace(spec_of(world), **changed))
        with pytest.raises(NotCertified, match=named):
            reference.map_rank(layer, grid, 0)


def test_a_plan_moves_page_bytes_between_permuted_blocks() -> None:
    world = World("packed", "nhd", tp=2)
    maps = map_layer(layer_of(world), world.grid)
    cell = lay_out([[maps], [maps]], 2).cells[1]
    plan = plan_copies("store", maps[1], (5, 0), (3, 4), 20, cell)
    assert plan.copies == (
        (100, 4096 + 64 + 32 + 8, 8),
        (108, 4096 + 64 + 32 + 24, 8),
        (0, 2 * 4096 + 64 + 8, 8),
        (8, 2 * 4096 + 64 + 24, 8),
    )
    assert (plan.pages, plan.moved_bytes) == (2, 32)
    with pytest.raises(PlanRefused, match="2 device blocks for 1"):
        plan_copies("store", maps[1], (5, 0), (3,), 20, cell)


def test_page_ids_of_one_page_chunks_are_the_chunks() -> None:
    assert page_ids((9, 2, 4), 1, 3) == (9, 2, 4)


def test_what_changes_bytes_is_in_the_name_and_every_process_spells_it_alike() -> None:
    identity = Identity("org/model", format="v1-hnd-packed", shared=True)
    changes = [
        {"dtype": "bfloat16"},
        {"tokens_per_hash": 32},
        {"blocks_per_file": 2},
        {"format": "v1-nhd-packed"},
        {"model_name": "org_model"},
    ]
    prints = {fingerprint(replace(identity, **change)) for change in [{}, *changes]}
    assert len(prints) == 6
    assert fingerprint(replace(identity, tp=8)) == fingerprint(identity)
    key = bytes(range(8)) + bytes(4)
    assert file_name("/kv", identity, 5, key).startswith(f"/kv/org_model_{fingerprint(identity)}_r0/000/10_g0/")


def test_fragments_unroll_in_local_order() -> None:
    world = World("split", "nhd", heads=2, tp=4, dcp=2, block=4)
    page = map_layer(layer_of(world), world.grid)[2]
    assert [local for local, _, _ in fragments(page)] == sorted(local for local, _, _ in fragments(page))


def test_an_engine_of_another_process_spells_the_same_name() -> None:
    """No part of a name hangs on the process: not on its hash seed, not on the order in which fields were set."""
    program = (
        "from memspec.layout.canonical_layout import Group, Identity, fingerprint;"
        "print(fingerprint(Identity('m', groups=(Group(16, ('b', 'a')),), tp=8, format='v1-latent', shared=True), 16))"
    )
    spelled = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program]
        spelled.add(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.strip())
    here = fingerprint(Identity("m", groups=(Group(16, ("b", "a")),), format="v1-latent", shared=True), 16)
    assert spelled == {here}


def test_opaque_pages_tile_too_and_are_bound_to_their_grid() -> None:
    world = World("split", "nhd", tp=4, pcp=2, heads=2)
    maps = map_layer(replace(layer_of(world), views=()), world.grid)
    size = spec_of(world).page_bytes
    check_layer(maps, size)
    assert [(page.canonical_bytes, page.runs[0].canonical) for page in maps] == [
        (8 * size, rank * size) for rank in range(8)
    ]
    assert not start_worker(False, [("layer", maps)])
