"""What an implementation offers to be checked: any of these facets, alone or together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memspec.capacity.draft_pool_budget.data import Cell, DraftPool, Memory, Plan, Pools, Serving
from memspec.conformance import Checks

CHECKS = Checks("draft-pool-budget")


class Pricer(Protocol):
    """Bytes for one token: (target in the full pool, in the window pool, draft by its own geometry, draft by the target's layers twice)."""

    def cell(self, serving: Serving) -> Cell: ...


class Room(Protocol):
    """Bytes for pools."""

    def available(self, memory: Memory) -> int: ...


class Sizer(Protocol):
    """A budget in bytes, divided; of the plan, ``tokens`` and ``window_tokens`` are read."""

    def plan(self, serving: Serving, budget: int) -> Plan: ...


class DraftSizer(Protocol):
    """The draft's pools beside the target's."""

    def draft_pool(self, pools: Pools, page_size: int, group: int) -> DraftPool: ...


class Teller(Protocol):
    """The plan in words."""

    def explain(self, serving: Serving, budget: int) -> Sequence[str]: ...
