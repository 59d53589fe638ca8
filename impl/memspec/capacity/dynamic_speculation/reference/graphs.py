"""Which shapes are captured, and which of them a batch runs in.

A decode batch of ``n`` requests has ``n * (K(n) + 1)`` tokens, and all its requests the same query length. A table therefore has one
*tier* for each of its query lengths. Source: vllm-project/vllm PRs #45953 and #50488 (tiers). Deliberate differences: a batch
looks among the graphs of its own length, and no graph is captured that no batch of its tier can reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memspec.capacity.dynamic_speculation.data import Graph, GraphRefused, Table

Tier = tuple[int, int]  # query length, widest batch that runs at it


def tiers(table: Table) -> tuple[Tier, ...]:
    """Query length and widest batch of each K in ``table``, in ascending length."""
    widest: dict[int, int] = {}
    for batch in range(1, len(table)):
        widest[table[batch] + 1] = batch
    return tuple(sorted(widest.items()))


def request_counts(most: int) -> tuple[int, ...]:
    """Batches to capture up to ``most``: 1, 2, 4, multiples of 8 to 256, of 16 above, and ``most`` itself."""
    ladder = [1, 2, 4, *range(8, 256, 8), *range(256, most + 1, 16)]
    return tuple(sorted({count for count in ladder if count <= most} | {most}))


def planned(table: Table, sizes: Sequence[int] = (), ceiling: int | None = None) -> tuple[Graph, ...]:
    """The graphs to capture: one ladder for each tier, or with ``sizes`` (tokens, as a user gives them) what these make.

    A size is rounded up to whole requests of each length. No graph exceeds ``ceiling`` tokens, and none is wider than the
    first one that holds its tier's widest batch. Raises GraphRefused.
    """
    if any(size < 1 for size in sizes):
        raise GraphRefused(f"a capture size of {min(sizes)} tokens; at least 1")
    graphs: set[Graph] = set()
    for query, widest in tiers(table):
        batches = ladder_of(query, widest, sizes)
        graphs |= {Graph(n, query) for n in batches if ceiling is None or n * query <= ceiling}
    return tuple(sorted(graphs))


def ladder_of(query: int, widest: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Batches to capture at one query length."""
    batches = sorted({whole_requests(size, query) for size in sizes}) if sizes else list(request_counts(widest))
    return tuple(n for i, n in enumerate(batches) if i == 0 or batches[i - 1] < widest)


def whole_requests(size: int, query: int) -> int:
    """Requests of ``query`` tokens that a capture size stands for, rounded up."""
    return -(-size // query)


def dispatch(graphs: Iterable[Graph], batch: int, query: int) -> Graph | None:
    """The smallest captured graph of this very query length that holds the batch; None where there is none.

    Raises GraphRefused.
    """
    if batch < 1 or query < 1:
        raise GraphRefused(f"a batch of {batch} requests of {query} tokens; at least 1 of 1")
    return min((graph for graph in graphs if graph.query == query and graph.batch >= batch), default=None)


def coverage(table: Table, graphs: Sequence[Graph]) -> tuple[Graph | None, ...]:
    """The graph of each batch from 1 on, at the length that the table gives it."""
    return tuple(dispatch(graphs, batch, table[batch] + 1) for batch in range(1, len(table)))


def uncovered(table: Table, graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The shapes that the table can bring about and no graph runs: to be reported when graphs are planned."""
    found = coverage(table, graphs)
    return tuple(Graph(n, table[n] + 1) for n, graph in enumerate(found, 1) if graph is None)


def padding(graph: Graph | None, batch: int, query: int) -> int:
    """Tokens that a replay computes for nobody."""
    return 0 if graph is None else graph.tokens - batch * query
