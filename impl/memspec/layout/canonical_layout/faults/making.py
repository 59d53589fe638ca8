"""How a broken twin is made."""

from __future__ import annotations

from typing import Any

from memspec.conformance import Fault, Origin, variant
from memspec.layout.canonical_layout import reference


def fault(name: str, breaks: str, origin: Origin, note: str, seen_in: str = "", **changed: Any) -> Fault:
    """The reference with ``changed`` names; ``breaks`` holds ideas, separated by blanks."""
    return Fault(name, lambda: variant(reference, **changed), frozenset(breaks.split()), origin, seen_in, note)
