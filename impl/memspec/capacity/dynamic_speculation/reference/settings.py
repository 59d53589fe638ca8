"""What becomes of the settings: where a schedule cannot be honoured it is dropped, and the answer says why."""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.dynamic_speculation.data import Resolved, ScheduleRefused, Settings
from memspec.capacity.dynamic_speculation.reference.table import dense_table, k_for

V1_METHODS = ("ngram", "eagle", "eagle3", "mtp", "draft_model", "dflash")


def resolve(settings: Settings) -> Resolved:
    """The table in force, the kind of graphs, and why a schedule was dropped ("" when it was not).

    Data-parallel ranks that could choose different K fall back to a static one, as does a method that Model Runner V1 cannot
    vary. V1 with a table runs in pieces. Raises ScheduleRefused, for a schedule that will be dropped too.

    Source: vLLM 0.26.0 (data parallelism), 0.33.0 (methods, graphs).
    """
    if settings.hold < 1:
        raise ScheduleRefused(f"hold is {settings.hold} steps; it must be at least 1")
    if settings.schedule is None:
        return Resolved(None, "full", "")
    table = dense_table(settings.schedule, settings.max_batch, settings.k_max)
    if may_disagree(settings):
        return Resolved(None, "full", f"{settings.data_parallel} data-parallel ranks could choose different K")
    if settings.runner == "V1" and settings.method not in V1_METHODS:
        return Resolved(None, "full", f"method {settings.method} proposes a fixed number of drafts on Model Runner V1")
    return Resolved(table, "pieces" if settings.runner == "V1" else "full", "")


def may_disagree(settings: Settings) -> bool:
    return settings.data_parallel > 1 and not settings.shared_count


def rank_ks(settings: Settings, counts: Sequence[int]) -> tuple[int, ...]:
    """K of each data-parallel rank in one step, from the number of requests that each has scheduled.

    Ranks that share a count look up the largest one. Raises ScheduleRefused and CountRefused.
    """
    table = resolve(settings).table
    if table is None:
        return (settings.k_max,) * len(counts)
    seen = [max(counts, default=0)] * len(counts) if settings.shared_count else list(counts)
    return tuple(k_for(table, count, settings.k_max) for count in seen)
