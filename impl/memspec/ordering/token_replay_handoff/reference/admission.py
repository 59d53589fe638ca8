"""Whether a handoff is worth starting, what it may cost, and what the decode side is asked to replay.

Times in milliseconds, rates in tokens per second, sizes in bytes. Whole tokens are counted in exact rational
arithmetic: a float stands for the shortest decimal that prints it (0.1 is one tenth), because the same formula in
doubles sometimes counts one token too many where the exact quotient is whole.

Source: sgl-project/sglang issue #32143 (rates, budget, page freeze) and PR #32177 (the estimate, the caps, the replay
plan).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Number = int | float | Fraction
TOKEN_BYTES = 4  # one int32 of the log
Reason = Literal["admitted", "ordinary-length", "replay-not-faster", "over-budget"]
Placement = Literal["aligned", "copy-on-write", "delay", "refuse"]


class AdmissionError(ValueError):
    """A quantity has no meaning; names the value and the limit."""


@dataclass(frozen=True)
class CatchUp:
    """Prediction for one request, if the prefill side never paused."""

    feasible: bool
    backlog_tokens: int  # log length when the replay can start
    bridge_tokens: int  # log length when the replay has caught up; the backlog where it never does
    catch_up_ms: float  # start-up and replay, without the copy; infinite where it never catches up


@dataclass(frozen=True)
class Admission:
    admitted: bool
    reason: Reason
    predicted: CatchUp


@dataclass(frozen=True)
class PageTail:
    """Where the first bridge token lands: page index within the request, and the prompt rows that already lie in it."""

    page: int
    rows: int  # rows to copy before the first bridge write; 0 where the prompt ends at a page boundary


@dataclass(frozen=True)
class ReplayPlan:
    """One extend over the transferred prompt: feed ``inputs``, sample once, compare the sample with ``expected``."""

    inputs: tuple[int, ...]
    expected: int


def exact(name: str, value: Number, least: int, may_equal: bool) -> Fraction:
    """``value`` as the fraction that its shortest decimal spells. Refused unless finite and at or above ``least``."""
    if not math.isfinite(value) or value < least or (value == least and not may_equal):
        bound = f"{'at least' if may_equal else 'above'} {least}"
        raise AdmissionError(f"{name} is {value}; it must be finite and {bound}")
    return Fraction(str(value))


def estimate_catch_up(
    remaining_copy_ms: Number, prefill_tpot_ms: Number, replay_tokens_per_s: Number, replay_startup_ms: Number = 0.0
) -> CatchUp:
    """Predict backlog, bridge tokens and catch-up time of one request.

    The prefill side makes one token in ``prefill_tpot_ms``; a token that has been started counts. The backlog is what
    it starts while ``remaining_copy_ms`` and ``replay_startup_ms`` go by. The replay gains on it by the difference of
    the rates, and never catches up unless it is strictly faster. Dividing the rounded backlog is slightly more cautious
    than the RFC's ideal.

    Raises AdmissionError for a negative time, or for a time per token or rate that is not positive.
    """
    copying = exact("remaining_copy_ms", remaining_copy_ms, 0, True)
    per_token = exact("prefill_tpot_ms", prefill_tpot_ms, 0, False)
    replay_rate = exact("replay_tokens_per_s", replay_tokens_per_s, 0, False)
    startup = exact("replay_startup_ms", replay_startup_ms, 0, True)
    waiting = copying + startup
    backlog = math.ceil(waiting / per_token)
    gain = replay_rate - 1000 / per_token  # tokens per second
    if gain <= 0:
        return CatchUp(False, backlog, backlog, math.inf)
    replaying = 1000 * backlog / gain
    return CatchUp(True, backlog, math.ceil((waiting + replaying) / per_token), float(startup + replaying))


def backlog_by_round(
    backlog: int, prefill_tpot_ms: Number, replay_tokens_per_s: Number, round_startup_ms: Number, rounds: int
) -> tuple[int, ...]:
    """Log tokens that wait at the start of each replay round while the prefill side is never sealed.

    Every round costs ``round_startup_ms`` however short it is, and the prefill side finishes tokens meanwhile. With a
    start-up of at least one ``prefill_tpot_ms`` no round ends with an empty backlog, whatever the rates: this is why a
    faster replay is not enough and the log must be sealed. Stops early at an empty backlog. ``rounds`` entries at most.
    """
    per_token = exact("prefill_tpot_ms", prefill_tpot_ms, 0, False)
    replay_rate = exact("replay_tokens_per_s", replay_tokens_per_s, 0, False)
    startup = exact("round_startup_ms", round_startup_ms, 0, True)
    waiting, produced, now = [backlog], backlog, Fraction(backlog) * per_token
    while waiting[-1] and len(waiting) < rounds:
        now += startup + 1000 * waiting[-1] / replay_rate
        done = produced
        produced = math.floor(now / per_token)
        waiting.append(produced - done)
    return tuple(waiting)


def bridge_budget(max_new_tokens: int, configured_max: int, configured_min: int) -> tuple[int, int]:
    """Least and most bridge tokens of one request, as ``(min, max)``.

    The decode side must have a token left to produce, so the most is ``max_new_tokens - 1``, capped by the
    configuration. ``(0, 0)`` means the ordinary path. Raises AdmissionError unless ``1 <= configured_min <=
    configured_max``.
    """
    if configured_min < 1:
        raise AdmissionError(f"configured_min is {configured_min} tokens; it must be at least 1")
    if configured_max < configured_min:
        raise AdmissionError(f"configured_max is {configured_max} tokens; it must be at least {configured_min}")
    most = min(max(max_new_tokens - 1, 0), configured_max)
    return min(most, configured_min), most


def admit(
    remaining_copy_ms: Number,
    prefill_tpot_ms: Number,
    replay_tokens_per_s: Number,
    *,
    budget_tokens: int,
    replay_startup_ms: Number = 0.0,
    queue_delay_ms: Number = 0.0,
) -> Admission:
    """Compare the predicted bridge with the budget, the decode side's queue delay included.

    ``budget_tokens`` is the most that :func:`bridge_budget` allows. Not admitted means the ordinary path, which needs
    no handoff.
    """
    queue = exact("queue_delay_ms", queue_delay_ms, 0, True)
    startup = exact("replay_startup_ms", replay_startup_ms, 0, True) + queue
    predicted = estimate_catch_up(remaining_copy_ms, prefill_tpot_ms, replay_tokens_per_s, startup)
    if budget_tokens < 1:
        return Admission(False, "ordinary-length", predicted)
    if not predicted.feasible:
        return Admission(False, "replay-not-faster", predicted)
    if predicted.bridge_tokens > budget_tokens:
        return Admission(False, "over-budget", predicted)
    return Admission(True, "admitted", predicted)


def page_tail(prompt_tokens: int, page_size: int) -> PageTail:
    """The page into which the first bridge token is written, and how many prompt rows it shares. Both counts >= 1."""
    if prompt_tokens < 1:
        raise AdmissionError(f"prompt_tokens is {prompt_tokens}; it must be at least 1")
    if page_size < 1:
        raise AdmissionError(f"page_size is {page_size} tokens; it must be at least 1")
    return PageTail(prompt_tokens // page_size, prompt_tokens % page_size)


def place_bridge(
    prompt_tokens: int, page_size: int, free_pages: int, *, copy_on_write: bool = True, delay: bool = True
) -> Placement:
    """What happens to the last prompt page before the first bridge write.

    ``copy-on-write``: the shared rows go to a private page, where one is free. ``delay``: no bridge token is written
    until the transfer has ended. ``refuse``: the ordinary path. Both sides agree on which of the first two are enabled.
    """
    if page_tail(prompt_tokens, page_size).rows == 0:
        return "aligned"
    if copy_on_write and free_pages >= 1:
        return "copy-on-write"
    return "delay" if delay else "refuse"


def batched_replay_plan(log: Sequence[int]) -> ReplayPlan:
    """Replay a sealed log in one extend: all tokens but the last are inputs, the last is what must be sampled next.

    The last token's KV row is written by the next ordinary step. One token needs no replay, so fewer than two are
    refused.
    """
    if len(log) < 2:
        raise AdmissionError(f"the log has {len(log)} tokens; a batched replay needs at least 2")
    return ReplayPlan(tuple(log[:-1]), log[-1])


def log_bytes(tokens: int) -> int:
    """What the log of ``tokens`` bridge tokens weighs on the wire."""
    return TOKEN_BYTES * tokens


def kv_tail_bytes(tokens: int, layers: int, kv_heads: int, head_dim: int, dtype_bytes: int) -> int:
    """What the KV rows of the same tokens weigh: ``2 * layers * kv_heads * head_dim`` elements a token (keys,
    values)."""
    return 2 * layers * kv_heads * head_dim * dtype_bytes * tokens
