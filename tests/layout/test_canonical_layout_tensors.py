"""Three ways to carry out a plan on tensors, inside an arena with sentinels, against the copy of bytes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from memspec.conformance import CannotRun  # noqa: E402
from memspec.layout.canonical_layout import CopyPlan, lay_out, map_layer, moved, plan_copies, tensors  # noqa: E402
from memspec.layout.canonical_layout.checks.world import FORMS, World, layer_of, spec_of  # noqa: E402

SENTINEL = 48  # bytes before and after the buffers, a multiple of the widest word
BLOCKS, PAGES = (3, 0, 2, 1), (7, 2, 4, 0)


def arena(size: int, fill: int) -> torch.Tensor:
    return torch.full((size + 2 * SENTINEL,), fill, dtype=torch.uint8)


def prepared(world: World, direction: str) -> tuple[CopyPlan, torch.Tensor, torch.Tensor, bytes]:
    """A plan with its buffers inside arenas, and what the destination holds after it."""
    page = map_layer(layer_of(world), world.grid)[-1]
    cell = lay_out([[(page,)]], 1).cells[0]
    padded = spec_of(world).page_bytes + 16
    sizes = {"device": padded * len(BLOCKS), "store": cell.row_bytes * 8}
    names = ("device", "store") if direction == "store" else ("store", "device")
    source, destination = arena(sizes[names[0]], 1), arena(sizes[names[1]], 0xEE)
    source[SENTINEL:-SENTINEL] = (torch.arange(sizes[names[0]]) * 131 % 251).to(torch.uint8)
    plan = plan_copies(direction, page, BLOCKS, PAGES, padded, cell)  # type: ignore[arg-type]
    inner = bytes(source[SENTINEL:-SENTINEL].tolist()), bytes(destination[SENTINEL:-SENTINEL].tolist())
    return plan, source, destination, moved(plan, *inner)


@pytest.mark.parametrize("direction", ["store", "load"])
@pytest.mark.parametrize("way", ["copy_long_", "copy_strided_", "copy_by_index_"])
@pytest.mark.parametrize("sizes", [{"head_size": 8}, {"head_size": 3}, {"heads": 2, "tp": 4, "dcp": 2, "block": 4}])
@pytest.mark.parametrize("form", FORMS)
def test_every_way_moves_the_same_bytes_and_no_others(
    form: tuple[str, str], sizes: dict[str, int], way: str, direction: str
) -> None:
    world = World(*form, **{"tp": 2, **sizes})  # type: ignore[arg-type]
    plan, source, destination, due = prepared(world, direction)
    for batch in tensors.prepare(plan, "cpu"):
        getattr(tensors, way)(batch, source[SENTINEL:-SENTINEL], destination[SENTINEL:-SENTINEL])
    assert bytes(destination[SENTINEL:-SENTINEL].tolist()) == due
    assert destination[:SENTINEL].eq(0xEE).all()
    assert destination[-SENTINEL:].eq(0xEE).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_loop_over_pages_moves_the_same_bytes(form: tuple[str, str]) -> None:
    world = World(*form, tp=2, head_size=8)  # type: ignore[arg-type]
    for direction in ("store", "load"):
        plan, source, destination, due = prepared(world, direction)
        page = map_layer(layer_of(world), world.grid)[-1]
        cell = lay_out([[(page,)]], 1).cells[0]
        inner = source[SENTINEL:-SENTINEL], destination[SENTINEL:-SENTINEL]
        tensors.copy_page_by_page_(direction, page, BLOCKS, PAGES, spec_of(world).page_bytes + 16, cell, *inner)  # type: ignore[arg-type]
        assert bytes(inner[1].tolist()) == due
        assert plan.pages == len(PAGES)


def test_staging_smaller_than_a_fragment_still_moves_all() -> None:
    plan, source, destination, due = prepared(World("split", "nhd", tp=2, head_size=8), "store")
    (batch,) = tensors.prepare(plan, "cpu")
    tensors.copy_by_index_(batch, source[SENTINEL:-SENTINEL], destination[SENTINEL:-SENTINEL], staging=1)
    assert bytes(destination[SENTINEL:-SENTINEL].tolist()) == due


def test_words_are_as_wide_as_all_addresses_allow() -> None:
    (wide,) = tensors.prepare(CopyPlan(((0, 64, 32), (32, 160, 32)), 1, 64), "cpu")
    (narrow,) = tensors.prepare(CopyPlan(((0, 64, 132), (132, 196, 132)), 1, 264), "cpu")
    assert (wide.word, narrow.word) == (16, 4)
    assert wide.groups == ((0, 4, 2, 2, 6),)


def test_strided_copies_never_overlap_or_run_backwards() -> None:
    assert list(tensors.strided([(0, 8), (4, 4), (8, 0)], 4)) == [(0, 8, 1, 4, 4), (4, 4, 1, 4, 4), (8, 0, 1, 4, 4)]
    assert list(tensors.strided([(0, 0), (2, 8), (4, 16)], 4)) == [(0, 0, 1, 4, 4), (2, 8, 1, 4, 4), (4, 16, 1, 4, 4)]
    assert list(tensors.strided([(0, 0), (4, 8), (8, 16), (20, 24)], 4)) == [(0, 0, 3, 4, 8), (20, 24, 1, 4, 4)]


def test_an_absent_device_is_said() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(CannotRun):
            tensors.subject("cuda")


def test_the_benchmark_measures_two_ways_that_move_the_same_bytes() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "canonical_layout.py"
    bench = runpy.run_path(str(script))
    for form, family in bench["FORMS"]:
        seen = bench["measured"](form, family, 64 * 1024, 1024 * 1024, "cpu", 1)
        assert set(seen.ratios) == {"torch", "page loop"}
