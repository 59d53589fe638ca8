"""Guards removed, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from memspec.conformance import Fault
from memspec.explore import Moved, Rejected
from memspec.ordering.token_replay_handoff.data import Negotiated, Request, Settings
from memspec.ordering.token_replay_handoff.faults.making import (
    ADMISSION,
    COORDINATOR,
    DECODE,
    PLANNING,
    PREFILL,
    SIDES,
    fault,
    twin,
)
from memspec.ordering.token_replay_handoff.reference import admission, coordinator, decode, plan, prefill


def overwrites(log: tuple[int, ...], first: int, ids: Sequence[int]) -> tuple[int, ...] | Rejected:
    return Rejected("negative-index") if first < 0 else (*log[:first], *ids, *log[first + len(ids) :])


def acknowledge_anything(state: coordinator.Handoff, count: int) -> coordinator.Handoff:
    return replace(state, replayed=count, phase=coordinator.phase_for(replace(state, replayed=count)))


def seal_at_once(state: coordinator.Handoff) -> coordinator.Handoff:
    sealed = replace(state, sealed=len(state.log))
    return replace(sealed, phase=coordinator.phase_for(sealed))


def append_after_seal(state: coordinator.Handoff, first: int, ids: Sequence[int]) -> coordinator.Handoff | Rejected:
    return coordinator.append(replace(state, sealed=None), first, ids)


def commit_anything(state: coordinator.Handoff, count: int) -> coordinator.Handoff:
    return replace(state, phase="COMMITTED", owner="decode", committed=count)


def after_the_end(state: coordinator.Handoff, event: tuple[Any, ...]) -> coordinator.Handoff | Rejected:
    return coordinator.step(replace(state, phase="REPLAYING") if state.phase in coordinator.TERMINAL else state, event)


def never_silent(state: prefill.Prefill) -> bool:
    return state.handoff == "handed"


def impatient(state: prefill.Prefill) -> bool:
    return state.sealed is not None and state.handoff not in ("ended", "cancelling")


def without_budget(state: prefill.Prefill, token: int) -> Moved | Rejected:
    made = prefill.decode_token(replace(state, plan=replace(state.plan, bridge_max=99)), token)
    return made if isinstance(made, Rejected) else Moved(replace(made.state, plan=state.plan), made.effects)


def undelayed(state: prefill.Prefill, token: int) -> Moved | Rejected:
    made = prefill.decode_token(replace(state, plan=replace(state.plan, placement="aligned")), token)
    return made if isinstance(made, Rejected) else Moved(replace(made.state, plan=state.plan), made.effects)


def gate_left_open(state: prefill.Prefill, token: int) -> Moved | Rejected:
    made = prefill.decode_token(state, token)
    if isinstance(made, Rejected) or state.handoff != "bridging" or made.state.handoff != "cancelling":
        return made
    return Moved(replace(made.state, handoff="bridging"), tuple(e for e in made.effects if e[1][0] != "cancel"))


def literal_fence(state: prefill.Prefill, visible: int) -> Moved | Rejected:
    if state.handoff in ("ended", "handed"):
        return Rejected("ended")
    return prefill.settled(replace(state, handoff="ended", emitted=visible))


def fence_without_count(state: prefill.Prefill, visible: int) -> Moved | Rejected:
    return prefill.take_fence(state, 0)


def commit_after_cancel(state: decode.Decode, name: str) -> Moved | Rejected:
    if state.phase == "cancelled" and name == "commit" and state.sealed is not None and state.sealed == state.replayed:
        return Moved(replace(state, phase="committed"), (decode.to_prefill(state, "committed", state.sealed),))
    return decode.answer_again(state, name)


def commit_again_starts_again(state: decode.Decode, name: str) -> Moved | Rejected:
    answer = decode.answer_again(state, name)
    if isinstance(answer, Rejected) or state.phase != "committed" or name != "commit":
        return answer
    return Moved(replace(state, emitted=0), answer.effects)


def replay_unasked(state: decode.Decode, count: int, owned: int) -> Moved | Rejected:
    return decode.take_commit(replace(state, replayed=len(state.log)), count, owned)


def replay_while_copied(state: decode.Decode) -> Moved | Rejected:
    return decode.replay_token(replace(state, phase="replaying") if state.phase == "waiting" else state)


def any_boundary(state: decode.Decode, count: int, owned: int) -> Moved | Rejected:
    taken = decode.take_commit(state, count, min(max(owned, 0), count))
    return taken if isinstance(taken, Rejected) else Moved(replace(taken.state, emitted=owned), taken.effects)


def emits_uncommitted(state: decode.Decode, token: int) -> Moved | Rejected:
    return (
        decode.emit_token(replace(state, phase="committed"), token)
        if state.sealed is not None
        else Rejected("not-owner")
    )


def without_epoch(state: prefill.Prefill, name: str, *rest: object) -> tuple[str, Any]:
    return "decode", (name, None if name == "cancel" else state.plan.epoch, *rest)


def one_token_bridged(most_new: int, top: int, least: int) -> tuple[int, int]:
    return admission.bridge_budget(most_new + 1, top, least)


def any_request(ours: Settings, theirs: Settings, request: Request) -> Negotiated:
    return plan.handoff_plan(ours, theirs, replace(request, streaming=True, greedy=True))


def unchecked(name: str, value: Any, least: int, may_equal: bool) -> Any:
    return Fraction(str(value)) or Fraction(1)


UNGUARDED: tuple[Fault, ...] = (
    fault("log-overwritten", twin(*COORDINATOR, extended=overwrites), "contiguous-log", "guard removed",
          "Whatever arrives is spliced in; a gap closes by itself and a late message rewrites history."),
    fault("log-spliced-on-the-wire", twin(*DECODE, extended=overwrites), "decode-guards", "guard removed",
          "The same at the decode side, where messages really arrive out of order."),
    fault("any-acknowledgement", twin(*COORDINATOR, acknowledge=acknowledge_anything), "ready-first ack-in-range", "guard removed",
          "The last number that arrived is believed."),
    fault("sealed-before-ready", twin(*COORDINATOR, seal=seal_at_once), "ready-first", "guard removed",
          "Sealing is taken for a local matter."),
    fault("append-after-seal", twin(*COORDINATOR, append=append_after_seal), "seal-is-final", "guard removed",
          "The seal is a hint, and the log grows on."),
    fault("any-commit", twin(*COORDINATOR, commit=commit_anything), "commit-exact", "guard removed",
          "The count of the commit is not compared."),
    fault("ended-goes-on", twin(*COORDINATOR, step=after_the_end), "ended-is-final", "guard removed",
          "A late event wakes a handoff that is over."),
    fault("emits-after-seal", twin(*SIDES, silent=never_silent), "silent-from-seal one-emitter nothing-lost-or-repeated", "guard removed",
          "The prefill side goes on until it hears of the commit; then both have emitted."),
    fault("goes-on-unconfirmed", twin(*SIDES, silent=impatient), "silent-from-seal one-emitter nothing-lost-or-repeated", "guard removed",
          "The cancel is believed as soon as it is sent; the commit had been accepted."),
    fault("no-budget", twin(*PREFILL, decode_token=without_budget), "bridge-count", "guard removed",
          "The bridge decodes as long as the copy lasts, past what the log holds."),
    fault("delay-ignored", twin(*PREFILL, decode_token=undelayed), "prompt-unchanged", "guard removed",
          "No page was free to copy to, and the bridge does not wait."),
    fault("gate-open-at-the-end", twin(*PREFILL, decode_token=gate_left_open), "end-of-sequence", "guard removed",
          "The sequence ends during the bridge and the handoff goes on as if there were more."),
    fault("fence-taken-literally", twin(*PREFILL, take_fence=literal_fence), "resumes-at-what-the-client-has", "guard removed",
          "The fence's count is older than what this side has shown since."),
    fault("fence-without-count", twin(*SIDES, take_fence=fence_without_count),
          "resumes-at-what-the-client-has nothing-lost-or-repeated", "guard removed",
          "The request goes on at its own last token; what the dead side had shown comes again."),
    fault("commit-after-cancel", twin(*SIDES, answer_again=commit_after_cancel), "cancel-is-final one-emitter", "guard removed",
          "A commit that was overtaken by its cancel is accepted after all."),
    fault("commit-again-starts-again", twin(*SIDES, answer_again=commit_again_starts_again), "says-it-again nothing-lost-or-repeated",
          "guard removed", "A duplicate commit is taken for a new one, and the log is shown from its start."),
    fault("commit-before-replay", twin(*DECODE, take_commit=replay_unasked), "decode-guards", "guard removed",
          "The log is there, so the KV is taken to be there."),
    fault("replay-during-the-copy", twin(*DECODE, replay_token=replay_while_copied), "ack-means-replayed", "guard removed",
          "The replay starts when the log has arrived; the last prompt page lands later, on top of the replayed rows."),
    fault("any-boundary", twin(*DECODE, take_commit=any_boundary), "decode-guards", "guard removed",
          "A client-visible prefix beyond the log is believed."),
    fault("emits-uncommitted", twin(*SIDES, emit_token=emits_uncommitted), "decode-guards nothing-lost-or-repeated", "guard removed",
          "The decode side begins when the log is sealed; it does not know yet from where."),
    fault("cancel-without-epoch", twin(*SIDES, to_decode=without_epoch), "carries-its-epoch never-stuck", "guard removed",
          "One kind of message was forgotten, and nobody answers it."),
    fault("bridge-takes-the-last-token", twin(*ADMISSION, bridge_budget=one_token_bridged), "bridge-bounds", "guard removed",
          "Nothing is left for the decode side to produce."),
    fault("any-request", twin(*PLANNING, handoff_plan=any_request), "ordinary-path", "guard removed",
          "A sampled request, whose replay need not agree, is handed over too."),
    fault("no-value-checks", twin(*ADMISSION, exact=unchecked), "meaningless-is-refused", "guard removed",
          "A negative time becomes a negative backlog."),
)  # fmt: skip
