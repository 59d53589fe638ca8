"""What crosses the boundary: groups of layers, the store's answers, and the refusals. Sizes are tokens, or said otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

HIT, MISS, PENDING, UNCERTAIN = "H", "M", "P", "U"
ANSWERS = frozenset({HIT, MISS, PENDING, UNCERTAIN})

ASK_AGAIN = None  # the store could not answer yet; the scheduler asks again in a later step


@dataclass(frozen=True)
class LayerGroup:
    """Layers that share one block table, as the offload scheduler sees them.

    ``kind`` is "full-attention", "mla", "chunked-local", "sliding-window", "sliding-window-mla" or "mamba".
    ``offload_chunk`` (T) is the tokens of one offloaded object: block tokens times blocks in a chunk. ``attention_chunk``
    (C) and ``sliding_window`` (W) bound what a layer of that kind reads; on a full-attention group they are hints for the
    kernel. ``extra_retained`` tokens are kept beyond a sliding window.
    """

    kind: str
    offload_chunk: int
    attention_chunk: int | None = None
    sliding_window: int | None = None
    extra_retained: int = 0


class DeviceHit(NamedTuple):
    """What the device cache can supply: ``tokens`` in all, the first ``placeholders`` blocks of them without content."""

    tokens: int
    placeholders: int


class WindowRefused(ValueError):
    """What was asked for has no safe meaning."""


class SizeRefused(WindowRefused):
    """A size or count outside what exists; names it, the value and the limit."""


class KindRefused(WindowRefused):
    """A kind of layer group for which there is no rule; names it."""


class AnswerRefused(WindowRefused):
    """An answer of the store that is none of the four; names it and its position."""
