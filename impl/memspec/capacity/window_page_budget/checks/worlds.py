"""Pools and whole workers. What is due comes from counting pages beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from memspec.capacity.window_page_budget.checks.cases import Trace, traces
from memspec.capacity.window_page_budget.checks.facets import CHECKS, Allocator, RadixTail, Rereader, Scheduler
from memspec.capacity.window_page_budget.checks.model import radix_start
from memspec.capacity.window_page_budget.checks.watching import Seen, watch
from memspec.capacity.window_page_budget.data import Worker
from memspec.conformance import Violation, expect, once, refused

Pages = tuple[int, int, tuple[dict[str, Any], ...]]


def take(owner: str, full: int, window: int, do: str = "take") -> dict[str, Any]:
    return {"do": do, "owner": owner, "full": full, "window": window}


FIRST = take("a", 3, 2)


@CHECKS.clause(
    lambda: (
        (5, 4, (FIRST, take("b", 3, 1)), "full"),
        (5, 4, (FIRST, take("b", 1, 3)), "window"),
        (9, 4, (FIRST, take("b", 4, 3)), "window"),
        (5, 4, (FIRST, take("b", 9, 9)), "full"),
        (4, 9, (FIRST, take("a", 5, 3, "resize")), "full"),
        (9, 2, (FIRST, take("a", 4, 3, "resize")), "window"),
    ),
    facet=Allocator,
)
def refused_unchanged(allocator: Allocator, case: tuple[int, int, tuple[dict[str, Any], ...], str]) -> None:
    full, window, events, lacks = case
    before, after = allocator.allocations(full, window, events)
    expect(after["rejected"], lacks)
    expect((after["free"], after["held"]), (before["free"], before["held"]))
    expect([len(ids) for ids in after["held"]["a"]], [3, 2])


@cache
def page_traces() -> tuple[Pages, ...]:
    """Owners that come, grow and go; lengths in pages."""
    random = Random(5)
    found: list[Pages] = []
    for _ in range(4):
        full, window = random.randrange(4, 16), random.randrange(3, 10)
        found.append((full, window, tuple(page_events(random, full, window))))
    return tuple(found)


def page_events(random: Random, full: int, window: int) -> Iterator[dict[str, Any]]:
    held: dict[str, tuple[int, int]] = {}
    for number in range(30):
        owner = random.choice([*held, f"o{number}"])
        if owner not in held:
            wanted = random.randrange(1, 6)
            event = take(owner, wanted, random.randrange(wanted + 1))
        elif random.random() < 0.4:
            event = {"do": "release", "owner": owner}
        else:
            more, gone = random.randrange(3), random.randrange(3)
            first = min(held[owner][0] - held[owner][1] + gone, held[owner][0] + more)
            event = take(owner, held[owner][0] + more, held[owner][0] + more - first, "resize")
        yield event
        follow(held, event, full, window)


def follow(held: dict[str, tuple[int, int]], event: Mapping[str, Any], full: int, window: int) -> str:
    """Counts only: the pages of each owner after an event, and the pool that lacks pages."""
    rest = {owner: pages for owner, pages in held.items() if owner != event["owner"]}
    if event["do"] == "release":
        held.clear()
        held.update(rest)
        return ""
    if event["full"] > full - sum(pages[0] for pages in rest.values()):
        return "full"
    if event["window"] > window - sum(pages[1] for pages in rest.values()):
        return "window"
    held[event["owner"]] = (event["full"], event["window"])
    return ""


@CHECKS.clause(page_traces, facet=Allocator)
def pages_owned_once(allocator: Allocator, case: Pages) -> None:
    full, window, events = case
    held: dict[str, tuple[int, int]] = {}
    before: Mapping[str, Any] = {}
    ever: tuple[set[Any], set[Any]] = (set(), set())
    try:
        outcomes = allocator.allocations(full, window, events)
    except ValueError as refusal:
        raise Violation(f"refusal {str(refusal)!r}", "pages for their owners, or the pool that lacks them") from refusal
    for event, outcome in zip(events, outcomes, strict=True):
        counted = dict(held)
        expect(outcome["rejected"], follow(held, event, full, window))
        for pool, size in ((0, full), (1, window)):
            expect(
                {o: len(ids[pool]) for o, ids in outcome["held"].items()}, {o: pages[pool] for o, pages in held.items()}
            )
            owned = [page for ids in outcome["held"].values() for page in ids[pool]]
            ever[pool].update(owned)
            expect((sorted(owned), len(ever[pool]) <= size), (sorted(set(owned)), True))
            expect(outcome["free"][pool], size - len(owned))
        for owner in before.keys() & held.keys():
            for pool, due in enumerate(still_needed(counted[owner], held[owner])):
                stayed = set(before[owner][pool]) & set(outcome["held"][owner][pool])
                if len(stayed) < due:
                    raise Violation(f"{owner} keeps {len(stayed)} pages", f"at least {due}, which hold its tokens")
        before = outcome["held"]


def still_needed(before: tuple[int, int], after: tuple[int, int]) -> tuple[int, int]:
    """Pages in either pool that an owner had and needs still: all full ones, and those that the window has not passed."""
    passed = (after[0] - after[1]) - (before[0] - before[1])
    return before[0], max(0, before[1] - passed)


@CHECKS.clause(
    lambda: (
        ((take("a", -1, 0),), (-1, 0)),
        ((take("a", 2, -2),), (-2, 0)),
        ((FIRST, take("a", 1, 1)), ("a",)),
        ((FIRST, take("a", 2, 1, "resize")), (3, 2)),
        ((FIRST, take("a", 4, 4, "resize")), (3, 4)),
        (({"do": "release", "owner": "b"},), ("b",)),
    ),
    facet=Allocator,
)
def senseless_pages_refused(allocator: Allocator, case: tuple[tuple[dict[str, Any], ...], tuple[Any, ...]]) -> None:
    refused(lambda: list(allocator.allocations(9, 9, case[0])), *case[1])


Life = tuple[int, Worker, int, int]  # position in traces(), worker, pages of the full pool and of the window pool


def lives() -> Iterator[Life]:
    return ((position, *trace[:3]) for position, trace in enumerate(traces()))


@once
def watched(scheduler: Any, position: int) -> list[Seen]:
    return watch(scheduler.replay, traces()[position])


def last(rows: list[Seen], position: int) -> list[dict[str, object]]:
    """The events that led to a position, for the event table."""
    return [row.row() for row in rows[max(0, position - 7) : position + 1]]


def kept(rows: list[Seen], trace: Trace) -> None:
    """Every page is free, cached where there is a cache, or due to a running request."""
    for position, row in enumerate(rows):
        if any(row.outcome["cached"]) and not trace[0].radix_cache:
            raise Violation(
                f"{row.outcome['cached']} pages are cached", "no cache, no page in it", last(rows, position)
            )
        if row.total != trace[1:3] or min(row.outcome["free"]) < 0:
            raise Violation(row.total, trace[1:3], last(rows, position))


@CHECKS.clause(lives, facet=Scheduler)
def admitted_allocates(scheduler: Scheduler, life: Life) -> None:
    kept(watched(scheduler, life[0]), traces()[life[0]])


@CHECKS.clause(lives, facet=Scheduler)
def retracted_first(scheduler: Scheduler, life: Life) -> None:
    rows = watched(scheduler, life[0])
    for position, row in enumerate(rows):
        if row.event["do"] == "admit" and bool(row.outcome.get("admitted")) != row.admitted:
            due = f"admitted: {row.admitted}; {row.waiting} are retracted"
            raise Violation(row.outcome, due, last(rows, position))


@CHECKS.clause(lives, facet=Scheduler)
def resumes_what_fits(scheduler: Scheduler, life: Life) -> None:
    follows(watched(scheduler, life[0]))


def follows(rows: list[Seen]) -> None:
    """Each pass resumes who is due and stops for the reason that is due; who can never fit does not wait for one, and nobody is lost."""
    for position, row in enumerate(rows):
        if lost := [name for name in row.present if name not in (*row.outcome["running"], *row.outcome["queued"])]:
            raise Violation(
                f"{', '.join(lost)} neither runs nor waits", "a request stays until it ends", last(rows, position)
            )
        seen = (tuple(row.outcome.get("resumed", ())), row.outcome.get("stopped", ""))
        if row.event["do"] == "resume" and seen != (row.resumed, row.stopped):
            raise Violation(seen, (row.resumed, row.stopped), last(rows, position))
        if row.queued is not None and tuple(row.outcome["queued"]) != row.queued:
            raise Violation(row.outcome["queued"], list(row.queued), last(rows, position))


def crowded_cache() -> Iterator[tuple[Worker, int, int, tuple[dict[str, Any], ...]]]:
    """The pages that a request needs are there, but a prefix cache that nobody reads holds them."""
    for page, window in ((128, 512), (4, 8), (16, None)):
        worker = Worker(page, window, reserve=0, radix_cache=True, decode_radix=True)
        life = ({"do": "admit", "name": "old", "prompt": 3 * page}, {"do": "finish", "name": "old", "cache": True})
        back = ({"do": "retract", "name": "back", "prompt": 3 * page - 1, "outputs": 2}, {"do": "resume"})
        yield worker, 4, 3, (*life, *back)
        yield worker, 5, 4, (*life, *back)


def without_reserve() -> Iterator[Trace]:
    """Whether a request that came back counts as active when budgets are read again is not specified, and must not matter here."""
    return ((replace(worker, reserve=0), *rest) for worker, *rest in (traces()[2], traces()[-1]))  # type: ignore[misc]


def one_behind_another() -> Iterator[Trace]:
    """One request waits behind a running one, whose reserve is kept: the longer of two does not come back."""
    for tokens in (32, 33):
        first, second = (
            {"do": "admit", "name": "first", "prompt": 16},
            {"do": "retract", "name": "second", "prompt": tokens},
        )
        yield Worker(16, 64, 40, radix_cache=True, decode_radix=True), 8, 20, (first, second, {"do": "resume"})


@CHECKS.clause(lambda: (*crowded_cache(), *one_behind_another(), *without_reserve()), facet=Rereader)
def evict_before_allocate(rereader: Rereader, trace: Trace) -> None:
    rows = watch(rereader.replay_rereading, trace, rereading=True)
    kept(rows, trace)
    follows(rows)


@CHECKS.clause(
    lambda: (
        (n, window, page) for page in (1, 4, 64) for window in (1, 3, 128) for n in (0, 1, 5, 64, 65, 129, 193, 257)
    ),
    facet=RadixTail,
)
def decode_radix_tail(subject: RadixTail, case: tuple[int, int, int]) -> None:
    expect(subject.decode_radix_start(*case), radix_start(*case))
