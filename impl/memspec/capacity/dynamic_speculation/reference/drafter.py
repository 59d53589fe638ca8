"""The drafter's own KV: it has a row for every committed token before it proposes again, whatever K was meanwhile.

Source: vllm-project/vllm PR #32374 (synced every step), PR #53426, open (opt-in skip); vllm-project/vllm-metal #716 and #734 (both).
"""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.dynamic_speculation.data import DraftStep, Policy


def rows_to_write(current: int, committed: int, k: int, policy: Policy) -> tuple[int, int]:
    """Positions ``[first, end)`` whose KV the drafter computes after a step: none only when it may owe them."""
    if k == 0 and policy == "catch-up":
        return current, current
    return current, committed


def draft_forwards(k: int, policy: Policy) -> int:
    """Forward passes of the drafter after a step: the first one writes what is owed and proposes the first draft."""
    return k if k > 0 or policy == "catch-up" else 1


def proposals(k: int) -> int:
    """Drafts that are sampled after a step that publishes ``k``: a pass that only syncs samples none."""
    return k


def debt(committed: int, current: int) -> int:
    """Committed tokens that have no row in the drafter's KV."""
    return committed - current


def follow(steps: Sequence[tuple[int, int]], policy: Policy) -> tuple[DraftStep, ...]:
    """The drafter over steps of ``(K published, tokens committed)``."""
    committed = current = 0
    rows = []
    for k, tokens in steps:
        committed += tokens
        first, end = rows_to_write(current, committed, k, policy)
        current = end
        rows.append(DraftStep(first, end, draft_forwards(k, policy), proposals(k), debt(committed, current)))
    return tuple(rows)
