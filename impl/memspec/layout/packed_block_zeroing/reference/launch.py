"""How it is launched: pairs of segment and chunk that exist, a grid sized by the device, and stores of 16 bytes
where they are aligned.

Sources: vllm-project/vllm PRs #52058 (the grid that did not fit) and #49903 (warm-up). The list of existing pairs,
the persistent grid and the wide stores are this project's own; the page marks them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from memspec.layout.packed_block_zeroing.data import LaunchRefused, Segment

GRID_LIMITS = (2**31 - 1, 65_535, 65_535)  # programs along x, y, z that CUDA launches
CHUNK = 16_384  # bytes that a program clears at a time
WIDE = 16  # bytes of one wide store
PROGRAMS_PER_MULTIPROCESSOR = 8

Work = tuple[int, int, int, int]  # position in the id list, segment, first byte in the segment, bytes


def check_grid(grid: tuple[int, int, int]) -> None:
    """Raise LaunchRefused for a dimension that the device cannot launch."""
    for axis, size, limit in zip("xyz", grid, GRID_LIMITS, strict=True):
        if not 1 <= size <= limit:
            raise LaunchRefused(f"{size} programs along {axis}; the device launches 1 to {limit}")


def work_list(spans: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """The pieces of one block: (segment, first byte, bytes), only pieces that exist. ``spans`` in bytes."""
    return tuple(
        (s, start, min(CHUNK, span - start)) for s, span in enumerate(spans) for start in range(0, span, CHUNK)
    )


def launch_grid(spans: Sequence[int], block_count: int, multiprocessors: int) -> tuple[int, int, int]:
    """Programs to start: as many as the device keeps busy, never more than there are pieces. All on x; (0, 0, 0) is
    no launch.
    """
    pieces = block_count * len(work_list(spans))
    return (min(pieces, PROGRAMS_PER_MULTIPROCESSOR * multiprocessors), 1, 1) if pieces else (0, 0, 0)


def program_work(
    spans: Sequence[int], block_count: int, multiprocessors: int, program: tuple[int, int, int]
) -> tuple[Work, ...]:
    """What one program clears: every piece whose number is its own, modulo the number of programs."""
    pieces, (programs, _, _) = work_list(spans), launch_grid(spans, block_count, multiprocessors)
    return tuple(
        (n // len(pieces), *pieces[n % len(pieces)]) for n in range(program[0], block_count * len(pieces), programs)
    )


def wide_body(address: int, length: int) -> tuple[int, int]:
    """The part of ``[address, address + length)`` that is whole aligned 16-byte words, as (start, end); start = end
    where there is none.
    """
    start, end = -(-address // WIDE) * WIDE, (address + length) // WIDE * WIDE
    return (start, end) if start < end else (address, address)


def wide_bytes(segments: Iterable[Segment], block_ids: Sequence[int]) -> tuple[int, int]:
    """Bytes that go by wide stores, and all bytes, for a call. Both count a block once."""
    wide = total = 0
    for segment in segments:
        for block in set(block_ids):
            start, end = wide_body(segment.address + block * segment.block_stride, segment.span)
            wide, total = wide + end - start, total + segment.span
    return wide, total


def id_buffer(block_ids: Iterable[int]) -> array[int]:
    """The ids of one call in a buffer of its own, ascending, each once: the device reads it after the call has
    returned.
    """
    return array("q", sorted(set(block_ids)))


def warm_up_ids(block_count: int) -> tuple[int, ...]:
    """Ids of the launch that compiles the kernel before the first request: block 0 if there is one."""
    return (0,) if block_count else ()
