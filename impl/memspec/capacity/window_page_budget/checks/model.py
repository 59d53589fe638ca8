"""The second formulation: token by token, page by page. Nothing here rounds by arithmetic.

Stored tokens are positions 0, 1, ...; a page is the set of positions that share ``position // page_size``. What a pool is
charged is the number of distinct pages that hold a stored position it must keep.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from memspec.capacity.window_page_budget.data import (
    NOTHING,
    Budget,
    Charge,
    Demand,
    Load,
    Plan,
    PoolState,
    Request,
    Worker,
)


@cache
def stored(request: Request) -> int:
    """Tokens with KV: all of prompt and outputs, without the last output when it was sampled here."""
    tokens = ["prompt"] * request.prompt + ["output"] * request.outputs
    if request.outputs and not request.rebootstrap:
        tokens.pop()
    return len(tokens)


@cache
def pages_of(worker: Worker, tokens: int) -> Charge:
    """Distinct pages of all stored positions, and of those that the window pool keeps."""
    windowed = worker.window is not None and worker.window > 0
    leaves_out = worker.tail_allocation and worker.page_size > 1 and windowed
    oldest = max(0, tokens - (worker.window or 0)) if leaves_out else 0
    if leaves_out and worker.radix_tail:
        oldest = radix_start(tokens, worker.window or 0, worker.page_size)
    whole = {position // worker.page_size for position in range(tokens)}
    kept = {position // worker.page_size for position in range(oldest, tokens)} if worker.window_pool else set()
    return Charge(len(whole), len(kept))


def radix_start(tokens: int, window: int, page: int) -> int:
    """The last page boundary that leaves the window, or a page, and one token more behind it."""
    early_enough = [start for start in range(0, tokens + 1, page) if tokens - 1 - start >= max(window, page)]
    return max(early_enough, default=0)


@cache
def due_demand(worker: Worker, request: Request) -> Demand:
    """The pages' tokens, every slot of them counted, and then the reserve."""
    pages = pages_of(worker, stored(request))
    slots = [sum(worker.page_size for _ in range(number)) for number in pages]
    return Demand(slots[0] + worker.reserve, slots[1] + (worker.reserve if worker.radix_cache else 0))


@cache
def due_plan(
    worker: Worker, queue: tuple[Request, ...], budget: Budget, slots: int, only: tuple[str, ...] | None
) -> Plan:
    """The longest run of the allowed requests, in order, whose demands together fit: tried from the longest down."""
    allowed = [request for request in queue if only is None or request.name in only]
    for number in range(len(allowed), -1, -1):
        needs = [due_demand(worker, request) for request in allowed[:number]]
        full, window = sum(need.full for need in needs), sum(need.window for need in needs)
        in_window = not worker.window_pool or all(
            sum(need.window for need in needs[: i + 1]) <= budget.window for i in range(number)
        )
        in_full = all(sum(need.full for need in needs[: i + 1]) <= budget.full for i in range(number))
        if number <= max(0, slots) and in_full and in_window:
            names = tuple(request.name for request in allowed[:number])
            left = tuple(request.name for request in queue if request.name not in names)
            rest = Budget(budget.full - full, budget.window - window)
            why = ""
            if number < len(allowed):
                need = due_demand(worker, allowed[number])
                why = "slots" if slots <= number else "full" if need.full > rest.full else "window"
            return Plan(names, left, rest, why)
    raise ValueError("an empty run always fits")


def due_budget(
    worker: Worker, state: PoolState, load: Load, retracted: Iterable[Request] = (), single: Demand = NOTHING
) -> Budget:
    """A ledger: a reserve is put aside for each request, one after the other."""
    full = state.full_available + (state.full_evictable if worker.decode_radix else 0)
    window = state.window_available
    kept_full, kept_window, room = 0, 0, 0
    for _ in range(load.running + load.transferring + load.waiting):
        kept_full, kept_window, room = (
            kept_full + worker.reserve,
            kept_window + worker.reserve,
            room + (worker.window or 0),
        )
    if worker.window is not None and worker.window > 0:
        kept_window = min(kept_window, max(0, room - state.window_used))
    full, window = full - max(kept_full, single.full), window - max(kept_window, single.window)
    prebuilt_window, prebuilt_room = 0, 0
    for _ in range(load.prebuilt):
        full -= worker.reserve
        prebuilt_window, prebuilt_room = prebuilt_window + worker.reserve, prebuilt_room + (worker.window or 0)
    if worker.window is not None and worker.window > 0:
        prebuilt_window = min(prebuilt_window, max(0, prebuilt_room - state.window_used))
    window -= prebuilt_window
    for request in retracted:
        need = due_demand(worker, request)
        full, window = full - need.full, window - need.window
    return Budget(full, window)
