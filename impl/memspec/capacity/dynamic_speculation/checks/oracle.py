"""What is due, said a second time: by search, by brute force, from the rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memspec.capacity.dynamic_speculation.data import Loop, Scheduled, World

Schedule = Sequence[tuple[int, int, int]]

REPORTED: Schedule = ((1, 4, 2), (5, 512, 0))  # the table of vllm-project/vllm #49548
UPSTREAM: Schedule = ((1, 16, 3), (32, 128, 2), (256, 2048, 0))
WIDE_THEN_NARROW: Schedule = ((1, 16, 16), (17, 256, 2))
SCHEDULES: tuple[tuple[Schedule, int, int], ...] = (
    (REPORTED, 16, 2),
    (UPSTREAM, 256, 3),
    (WIDE_THEN_NARROW, 40, 16),
    (((1, 2, 4), (6, 7, 1)), 12, 3),
    (((6, 7, 1), (1, 2, 4), (9, 9, 0)), 12, 4),
    (((1, 1, 9),), 5, 3),
    (((1, 300, 1),), 8, 2),
)


def k_of(schedule: Schedule, k_max: int, batch: int) -> int:
    """K of the last range that begins at or before ``batch``, at most ``k_max``."""
    _, k = max((first, k) for first, _, k in schedule if first <= batch)
    return min(k, k_max)


def table_of(schedule: Schedule, max_batch: int, k_max: int) -> tuple[int, ...]:
    return (0, *(k_of(schedule, k_max, batch) for batch in range(1, max_batch + 1)))


def decodes(count: int) -> tuple[Scheduled, ...]:
    return (Scheduled("decode", 1),) * count


def greedy(loop: Loop) -> tuple[int, ...]:
    """The target alone, one token at a time."""
    tokens = list(loop.prompt)
    for _ in range(loop.count):
        tokens.append(loop.target[tokens[-2]][tokens[-1]])
    return tuple(tokens[len(loop.prompt) :])


def blocks_touched(tokens: int, block: int) -> int:
    """Blocks in which at least one of the first ``tokens`` positions lies."""
    return len({position // block for position in range(tokens)})


def smallest(shapes: Collection[tuple[int, int]], batch: int, query: int) -> int | None:
    """Requests of the smallest captured shape of this length that holds the batch: the first one met going upwards."""
    widest = max((n for n, _ in shapes), default=0)
    return next((n for n in range(batch, widest + 1) if (n, query) in shapes), None)


def owed_tokens(world: World) -> int:
    return sum(arrival.answer for arrival in world.arrivals)
