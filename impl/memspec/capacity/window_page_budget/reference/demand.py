"""What a request costs: tokens with KV, their pages in both pools, and the reserve on top.

Source: sgl-project/sglang PR #33794, ``_prealloc_required_tokens``; unchanged from 0.5.18 to 0.5.23.
"""

from __future__ import annotations

from memspec.capacity.window_page_budget.data import (
    Charge,
    Demand,
    LengthRefused,
    NeverFits,
    Request,
    Worker,
    WorkerRefused,
)


def check_worker(worker: Worker) -> None:
    """Raises WorkerRefused for a page of less than one token and for a negative reserve."""
    if worker.page_size < 1:
        raise WorkerRefused(f"page_size is {worker.page_size} tokens; it must be at least 1")
    if worker.reserve < 0:
        raise WorkerRefused(f"reserve is {worker.reserve} tokens; it must be at least 0")


def check_lengths(request: Request) -> None:
    """Raises LengthRefused for a negative prompt or a negative number of outputs."""
    if request.prompt < 0:
        raise LengthRefused(f"{request.name} has a prompt of {request.prompt} tokens; it must be at least 0")
    if request.outputs < 0:
        raise LengthRefused(f"{request.name} has {request.outputs} outputs; it must be at least 0")


def fill(request: Request) -> int:
    """Tokens whose KV is stored. The last sampled token has none yet, unless a rebootstrap prefills it with the rest."""
    if request.rebootstrap:
        return request.prompt + request.outputs
    return request.prompt + max(request.outputs - 1, 0)


def page_count(tokens: int, page_size: int) -> int:
    """Pages that ``tokens`` occupy, the last one perhaps in part."""
    return -(-tokens // page_size)


def whole_pages(tokens: int, page_size: int) -> int:
    """``tokens`` rounded up to whole pages, in tokens."""
    return page_count(tokens, page_size) * page_size


def tail_mode(worker: Worker) -> bool:
    """Whether pages before the window are left out: a window pool, pages of more than one token, and an allocator that can."""
    return worker.window_pool and worker.tail_allocation and worker.page_size > 1


def window_start(tokens: int, window: int | None, page_size: int) -> int:
    """The first token kept in the window pool: the start of the page that holds the oldest of the last ``window`` tokens."""
    if window is None or window <= 0:
        return 0
    return max(0, tokens - window) // page_size * page_size


def decode_radix_start(tokens: int, window: int, page_size: int) -> int:
    """The same with a decode radix cache (0.5.19): one token, and at least one page, further back."""
    return max(0, tokens - 1 - max(window, page_size)) // page_size * page_size


def window_tail(worker: Worker, tokens: int) -> int:
    """Tokens that the window pool stores of ``tokens``: all without tail mode, else those from the window's first page on."""
    if not tail_mode(worker):
        return tokens
    if worker.radix_tail and worker.window is not None and worker.window > 0:
        return tokens - decode_radix_start(tokens, worker.window, worker.page_size)
    return tokens - window_start(tokens, worker.window, worker.page_size)


def window_reserve(worker: Worker) -> int:
    """Tokens kept in the window pool: none without a radix cache, since pages that leave the window then come back at once."""
    return worker.reserve if worker.radix_cache else 0


def demand(worker: Worker, request: Request) -> Demand:
    """Tokens to compare with a budget and to take from it: pages first, then the reserve, which is not rounded.

    Without a window pool the second number has no meaning. Raises WorkerRefused and LengthRefused.
    """
    check_worker(worker)
    check_lengths(request)
    tokens = fill(request)
    return Demand(
        whole_pages(tokens, worker.page_size) + worker.reserve,
        whole_pages(window_tail(worker, tokens), worker.page_size) + window_reserve(worker),
    )


def charge(worker: Worker, tokens: int) -> Charge:
    """Pages that the allocator takes for ``tokens`` stored tokens; a worker without a window pool takes none there.

    Raises WorkerRefused and LengthRefused.
    """
    check_worker(worker)
    if tokens < 0:
        raise LengthRefused(f"{tokens} stored tokens; it must be at least 0")
    kept = window_tail(worker, tokens) if worker.window_pool else 0
    return Charge(page_count(tokens, worker.page_size), page_count(kept, worker.page_size))


def check_fits(worker: Worker, request: Request, full_tokens: int, window_tokens: int) -> None:
    """Raises NeverFits where the demand exceeds a pool that is empty: ``full_tokens`` and ``window_tokens`` are the pools' sizes."""
    need = demand(worker, request)
    if need.full > full_tokens:
        raise NeverFits(f"{request.name} needs {need.full} tokens of the full pool; it has {full_tokens}")
    if worker.window_pool and need.window > window_tokens:
        raise NeverFits(f"{request.name} needs {need.window} tokens of the window pool; it has {window_tokens}")
