"""Workers, requests and traces to decide on: real dimensions, every small one, and drawn ones that are the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from random import Random
from typing import Any

from memspec.capacity.window_page_budget.data import Budget, Load, PoolState, Request, Worker

Priced = tuple[Worker, Request]
Pass = tuple[Worker, tuple[Request, ...], Budget, int, tuple[str, ...] | None]
Trace = tuple[Worker, int, int, tuple[dict[str, Any], ...]]

# (page, window) as models and engines have them: gpt-oss, Gemma 3, Mistral 7B, the upstream test.
REAL = ((64, 128), (16, 1024), (1, 4096), (128, 2047))


@cache
def priced() -> tuple[Priced, ...]:
    """Every small page, window and length, and the edges of pages and windows at real sizes."""
    small = [
        (Worker(page, window, reserve=3), Request("small", tokens))
        for page, window, tokens in product((2, 3, 4), (1, 2, 5, 8), range(14))
    ]
    edges = [
        (Worker(page, window), Request("edge", tokens))
        for page, window in REAL
        for tokens in {page - 1, page, page + 1, window, window + 1, window + page, 3 * page + window + 1}
    ]
    return (*small, *edges, *drawn(100))


@cache
def drawn(number: int) -> tuple[Priced, ...]:
    """Workers and requests of every kind."""
    random = Random(1)
    return tuple((a_worker(random), a_request(random, f"r{i}", 400)) for i in range(number))


def a_worker(random: Random) -> Worker:
    """Any worker with pages of at most 64 tokens."""
    return Worker(
        page_size=random.choice((1, 2, 3, 4, 7, 16, 64)),
        window=random.choice((None, 0, -1, 1, 3, 16, 17, 100)),
        reserve=random.choice((0, 1, 5, 64)),
        radix_cache=random.random() < 0.5,
        decode_radix=random.random() < 0.5,
        window_pool=random.random() < 0.8,
        tail_allocation=random.random() < 0.8,
    )


def a_request(random: Random, name: str, longest: int) -> Request:
    """Any request of at most ``longest`` tokens in prompt and outputs each."""
    return Request(
        name, random.randrange(longest), random.choice((0, 0, 1, 2, random.randrange(longest))), random.random() < 0.2
    )


@cache
def passes(number: int = 50) -> tuple[Pass, ...]:
    """Queues with budgets about as large as what they ask for."""
    random = Random(2)
    found = []
    for _ in range(number):
        worker = a_worker(random)
        queue = tuple(a_request(random, f"r{i}", 60) for i in range(random.randrange(7)))
        budget = Budget(random.randrange(-5, 500), random.randrange(-5, 500))
        only = tuple(r.name for r in queue if random.random() < 0.7) if random.random() < 0.4 else None
        found.append((worker, queue, budget, random.choice((0, 1, 2, 9, 9, 9)), only))
    return tuple(found)


@cache
def pools_and_loads(number: int = 30) -> tuple[tuple[Worker, PoolState, Load], ...]:
    """Pools in any state, with few and many requests on them."""
    random = Random(3)
    return tuple(
        (
            a_worker(random),
            PoolState(*(random.randrange(2000) for _ in range(5))),
            Load(*(random.choice((0, 0, 1, 2, 9)) for _ in range(4))),
        )
        for _ in range(number)
    )


@cache
def traces(number: int = 2, length: int = 32) -> tuple[Trace, ...]:
    """Queues that fill one pool while the other has room, then random lives of small workers."""
    random = Random(4)
    return (*full_queues(), *(a_trace(random, length) for _ in range(number)))


def full_queues() -> Iterator[Trace]:
    """More retracted requests than either pool has pages for; a new one comes when the first waits; then they decode and leave."""
    for worker, full, window, number, tokens in (
        (Worker(128, 2047, 0), 18, 40, 4, 574),
        (Worker(128, 2047, 0), 10, 40, 8, 129),
        (Worker(64, 128, 40, radix_cache=True, decode_radix=True), 20, 16, 6, 192),
        (Worker(16, 64, 40, tail_allocation=False), 40, 10, 6, 17),
        (Worker(16, 64, 1, radix_cache=True, window_pool=False), 10, 0, 6, 17),
    ):
        arrivals = tuple({"do": "retract", "name": f"r{i}", **of_length(tokens, i)} for i in range(number))
        small = {"do": "retract", "name": "small", "prompt": 1}
        huge = {"do": "retract", "name": "huge", "prompt": full * worker.page_size + 1}
        new, late = ({"do": "admit", "name": name, "prompt": 1} for name in ("new", "late"))
        back, one = {"do": "retract", "name": "r1"}, {"do": "resume", "slots": 1}
        some = {"do": "resume", "only": (f"r{number - 2}", f"r{number - 1}")}
        leave = ({"do": "finish", "cache": True}, {"do": "decode"}, {"do": "finish"})
        nowhere: dict[str, Any] = {**late, "slots": 0}
        begin = (huge, nowhere, arrivals[0], new, *arrivals[1:], small, {"do": "resume"}, back, one)
        yield worker, full, window, (*begin, *leave, some, *leave, {"do": "resume"}, *leave, late)


def of_length(tokens: int, kind: int) -> dict[str, Any]:
    """Three ways to store ``tokens``: with the first output sampled, with the second, and in a rebootstrap."""
    ways: tuple[dict[str, Any], ...] = (
        {"prompt": tokens, "outputs": 1},
        {"prompt": tokens - 1, "outputs": 2},
        {"prompt": tokens - 2, "outputs": 2, "rebootstrap": True},
    )
    return ways[kind % len(ways)]


def a_trace(random: Random, length: int) -> Trace:
    """A worker, its pools in pages, and events; ``finish`` is about the oldest running request."""
    page = random.choice((1, 2, 4, 8))
    worker = Worker(
        page,
        random.choice((None, 3, 8, 20)),
        random.choice((0, 0, 1, 5)),
        radix_cache=random.random() < 0.5,
        decode_radix=random.random() < 0.5,
        window_pool=random.random() < 0.85,
        tail_allocation=random.random() < 0.85,
    )
    return worker, random.randrange(6, 20), random.randrange(5, 16), tuple(events(random, page, length))


def events(random: Random, page: int, length: int) -> Iterator[dict[str, Any]]:
    """Arrivals, decode steps and passes. Lengths crowd just above whole pages, where the unused end of a page is longest."""
    names = iter(range(length))
    for _ in range(length):
        kind = random.choice(("retract", "retract", "admit", "resume", "resume", "decode", "decode", "finish"))
        if kind in ("retract", "admit"):
            lengths = {"prompt": page * random.randrange(4) + random.choice((1, 1, random.randrange(1, page + 1)))}
            if kind == "retract":
                lengths |= {"outputs": random.choice((0, 0, 1, 2))}
            yield {"do": kind, "name": f"r{next(names)}", **lengths}
        elif kind == "finish":
            yield {"do": "finish", "cache": random.random() < 0.4}
        else:
            yield {
                "do": kind,
                **({"slots": random.choice((1, 2))} if kind == "resume" and random.random() < 0.2 else {}),
            }
