"""When a K acts: it is published with a step's output, drafts are proposed at the end of that step, and verified in the next.

Source: vllm-project/vllm PR #32374; on Model Runner V2 from 0.32.0 (PRs #51575, #57053).
"""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.dynamic_speculation.data import Form, Resolved, Scheduled, Settings
from memspec.capacity.dynamic_speculation.reference.settings import resolve
from memspec.capacity.dynamic_speculation.reference.table import held, k_for, scheduled_count

FILLER = -1  # what fills up a wide row; never a token


def k_trace(settings: Settings, steps: Sequence[Sequence[Scheduled]]) -> tuple[int, ...]:
    """K that each step publishes. Raises ScheduleRefused and CountRefused."""
    resolved: Resolved = resolve(settings)
    if resolved.table is None:
        return (settings.k_max,) * len(steps)
    counts = [scheduled_count(requests, settings.counting) for requests in steps]
    return held([k_for(resolved.table, count, settings.k_max) for count in counts], settings.hold)


def verified_trace(settings: Settings, steps: Sequence[Sequence[Scheduled]]) -> tuple[int, ...]:
    """Drafts of a decoding request that each step verifies: what the step before it published. The first verifies none."""
    return (0, *k_trace(settings, steps)[:-1]) if steps else ()


def handed_over(drafts: Sequence[int], k_max: int, form: Form) -> tuple[int, ...]:
    """The row in which drafts travel: as it is, or filled up to ``k_max``."""
    return tuple(drafts) if form == "narrow" else (*drafts, *[FILLER] * (k_max - len(drafts)))


def received(proposals: Sequence[Sequence[int]], k_max: int, form: Form) -> tuple[tuple[int, ...], ...]:
    """The drafts that the verifier takes in each step, one proposal of any width from 0 to ``k_max`` a step."""
    rows = [handed_over(drafts, k_max, form) for drafts in proposals]
    return tuple(tuple(token for token in row if token != FILLER) for row in rows)


def padded_tokens(
    new_tokens: int,
    k_max: int,
    dynamic: bool,
    running: bool,
    computed: int,
    prefill: bool,
    room: int,
    budget: int,
) -> int | None:
    """Tokens to schedule for a waiting request that needs ``new_tokens``; None to leave it for a later step.

    A request that needs one token is padded to ``1 + k_max`` so that the step keeps its uniform shape: only with a static K,
    only next to running requests or on top of computed tokens, not when a running prompt's chunk is in the step
    (``prefill``; a prompt admitted in this step does not count), and only when that many tokens and one more fit below the
    model's length (``room``). Where the padded request exceeds the ``budget``, it waits.

    Source: vLLM 0.33.0.
    """
    wide = 1 + k_max
    if dynamic or k_max == 0 or new_tokens != 1 or prefill or not (running or computed) or wide + 1 > room:
        return min(new_tokens, budget)
    return wide if wide <= budget else None
