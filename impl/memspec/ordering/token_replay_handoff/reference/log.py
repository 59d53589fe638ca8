"""The handoff log: append only, contiguous, indexed from the first output token."""

from __future__ import annotations

from collections.abc import Sequence

from memspec.explore import Rejected


def extended(log: tuple[int, ...], first: int, ids: Sequence[int]) -> tuple[int, ...] | Rejected:
    """The log after ``ids`` arrived for positions ``first`` and on.

    A range that is stored already, with the same tokens, changes nothing. Refused: a negative position (a slice from the
    end would match by accident), a gap, a range that is stored in part, and other tokens than those stored.
    """
    end = first + len(ids)
    if first < 0:
        return Rejected("negative-index")
    if first > len(log):
        return Rejected("gap")
    if first < len(log) < end:
        return Rejected("overlap")
    if first < len(log) and log[first:end] != tuple(ids):
        return Rejected("different-tokens")
    return log if end <= len(log) else (*log, *ids)
