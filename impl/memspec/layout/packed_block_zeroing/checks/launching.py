"""Launching: the grid fits the device, programs share the bytes out without a gap or a repeat, wide stores are
aligned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from math import prod

from memspec.conformance import Violation, expect, refused
from memspec.layout.packed_block_zeroing.checks.cases import deepseek_row
from memspec.layout.packed_block_zeroing.checks.facets import CHECKS, GridGuard, Host, Launcher, Stores

X, YZ = 2**31 - 1, 65_535  # programs that CUDA launches along x, and along y and z
LARGEST_SPANS = tuple(span for _, span in deepseek_row())  # 181 segments
LARGEST_BLOCKS = 6_870
Step = tuple[tuple[int, ...], int, int]  # spans in bytes, blocks, multiprocessors


def fits(grid: tuple[int, ...]) -> bool:
    """Whether the device launches ``grid``."""
    return all(1 <= size <= limit for size, limit in zip(grid, (X, YZ, YZ), strict=True))


@CHECKS.clause(
    lambda: [*((LARGEST_SPANS, LARGEST_BLOCKS, m) for m in (1, 132, 148)), ((4,), 70_000, 132)], facet=Launcher
)
def launch_fits(launcher: Launcher, case: Step) -> None:
    grid = tuple(launcher.launch_grid(*case))
    if not fits(grid):
        raise Violation(grid, f"1 to {X} programs along x, 1 to {YZ} along y and z")


def steps() -> list[Step]:
    return [(spans, blocks, m) for spans, blocks, m in product(
        ((37_376, 1_168), (4,), (16_384, 16_448, 40_000), (8_448, 41_984)), (1, 3), (1, 3, 132))] + [((4,), 1_100, 3)]  # fmt: skip


def programs(grid: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    return ((x, y, z) for x in range(grid[0]) for y in range(grid[1]) for z in range(grid[2]))


@CHECKS.clause(steps, facet=Launcher)
def work_once(launcher: Launcher, case: Step) -> None:
    spans, blocks, _ = case
    pieces = defaultdict(list)
    for program in programs(launcher.launch_grid(*case)):
        for position, segment, start, length in launcher.program_work(*case, program):
            pieces[position, segment].append((start, start + length))
    tiled = {
        key: [0, *(point for start, end in sorted(found) for point in (start, end))] for key, found in pieces.items()
    }
    for key in {*product(range(blocks), range(len(spans))), *tiled}:
        points = tiled.get(key, [0])
        span = spans[key[1]] if key[0] < blocks and key[1] < len(spans) else 0
        if points[0::2] != [*points[1::2], span]:
            raise Violation(
                f"block {key[0]}, segment {key[1]}: {pieces[key]}",
                f"[0, {span}) in pieces that meet and do not overlap",
            )


@CHECKS.clause(lambda: [*steps(), ((4,), 0, 132)], facet=Launcher)
def no_idle_programs(launcher: Launcher, case: Step) -> None:
    grid = launcher.launch_grid(*case)
    idle = sum(not launcher.program_work(*case, program) for program in programs(grid))
    expect(f"{idle} of {prod(grid)} programs find nothing to do", f"0 of {prod(grid)} programs find nothing to do")


@CHECKS.clause(lambda: [((2_904_745_920, 1, 1), 2_904_745_920, X), ((1, YZ + 1, 1), YZ + 1, YZ),
                        ((LARGEST_BLOCKS, 181, YZ + 1), YZ + 1, YZ), ((X + 1, 1, 1), X + 1, X), ((0, 1, 1), 0, X)],
               facet=GridGuard)  # fmt: skip
def oversized_grid_refused(guard: GridGuard, case: tuple[tuple[int, int, int], int, int]) -> None:
    guard.check_grid((X, YZ, YZ))
    refused(lambda: guard.check_grid(case[0]), *case[1:])


@CHECKS.clause(lambda: product(range(36), range(84)), facet=Stores)
def wide_stores_aligned(stores: Stores, case: tuple[int, int]) -> None:
    (start, end), (address, length) = stores.wide_body(*case), case
    if start < end and not (start % 16 == end % 16 == 0 and address <= start and end <= address + length):
        raise Violation((start, end), f"whole 16-byte words inside [{address}, {address + length})")
    if start > end:
        raise Violation((start, end), "a start that is not after the end")


@CHECKS.clause(lambda: [(0, deepseek_row()), (4, ((4, 37_376), (37_444, 37_376)))], facet=Stores)
def mostly_wide(stores: Stores, case: tuple[int, tuple[tuple[int, int], ...]]) -> None:
    wide = sum(end - start for start, end in (stores.wide_body(*piece) for piece in case[1]))
    total = sum(length for _, length in case[1])
    if 100 * wide < 99 * total:
        raise Violation(f"{wide} of {total} bytes", "at least 99 in 100 by 16-byte stores")


@CHECKS.clause(lambda: [((1, 2), (3,)), ((7, 8, 9), (7,)), ((5,), ())], facet=Host)
def ids_of_its_own(host: Host, case: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    buffers = [host.id_buffer(call) for call in case]  # the device reads them only now
    expect([sorted({int(i) for i in buffer}) for buffer in buffers], [sorted(call) for call in case])


@CHECKS.clause(lambda: [0, 1, 100], facet=Host)
def warm_up_in_range(host: Host, blocks: int) -> None:
    ids = [int(i) for i in host.warm_up_ids(blocks)]
    expect((bool(ids), [i for i in ids if not 0 <= i < blocks]), (blocks > 0, []))
