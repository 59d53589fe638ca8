"""Rings, pads, the check at the start and the rows of a layer, each with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memspec.capacity.compress_ring_pad.data import (
    Geometry,
    RatioRefused,
)
from memspec.capacity.compress_ring_pad.reference import sizes


def no_check(*_: Any) -> None:
    return None


def capped_at_4(geometry: Geometry) -> int:
    return min(geometry.ring - geometry.ratio, 4)


def no_pad(geometry: Geometry) -> int:
    return 0


def without_ratio_2(ratio: int, drafts: int = 0, online: bool = False, online_speculation: bool = False) -> int:
    if ratio == 2:
        raise RatioRefused(f"there is no ring for ratio {ratio}; known ratios are 4, 128")
    return sizes.ring_size(ratio, drafts, online, online_speculation)


def any_ratio(ratio: int, drafts: int = 0, online: bool = False, online_speculation: bool = False) -> int:
    if online and ratio == 128:
        return 1
    return sizes.window_of(ratio) * (2 if drafts else 1) if ratio != 2 else sizes.ring_size(ratio, drafts)


def never_doubled(ratio: int, drafts: int = 0, online: bool = False, online_speculation: bool = False) -> int:
    return sizes.ring_size(ratio, 0, online, online_speculation)


def pad_off_by(more: int) -> Callable[[int, int], int]:
    def write_pad(ratio: int, ring: int) -> int:
        return max(0, sizes.write_pad(ratio, ring) + more) if ring > sizes.window_of(ratio) else 0

    return write_pad


def pad_below_zero(ratio: int, ring: int) -> int:
    return ring - sizes.window_of(ratio) + 2


def no_start_guard(layers: Mapping[int, int], flag: int, adaptive_steps: Sequence[int] = (), gamma: int | None = None,
                   online: bool = False) -> int:  # fmt: skip
    for ratio in sizes.guarded_ratios(layers, online):
        sizes.ring_size(ratio, flag)
    return sizes.largest_draft(flag, adaptive_steps, gamma)


def flag_alone(flag: int, adaptive_steps: Sequence[int] = (), gamma: int | None = None) -> int:
    return flag if gamma is None else gamma + 1


def first_tier(flag: int, adaptive_steps: Sequence[int] = (), gamma: int | None = None) -> int:
    return sizes.largest_draft(flag, adaptive_steps[:1], gamma)


def bonus_forgotten(flag: int, adaptive_steps: Sequence[int] = (), gamma: int | None = None) -> int:
    return max(adaptive_steps) if adaptive_steps else flag if gamma is None else gamma


def every_ratio(layers: Mapping[int, int], online: bool) -> tuple[int, ...]:
    return 4, 128


def online_too(layers: Mapping[int, int], online: bool) -> tuple[int, ...]:
    return sizes.guarded_ratios(layers, False)


def no_spare_request(geometry: Geometry, swa_tokens: int, max_running: int, extra: int = 0) -> int:
    return sizes.state_rows(geometry, swa_tokens, max_running - 1, extra)


def windows_not_rings(geometry: Geometry, swa_tokens: int, max_running: int, extra: int = 0) -> int:
    return sizes.state_rows(Geometry(geometry.ratio, sizes.window_of(geometry.ratio), geometry.page, geometry.by_request),
                            swa_tokens, max_running, extra)  # fmt: skip
