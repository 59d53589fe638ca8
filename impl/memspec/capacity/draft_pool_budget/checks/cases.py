"""What the checks run on: real geometries, the public examples, and small ones in which every divisor shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, wraps
from typing import TypeVar

from memspec.capacity.draft_pool_budget.data import Draft, Geometry, Heads, Latent, Memory, Parallel, Serving, Window

GIB = 1 << 30
Case = TypeVar("Case")


def listed(make: Callable[[], Iterable[Case]]) -> Callable[[], tuple[Case, ...]]:
    """Cases are made once: they are plain data."""
    return cache(wraps(make)(lambda: tuple(make())))


@dataclass(frozen=True)
class Budgeted:
    """A serving and the bytes that it may spend."""

    serving: Serving
    budget: int


@dataclass(frozen=True)
class Wrong:
    """A serving that is to be refused, and what the refusal has to name."""

    serving: Serving
    named: tuple[str, ...]


@dataclass(frozen=True)
class WrongMemory:
    """The same for what a device reports."""

    memory: Memory
    named: tuple[str, ...]


LLAMA_8B = Heads(32, 8, 128, 128)
QWEN3_235B = Heads(94, 4, 128, 128)
DEEPSEEK_V3 = Latent(61, 576)
DEEPSEEK_V32 = Latent(61, 576, indexer=61 * 132)
THREAD = Heads(32, 4, 128, 128)  # 65,536 bytes a token, as in PR #34234
SCALED = Heads(7, 4, 96, 64, 1, extra=37)  # bytes beside the layers that seven layers do not divide
GPT_OSS = Heads(18, 8, 64, 64)
MIMO_FULL, MIMO_WINDOW = Heads(9, 4, 192, 128), Heads(39, 8, 192, 128)

BLOCK = Heads(5, 8, 128, 128)  # a block-diffusion draft of five layers
NARROW = Heads(5, 2, 128, 64, 1)  # fewer heads, V shorter than K, one byte an element
EIGHT = Parallel(8, 8)


def dflash(geometry: Geometry | None = BLOCK, layers: int | None = 5, algorithm: str = "DFLASH", **more: int) -> Draft:
    return Draft(algorithm, geometry, layers, **more)


def grouped(serving: Serving, group: int) -> Serving:
    return replace(serving, parallel=replace(serving.parallel, group=group))


@cache
def plain() -> tuple[Serving, ...]:
    """One pool, a draft of its own geometry, groups from 1 to 8."""
    public = Serving(Latent(1, 32_768, 1), EIGHT, draft=dflash(None, cell=10_240))
    narrow = Serving(DEEPSEEK_V3, Parallel(8, 4, draft=2), 64, dflash(NARROW, algorithm="DSPARK"))
    mixed = Serving(QWEN3_235B, Parallel(8, 1, tensor=16, asked=4), 16, dflash())
    return (
        public,
        grouped(public, 1),
        narrow,
        mixed,
        Serving(LLAMA_8B, Parallel(4, 2, asked=4, tensor=4), 16, dflash(NARROW)),
        Serving(THREAD, Parallel(1, tensor=1), 1, dflash(Heads(5, 8, 128, 128))),
        Serving(THREAD, Parallel(1, tensor=1), 1, dflash(Heads(5, 2, 128, 128))),
        Serving(DEEPSEEK_V3, Parallel(4, 4, tensor=16, asked=8), 64, dflash()),
        Serving(DEEPSEEK_V32, Parallel(8, 2, tensor=8), 64, dflash(Latent(2, 576))),
    )


@cache
def windowed() -> tuple[Serving, ...]:
    """Full and window pools, window pools alone, and window pools sized by requests; own geometry, and heads that no group widens."""
    oss, mimo = Window(GPT_OSS, "0.8", 128), Window(MIMO_WINDOW, "1/3", 128)
    return (
        Serving(GPT_OSS, Parallel(2, 1, tensor=4), 64, dflash(), oss),
        Serving(MIMO_FULL, Parallel(4, 1, tensor=4), 16, dflash(NARROW), mimo),
        Serving(GPT_OSS, Parallel(16, 2, tensor=16, draft=4), 64, dflash(), oss),
        Serving(replace(GPT_OSS, layers=0), Parallel(4, 1, tensor=8), 16, dflash(), oss),
        Serving(GPT_OSS, Parallel(2, 1, tensor=2), 64, dflash(), replace(oss, request_cap=20_001)),
        Serving(MIMO_FULL, Parallel(16, 2, tensor=16), 16, dflash(NARROW), replace(mimo, request_cap=4_099)),
    )


def budgets(serving: Serving) -> tuple[Budgeted, ...]:
    """A large and a small budget that no page divides."""
    return tuple(Budgeted(serving, budget) for budget in (10**10, 40 * GIB + 12_345))


@cache
def own() -> tuple[Budgeted, ...]:
    """One of the two budgets for each serving, in turn."""
    return tuple(budgets(serving)[n % 2] for n, serving in enumerate((*plain(), *windowed())))


@cache
def by_layers() -> tuple[Serving, ...]:
    """The draft's own bytes are not known, or 0: one pool. Rows are not widened by the group."""
    return tuple(
        Serving(target, parallel, 16, draft)
        for target, parallel in (
            (DEEPSEEK_V3, Parallel(8, 8)), (DEEPSEEK_V3, Parallel(4, 1)), (LLAMA_8B, Parallel(4, 1)),
            (SCALED, Parallel(8, 2)), (QWEN3_235B, Parallel(8, 2)), (THREAD, Parallel()),
        )
        for draft in (dflash(None), dflash(replace(BLOCK, layers=0), 3), dflash(None, 1, "DSPARK"))
    )  # fmt: skip


@cache
def same_geometry() -> tuple[Serving, ...]:
    """A draft that has the target's own layers, three of them; rows are not widened by the group."""
    return tuple(
        Serving(target, parallel, 1, dflash(replace(target, layers=3), 3))
        for target, parallel in (
            (DEEPSEEK_V3, Parallel(8, 8)), (QWEN3_235B, Parallel(8, 2)), (LLAMA_8B, Parallel(4, 1)), (THREAD, Parallel(8, 2)),
        )
    )  # fmt: skip


@cache
def small() -> tuple[Budgeted, ...]:
    """Budgets of a few hundred pages, to be filled one page at a time."""
    thin = Serving(Heads(2, 2, 3, 2, 1), Parallel(4, 2), 4, dflash(Heads(1, 4, 2, 2, 1), 1))
    window = Window(Heads(3, 2, 2, 2, 1), "0.7")
    hybrid = replace(thin, window=window)
    alone, capped = replace(thin.target, layers=0), replace(window, request_cap=9)
    servings = (thin, grouped(thin, 4), grouped(thin, 1), hybrid, replace(hybrid, target=alone), replace(hybrid, window=capped),
                replace(thin, draft=None))  # fmt: skip
    return tuple(Budgeted(serving, budget) for serving in servings for budget in (1_000, 2_399, 2_400, 4_321))


@cache
def memories() -> tuple[Memory, ...]:
    return (
        Memory(140 * GIB, 100 * GIB, "0.9"),
        Memory(140 * GIB + 7, 100 * GIB, "0.873", multimodal=2 * GIB),
        Memory(80 * GIB, 60 * GIB, "0.95", state_pools=5 * GIB, activation=3 * GIB),
        Memory(80 * GIB, 60 * GIB, "0.95", multimodal=1, activation=9 * GIB),
        Memory(1001, 503, "0.5"),
    )


@listed
def settings() -> Iterator[Wrong]:
    base = Serving(DEEPSEEK_V3, Parallel(8, 4), 64, dflash(), Window(Latent(4, 288)))
    draft = Draft("EAGLE", layers=2)
    for parallel, named in (
        (Parallel(8, 3), ("3", "8")), (Parallel(4, 8), ("8", "4")), (Parallel(0), ("0", "1")),
        (Parallel(8, 0), ("0", "1")), (Parallel(8, -2), ("-2", "1")), (Parallel(8, 2, 0), ("0", "1")),
    ):  # fmt: skip
        yield Wrong(replace(base, parallel=parallel), named)
    yield Wrong(replace(base, page_size=0), ("0", "1"))
    yield Wrong(replace(base, target=Heads(4, -2, 128, 128)), ("-2", "0"))
    yield Wrong(replace(base, draft=Draft("DFLASH", Heads(4, 2, 128, 128, -1))), ("-1", "0"))
    yield Wrong(replace(base, draft=Draft("MEDUSA", layers=1)), ("MEDUSA",))
    yield Wrong(replace(base, draft=replace(draft, window_layers=2, local_layers=1)), ("2", "1"))
    yield Wrong(replace(base, draft=replace(draft, window_layers=-1)), ("-1",))
    for window, numbers in (
        (Window(Latent(4, 288), "0"), ("0",)), (Window(Latent(4, 288), tokens=0), ("0",)),
        (Window(Latent(4, 288), request_cap=-5), ("-5", "0")), (Window(Latent(4, 288), "1/0"), ("1/0",)),
    ):  # fmt: skip
        yield Wrong(replace(base, window=window), numbers)
    yield Wrong(replace(base, max_total_tokens=-1), ("-1", "0"))
    yield Wrong(replace(base, other_stages=(640, -64)), ("-64", "0"))


@listed
def senseless_memories() -> Iterator[WrongMemory]:
    base = Memory(80 * GIB, 60 * GIB, "0.9")
    for fraction in ("0", "1.01", "-0.5", "1/0"):
        yield WrongMemory(replace(base, fraction=fraction), (fraction,))
    yield WrongMemory(replace(base, multimodal=-1), ("-1", "0"))
    yield WrongMemory(replace(base, state_pools=-GIB), (str(-GIB), "0"))
