"""What may be promised: the tokens that are free, less what the requests that hold pages will still need.

Source: sgl-project/sglang 0.5.18. What later releases count in addition stands in ``later``.
"""

from __future__ import annotations

from collections.abc import Iterable

from memspec.capacity.window_page_budget.data import NOTHING, Budget, Demand, Load, PoolState, Request, Worker
from memspec.capacity.window_page_budget.reference.demand import check_worker, demand


def active(load: Load) -> int:
    """Requests that decode or will decode soon: running, in the transfer queue, waiting."""
    return load.running + load.transferring + load.waiting


def window_growth(worker: Worker, requests: int, window_used: int) -> int:
    """Tokens that ``requests`` can still add to the window pool: their reserve, but not past a full window for each.

    Without a window nothing leaves the pool, and the whole reserve is kept.
    """
    if worker.window is None or worker.window <= 0:
        return worker.reserve * requests
    return min(worker.reserve * requests, max(0, requests * worker.window - window_used))


def available(worker: Worker, state: PoolState) -> Budget:
    """Tokens that an allocation can get: free ones, and in the full pool evictable ones where a decode radix cache holds them."""
    return Budget(
        state.full_available + (state.full_evictable if worker.decode_radix else 0),
        state.window_available,
    )


def kept_for_others(worker: Worker, state: PoolState, load: Load, single: Demand) -> Budget:
    """Tokens that others will need: the larger of all reserves and one request's need, and the reserve of a prebuilt batch."""
    return Budget(
        max(worker.reserve * active(load), single.full) + worker.reserve * load.prebuilt,
        max(window_growth(worker, active(load), state.window_used), single.window)
        + window_growth(worker, load.prebuilt, state.window_used),
    )


def less(budget: Budget, taken: Budget | Demand) -> Budget:
    """What is left of a budget."""
    return Budget(budget.full - taken.full, budget.window - taken.window)


def resume_budget(worker: Worker, state: PoolState, load: Load) -> Budget:
    """Tokens for the retracted queue. Raises WorkerRefused."""
    check_worker(worker)
    return less(available(worker, state), kept_for_others(worker, state, load, NOTHING))


def admission_budget(
    worker: Worker, state: PoolState, load: Load, retracted: Iterable[Request], single: Demand = NOTHING
) -> Budget:
    """Tokens for new requests: the demand of every retracted one is set aside. Raises WorkerRefused, LengthRefused.

    ``single`` is what one running request may need at most before another can make room for it.
    """
    check_worker(worker)
    budget = less(available(worker, state), kept_for_others(worker, state, load, single))
    for request in retracted:
        budget = less(budget, demand(worker, request))
    return budget
