"""How the vectors' plain inputs reach a subject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memspec.capacity.compress_ring_pad.checks.facets import (
    CHECKS,
    Allocation,
    Audit,
    Calculator,
    Committer,
    DevicePlanner,
    GeometryGuard,
    HostPlanner,
    SizeGuard,
    Sizes,
    Slots,
    Start,
    WriteRule,
)
from memspec.capacity.compress_ring_pad.data import Geometry, Plan, Request

Input = Mapping[str, Any]


def geometry(given: Input) -> Geometry:
    return Geometry(given["ratio"], given["ring"], given.get("page", 256), given.get("by_request", False))


def requests(given: Input) -> tuple[Request, ...]:
    return tuple(Request(r["slot"], r["prefix"], r["extend"], tuple(r.get("pages", ()))) for r in given["requests"])


def layers(given: Input) -> dict[int, int]:
    return {int(ratio): count for ratio, count in given["layers"].items()}


def plain(plan: Plan) -> dict[str, list[list[int]]]:
    """Entries in ascending order, since planners promise none; sentinels sort last."""
    return {"compressions": sorted(list(c) for c in plan.compressions), "writes": sorted(list(w) for w in plan.writes)}


@CHECKS.operation(facet=Sizes)
def ring(subject: Sizes, given: Input) -> Any:
    """Ring size and pad of a server."""
    size = subject.ring_size(
        given["ratio"], given.get("drafts", 0), given.get("online", False), given.get("online_speculation", False)
    )
    return {"ring": size, "pad": subject.write_pad(given["ratio"], size)}


@CHECKS.operation(facet=Start)
def start(subject: Start, given: Input) -> Any:
    return subject.check_start(
        layers(given),
        given.get("flag", 0),
        tuple(given.get("adaptive_steps", ())),
        given.get("gamma"),
        given.get("online", False),
    )


@CHECKS.operation(facet=Calculator)
def max_draft_tokens(subject: Calculator, given: Input) -> Any:
    return subject.max_draft_tokens(layers(given), given.get("online", False))


@CHECKS.operation(facet=Slots)
def slots(subject: Slots, given: Input) -> Any:
    of = Request(given["slot"], 0, 1, tuple(given.get("pages", ())))
    return [subject.ring_slot(geometry(given), of, position) for position in given["positions"]]


@CHECKS.operation(facet=GeometryGuard)
def check_geometry(subject: GeometryGuard, given: Input) -> Any:
    subject.check_geometry(geometry(given))
    return "planned"


@CHECKS.operation(facet=SizeGuard)
def check_size(subject: SizeGuard, given: Input) -> Any:
    subject.check_size(given["tokens"], given["requests"])
    return "planned"


@CHECKS.operation(facet=HostPlanner)
def host_plan(subject: HostPlanner, given: Input) -> Any:
    return plain(subject.host_plan(geometry(given), requests(given), given["tokens"], given.get("rows")))


@CHECKS.operation(facet=DevicePlanner)
def device_plan(subject: DevicePlanner, given: Input) -> Any:
    return plain(subject.device_plan(geometry(given), requests(given), given["rows"]))


@CHECKS.operation(facet=WriteRule)
def written(subject: WriteRule, given: Input) -> Any:
    """The positions that one pad leaves in the ring, and the end residues at which it drops some of ``drafts``."""
    rule, pad, drafts = geometry(given), given["pad"], given["drafts"]
    ends = range(512 + drafts, 512 + drafts + rule.ratio)
    dropped = [
        end % rule.ratio for end in ends if len(list(subject.written_positions(rule, pad, end - drafts, end))) < drafts
    ]
    prefix = given.get("prefix", 512)
    return {
        "positions": list(subject.written_positions(rule, pad, prefix, prefix + drafts)),
        "residues_that_drop": sorted(dropped),
    }


@CHECKS.operation(facet=Audit)
def stale_reads(subject: Audit, given: Input) -> Any:
    found = subject.stale_reads(
        geometry(given), given["pad"], given["prefix"], given["drafts"], tuple(given["commits"])
    )
    return [[f.length, list(f.positions)] for f in found]


@CHECKS.operation(facet=Committer)
def commit(subject: Committer, given: Input) -> Any:
    return subject.commit(given["prefix"], given["drafts"], given["accepted"])


@CHECKS.operation(facet=Allocation)
def state_rows(subject: Allocation, given: Input) -> Any:
    return subject.state_rows(geometry(given), given["swa_tokens"], given["max_running"], given.get("extra", 0))
