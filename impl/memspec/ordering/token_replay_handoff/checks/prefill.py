"""Clauses about the prefill side alone: what it sends, when it is silent, when it goes on, when it frees."""

from __future__ import annotations

from collections.abc import Iterator

from memspec.conformance import expect
from memspec.ordering.token_replay_handoff.checks.base import CHECKS, Event, PrefillSide
from memspec.ordering.token_replay_handoff.checks.walk import prefill_walk
from memspec.ordering.token_replay_handoff.data import Plan

Steps = tuple[tuple[Event, str], ...]
PLAN = Plan()  # epoch 9, at most 3 bridge tokens, at most 4 new tokens, end token 0


def all_ok(*events: Event) -> Steps:
    return tuple((event, "") for event in events)


BRIDGED = all_ok(("transfer_done", 9), ("decode", 10), ("emit",), ("decode", 11))  # 2 tokens, the client has 1
SEALED = (*BRIDGED, *all_ok(("seal",)))
OFFERED = (*SEALED, *all_ok(("ack", 9, 2), ("commit",)))


@CHECKS.clause(
    lambda: [(SEALED, False), (OFFERED[:-1], False), (OFFERED, False), (OFFERED, True), (SEALED, True)], PrefillSide
)
def silent_from_seal(subject: PrefillSide, case: tuple[Steps, bool]) -> None:
    steps, given_up = case
    unconfirmed = all_ok(("cancel",)) if given_up else ()
    prefill_walk(subject, PLAN, *steps, *unconfirmed, (("emit",), "sealed"), (("decode", 12), "sealed"))


def confirmed() -> Iterator[tuple[Steps, int]]:
    """Ways in which the handoff ends without a commit, and the position that is due next to the client."""
    yield (*OFFERED, *all_ok(("cancel",), ("cancelled", 9))), 1
    yield (*SEALED, *all_ok(("failed", 9))), 1
    yield (*OFFERED, *all_ok(("fenced", 9, 1))), 1
    yield all_ok(("decode", 10), ("transfer_failed", 9), ("decode", 11)), 0
    yield (*BRIDGED, *all_ok(("cancel",))), 1


@CHECKS.clause(confirmed, PrefillSide)
def goes_on_once_confirmed(subject: PrefillSide, case: tuple[Steps, int]) -> None:
    steps, due = case
    shown = prefill_walk(subject, PLAN, *steps, (("emit",), ""))
    expect(shown, [("client", ("token", "prefill", due, 10 + due))])
    prefill_walk(
        subject, PLAN, *steps, *all_ok(*[("emit",)] * (2 - due), ("decode", 12), ("emit",), ("decode", 13), ("emit",))
    )


def fences() -> Iterator[tuple[Steps, int]]:
    yield (*OFFERED, *all_ok(("fenced", 9, 3), ("decode", 12), ("decode", 13), ("emit",))), 3
    yield (*BRIDGED, *all_ok(("emit",), ("fenced", 9, 1), ("decode", 12), ("emit",))), 2


@CHECKS.clause(fences, PrefillSide)
def resumes_at_what_the_client_has(subject: PrefillSide, case: tuple[Steps, int]) -> None:
    steps, due = case
    shown = [event for to, event in prefill_walk(subject, PLAN, *steps) if to == "client"]
    expect(shown, [("token", "prefill", due, 10 + due)])


@CHECKS.clause(lambda: [BRIDGED, all_ok(("decode", 10))], PrefillSide)
def end_of_sequence(subject: PrefillSide, case: Steps) -> None:
    ended = (*case, (("decode", PLAN.end_token), ""))
    expect(("decode", ("cancel", 9)) in prefill_walk(subject, PLAN, *ended), True)
    prefill_walk(
        subject, PLAN, *ended, (("seal",), "not-bridging"), (("commit",), "unsealed"), (("decode", 12), "finished")
    )
    prefill_walk(subject, PLAN, *ended, (("emit",), ""))


@CHECKS.clause(lambda: [OFFERED, (*OFFERED, *all_ok(("cancel",)))], PrefillSide)
def freed_once_known(subject: PrefillSide, case: Steps) -> None:
    before = [prefill_walk(subject, PLAN, *case[:number]) for number in range(1, len(case) + 1)]
    expect([event for effects in before for to, event in effects if event[0] == "free"], [])
    known = (*case, (("committed", 9, 2), ""))
    expect(prefill_walk(subject, PLAN, *known), [("pages", ("free",))])
    for late in (("failed", 9), ("cancelled", 9), ("fenced", 9, 2), ("cancel",)):
        prefill_walk(subject, PLAN, *known, (late, "ended"), (("emit",), "sealed"))
    prefill_walk(subject, PLAN, *known, (("committed", 9, 2), "not-offered"))


def guarded() -> Iterator[Steps]:
    yield *all_ok(("decode", 10)), (("ack", 9, 1), "before-ready")
    yield *BRIDGED, (("ack", 9, 3), "ack-ahead"), (("ack", 9, 2), "")
    yield *BRIDGED, (("ack", 9, 2), ""), (("ack", 9, 1), "ack-backwards"), (("ack", 9, 2), "")
    yield *all_ok(("decode", 10)), (("seal",), "before-ready")
    yield *BRIDGED, (("commit",), "unsealed")
    yield *SEALED, *all_ok(("ack", 9, 1)), (("commit",), "not-replayed")
    yield *BRIDGED, (("committed", 9, 2), "not-offered")
    yield *OFFERED, (("committed", 9, 3), "not-offered"), (("committed", 9, 2), "")
    yield *SEALED, *all_ok(("failed", 9), ("decode", 12), ("decode", 13)), (("decode", 14), "finished")
    yield *BRIDGED, (("emit",), ""), (("emit",), "nothing")
    yield *BRIDGED, *all_ok(("ack", 9, 2)), (("resend",), "nothing")
    yield *all_ok(("decode", 10), ("cancel",)), (("resend",), "nothing")


@CHECKS.clause(guarded, PrefillSide)
def prefill_guards(subject: PrefillSide, case: Steps) -> None:
    prefill_walk(subject, PLAN, *case)
