"""
Canonical layout: who may read whose pages
==========================================

Engines that split the same model over 1, 2, 4 or 8 ranks can share stored KV pages, if a byte's place depends on half,
head and token alone. This page draws the canonical page with each rank's part in its colour, moves pages between sizes
on this device, and shows what the released faults lose: pages of a latent that nobody wrote, rows that grow with the
ranks, and reads of direct bytes that have the right length and the wrong content. Last, it counts the copies that each
form costs and, on a CUDA device, measures them.
"""

# %%
# One layer, five pages
# ---------------------
# Four heads, four tokens. A square is the key or the value of one head for one token; the page is read line by line.
# The number is the token. Colour says which rank of four (of two in the last map) writes it.

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from matplotlib.colors import ListedColormap
from memspec.layout.canonical_layout import (
    Grid,
    PageMap,
    elected,
    fragments,
    lay_out,
    map_layer,
    page_ids,
    plan_copies,
    reference,
)
from memspec.layout.canonical_layout.checks.world import (
    FORMS,
    LATENT,
    World,
    canonical_page,
    layer_of,
    local_payload,
    payload,
    seen,
    spec_of,
)
from memspec.layout.canonical_layout.faults import FAULTS
from memspec.layout.canonical_layout.tensors import copy_, copy_page_by_page_, prepare
from memspec_tools import exhibit

device = exhibit.device()
exhibit.banner(device)
torch.set_num_threads(1)
RANKS = ListedColormap(list(exhibit.PALETTE[:4]))
GOOD, BAD = exhibit.PALETTE[2], exhibit.PALETTE[3]


def require(holds: bool, what: str) -> None:
    """The page must not be built on a result that contradicts its text."""
    if not holds:
        raise RuntimeError(f"this page claims what this run did not show: {what}")


def fault(name: str):
    """One of the finding's broken twins."""
    return next(f for f in FAULTS if f.name == name).subject()


def owners(world: World) -> list[int]:
    """For each byte of the canonical page the first rank whose map holds it."""
    held: dict[int, int] = {}
    for rank, page in enumerate(map_layer(layer_of(world), world.grid)):
        for _, canonical in seen(page):
            held.setdefault(canonical, rank)
    return [held[byte] for byte in range(len(held))]


SMALL = World(heads=4, tp=4, block=4, head_size=1)
MAPS = [(f"{form}, {family.upper()}, TP 4", replace(SMALL, form=form, family=family)) for form, family in FORMS]
MAPS += [
    ("2 heads on TP 4 (1 and 3 hold copies)", replace(SMALL, family="hnd", heads=2)),
    ("1 head, tokens dealt to DCP 2", replace(SMALL, family="hnd", heads=1, tp=2, dcp=2)),
]

figure, axes = exhibit.figure(2, 3, "The canonical page, by the rank that owns each cell", height=4.6)
for place, (title, world) in zip(axes.flat, MAPS, strict=True):
    elements, colours = canonical_page(world), owners(world)
    require(len(elements) == len(colours), f"{title}: the ranks cover the page")
    width = 8 if len(elements) > 16 else 4
    picture = [colours[row : row + width] for row in range(0, len(colours), width)]
    place.imshow(picture, cmap=RANKS, vmin=0, vmax=3, aspect="auto")
    for at, (half, _, token, _) in enumerate(elements):
        place.text(at % width, at // width, f"{'KV'[half]}{token}", ha="center", va="center", fontsize=6, color="black")
    place.set_title(title, fontsize=8)
    place.set(xticks=[], yticks=[])
figure.legend(
    handles=[axes.flat[0].scatter([], [], marker="s", color=RANKS(rank), label=f"rank {rank}") for rank in range(4)],
    loc="outside lower center",
    ncols=4,
)

# %%
# Which size reads which
# ----------------------
# Every size writes pages whose bytes name their half, head and token; every size reads them. Canonical pages go through
# the tensors of this device. The direct page is the rank's own page at the rank's own place: files of equal length, and
# a reader has no way to notice.

SIZES = (1, 2, 4, 8)
PAGES = (5, 0, 3, 6)


def stored(world: World, subject) -> torch.Tensor:
    """The store's bytes on the device after all ranks of ``world`` have written their pages."""
    maps = subject.map_layer(layer_of(world), world.grid)
    cell = lay_out([[maps]], 1).cells[0]
    store = torch.zeros(8 * cell.row_bytes, dtype=torch.uint8, device=device)
    for rank in subject.submitting_ranks(maps):
        pages = b"".join(local_payload(world, rank, page) for page in PAGES)
        local = torch.frombuffer(bytearray(pages), dtype=torch.uint8).to(device)
        plan = plan_copies("store", maps[rank], range(len(PAGES)), PAGES, spec_of(world).page_bytes, cell)
        copy_(prepare(plan, device), local, store)
    return store


def right_bytes(world: World, subject, store: torch.Tensor) -> float:
    """The share of bytes, in percent, that the ranks of ``world`` read as they were written."""
    maps = subject.map_layer(layer_of(world), world.grid)
    cell, right, total = lay_out([[maps]], 1).cells[0], 0, 0
    for rank, page in enumerate(maps):
        due = torch.frombuffer(bytearray(b"".join(local_payload(world, rank, p) for p in PAGES)), dtype=torch.uint8)
        local = torch.zeros_like(due, device=device)
        plan = plan_copies("load", page, range(len(PAGES)), PAGES, spec_of(world).page_bytes, cell)
        copy_(prepare(plan, device), store, local)
        right, total = right + int(local.cpu().eq(due).sum()), total + due.numel()
    return 100 * right / total


CACHE = World("split", "nhd", heads=8, block=8, head_size=16)
direct = fault("direct-read-as-canonical")
tables = []
for subject in (direct, reference):
    stores = {size: stored(replace(CACHE, tp=size), subject) for size in SIZES}
    tables.append(
        [[right_bytes(replace(CACHE, tp=reader), subject, stores[writer]) for reader in SIZES] for writer in SIZES]
    )

figure, axes = exhibit.figure(1, 2, "Bytes read as they were written, in percent (split NHD, 8 heads)", height=3.2)
for place, title, table in zip(axes, ("direct pages under one name", "canonical pages"), tables, strict=True):
    place.imshow(table, vmin=0, vmax=100, cmap="cividis", aspect="auto")
    for row, line in enumerate(table):
        for column, share in enumerate(line):
            place.text(
                column,
                row,
                f"{share:.1f}",
                ha="center",
                va="center",
                fontsize=8,
                color="black" if share > 50 else "white",
            )
    place.set(title=title, xlabel="reader's ranks", ylabel="writer's ranks")
    place.set(xticks=range(4), xticklabels=SIZES, yticks=range(4), yticklabels=SIZES)
require(all(share == 100 for line in tables[1] for share in line), "canonical pages read right at every size")
require(all(tables[0][i][i] == 100 for i in range(4)), "direct pages read right at their own size")
wrong_pairs = sum(share < 50 for line in tables[0] for share in line)
require(wrong_pairs == 12, "direct pages read wrong at every other size")
exhibit.metric("writer and reader sizes that misread direct pages", wrong_pairs, unit="of 16 pairs")

# %%
# Pages that nobody wrote
# -----------------------
# All ranks hold the same latent row, so they take turns by page id. vLLM 0.28.0 to 0.30.0 let rank 0 alone submit: the
# other ranks acknowledged pages that they never wrote, and a load returned whatever lay there.

IDS = page_ids(range(32), 1, 32)
released = fault("rotation-elects-ranks-that-do-not-submit")


def written_by(ranks: int, subject) -> list[int]:
    """For each page the rank that writes it, or -1."""
    maps = map_layer(layer_of(replace(LATENT, tp=ranks)), Grid(ranks))
    turn = {page: [r for r in subject.submitting_ranks(maps) if elected(maps[r], page)] for page in IDS}
    return [writers[0] if writers else -1 for writers in turn.values()]


figure, axes = exhibit.figure(
    2, 1, "Latent pages by the rank that writes them; red pages are never written", height=3.0
)
WRITERS = ListedColormap([BAD, *[colour for colour in exhibit.PALETTE if colour != BAD], "#999999", "#BBBBBB"])
for place, title, subject in zip(
    axes, ("every rank submits", "rank 0 alone submits"), (reference, released), strict=True
):
    lines = [written_by(ranks, subject) for ranks in (2, 4, 8)]
    place.imshow(lines, cmap=WRITERS, vmin=-1, vmax=7, aspect="auto")
    place.set(
        title=title,
        yticks=range(3),
        yticklabels=["TP 2", "TP 4", "TP 8"],
        xlabel="page id" if subject is released else "",
    )
    for line, ranks in zip(lines, (2, 4, 8), strict=True):
        lost = line.count(-1)
        require(lost == (0 if subject is reference else 32 - 32 // ranks), f"{title}, TP {ranks}: pages lost")
        if subject is released:
            exhibit.metric(f"latent pages never written, TP {ranks}", lost, unit="of 32")

# %%
# Rows and copies
# ---------------
# Left: a row sized by worker grows as soon as ranks outnumber heads, in a namespace that promises equal files. Right:
# copies for one page of 16 tokens on one of four ranks, and how long each is.

rows = {name: [] for name in ("canonical pages", "workers (vLLM 0.33.0)")}
for ranks in (1, 2, 4, 8, 16):
    world = World("packed", "nhd", heads=4, tp=ranks, block=16, head_size=128, element_bytes=2)
    maps = map_layer(layer_of(world), world.grid)
    for name, subject in zip(rows, (reference, fault("row-counts-workers")), strict=True):
        rows[name].append(subject.lay_out([[maps], [maps]], 1).row_bytes // 1024)
require(rows["canonical pages"] == [64] * 5, "the canonical row has one length")
require(rows["workers (vLLM 0.33.0)"] == [64, 64, 64, 128, 256], "the row by worker grows beyond four ranks")

MODEL = World(heads=8, tp=4, block=16, head_size=128, element_bytes=2)
costs = {}
for form, family in FORMS:
    world = replace(MODEL, form=form, family=family)
    pieces = fragments(map_layer(layer_of(world), world.grid)[1])
    costs[f"{form} {family.upper()}"] = (len(pieces), pieces[0][2])
    exhibit.metric(f"copies per page, {form} {family.upper()}", len(pieces))
    exhibit.metric(f"bytes per copy, {form} {family.upper()}", pieces[0][2], unit="B")

figure, (left, right) = exhibit.figure(
    1, 2, "A row by canonical pages has one length; packed HND takes one copy a page", height=3.2
)
for (name, sizes), mark in zip(rows.items(), ("o-", "s--"), strict=True):
    left.plot([1, 2, 4, 8, 16], sizes, mark, label=name)
left.set(title="2 layers, 4 heads, 16 tokens", xlabel="ranks", ylabel="row, KiB", ylim=(0, 280), xscale="log")
left.set_xticks([1, 2, 4, 8, 16], labels=["1", "2", "4", "8", "16"])
left.minorticks_off()
left.legend(loc="upper left")
names = list(costs)
bars = right.barh(names, [copies for copies, _ in costs.values()], color=exhibit.PALETTE[0])
right.bar_label(bars, [f"{copies} x {size / 1024:g} KiB" for copies, size in costs.values()], padding=3, fontsize=7)
right.set(title="8 heads on 4 ranks, 16 tokens, bf16", xlabel="copies per page", xlim=(0, 44))

# %%
# How fast the copies are
# -----------------------
# On a CUDA device: pages of fixed size go from random blocks to random store pages of the same memory. A ratio of 1 is
# one contiguous ``copy_`` of the same bytes in the same run. The Triton kernel moves each byte once, a tile of a fragment
# a program: fragments of a whole page keep it near the copy, fragments of a few hundred bytes leave a program little to
# do, and lines of memory are written in part. Plain torch copies long fragments view by view, where launches and Python
# bound it, and short ones by index through a staging buffer, where every byte moves twice. The baseline is a loop in
# Python over the pages. On the CPU the torch way runs once, to show that both ways agree, and no speed is shown.

KIB = 1024


def seconds(run: Callable[[], object], repeats: int) -> float:
    """Median time of ``run`` after two runs that are not measured; the device is waited for."""
    taken = []
    for turn in range(repeats + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        if turn >= 2:
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def transfer(world: World, total: int, measure: bool) -> dict[str, float]:
    """The speed of each way to copy as a ratio to a contiguous copy; empty where nothing is measured."""
    page: PageMap = replace(map_layer(layer_of(world), world.grid)[0], writers=1, writer_index=0)
    size = spec_of(world).page_bytes
    count = max(2, total // size)
    cell = lay_out([[(page,)]], 1).cells[0]
    dice = random.Random(size)
    blocks, ids = dice.sample(range(count), count), dice.sample(range(count), count)
    source = torch.randint(0, 256, (count * size,), dtype=torch.uint8, device=device)
    looped = torch.zeros(count * cell.row_bytes, dtype=torch.uint8, device=device)
    batches = prepare(plan_copies("store", page, blocks, ids, size, cell), device)

    def by_page() -> None:
        copy_page_by_page_("store", page, blocks, ids, size, cell, source, looped)

    by_page()
    ways = {"torch": copy_}
    if device == "cuda":
        from memspec.layout.canonical_layout import kernels

        ways = {"kernel": kernels.copy_, **ways}
    for name, way in ways.items():
        store = torch.zeros_like(looped)
        way(batches, source, store)
        require(torch.equal(store, looped), f"{world.form} {world.family}: {name} moves the bytes that the loop moves")
    if not measure:
        return {}
    plain = torch.empty_like(source)
    contiguous = seconds(lambda: plain.copy_(source), 9)
    speeds = {name: contiguous / seconds(partial(way, batches, source, store), 9) for name, way in ways.items()}
    return {**speeds, "page loop": contiguous / seconds(by_page, 3)}


CELLS = [
    (f"{form} {family.upper()}", World(form, family, heads=8, tp=2, head_size=128, element_bytes=2))
    for form, family in FORMS
]
CELLS.append(("latent", replace(LATENT, head_size=512, element_bytes=2)))
SIZES_KIB = (256, 1024, 4096) if device == "cuda" else (256,)
ratios: dict[str, list[dict[str, float]]] = {}
for name, world in CELLS:
    for page_kib in SIZES_KIB:
        sized = replace(world, block=page_kib * KIB // spec_of(replace(world, block=1)).page_bytes)
        speeds = transfer(sized, (512 if device == "cuda" else 4) * KIB * KIB, device == "cuda")
        ratios.setdefault(name, []).append(speeds)
        for way, ratio in speeds.items():
            exhibit.metric(f"{name}, {page_kib} KiB pages, {way}, ratio to copy_", ratio, unit="x", benchmark=True)

if device == "cuda":
    figure, axes = exhibit.figure(
        1, 3, "Copies of pages as a ratio to one contiguous copy_ of the same bytes", height=3.2, sharey=True
    )
    for place, way in zip(axes, ("kernel", "torch", "page loop"), strict=True):
        for offset, page_kib in enumerate(SIZES_KIB):
            heights = [of_form[offset][way] for of_form in ratios.values()]
            place.bar(
                [i + 0.27 * (offset - 1) for i in range(len(ratios))],
                heights,
                width=0.25,
                label=f"{page_kib} KiB pages",
            )
        place.set_xticks(range(len(ratios)), labels=list(ratios), rotation=45, ha="right", fontsize=7)
        place.set(title=way)
        place.axhline(1, color=exhibit.INK, linewidth=0.8)
    axes[0].set(ylabel="ratio (1 = contiguous)")
    axes[0].legend(fontsize=7)
else:
    print(f"{len(ratios)} forms moved alike by plan and page by page; no speed is measured on the CPU")
exhibit.metric("bytes of one canonical page in the round trips", len(payload(CACHE, 0)), unit="B")
