"""What an implementation offers to be checked: any of these facets, alone or together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from memspec.conformance import Checks
from memspec.layout.packed_block_zeroing.data import CacheGroup, Interval, Segment, View

CHECKS = Checks("packed-block-zeroing")


class Scope(Protocol):
    """Which caches are zeroed at all."""

    def needs_zeroing(self, groups: Sequence[CacheGroup]) -> bool: ...
    def zeroed_layers(self, groups: Sequence[CacheGroup]) -> Sequence[str]: ...
    def recorded_groups(self, groups: Sequence[CacheGroup]) -> Sequence[str]: ...


class Planner(Protocol):
    """What is prepared once, from the views."""

    def segments(self, views: Sequence[View]) -> Sequence[Segment]: ...


class Intervals(Protocol):
    """The bytes that a call clears, as intervals ``[start, end)`` in any order and cut in any way."""

    def cleared_intervals(self, views: Sequence[View], block_ids: Sequence[int]) -> Sequence[Interval]: ...


class Zeroer(Protocol):
    """Clears blocks in place, in the allocation that starts at byte ``base`` of ``arena``."""

    def clear(self, arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None: ...


class Launcher(Protocol):
    """What is started on the device, and what each program does: (position in the id list, segment, first byte,
    bytes).
    """

    def launch_grid(self, spans: Sequence[int], block_count: int, multiprocessors: int) -> tuple[int, int, int]: ...
    def program_work(self, spans: Sequence[int], block_count: int, multiprocessors: int,
                     program: tuple[int, int, int]) -> Sequence[tuple[int, int, int, int]]: ...  # fmt: skip


class ReleasedGrids(Protocol):
    """The launch geometries of two releases, with ``grid``, ``chunk``, ``programs`` and ``useful``."""

    def common_divisor_grid(self, spans: Sequence[int], block_count: int) -> Any: ...
    def rectangular_grid(self, spans: Sequence[int], block_count: int) -> Any: ...


class GridGuard(Protocol):
    """Refuses a grid that cannot be launched."""

    def check_grid(self, grid: tuple[int, int, int]) -> None: ...


class Stores(Protocol):
    """The aligned part of an interval that 16-byte stores may write."""

    def wide_body(self, address: int, length: int) -> tuple[int, int]: ...


class Host(Protocol):
    """What the host prepares for a call: the buffer that the device reads later, and the ids of the warm-up."""

    def id_buffer(self, block_ids: Sequence[int]) -> Sequence[int]: ...
    def warm_up_ids(self, block_count: int) -> Sequence[int]: ...


class DutyKeeper(Protocol):
    """Takes events, gives one outcome for each, with the ``actions`` that the worker is told."""

    def duty(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]: ...
