"""Broken twins: what was really released or reported, guards that were taken away, and the opposite of each rule."""

from __future__ import annotations

from memspec.capacity.draft_pool_budget.faults.guards import GUARDS
from memspec.capacity.draft_pool_budget.faults.prices import PRICES
from memspec.capacity.draft_pool_budget.faults.released import RELEASED
from memspec.capacity.draft_pool_budget.faults.sizes import SIZES
from memspec.conformance import Fault

FAULTS: tuple[Fault, ...] = (*RELEASED, *PRICES, *SIZES, *GUARDS)
