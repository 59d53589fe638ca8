"""One group's lookup, then the lookup of groups that must agree."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import permutations

from memspec.capacity.chunked_attention_window.checks.facets import (
    CHECKS,
    Lookup,
    RunLookup,
    refused_by_name,
)
from memspec.capacity.chunked_attention_window.checks.oracle import (
    OFF_GRID,
    World,
    chunked,
    full,
    least_hit,
    open_worlds,
    scan,
    sliding,
    strings,
    unreadable,
    worlds,
)
from memspec.capacity.chunked_attention_window.data import LayerGroup
from memspec.conformance import Violation, expect, once

Run = tuple[str, int, int | None]


@cache
def runs(letters: str, longest: int, wanted: Callable[[str, int | None], bool]) -> tuple[Run, ...]:
    found = ((s, w, scan(s, w)) for s in strings(letters, longest) for w in (1, 2, 3))
    return tuple(case for case in found if wanted(case[0], case[2]))


def settled(answers: str, due: int | None) -> bool:
    return True


def waits_on_pending(answers: str, due: int | None) -> bool:
    return due is None


def pending_beside(answers: str, due: int | None) -> bool:
    return "P" in answers and due is not None


def has_uncertain(answers: str, due: int | None) -> bool:
    return "U" in answers


@CHECKS.clause(lambda: (*runs("HM", 6, settled), ("H", 8, 1), ("MHHHHHHH", 8, 0)), facet=RunLookup)
def right_most_run(lookup: RunLookup, case: Run) -> None:
    expect(lookup.find_run(*case[:2]), case[2])


@CHECKS.clause(lambda: runs("HMP", 4, waits_on_pending), facet=RunLookup)
def pending_extends_a_run(lookup: RunLookup, case: Run) -> None:
    expect(lookup.find_run(*case[:2]), None)


@CHECKS.clause(lambda: (("MPM", 2, 0), ("HHMPH", 3, 2), *runs("HMP", 4, pending_beside)), facet=RunLookup)
def pending_beside_is_forgotten(lookup: RunLookup, case: Run) -> None:
    expect(lookup.find_run(*case[:2]), case[2])


@CHECKS.clause(lambda: runs("HMPU", 4, has_uncertain), facet=RunLookup)
def uncertain_ends_a_run(lookup: RunLookup, case: Run) -> None:
    expect(lookup.find_run(*case[:2]), case[2])


@cache
def all_worlds() -> tuple[World, ...]:
    return (*worlds(), *open_worlds(), *OFF_GRID)


@once
def hits(lookup: Lookup) -> list[tuple[World, int | None]]:
    return [(world, lookup.external_hit(*world)) for world in all_worlds()]


@CHECKS.clause(lambda: ["every small store"], facet=Lookup)
def no_false_hit(lookup: Lookup, case: str) -> None:
    for world, hit in hits(lookup):
        last = world.prompt - world.local if world.cap is None else min(world.cap, world.prompt - world.local)
        if hit is not None and not 0 <= hit <= last:
            raise Violation({"hit": hit, **world._asdict()}, f"0 to {last}")
        for group, answers in zip(world.groups, world.answers, strict=True) if hit else ():
            missing = unreadable(group, answers, world.local, world.local + (hit or 0))
            if missing:
                due = f"no hit there: token {missing[0]} of the {group.kind} group is not stored"
                raise Violation({"hit": hit, **world._asdict()}, due)


@cache
def found_at_least() -> tuple[int, ...]:
    return tuple(least_hit(world) for world in worlds())


@CHECKS.clause(lambda: ["every small store"], facet=Lookup)
def finds_what_is_there(lookup: Lookup, case: str) -> None:
    for (world, hit), least in zip(hits(lookup), found_at_least(), strict=False):
        if hit is None or hit < least:
            raise Violation({"hit": hit, **world._asdict()}, f"at least {least}")


TWO = (full(2), chunked(4, 2))


@CHECKS.clause(lambda: [World(8, 0, TWO, ("HHHH", "HHHH")), World(8, 2, TWO, ("HHHH", "HHHH")), World(8, 0, (sliding(2, 2),), ("HHHH",)),
                        World(4096, 0, (chunked(8192, 1024),), ("HHHH",))], facet=Lookup)  # fmt: skip
def last_token_computed(lookup: Lookup, world: World) -> None:
    expect(world.local + (lookup.external_hit(*world) or 0), world.prompt - 1)


# Two groups whose windows begin where the other's answer ends: (world, tokens that every group can serve)
SHORTENED = (
    (World(15, 0, (chunked(6, 2), sliding(2, 2)), ("HHHMHHH", "HHHHHMM")), 6),
    (World(13, 0, (chunked(10, 2), sliding(4, 2), full(2)), ("HHHHHH", "HHHMMH", "HHHHHH")), 6),
    (World(17, 4, (chunked(8, 2), sliding(2, 2)), ("MMHHMHHH", "MMHHHHMM")), 4),
    (World(27, 0, (sliding(4, 2), sliding(6, 2)), ("HMHHMMMHHMHHM", "HHMHHHMHHHMHH")), 2),  # four shortenings
)


@CHECKS.clause(lambda: SHORTENED, facet=Lookup)
def fixed_point(lookup: Lookup, case: tuple[World, int]) -> None:
    world, due = case
    for order in permutations(zip(world.groups, world.answers, strict=True)):
        groups, answers = zip(*order, strict=True)
        expect(lookup.external_hit(world.prompt, world.local, groups, answers), due)


# Every open answer lies in what is read at the boundary, so that a lookup without false misses has to wait as well.
OPEN = (
    World(8, 0, TWO, ("HHHH", "HHHP")),
    World(8, 0, TWO, ("HHPH", "HHHH")),
    World(8, 0, TWO, ("HHHH", "HHHU")),
    World(8, 0, TWO, ("HUHH", "HHHH")),
    World(8, 2, (chunked(4, 2), chunked(8, 2)), ("HHHH", "HPHH")),
)


@CHECKS.clause(lambda: OPEN, facet=Lookup)
def open_answer_waits(lookup: Lookup, world: World) -> None:
    expect(lookup.external_hit(*world), None)


PAIR = (sliding(2, 2), sliding(4, 2))
OPEN_BEYOND = (
    (World(9, 0, PAIR, ("HHHP", "HHHM")), 6),
    (World(9, 0, PAIR, ("HHMU", "HHHM")), 4),
    (World(9, 0, (full(2), sliding(4, 2)), ("HHPH", "HHMM")), 4),
    (World(9, 0, (full(2), chunked(4, 2)), ("HHMP", "HHHH")), 4),
    (World(9, 0, (full(2), chunked(4, 2)), ("MHHH", "HHHP")), 0),
)


@CHECKS.clause(lambda: OPEN_BEYOND, facet=Lookup)
def asked_again_after_shortening(lookup: Lookup, case: tuple[World, int]) -> None:
    expect(lookup.external_hit(*case[0]), case[1])


BESIDE_THE_DEVICE = (
    (World(8, 4, (chunked(4, 2),), ("MMHH",)), 3),
    (World(12, 6, (chunked(8, 2),), ("MMMHHH",)), 5),
    (World(9, 5, (chunked(6, 2),), ("MMHM",)), 0),
    (World(9, 3, (full(2), chunked(8, 2)), ("MMHH", "MHHH")), 0),  # chunk 1 holds token 3, which nobody has
    (World(14, 5, (full(2), chunked(8, 2)), ("MMHHHHH", "MMHHHMM")), 5),
)


@CHECKS.clause(lambda: BESIDE_THE_DEVICE, facet=Lookup)
def device_prefix_counts(lookup: Lookup, case: tuple[World, int]) -> None:
    expect(lookup.external_hit(*case[0]), case[1])


TOO_SHORT = (
    World(8, 0, (chunked(4, 8),), ("H",)),
    World(9, 8, TWO, ("HHHH", "HHHH")),
    World(40, 0, (full(16), chunked(16, 16)), ("HM", "HH"), 15),
    World(12, 0, (full(6), chunked(12, 2)), ("HH", "HHMMMM")),
)


@CHECKS.clause(lambda: TOO_SHORT, facet=Lookup)
def less_than_a_chunk(lookup: Lookup, world: World) -> None:
    expect(lookup.external_hit(*world), 0)


ALL_THERE = ("HHHH", "HHHH")
OUT_OF_RANGE: tuple[tuple[World, tuple[object, ...]], ...] = (
    (World(0, 0, TWO, ("", "")), ("prompt", 0, 1)),
    (World(8, 9, TWO, ALL_THERE), ("local prefix", 9, 8)),
    (World(8, -1, TWO, ALL_THERE), ("local prefix", -1, 0)),
    (World(8, 0, TWO, ("HHHH", "HHH")), (3, 4, "chunked-local")),
    (World(8, 0, TWO, ALL_THERE, -2), ("cap", -2, 0)),
    (World(8, 0, TWO, ALL_THERE[:1]), ("1 answer lists", "2 groups")),
    (World(8, 0, (), ()), ("0 groups", "at least 1")),
    (World(8, 0, TWO, ("HHHH", "HHXH")), ("'X'", 2)),
    (World(8, 0, TWO, ("HHHX", "HHHH")), ("'X'", 3)),
    (World(8, 0, TWO, ("MHHH", "HHHX")), ("'X'", 3)),
    (World(8, 0, (chunked(4, 2), full(0)), ALL_THERE), ("offload chunk", 0, 1)),
    (World(8, 0, (chunked(4, 2), LayerGroup("cross-attention", 2)), ("MMMM", "HHHH")), ("'cross-attention'",)),
    (World(8, 0, (full(2), LayerGroup("mamba", 2)), ALL_THERE), ("'mamba'",)),
)


@CHECKS.clause(lambda: OUT_OF_RANGE, facet=Lookup)
def request_in_range(lookup: Lookup, case: tuple[World, tuple[object, ...]]) -> None:
    refused_by_name(lambda: lookup.external_hit(*case[0]), *case[1])
