"""How the broken twins are made."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from memspec.conformance import Fault, Origin, variant
from memspec.ordering.token_replay_handoff import reference

COORDINATOR = ("replay",)
PLANNING = ("handoff_plan",)
ADMISSION = ("estimate_catch_up", "bridge_budget", "admit", "page_tail", "place_bridge", "batched_replay_plan")
TEXT = ("detokenizer_prime",)
DECODE = ("decode_initial", "decode_step")
PREFILL = ("prefill_initial", "prefill_step")
SIDES = (*PREFILL, *DECODE)


def twin(*facets: str, **changed: Any) -> Callable[[], Any]:
    """The reference with some functions replaced, seen through the methods named; the clauses on others are not run."""

    def make() -> Any:
        whole = variant(reference, **changed)
        return SimpleNamespace(**{name: getattr(whole, name) for name in facets})

    return make


def fault(name: str, subject: Callable[[], Any], breaks: str, origin: Origin, note: str, seen_in: str = "") -> Fault:
    """A fault that breaks the ideas in ``breaks``, separated by spaces."""
    return Fault(name, subject, frozenset(breaks.split()), origin, seen_in, note)
