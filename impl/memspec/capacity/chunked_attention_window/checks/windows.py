"""What is asked for, and what is read."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import gcd

from memspec.capacity.chunked_attention_window.checks.facets import (
    CHECKS,
    Bounds,
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


BY_KIND = (
    (chunked(8192, 1024), 8),
    (LayerGroup("full-attention", 1024), None),
    (LayerGroup("mla", 64), None),
    (LayerGroup("mamba", 64), 1),
    (sliding(4096, 1024), 4),
    (sliding(1025, 1024), 2),
    (sliding(1024, 1024, 1), 1),
    (sliding(1024, 1024, 2), 2),
    (sliding(1, 16), 1),
    (LayerGroup("sliding-window-mla", 64, sliding_window=128), 2),
    (LayerGroup("sliding-window-mla", 64, sliding_window=128, extra_retained=2), 3),
)


@CHECKS.clause(lambda: BY_KIND, facet=Windows)
def window_by_kind(rule: Windows, case: tuple[LayerGroup, int | None]) -> None:
    expect(accepted(lambda: rule.reported_window(case[0])), case[1])


HINTED = (
    LayerGroup("full-attention", 1024, 8192),
    LayerGroup("full-attention", 64, None, 128),
    LayerGroup("mla", 64, 64),
    LayerGroup("mla", 64, None, 128),
)


@CHECKS.clause(lambda: HINTED, facet=Windows)
def hint_stays_unbounded(rule: Windows, group: LayerGroup) -> None:
    expect(accepted(lambda: rule.reported_window(group)), None)


# (group, what a refusal names)
NO_RULE: tuple[tuple[LayerGroup, tuple[object, ...]], ...] = (
    *((LayerGroup(kind, 1024, 8192), (repr(kind),)) for kind in ("cross-attention", "encoder-only", "")),
    (chunked(0, 1024), ("attention chunk", 0, 1)),
    (chunked(-8192, 1024), ("attention chunk", -8192, 1)),
)


@CHECKS.clause(lambda: NO_RULE, facet=Windows)
def refused_at_configuration(rule: Windows, case: tuple[LayerGroup, tuple[object, ...]]) -> None:
    refused_by_name(lambda: rule.reported_window(case[0]))


WRONG_SIZES: tuple[tuple[LayerGroup, tuple[object, ...]], ...] = (
    (LayerGroup("chunked-local", 1024), ("attention chunk", None, 1)),
    (chunked(8192, -1024), ("offload chunk", -1024, 1)),
    (LayerGroup("full-attention", 0), ("offload chunk", 0, 1)),
    (sliding(0, 64), ("sliding window", 0, 1)),
    (sliding(-4, 64), ("sliding window", -4, 1)),
    (LayerGroup("sliding-window", 64), ("sliding window", None, 1)),
    (sliding(64, 64, -1), ("extra retained", -1, 0)),
)


@CHECKS.clause(lambda: (*NO_RULE, *WRONG_SIZES), facet=Windows)
def refused_by_kind_and_size(rule: Windows, case: tuple[LayerGroup, tuple[object, ...]]) -> None:
    refused_by_name(lambda: rule.reported_window(case[0]), *case[1])


@cache
def boundaries() -> tuple[tuple[int, int, int, tuple[int, ...]], ...]:
    small = [(n, c, t) for c, t in product((1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 6, 7)) for n in range(2 * c + t)]
    real = [(16_383, 8192, 768), (16_384, 8192, 768), (12_288, 8192, 1024), (9000, 8192, 3000)]
    return tuple((*case, read_at(*case)) for case in small + real)


@CHECKS.clause(boundaries, facet=Needs)
def reads_the_open_chunk(rule: Needs, case: tuple[int, int, int, tuple[int, ...]]) -> None:
    expect(tuple(sorted(rule.needed_chunks(*case[:3]))), case[3])


@cache
def most_read() -> tuple[tuple[int, int, int], ...]:
    """(C, T, most chunks read at any boundary), over a whole period."""
    periods = ((c, t, c * t // gcd(c, t)) for c, t in SMALL)
    return tuple((c, t, max(len(read_at(n, c, t)) for n in range(period + 1))) for c, t, period in periods)


@CHECKS.clause(most_read, facet=Bounds)
def exact_condition(rule: Bounds, case: tuple[int, int, int]) -> None:
    c, t, most = case
    expect((rule.covers_every_boundary(c, t), rule.worst_need(c, t)), (most <= len(range(0, c, t)), most))


@cache
def demands() -> tuple[tuple[LayerGroup, int, int], ...]:
    """(group, boundary, chunks that are read there), on the grid, one token before it, and elsewhere."""
    sizes = ((4, 6), (6, 4), (10, 4), (11, 4), (3, 8), (8, 8))
    groups = [*(chunked(*s) for s in sizes), sliding(4, 4), sliding(5, 3), sliding(3, 4, 2)]
    places = [(g, n) for g in groups for n in range(1, 40)]
    places += [(chunked(8192, t), n) for t in (768, 1024) for n in (16_128, 16_383, 16_384, 16_895, 16_896)]
    return tuple((g, n, len({t // g.offload_chunk for t in tokens_read(g, n)})) for g, n in places)


@CHECKS.clause(demands, facet=Demand)
def asks_for_what_is_read(rule: Demand, case: tuple[LayerGroup, int, int]) -> None:
    group, boundary, read = case
    asked = rule.demanded_chunks(boundary, group)
    if asked is not None and asked < read:
        raise Violation(asked, f"at least {read}")


@CHECKS.clause(lambda: [case for case in demands() if case[0].kind == "chunked-local"], facet=Demand)
def asks_for_no_more(rule: Demand, case: tuple[LayerGroup, int, int]) -> None:
    group, boundary, read = case
    most = max(read, len(range(0, group.attention_chunk or 0, group.offload_chunk)))
    asked = rule.demanded_chunks(boundary, group)
    if asked is None or asked > most:
        raise Violation(asked, f"at most {most}")
