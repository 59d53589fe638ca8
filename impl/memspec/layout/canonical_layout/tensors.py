"""The copies of a plan on torch tensors, prepared once: every byte moves once where the device allows it.

Long fragments are copied as a list of views (``torch._foreach_copy_``, few launches on CUDA). Short ones are strided
copies on the CPU, one for each run of a page; on CUDA, where a launch for each run costs more than its bytes, they are
gathered and scattered by index, in words as wide as the addresses allow. Buffers are one-dimensional uint8 tensors of
one device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import torch

from memspec.conformance import CannotRun
from memspec.layout.canonical_layout import reference
from memspec.layout.canonical_layout.data import Cell, CopyPlan, Direction, PageMap
from memspec.layout.canonical_layout.reference.plan import canonical_address, check_buffers

WORDS = {16: torch.complex128, 8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}
LONG = 32 * 1024  # bytes; fragments from here on are copied one by one
STAGING = (
    16 * 1024 * 1024
)  # bytes gathered before they are scattered: they stay in the second-level cache of a large GPU

Strided = tuple[int, int, int, int, int]  # start, end, count, distance of starts, distance of ends; in words


@dataclass(frozen=True)
class Batch:
    """Fragments of one length. ``size`` in bytes, all else in words of ``word`` bytes.

    ``starts`` and ``ends``: shape ``(fragments,)``, contiguous, on the device; ``groups``: the same fragments as strided copies.
    """

    size: int
    word: int
    starts: torch.Tensor
    ends: torch.Tensor
    groups: tuple[Strided, ...]


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
        addresses = torch.tensor(pairs, dtype=torch.int64).div(word, rounding_mode="floor")
        starts, ends = addresses.T.contiguous().to(device)
        batches.append(
            Batch(size, word, starts, ends, tuple(strided([(s // word, e // word) for s, e in pairs], size // word)))
        )
    return tuple(batches)


def strided(pairs: Sequence[tuple[int, int]], length: int) -> Iterator[Strided]:
    """Neighbours in the plan that lie at equal distances on both sides, without overlap, as one strided copy."""
    first = 0
    while first < len(pairs):
        steps = (length, length)
        last = first
        while last + 1 < len(pairs):
            step = pairs[last + 1][0] - pairs[last][0], pairs[last + 1][1] - pairs[last][1]
            if min(step) < length or (last > first and step != steps):
                break
            steps, last = step, last + 1
        yield (*pairs[first], last - first + 1, *steps)
        first = last + 1


def copy_(batches: Sequence[Batch], source: torch.Tensor, destination: torch.Tensor) -> None:
    """Carry out prepared copies from ``source`` to ``destination``, whose bytes outside the fragments stay as they
    are.
    """
    for batch in batches:
        if batch.size >= LONG:
            copy_long_(batch, source, destination)
        elif source.is_cuda:
            copy_by_index_(batch, source, destination)
        else:
            copy_strided_(batch, source, destination)


def copy_long_(batch: Batch, source: torch.Tensor, destination: torch.Tensor) -> None:
    """One pass over the bytes: a view for each fragment, copied as a list."""
    length = batch.size // batch.word
    read, written = words_of(source, batch.word), words_of(destination, batch.word)
    pairs = [(start + i * a, end + i * b) for start, end, count, a, b in batch.groups for i in range(count)]
    torch._foreach_copy_(
        [written[end : end + length] for _, end in pairs], [read[start : start + length] for start, _ in pairs]
    )


def copy_strided_(batch: Batch, source: torch.Tensor, destination: torch.Tensor) -> None:
    """One pass over the bytes: a strided copy for each group."""
    length = batch.size // batch.word
    read, written = words_of(source, batch.word), words_of(destination, batch.word)
    for start, end, count, start_step, end_step in batch.groups:
        rows(written, end, count, length, end_step).copy_(rows(read, start, count, length, start_step))


def copy_by_index_(batch: Batch, source: torch.Tensor, destination: torch.Tensor, staging: int = STAGING) -> None:
    """Two passes, through a staging buffer of ``staging`` bytes: windows of one fragment's length, picked by their
    first word.
    """
    length = batch.size // batch.word
    read, written = windows(words_of(source, batch.word), length), windows(words_of(destination, batch.word), length)
    step = max(1, staging // batch.size)
    for first in range(0, len(batch.starts), step):
        written[batch.ends[first : first + step]] = read[batch.starts[first : first + step]]


def rows(words: torch.Tensor, first: int, count: int, length: int, step: int) -> torch.Tensor:
    """``count`` stretches of ``length`` words, ``step`` words apart, from word ``first`` of the buffer on."""
    return words.as_strided((count, length), (step, 1), words.storage_offset() + first)


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
        store = canonical_address(cell, page_id)
        for run in page.runs:
            local = device + run.local, run.count, run.size, max(run.local_stride, run.size)
            canonical = store + run.canonical, run.count, run.size, max(run.canonical_stride, run.size)
            read, written = (local, canonical) if direction == "store" else (canonical, local)
            rows(destination, *written).copy_(rows(source, *read))


class TensorSubject:
    """The reference's rules with the copy on ``device``: bytes go to tensors there, and come back."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(reference, name)

    def copy(self, batches: Sequence[Batch], source: torch.Tensor, destination: torch.Tensor) -> None:
        copy_(batches, source, destination)

    def moved(self, plan: CopyPlan, source: bytes, destination: bytes) -> bytes:
        check_buffers(plan, len(source), len(destination))
        if not plan.copies:
            return destination
        after = torch.frombuffer(bytearray(destination), dtype=torch.uint8).to(self.device)
        before = torch.frombuffer(bytearray(source), dtype=torch.uint8).to(self.device)
        self.copy(prepare(plan, self.device), before, after)
        answer = bytearray(len(destination))
        torch.frombuffer(answer, dtype=torch.uint8).copy_(after)
        return bytes(answer)


def subject(device: str) -> TensorSubject:
    """The facets of the reference with bytes on ``device``. Raises CannotRun where torch has no such device."""
    if device == "cuda" and not torch.cuda.is_available():
        raise CannotRun("torch finds no CUDA device here")
    return TensorSubject(device)
