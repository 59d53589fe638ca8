"""The wrong halves of the broken twins: each function stands in for the one of the reference that it gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

# fmt: off
from memspec.capacity.dynamic_speculation.data import (
    Form,
    Graph,
    Policy,
    Resolved,
    Role,
    Scheduled,
    Settings,
    SpeculationRefused,
    Table,
)
from memspec.capacity.dynamic_speculation.reference import (
    blocks,
    graphs,
    released,
    settings,
    table,
    timing,
)

# fmt: on

Steps = Sequence[Sequence[Scheduled]]


def filled_gaps(value: Callable[[int], int]) -> Callable[[Any, int, int], Table]:
    """Batches that no range names get ``value(k_max)`` instead of the K before them."""

    def dense(schedule: Any, max_batch: int, k_max: int) -> Table:
        made = list(table.dense_table(schedule, max_batch, k_max))
        for batch in range(1, max_batch + 1):
            if not any(int(first) <= batch <= int(last) for first, last, _ in schedule):
                made[batch] = value(k_max)
        return tuple(made)

    return dense


def believed(given: Any) -> table.Entry:
    first, last, k = given
    return int(first), int(last), int(k)


def sorted_only(schedule: Any) -> tuple[table.Entry, ...]:
    return tuple(sorted(table.entry_of(given) for given in schedule))


def bare_index(table_: Table, scheduled: int, k_max: int) -> int:
    return k_max if scheduled == 0 else table_[scheduled]


def indexed_by_nothing(table_: Table, scheduled: int, k_max: int) -> int:
    return table_[scheduled]


def sampling_requests(requests: Iterable[Scheduled], counting: str = "scheduled") -> int:
    return table.scheduled_count(requests, "sampling")


def always_held(ks: Sequence[int], hold: int) -> tuple[int, ...]:
    return table.held(ks, max(hold, 2))


def ignored_k(settings_: Settings, steps: Steps) -> tuple[int, ...]:
    return (0, *[settings_.k_max] * (len(steps) - 1))


def at_once(settings_: Settings, steps: Steps) -> tuple[int, ...]:
    return timing.k_trace(settings_, steps)


def two_steps_late(settings_: Settings, steps: Steps) -> tuple[int, ...]:
    return (0, 0, *timing.k_trace(settings_, steps)[:-2])


def sticky(settings_: Settings, steps: Steps) -> tuple[int, ...]:
    ks = timing.k_trace(settings_, steps)
    return (0, *(min(ks[max(0, i - 1) : i + 1]) for i in range(len(ks) - 1)))


def one_width(proposals: Sequence[Sequence[int]], k_max: int, form: Form) -> tuple[tuple[int, ...], ...]:
    for drafts in proposals:
        if len(drafts) != len(proposals[0]):
            raise SpeculationRefused(f"drafts of width {len(drafts)}; the first were {len(proposals[0])} wide")
    return tuple(tuple(drafts) for drafts in proposals)


def filler_verified(proposals: Sequence[Sequence[int]], k_max: int, form: Form) -> tuple[tuple[int, ...], ...]:
    return tuple(timing.handed_over(drafts, k_max, form) for drafts in proposals)


def not_refilled(proposals: Sequence[Sequence[int]], k_max: int, form: Form) -> tuple[tuple[int, ...], ...]:
    buffer, taken = [timing.FILLER] * k_max, []
    for drafts in proposals:
        buffer[: len(drafts)] = drafts
        taken.append(tuple(token for token in buffer if token != timing.FILLER))
    return tuple(taken)


def padded_with_a_table(new: int, k_max: int, dynamic: bool, *rest: Any) -> int | None:
    return timing.padded_tokens(new, k_max, False, *rest)


def padded_beside_chunks(
    new: int, k_max: int, dynamic: bool, running: bool, computed: int, prefill: bool, *rest: Any
) -> int | None:
    return timing.padded_tokens(new, k_max, dynamic, running, computed, False, *rest)


def padded_past_the_end(new: int, k_max: int, dynamic: bool, *rest: Any) -> int | None:
    running, computed, prefill, _, budget = rest
    return timing.padded_tokens(new, k_max, dynamic, running, computed, prefill, 1 << 30, budget)


def never_padded(new: int, k_max: int, *rest: Any) -> int | None:
    return min(new, int(rest[-1]))


def unpadded_at_the_limit(new: int, k_max: int, *rest: Any) -> int | None:
    given = timing.padded_tokens(new, k_max, *rest)
    return min(new, int(rest[-1])) if given is None else given


def skipped(current: int, committed: int, k: int, policy: Policy) -> tuple[int, int]:
    return (committed, committed) if k == 0 else (current, committed)


def rewritten(current: int, committed: int, k: int, policy: Policy) -> tuple[int, int]:
    return 0, committed


def written_at_once(current: int, committed: int, k: int, policy: Policy) -> tuple[int, int]:
    return current, committed


def never_owed(committed: int, current: int) -> int:
    return 0


def at_least_one(k: int) -> int:
    return max(k, 1)


def one_draft_less(k: int) -> int:
    return max(k - 1, 0)


def free_at_zero(k: int, policy: Policy) -> int:
    return k


def sync_apart(k: int, policy: Policy) -> int:
    return k + (policy == "every-step")


def all_agree(chosen: Sequence[int], drafts: Sequence[int]) -> int:
    return len(drafts)


def none_agrees(chosen: Sequence[int], drafts: Sequence[int]) -> int:
    return 0


def k_for_length(table_: Table) -> tuple[tuple[int, int], ...]:
    return tuple((query - 1, widest) for query, widest in graphs.tiers(table_))


def first_batch(table_: Table) -> tuple[tuple[int, int], ...]:
    found: dict[int, int] = {}
    for batch in range(1, len(table_)):
        found.setdefault(table_[batch] + 1, batch)
    return tuple(sorted(found.items()))


def grid_of(grid: released.Grid) -> Callable[..., tuple[Graph, ...]]:
    """What 0.33.0's manager captures from a grid; sizes that a user gives are captured as the reference does."""

    def made(table_: Table, sizes: Sequence[int] = (), ceiling: int | None = None) -> tuple[Graph, ...]:
        if sizes:
            return graphs.planned(table_, sizes, ceiling)
        return released.captured(table_, released.shared_sizes(table_, grid, ceiling))

    return made


def one_length(table_: Table, sizes: Sequence[int] = (), ceiling: int | None = None) -> tuple[Graph, ...]:
    query = max(graphs.tiers(table_))[0]
    return tuple(graph for graph in graphs.planned(table_, sizes, ceiling) if graph.query == query)


def above_the_ceiling(table_: Table, sizes: Sequence[int] = (), ceiling: int | None = None) -> tuple[Graph, ...]:
    return graphs.planned(table_, sizes)


def one_size(table_: Table, sizes: Sequence[int] = (), ceiling: int | None = None) -> tuple[Graph, ...]:
    return graphs.planned(table_, sorted(sizes)[-1:], ceiling)


def any_length(captured: Iterable[Graph], batch: int, query: int) -> Graph | None:
    fits = [graph for graph in captured if graph.tokens >= batch * query]
    return min(fits, key=lambda graph: graph.tokens, default=None)


def largest(captured: Iterable[Graph], batch: int, query: int) -> Graph | None:
    fits = [graph for graph in captured if graph.query == query and graph.batch >= batch]
    return max(fits, default=None)


def nothing_uncovered(table_: Table, captured: Sequence[Graph]) -> tuple[Graph, ...]:
    return ()


def all_uncovered(table_: Table, captured: Sequence[Graph]) -> tuple[Graph, ...]:
    return tuple(Graph(batch, table_[batch] + 1) for batch in range(1, len(table_)))


def rounded_down(size: int, query: int) -> int:
    return max(size // query, 1)


def yes_or_no(length: int, added: int, block: int) -> int:
    return int(blocks.added_blocks(length, min(added, 1), block) > 0)


def floored(computed: int, new: int, ahead: int, block: int) -> int:
    return (computed + new + ahead) // block


def always_k_max(role: Role, k_now: int, k_next: int, k_max: int, extra: int = 0, tight: bool = True) -> int:
    return k_max + extra


def for_chunks_too(role: Role, k_now: int, k_next: int, k_max: int, extra: int = 0, tight: bool = True) -> int:
    return blocks.lookahead("decode", k_now, k_next, k_max, extra, tight)


def this_step_only(role: Role, k_now: int, k_next: int, k_max: int, extra: int = 0, tight: bool = True) -> int:
    return 0 if role == "chunk" else (k_now if tight else k_max) + extra


def drafts_only(role: Role, k_now: int, k_next: int, k_max: int, extra: int = 0, tight: bool = True) -> int:
    return blocks.lookahead(role, k_now, k_next, k_max, 0, tight)


def free_of_charge(reserved: int, block: int) -> int:
    return 0


def a_block_a_step(reserved: int, block: int) -> int:
    return block if reserved else 0


def each_on_its_own(settings_: Settings, counts: Sequence[int]) -> tuple[int, ...]:
    found = settings.resolve(replace(settings_, data_parallel=1)).table or ()
    return tuple(table.k_for(found, count, settings_.k_max) for count in counts)


def dropped_in_silence(settings_: Settings) -> Resolved:
    return settings.resolve(settings_)._replace(dropped="")


def always_dropped(settings_: Settings) -> Resolved:
    return Resolved(None, "full", "speculation is static here")
