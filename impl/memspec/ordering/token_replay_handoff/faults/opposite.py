"""The opposite errors: too careful, too late, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    TEXT,
    fault,
    twin,
)
from memspec.ordering.token_replay_handoff.reference import admission, coordinator, decode, prefill, text


def no_commit(state: coordinator.Handoff, count: int) -> Rejected:
    return Rejected("unsealed")


def no_repeat(state: coordinator.Handoff, first: int, ids: Sequence[int]) -> coordinator.Handoff | Rejected:
    return Rejected("overlap") if first < len(state.log) else coordinator.append(state, first, ids)


def ready_for_good(state: coordinator.Handoff) -> coordinator.Phase:
    return "READY_TO_COMMIT" if state.phase == "READY_TO_COMMIT" else coordinator.phase_for(state)


def cancel_hands_over(state: coordinator.Handoff) -> coordinator.Handoff:
    return replace(state, phase="CANCELLED", owner="decode")


def never_offered(state: prefill.Prefill) -> Rejected:
    return Rejected("not-replayed")


def offered_once(state: prefill.Prefill) -> Moved | Rejected:
    return Rejected("unsealed") if state.handoff == "committing" else prefill.send_commit(state)


def sealed_once(state: prefill.Prefill) -> Moved | Rejected:
    return Rejected("not-bridging") if state.handoff == "committing" else prefill.seal_log(state)


def never_resent(state: prefill.Prefill) -> Rejected:
    return Rejected("nothing")


def never_freed(state: prefill.Prefill, effects: tuple[tuple[str, Any], ...] = ()) -> Moved:
    return Moved(state, effects)


def dropped_at_the_budget(state: prefill.Prefill, token: int) -> Moved | Rejected:
    made = prefill.decode_token(state, token)
    if made != Rejected("budget"):
        return made
    return Moved(replace(state, handoff="cancelling"), (prefill.to_decode(state, "cancel"),))


def never_again(state: prefill.Prefill) -> bool:
    return state.sealed is not None


def told_once(state: decode.Decode, name: str) -> Rejected:
    return Rejected("terminal")


def lost_without_snapshot(state: decode.Decode) -> Moved | Rejected:
    return Moved(replace(state, phase="failed")) if state.phase == "replaying" else Rejected("not-replaying")


def nothing_agreed(ours: Settings, theirs: Settings, request: Request) -> Negotiated:
    return Negotiated(None, "disabled")


def whole_page(prompt_tokens: int, page_size: int) -> admission.PageTail:
    tail = admission.page_tail(prompt_tokens, page_size)
    return admission.PageTail(tail.page, page_size if tail.rows == 0 else tail.rows)


def copy_in_any_case(prompt: int, page: int, free: int, *, copy_on_write: bool = True, delay: bool = True) -> str:
    return admission.place_bridge(prompt, page, 1, copy_on_write=copy_on_write, delay=delay)


def copy_without_startup(copying: Any, per_token: Any, rate: Any, startup: Any = 0) -> admission.CatchUp:
    return admission.estimate_catch_up(copying, per_token, rate, min(startup, 0))


def admit_without_queue(
    *times: Any, budget_tokens: int, replay_startup_ms: Any = 0, queue_delay_ms: Any = 0
) -> admission.Admission:
    return admission.admit(*times, budget_tokens=budget_tokens, replay_startup_ms=replay_startup_ms)


def acknowledged_on_receipt(state: decode.Decode, first: int, ids: Sequence[int]) -> Moved | Rejected:
    taken = decode.take_append(state, first, ids)
    if isinstance(taken, Rejected):
        return taken
    return Moved(taken.state, (decode.to_prefill(state, "ack", len(taken.state.log)),))


def without_context(prompt: Sequence[int], log: Sequence[int], owned: int) -> text.Prime:
    prime = text.detokenizer_prime(prompt, log, owned)
    return text.Prime(prime.ids[prime.read_offset :], 0)


def context_of_the_log(prompt: Sequence[int], log: Sequence[int], owned: int) -> text.Prime:
    return text.detokenizer_prime([], log, owned)


def replay_everything(log: Sequence[int]) -> admission.ReplayPlan:
    short = admission.batched_replay_plan(log)
    return admission.ReplayPlan(tuple(log), short.expected)


OPPOSITE: tuple[Fault, ...] = (
    fault("never-commits", twin(*COORDINATOR, commit=no_commit), "commit-exact", "opposite", "Safe, and of no use."),
    fault("never-offers", twin(*SIDES, send_commit=never_offered), "never-stuck says-it-again", "opposite",
          "The decode side has everything and is never asked."),
    fault("commit-sent-once", twin(*PREFILL, send_commit=offered_once), "says-it-again", "opposite",
          "An offer that is lost is not made again; the prefill side can only cancel."),
    fault("seal-sent-until-the-offer", twin(*SIDES, seal_log=sealed_once), "says-it-again never-stuck", "opposite",
          "Everything is acknowledged, so the seal seems superfluous; it was refused for having come before the prompt KV."),
    fault("log-sent-once", twin(*SIDES, resend=never_resent), "says-it-again never-stuck", "opposite",
          "The transport is taken to be reliable and in order."),
    fault("answers-once", twin(*SIDES, answer_again=told_once), "says-it-again never-stuck", "opposite",
          "A lost confirmation leaves the prefill side waiting and its KV occupied."),
    fault("failure-kept-quiet", twin(*SIDES, replay_fails=lost_without_snapshot), "never-stuck", "opposite",
          "The decode side gives up and says so only when asked; nobody asks."),
    fault("never-frees", twin(*PREFILL, settled=never_freed), "freed-once-known", "opposite",
          "The KV is kept to be on the safe side."),
    fault("dropped-at-the-budget", twin(*PREFILL, decode_token=dropped_at_the_budget), "bridge-count", "opposite",
          "A full log ends the handoff instead of pausing the bridge."),
    fault("never-goes-on", twin(*SIDES, silent=never_again), "goes-on-once-confirmed never-stuck", "opposite",
          "What was sealed once stays silent, although the decode side has confirmed that it will not take over."),
    fault("no-repeat-taken", twin(*COORDINATOR, append=no_repeat), "resend resend-after-seal", "opposite",
          "Every range that is stored already counts as an error."),
    fault("ready-for-good", twin(*COORDINATOR, phase_for=ready_for_good), "commit-exact", "opposite",
          "Caught up once is taken to be caught up."),
    fault("cancel-hands-over", twin(*COORDINATOR, cancel=cancel_hands_over), "ended-is-final", "opposite",
          "A handoff that is given up leaves its request to the side that has least of it."),
    fault("nothing-agreed", twin(*PLANNING, handoff_plan=nothing_agreed), "agreed-is-handed-over", "opposite",
          "Every request takes the ordinary path."),
    fault("aligned-page-copied", twin(*ADMISSION, page_tail=whole_page), "page-choice", "opposite",
          "A prompt that ends at a page boundary shares nothing, and a page is copied all the same."),
    fault("copy-without-a-page", twin(*ADMISSION, place_bridge=copy_in_any_case), "page-choice", "opposite",
          "Copy-on-write is chosen where no page is free."),
    fault("startup-forgotten", twin(*ADMISSION, estimate_catch_up=copy_without_startup), "catch-up-estimate", "opposite",
          "The replay's fixed start-up is left out; the backlog it costs is not."),
    fault("queue-forgotten", twin(*ADMISSION, admit=admit_without_queue), "admission", "opposite",
          "The replay is timed from the end of the copy; the decode side is busy, and the prefill side goes on meanwhile."),
    fault("acknowledged-on-receipt", twin(*DECODE, take_append=acknowledged_on_receipt), "ack-means-replayed", "opposite",
          "A token counts as replayed when it has been stored; the commit is offered for KV that does not exist yet."),
    fault("text-without-context", twin(*TEXT, detokenizer_prime=without_context), "text-goes-on", "opposite",
          "The tail is turned into text by itself; a space or half a character at the boundary is lost."),
    fault("context-of-the-log-alone", twin(*TEXT, detokenizer_prime=context_of_the_log), "text-goes-on", "opposite",
          "The prompt is not looked at, so a boundary early in the log has too little before it."),
    fault("last-token-replayed", twin(*ADMISSION, batched_replay_plan=replay_everything), "replay-leaves-the-last", "opposite",
          "The token that is to be compared is fed, so nothing is compared and its row is written twice."),
)  # fmt: skip
