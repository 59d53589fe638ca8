"""How a vector's plain input reaches an implementation, and how the answer becomes plain data again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memspec.layout.packed_block_zeroing.checks.cases import Slab
from memspec.layout.packed_block_zeroing.checks.clearing import declared, effect
from memspec.layout.packed_block_zeroing.checks.facets import (
    CHECKS,
    DutyKeeper,
    GridGuard,
    Intervals,
    Launcher,
    Planner,
    ReleasedGrids,
    Scope,
    Stores,
    Zeroer,
)
from memspec.layout.packed_block_zeroing.checks.launching import fits, programs
from memspec.layout.packed_block_zeroing.data import CacheGroup, View

Input = Mapping[str, Any]


def frozen(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def views(given: Input) -> tuple[View, ...]:
    return tuple(View(**frozen(entry)) for entry in given["views"])


def groups(given: Input) -> tuple[CacheGroup, ...]:
    return tuple(CacheGroup(**frozen(entry)) for entry in given["groups"])


@CHECKS.operation(facet=Planner)
def segments(planner: Planner, given: Input) -> Any:
    return sorted(list(part) for part in planner.segments(views(given)))


@CHECKS.operation(facet=Intervals)
def cleared_intervals(subject: Intervals, given: Input) -> Any:
    return [list(interval) for interval in declared(subject, views(given), tuple(given["blocks"]))]


@CHECKS.operation(facet=Zeroer)
def clear(zeroer: Zeroer, given: Input) -> Any:
    """The bytes that became zero in an allocation of ``size`` bytes full of 0xA5; ``other`` are those that became
    anything else.
    """
    zero, other = effect(zeroer, Slab("vector", given["size"], views(given), tuple(given["blocks"])))
    return {"zero": [list(i) for i in zero], "other": [list(i) for i in other]}


@CHECKS.operation(facet=Scope)
def scope(subject: Scope, given: Input) -> Any:
    found = groups(given)
    return {"needed": subject.needs_zeroing(found), "layers": list(subject.zeroed_layers(found)),
            "recorded": list(subject.recorded_groups(found))}  # fmt: skip


@CHECKS.operation(facet=Launcher)
def launched(launcher: Launcher, given: Input) -> Any:
    """What the programs of a step clear together: bytes, and how many of the listed blocks; ``fits`` if the device
    launches the grid.
    """
    step = tuple(given["spans"]), given["blocks"], given["multiprocessors"]
    grid = launcher.launch_grid(*step)
    work = [piece for program in programs(grid) for piece in launcher.program_work(*step, program)]
    return {"fits": fits(grid), "bytes": sum(length for *_, length in work), "blocks": len({n for n, *_ in work})}


@CHECKS.operation(facet=GridGuard)
def check_grid(guard: GridGuard, given: Input) -> Any:
    guard.check_grid(tuple(given["grid"]))
    return "launched"


@CHECKS.operation(facet=Stores)
def wide_body(stores: Stores, given: Input) -> Any:
    return list(stores.wide_body(given["address"], given["length"]))


@CHECKS.operation(facet=DutyKeeper)
def replay(keeper: DutyKeeper, given: Input) -> Any:
    return [dict(outcome) for outcome in keeper.duty(given["events"])]


@CHECKS.operation(facet=ReleasedGrids)
def released_grids(subject: ReleasedGrids, given: Input) -> Any:
    """The launch geometry of two releases for ``spans`` given as [bytes, how many]: grid, words of a chunk,
    programs, useful ones.
    """
    spans = [span for span, number in given["spans"] for _ in range(number)]
    found = {
        "0.27.0": subject.common_divisor_grid(spans, given["blocks"]),
        "0.28.0": subject.rectangular_grid(spans, given["blocks"]),
    }
    return {
        name: {"grid": list(g.grid), "chunk": g.chunk, "programs": g.programs, "useful": g.useful}
        for name, g in found.items()
    }
