"""What a subject offers to be checked: small groups of methods, each decided on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from memspec.capacity.dynamic_speculation.data import (
    Decoded,
    DraftStep,
    Form,
    Graph,
    Hypotheses,
    Loop,
    Mode,
    Policy,
    Report,
    Resolved,
    Role,
    Scheduled,
    Settings,
    Table,
    World,
)
from memspec.conformance import Checks, Violation

CHECKS = Checks("dynamic-speculation")
Answer = TypeVar("Answer")


class Tables(Protocol):
    """Schedule to table, and a step's lookup."""

    def dense_table(self, schedule: Any, max_batch: int, k_max: int) -> Table: ...
    def k_for(self, table: Table, scheduled: int, k_max: int) -> int: ...


class Publishing(Protocol):
    """K of each step, and what the next step verifies."""

    def k_trace(self, settings: Settings, steps: Sequence[Sequence[Scheduled]]) -> Sequence[int]: ...
    def verified_trace(self, settings: Settings, steps: Sequence[Sequence[Scheduled]]) -> Sequence[int]: ...


class HandOver(Protocol):
    """Drafts on their way from the drafter to the verifier."""

    def received(self, proposals: Sequence[Sequence[int]], k_max: int, form: Form) -> Sequence[Sequence[int]]: ...


class Padder(Protocol):
    """Padding of a one-token request to the shape of a step."""

    def padded_tokens(
        self,
        new_tokens: int,
        k_max: int,
        dynamic: bool,
        running: bool,
        computed: int,
        prefill: bool,
        room: int,
        budget: int,
    ) -> int | None: ...


class DraftKeeper(Protocol):
    """The drafter's KV over steps of ``(K published, tokens committed)``."""

    def follow(self, steps: Sequence[tuple[int, int]], policy: Policy) -> Sequence[DraftStep]: ...


class Decoder(Protocol):
    """A whole greedy request."""

    def decode(self, loop: Loop) -> Decoded: ...


class Graphs(Protocol):
    """Planning and dispatch of captured shapes."""

    def planned(self, table: Table, sizes: Sequence[int] = (), ceiling: int | None = None) -> Sequence[Graph]: ...
    def dispatch(self, graphs: Sequence[Graph], batch: int, query: int) -> Graph | None: ...
    def uncovered(self, table: Table, graphs: Sequence[Graph]) -> Sequence[Graph]: ...


class Reserver(Protocol):
    """Blocks and places for drafts."""

    def reserved_blocks(self, computed: int, new: int, lookahead: int, block: int) -> int: ...
    def added_blocks(self, length: int, added: int, block: int) -> int: ...
    def lookahead(self, role: Role, k_now: int, k_next: int, k_max: int, extra: int = 0, tight: bool = True) -> int: ...
    def static_extra(self, reserved: int, block: int) -> int: ...


class Configured(Protocol):
    """What becomes of the settings, and K of each data-parallel rank."""

    def resolve(self, settings: Settings) -> Resolved: ...
    def rank_ks(self, settings: Settings, counts: Sequence[int]) -> Sequence[int]: ...


class Simulator(Protocol):
    """Runs of one world, their comparison, and what a model expects."""

    def simulate(self, world: World, mode: Mode, readings: Hypotheses = ...) -> Report: ...
    def compared(self, world: World, readings: Hypotheses = ...) -> dict[str, Report]: ...
    def percentile(self, latencies: Sequence[int], share: int) -> int: ...
    def tax(self, found: dict[str, Report]) -> Any: ...
    def expected_tokens(self, acceptance: Any, k: int) -> Any: ...


def granted(call: Callable[[], Answer]) -> Answer:
    """What ``call`` answers; a refusal of what is legal breaks the clause."""
    try:
        return call()
    except ValueError as refusal:
        raise Violation(f"refused: {refusal}", "an answer") from refusal
