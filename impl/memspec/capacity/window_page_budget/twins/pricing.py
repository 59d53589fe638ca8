"""What a request costs, told wrongly. Each twin says in its name what it gets wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memspec.capacity.window_page_budget import reference
from memspec.capacity.window_page_budget.data import (
    Demand,
    NeverFits,
    Request,
    Worker,
)
from memspec.capacity.window_page_budget.reference.demand import check_lengths, check_worker, window_reserve

Priced = Callable[[Worker, Request], Demand]


def as_tokens(tokens: int, page_size: int) -> int:
    return tokens


def down_to_pages(tokens: int, page_size: int) -> int:
    return tokens // page_size * page_size


def one_page_more(tokens: int, page_size: int) -> int:
    return (tokens // page_size + 1) * page_size


def no_check(*anything: Any) -> None:
    return None


def priced(change: Callable[[Worker, int, int, Demand], Demand]) -> Priced:
    """A demand that is changed by (worker, full tokens, window tokens, what is right)."""

    def wrong(worker: Worker, request: Request) -> Demand:
        check_worker(worker)
        check_lengths(request)
        tokens = reference.fill(request)
        return change(worker, tokens, reference.window_tail(worker, tokens), reference.demand(worker, request))

    return wrong


def up(tokens: int, worker: Worker) -> int:
    return reference.whole_pages(tokens, worker.page_size)


def full_in_tokens(worker: Worker, full: int, window: int, right: Demand) -> Demand:
    return Demand(full + worker.reserve, right.window)


def window_in_tokens(worker: Worker, full: int, window: int, right: Demand) -> Demand:
    return Demand(right.full, window + window_reserve(worker))


def rounded_with_window_pool(worker: Worker, full: int, window: int, right: Demand) -> Demand:
    return right if worker.window_pool else Demand(full + worker.reserve, right.window)


def reserve_before_rounding(worker: Worker, full: int, window: int, right: Demand) -> Demand:
    return Demand(up(full + worker.reserve, worker), up(window + window_reserve(worker), worker))


def reserve_rounded(worker: Worker, full: int, window: int, right: Demand) -> Demand:
    return Demand(
        up(full, worker) + up(worker.reserve, worker), up(window, worker) + up(window_reserve(worker), worker)
    )


def coupled(worker: Worker, full: int, window: int, right: Demand) -> Demand:
    return Demand(max(right), max(right))


def window_always_reserved(worker: Worker) -> int:
    return worker.reserve


def window_never_reserved(worker: Worker) -> int:
    return 0


def everything(request: Request) -> int:
    return request.prompt + request.outputs


def without_the_last(request: Request) -> int:
    return request.prompt + max(request.outputs - 1, 0)


def prompt_only(request: Request) -> int:
    return request.prompt


def whole_length(worker: Worker, tokens: int) -> int:
    return tokens


def shorter_of_both(worker: Worker, tokens: int) -> int:
    if not reference.tail_mode(worker) or worker.window is None or worker.window <= 0:
        return tokens
    return min(tokens, worker.window)


def one_page_early(tokens: int, window: int | None, page_size: int) -> int:
    if window is None or window <= 0:
        return 0
    return max(0, tokens - window - page_size) // page_size * page_size


def one_token_late(tokens: int, window: int | None, page_size: int) -> int:
    if window is None or window <= 0:
        return 0
    return max(0, tokens - window + 1) // page_size * page_size


def no_window_no_charge(tokens: int, window: int | None, page_size: int) -> int:
    return max(0, tokens - max(0, window or 0)) // page_size * page_size


def tail_at_any_page(worker: Worker) -> bool:
    return worker.window_pool and worker.tail_allocation


def tail_whatever_the_allocator(worker: Worker) -> bool:
    return worker.window_pool and worker.page_size > 1


def no_reserve(worker: Worker, full: int, window: int, right: Demand) -> Demand:
    return Demand(up(full, worker), up(window, worker))


def in_tokens(worker: Worker, full: int, window: int, right: Demand) -> Demand:
    return Demand(full + worker.reserve, window + window_reserve(worker))


def prompt_against_capacity(worker: Worker, request: Request, full_tokens: int, window_tokens: int) -> None:
    need = reference.demand(worker, request)
    if request.prompt > full_tokens:
        raise NeverFits(f"{request.name} has a prompt of {request.prompt} tokens; the full pool has {full_tokens}")
    if worker.window_pool and need.window > window_tokens:
        raise NeverFits(f"{request.name} needs {need.window} tokens of the window pool; it has {window_tokens}")


def full_pool_only(worker: Worker, request: Request, full_tokens: int, window_tokens: int) -> None:
    reference.check_fits(replace(worker, window_pool=False), request, full_tokens, window_tokens)


def a_page_to_spare(worker: Worker, request: Request, full_tokens: int, window_tokens: int) -> None:
    reference.check_fits(worker, request, full_tokens - worker.page_size, window_tokens - worker.page_size)


def radix_start_without_the_token(tokens: int, window: int, page_size: int) -> int:
    return max(0, tokens - max(window, page_size)) // page_size * page_size


def radix_start_at_the_window(tokens: int, window: int, page_size: int) -> int:
    return max(0, tokens - 1 - window) // page_size * page_size
