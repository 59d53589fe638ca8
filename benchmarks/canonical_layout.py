"""How long a plan takes to build, and how near its copies come to one contiguous copy of the same bytes.

Run by hand: ``python benchmarks/canonical_layout.py [--device cuda] [--mebibytes 256] [--repeats 5]``. Ratios, not
absolute figures, are printed: each is taken against a contiguous ``copy_`` of the same bytes in the same run. Page ids
are random on both sides.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

import torch
from memspec.layout.canonical_layout import Grid, Layer, PageMap, Spec, View, fragments, lay_out, map_layer, plan_copies
from memspec.layout.canonical_layout.data import Family
from memspec.layout.canonical_layout.tensors import Batch, copy_, copy_page_by_page_, prepare
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn
from rich.table import Table

KIB = 1024
Copy = Callable[[tuple[Batch, ...], torch.Tensor, torch.Tensor], None]
PAGES = (256 * KIB, 1024 * KIB, 4096 * KIB)  # bytes of a rank's page
FORMS = (("packed", "hnd"), ("packed", "nhd"), ("split", "hnd"), ("split", "nhd"), ("latent", "nhd"))


@dataclass(frozen=True)
class Shape:
    """A model's cache: layers, heads (0: latent), elements a head or row, tensor-parallel ranks."""

    name: str
    layers: int
    heads: int
    head_size: int
    ranks: int


MODELS = (Shape("Llama-3.1-70B", 80, 8, 128, 4), Shape("DeepSeek-V3", 61, 0, 576, 8))


def layer(form: str, family: str, heads: int, head_size: int, ranks: int, block_tokens: int) -> Layer:
    """A bf16 layer on ``ranks`` ranks with the live view that such a cache has."""
    if form == "latent":
        return Layer("latent", Spec("latent", block_tokens, 1, 1, head_size, 2, block_tokens * head_size * 2))
    local = max(1, heads // ranks)
    cell = (2 if form == "packed" else 1) * head_size
    head, token = (cell, local * cell) if family == "nhd" else (block_tokens * cell, cell)
    half = block_tokens * local * cell
    if form == "packed":
        view = View((1, local, block_tokens, cell), (half, head, token, 1))
    else:
        view = View((1, 2, block_tokens, local, cell), (2 * half, half, token, head, 1))
    spec = Spec("full", block_tokens, local, heads, head_size, 2, 2 * local * block_tokens * head_size * 2)
    chosen = next(name for name in get_args(Family) if name == family)
    return Layer(form, spec, (view,) * ranks, chosen)


def median(run: Callable[[], object], device: str, repeats: int) -> float:
    """Median seconds of ``run`` after two unmeasured runs; on CUDA the device is waited for."""
    taken = []
    for i in range(repeats + 2):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        if i >= 2:
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def plan_times(repeats: int) -> Table:
    """Milliseconds to build one transfer of 256 pages of all layers, per model and form."""
    table = Table(
        "model", "form", "ranks", "fragments a page", "copies", "map ms", "plan ms", title="Plan building (CPU)"
    )
    for shape in MODELS:
        for form, family in FORMS if shape.heads else ():
            add_plan_row(table, shape, form, family, repeats)
        if not shape.heads:
            add_plan_row(table, shape, "latent", "nhd", repeats)
    return table


def add_plan_row(table: Table, shape: Shape, form: str, family: str, repeats: int) -> None:
    if form == "latent" and shape.heads:
        return
    made, grid = layer(form, family, shape.heads, shape.head_size, shape.ranks, 16), Grid(shape.ranks)
    maps = map_layer(made, grid)
    region = lay_out([[maps]] * shape.layers, 1)
    ids = random.Random(0).sample(range(4096), 256)
    mapping = median(lambda: [map_layer(made, grid) for _ in range(shape.layers)], "cpu", repeats)
    planning = median(
        lambda: [plan_copies("load", maps[1], range(256), ids, made.spec.page_bytes, cell) for cell in region.cells],
        "cpu",
        repeats,
    )
    count = len(fragments(maps[1]))
    copies = count * 256 * shape.layers
    table.add_row(
        shape.name,
        f"{form} {family}",
        str(shape.ranks),
        str(count),
        f"{copies:,}",
        f"{mapping * 1e3:.1f}",
        f"{planning * 1e3:.1f}",
    )


@dataclass(frozen=True)
class Transfer:
    """One measured transfer: a form, its fragments, and each way's ratio to the contiguous copy (1 is as fast)."""

    form: str
    page_bytes: int
    fragment_bytes: int
    fragments: int
    ratios: dict[str, float]


def measured(
    form: str, family: str, page_bytes: int, total: int, device: str, repeats: int, ranks: int = 2, heads: int = 8
) -> Transfer:
    """Store ``total`` bytes of pages from random blocks to random store pages, and compare with one contiguous copy
    of the same bytes.
    """
    head_size = 512 if form == "latent" else 128
    tokens = page_bytes // (2 * head_size * (1 if form == "latent" else 2 * heads // ranks))
    page = replace(
        map_layer(layer(form, family, heads, head_size, ranks, tokens), Grid(ranks))[0], writers=1, writer_index=0
    )
    pages = max(2, total // page_bytes)
    cell = lay_out([[(page,)]], 1).cells[0]
    dice = random.Random(page_bytes)
    blocks, ids = dice.sample(range(pages), pages), dice.sample(range(pages), pages)
    source = torch.randint(0, 256, (pages * page_bytes,), dtype=torch.uint8, device=device)
    store = torch.zeros(pages * cell.row_bytes, dtype=torch.uint8, device=device)
    plain = torch.zeros_like(source)
    batches = prepare(plan_copies("store", page, blocks, ids, page_bytes, cell), device)
    loop = partial(copy_page_by_page_, "store", page, blocks, ids, page_bytes, cell, source, store)
    loop()
    ratios, contiguous = {}, median(lambda: plain.copy_(source), device, repeats)
    for name, way in ways(device).items():
        moved = torch.zeros_like(store)
        ratios[name] = contiguous / median(partial(way, batches, source, moved), device, repeats)
        if not torch.equal(moved, store):
            raise RuntimeError(f"{form} {family}: {name} and the loop over pages differ")
    ratios["page loop"] = contiguous / median(loop, device, max(1, repeats // 2))
    return Transfer(f"{form} {family}", page_bytes, batches[0].size, fragment_count(page), ratios)


def ways(device: str) -> dict[str, Copy]:
    """The ways to carry out a prepared plan on ``device``; the kernel only where it is compiled."""
    if device != "cuda":
        return {"torch": copy_}
    from memspec.layout.canonical_layout import kernels

    return {"kernel": kernels.copy_, "torch": copy_}


def fragment_count(page: PageMap) -> int:
    return sum(run.count for run in page.runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--mebibytes", type=int, default=0, help="bytes to move; default 256 on the CPU, 1024 on CUDA")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    total = (asked.mebibytes or (1024 if asked.device == "cuda" else 256)) * KIB * KIB
    console = Console()
    jobs = [(form, family, page) for form, family in FORMS for page in PAGES]
    names = [*ways(asked.device), "page loop"]
    table = Table("form", "page KiB", "fragment B", "copies a page", *names)
    table.title = f"Ratio to one copy_ of the same bytes on {asked.device}, {total >> 20} MiB"
    with Progress(
        SpinnerColumn(), *Progress.get_default_columns(), TimeElapsedColumn(), console=console, transient=True
    ) as progress:
        task = progress.add_task("plans", total=1 + len(jobs))
        plans = plan_times(asked.repeats)
        progress.advance(task)
        for form, family, page in jobs:
            progress.update(task, description=f"{form} {family} {page // KIB} KiB")
            seen = measured(form, family, page, total, asked.device, asked.repeats)
            shown = [f"{seen.ratios[name]:.2f}" for name in names]
            table.add_row(seen.form, str(page // KIB), f"{seen.fragment_bytes:,}", f"{seen.fragments:,}", *shown)
            progress.advance(task)
    console.print(plans, table)


if __name__ == "__main__":
    main()
