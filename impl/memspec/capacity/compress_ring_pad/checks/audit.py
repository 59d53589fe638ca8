"""Past the limit: an audit is compared with a log of writes that is read backwards, and with the arithmetic of the
bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from memspec.capacity.compress_ring_pad.checks import cases
from memspec.capacity.compress_ring_pad.checks.cases import C4, C128, PADS, PLAIN4
from memspec.capacity.compress_ring_pad.checks.facets import CHECKS, Audit
from memspec.capacity.compress_ring_pad.data import Geometry
from memspec.conformance import Violation, expect

Run = tuple[Geometry, int, int, int, tuple[int, ...]]  # geometry, pad, prefix, drafts, commits


def runs() -> Iterator[Run]:
    """Pads and drafts below, at and past the limit; the last commit of each run is a whole step."""
    for pad, drafts in ((4, 5), (10, 10), (11, 11)):
        for prefix, accepted in product(range(512, 516), (1, 4, drafts)):
            yield C4, pad, prefix, drafts, (accepted, drafts)
    yield from ((C4, 4, prefix, 5, (a, b, 5)) for prefix, a, b in product(range(512, 516), (1, 2), (1, 3)))
    yield from ((C4, 4, prefix, 6, (1, 2)) for prefix in range(248, 257))
    yield from ((PLAIN4, 0, prefix, 3, (2, 3)) for prefix in range(20, 24))
    for pad, drafts, accepted in ((4, 5, 1), (0, 2, 1), (131, 131, 1), (130, 130, 129)):
        yield from ((C128, pad, prefix, drafts, (accepted, drafts)) for prefix in (384, 510))


@CHECKS.clause(runs, facet=Audit)
def committed_only(audit: Audit, run: Run) -> None:
    expect(
        [(found.length, tuple(found.positions)) for found in audit.stale_reads(*run)],
        [tuple(due) for due in cases.due_stale_reads(*run)],
    )


def past_the_limit() -> Iterator[tuple[Geometry, int, str, int]]:
    """One draft more than the pad, with what a planner writes then and with everything written; and, the other way,
    exactly the pad.
    """
    for geometry in (C4, C128):
        for prefix in cases.residues(geometry, 512) if geometry.ratio == 4 else (512, 638, 639):
            yield geometry, prefix, "planned", PADS[geometry]
            yield geometry, prefix, "served", PADS[geometry]
        yield geometry, 640 + geometry.ratio - 2, "written in full", PADS[geometry] + 1


@CHECKS.clause(past_the_limit, facet=Audit)
def bound_is_tight(audit: Audit, case: tuple[Geometry, int, str, int]) -> None:
    geometry, prefix, how, pad = case
    drafts = PADS[geometry] + (how != "served")
    lost = {p for found in audit.stale_reads(geometry, pad, prefix, drafts, (1, drafts)) for p in found.positions}
    if how == "planned" and prefix not in lost and not needless(geometry, prefix):
        raise Violation(sorted(lost), f"{prefix}, which a pad of {pad} drops from {drafts} drafts, is missed")
    if how == "written in full" and prefix + 2 - cases.WINDOW[geometry.ratio] not in lost:
        raise Violation(
            sorted(lost), f"{prefix + 2 - cases.WINDOW[geometry.ratio]}, replaced by the last draft, is missed"
        )
    if how == "served":
        expect(sorted(lost), [])


def needless(geometry: Geometry, prefix: int) -> bool:
    """Whether the one committed token completes the only window that reads position ``prefix``."""
    return geometry.ratio == 128 and (prefix + 1) % 128 == 0
