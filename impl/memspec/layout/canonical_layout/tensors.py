"""The copies of a plan on torch tensors: prepared once, then gathered and scattered in words as wide as the addresses
allow.

Long fragments are copied one by one in a single pass (``torch._foreach_copy_``, which CUDA batches into few launches).
Short ones go through a staging buffer: one indexed read and one indexed write for many fragments. Buffers are
one-dimensional uint8 tensors of one device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import torch

from memspec.conformance import CannotRun
from memspec.layout.canonical_layout import reference
from memspec.layout.canonical_layout.data import Cell, CopyPlan, Direction, PageMap

WORDS = {16: torch.complex128, 8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}
LONG = 32 * 1024  # bytes; fragments from here on are copied one by one
STAGING = {"cpu": 256 * 1024, "cuda": 16 * 1024 * 1024}  # bytes; half of what a second-level cache holds


@dataclass(frozen=True)
class Batch:
    """Fragments of one length. ``size`` in bytes; ``starts`` and ``ends`` in words of ``word`` bytes, shape
    ``(fragments,)``, on the device.
    """

    size: int
    word: int
    starts: torch.Tensor
    ends: torch.Tensor


def widest_word(*numbers: int) -> int:
    """The widest word, 16 bytes at most, that divides all of ``numbers``."""
    return gcd(16, *numbers)


def prepare(plan: CopyPlan, device: str) -> tuple[Batch, ...]:
    """The plan's copies by length, their addresses as index tensors on ``device``."""
    by_size: dict[int, list[tuple[int, int]]] = {}
    for start, end, size in plan.copies:
        by_size.setdefault(size, []).append((start, end))
    batches = []
    for size, pairs in by_size.items():
        word = widest_word(size, *(number for pair in pairs for number in pair))
        addresses = torch.tensor(pairs, dtype=torch.int64).div(word, rounding_mode="floor").to(device)
        batches.append(Batch(size, word, addresses[:, 0].contiguous(), addresses[:, 1].contiguous()))
    return tuple(batches)


def copy_(batches: Sequence[Batch], source: torch.Tensor, destination: torch.Tensor) -> None:
    """Carry out prepared copies from ``source`` to ``destination``, whose bytes outside the fragments stay as they
    are.
    """
    for batch in batches:
        if batch.size >= LONG:
            copy_long_(batch, source, destination)
        else:
            copy_short_(batch, source, destination)


def copy_long_(batch: Batch, source: torch.Tensor, destination: torch.Tensor) -> None:
    """One pass over the bytes: a view for each fragment, copied as a list."""
    length = batch.size // batch.word
    read, written = words_of(source, batch.word), words_of(destination, batch.word)
    torch._foreach_copy_(
        [written[end : end + length] for end in batch.ends.tolist()],
        [read[start : start + length] for start in batch.starts.tolist()],
    )


def copy_short_(batch: Batch, source: torch.Tensor, destination: torch.Tensor) -> None:
    """Two passes, through a staging buffer that stays in cache: windows of one fragment's length, picked by their
    first word.
    """
    length = batch.size // batch.word
    read, written = windows(words_of(source, batch.word), length), windows(words_of(destination, batch.word), length)
    step = max(1, STAGING[source.device.type] // batch.size)
    for first in range(0, len(batch.starts), step):
        written[batch.ends[first : first + step]] = read[batch.starts[first : first + step]]


def words_of(buffer: torch.Tensor, word: int) -> torch.Tensor:
    """The buffer's whole words, shape ``(bytes // word,)``."""
    return buffer[: buffer.numel() // word * word].view(WORDS[word])


def windows(words: torch.Tensor, length: int) -> torch.Tensor:
    """Every stretch of ``length`` words, overlapping, shape ``(words - length + 1, length)``; no byte is copied."""
    return words.as_strided((words.numel() - length + 1, length), (1, 1))


def copy_page_by_page_(
    direction: Direction,
    page: PageMap,
    blocks: Sequence[int],
    pages: Sequence[int],
    padded_page: int,
    cell: Cell,
    source: torch.Tensor,
    destination: torch.Tensor,
) -> None:
    """The slow baseline: a Python loop over pages and runs, a strided copy each. Same bytes as ``copy_``."""
    for block, page_id in zip(blocks, pages, strict=True):
        if direction == "store" and not reference.elected(page, page_id):
            continue
        device = block * padded_page
        store = (
            page_id // cell.blocks_per_chunk * cell.row_bytes
            + cell.start
            + page_id % cell.blocks_per_chunk * cell.page_bytes
        )
        for run in page.runs:
            local = (run.count, run.size), (max(run.local_stride, 1), 1), device + run.local
            canonical = (run.count, run.size), (max(run.canonical_stride, 1), 1), store + run.canonical
            if direction == "store":
                destination.as_strided(*canonical).copy_(source.as_strided(*local))
            else:
                destination.as_strided(*local).copy_(source.as_strided(*canonical))


class TensorSubject:
    """The reference's rules with the copy on ``device``: bytes go to tensors there, and come back."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(reference, name)

    def moved(self, plan: CopyPlan, source: bytes, destination: bytes) -> bytes:
        if not plan.copies:
            return destination
        after = torch.frombuffer(bytearray(destination), dtype=torch.uint8).to(self.device)
        copy_(prepare(plan, self.device), torch.frombuffer(bytearray(source), dtype=torch.uint8).to(self.device), after)
        answer = bytearray(len(destination))
        torch.frombuffer(answer, dtype=torch.uint8).copy_(after)
        return bytes(answer)


def subject(device: str) -> TensorSubject:
    """The facets of the reference with bytes on ``device``. Raises CannotRun where torch has no such device."""
    if device == "cuda" and not torch.cuda.is_available():
        raise CannotRun("torch finds no CUDA device here")
    return TensorSubject(device)
