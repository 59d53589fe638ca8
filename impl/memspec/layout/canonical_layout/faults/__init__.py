"""Broken twins: what was released, what was reported, the opposite errors, and the guards removed one by one.

Each is the reference with one function replaced for all its callers. Where a twin keeps part of the rule it calls the
reference's own function.
"""

from __future__ import annotations

from memspec.conformance import Fault
from memspec.layout.canonical_layout.faults.opposite import OPPOSITE
from memspec.layout.canonical_layout.faults.released import RELEASED
from memspec.layout.canonical_layout.faults.unguarded import UNGUARDED

FAULTS: tuple[Fault, ...] = (*RELEASED, *OPPOSITE, *UNGUARDED)
