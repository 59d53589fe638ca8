"""The second formulation: token by token, scan by scan. Imports nothing from the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from memspec.capacity.chunked_attention_window.data import LayerGroup


@cache
def read_at(boundary: int, attention_chunk: int, offload_chunk: int) -> tuple[int, ...]:
    """Offload chunks of the tokens that share the boundary's attention chunk, each token looked at."""
    first = boundary
    while first % attention_chunk:
        first -= 1
    return tuple(sorted({token // offload_chunk for token in range(first, boundary)}))


def tokens_read(group: LayerGroup, boundary: int) -> range:
    """Tokens that token ``boundary`` reads in a layer of ``group``."""
    if group.kind == "chunked-local" and group.attention_chunk:
        return range(boundary - boundary % group.attention_chunk, boundary)
    if group.kind.startswith("sliding-window") and group.sliding_window:
        return range(max(0, boundary - group.sliding_window + 1 - group.extra_retained), boundary)
    return range(boundary)


def unreadable(group: LayerGroup, answers: Sequence[str], local: int, boundary: int) -> list[int]:
    """Tokens that the group reads at ``boundary`` and that neither the device nor a stored chunk supplies."""
    size = group.offload_chunk
    return [
        t for t in tokens_read(group, boundary) if t >= local and answers[t // size : t // size + 1] not in ("H", ["H"])
    ]


def scan(answers: Sequence[str], window: int) -> int | None:
    """One walk from the right with a counter: the released formulation of the lookup."""
    run, open_in_run, uncertain = 0, False, False
    for i in reversed(range(len(answers))):
        if answers[i] in "MU":
            run, open_in_run = 0, False
            uncertain = uncertain or answers[i] == "U"
        else:
            run, open_in_run = run + 1, open_in_run or answers[i] == "P"
        if run == window:
            return None if uncertain or open_in_run else i + window
    return None if uncertain or open_in_run else run


@cache
def strings(letters: str, longest: int) -> tuple[str, ...]:
    return tuple("".join(s) for n in range(longest + 1) for s in product(letters, repeat=n))


class World(NamedTuple):
    """One prompt, its device prefix, its groups and what the store holds for each."""

    prompt: int
    local: int
    groups: tuple[LayerGroup, ...]
    answers: tuple[str, ...]
    cap: int | None = None


def chunked(attention_chunk: int, offload_chunk: int) -> LayerGroup:
    return LayerGroup("chunked-local", offload_chunk, attention_chunk=attention_chunk)


def sliding(window: int, offload_chunk: int, extra: int = 0) -> LayerGroup:
    return LayerGroup("sliding-window", offload_chunk, sliding_window=window, extra_retained=extra)


def full(offload_chunk: int) -> LayerGroup:
    return LayerGroup("full-attention", offload_chunk)


def window_of(group: LayerGroup) -> int | None:
    """The window by counting pieces, of the two kinds of windowed group that a lookup meets."""
    size = group.offload_chunk
    if group.kind == "chunked-local" and group.attention_chunk:
        return len(range(0, group.attention_chunk, size))
    if group.kind == "sliding-window" and group.sliding_window:
        return len(range(0, max(group.sliding_window, group.sliding_window - 1 + group.extra_retained), size))
    return None


def stands(world: World, group: LayerGroup, answers: str, boundary: int) -> bool:
    """Whether the stored chunks before ``boundary`` are what a demand of the whole window accepts, nothing being open."""
    first, end = world.local // group.offload_chunk, -(-boundary // group.offload_chunk)
    window = window_of(group)
    begin = first if window is None else max(first, end - window)
    return end <= world.prompt // group.offload_chunk and set(answers[begin:end]) <= {"H"}


def least_hit(world: World) -> int:
    """Tokens that a demand of whole windows finds where all groups share one offload chunk and nothing is open.

    Every boundary on the grid is tried from the right, and the one that leaves the last prompt token.
    """
    leave = any(window_of(group) for group in world.groups)
    limit = world.prompt if world.cap is None else min(world.prompt, world.local + world.cap)
    size = world.groups[0].offload_chunk
    for boundary in range(limit - leave, world.local + size - 1, -1):
        emitted = boundary % size == 0 or boundary == world.prompt - 1
        if emitted and all(stands(world, g, a, boundary) for g, a in zip(world.groups, world.answers, strict=True)):
            return boundary - world.local
    return 0


@cache
def worlds() -> tuple[World, ...]:
    """Small stores on one offload grid: a sample of all patterns of a few chunks, for several mixes of groups."""
    kinds = (
        (full(2), chunked(4, 2)),
        (chunked(6, 2), chunked(4, 2)),
        (LayerGroup("full-attention", 2, attention_chunk=2), chunked(5, 2)),
        (sliding(4, 2), chunked(6, 2)),
        (chunked(4, 2), LayerGroup("mla", 2, sliding_window=2)),
        (full(2), sliding(3, 2), full(2)),
    )
    requests = ((8, 0, None), (9, 0, None), (9, 2, None), (8, 3, None), (9, 0, 7), (9, 2, 4), (9, 3, 5))
    patterns = strings("HM", 4)[15:]
    pairs = [
        World(prompt, local, groups, (*chosen, "HHHM")[: len(groups)], cap)
        for groups, (prompt, local, cap), chosen in product(kinds, requests, product(patterns, repeat=2))
    ]
    single = [World(10, 0, (chunked(c, 2),), (s,)) for c in (2, 4, 6, 7) for s in strings("HM", 5)[31:]]
    islands = [
        World(25, 0, (chunked(8, 3),), ("M" * a + "H" * b + "M" * (8 - a - b),)) for a in range(8) for b in range(9 - a)
    ]
    others = [World(25, 0, (chunked(4, 6),), ("MMMH",)), World(11, 0, (full(4), chunked(8, 4)), ("HH", "HH"))]
    return (*pairs[::23], *single[::2], *islands, *others)


def open_worlds() -> Iterator[World]:
    """Stores with pending and uncertain chunks."""
    for patterns in product(("HHHH", "HHPH", "HUHH", "PHHH", "HHMP", "UMHH"), repeat=2):
        yield World(9, 0, (chunked(4, 2), chunked(6, 2)), patterns)
        yield World(8, 2, (full(2), chunked(4, 2)), patterns)


OFF_GRID = (  # boundaries at which a group reads more chunks than its window, and neighbours of such boundaries
    World(30_720, 0, (full(768), chunked(8192, 768)), ("H" * 40, "M" * 11 + "H" * 29), 16_384),
    World(24, 0, (full(6), chunked(4, 6)), ("HHHH", "MHHH"), 8),
    World(40, 0, (full(5), chunked(10, 4)), ("H" * 8, "HHHMHHHMHH"), None),
    World(24, 0, (full(4), sliding(4, 4)), ("HHHHHH", "MMHHMM"), 14),
    World(24, 0, (full(4), sliding(4, 4)), ("HHHHHH", "MMMHMM"), 14),
    World(8, 0, (full(4), sliding(3, 4, 2)), ("HH", "MH")),
)  # fmt: skip
