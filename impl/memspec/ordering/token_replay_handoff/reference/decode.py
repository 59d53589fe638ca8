"""The decode side: replays the log over the landed prompt KV, accepts the commit, and emits from the boundary on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from memspec.explore import Event, Moved, Rejected
from memspec.ordering.token_replay_handoff.data import Plan
from memspec.ordering.token_replay_handoff.reference.log import extended


@dataclass(frozen=True)
class Decode:
    plan: Plan
    phase: Literal["waiting", "replaying", "committed", "cancelled", "failed"] = "waiting"
    log: tuple[int, ...] = ()
    replayed: int = 0
    sealed: int | None = None
    emitted: int = 0  # client-visible prefix, whoever emitted it; meaningful once committed
    alive: bool = True


def decode_initial(plan: Plan) -> Decode:
    """Bootstrapped, the prompt KV not there yet."""
    return Decode(plan)


def decode_step(state: Decode, event: tuple[Any, ...]) -> Moved | Rejected:
    """Apply one event. Own: ``replay``, ``replay_fails``, ``emit token``, ``crash``.

    Messages, with the epoch after the name: ``prompt_kv_ready``, ``append first ids``, ``seal count``, ``commit count
    owned``, ``cancel``.
    """
    if not state.alive:
        return Rejected("dead")
    own: dict[str, Callable[..., Moved | Rejected]] = {
        "replay": replay_token,
        "replay_fails": replay_fails,
        "emit": emit_token,
        "crash": crash,
    }
    if event[0] in own:
        return own[event[0]](state, *event[1:])
    if event[1] != state.plan.epoch:
        return Rejected("stale-epoch")
    if state.phase in ("committed", "cancelled", "failed"):
        return answer_again(state, event[0])
    told: dict[str, Callable[..., Moved | Rejected]] = {
        "prompt_kv_ready": kv_ready,
        "append": take_append,
        "seal": take_seal,
        "commit": take_commit,
    }
    told["cancel"] = take_cancel
    return told[event[0]](state, *event[2:])


def to_prefill(state: Decode, name: str, *rest: object) -> tuple[str, Event]:
    """A message to the prefill side; every one carries the epoch."""
    return "prefill", (name, state.plan.epoch, *rest)


def answer_again(state: Decode, name: str) -> Moved | Rejected:
    """A handoff that is over says so to whoever asks for its end, however often: the answer may have been lost."""
    if state.phase == "failed" and name != "prompt_kv_ready":
        return Moved(state, (to_prefill(state, "failed"),))
    if state.phase == "cancelled" and name == "cancel":
        return Moved(state, (to_prefill(state, "cancelled"),))
    if state.phase == "committed" and name in ("commit", "cancel"):
        return Moved(state, (to_prefill(state, "committed", state.sealed),))
    return Rejected("terminal")


def kv_ready(state: Decode) -> Moved | Rejected:
    """The prompt KV has landed."""
    if state.phase != "waiting":
        return Rejected("ready-already")
    return Moved(replace(state, phase="replaying"))


def take_append(state: Decode, first: int, ids: Sequence[int]) -> Moved | Rejected:
    """Store a range of the log; what is stored already is acknowledged again."""
    log = extended(state.log, first, ids)
    if isinstance(log, Rejected):
        return log
    if log == state.log:
        return Moved(state, (to_prefill(state, "ack", state.replayed),))
    if state.sealed is not None and len(log) > state.sealed:
        return Rejected("sealed")
    return Moved(replace(state, log=log))


def take_seal(state: Decode, count: int) -> Moved | Rejected:
    """The log ends at ``count``; part of it may still be under way."""
    if state.phase == "waiting":
        return Rejected("before-ready")
    if count < len(state.log) or (state.sealed is not None and count != state.sealed):
        return Rejected("sealed")
    return Moved(replace(state, sealed=count))


def take_commit(state: Decode, count: int, owned: int) -> Moved | Rejected:
    """The commit point: from here on this side owns the stream, of which the client has ``owned`` tokens."""
    if count != len(state.log):
        return Rejected("behind")
    if count != state.replayed:
        return Rejected("not-replayed")
    if count != state.sealed:
        return Rejected("unsealed")
    if not 0 <= owned <= count:
        return Rejected("boundary")
    return Moved(replace(state, phase="committed", emitted=owned), (to_prefill(state, "committed", count),))


def take_cancel(state: Decode) -> Moved:
    """Give up, for good, and confirm it."""
    return Moved(replace(state, phase="cancelled"), (to_prefill(state, "cancelled"),))


def replay_token(state: Decode) -> Moved | Rejected:
    """Replay up to the next log token and acknowledge it; its own KV row is written by the step behind it."""
    if state.phase != "replaying":
        return Rejected("not-replaying")
    if state.replayed == len(state.log):
        return Rejected("nothing")
    return Moved(replace(state, replayed=state.replayed + 1), (to_prefill(state, "ack", state.replayed + 1),))


def replay_fails(state: Decode) -> Moved | Rejected:
    """A replay that cannot be done, or whose result differs: never commit this epoch, and say so."""
    if state.phase != "replaying":
        return Rejected("not-replaying")
    return Moved(replace(state, phase="failed"), (to_prefill(state, "failed"),))


def emit_token(state: Decode, token: int) -> Moved | Rejected:
    """Show the client the next token: what is left of the log, then what is sampled here (``token``)."""
    if state.phase != "committed":
        return Rejected("not-owner")
    last = len(state.log) == state.plan.max_new_tokens or state.plan.end_token in state.log
    if last and state.emitted == len(state.log):
        return Rejected("finished")
    log = state.log if state.emitted < len(state.log) else (*state.log, token)
    shown = ("client", ("token", "decode", state.emitted, log[state.emitted]))
    return Moved(replace(state, log=log, emitted=state.emitted + 1), (shown,))


def crash(state: Decode) -> Moved:
    """The process is gone; the stream notices, and cuts it off."""
    return Moved(replace(state, alive=False), (("client", ("cut off",)),))
