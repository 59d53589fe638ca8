"""What crosses the boundary: the geometry of a ring, requests, plan entries, and the refusals. Positions and sizes in
tokens or rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SENTINEL = 0xFFFF_FFFF  # in every word of a plan entry that stands for nothing

Row = tuple[float, float]  # (kv, score) of one raw token, one channel
Arena = list[Row]  # ring rows, with whatever memory lies around them


@dataclass(frozen=True)
class Geometry:
    """One layer's state ring: ``ring`` rows, ``ratio`` raw tokens for one compressed entry.

    Ratio 4 keeps a ring in every SWA page of ``page`` tokens, or one in every request where ``by_request``. Ratio 128
    always keeps one in every request.
    """

    ratio: int
    ring: int
    page: int = 256
    by_request: bool = False


@dataclass(frozen=True)
class Request:
    """One request of a batch: positions ``[prefix, prefix + extend)`` are computed.

    ``slot`` is its row in the request pool, ``pages[i]`` the physical SWA page of positions ``[i * page, (i + 1) *
    page)``.
    """

    slot: int
    prefix: int
    extend: int
    pages: tuple[int, ...] = ()


class Write(NamedTuple):
    """The raw row of batch token ``token`` goes to ring row ``slot``."""

    token: int
    slot: int


class Compression(NamedTuple):
    """The window that ends with position ``length - 1``, which is batch token ``token``.

    Its first ``from_ring`` rows come from the ring, the others from the batch. A ring page is ``ratio`` rows:
    ``own_page`` holds the group of the last position, ``previous_page`` the group before it.
    """

    length: int
    token: int
    from_ring: int
    previous_page: int
    own_page: int


class Plan(NamedTuple):
    compressions: Sequence[Compression]
    writes: Sequence[Write]


NO_WRITE = Write(SENTINEL, SENTINEL)
NO_COMPRESSION = Compression(SENTINEL, SENTINEL, SENTINEL, SENTINEL, SENTINEL)


class StaleRead(NamedTuple):
    """A committed compression, named by its length, and the positions whose row it did not find."""

    length: int
    positions: tuple[int, ...]


class RingRefused(ValueError):
    """What was asked for has no safe meaning."""


class RatioRefused(RingRefused):
    """No ring for this ratio, or none together with speculation; names the ratio and those that are known."""


class GeometryRefused(RingRefused):
    """A ring that its planners cannot address; names the size and what it has to divide or hold."""


class BatchRefused(RingRefused):
    """A batch that cannot be planned; names the value and the limit."""


class StartRefused(RingRefused):
    """More draft tokens than a ring serves; names the drafts, the ratio and the pad."""


class CommitRefused(RingRefused):
    """A verify step that commits none of its tokens, or more than it has; names both numbers."""
