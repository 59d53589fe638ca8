"""The ring at work: steps are played over a ring that holds stale rows, and committed entries are compared with the
whole history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memspec.capacity.compress_ring_pad.checks import cases
from memspec.capacity.compress_ring_pad.checks.cases import (
    C4,
    C128,
    PLAIN4,
    PLAIN128,
    REQUEST4,
    Stage,
    Story,
    decode,
    extend,
    hit,
    pages_of,
    raw_row,
    verify,
)
from memspec.capacity.compress_ring_pad.checks.facets import CHECKS, Committer, Stepper
from memspec.capacity.compress_ring_pad.data import Arena, Request, Row
from memspec.conformance import Violation, expect, refused

GUARD: Row = (12345.0, 0.0)  # around the layer's rows
STALE: Row = (50.0, 0.5)  # what a recycled ring holds: finite, and not ours
BASE = 64
TOLERANCE = 1e-5  # ten times what single precision costs; a row that never was ours moves an entry by 0.2 and more


def layer(rows: int) -> Arena:
    return [GUARD] * BASE + [STALE] * rows + [GUARD] * BASE


def strays(arena: Arena, rows: int) -> list[int]:
    """Rows written outside the layer, counted from its first; a changed length counts as one."""
    if arena[:BASE] == arena[BASE + rows :] == [GUARD] * BASE:
        return []
    outside = [n for n, row in enumerate(arena) if not BASE <= n < BASE + rows and tuple(row) != GUARD]
    return [n - BASE for n in outside] + [len(arena)] * (len(arena) != rows + 2 * BASE)


def play(stepper: Stepper, story: Story) -> None:
    """Raise Violation for the first committed entry that differs from the history, or a write outside the layer; the
    trace is the run.
    """
    geometry = story.geometry
    every = {of for stage in story.stages for of, _, _ in stage.parts}
    rows = (8 * (max(every) + 1) if cases.paged(geometry) else max(every) + 1) * geometry.ring
    arena, lengths, attempts = layer(rows), dict.fromkeys(every, 0), 0
    pages, donors = {of: pages_of(of) for of in every}, dict.fromkeys(every, (0, 0))
    events: list[Mapping[str, object]] = []
    for stage in story.stages:
        attempts += 1
        events.append({"step": stage.kind, "parts": stage.parts})
        if stage.kind == "hit":
            for of, donor, found in stage.parts:
                shared = found // geometry.page
                pages[of], donors[of], lengths[of] = pages[donor][:shared] + pages[of][shared:], (donor, found), found
            continue
        requests = tuple(Request(of, lengths[of], tokens, pages[of]) for of, tokens, _ in stage.parts)
        entries = stepper.step(
            geometry,
            arena,
            BASE,
            "decode" if stage.kind == "decode" else "extend",
            requests,
            batch_rows(stage, lengths, donors, attempts),
        )
        token = 0
        for of, tokens, committed in stage.parts:
            for position in range(lengths[of], lengths[of] + committed):
                if (position + 1) % geometry.ratio == 0:
                    due = cases.true_entry(geometry.ratio, of, *donors[of], position + 1)
                    seen = entries.get(token + position - lengths[of])
                    if seen is None or not abs(seen - due) <= TOLERANCE:
                        raise Violation(
                            f"request {of}, entry of length {position + 1}: {seen if seen is None else round(seen, 4)}",
                            f"{due:.4f}, from its {cases.WINDOW[geometry.ratio]} raw rows",
                            events,
                        )
            lengths[of] += committed
            token += tokens
        if outside := strays(arena, rows):
            raise Violation(
                f"rows {outside} outside the layer are written", "every write lies in the layer's rows", events
            )


def batch_rows(
    stage: Stage, lengths: Mapping[int, int], donors: Mapping[int, tuple[int, int]], attempt: int
) -> list[Row]:
    """The raw rows of a batch; those of drafts that will be rejected are not the committed ones."""
    rows = []
    for of, tokens, committed in stage.parts:
        start, (donor, found) = lengths[of], donors[of]
        rows += [
            raw_row(donor if p < found else of, p, 0 if p < start + committed else attempt)
            for p in range(start, start + tokens)
        ]
    return rows


def rollbacks() -> Iterator[Story]:
    """As many drafts as the ring serves: every residue of ratio 4, the extremes of ratio 128."""
    for accepted in (1, 2, 6, 10):
        yield Story(
            f"10 drafts at residues 0 to 3, {accepted} committed",
            C4,
            (
                extend(*((r, 12 + r) for r in range(4))),
                verify(*((r, 10, accepted) for r in range(4))),
                verify(*((r, 4, 4) for r in range(4))),
            ),
        )
    for residue, accepted in ((0, 130), (126, 1)):
        yield Story(
            f"130 drafts at residue {residue}, {accepted} committed",
            C128,
            (extend((1, 128 + residue)), verify((1, 130, accepted)), verify((1, 130, 130))),
        )


def stories() -> Iterator[Story]:
    yield from rollbacks()
    yield Story(
        "rings by request", REQUEST4, (extend((1, 250)), verify((1, 10, 1)), verify((1, 10, 9)), verify((1, 4, 4)))
    )
    for first in (1, 4):
        yield Story(
            f"5 drafts across a page, {first} committed",
            C4,
            (extend((1, 251)), verify((1, 5, first)), verify((1, 5, 2)), verify((1, 5, 5))),
        )
    yield Story(
        "chunked prefill",
        PLAIN4,
        (extend((1, 3), (2, 250)), extend((2, 9), (1, 2)), extend((1, 40), (2, 1)), decode(1, 2), decode(2, 1)),
    )
    yield Story(
        "chunked prefill",
        PLAIN128,
        (extend((1, 100), (2, 127)), extend((2, 1), (1, 60)), extend((1, 100), (2, 128)), decode(2)),
    )
    yield Story(
        "prefill beside verify",
        C4,
        (
            extend((1, 19)),
            extend((1, 8), (2, 330)),
            verify((1, 6, 1), (2, 6, 3)),
            verify((2, 6, 2), (1, 6, 6)),
            verify((1, 6, 4), (2, 6, 6)),
        ),
    )
    yield Story(
        "prefill beside verify",
        C128,
        (
            extend((1, 250)),
            verify((1, 6, 1)),
            extend((2, 125), (1, 1)),
            verify((1, 6, 3), (2, 6, 2)),
            verify((1, 6, 6), (2, 6, 6)),
        ),
    )


@CHECKS.clause(stories, facet=Stepper)
def committed_entries(stepper: Stepper, story: Story) -> None:
    play(stepper, story)


@CHECKS.clause(
    lambda: [
        Story(
            "10 drafts behind a full ring",
            C4,
            (extend((1, 19), (2, 15), (3, 23)), verify((1, 10, 1), (2, 10, 9), (3, 10, 10))),
        ),
        Story("a long chunk", C4, (extend((1, 19)), extend((1, 20)))),
        Story("130 drafts behind a full ring", C128, (extend((1, 127)), verify((1, 130, 1)))),
    ],
    facet=Stepper,
)
def compress_before_write(stepper: Stepper, story: Story) -> None:
    play(stepper, story)


@CHECKS.clause(
    lambda: [
        Story(
            "decode", geometry, (extend((1, length)), *[decode(1)] * (geometry.ratio + 1 if geometry.ratio == 4 else 3))
        )
        for geometry, length in ((PLAIN4, 18), (PLAIN4, 2), (C4, 29), (PLAIN128, 126), (C128, 254))
    ],
    facet=Stepper,
)
def write_before_read(stepper: Stepper, story: Story) -> None:
    play(stepper, story)


@CHECKS.clause(
    lambda: (
        [
            Story(
                "two requests share their first page",
                geometry,
                (extend((1, 256 + more)), hit(2, 1, 256), extend((2, 5)), extend((1, 4))),
            )
            for geometry, more in ((C4, 0), (C4, 7), (PLAIN4, 9))
        ]
        + [
            Story(
                "a hit beside drafts",
                C4,
                (extend((1, 253)), verify((1, 10, 6)), hit(2, 1, 256), verify((2, 10, 4), (1, 10, 2))),
            )
        ]
    ),
    facet=Stepper,
)
def page_tails(stepper: Stepper, story: Story) -> None:
    play(stepper, story)


@CHECKS.clause(
    lambda: [
        Story("from the start", geometry, stages)
        for geometry in (C4, PLAIN4)
        for stages in (
            (extend((1, 4)),),
            (extend((1, 3)), extend((1, 2))),
            (extend((1, 1)), decode(1), decode(1), decode(1)),
            (extend((1, 2), (2, 4)), extend((2, 4), (1, 6))),
        )
    ],
    facet=Stepper,
)
def first_window(stepper: Stepper, story: Story) -> None:
    play(stepper, story)


@CHECKS.clause(
    lambda: [
        (515, 5, 0, (0, 5)),
        (515, 5, 6, (6, 5)),
        (9, 1, 0, (0, 1)),
        (20, 10, -1, (-1, 10)),
        (515, 5, 1, 516),
        (515, 5, 5, 520),
    ],
    facet=Committer,
)
def one_committed(committer: Committer, case: tuple[int, int, int, tuple[int, int] | int]) -> None:
    prefix, drafts, accepted, due = case
    if isinstance(due, tuple):
        refused(lambda: committer.commit(prefix, drafts, accepted), *due)
    else:
        expect(committer.commit(prefix, drafts, accepted), due)
