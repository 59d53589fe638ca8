"""Clauses about the decode side, and about what the two sides owe each other: the boundary, and an answer each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from memspec.conformance import Violation, expect, refused
from memspec.ordering.token_replay_handoff.checks.base import CHECKS, DecodeSide, Event, PrefillSide, Sides, needs
from memspec.ordering.token_replay_handoff.checks.prefill import BRIDGED, OFFERED, SEALED, Steps, all_ok
from memspec.ordering.token_replay_handoff.checks.walk import TO_THE_END, decode_walk, prefill_walk
from memspec.ordering.token_replay_handoff.data import Plan

PLAN = Plan(max_new_tokens=8, bridge_max=6)  # epoch 9, end token 0
FIVE = all_ok(("prompt_kv_ready", 9), ("append", 9, 0, (10, 11, 12, 13, 14)))
REPLAYED = (*FIVE, (("replay",), TO_THE_END))
DRAINED = (*REPLAYED, *all_ok(("seal", 9, 5)))


def stopped() -> Iterator[Steps]:
    """What the decode side must refuse, and what it must still take."""
    yield *REPLAYED, (("commit", 9, 5, 3), "unsealed")
    yield *DRAINED, (("commit", 9, 4, 3), "behind")
    yield *FIVE, *all_ok(("seal", 9, 5)), (("commit", 9, 5, 3), "not-replayed")
    yield *REPLAYED, *all_ok(("seal", 9, 6)), (("commit", 9, 6, 3), "behind")
    for owned in (-1, 6):
        yield *DRAINED, (("commit", 9, 5, owned), "boundary"), (("emit", 15), "not-owner")
    yield ((("seal", 9, 0), "before-ready"),)
    yield *FIVE, (("seal", 9, 4), "sealed"), (("seal", 9, 5), "")
    yield *DRAINED, (("seal", 9, 6), "sealed"), (("seal", 9, 5), "")
    yield *DRAINED, (("append", 9, 5, (15,)), "sealed"), (("append", 9, 4, (14,)), "")
    yield *FIVE, (("append", 9, 6, (16,)), "gap"), (("append", 9, 5, (15,)), "")
    yield *FIVE, (("prompt_kv_ready", 9), "ready-already")
    yield (("append", 9, 0, (10,)), ""), (("replay",), "not-replaying"), (("replay_fails",), "not-replaying")
    yield *REPLAYED, (("replay",), "nothing")
    yield *DRAINED, *all_ok(("commit", 9, 5, 5), *[("emit", 15 + i) for i in range(3)]), (("emit", 18), "finished")
    yield ((("emit", 10), "not-owner"),)
    yield *DRAINED, (("emit", 15), "not-owner")
    yield *DRAINED, *all_ok(("commit", 9, 5, 5), ("emit", 0)), (("emit", 16), "finished")
    yield *DRAINED, *all_ok(("commit", 9, 5, 5)), (("append", 9, 4, (14,)), "terminal")
    for event in (("append", 9, 5, (15,)), ("commit", 9, 5, 3), ("emit", 15), ("replay",)):
        yield *DRAINED, (("crash",), ""), (event, "dead")


@CHECKS.clause(stopped, DecodeSide)
def decode_guards(subject: DecodeSide, case: Steps) -> None:
    decode_walk(subject, PLAN, *case)


READY = all_ok(("prompt_kv_ready", 9))
ONE_OF_TWO = (*READY, *all_ok(("append", 9, 0, (10,)), ("replay",), ("append", 9, 1, (11,))))


@CHECKS.clause(lambda: [(FIVE, 0), (ONE_OF_TWO, 1), (FIVE[1:], 0), (REPLAYED, 5), (DRAINED, 5)], DecodeSide)
def ack_means_replayed(subject: DecodeSide, case: tuple[Steps, int]) -> None:
    """Whatever is put last, the log again or the seal: no acknowledgement counts what is not replayed."""
    decode_walk(subject, PLAN, *FIVE[1:], (("replay",), "not-replaying"))
    steps, replayed = case
    asked_for: tuple[Event, ...] = (("append", 9, 0, (10,)), *([] if steps == FIVE[1:] else [("seal", 9, 5)]))
    for asked in ((), *(all_ok(event) for event in asked_for)):
        sent = decode_walk(subject, PLAN, *steps, *asked)
        expect([event for _, event in sent if event[0] == "ack" and event[2] > replayed], [])


def strangers() -> Iterator[tuple[str, Steps, Event]]:
    """A side, where it is, and what it is told of the handoff before and of the one after."""
    told_prefill: tuple[Event, ...] = (
        ("ack", 1),
        ("committed", 2),
        ("cancelled",),
        ("failed",),
        ("fenced", 2),
        ("transfer_done",),
    )
    for steps in (BRIDGED, SEALED, OFFERED, (*OFFERED, *all_ok(("committed", 9, 2)))):
        for name, *rest in (*told_prefill, ("transfer_failed",)):
            yield from (("prefill", steps, (name, epoch, *rest)) for epoch in (8, 10))
    told_decode: tuple[Event, ...] = (
        ("append", 0, (10,)),
        ("seal", 5),
        ("commit", 5, 3),
        ("cancel",),
        ("prompt_kv_ready",),
    )
    for steps in ((), FIVE, DRAINED, (*DRAINED, *all_ok(("commit", 9, 5, 3))), (*FIVE, *all_ok(("cancel", 9)))):
        for name, *rest in told_decode:
            yield from (("decode", steps, (name, epoch, *rest)) for epoch in (8, 10))


@CHECKS.clause(strangers, Sides)
def epoch_at_each_side(subject: Sides, case: tuple[str, Steps, Event]) -> None:
    side, steps, told = case
    stale = (told, "stale-epoch")
    if side == "prefill":
        prefill_walk(subject, Plan(), *steps, stale)
    else:
        decode_walk(subject, PLAN, *steps, stale)


@CHECKS.clause(lambda: [FIVE, DRAINED, ()], DecodeSide)
def cancel_is_final(subject: DecodeSide, case: Steps) -> None:
    expect(decode_walk(subject, PLAN, *case, (("cancel", 9), "")), [("prefill", ("cancelled", 9))])
    decode_walk(
        subject, PLAN, *case, (("cancel", 9), ""), (("commit", 9, 5, 3), "terminal"), (("emit", 15), "not-owner")
    )


@CHECKS.clause(
    lambda: [(side, owned) for side in ("decode", "prefill") for owned in (0, 1, 2, 3, 5, -1, 6)], DecodeSide
)
def two_counters(subject: Any, case: tuple[str, int]) -> None:
    side, owned = case
    needs(subject, Sides if side == "prefill" else DecodeSide)
    if side == "prefill" and 0 <= owned <= 2:
        made = all_ok(("transfer_done", 9), ("decode", 10), ("decode", 11), *[("emit",)] * owned)
        sent = prefill_walk(subject, Plan(), *made, *all_ok(("seal",), ("ack", 9, 2), ("commit",)))
        expect(sent, [("decode", ("commit", 9, 2, owned))])
    if side == "decode" and 0 <= owned <= 5:
        shown = decode_walk(subject, PLAN, *DRAINED, *all_ok(("commit", 9, 5, owned), ("emit", 15)))
        expect(shown, [("client", ("token", "decode", owned, 10 + owned))])
    if side == "decode" and not 0 <= owned <= 5:
        decode_walk(
            subject,
            PLAN,
            *DRAINED,
            (("commit", 9, 5, owned), "boundary"),
            (("emit", 15), "not-owner"),
            (("commit", 9, 5, 5), ""),
        )


def questions() -> Iterator[tuple[str, Steps, Event, tuple[str, Event]]]:
    """A side, where it is, what is asked of it twice, and the answer that is due both times."""
    yield "prefill", OFFERED, ("commit",), ("decode", ("commit", 9, 2, 1))
    yield "prefill", OFFERED, ("seal",), ("decode", ("seal", 9, 2))
    yield "prefill", SEALED, ("seal",), ("decode", ("seal", 9, 2))
    yield "prefill", (*SEALED, *all_ok(("cancel",))), ("cancel",), ("decode", ("cancel", 9))
    yield "prefill", BRIDGED, ("resend",), ("decode", ("append", 9, 0, (10,)))
    yield "prefill", (*SEALED, *all_ok(("ack", 9, 1))), ("resend",), ("decode", ("append", 9, 1, (11,)))
    owner = (*DRAINED, *all_ok(("commit", 9, 5, 3), ("emit", 15)))
    yield "decode", owner, ("commit", 9, 5, 3), ("prefill", ("committed", 9, 5))
    yield "decode", owner, ("cancel", 9), ("prefill", ("committed", 9, 5))
    yield "decode", (*DRAINED, *all_ok(("cancel", 9))), ("cancel", 9), ("prefill", ("cancelled", 9))
    yield "decode", DRAINED, ("append", 9, 4, (14,)), ("prefill", ("ack", 9, 5))
    for asked in (("append", 9, 0, (10,)), ("seal", 9, 5), ("commit", 9, 5, 3), ("cancel", 9)):
        yield "decode", (*FIVE, *all_ok(("replay_fails",))), asked, ("prefill", ("failed", 9))


def says(effect: tuple[str, Event], due: tuple[str, Event]) -> bool:
    """Whether an effect is the answer that is due; an append may say more than the one token that is."""
    (to, event), (_, asked) = effect, due
    if event[0] != "append" or asked[0] != "append":
        return effect == due
    return to == due[0] and event[:2] == asked[:2] and asked[3][0] in event[3][asked[2] - event[2] :][:1]


@CHECKS.clause(questions, PrefillSide)
def says_it_again(subject: Any, case: tuple[str, Steps, Event, tuple[str, Event]]) -> None:
    side, steps, asked, answer = case
    needs(subject, Sides if side == "decode" else PrefillSide)
    for times in (1, 2):
        again = (*steps, *all_ok(*[asked] * times))
        sent = prefill_walk(subject, Plan(), *again) if side == "prefill" else decode_walk(subject, PLAN, *again)
        if not any(says(effect, answer) for effect in sent):
            raise Violation(sent, f"{answer} among what is sent")
    if side == "decode" and answer[1][0] == "committed":
        shown = decode_walk(subject, PLAN, *steps, *all_ok(asked, ("emit", 15)))
        expect(shown, [("client", ("token", "decode", 4, 14))])


class Text(Protocol):
    """Where the decode side's detokenizer begins. The answer has ``ids`` and ``read_offset``."""

    def detokenizer_prime(self, prompt: Sequence[int], log: Sequence[int], owned: int) -> Any: ...


@CHECKS.clause(
    lambda: [(prompt, log, owned) for prompt in (1, 3, 6) for log in (0, 1, 4, 9) for owned in range(-1, log + 2)], Text
)
def text_goes_on(subject: Text, case: tuple[int, int, int]) -> None:
    prompt, log, owned = case
    ids = ([*range(10, 10 + prompt)], [*range(30, 30 + log)])
    if not 0 <= owned <= log:
        refused(lambda: subject.detokenizer_prime(*ids, owned), owned, log)
        return
    boundary = prompt + owned
    context = [position for position in range(prompt + log) if boundary - 5 <= position < boundary]
    due = [(ids[0] + ids[1])[position] for position in (*context, *range(boundary, prompt + log))]
    prime = subject.detokenizer_prime(*ids, owned)
    expect((list(prime.ids), prime.read_offset), (due, len(context)))
