"""The rule on a torch storage: bytes live on ``device``, and the layout comes from real tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from memspec.layout.packed_block_zeroing.data import View
from memspec.layout.packed_block_zeroing.reference.plan import block_count, check_blocks, segments


def view_of(
    name: str, tensor: torch.Tensor, block_dim: int = 0, block_size: int = 1, kernel_block_size: int = 1
) -> View:
    """What the zeroer has to know of a layer's cache; ``address`` is counted from the start of the tensor's
    storage.
    """
    address = tensor.storage_offset() * tensor.element_size()
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    return View(name, address, shape, strides, tensor.element_size(), block_dim, block_size, kernel_block_size)


def clear(storage: torch.Tensor, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
    """Clear ``block_ids`` in ``storage``, a contiguous uint8 tensor of one dimension; the allocation starts at byte
    ``base``.

    One fill for each segment, over a window of shape (num_blocks, span) that steps by the block stride. Refuses
    what the reference refuses, before the first write.
    """
    parts = segments(views)
    if not parts:
        return
    count = block_count(views)
    ids = torch.tensor(check_blocks(block_ids, count), dtype=torch.int64, device=storage.device)
    for part in parts:
        window = storage.as_strided((count, part.span), (part.block_stride, 1), base + part.address)
        window.index_fill_(0, ids, 0)


class Subject:
    """A zeroer whose allocation is copied to the device, sentinels and all, cleared there, and copied back."""

    def __init__(self, device: str) -> None:
        self.device = device

    def clear(self, arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
        host = torch.frombuffer(arena, dtype=torch.uint8)
        storage = host.to(self.device, copy=True)
        clear(storage, base, views, block_ids)
        host.copy_(storage)


def subject(device: str) -> Subject:
    """The rule with its bytes on ``device``."""
    return Subject(device)
