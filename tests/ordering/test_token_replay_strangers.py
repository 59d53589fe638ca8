"""Implementations that are not ours: right ones that do more or less at a time pass, subtly wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from memspec.conformance import ClauseId, judge, variant
from memspec.explore import Moved, Rejected
from memspec.ordering.token_replay_handoff import reference
from memspec.ordering.token_replay_handoff.checks import CHECKS
from memspec.ordering.token_replay_handoff.reference import admission, coordinator, decode, plan, prefill

Step = Moved | Rejected


def whole_log_again(state: prefill.Prefill) -> Step:
    sent = prefill.resend(state)
    return sent if isinstance(sent, Rejected) else Moved(state, (prefill.to_decode(state, "append", 0, state.log),))


def seal_with_the_tail(state: prefill.Prefill) -> Step:
    sealed = prefill.seal_log(state)
    if isinstance(sealed, Rejected) or state.replayed == len(state.log):
        return sealed
    tail = prefill.to_decode(state, "append", state.replayed, state.log[state.replayed :])
    return Moved(sealed.state, (tail, *sealed.effects))


def commit_at_once(state: prefill.Prefill, count: int) -> Step:
    taken = prefill.take_ack(state, count)
    if isinstance(taken, Rejected) or taken.state.handoff != "sealed" or count != taken.state.sealed:
        return taken
    return prefill.send_commit(taken.state)


def all_in_one_extend(state: decode.Decode) -> Step:
    one = decode.replay_token(state)
    if isinstance(one, Rejected):
        return one
    return Moved(replace(state, replayed=len(state.log)), (decode.to_prefill(state, "ack", len(state.log)),))


def ack_of_the_seal(state: decode.Decode, count: int) -> Step:
    taken = decode.take_seal(state, count)
    return (
        taken if isinstance(taken, Rejected) else Moved(taken.state, (decode.to_prefill(state, "ack", state.replayed),))
    )


RIGHT: dict[str, dict[str, Callable[..., Any]]] = {
    "sends the whole log again": {"resend": whole_log_again},
    "sends the tail of the log with the seal": {"seal_log": seal_with_the_tail},
    "offers the commit with the last acknowledgement": {"take_ack": commit_at_once},
    "replays all that is there in one extend": {"replay_token": all_in_one_extend},
    "acknowledges the seal": {"take_seal": ack_of_the_seal},
    "all of it": {"resend": whole_log_again, "take_ack": commit_at_once, "replay_token": all_in_one_extend},
}


@pytest.mark.parametrize("name", RIGHT)
def test_another_right_implementation_conforms(name: str) -> None:
    verdicts = judge(CHECKS, variant(reference, **RIGHT[name]))
    assert {clause: verdict.detail for clause, verdict in verdicts.items() if verdict.outcome != "pass"} == {}


def of_any_epoch(side: Any, step: str, *names: str) -> dict[str, Callable[..., Any]]:
    """A side that does not compare the epoch of some messages."""

    def deaf(state: Any, event: tuple[Any, ...]) -> Step:
        told = (event[0], state.plan.epoch, *event[2:]) if event[0] in names else event
        return getattr(side, step)(state, told)  # type: ignore[no-any-return]

    return {step: deaf}


def freed_while_read(state: prefill.Prefill, effects: tuple[tuple[str, Any], ...] = ()) -> Moved:
    settled = prefill.settled(replace(state, transfer="done"), effects)
    return Moved(replace(settled.state, transfer=state.transfer), settled.effects)


def stored_is_replayed(state: decode.Decode, first: int, ids: Sequence[int]) -> Step:
    taken = decode.take_append(state, first, ids)
    if isinstance(taken, Rejected) or not taken.effects:
        return taken
    return Moved(taken.state, (decode.to_prefill(state, "ack", len(taken.state.log)),))


def decode_without_limit(state: decode.Decode, token: int) -> Step:
    shown = decode.emit_token(replace(state, plan=replace(state.plan, max_new_tokens=99)), token)
    return shown if isinstance(shown, Rejected) else Moved(replace(shown.state, plan=state.plan), shown.effects)


def prefill_without_limit(state: prefill.Prefill, token: int) -> Step:
    made = prefill.decode_token(replace(state, plan=replace(state.plan, max_new_tokens=99)), token)
    return made if isinstance(made, Rejected) else Moved(replace(made.state, plan=state.plan), made.effects)


def failure_told_to_nobody(state: prefill.Prefill) -> Moved:
    return prefill.settled(
        replace(state, transfer="failed", handoff="ended" if state.sealed is None else state.handoff)
    )


def any_count(state: prefill.Prefill, count: int) -> Step:
    return prefill.take_committed(state, state.sealed or 0)


def no_empty_range(state: coordinator.Handoff, first: int, ids: Sequence[int]) -> coordinator.Handoff | Rejected:
    return coordinator.append(state, first, ids) if ids else Rejected("overlap")


def empty_range_anywhere(state: coordinator.Handoff, first: int, ids: Sequence[int]) -> coordinator.Handoff | Rejected:
    return coordinator.append(state, first, ids) if ids else state


def no_empty_commit(state: decode.Decode, count: int, owned: int) -> Step:
    return decode.take_commit(state, count, owned) if count else Rejected("behind")


def admitted_without(*forgotten: str) -> dict[str, Callable[..., Any]]:
    def admit(*times: Any, **more: Any) -> admission.Admission:
        return admission.admit(*times, **{name: value for name, value in more.items() if name not in forgotten})

    return {"admit": admit}


def replanned(**changed: Any) -> dict[str, Callable[..., Any]]:
    def handoff_plan(*given: Any) -> Any:
        made = plan.handoff_plan(*given)
        return made if made.plan is None else replace(made, plan=replace(made.plan, **changed))

    return {"handoff_plan": handoff_plan}


WRONG: dict[str, tuple[str, dict[str, Callable[..., Any]]]] = {
    "told of another epoch: D, cancel": ("epoch-at-each-side", of_any_epoch(decode, "decode_step", "cancel")),
    "told of another epoch: D, seal": ("epoch-at-each-side", of_any_epoch(decode, "decode_step", "seal")),
    "told of another epoch: D, KV": ("epoch-at-each-side", of_any_epoch(decode, "decode_step", "prompt_kv_ready")),
    "told of another epoch: P, ack": ("epoch-at-each-side", of_any_epoch(prefill, "prefill_step", "ack")),
    "told of another epoch: P, failed": ("epoch-at-each-side", of_any_epoch(prefill, "prefill_step", "failed")),
    "told of another epoch: P, fence": ("epoch-at-each-side", of_any_epoch(prefill, "prefill_step", "fenced")),
    "told of another epoch: P, copy": ("epoch-at-each-side", of_any_epoch(prefill, "prefill_step", "transfer_done")),
    "the KV is freed while it is read": ("retained-until-known", {"settled": freed_while_read}),
    "what is stored counts as replayed": ("ack-means-replayed", {"take_append": stored_is_replayed}),
    "D emits beyond the last token": ("decode-guards", {"emit_token": decode_without_limit}),
    "P decodes beyond the last token": ("prefill-guards", {"decode_token": prefill_without_limit}),
    "D never hears of a failed transfer": ("never-stuck", {"transfer_failed": failure_told_to_nobody}),
    "a commit of any count is believed": ("prefill-guards", {"take_committed": any_count}),
    "an empty range is refused": ("resend", {"append": no_empty_range}),
    "an empty range is taken anywhere": ("contiguous-log", {"append": empty_range_anywhere}),
    "an empty log is never committed": ("never-stuck", {"take_commit": no_empty_commit}),
    "admitted without the start-up": ("admission", admitted_without("replay_startup_ms")),
    "the plan forgets how long the request is": ("agreed-is-handed-over", replanned(max_new_tokens=99)),
    "the plan forgets the page size": ("agreed-is-handed-over", replanned(page_size=1)),
    "the plan has a state that the model lacks": ("agreed-is-handed-over", replanned(recurrent=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_subtly_wrong_implementation_is_caught(name: str) -> None:
    idea, changed = WRONG[name]
    clause = ClauseId(f"token-replay-handoff.{idea}")
    assert judge(CHECKS, variant(reference, **changed), [clause])[clause].outcome == "fail"


def test_a_part_of_an_implementation_is_judged_by_its_own_clauses() -> None:
    class Alone:
        prefill_initial = staticmethod(reference.prefill_initial)
        prefill_step = staticmethod(reference.prefill_step)

    outcomes = {clause.partition(".")[2]: verdict.outcome for clause, verdict in judge(CHECKS, Alone()).items()}
    assert set(outcomes.values()) == {"pass", "not-run"}
    assert outcomes["prefill-guards"] == outcomes["freed-once-known"] == "pass"
    assert outcomes["bridge-count"] == outcomes["one-emitter"] == "not-run"
