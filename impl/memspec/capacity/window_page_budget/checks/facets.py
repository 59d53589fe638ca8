"""What an implementation offers to be checked: any of these facets, alone or together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from memspec.capacity.window_page_budget.data import Budget, Charge, Demand, Load, Plan, PoolState, Request, Worker
from memspec.conformance import Checks

CHECKS = Checks("window-page-budget")


class Pricer(Protocol):
    """What a request costs: tokens for admission, and the pages that the allocator takes for ``tokens`` stored tokens."""

    def demand(self, worker: Worker, request: Request) -> Demand: ...
    def charge(self, worker: Worker, tokens: int) -> Charge: ...


class Budgeter(Protocol):
    """What may be promised."""

    def resume_budget(self, worker: Worker, state: PoolState, load: Load) -> Budget: ...
    def admission_budget(
        self, worker: Worker, state: PoolState, load: Load, retracted: Iterable[Request], single: Demand
    ) -> Budget: ...


class Queue(Protocol):
    """One pass over the retracted queue with a given budget."""

    def resume(
        self, worker: Worker, queue: Iterable[Request], budget: Budget, slots: int, only: Collection[str] | None
    ) -> Plan: ...


class Gate(Protocol):
    """Refuses what can never fit pools of ``full_tokens`` and ``window_tokens``."""

    def check_fits(self, worker: Worker, request: Request, full_tokens: int, window_tokens: int) -> None: ...


class Allocator(Protocol):
    """Takes events, gives one outcome for each: ``rejected``, pages ``free`` in both pools, and page ids ``held`` by owner."""

    def allocations(
        self, full_pages: int, window_pages: int, events: Iterable[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]: ...


class Scheduler(Protocol):
    """Takes events of a decode worker, gives one outcome for each; see the page for both."""

    def replay(
        self, worker: Worker, full_pages: int, window_pages: int, events: Iterable[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]: ...


class Rereader(Protocol):
    """The same worker where it reads its budgets anew after each resumed request and may evict window pages."""

    def replay_rereading(
        self, worker: Worker, full_pages: int, window_pages: int, events: Iterable[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]: ...


class RadixTail(Protocol):
    """Where the window pool's part of a request begins when a decode radix cache is on."""

    def decode_radix_start(self, tokens: int, window: int, page_size: int) -> int: ...
