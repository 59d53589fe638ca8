"""One handoff as a single state machine: what a coordinator that sees every event would allow.

Seven phases; every event is answered with the next state or a named rejection that leaves the state unchanged. Token
counts are relative to the first output token. The wire and the two sides are in :mod:`prefill` and :mod:`decode`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from memspec.explore import Rejected
from memspec.ordering.token_replay_handoff.reference.log import extended

Phase = Literal[
    "COPYING_PROMPT_KV", "REPLAYING", "DRAINING_FINAL_SUFFIX", "READY_TO_COMMIT", "COMMITTED", "CANCELLED", "FAILED"
]
TERMINAL = ("COMMITTED", "CANCELLED", "FAILED")


@dataclass(frozen=True)
class Handoff:
    epoch: int
    phase: Phase = "COPYING_PROMPT_KV"
    owner: Literal["prefill", "decode"] = "prefill"
    log: tuple[int, ...] = ()
    replayed: int = 0
    sealed: int | None = None
    committed: int = 0
    reason: str = ""


def step(state: Handoff, event: tuple[Any, ...]) -> Handoff | Rejected:
    """Apply ``(name, epoch, ...)``. The epoch is looked at first, even of a handoff that has ended.

    Events: ``append first ids``, ``prompt_kv_ready``, ``seal``, ``ack count``, ``commit count``, ``cancel``,
    ``fail reason``.
    """
    name, epoch, rest = event[0], event[1], event[2:]
    if epoch != state.epoch:
        return Rejected("stale-epoch")
    if state.phase in TERMINAL:
        return Rejected("terminal")
    handlers: dict[str, Callable[..., Handoff | Rejected]] = {
        "append": append,
        "prompt_kv_ready": prompt_kv_ready,
        "seal": seal,
        "ack": acknowledge,
    }
    handlers |= {"commit": commit, "cancel": cancel, "fail": fail}
    return handlers[name](state, *rest)


def append(state: Handoff, first: int, ids: Sequence[int]) -> Handoff | Rejected:
    """The prefill side produced ``ids``. What is stored may come again at any time, even after the seal."""
    log = extended(state.log, first, ids)
    if isinstance(log, Rejected):
        return log
    if log == state.log:
        return state
    if state.sealed is not None:
        return Rejected("sealed")
    return replace(state, log=log, phase=phase_for(replace(state, log=log)))


def prompt_kv_ready(state: Handoff) -> Handoff | Rejected:
    """The prompt KV has landed at the decode side."""
    if state.phase != "COPYING_PROMPT_KV":
        return Rejected("ready-already")
    return replace(state, phase=phase_for(replace(state, phase="REPLAYING")))


def seal(state: Handoff) -> Handoff | Rejected:
    """No token follows any more. Sealing again changes nothing."""
    if state.phase == "COPYING_PROMPT_KV":
        return Rejected("before-ready")
    sealed = replace(state, sealed=len(state.log))
    return replace(sealed, phase=phase_for(sealed))


def acknowledge(state: Handoff, count: int) -> Handoff | Rejected:
    """The decode side can go on behind the first ``count`` log tokens."""
    if state.phase == "COPYING_PROMPT_KV":
        return Rejected("before-ready")
    if count < state.replayed:
        return Rejected("ack-backwards")
    if count > len(state.log):
        return Rejected("ack-ahead")
    return replace(state, replayed=count, phase=phase_for(replace(state, replayed=count)))


def commit(state: Handoff, count: int) -> Handoff | Rejected:
    """Move ownership to the decode side, in one indivisible step."""
    if count != len(state.log):
        return Rejected("behind")
    if count != state.replayed:
        return Rejected("not-replayed")
    if count != state.sealed:
        return Rejected("unsealed")
    return replace(state, phase="COMMITTED", owner="decode", committed=count)


def cancel(state: Handoff) -> Handoff:
    """End the handoff; the request stays with the prefill side."""
    return replace(state, phase="CANCELLED")


def fail(state: Handoff, reason: str) -> Handoff:
    """End the handoff for a reason; the request stays with the prefill side."""
    return replace(state, phase="FAILED", reason=reason)


def phase_for(state: Handoff) -> Phase:
    """The phase of an unfinished handoff, from its counts."""
    if state.phase == "COPYING_PROMPT_KV":
        return "COPYING_PROMPT_KV"
    if state.replayed == len(state.log):
        return "READY_TO_COMMIT"
    return "REPLAYING" if state.sealed is None else "DRAINING_FINAL_SUFFIX"
