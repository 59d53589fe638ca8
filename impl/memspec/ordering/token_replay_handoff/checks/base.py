"""What a subject offers to be checked, facet by facet, and what the worlds read from its states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from memspec.conformance import CannotRun, Checks, lacks
from memspec.explore import Moved, Rejected
from memspec.ordering.token_replay_handoff.data import Negotiated, Plan, Request, Settings

CHECKS = Checks("token-replay-handoff")

Event = tuple[Any, ...]
Outcome = dict[str, Any]


def needs(subject: object, facet: type) -> None:
    """Raise CannotRun unless ``subject`` has the methods of ``facet``: for a clause whose later cases ask for more."""
    if missing := lacks(subject, facet):
        raise CannotRun(f"the subject has no {', '.join(missing)}()")


class Coordinator(Protocol):
    """One handoff as a single machine, from plain events to one plain outcome an event.

    An outcome has ``phase``, ``owner``, ``log``, ``replayed``, ``sealed``, ``committed``, and ``rejected`` ("" or the
    name of the refusal).
    """

    def replay(self, config: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> list[Outcome]: ...


class PrefillSide(Protocol):
    """The prefill machine. Its states are hashable and have ``handoff`` and ``log``; the world reads nothing else.

    Events, refusals and the values of ``handoff`` are listed on the page.
    """

    def prefill_initial(self, plan: Plan) -> Any: ...
    def prefill_step(self, state: Any, event: Event) -> Moved | Rejected: ...


class DecodeSide(Protocol):
    """The decode machine. Its states are hashable and have ``phase``, ``log``, ``emitted`` and ``alive``."""

    def decode_initial(self, plan: Plan) -> Any: ...
    def decode_step(self, state: Any, event: Event) -> Moved | Rejected: ...


class Sides(PrefillSide, DecodeSide, Protocol):
    """Both machines, to be put into one world."""


class Negotiation(Protocol):
    """What becomes of a request before its first bridge token."""

    def handoff_plan(self, prefill: Settings, decode: Settings, request: Request) -> Negotiated: ...
