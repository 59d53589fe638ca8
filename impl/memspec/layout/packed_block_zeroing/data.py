"""What crosses the boundary: views of an allocation, segments, cache groups, and the refusals. All sizes in bytes,
or said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Interval = tuple[int, int]  # [start, end) in bytes from the start of the allocation


@dataclass(frozen=True)
class View:
    """One layer's cache as the zeroer sees it: a strided window into an allocation that it may share with other
    layers.

    ``shape`` holds sizes, ``strides`` elements, ``element`` the bytes of one element. Dimension ``block_dim``
    counts kernel blocks; a logical block of ``block_size`` tokens is made of ``block_size / kernel_block_size`` of
    them. ``address`` is the byte of the first element, counted from the start of the allocation (or a data pointer,
    when the allocation is said to start at 0).
    """

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: int
    block_dim: int = 0
    block_size: int = 1
    kernel_block_size: int = 1


class Segment(NamedTuple):
    """What is kept of a view: block ``b`` is the ``span`` bytes from ``address + b * block_stride`` on."""

    address: int
    block_stride: int
    span: int


AttentionKind = Literal["full-attention", "sliding-window", "chunked-local", "mla"]
Storage = Literal["tensor", "list", "runner-only"]


@dataclass(frozen=True)
class CacheGroup:
    """The layers that share one block table. ``storage`` says what their cache is: one tensor, a list of tensors,
    or known to a runner only.
    """

    name: str
    kind: AttentionKind | Literal["mamba"]
    layers: tuple[str, ...]
    dtype: str = "bfloat16"
    quantisation: str = "none"
    kernel_block_size: int | None = 16
    storage: Storage = "tensor"
    host_resident: bool = False
    ring: bool = False


class ZeroingRefused(ValueError):
    """What was asked for has no safe meaning."""


class ViewRefused(ZeroingRefused):
    """A view, or two views together, from which no segment can be made; names the value and the limit."""


class BlockRefused(ZeroingRefused):
    """A block id outside the cache; names the id and the number of blocks."""


class LaunchRefused(ZeroingRefused):
    """A grid that the device cannot launch; names the size of the dimension and its limit."""
