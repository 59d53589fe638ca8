"""Random runs against a checker that keeps only the log of events, and worlds too large for every build."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memspec.explore import Moved, Rejected, explore
from memspec.ordering.token_replay_handoff import reference as the_reference
from memspec.ordering.token_replay_handoff import replay
from memspec.ordering.token_replay_handoff.checks import state_diagrams
from memspec.ordering.token_replay_handoff.checks.exploration import ALL, SEARCHES
from memspec.ordering.token_replay_handoff.checks.world import Setting, handoff_world, token_at
from memspec.ordering.token_replay_handoff.data import Plan
from memspec.ordering.token_replay_handoff.faults import FAULTS

Event = dict[str, Any]
EPOCH = 9

wrong = st.sampled_from([0, 0, 0, 0, 1])
events = st.one_of(
    st.fixed_dictionaries(
        {"event": st.just("append"), "first": st.integers(-2, 4), "size": st.integers(0, 3), "wrong": wrong}
    ),
    st.fixed_dictionaries({"event": st.sampled_from(["prompt_kv_ready", "seal"])}),
    st.fixed_dictionaries({"event": st.sampled_from(["ack", "commit"]), "count": st.integers(0, 4)}),
    st.sampled_from([{"event": "cancel"}, {"event": "fail", "reason": "lost"}]),
)


def completed(drawn: list[Event], epochs: list[int]) -> list[Event]:
    """Tokens that follow from their positions, now and then a wrong one; now and then another epoch."""
    made: list[Event] = []
    for event, epoch in zip(drawn, epochs, strict=False):
        if event["event"] == "append":
            tokens = [100 + event["first"] + i + event["wrong"] for i in range(event["size"])]
            event = {"event": "append", "first": event["first"], "tokens": tokens}
        made.append({**event, "epoch": epoch})
    return made


def judged_by_history(accepted: list[Event], event: Event) -> str:
    """Why ``event`` must be refused after the events accepted so far, "" when it must be taken. No state: only history."""
    if event["epoch"] != EPOCH:
        return "stale-epoch"
    names = [past["event"] for past in accepted]
    if {"commit", "cancel", "fail"} & set(names):
        return "terminal"
    stored = {
        past["first"] + i: token
        for past in accepted
        if past["event"] == "append"
        for i, token in enumerate(past["tokens"])
    }
    ready, sealed = "prompt_kv_ready" in names, "seal" in names
    acknowledged = [past["count"] for past in accepted if past["event"] == "ack"]
    match event["event"]:
        case "append":
            positions = range(event["first"], event["first"] + len(event["tokens"]))
            if event["first"] < 0:
                return "negative-index"
            if event["first"] > len(stored):
                return "gap"
            known = [stored.get(position) for position in positions]
            if None in known and any(token is not None for token in known):
                return "overlap"
            if known and None not in known:
                return "" if known == event["tokens"] else "different-tokens"
            return "sealed" if sealed and known else ""
        case "prompt_kv_ready":
            return "ready-already" if ready else ""
        case "seal":
            return "" if ready else "before-ready"
        case "ack":
            if not ready:
                return "before-ready"
            if event["count"] < max(acknowledged, default=0):
                return "ack-backwards"
            return "ack-ahead" if event["count"] > len(stored) else ""
        case "commit":
            if event["count"] != len(stored):
                return "behind"
            if event["count"] != max(acknowledged, default=0):
                return "not-replayed"
            return "" if sealed else "unsealed"
    return ""


def test_the_checker_of_histories_refuses_what_the_public_race_refuses() -> None:
    race: list[Event] = [{"event": "append", "first": 0, "tokens": [1, 2]}, {"event": "prompt_kv_ready"}, {"event": "ack", "count": 2},
            {"event": "append", "first": 2, "tokens": [3]}]  # fmt: skip
    accepted = [{**event, "epoch": EPOCH} for event in race]
    assert judged_by_history(accepted, {"event": "commit", "count": 2, "epoch": EPOCH}) == "behind"


@settings(deadline=None, max_examples=400)
@given(st.lists(events, max_size=14), st.lists(st.sampled_from([9] * 12 + [8, 10]), min_size=14, max_size=14))
def test_the_coordinator_agrees_with_a_checker_that_knows_only_the_history(
    drawn: list[Event], epochs: list[int]
) -> None:
    accepted: list[Event] = []
    run = completed(drawn, epochs)
    for event, outcome in zip(run, replay({"epoch": EPOCH}, run), strict=True):
        assert outcome["rejected"] == judged_by_history(accepted, event), (accepted, event)
        if not outcome["rejected"]:
            accepted.append(event)
        stored = {p["first"] + i for p in accepted if p["event"] == "append" for i in range(len(p["tokens"]))}
        assert outcome["produced"] == len(stored)
        assert outcome["owner"] == ("decode" if any(p["event"] == "commit" for p in accepted) else "prefill")


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_random_walk_of_both_sides_shows_the_client_every_token_once(data: st.DataObject) -> None:
    """The search in depth instead of breadth: long runs with more tokens, losses and copies than a search could hold."""
    length = data.draw(st.integers(1, 7))
    plan = Plan(
        max_new_tokens=7,
        bridge_max=5,
        prompt_tokens=30,
        placement=data.draw(st.sampled_from(["copy-on-write", "delay"])),
    )
    everything = Setting(plan, length, losses=3, duplicates=3, transfer_fails=True, replay_fails=True, crash=("replaying", "committed"),
                         give_up=("bridging", "sealed", "committing"), strays=True)  # fmt: skip
    world = handoff_world(the_reference, everything)
    state = world.initial
    for _ in range(60):
        moves = [(event, after) for event, after, _ in world.moves(state) if after != state]
        if not moves:
            break
        _, state = data.draw(st.sampled_from(moves))
        for name, wrong in world.invariants.items():
            assert wrong(*world.view(state)) is None, name


def test_the_small_worlds_stay_small() -> None:
    sizes = {
        name: len(explore(handoff_world(the_reference, search.setting)).states) for name, search in SEARCHES.items()
    }
    assert sum(sizes.values()) < 5_000, sizes
    assert set(ALL) == set(sizes)


def test_the_sequence_of_the_worlds_ends_with_the_end_token() -> None:
    setting = Setting(Plan(), 3)
    assert [token_at(setting, position) for position in range(3)] == [10, 11, 0]


@pytest.mark.parametrize("name", [fault.name for fault in FAULTS if "nothing-lost-or-repeated" in fault.breaks])
def test_a_counterexample_is_replayed_step_by_step_to_the_same_wrong(name: str) -> None:
    """The table on the page is not a story: its events, taken one by one, lead to the state that is wrong."""
    subject = next(fault for fault in FAULTS if fault.name == name).subject()
    for search in SEARCHES.values():
        world = handoff_world(subject, search.setting)
        case = explore(world, 1_500).broken.get("stream")
        if case is None:
            continue
        fresh = handoff_world(subject, search.setting)
        state = fresh.initial
        for row in case.trace:
            state = next(
                after
                for event, after, _ in fresh.moves(state)
                if dict(fresh.row(event, *fresh.view(after))).items() <= row.items()
            )
        assert fresh.invariants["stream"](*fresh.view(state)) == case.message
        return
    pytest.fail("no counterexample")


def test_state_diagrams_come_from_explorations() -> None:
    found = state_diagrams()
    coordinator = set(found["Coordinator"])
    assert ("READY_TO_COMMIT", "append", "REPLAYING") in coordinator
    assert ("READY_TO_COMMIT", "commit", "COMMITTED") in coordinator
    assert not [edge for edge in coordinator if edge[0] in ("COMMITTED", "CANCELLED", "FAILED")]
    assert not [edge for edge in coordinator if edge[1] == "commit" and edge[0] != "READY_TO_COMMIT"]
    assert ("committing", "gets committed", "handed") in found["Prefill side"]
    assert {there for _, _, there in found["Decode side"]} == {"replaying", "committed", "cancelled", "failed", "dead"}


def test_a_side_answers_a_foreign_epoch_with_its_name_in_every_phase() -> None:
    state = the_reference.decode_initial(Plan())
    for event in (("prompt_kv_ready", 9), ("append", 9, 0, (10,)), ("replay",), ("seal", 9, 1), ("commit", 9, 1, 0)):
        for epoch in (8, 10):
            assert the_reference.decode_step(state, ("commit", epoch, 1, 0)) == Rejected("stale-epoch")
        moved = the_reference.decode_step(state, event)
        assert isinstance(moved, Moved)
        state = moved.state


ONE = Plan(bridge_max=1, max_new_tokens=2)
COPY_ON_WRITE = Plan(prompt_tokens=30, placement="copy-on-write", recurrent=True, bridge_max=2, max_new_tokens=3)
DEATHS = ("replaying", "committed")
LARGE = {
    "three bridge tokens, sent again": Setting(Plan(), 4, landed=True),
    "three bridge tokens, a loss": Setting(Plan(), 4, losses=1, landed=True),
    "three bridge tokens, a copy": Setting(Plan(), 4, duplicates=1, repeats=False, strays=True, landed=True),
    "end of the sequence in the bridge": Setting(Plan(), 3, landed=True, give_up=("committing",)),
    "everything at once": Setting(
        ONE, 2, losses=1, transfer_fails=True, replay_fails=True, crash=DEATHS, give_up=("committing",)
    ),
    "a loss and a copy": Setting(ONE, 2, losses=1, duplicates=1, strays=True),
    "two losses": Setting(ONE, 2, losses=2, landed=True),
    "nothing bridged": Setting(
        Plan(bridge_min=0, bridge_max=0, max_new_tokens=2), 2, losses=1, duplicates=1, strays=True, crash=DEATHS,
        replay_fails=True, give_up=("sealed", "committing"),
    ),
    "recurrent, during the copy": Setting(COPY_ON_WRITE, 3, transfer_fails=True, repeats=False),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_larger_worlds_hold_too(name: str) -> None:
    found = explore(handoff_world(the_reference, LARGE[name]), 400_000)
    assert found.complete, len(found.states)
    assert not found.broken
    if LARGE[name].repeats:
        assert found.stuck is None, found.stuck
    print(f"{name}: {len(found.states):,} states, {found.transitions:,} moves")
