"""Real ranks for the round trip: groups of processes, one after another, share page files and nothing else.

Run as ``python canonical_layout_ranks.py FOLDER WRITERS READERS [FAULT]``, sizes as in ``4,2``; prints one JSON object:
for each cache, writer and reader size the pages that some rank read wrong. Ranks meet through a FileStore; torch is
imported once and the ranks are forked from here. What is due is spelled here by broadcasting over (half, head, token,
byte), without the maps.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from memspec.layout.canonical_layout import Cell, Grid, Layer, Spec, View, reference
from memspec.layout.canonical_layout.faults import FAULTS
from memspec.layout.canonical_layout.tensors import copy_, prepare

PAGES = (2, 5, 0, 7, 4, 1, 3, 6)
TOKENS, HEAD_BYTES, PADDING = 4, 8, 24
STALE = 0xEE


@dataclass(frozen=True)
class Cache:
    name: str
    form: str
    family: str
    heads: int

    def local_heads(self, rank: int, ranks: int) -> range:
        each, replicas = max(1, self.heads // ranks), max(1, ranks // self.heads)
        return range(rank // replicas * each, rank // replicas * each + each)


CACHES = (
    Cache("packed-hnd", "packed", "hnd", 4),
    Cache("split-nhd", "split", "nhd", 4),
    Cache("two-heads", "packed", "nhd", 2),
    Cache("latent", "latent", "nhd", 1),
)


def local_page(cache: Cache, rank: int, ranks: int, page: int) -> torch.Tensor:
    """The rank's bytes of a page: each names its (half, head, token, byte) in 8 bits, shifted by the page."""
    half, token, byte = torch.arange(2), torch.arange(TOKENS), torch.arange(HEAD_BYTES)
    head = torch.arange(1) if cache.form == "latent" else torch.tensor(list(cache.local_heads(rank, ranks)))
    if cache.form == "latent":
        half = torch.zeros(1, dtype=torch.int64)
    axes = {  # order of the axes in memory
        ("packed", "nhd"): "token head half byte",
        ("packed", "hnd"): "head token half byte",
        ("split", "nhd"): "half token head byte",
        ("split", "hnd"): "half head token byte",
        ("latent", "nhd"): "half head token byte",
    }[cache.form, cache.family].split()
    value = torch.zeros((1, 1, 1, 1), dtype=torch.int64)
    for name, numbers, weight in (("half", half, 128), ("head", head, 32), ("token", token, 8), ("byte", byte, 1)):
        shape = [1, 1, 1, 1]
        shape[axes.index(name)] = len(numbers)
        value = value + (numbers * weight).reshape(shape)
    return ((value + 37 * page) % 256).to(torch.uint8).flatten()


def layer_of(cache: Cache, ranks: int) -> Layer:
    """The layer with the live view that such a cache has; one-byte elements."""
    if cache.form == "latent":
        return Layer(cache.name, Spec("latent", TOKENS, 1, 1, HEAD_BYTES, 1, TOKENS * HEAD_BYTES))
    heads = len(cache.local_heads(0, ranks))
    cell = (2 if cache.form == "packed" else 1) * HEAD_BYTES
    head, token = (cell, heads * cell) if cache.family == "nhd" else (TOKENS * cell, cell)
    half, size = TOKENS * heads * cell, 2 * TOKENS * heads * HEAD_BYTES
    shape, strides = (8, heads, TOKENS, cell), (half, head, token, 1)
    if cache.form == "split":
        shape, strides = (8, 2, TOKENS, heads, cell), (2 * half, half, token, head, 1)
    spec = Spec("full", TOKENS, heads, cache.heads, HEAD_BYTES, 1, size)
    return Layer(cache.name, spec, (View(shape, strides),) * ranks, "nhd" if cache.family == "nhd" else "hnd")


def page_file(folder: Path, cache: Cache, writers: int, row_bytes: int) -> torch.Tensor:
    """The shared pages, memory-mapped. The row is the canonical page, rounded up."""
    path = folder / f"{cache.name}-{writers}.pages"
    return torch.from_file(str(path), shared=True, size=row_bytes * len(PAGES), dtype=torch.uint8)


def one_rank(
    rank: int, ranks: int, folder: Path, role: str, all_writers: tuple[int, ...], fault: str, answers: Any
) -> None:
    torch.set_num_threads(1)
    subject = next(f.subject() for f in FAULTS if f.name == fault) if fault else reference
    gpus = torch.cuda.device_count() >= ranks
    backend, device = ("nccl", f"cuda:{rank}") if gpus else ("gloo", "cpu")
    if gpus:
        torch.cuda.set_device(rank)
    store = dist.FileStore(str(folder / f"meet-{role}-{ranks}"), ranks)
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks)
    for cache in CACHES:
        layer = layer_of(cache, ranks)
        maps = subject.map_layer(layer, Grid(ranks))
        cell: Cell = subject.lay_out([[maps]], 1).cells[0]
        padded, blocks = layer.spec.page_bytes + PADDING, range(len(PAGES))
        own = [local_page(cache, rank, ranks, page) for page in PAGES]
        for writers in (ranks,) if role == "write" else all_writers:
            pages = page_file(folder, cache, writers, cell.row_bytes)
            local = torch.full((padded * len(PAGES),), STALE, dtype=torch.uint8, device=device)
            if role == "write":
                for block, held in enumerate(own):
                    local[block * padded : block * padded + len(held)] = held
                if rank in subject.submitting_ranks(maps):
                    plan = subject.plan_copies("store", maps[rank], blocks, PAGES, padded, cell)
                    copy_(prepare(plan, "cpu"), local.cpu(), pages)
                heard = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(ranks)]
                dist.all_gather(heard, torch.tensor([rank], device=device))
                if not subject.complete([int(number) for number in heard], ranks):
                    raise RuntimeError(f"rank {rank}: all {ranks} ranks acknowledged and the store is not complete")
                continue
            loaded = local.cpu()
            copy_(prepare(subject.plan_copies("load", maps[rank], blocks, PAGES, padded, cell), "cpu"), pages, loaded)
            local.copy_(loaded)
            wrong = torch.zeros(len(PAGES), dtype=torch.int64, device=device)
            for block, (page, held) in enumerate(zip(PAGES, own, strict=True)):
                seen = local[block * padded : (block + 1) * padded].cpu()
                due = torch.cat([held, torch.full((PADDING,), STALE, dtype=torch.uint8)])
                wrong[page] = int(not torch.equal(seen, due))
            dist.all_reduce(wrong)
            if rank == 0:
                answers.put((f"{cache.name} {writers}->{ranks}", [p for p in range(len(PAGES)) if wrong[p]]))
    dist.barrier()
    dist.destroy_process_group()


def main(folder: Path, writers: tuple[int, ...], readers: tuple[int, ...], fault: str) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    for cache in CACHES:
        for ranks in writers:
            (folder / f"{cache.name}-{ranks}.pages").write_bytes(bytes([STALE]) * 4096 * len(PAGES))
    for role, sizes in (("write", writers), ("read", readers)):
        for ranks in sizes:
            group = [
                context.Process(target=one_rank, args=(r, ranks, folder, role, writers, fault, answers))
                for r in range(ranks)
            ]
            for process in group:
                process.start()
            for process in group:
                process.join()
            if failed := [process.exitcode for process in group if process.exitcode]:
                raise SystemExit(f"{role} on {ranks} ranks: exit codes {failed}")
    seen = {}
    while not answers.empty():
        name, wrong = answers.get()
        seen[name] = wrong
    print(json.dumps(seen, sort_keys=True))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    first, second = (tuple(int(size) for size in sizes.split(",")) for sizes in sys.argv[2:4])
    main(Path(sys.argv[1]), first, second, sys.argv[4] if len(sys.argv) > 4 else "")
