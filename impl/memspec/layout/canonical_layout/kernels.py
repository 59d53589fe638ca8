"""The copies of a plan as one Triton kernel: every byte moves once, whatever the fragment's length.

A program moves one tile of one fragment. Addresses are 64-bit and count in the batch's words, so that the compiler sees
16-byte alignment where the plan has it; a fragment that is no multiple of 8 bytes is moved in narrower words, never
cut. On the CPU the kernel runs in Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from memspec.conformance import CannotRun
from memspec.layout.canonical_layout.tensors import Batch, TensorSubject, prepare, words_of

LANE = 8  # bytes that one element of a tile has at most; two of them make a 16-byte access
TILE = 1024  # elements a program moves at most


@triton.jit  # type: ignore[untyped-decorator]
def copy_fragments(  # type: ignore[no-untyped-def]
    source, destination, starts, ends, length, tiles, unit: tl.constexpr, tile: tl.constexpr
):
    """Copy fragments of ``length * unit`` elements, ``tiles`` programs each.

    ``starts`` and ``ends`` (int64, one entry a fragment) count in ``unit`` elements, as ``length`` does.
    """
    program = tl.program_id(0)
    fragment = program // tiles
    lanes = program % tiles * tile + tl.arange(0, tile)
    start = tl.load(starts + fragment) * unit
    end = tl.load(ends + fragment) * unit
    inside = lanes < length * unit
    tl.store(destination + end + lanes, tl.load(source + start + lanes, mask=inside), mask=inside)


def copy_(batches: Sequence[Batch], source: torch.Tensor, destination: torch.Tensor) -> None:
    """Carry out prepared copies on the current stream; bytes outside the fragments stay as they are."""
    for batch in batches:
        element = min(batch.word, LANE)
        elements = batch.size // element
        tile = min(TILE, triton.next_power_of_2(elements))
        tiles = triton.cdiv(elements, tile)
        copy_fragments[(len(batch.starts) * tiles,)](
            words_of(source, element), words_of(destination, element), batch.starts, batch.ends, batch.size // batch.word,
            tiles, unit=batch.word // element, tile=tile, num_warps=4 if tile == TILE else 1,
        )  # fmt: skip


class KernelSubject(TensorSubject):
    """The reference's rules with the copy by the kernel."""

    def copy(self, batches: Sequence[Batch], source: torch.Tensor, destination: torch.Tensor) -> None:
        copy_(batches, source, destination)


def subject(device: str) -> KernelSubject:
    """The facets of the reference with bytes moved by the kernel. Raises CannotRun without a CUDA device."""
    if device != "cuda" or not torch.cuda.is_available():
        raise CannotRun("the interpreter is too slow for all cases; the tests interpret the kernel on a few")
    return KernelSubject(device)


__all__ = ["copy_", "copy_fragments", "prepare", "subject"]
