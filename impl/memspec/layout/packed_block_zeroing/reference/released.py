"""Launch geometries of released versions, for comparison: how many programs they start, and how many of them find
work.

Source: vLLM 0.27.0 (one dimension, common divisor) and 0.28.0 (three dimensions, vllm-project/vllm PR #52058).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

WORD = 4  # bytes
LARGEST_CHUNK = 1024  # words of one program


@dataclass(frozen=True)
class Geometry:
    """``grid`` in programs, ``chunk`` in words; ``useful`` programs find something to clear, the others leave at
    once.
    """

    grid: tuple[int, int, int]
    chunk: int
    useful: int

    @property
    def programs(self) -> int:
        return prod(self.grid)


def common_divisor_grid(spans: Sequence[int], block_count: int) -> Geometry:
    """The geometry of 0.27.0: every span is a whole number of chunks, so one odd span makes all chunks small.
    ``spans`` in bytes.
    """
    words = [span // WORD for span in spans]
    common = gcd(*words)
    chunk = min(common & -common, LARGEST_CHUNK)
    return Geometry(
        (block_count * len(words) * (max(words) // chunk), 1, 1), chunk, block_count * sum(w // chunk for w in words)
    )


def rectangular_grid(spans: Sequence[int], block_count: int) -> Geometry:
    """The geometry of 0.28.0: blocks x segments x the chunks of the longest span; short spans leave programs idle.
    ``spans`` in bytes.
    """
    words = [span // WORD for span in spans]
    chunk = min(1 << (max(words) - 1).bit_length(), LARGEST_CHUNK)
    useful = block_count * sum(-(-w // chunk) for w in words)
    return Geometry((block_count, len(words), -(-max(words) // chunk)), chunk, useful)
