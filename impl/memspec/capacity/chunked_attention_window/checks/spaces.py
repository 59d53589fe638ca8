"""The device's rule, the suffix, and how much is loaded, stored and planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

from memspec.capacity.chunked_attention_window.checks.facets import (
    CHECKS,
    Admission,
    BothRules,
    Device,
    Plans,
    Suffix,
    Transfers,
    refused_by_name,
)
from memspec.capacity.chunked_attention_window.checks.oracle import chunked, full
from memspec.conformance import Violation, expect

Cached = tuple[bool, ...]


def resident(pattern: str) -> Cached:
    return tuple(letter == "H" for letter in pattern)


def walk(max_length: int, attention_chunk: int, block: int, cached: Sequence[bool]) -> tuple[int, int]:
    """The device rule block by block: a block counts when it lies before the open attention chunk, or is cached."""
    open_at = max(t for t in range(max_length + 1) if t % attention_chunk == 0)
    hit = empty = 0
    for index in range(max_length // block):
        before = (index + 1) * block <= open_at
        if not before and not cached[index]:
            break
        hit, empty = hit + block, empty + before
    return hit, empty


@cache
def devices() -> tuple[tuple[int, int, int, Cached, tuple[int, int]], ...]:
    sizes = ((8, 4), (8, 8), (4, 2), (12, 4), (4, 8))
    patterns = [resident(p) for p in ("MMMMMM", "HHHHHH", "MMHHHH", "HHMHMM", "HMHMHM", "MMMMHM")]
    given = [(m, c, b, p) for (c, b), m, p in product(sizes, range(17), patterns) if m // b <= 6]
    return tuple((*g, walk(*g)) for g in given)


@CHECKS.clause(devices, facet=Device)
def placeholders_then_cached(rule: Device, case: tuple[int, int, int, Cached, tuple[int, int]]) -> None:
    expect(tuple(rule.device_hit(*case[:4])), case[4])
    expect(rule.skipped_tokens(*case[:2]), max(t for t in range(case[0] + 1) if t % case[1] == 0))


MISFITS = (
    (7, 6, 4, (6, 4)),
    (16, 8, 3, (8, 3)),
    (20, 9, 6, (9, 6)),
    (40, 8192, 768, (8192, 768)),
    (8, 0, 4, ("attention chunk", 0, 1)),
    (8, 8, 0, ("block", 0, 1)),
)


@CHECKS.clause(lambda: MISFITS, facet=Device)
def blocks_fit_the_chunk(rule: Device, case: tuple[int, int, int, tuple[object, ...]]) -> None:
    refused_by_name(lambda: rule.device_hit(*case[:3], (False,) * 16), *case[3])


@CHECKS.clause(
    lambda: [
        ({"alignment": 16}, (4, 16)),
        ({"alignment": 2}, (4, 2)),
        ({"draft_drop": True}, ("draft",)),
        ({"context_ranks": 2}, (2, 1)),
    ],
    facet=Device,
)
def device_rule_alone(rule: Device, case: tuple[dict[str, int], tuple[object, ...]]) -> None:
    refused_by_name(lambda: rule.device_hit(16, 8, 4, (True,) * 4, **case[0]), *case[1])  # type: ignore[arg-type]


# (m, C, size, answers of the store, what the device says without a resident block, what the store says)
SIDE_BY_SIDE = (
    (16, 8, 4, "MMMM", 16, 0),
    (16_384, 8192, 1024, "M" * 16, 16_384, 0),
    (15, 8, 4, "HHH", 8, 12),
)


@CHECKS.clause(lambda: SIDE_BY_SIDE, facet=BothRules)
def two_rules(rules: BothRules, case: tuple[int, int, int, str, int, int]) -> None:
    length, attention_chunk, size, answers, device_due, store_due = case
    groups = (full(size), chunked(attention_chunk, size))
    seen = (
        rules.device_hit(length, attention_chunk, size, (False,) * len(answers))[0],
        rules.external_hit(length, 0, groups, (answers, answers)),
    )
    expect(seen, (device_due, store_due))


def suffixes() -> Iterator[tuple[int, int, int, int, Cached]]:
    patterns = [resident(p) for p in ("MMMHMM", "HHHHHH", "MMHHHH", "MMMMHH", "MHMHMM")]
    for (c, b), local, prompt, cached in product(
        ((8, 4), (12, 4), (4, 4), (4, 8)), (0, 2, 4, 8, 12), (13, 16, 20, 24), patterns
    ):
        if local < prompt:
            yield (prompt, local, c, b, cached)


@CHECKS.clause(suffixes, facet=Suffix)
def absolute_positions(rule: Suffix, case: tuple[int, int, int, int, Cached]) -> None:
    _, local, c, b, cached = case
    hit = rule.suffix_hit(*case)
    lost = [t for t in range((local + hit) // c * c, local + hit) if t >= local and not cached[t // b]] if hit else []
    if lost:
        raise Violation({"hit": hit, "up to": local + hit}, f"no such hit: token {lost[0]} is not resident")


@CHECKS.clause(lambda: [case for case in suffixes() if case[1] % case[2] == case[1] % case[3] == 0], facet=Suffix)
def suffix_on_the_grid(rule: Suffix, case: tuple[int, int, int, int, Cached]) -> None:
    prompt, local, c, b, cached = case
    expect(rule.suffix_hit(*case), walk(prompt - 1 - local, c, b, cached[local // b :])[0])


@CHECKS.clause(lambda: [(local, n, c, t, tuple(sorted({k // t for k in range(local, n) if k // c == n // c})))
                        for c, t in ((8, 2), (8, 3), (6, 4), (4, 6)) for n in range(1, 20) for local in (0, 3, 8) if local <= n],
               facet=Transfers)  # fmt: skip
def loads_what_is_read(rule: Transfers, case: tuple[int, int, int, int, tuple[int, ...]]) -> None:
    expect(tuple(sorted(rule.chunks_to_load(*case[:4]))), case[4])


@CHECKS.clause(lambda: [(m, w, t, len(set(range(0, m, t)) if w is None else list(range(0, m, t))[:w]))
                        for m in (1, 7, 8, 9, 1000) for w in (None, 1, 3, 8) for t in (1, 8, 1024)], facet=Plans)  # fmt: skip
def planned_by_the_window(rule: Plans, case: tuple[int, int | None, int, int]) -> None:
    expect(rule.planned_chunks(*case[:3]), case[3])


@cache
def admissions() -> tuple[tuple[int, int, int, int, int], ...]:
    given = product((4, 8192), (0, 8, 2048), (6, 16, 4096, 32_768), (4, 16))
    return tuple((c, f, m, b, len(set(range(0, m, b)) & set(range(0, c + f, b)))) for c, f, m, b in given)


@CHECKS.clause(admissions, facet=Admission)
def admission_cap(rule: Admission, case: tuple[int, int, int, int, int]) -> None:
    expect(rule.admission_blocks(*case[:4]), case[4])
