"""From a schedule of batch ranges to one K for each number of scheduled requests.

A schedule lists ``(first batch, last batch, K)``. The table is dense, so that a step only indexes it.

Source: vllm-project/vllm PR #32374; unchanged from 0.25.1 to 0.33.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from memspec.capacity.dynamic_speculation.data import (
    Counting,
    CountRefused,
    Scheduled,
    ScheduleRefused,
    Table,
)

Entry = tuple[int, int, int]  # first batch, last batch, K


def entry_of(given: Any) -> Entry:
    """Three whole numbers. Raises ScheduleRefused with the entry for anything else, or for a range without meaning."""
    if not isinstance(given, list | tuple) or len(given) != 3:
        raise ScheduleRefused(f"entry {given!r}: it must have 3 items, first batch, last batch and K")
    try:
        first, last, k = (int(item) for item in given)
    except (TypeError, ValueError, OverflowError) as trouble:
        raise ScheduleRefused(f"entry {given!r}: its items must be whole numbers") from trouble
    if first > last:
        raise ScheduleRefused(f"entry {given!r}: its first batch {first} must be at most its last, {last}")
    if k < 0:
        raise ScheduleRefused(f"entry {given!r}: K is {k} and must be at least 0")
    return first, last, k


def checked_schedule(schedule: Any) -> tuple[Entry, ...]:
    """The entries in ascending order. Raises ScheduleRefused, naming what is wrong, where a batch has no K or two."""
    if not isinstance(schedule, list | tuple) or not schedule:
        raise ScheduleRefused(f"schedule {schedule!r}: it must be a list of at least 1 entry")
    entries = sorted(entry_of(given) for given in schedule)
    if entries[0][0] != 1:
        raise ScheduleRefused(f"entry {list(entries[0])}: the first range must start at batch 1")
    for (_, end, _), entry in pairwise(entries):
        if entry[0] <= end:
            raise ScheduleRefused(f"entry {list(entry)}: it starts at or before batch {end}, where another range ends")
    return tuple(entries)


def dense_table(schedule: Any, max_batch: int, k_max: int) -> Table:
    """K for each batch from 0 (unused, 0) to ``max_batch``: gaps and the tail keep the K before them, none exceeds ``k_max``.

    Raises ScheduleRefused.
    """
    if max_batch < 1:
        raise ScheduleRefused(f"max_batch is {max_batch}; it must be at least 1")
    if k_max < 1:
        raise ScheduleRefused(f"k_max is {k_max}; it must be at least 1")
    entries = checked_schedule(schedule)
    table = [0] * (max_batch + 1)
    for (first, _, k), following in zip(entries, [*entries[1:], (max_batch + 1, 0, 0)], strict=True):
        for batch in range(first, min(following[0], max_batch + 1)):
            table[batch] = clamped(k, k_max)
    return tuple(table)


def clamped(k: int, k_max: int) -> int:
    return min(k, k_max)


def k_for(table: Table, scheduled: int, k_max: int) -> int:
    """K of a step that scheduled so many requests; ``k_max`` where it scheduled none. Raises CountRefused."""
    if scheduled == 0:
        return k_max
    if not 0 < scheduled < len(table):
        raise CountRefused(f"{scheduled} requests are scheduled; the table covers 1 to {len(table) - 1}")
    return table[scheduled]


def scheduled_count(requests: Iterable[Scheduled], counting: Counting = "scheduled") -> int:
    """Requests that select K: all with scheduled tokens, or with "sampling" those that sample in this step."""
    if counting == "sampling":
        return sum(request.tokens > 0 and request.role != "chunk" for request in requests)
    return sum(request.tokens > 0 for request in requests)


def held(ks: Sequence[int], hold: int) -> tuple[int, ...]:
    """K after ``hold`` equal demands in a row; the first is taken at once, and ``hold`` 1 takes every one."""
    taken: list[int] = []
    for step, k in enumerate(ks):
        agreed = step == 0 or (step + 1 >= hold and set(ks[step + 1 - hold : step + 1]) == {k})
        taken.append(k if agreed else taken[-1])
    return tuple(taken)
