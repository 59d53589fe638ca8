"""What crosses the boundary: a worker's settings, requests, what pools report, prices, plans, refusals.

Sizes are tokens, unless pages are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Worker:
    """A decode worker as its admission sees it.

    ``page_size`` tokens make a page in both pools. ``window`` is how many tokens a sliding-window layer reads; None or a number below 1
    means that there is no window. ``reserve`` tokens are kept for each request's next decode steps. ``radix_cache`` says whether a
    prefix cache keeps window pages alive, ``decode_radix`` whether full pages of that cache may be evicted here. A worker without
    ``window_pool`` has the full pool only; ``tail_allocation`` says whether the allocator can leave out the pages before the window.
    ``radix_tail``: the window's part begins where a decode radix cache needs it, from 0.5.19 on.
    """

    page_size: int
    window: int | None = None
    reserve: int = 512
    radix_cache: bool = False
    decode_radix: bool = False
    window_pool: bool = True
    tail_allocation: bool = True
    radix_tail: bool = False


@dataclass(frozen=True)
class Request:
    """A request without pages: ``outputs`` tokens were sampled after ``prompt``. ``rebootstrap``: its prefill is done anew elsewhere."""

    name: str
    prompt: int
    outputs: int = 0
    rebootstrap: bool = False


class Demand(NamedTuple):
    """Tokens that admission compares with a budget and takes from it: whole pages, then the reserve."""

    full: int
    window: int


NOTHING = Demand(0, 0)


class Budget(NamedTuple):
    """Tokens that may still be promised, per pool. Negative when what is kept for others exceeds what is free."""

    full: int
    window: int


class Charge(NamedTuple):
    """Pages that the allocator takes, per pool. The window pages are the last ones of the request."""

    full: int
    window: int


@dataclass(frozen=True)
class PoolState:
    """What the pools report, in tokens. Evictable ones hold a prefix cache that nobody reads; they are not in ``available``."""

    full_available: int
    window_available: int
    window_used: int = 0
    full_evictable: int = 0
    window_evictable: int = 0


@dataclass(frozen=True)
class Load:
    """How many requests hold or are about to hold pages. ``prebuilt`` is the size of a batch that was just built and has not run."""

    running: int = 0
    transferring: int = 0
    waiting: int = 0
    prebuilt: int = 0


@dataclass(frozen=True)
class Plan:
    """One pass over the retracted queue. ``stopped`` names what ended it: "slots", "full", "window", or "" at the end of the queue."""

    resumed: tuple[str, ...]
    left: tuple[str, ...]
    budget: Budget
    stopped: str = ""


class BudgetRefused(ValueError):
    """What was asked for has no safe meaning."""


class WorkerRefused(BudgetRefused):
    """A setting without meaning; names the value and the limit."""


class LengthRefused(BudgetRefused):
    """A request of negative length; names the value and the limit."""


class NeverFits(BudgetRefused):
    """The client's error: the request exceeds an empty pool, so that waiting cannot help; names the tokens needed and the pool's."""

    status = 400


class PagesRefused(BudgetRefused):
    """The allocator lacks pages, or knows no such owner; names the pages needed and those free. After an admission: a defect."""
