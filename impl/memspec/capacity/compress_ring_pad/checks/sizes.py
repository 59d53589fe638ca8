"""Rows, pads, and the check when a server starts. What is due is given with the case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memspec.capacity.compress_ring_pad.checks.facets import CHECKS, Allocation, Sizes, Start
from memspec.capacity.compress_ring_pad.data import Geometry
from memspec.conformance import Violation, expect, refused

FLASH, PRO = (
    {0: 3, 4: 21, 128: 20},
    {0: 1, 4: 30, 128: 31},
)  # layers of each ratio in DeepSeek-V4, the draft's layer included


def answered(call: Callable[[], Any], due: object) -> None:
    """As ``expect``; a refusal is an answer too, and a wrong one."""
    try:
        seen = call()
    except ValueError as refusal:
        raise Violation(f"refusal {str(refusal)!r}", due) from refusal
    expect(seen, due)


@CHECKS.clause(
    lambda: [
        ((4, 0), 8),
        ((128, 0), 128),
        ((4, 1), 16),
        ((4, 5), 16),
        ((4, 10), 16),
        ((128, 2), 256),
        ((128, 130), 256),
        ((2, 0), 2),
        *(((2, n), min(p for p in (4, 8, 16, 32) if p >= n + 2)) for n in (1, 2, 3, 6, 7, 14, 15, 30)),
        ((128, 0, True), 1),
        ((128, 4, True, True), 1),
        ((4, 4, True), 16),
    ],
    facet=Sizes,
)
def ring_sizes(sizes: Sizes, case: tuple[tuple[Any, ...], int]) -> None:
    answered(lambda: sizes.ring_size(*case[0]), case[1])


@CHECKS.clause(
    lambda: [((3,), (3,)), ((8,), (8,)), ((0,), (0,)), ((-4, 5), (-4,)), ((128, 4, True), (128,))],
    facet=Sizes,
)
def unservable_refused(sizes: Sizes, case: tuple[tuple[Any, ...], tuple[int, ...]]) -> None:
    refused(lambda: sizes.ring_size(*case[0]), *case[1])


@CHECKS.clause(
    lambda: [
        ((4, 16), 10),
        ((128, 256), 130),
        ((4, 32), 26),
        ((4, 12), 6),
        ((128, 384), 258),
        ((2, 8), 8),
        ((2, 4), 4),
        ((4, 8), 0),
        ((128, 128), 0),
        ((2, 2), 0),
        ((128, 1), 0),
        ((4, 4), 0),
    ],
    facet=Sizes,
)
def pad(sizes: Sizes, case: tuple[tuple[int, int], int]) -> None:
    expect(sizes.write_pad(*case[0]), case[1])


StartCase = tuple[Mapping[int, int], int, Sequence[int], int | None]


@CHECKS.clause(
    lambda: [
        ((FLASH, 11, (), None), (11, 10)),
        ((PRO, 64, (), None), (64, 10)),
        (({4: 1, 128: 0}, 11, (), None), (11, 10)),
        (({4: 0, 128: 31}, 131, (), None), (131, 130)),
        ((FLASH, 0, (), 10), (11, 10)),
    ],
    facet=Start,
)
def start_refused(start: Start, case: tuple[StartCase, tuple[int, ...]]) -> None:
    refused(lambda: start.check_start(*case[0]), *case[1])


@CHECKS.clause(
    lambda: [
        ((FLASH, 4, (1, 10), None), (11, 10)),
        ((FLASH, 4, (12, 3), None), (13, 10)),
        ((FLASH, 0, (2, 9), 30), 10),
        ((FLASH, 4, (1, 3, 7), None), 8),
        ((FLASH, 20, (1, 3), None), 4),
        ((FLASH, 20, (), 5), 6),
        ((FLASH, 5, (), None), 5),
    ],
    facet=Start,
)
def largest_tier(start: Start, case: tuple[StartCase, Any]) -> None:
    if isinstance(case[1], tuple):
        refused(lambda: start.check_start(*case[0]), *case[1])
    else:
        answered(lambda: start.check_start(*case[0]), case[1])


@CHECKS.clause(
    lambda: [
        ((FLASH, 10), 10),
        ((PRO, 1), 1),
        ((FLASH, 0), 0),
        (({4: 0, 128: 31}, 130), 130),
        (({0: 61}, 500), 500),
        (({2: 40, 4: 0}, 500), 500),
        ((FLASH, 10, (), None, True), 10),
        (({128: 31}, 500, (), None, True), 500),
    ],
    facet=Start,
)
def absent_ratio(start: Start, case: tuple[tuple[Any, ...], int]) -> None:
    answered(lambda: start.check_start(*case[0]), case[1])


@CHECKS.clause(
    lambda: [
        ((Geometry(4, 8), 65_536, 48), 2_048),
        ((Geometry(4, 16), 65_536, 48), 4_096),
        ((Geometry(4, 16), 511, 9), 16),
        ((Geometry(128, 128), 65_536, 48), 6_272),
        ((Geometry(128, 256), 65_536, 48), 12_544),
        ((Geometry(128, 256), 0, 48, 96), 37_120),
        ((Geometry(128, 1), 256, 48), 49),
        ((Geometry(4, 16, by_request=True), 65_536, 48), 784),
    ],
    facet=Allocation,
)
def state_rows(allocation: Allocation, case: tuple[tuple[Any, ...], int]) -> None:
    expect(allocation.state_rows(*case[0]), case[1])
