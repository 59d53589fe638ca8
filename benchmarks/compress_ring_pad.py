"""How many requests a second the planners plan, as a ratio to the plain way of writing them.

Plain is one loop over all tokens that applies the definition to each and looks slots up one by one; NumPy is the same
rule over arrays, from the requests as Python objects to lists of entries, as the host planner has it. All must plan
the same writes and compressions. Run: ``python benchmarks/compress_ring_pad.py``. Times depend on the machine; compare
ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from memspec.capacity.compress_ring_pad import Geometry, Plan, Request, host_plan, tensors, write_pad
from memspec.capacity.compress_ring_pad.data import Compression, Write
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

ROUNDS = 15
C4, C128 = Geometry(4, 16), Geometry(128, 256)
Planner = Callable[[Geometry, list[Request], int], Plan]


def plain_loop(geometry: Geometry, requests: list[Request], tokens: int) -> Plan:
    """The definition, token by token."""
    ratio, ring, page = geometry.ratio, geometry.ring, geometry.page
    paged, window, pad = ratio == 4, 8 if ratio == 4 else ratio, write_pad(ratio, ring)
    compressions, writes, token = [], [], 0

    def slot(request: Request, position: int) -> int:
        return (request.pages[position // page] if paged else request.slot) * ring + position % ring

    for number, request in enumerate(requests):
        for index in range(request.extend):
            position, end = request.prefix + index, request.prefix + request.extend
            if (position + 1) % ratio == 0:
                early = window - min(index + 1, window)
                before, own = slot(request, max(position - ratio, 0)) // ratio, slot(request, position) // ratio
                compressions.append(
                    Compression(position + 1, token, early, *((before, own) if early else (-1, number)))
                )
            first = min(end // ratio * ratio - (4 if paged else 0), end - pad)
            if position >= first or (paged and position % page >= page - ratio):
                writes.append(Write(token, slot(request, position)))
            token += 1
    return Plan(compressions, writes)


def numpy_plan(geometry: Geometry, requests: list[Request], tokens: int) -> Plan:
    """The same over arrays."""
    ratio, ring, page = geometry.ratio, geometry.ring, geometry.page
    paged, window, pad = ratio == 4, 8 if ratio == 4 else ratio, write_pad(ratio, ring)
    prefixes, extends = (np.array([getattr(r, name) for r in requests]) for name in ("prefix", "extend"))
    owner = np.repeat(np.arange(len(requests)), extends)
    token = np.arange(tokens)
    index = token - np.repeat(np.cumsum(extends) - extends, extends)
    position, end = prefixes[owner] + index, (prefixes + extends)[owner]
    longest = max(len(r.pages) for r in requests)
    pages = np.array([[*r.pages, *[0] * (longest - len(r.pages))] for r in requests])
    slots = np.array([r.slot for r in requests])

    def slot(at: np.ndarray, of: np.ndarray) -> np.ndarray:
        return (pages[of, at // page] if paged else slots[of]) * ring + at % ring

    kept = position >= np.minimum(end // ratio * ratio - (4 if paged else 0), end - pad)
    if paged:
        kept |= position % page >= page - ratio
    writes = np.stack([token, slot(position, owner)], 1)[kept]
    ends = (position + 1) % ratio == 0
    position, index, of = position[ends], index[ends], owner[ends]
    early = window - np.minimum(index + 1, window)
    before = np.where(early > 0, slot(np.maximum(position - ratio, 0), of) // ratio, -1)
    own = np.where(early > 0, slot(position, of) // ratio, of)
    words = np.stack([position + 1, token[ends], early, before, own], 1)
    return Plan([Compression(*entry) for entry in words.tolist()], [Write(*entry) for entry in writes.tolist()])


def torch_plan(geometry: Geometry, requests: list[Request], tokens: int) -> Plan:
    """The device planner on the CPU, as tensors; converting them back is left out, as a device would."""
    return tensors.plan(geometry, tensors.batch_on(requests, "cpu"), tokens)  # type: ignore[return-value]


def batches() -> dict[str, tuple[Geometry, list[Request]]]:
    """What a server plans: verify steps of six drafts, and a few long chunks."""

    def some(count: int, prefix: int, extend: int) -> list[Request]:
        return [Request(n, prefix + 7 * n, extend, tuple(range(64 * n, 64 * n + 64))) for n in range(count)]

    return {
        "256 verify steps of 6, ratio 4": (C4, some(256, 1000, 6)),
        "256 verify steps of 6, ratio 128": (C128, some(256, 1000, 6)),
        "8 chunks of 2,048, ratio 4": (C4, some(8, 500, 2048)),
        "8 chunks of 2,048, ratio 128": (C128, some(8, 500, 2048)),
    }


def requests_per_second(
    planner: Planner, geometry: Geometry, requests: list[Request], tick: Callable[[], None]
) -> float:
    """The median of ``ROUNDS`` runs."""
    tokens, times = sum(r.extend for r in requests), []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        planner(geometry, requests, tokens)
        times.append(time.perf_counter() - began)
        tick()
    return len(requests) / statistics.median(times)


def main() -> None:
    planners: dict[str, Planner] = {
        "plain loop": plain_loop, "NumPy": numpy_plan, "host planner": host_plan, "device rule in torch": torch_plan
    }  # fmt: skip
    table = Table("batch", *[f"{name}: requests/s (ratio)" for name in planners], title="CPU; ratio to the plain loop")
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("planning", total=len(batches()) * len(planners) * ROUNDS)
        for name, (geometry, requests) in batches().items():
            tokens = sum(r.extend for r in requests)
            due = host_plan(geometry, requests, tokens)
            for other in (plain_loop, numpy_plan):
                found = other(geometry, requests, tokens)
                if [sorted(part) for part in found] != [sorted(part) for part in due]:
                    raise RuntimeError(f"{name}: {other.__name__} plans something else")
            speeds = [
                requests_per_second(p, geometry, requests, lambda: progress.advance(task)) for p in planners.values()
            ]
            table.add_row(name, *[f"{speed:,.0f} ({speed / speeds[0]:.2f})" for speed in speeds])
    Console().print(table)


if __name__ == "__main__":
    main()
