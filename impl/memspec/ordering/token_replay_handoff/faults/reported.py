"""What the prototype does at run time, what its first version did, and what the RFC left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
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

PROTOTYPE = "sgl-project/sglang PR #32177, commit 075c39d3"
FIRST = "sgl-project/sglang PR #32177, commit 0681ebdc"


def freed_at_publication(state: prefill.Prefill) -> Moved | Rejected:
    sealed = prefill.seal_log(state)
    if isinstance(sealed, Rejected) or state.handoff != "bridging":
        return sealed
    return Moved(replace(sealed.state, freed=True), (*sealed.effects, ("pages", ("free",))))


def published(state: prefill.Prefill) -> Moved | Rejected:
    if state.handoff not in ("sealed", "committing"):
        return Rejected("unsealed")
    return Moved(replace(state, handoff="committing"), (prefill.to_decode(state, "commit", state.sealed, state.owned),))


def adopted(state: decode.Decode, count: int, owned: int) -> Moved | Rejected:
    if count != len(state.log):
        return Rejected("behind")
    if not 0 <= owned <= count:
        return Rejected("boundary")
    return Moved(
        replace(state, phase="committed", sealed=count, emitted=owned), (decode.to_prefill(state, "committed", count),)
    )


def commit_unsealed(state: coordinator.Handoff, count: int) -> coordinator.Handoff | Rejected:
    if count != len(state.log):
        return Rejected("behind")
    if count != state.replayed:
        return Rejected("not-replayed")
    return replace(state, phase="COMMITTED", owner="decode", committed=count)


def offer_unsealed(state: prefill.Prefill) -> Moved | Rejected:
    count = len(state.log)
    if (
        state.handoff not in ("bridging", "sealed", "committing")
        or state.replayed != count
        or count < state.plan.bridge_min
    ):
        return Rejected("not-replayed")
    return Moved(state, (prefill.to_decode(state, "commit", count, state.emitted),))


def accept_unsealed(state: decode.Decode, count: int, owned: int) -> Moved | Rejected:
    if count != state.replayed:
        return Rejected("not-replayed")
    return adopted(state, count, owned)


def taken_unsealed(state: prefill.Prefill, count: int) -> Moved:
    return prefill.settled(replace(state, handoff="handed", sealed=len(state.log)))


def aborted(state: prefill.Prefill) -> Moved | Rejected:
    ended = prefill.take_end(state)
    if isinstance(ended, Rejected):
        return ended
    return prefill.settled(replace(state, handoff="ended", finished=True, emitted=len(state.log)))


def decode_any_epoch(state: decode.Decode, event: tuple[Any, ...]) -> Moved | Rejected:
    if event[0] not in ("replay", "replay_fails", "emit", "crash"):
        event = (event[0], state.plan.epoch, *event[2:])
    return decode.decode_step(state, event)


def step_any_epoch(state: coordinator.Handoff, event: tuple[Any, ...]) -> coordinator.Handoff | Rejected:
    return coordinator.step(state, (event[0], state.epoch, *event[2:]))


def step_newer_epoch(state: coordinator.Handoff, event: tuple[Any, ...]) -> coordinator.Handoff | Rejected:
    return coordinator.step(state, (event[0], min(event[1], state.epoch), *event[2:]))


def from_the_first(state: decode.Decode, count: int, owned: int) -> Moved | Rejected:
    return decode.take_commit(state, count, min(owned, 0))


def from_the_seal(state: decode.Decode, count: int, owned: int) -> Moved | Rejected:
    taken = decode.take_commit(state, count, owned)
    return taken if isinstance(taken, Rejected) else Moved(replace(taken.state, emitted=count), taken.effects)


def blind_to(*names: str) -> Any:
    """A plan that does not compare these settings."""

    def handoff_plan(ours: Settings, theirs: Settings, request: Request) -> Negotiated:
        same = {field.name: getattr(ours, field.name) for field in fields(Settings) if field.name in names}
        return plan.handoff_plan(ours, replace(theirs, **same), request)

    return handoff_plan


def open_gate(state: prefill.Prefill, token: int) -> Moved | Rejected:
    made = prefill.decode_token(state, token)
    if isinstance(made, Rejected) or state.log or made.state.finished:
        return made
    early = (prefill.to_decode(state, "seal", 1), prefill.to_decode(state, "commit", 1, 0))
    return Moved(made.state, (*made.effects, *early))


def shared_page(state: prefill.Prefill) -> tuple[tuple[str, Any], ...]:
    return (*(e for e in prefill.page_effects(state) if e[1][0] != "copy"),)


def no_snapshot(state: prefill.Prefill) -> tuple[tuple[str, Any], ...]:
    return (*(e for e in prefill.page_effects(state) if e[1][0] != "snapshot"),)


def recurrent_eligible(ours: Settings, theirs: Settings, request: Request) -> Negotiated:
    return plan.handoff_plan(ours, theirs, replace(request, snapshot=True))


def slice_may_be_negative(log: tuple[int, ...], first: int, ids: Sequence[int]) -> tuple[int, ...] | Rejected:
    end = first + len(ids)
    if first > len(log):
        return Rejected("gap")
    if first < len(log) < end:
        return Rejected("overlap")
    if first < len(log) and log[first:end] != tuple(ids):
        return Rejected("different-tokens")
    return log if end <= len(log) else (*log, *ids)


def sealed_first(state: coordinator.Handoff, first: int, ids: Sequence[int]) -> coordinator.Handoff | Rejected:
    if state.sealed is not None:
        return Rejected("sealed")
    return coordinator.append(state, first, ids)


def admit_unasked(*times: Any, budget_tokens: int, **more: Any) -> admission.Admission:
    return admission.Admission(budget_tokens >= 1, "admitted", admission.estimate_catch_up(*times))


REPORTED: tuple[Fault, ...] = (
    fault("kv-freed-at-publication", twin(*SIDES, seal_log=freed_at_publication), "retained-until-known freed-once-known", "prototype",
          "The prefill side frees its KV as soon as the sealed log is published; nothing is left to go on from.", PROTOTYPE),
    fault("owner-moves-at-publication", twin(*PREFILL, send_commit=published), "prefill-guards", "prototype",
          "The sealed log is the hand-over: ownership is offered before the decode side has replayed anything.", PROTOTYPE),
    fault("commit-without-seal", twin(*COORDINATOR, commit=commit_unsealed), "commit-exact", "prototype",
          "Count, log and replay agree, so the commit looks exact; the producer may append the next token meanwhile.", FIRST),
    fault("exact-count-race", twin(*SIDES, send_commit=offer_unsealed, take_commit=accept_unsealed, take_committed=taken_unsealed),
          "one-emitter decode-guards", "reported",
          "The same on the wire: one more token is made while commit(n) is under way, and both sides own its position.",
          "sgl-project/sglang issue #32143"),
    fault("replay-failure-aborts", twin(*SIDES, take_end=aborted), "never-stuck goes-on-once-confirmed", "prototype",
          "A replay that fails or differs ends the request with an internal error instead of going on at the prefill side.", PROTOTYPE),
    fault("no-epoch-on-the-wire", twin(*SIDES, decode_step=decode_any_epoch), "epoch-at-each-side nothing-lost-or-repeated", "prototype",
          "A commit of another handoff is taken for this one.", PROTOTYPE),
    fault("any-epoch", twin(*COORDINATOR, step=step_any_epoch), "other-epoch", "prototype", "No epoch is compared at all.", PROTOTYPE),
    fault("newer-epoch-accepted", twin(*COORDINATOR, step=step_newer_epoch), "other-epoch", "reported",
          "Only older epochs count as stale, as a sentence about stale messages reads.", "sgl-project/sglang issue #32143"),
    fault("feature-on-at-one-side", twin(*PLANNING, *DECODE, handoff_plan=blind_to("enabled"), take_commit=from_the_first),
          "settings-agree two-counters", "prototype",
          "The decode side is not configured for it, takes it for an ordinary request and makes the streamed tokens again.", PROTOTYPE),
    fault("log-capacity-differs", twin(*PLANNING, handoff_plan=blind_to("log_capacity")), "settings-agree", "prototype",
          "The two sides size the row by their own limits; its last word, the count, lies elsewhere.", PROTOTYPE),
    fault("layout-unchecked", twin(*PLANNING, handoff_plan=blind_to("model", "tensor_parallel", "kv_layout", "page_size")),
          "settings-agree", "prototype", "Model, tensor parallelism and layout are named as conditions and compared nowhere.", PROTOTYPE),
    fault("gate-open-before-seal", twin(*SIDES, decode_token=open_gate), "one-emitter nothing-lost-or-repeated", "prototype",
          "The optimistic path publishes its first row with the gate open, and the prefill side goes on.", PROTOTYPE),
    fault("single-commit-count", twin(*SIDES, take_commit=from_the_seal), "two-counters nothing-lost-or-repeated", "reported",
          "One count serves as sealed length and as what the client has: text not yet streamed at the seal is lost.",
          "sgl-project/sglang issue #32143"),
    fault("shared-page-written", twin(*PREFILL, page_effects=shared_page), "prompt-unchanged", "reported",
          "The first bridge token goes into the last prompt page while the transfer reads it.", "sgl-project/sglang issue #32143"),
    fault("recurrent-model-eligible", twin(*PLANNING, *PREFILL, handoff_plan=recurrent_eligible, page_effects=no_snapshot),
          "recurrent-needs-a-snapshot prompt-unchanged same-as-one-worker", "prototype",
          "A page size of one is taken to mean that nothing is shared; the recurrent slot moves on before it is sent.", PROTOTYPE),
    fault("negative-index-accepted", twin(*COORDINATOR, extended=slice_may_be_negative), "contiguous-log", "prototype",
          "A negative first index is a slice from the end, which may happen to match.", PROTOTYPE),
    fault("resend-after-seal-refused", twin(*COORDINATOR, append=sealed_first), "resend-after-seal", "prototype",
          "The seal is looked at before the content, so a late duplicate is an error.", PROTOTYPE),
    fault("admitted-unasked", twin(*ADMISSION, admit=admit_unasked), "admission", "prototype",
          "The estimate exists and nobody asks it; replay by plain decoding is as slow as the producer.", PROTOTYPE),
)  # fmt: skip
