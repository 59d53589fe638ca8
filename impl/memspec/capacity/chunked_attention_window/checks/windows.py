"""What is asked for, and what is read."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import gcd

from memspec.capacity.chunked_attention_window.checks.facets import (
    CHECKS,
    Demand,
    Needs,
    Windows,
    accepted,
    refused_by_name,
)
from memspec.capacity.chunked_attention_window.checks.oracle import chunked, read_at, sliding, tokens_read
from memspec.capacity.chunked_attention_window.data import LayerGroup
from memspec.conformance import Violation, expect

SMALL = tuple(product(range(1, 13), repeat=2))
REAL = (
    (1, 2),
    (100, 8192),
    (8191, 8192),
    (8192, 8192),
    (8192, 256),
    (8192, 768),
    (8192, 1024),
    (8192, 3000),
    (8192, 4096),
)


@cache
def pieces() -> tuple[tuple[int, int, int], ...]:
    return tuple((c, t, len({token // t for token in range(c)})) for c, t in (*SMALL, *REAL))


@CHECKS.clause(pieces, facet=Windows)
def rounds_up(rule: Windows, case: tuple[int, int, int]) -> None:
    expect((rule.window_in_chunks(*case[:2]), rule.reported_window(chunked(*case[:2]))), (case[2], case[2]))


@CHECKS.clause(lambda: [(0, 1024), (-8192, 1024)], facet=Windows)
def attention_chunk_positive(rule: Windows, case: tuple[int, int]) -> None:
    refused_by_name(lambda: rule.window_in_chunks(*case), "attention chunk", case[0], 1)
    refused_by_name(lambda: rule.reported_window(chunked(*case)), "attention chunk", case[0], 1)


@CHECKS.clause(lambda: [(chunked(8192, -1024), "offload chunk", -1024, 1), (LayerGroup("full-attention", 0), "offload chunk", 0, 1),
                        (sliding(0, 64), "sliding window", 0, 1), (sliding(-4, 64), "sliding window", -4, 1),
                        (sliding(64, 64, -1), "extra retained", -1, 0)], facet=Windows)  # fmt: skip
def sizes_in_range(rule: Windows, case: tuple[LayerGroup, str, int, int]) -> None:
    refused_by_name(lambda: rule.reported_window(case[0]), *case[1:])


@CHECKS.clause(lambda: [(chunked(8192, 1024), 8), (LayerGroup("full-attention", 1024), None), (LayerGroup("mla", 64), None),
                        (LayerGroup("mamba", 64), 1), (sliding(4096, 1024), 4), (sliding(1025, 1024), 2),
                        (LayerGroup("sliding-window-mla", 64, sliding_window=128), 2), (sliding(1024, 1024, 2), 2), (sliding(1, 16), 1)],
               facet=Windows)  # fmt: skip
def window_by_kind(rule: Windows, case: tuple[LayerGroup, int | None]) -> None:
    expect(accepted(lambda: rule.reported_window(case[0])), case[1])


@CHECKS.clause(lambda: ["cross-attention", "encoder-only", ""], facet=Windows)
def unknown_kind_named(rule: Windows, kind: str) -> None:
    group = LayerGroup(kind, 1024, 8192)
    refused_by_name(lambda: rule.reported_window(group), repr(kind))


@CHECKS.clause(lambda: [LayerGroup("full-attention", 1024, 8192), LayerGroup("mla", 64, 64),
                        LayerGroup("full-attention", 64, None, 128)], facet=Windows)  # fmt: skip
def hint_stays_unbounded(rule: Windows, group: LayerGroup) -> None:
    expect(rule.reported_window(group), None)


@cache
def boundaries() -> tuple[tuple[int, int, int, tuple[int, ...]], ...]:
    small = [(n, c, t) for c, t in product((1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 6, 7)) for n in range(2 * c + t)]
    real = [(16_383, 8192, 768), (16_384, 8192, 768), (12_288, 8192, 1024), (9000, 8192, 3000)]
    return tuple((*case, read_at(*case)) for case in small + real)


@CHECKS.clause(boundaries, facet=Needs)
def reads_the_open_chunk(rule: Needs, case: tuple[int, int, int, tuple[int, ...]]) -> None:
    expect(tuple(rule.needed_chunks(*case[:3])), case[3])


@cache
def most_read() -> tuple[tuple[int, int, int, int], ...]:
    """(C, T, most chunks read at a boundary of 0 or -1 modulo T, most chunks read at any boundary), over a whole period."""
    found = []
    for c, t in SMALL:
        period = c * t // gcd(c, t)
        reads = [len(read_at(n, c, t)) for n in range(period + 1)]
        found.append((c, t, max(r for n, r in enumerate(reads) if n % t in (0, t - 1)), max(reads)))
    return tuple(found)


@CHECKS.clause(most_read, facet=Windows)
def covers_its_boundaries(rule: Windows, case: tuple[int, int, int, int]) -> None:
    window = rule.window_in_chunks(*case[:2])
    if window < case[2]:
        raise Violation(window, f"at least {case[2]}")


@CHECKS.clause(most_read, facet=Needs)
def exact_condition(rule: Needs, case: tuple[int, int, int, int]) -> None:
    c, t, _, most = case
    expect((rule.covers_every_boundary(c, t), rule.worst_need(c, t)), (most <= len(range(0, c, t)), most))


@cache
def off_grid() -> tuple[tuple[LayerGroup, int, int], ...]:
    groups = [
        chunked(4, 6),
        chunked(8192, 768),
        chunked(10, 4),
        chunked(11, 4),
        sliding(4, 4),
        sliding(5, 3),
        sliding(3, 4, 2),
    ]
    places = [(g, n) for g in groups if g.offload_chunk < 100 for n in range(1, 40)] + [
        (groups[1], 16_383),
        (groups[1], 16_384),
    ]
    return tuple((g, n, len({t // g.offload_chunk for t in tokens_read(g, n)})) for g, n in places)


@CHECKS.clause(off_grid, facet=Demand)
def asks_for_what_is_read(rule: Demand, case: tuple[LayerGroup, int, int]) -> None:
    group, boundary, read = case
    asked = rule.demanded_chunks(boundary, group)
    if asked is not None and asked < read:
        raise Violation(asked, f"at least {read}")


@cache
def on_grid() -> tuple[tuple[LayerGroup, int, int], ...]:
    sizes = ((4, 6), (8192, 768), (10, 4), (8192, 1024))
    return tuple(
        (chunked(c, t), k * t - back, len(range(0, c, t))) for c, t in sizes for k in (1, 5, 22) for back in (0, 1)
    )


@CHECKS.clause(on_grid, facet=Demand)
def asks_for_no_more(rule: Demand, case: tuple[LayerGroup, int, int]) -> None:
    asked = rule.demanded_chunks(case[1], case[0])
    if asked is None or asked > case[2]:
        raise Violation(asked, f"at most {case[2]}")
