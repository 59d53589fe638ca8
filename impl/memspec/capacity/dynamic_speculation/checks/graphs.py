"""Captured shapes: which are planned, which are found, which are missing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from memspec.capacity.dynamic_speculation.checks import oracle
from memspec.capacity.dynamic_speculation.checks.facets import CHECKS, Graphs
from memspec.capacity.dynamic_speculation.data import Graph
from memspec.conformance import Violation, expect

Table = tuple[int, ...]
TABLES: tuple[Table, ...] = tuple(
    oracle.table_of(schedule, min(max_batch, 40), k_max) for schedule, max_batch, k_max in oracle.SCHEDULES
)
MIXED = (Graph(1, 17), Graph(2, 17), Graph(4, 17), Graph(8, 3), Graph(24, 3), Graph(40, 3), Graph(90, 1))


LARGE = ((oracle.table_of(oracle.WIDE_THEN_NARROW, 256, 16), 512), (oracle.table_of(((1, 530, 0),), 530, 1), None))


@CHECKS.clause(lambda: [*product(TABLES, (None, 20)), *LARGE], Graphs)
def every_shape_planned(graphs: Graphs, case: tuple[Table, int | None]) -> None:
    table, ceiling = case
    full = {(graph.batch, graph.query) for graph in graphs.planned(table)}
    below = full if ceiling is None else {(g.batch, g.query) for g in graphs.planned(table, (), ceiling)}
    above = [(n, query) for n, query in below if ceiling is not None and n * query > ceiling]
    missing = []
    for n in range(1, len(table)):
        query = table[n] + 1
        held = oracle.smallest(full, n, query)
        if held is None or (ceiling and held * query <= ceiling and oracle.smallest(below, n, query) is None):
            missing.append((n, query))
    expect((missing, above), ([], []))


@CHECKS.clause(lambda: product((MIXED,), (1, 3, 4, 7, 25, 41, 90, 91), (1, 2, 3, 17)), Graphs)
def graph_fits(graphs: Graphs, case: tuple[tuple[Graph, ...], int, int]) -> None:
    captured, batch, query = case
    found = graphs.dispatch(captured, batch, query)
    if found is not None and (tuple(found) not in captured or found.query != query or found.batch < batch):
        raise Violation(found, f"a captured graph of {batch} requests or more of {query} tokens, or none")


@CHECKS.clause(lambda: product((MIXED,), range(1, 41, 3), (1, 3, 17)), Graphs)
def own_length_searched(graphs: Graphs, case: tuple[tuple[Graph, ...], int, int]) -> None:
    captured, batch, query = case
    found = graphs.dispatch(captured, batch, query)
    expect(None if found is None else found.batch, oracle.smallest({*captured}, batch, query))


def bounded() -> Iterator[tuple[Table, int]]:
    for table in TABLES:
        for ceiling in (20, 512):
            yield table, ceiling


@CHECKS.clause(bounded, Graphs)
def uncovered_reported(graphs: Graphs, case: tuple[Table, int]) -> None:
    table, ceiling = case
    planned = graphs.planned(table, (), ceiling)
    shapes = {(graph.batch, graph.query) for graph in planned}
    due = [(n, table[n] + 1) for n in range(1, len(table)) if oracle.smallest(shapes, n, table[n] + 1) is None]
    expect([tuple(shape) for shape in graphs.uncovered(table, planned)], due)


@CHECKS.clause(lambda: [(table, sizes) for table in TABLES for sizes in ((), (4, 42, 100, 300, 700))], Graphs)
def no_unreachable_graphs(graphs: Graphs, case: tuple[Table, tuple[int, ...]]) -> None:
    table, sizes = case
    widest = {k + 1: n for n, k in enumerate(table) if n}
    shapes = {(graph.batch, graph.query) for graph in graphs.planned(table, sizes)}
    useless = [(n, query) for n, query in sorted(shapes) if query not in widest
               or any(m < n and other == query and m >= widest[query] for m, other in shapes)]  # fmt: skip
    expect(useless, [])


@CHECKS.clause(
    lambda: [((0, *[3] * 16), (42,), [(11, 4)]), ((0, *[2] * 20), (40,), [(14, 3)]), ((0, *[0] * 64), (42,), [(42, 1)]),
             ((0, *[3] * 16), (42, 6), [(2, 4), (11, 4)]), ((0, 2, 2, 0, 0, 0, 0), (4,), [(2, 3), (4, 1)])],
    Graphs,
)  # fmt: skip
def sizes_rounded_up(graphs: Graphs, case: tuple[Table, tuple[int, ...], list[tuple[int, int]]]) -> None:
    table, sizes, due = case
    expect(sorted(tuple(graph) for graph in graphs.planned(table, sizes)), due)
