"""What vLLM 0.33.0 plans and finds, to compare with: sizes in tokens that every query length shares.

The planner scales a ladder of request counts by each tier's query length. Each size is then rounded up to a multiple of every length
and captured for it. A batch looks at the next larger captured size only, and at no other if that one has another length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from memspec.capacity.dynamic_speculation.data import Graph, Table
from memspec.capacity.dynamic_speculation.reference.graphs import request_counts, tiers, whole_requests

LADDER_END = 512  # tokens; the ladder for steps with prompts goes no further

Grid = Literal["widest-only", "each-tier"]


class FallOut(NamedTuple):
    """Of the batches that a table has: those that ``dispatched`` no full graph, and those that have none (``uncovered``)."""

    dispatched: int
    uncovered: int
    widest_covered: dict[int, int]  # by query length


def shared_sizes(table: Table, grid: Grid, ceiling: int | None = None, mixed: bool = False) -> tuple[int, ...]:
    """Sizes in tokens: the ladder times the widest length alone (before PR #50488), or times each tier's.

    ``mixed`` adds the ladder of tokens that steps with prompts use, as the default plan has it; ``ceiling`` is 512 there, and
    1,024 on data-centre Blackwell.
    """
    found = tiers(table)
    scaled = [(max(found)[0], len(table) - 1)] if grid == "widest-only" else found
    sizes = {count * query for query, widest in scaled for count in request_counts(widest)}
    if mixed:
        sizes |= set(request_counts(min(LADDER_END, 2 * (len(table) - 1) * max(found)[0])))
    return tuple(sorted(size for size in sizes if ceiling is None or size <= ceiling))


def captured(table: Table, sizes: Sequence[int]) -> tuple[Graph, ...]:
    """Every size at every query length, rounded up, as long as it exceeds neither the largest size nor the batch."""
    graphs = {Graph(whole_requests(size, query), query) for size in sizes for query, _ in tiers(table)}
    return tuple(sorted(g for g in graphs if g.tokens <= max(sizes) and g.batch < len(table)))


def next_size(graphs: Sequence[Graph], batch: int, query: int) -> Graph | None:
    """The graph of this length at the next larger captured size, if that size was captured for this length."""
    size = min((graph.tokens for graph in graphs if graph.tokens >= batch * query), default=0)
    return next((graph for graph in graphs if graph.tokens == size and graph.query == query), None)


def fall_out(table: Table, grid: Grid, ceiling: int | None = None, mixed: bool = False) -> FallOut:
    """How many batches of the table run without a full graph, by what is dispatched and by what is captured."""
    graphs = captured(table, shared_sizes(table, grid, ceiling, mixed))
    shapes = [(batch, table[batch] + 1) for batch in range(1, len(table))]
    widest = {query: max((g.batch for g in graphs if g.query == query), default=0) for query, _ in tiers(table)}
    return FallOut(
        sum(next_size(graphs, batch, query) is None for batch, query in shapes),
        sum(batch > widest[query] for batch, query in shapes),
        widest,
    )
