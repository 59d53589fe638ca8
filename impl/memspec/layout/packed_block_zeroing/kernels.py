"""The rule as one Triton kernel: 64-bit addresses, pieces that exist, 16-byte stores where the host has proved
alignment.

The host cuts every segment once into pieces of at most ``CHUNK`` words. A piece is wide when its address is a
multiple of 16 for every block, which takes a block stride that is one too; what is left over at the ends goes word
by word. A launch is as large as the device keeps busy, whatever the step, and the number of blocks is an argument
on which nothing is specialised: no later step compiles. On the CPU the kernel runs in Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from memspec.conformance import CannotRun
from memspec.layout.packed_block_zeroing.data import Segment, View
from memspec.layout.packed_block_zeroing.reference.launch import (
    CHUNK,
    PROGRAMS_PER_MULTIPROCESSOR,
    WIDE,
    check_grid,
    id_buffer,
    warm_up_ids,
    wide_body,
)
from memspec.layout.packed_block_zeroing.reference.plan import WORD, block_count, check_blocks, segments

CHUNK_WORDS = CHUNK // WORD
WARPS = 8


@triton.jit(do_not_specialize=["id_count", "piece_count", "wide_count"])  # type: ignore[untyped-decorator]
def clear_blocks(  # type: ignore[no-untyped-def]
    addresses, strides, words, ids, id_count, piece_count, wide_count, chunk: tl.constexpr, offset_bits: tl.constexpr
):
    """Clear ``id_count`` blocks, ``piece_count`` pieces each, of which the first ``wide_count`` are 16-byte
    aligned.

    ``addresses`` (uint64, bytes), ``strides`` (int64, bytes) and ``words`` (int64, at most ``chunk``) have one entry
    for each piece. ``offset_bits`` is 64; 32 is the broken twin whose product wraps.
    """
    lanes = tl.arange(0, chunk)
    item = tl.program_id(0).to(tl.int64)
    items = id_count.to(tl.int64) * piece_count
    while item < items:
        piece = item % piece_count
        block = tl.load(ids + item // piece_count)
        stride = tl.load(strides + piece)
        if offset_bits == 64:  # noqa: SIM108 (a branch that the compiler takes)
            offset = block * stride
        else:
            offset = (block.to(tl.int32) * stride.to(tl.int32)).to(tl.int64)
        address = tl.load(addresses + piece) + offset.to(tl.uint64)
        count = tl.load(words + piece)
        if piece < wide_count:  # the hint belongs to this pointer alone: the other may be misaligned
            aligned = tl.multiple_of(address.to(tl.pointer_type(tl.int32)), 16)
            tl.store(aligned + lanes, tl.zeros((chunk,), tl.int32), mask=lanes < count // 4 * 4)
        else:
            pointer = address.to(tl.pointer_type(tl.int32))
            tl.store(pointer + lanes, tl.zeros((chunk,), tl.int32), mask=lanes < count)
        item += tl.num_programs(0)


Piece = tuple[int, int, int]  # address of block 0, block stride, bytes


def pieces(address: int, segment: Segment) -> Iterator[tuple[bool, Piece]]:
    """The pieces of ``segment``, whose block 0 lies at byte ``address`` of the device's memory, and whether each is
    wide.
    """
    stride, end = segment.block_stride, address + segment.span
    start, stop = wide_body(address, segment.span) if stride % WIDE == 0 else (address, address)
    for wide, low, high in ((False, address, start), (True, start, stop), (False, stop, end)):
        for at in range(low, high, CHUNK):
            yield wide, (at, stride, min(CHUNK, high - at))


@dataclass(frozen=True)
class Plan:
    """What is on the device before the first call: one entry for each piece, wide ones first."""

    addresses: torch.Tensor  # (pieces,) uint64, bytes
    strides: torch.Tensor  # (pieces,) int64, bytes
    words: torch.Tensor  # (pieces,) int64
    wide_count: int
    block_count: int
    programs: int  # at most this many are launched


def plan(storage: torch.Tensor, base: int, views: Sequence[View]) -> Plan:
    """Cut the views into pieces; the allocation starts at byte ``base`` of ``storage``. Refuses what the reference
    refuses.
    """
    start, device = storage.data_ptr() + base, storage.device
    found = [entry for part in segments(views) for entry in pieces(start + part.address, part)]
    ordered = [piece for _, piece in sorted(found, key=lambda entry: not entry[0])]
    busy = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
    return Plan(
        torch.tensor([address for address, _, _ in ordered], dtype=torch.uint64, device=device),
        torch.tensor([stride for _, stride, _ in ordered], dtype=torch.int64, device=device),
        torch.tensor([size // WORD for _, _, size in ordered], dtype=torch.int64, device=device),
        sum(wide for wide, _ in found),
        block_count(views),
        PROGRAMS_PER_MULTIPROCESSOR * busy,
    )


def device_ids(block_ids: Sequence[int], device: torch.device) -> torch.Tensor:
    """The ids on the device, from a buffer of this call's own: a copy that is still queued reads nobody else's ids."""
    ids = torch.tensor(id_buffer(block_ids), dtype=torch.int64, pin_memory=device.type == "cuda")
    return ids.to(device, non_blocking=True)


def clear(prepared: Plan, block_ids: Sequence[int], offset_bits: int = 64) -> None:
    """Queue the clear of ``block_ids`` on the current stream. No launch without ids or pieces; refuses ids outside
    the cache.
    """
    piece_count = prepared.words.numel()
    if not piece_count or not check_blocks(block_ids, prepared.block_count):
        return
    ids = device_ids(block_ids, prepared.words.device)
    grid = (min(ids.numel() * piece_count, prepared.programs), 1, 1)
    check_grid(grid)
    clear_blocks[grid](
        prepared.addresses, prepared.strides, prepared.words, ids, ids.numel(), piece_count, prepared.wide_count,
        chunk=CHUNK_WORDS, offset_bits=offset_bits, num_warps=WARPS,
    )  # fmt: skip


def warm_up(prepared: Plan) -> None:
    """Compile before the first request: clear block 0 if there is one."""
    clear(prepared, warm_up_ids(prepared.block_count))


class Subject:
    """A zeroer whose allocation is copied to the device, sentinels and all, cleared by the kernel, and copied back."""

    def __init__(self, device: str, offset_bits: int = 64) -> None:
        self.device, self.offset_bits = device, offset_bits

    def clear(self, arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None:
        host = torch.frombuffer(arena, dtype=torch.uint8)
        storage = host.to(self.device, copy=True)
        clear(plan(storage, base, views), block_ids, self.offset_bits)
        host.copy_(storage)

    def id_buffer(self, block_ids: Sequence[int]) -> list[int] | torch.Tensor:
        return device_ids(block_ids, torch.device(self.device))

    def warm_up_ids(self, blocks: int) -> Sequence[int]:
        return warm_up_ids(blocks)


def subject(device: str) -> Subject:
    """The kernel on ``device``; CannotRun where Triton has no such device and its interpreter is not on."""
    if device == "cpu" and not isinstance(clear_blocks, InterpretedFunction):
        raise CannotRun(
            "on the CPU the kernel needs Triton's interpreter: set TRITON_INTERPRET=1 before the first import of triton"
        )
    if device != "cpu" and isinstance(clear_blocks, InterpretedFunction):
        raise CannotRun("Triton's interpreter is on in this process, so nothing is compiled for a device")
    return Subject(device)
