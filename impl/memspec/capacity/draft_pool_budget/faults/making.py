"""A broken twin is the reference with some of its functions replaced for all their callers."""

from __future__ import annotations

from typing import Any

from memspec.capacity.draft_pool_budget import reference
from memspec.conformance import Fault, Origin, variant


def fault(name: str, breaks: str, origin: Origin, seen_in: str, note: str, **changed: Any) -> Fault:
    return Fault(name, lambda: variant(reference, **changed), frozenset(breaks.split()), origin, seen_in, note)
