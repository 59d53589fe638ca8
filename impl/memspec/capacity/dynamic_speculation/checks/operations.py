"""The operations of the vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, Protocol

from memspec.capacity.dynamic_speculation.checks.facets import (
    CHECKS,
    Configured,
    Decoder,
    DraftKeeper,
    Graphs,
    HandOver,
    Padder,
    Publishing,
    Reserver,
    Simulator,
    Tables,
)
from memspec.capacity.dynamic_speculation.data import Arrival, Graph, Loop, Scheduled, Settings, World

Input = Mapping[str, Any]


class Tiered(Protocol):
    """The query lengths of a table, and the widest batch of each."""

    def dense_table(self, schedule: Any, max_batch: int, k_max: int) -> tuple[int, ...]: ...
    def tiers(self, table: Sequence[int]) -> Sequence[tuple[int, int]]: ...


class Comparison(Protocol):
    """Two released planners, to compare with."""

    def dense_table(self, schedule: Any, max_batch: int, k_max: int) -> tuple[int, ...]: ...
    def fall_out(self, table: Sequence[int], grid: str, ceiling: int | None = None, mixed: bool = False) -> Any: ...


def table_in(subject: Any, data: Input) -> Any:
    return subject.dense_table(data["schedule"], data["max_batch"], data["k_max"])


@CHECKS.operation(Tables)
def table_at(subject: Tables, data: Input) -> Any:
    """K at the batches ``at``."""
    table = table_in(subject, data)
    return [table[batch] for batch in data["at"]]


@CHECKS.operation(Tables)
def lookup(subject: Tables, data: Input) -> Any:
    return subject.k_for(tuple(data["table"]), data["scheduled"], data["k_max"])


def requests_of(data: Sequence[Sequence[Any]]) -> tuple[Scheduled, ...]:
    return tuple(Scheduled(role, 1 if role == "decode" else 64) for role, count in data for _ in range(count))


@CHECKS.operation(Publishing)
def trace(subject: Publishing, data: Input) -> Any:
    """K published and drafts verified, for steps given as ``[role, count]`` pairs."""
    given = {**data["settings"], "schedule": tuple(map(tuple, data["settings"]["schedule"]))}
    steps = [requests_of(step) for step in data["steps"]]
    settings = Settings(**given)
    return {
        "published": list(subject.k_trace(settings, steps)),
        "verified": list(subject.verified_trace(settings, steps)),
    }


@CHECKS.operation(HandOver)
def received(subject: HandOver, data: Input) -> Any:
    return [list(drafts) for drafts in subject.received(data["proposals"], data["k_max"], data["form"])]


@CHECKS.operation(Padder)
def padded_tokens(subject: Padder, data: Input) -> Any:
    return subject.padded_tokens(**data)


@CHECKS.operation(DraftKeeper)
def drafter_length(subject: DraftKeeper, data: Input) -> Any:
    """Rows that are current after each step, and forwards."""
    steps = subject.follow([(k, tokens) for k, tokens in data["steps"]], data["policy"])
    return {"current": [*accumulate((step.end for step in steps), max)], "forwards": [step.forwards for step in steps]}


@CHECKS.operation(Decoder)
def decode(subject: Decoder, data: Input) -> Any:
    tables = {name: tuple(map(tuple, data[name])) for name in ("target", "drafter")}
    found = subject.decode(Loop(**{**data, **tables, "prompt": tuple(data["prompt"]), "ks": tuple(data["ks"])}))
    return {"tokens": list(found.tokens), "accepted": list(found.accepted)}


@CHECKS.operation(Tiered)
def tiers(subject: Any, data: Input) -> Any:
    return [list(tier) for tier in subject.tiers(table_in(subject, data))]


@CHECKS.operation(Graphs)
def uncovered(subject: Any, data: Input) -> Any:
    """First and number of the shapes that no graph runs: none of ``graphs``, or of what the subject plans."""
    table = table_in(subject, data)
    given = [Graph(*shape) for shape in data.get("graphs", ())]
    found = subject.uncovered(table, given or subject.planned(table, tuple(data.get("sizes", ()))))
    return {"count": len(found), "first": list(found[0]) if found else None}


@CHECKS.operation(Graphs)
def dispatch(subject: Graphs, data: Input) -> Any:
    found = subject.dispatch([Graph(*shape) for shape in data["graphs"]], data["batch"], data["query"])
    return None if found is None else list(found)


@CHECKS.operation(Comparison)
def fall_out(subject: Comparison, data: Input) -> Any:
    """Batches without a full graph in vLLM 0.33.0's planner and dispatcher."""
    found = subject.fall_out(table_in(subject, data), data["grid"], data.get("ceiling"), data.get("mixed", False))
    return {
        "dispatched": found.dispatched,
        "uncovered": found.uncovered,
        "widest": sorted(found.widest_covered.items()),
    }


@CHECKS.operation(Reserver)
def reserved_blocks(subject: Reserver, data: Input) -> Any:
    return subject.reserved_blocks(**data)


@CHECKS.operation(Reserver)
def added_blocks(subject: Reserver, data: Input) -> Any:
    return subject.added_blocks(**data)


@CHECKS.operation(Reserver)
def places(subject: Reserver, data: Input) -> Any:
    """A step's own tokens and its places for drafts."""
    given = dict(data)
    return given.pop("tokens") + subject.lookahead(**given)


@CHECKS.operation(Reserver)
def static_extra(subject: Reserver, data: Input) -> Any:
    return subject.static_extra(**data)


@CHECKS.operation(Configured)
def ranks(subject: Configured, data: Input) -> Any:
    """Whether the ranks take one K; a refusal of the table is as good."""
    given = {**data["settings"], "schedule": tuple(map(tuple, data["settings"]["schedule"]))}
    try:
        ks = subject.rank_ks(Settings(**given), data["counts"])
    except ValueError:
        return "alike or refused"
    return "alike or refused" if len(ks) == len(data["counts"]) and len({*ks}) == 1 else list(ks)


@CHECKS.operation(Simulator)
def expected_tokens(subject: Simulator, data: Input) -> Any:
    return str(Fraction(subject.expected_tokens(Fraction(data["acceptance"]), data["k"])))


@CHECKS.operation(Simulator)
def served(subject: Simulator, data: Input) -> Any:
    """Draft forwards, switches and tokens of one run."""
    arrivals = tuple(Arrival(*given) for given in data["arrivals"])
    world = World(**{**data["world"], "arrivals": arrivals, "schedule": tuple(map(tuple, data["world"]["schedule"]))})
    report = subject.simulate(world, data["mode"])
    return {"delivered": report.delivered, "draft_forwards": report.draft_forwards, "switches": report.switches}
