"""The prefill side: decodes during the copy, emits until the seal, hands over, and keeps its KV until it knows.

``handoff`` says how far the handoff is:
bridging -> sealed -> committing -> handed, or cancelling -> ended. Ended ends the handoff, not the request: the
request goes on here from the same log. Effects go to ``decode`` (over the network), to ``client`` (the stream) and to
``pages`` (this side's KV memory).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from memspec.explore import Event, Moved, Rejected
from memspec.ordering.token_replay_handoff.data import Plan

Stage = Literal["bridging", "sealed", "committing", "cancelling", "ended", "handed"]


@dataclass(frozen=True)
class Prefill:
    plan: Plan
    handoff: Stage = "bridging"
    transfer: Literal["copying", "done", "failed"] = "copying"
    log: tuple[int, ...] = ()
    emitted: int = 0  # tokens of the log that the client has from this side
    replayed: int = 0  # last acknowledgement
    sealed: int | None = None
    owned: int = 0  # client-visible prefix at the seal
    finished: bool = False  # the last token of the request is in the log
    freed: bool = False


def prefill_initial(plan: Plan) -> Prefill:
    """The state right after the prompt's forward pass; its copy to the decode side is under way."""
    return Prefill(plan)


def prefill_step(state: Prefill, event: tuple[Any, ...]) -> Moved | Rejected:
    """Apply one event. Own: ``decode token``, ``emit``, ``seal``, ``commit``, ``cancel``, ``resend``.

    Messages, with the epoch after the name: ``transfer_done``, ``transfer_failed``, ``ack count``, ``committed count``,
    ``cancelled``, ``failed``, ``fenced visible``.
    """
    own: dict[str, Callable[..., Moved | Rejected]] = {
        "decode": decode_token,
        "emit": emit,
        "seal": seal_log,
        "commit": send_commit,
        "cancel": send_cancel,
    }
    own["resend"] = resend
    if event[0] in own:
        return own[event[0]](state, *event[1:])
    if event[1] != state.plan.epoch:
        return Rejected("stale-epoch")
    told: dict[str, Callable[..., Moved | Rejected]] = {
        "transfer_done": transfer_done,
        "transfer_failed": transfer_failed,
        "ack": take_ack,
        "fenced": take_fence,
    }
    told |= {"committed": take_committed, "cancelled": take_end, "failed": take_end}
    return told[event[0]](state, *event[2:])


def to_decode(state: Prefill, name: str, *rest: object) -> tuple[str, Event]:
    """A message to the decode side; every one carries the epoch."""
    return "decode", (name, state.plan.epoch, *rest)


def silent(state: Prefill) -> bool:
    """From the seal on this side neither decodes nor emits, until the handoff has ended without a commit."""
    return state.sealed is not None and state.handoff != "ended"


def decode_token(state: Prefill, token: int) -> Moved | Rejected:
    """Produce one token: write its KV row, put it into the log, and tell the decode side while bridging."""
    if silent(state):
        return Rejected("sealed")
    if state.finished:
        return Rejected("finished")
    if state.handoff == "bridging" and len(state.log) >= state.plan.bridge_max:
        return Rejected("budget")
    if state.transfer == "copying" and state.plan.placement == "delay":
        return Rejected("page-frozen")
    first = len(state.log)
    last = token == state.plan.end_token or first + 1 == state.plan.max_new_tokens
    after = replace(state, log=(*state.log, token), finished=last)
    effects = page_effects(state)
    if state.handoff == "bridging":
        effects = (*effects, to_decode(state, "append", first, (token,)))
        if last:
            after, effects = replace(after, handoff="cancelling"), (*effects, to_decode(state, "cancel"))
    return settled(after, effects)


def page_effects(state: Prefill) -> tuple[tuple[str, Event], ...]:
    """The row's place, and before the first row of a bridge what keeps the prompt as the transfer reads it."""
    effects: list[tuple[str, Event]] = []
    plan, position = state.plan, state.plan.prompt_tokens + len(state.log)
    if not state.log and state.transfer == "copying":
        if plan.placement == "copy-on-write":
            effects.append(
                ("pages", ("copy", plan.prompt_tokens // plan.page_size, plan.prompt_tokens % plan.page_size))
            )
        if plan.recurrent:
            effects.append(("pages", ("snapshot",)))
    return (*effects, ("pages", ("write", position)))


def emit(state: Prefill) -> Moved | Rejected:
    """Show the client the next token of the log."""
    if silent(state):
        return Rejected("sealed")
    if state.emitted >= len(state.log):
        return Rejected("nothing")
    due = state.log[state.emitted : state.emitted + 1]
    shown = tuple(("client", ("token", "prefill", state.emitted, token)) for token in due)
    return settled(replace(state, emitted=state.emitted + 1), shown)


def seal_log(state: Prefill) -> Moved | Rejected:
    """Stop producing and emitting; both counts are fixed here. Sealing again only sends the message again.

    It may have to be sent again even after the commit was offered: the decode side refuses a seal that overtakes the
    news of its prompt KV, and acknowledges the log all the same.
    """
    if state.handoff in ("sealed", "committing"):
        return Moved(state, (to_decode(state, "seal", state.sealed),))
    if state.handoff != "bridging":
        return Rejected("not-bridging")
    if state.transfer != "done":
        return Rejected("before-ready")
    if len(state.log) < state.plan.bridge_min:
        return Rejected("below-minimum")
    after = replace(state, handoff="sealed", sealed=len(state.log), owned=state.emitted)
    return Moved(after, (to_decode(state, "seal", after.sealed),))


def send_commit(state: Prefill) -> Moved | Rejected:
    """Offer ownership, with the sealed length and the client-visible prefix. Again, for as long as no answer came."""
    if state.handoff not in ("sealed", "committing"):
        return Rejected("unsealed")
    if state.replayed != state.sealed:
        return Rejected("not-replayed")
    return Moved(replace(state, handoff="committing"), (to_decode(state, "commit", state.sealed, state.owned),))


def send_cancel(state: Prefill) -> Moved | Rejected:
    """Give the handoff up. Again, for as long as no answer came; what comes back may still be ``committed``."""
    if state.handoff in ("ended", "handed"):
        return Rejected("ended")
    return Moved(replace(state, handoff="cancelling"), (to_decode(state, "cancel"),))


def resend(state: Prefill) -> Moved | Rejected:
    """Send the first log token again that is not acknowledged."""
    if state.handoff not in ("bridging", "sealed") or state.replayed >= len(state.log):
        return Rejected("nothing")
    return Moved(state, (to_decode(state, "append", state.replayed, state.log[state.replayed : state.replayed + 1]),))


def transfer_done(state: Prefill) -> Moved:
    """Nobody reads the prompt pages any more."""
    return settled(replace(state, transfer="done"))


def transfer_failed(state: Prefill) -> Moved:
    """The copy failed: this side stays the owner and gives the handoff up."""
    after = replace(state, transfer="failed")
    if state.handoff != "bridging":
        return settled(after)
    return Moved(replace(after, handoff="cancelling"), (to_decode(state, "cancel"),))


def take_ack(state: Prefill, count: int) -> Moved | Rejected:
    """The decode side can go on behind the first ``count`` log tokens."""
    if state.transfer != "done":
        return Rejected("before-ready")
    if count < state.replayed:
        return Rejected("ack-backwards")
    if count > len(state.log):
        return Rejected("ack-ahead")
    return Moved(replace(state, replayed=count))


def take_committed(state: Prefill, count: int) -> Moved | Rejected:
    """The decode side owns the request: the KV here may go, once."""
    if state.handoff not in ("committing", "cancelling") or count != state.sealed:
        return Rejected("not-offered")
    return settled(replace(state, handoff="handed"))


def take_end(state: Prefill) -> Moved | Rejected:
    """The decode side will never commit this epoch: the request goes on here."""
    if state.handoff in ("ended", "handed"):
        return Rejected("ended")
    return settled(replace(state, handoff="ended"))


def take_fence(state: Prefill, visible: int) -> Moved | Rejected:
    """The decode side is dead and cut off from the stream, on which the client has ``visible`` tokens.

    It may have emitted before it died; and this side may have emitted since the fence was sent.
    """
    if state.handoff in ("ended", "handed"):
        return Rejected("ended")
    return settled(replace(state, handoff="ended", emitted=max(state.emitted, visible)))


def settled(state: Prefill, effects: tuple[tuple[str, Event], ...] = ()) -> Moved:
    """Free the KV when nothing can need it: the commit is known; or all is emitted, the handoff ended, the copy over."""
    done = state.finished and state.emitted >= len(state.log) and state.transfer != "copying"
    if state.freed or not (state.handoff == "handed" or (state.handoff == "ended" and done)):
        return Moved(state, effects)
    return Moved(replace(state, freed=True), (*effects, ("pages", ("free",))))
