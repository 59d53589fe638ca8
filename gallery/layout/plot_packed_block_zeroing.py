"""
Packed block zeroing: which bytes a clear may touch
===================================================

A packed cache keeps all layers of one block next to each other. Where a block of a layer starts, how far it is to the
next one and how many bytes are the layer's own are three numbers; a zeroer that keeps one number for the last two
clears its neighbours.

This page clears two blocks of DeepSeek-V4's packed cache on this device, the right way and the old way, and maps what
is gone. It then counts how many programs three launch geometries start for the largest step, how many bytes can go by
16-byte stores, and, on a CUDA device, how fast the kernel clears.
"""

# %%
# An allocation among sentinels
# -----------------------------
# Four layers of ``(100, 64, 584)`` bytes share 100 rows of 149,760 bytes. The allocation lies in the middle of a larger
# piece of memory, so that a clear that leaves it is seen and hurts nobody.

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch
from memspec.layout.packed_block_zeroing import View, cleared_intervals, segments, wide_bytes
from memspec.layout.packed_block_zeroing.faults import FAULTS
from memspec.layout.packed_block_zeroing.reference import (
    common_divisor_grid,
    launch_grid,
    rectangular_grid,
    work_list,
)
from memspec.layout.packed_block_zeroing.tensors import clear, view_of
from memspec_tools import exhibit

device = exhibit.device()
exhibit.banner(device)
torch.set_num_threads(1)
BLUE, ORANGE, GREEN, RED, *_ = exhibit.PALETTE

SENTINEL = 0xA5
BLOCKS, LAYERS, ROW, COLUMN = 100, 4, 149_760, 37_440
BASE = 2 * ROW  # room below and above the allocation
OLD = next(fault for fault in FAULTS if fault.name == "span-is-stride").subject()


def require(holds: bool, what: str) -> None:
    """The page must not be built on a result that contradicts its text."""
    if not holds:
        raise RuntimeError(f"this page claims what this run did not show: {what}")


memory = torch.full((BASE + BLOCKS * ROW + 2 * ROW,), SENTINEL, dtype=torch.uint8, device=device)
allocation = memory[BASE : BASE + BLOCKS * ROW]
layers = [allocation.as_strided((BLOCKS, 64, 584), (ROW, 584, 1), BASE + n * COLUMN) for n in range(LAYERS)]
views = [view_of(f"layer {n}", tensor) for n, tensor in enumerate(layers)]  # addresses count from the storage's start
for part in segments(views):
    print(f"address {part.address - BASE:>7,}  block stride {part.block_stride:,}  span {part.span:,}")

# %%
# What is gone
# ------------
# Block 98 of layer 1, then block 99 of layer 3: once with the page as span, once with the row as span, as vLLM did up to
# 0.27.1. The right clears go through the torch implementation; the old intervals are written as they are.


def right(layer: int, block: int) -> None:
    clear(memory, 0, views[layer : layer + 1], [block])


def wrong(layer: int, block: int) -> None:
    for start, end in OLD.cleared_intervals(views[layer : layer + 1], [block]):
        memory[start:end] = 0


def zeroed(run: Callable[[int, int], None], layer: int, block: int) -> torch.Tensor:
    """Which bytes of the memory are zero after one clear; sentinels everywhere else."""
    memory.fill_(SENTINEL)
    run(layer, block)
    return (memory == 0).cpu()


def damage(gone: torch.Tensor, layer: int, block: int) -> dict[str, int]:
    """Bytes lost by each other block of each layer, and bytes written outside the allocation."""
    lost = {}
    for n in range(LAYERS):
        held = gone.as_strided((BLOCKS, 64 * 584), (ROW, 1), BASE + n * COLUMN).sum(1)
        lost |= {
            f"layer {n}, block {b}": int(held[b]) for b in held.nonzero().flatten().tolist() if (n, b) != (layer, block)
        }
    outside = int(gone[:BASE].sum() + gone[BASE + BLOCKS * ROW :].sum())
    return lost | ({"outside the allocation": outside} if outside else {})


PAIRS = ((1, 98), (3, 99))
maps = {}
for layer, block in PAIRS:
    for name, run in (("page as span", right), ("row as span", wrong)):
        gone = maps[layer, block, name] = zeroed(run, layer, block)
        lost = damage(gone, layer, block)
        print(f"layer {layer}, block {block}, {name}: {int(gone.sum()):,} bytes zero; lost: {lost or 'nothing'}")
        require(bool(lost) == (run is wrong), "only the row as span does damage")

exhibit.metric("cleared bytes, page as span", int(maps[1, 98, "page as span"].sum()), unit="B")
exhibit.metric("cleared bytes, row as span", int(maps[1, 98, "row as span"].sum()), unit="B")
outside = damage(maps[3, 99, "row as span"], 3, 99)["outside the allocation"]
exhibit.metric("bytes outside the allocation, row as span", outside, unit="B")

# %%
# The map shows rows 97 to 100 of the memory; row 100 is already beyond the allocation. Each cell is 64 bytes, so that the
# gap at the end of a column, which only aligns the next layer, is a cell of its own.

CELL, FIRST = 64, 97


def painted(gone: torch.Tensor, layer: int, block: int) -> torch.Tensor:
    """Rows 97 to 100 in cells: 0 untouched, 1 due and cleared, 2 not due, 3 beyond the allocation."""
    wanted = torch.zeros_like(gone)
    for start, end in cleared_intervals(views[layer : layer + 1], [block]):
        wanted[start:end] = True
    hit, due = (m[BASE + FIRST * ROW : BASE + (FIRST + 4) * ROW].view(4, -1, CELL).any(-1) for m in (gone, wanted))
    beyond = (torch.arange(FIRST, FIRST + 4) >= BLOCKS).unsqueeze(1)
    return torch.where(hit & due, 1, torch.where(hit & beyond, 3, torch.where(hit, 2, 0)))


from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Patch

palette = ListedColormap(["#8a8f9833", GREEN, RED, "#CC79A7"])
figure, axes = exhibit.figure(
    rows=2,
    columns=2,
    title="The row as span wipes other layers, the next block, and memory beyond the allocation",
    height=3.9,
)
for line, (layer, block) in zip(axes, PAIRS, strict=True):
    for axis, name in zip(line, ("page as span", "row as span"), strict=True):
        grid = painted(maps[layer, block, name], layer, block)
        axis.imshow(grid.numpy(), cmap=palette, norm=BoundaryNorm([0, 1, 2, 3, 4], 4), aspect="auto", interpolation="nearest",
                    extent=(0, ROW / 1000, 100.5, 96.5))  # fmt: skip
        for n in range(1, LAYERS):
            axis.axvline(n * COLUMN / 1000, color=exhibit.INK, linewidth=0.6)
        axis.axhline(99.5, color=exhibit.INK, linewidth=1.4, linestyle="--")
        axis.set(
            title=f"layer {layer}, block {block}: {name}",
            xlabel="byte of the row (kB)",
            ylabel="row",
            yticks=range(97, 101),
        )
figure.legend(
    handles=[Patch(color=GREEN, label="due"), Patch(color=RED, label="cleared and not due"),
             Patch(color="#CC79A7", label="beyond the allocation (below the dashed line)")],
    loc="outside lower center", ncols=3,
)  # fmt: skip

# %%
# How it is launched
# ------------------
# The largest step of that model: 6,870 blocks of 181 segments, 91 of 37,376 bytes and 90 of 1,168. The geometry of
# 0.27.0 takes the largest power of two that divides every span as its chunk; that of 0.28.0 gives every segment the chunks
# of the longest one. The reference lists the pieces that exist and starts as many programs as the device keeps busy.

SPANS = [37_376] * 91 + [1_168] * 90
STEP = 6_870
busy = torch.cuda.get_device_properties(0).multi_processor_count if device == "cuda" else 132
before, since = common_divisor_grid(SPANS, STEP), rectangular_grid(SPANS, STEP)
pieces, grid = STEP * len(work_list(SPANS)), launch_grid(SPANS, STEP, busy)
exhibit.metric("programs, 0.27.0", before.programs)
exhibit.metric("programs, 0.28.0", since.programs)
exhibit.metric("useful programs, 0.28.0", since.useful)
exhibit.metric("pieces in the list of existing ones", pieces)
exhibit.metric(f"programs of the persistent launch on {busy} multiprocessors", grid[0])
require(before.programs > 2**31 - 1, "the grid of 0.27.0 exceeds what CUDA launches along x")

# %%
# Sixteen-byte stores need aligned addresses. With columns on 16-byte boundaries the whole page is one aligned body; a base
# that is off by a word costs a head and a tail in each page.

shares = {}
for page in (64, 256, 1_168, 4_096, 37_376):
    for shift in (0, 4):
        part = segments([View("page", shift, (8, page), (page + (-page) % 16 + 64, 1), 1)])
        wide, total = wide_bytes(part, range(8))
        shares[page, shift] = 100 * wide / total
row, address = [], 0
for span in SPANS:
    row.append(View(f"segment {len(row)}", address, (2, span), (5_000_400 // 16 * 16, 1), 1))
    address += -(-span // 576) * 576
wide, total = wide_bytes(segments(row), [0, 1])
exhibit.metric("bytes by 16-byte stores in the 181-segment plan", 100 * wide / total, unit="%")
require(100 * wide >= 99 * total, "at least 99 in 100 bytes of the plan go by 16-byte stores")

figure, (left, right_axis) = exhibit.figure(
    columns=2, title="Useful and useless programs; bytes that 16-byte stores can write", height=3.2
)
names = ["0.27.0", "0.28.0", "pieces that\nexist"]
useful, all_programs = [before.useful, since.useful, pieces], [before.programs, since.programs, pieces]
left.bar(names, all_programs, color=ORANGE, label="find nothing to do")
left.bar(names, useful, color=BLUE, label="clear something")
left.axhline(2**31 - 1, color=RED, linewidth=1, linestyle="--", label="limit of a CUDA grid")
left.set(yscale="log", ylim=(1e6, 1e12), ylabel="programs or pieces of one step", title="one step of 6,870 blocks")
for n, (some, total_programs) in enumerate(zip(useful, all_programs, strict=True)):
    left.text(n, total_programs * 1.15, f"{100 * some / total_programs:.0f} % useful", ha="center", fontsize=8)
left.legend(loc="upper right")
for shift, colour, mark in ((0, BLUE, "o"), (4, ORANGE, "s")):
    found = [(page, share) for (page, off), share in shares.items() if off == shift]
    right_axis.plot(*zip(*found, strict=True), color=colour, marker=mark, label=f"page starts at 16 n + {shift}")
right_axis.set(xscale="log", ylim=(0, 105), xlabel="page (B)", ylabel="share of bytes (%)", title="16-byte stores")
right_axis.legend(loc="lower right")

# %%
# How fast
# --------
# On a CUDA device: bytes cleared per second by the kernel and by torch's ``index_fill_``, against ``zero_`` on one
# contiguous tensor of as many bytes and against a copy of as many bytes. The kernel's time contains the copy of the ids,
# that of ``index_fill_`` one launch for each segment. On the CPU nothing is timed: the kernel is
# interpreted there, and only its bytes are looked at.

from memspec.layout.packed_block_zeroing import kernels

ROUNDS = 30


def cache(span: int, number: int, blocks: int) -> tuple[torch.Tensor, list[View]]:
    """A packed cache of ``number`` layers with pages of ``span`` bytes, each page followed by 64 bytes of nobody's."""
    column = -(-(span + 64) // 16) * 16
    storage = torch.full((blocks * number * column,), SENTINEL, dtype=torch.uint8, device=device)
    return storage, [View(f"layer {n}", n * column, (blocks, span), (number * column, 1), 1) for n in range(number)]


def cleared_as_due(storage: torch.Tensor, prepared: Sequence[View], ids: Sequence[int]) -> bool:
    """Whether the due bytes are zero and all others are as they were."""
    due = torch.full_like(storage, SENTINEL)
    for start, end in cleared_intervals(prepared, ids):
        due[start:end] = 0
    return torch.equal(storage, due)


def seconds(run: Callable[[], object]) -> float:
    """Median time of one run on the device, after three unmeasured ones."""
    for _ in range(3):
        run()
    times = []
    for _ in range(ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return statistics.median(times)


def rates(span: int, number: int, count: int) -> dict[str, float]:
    """GB/s of four ways to write ``count`` blocks of ``number`` pages; every second block of the cache is cleared."""
    storage, prepared = cache(span, number, 2 * count)
    ids, size = list(range(0, 2 * count, 2)), span * number * count
    plan = kernels.plan(storage, 0, prepared)
    kernels.clear(plan, ids)
    require(cleared_as_due(storage, prepared, ids), "the kernel clears the due bytes and no others")
    flat, source = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))
    ways: dict[str, Callable[[], object]] = {
        "kernel": lambda: kernels.clear(plan, ids),
        "index_fill_": lambda: clear(storage, 0, prepared, ids),
        "zero_ (contiguous)": flat.zero_,
        "copy (contiguous)": lambda: flat.copy_(source),
    }
    return {name: size / seconds(run) / 1e9 for name, run in ways.items()}


storage, small = cache(1_168, 3, 6)
kernels.clear(kernels.plan(storage, 0, small), [2, 3])
require(cleared_as_due(storage, small, [2, 3]), "the kernel clears the due bytes and no others")
print("the kernel clears the due bytes of a small packed cache and no others")

if device == "cuda":
    sweeps: dict[str, list[tuple[int, dict[str, float]]]] = {
        "page (B)": [(span, rates(span, 16, max(1, (1 << 28) // (16 * span)))) for span in (256, 1_168, 4_096, 16_384, 37_376, 131_072)],
        "segments of a block": [(number, rates(37_376, number, max(1, (1 << 28) // (number * 37_376)))) for number in (1, 4, 16, 64, 181)],
        "blocks of a call": [(count, rates(37_376, 16, count)) for count in (1, 4, 16, 64, 256, 1_024)],
    }  # fmt: skip
    figure, axes = exhibit.figure(
        columns=3,
        title="Bytes written per second: kernel, index_fill_, zero_, copy",
        height=3.4,
        width=9.5,
        sharey=True,
    )
    for axis, (label, found) in zip(axes, sweeps.items(), strict=True):
        for name, colour in zip(found[0][1], (BLUE, ORANGE, GREEN, RED), strict=True):
            axis.plot([x for x, _ in found], [rate[name] for _, rate in found], color=colour, marker="o", label=name)
        axis.set(xscale="log", yscale="log", xlabel=label)
    axes[0].set_ylabel("GB/s")
    axes[0].legend()
    typical = dict(sweeps["segments of a block"])[181]
    for name, rate in typical.items():
        exhibit.metric(f"{name}, pages of 37,376 B, 181 segments", rate, unit="GB/s", benchmark=True)
    exhibit.metric("kernel against zero_", typical["kernel"] / typical["zero_ (contiguous)"], unit="x", benchmark=True)
else:
    print("no CUDA device: nothing is timed")

# %%
# What to take along
# ------------------
# The address was right all the time; the length was not. Keep address, distance and length apart, derive the length from the
# view, and look at every byte around the allocation when you test it.
