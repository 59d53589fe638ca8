"""The search on small worlds whose answers are known by hand or by brute force."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memspec.compose import Machine, Network, compose
from memspec.conformance import NotExercised, Violation
from memspec.explore import Moved, Rejected, World, WorldError, diagram, event_name, explore, require, stepwise, verdict

Graph = dict[int, list[int]]


def graph_world(graph: Graph, ends: frozenset[int] = frozenset(), bad: frozenset[int] = frozenset()) -> World:
    """A world whose states are numbers and whose events are ``("go", target)``."""
    return stepwise(
        0,
        lambda here: [("go", there) for there in graph.get(here, [])],
        lambda here, event: event[1],
        lambda here: "end" if here in ends else "",
        {"not bad": lambda here: f"state {here} is bad" if here in bad else None},
    )


def test_deadlock_is_a_stuck_state_with_its_shortest_path() -> None:
    found = explore(graph_world({0: [1, 2], 1: [3], 2: [4, 1], 3: [0]}, frozenset({3})))
    assert found.stuck is not None
    assert found.stuck.message == "nothing can happen any more"
    assert found.stuck.trace == ({"step": 1, "event": "go", "with": "2"}, {"step": 2, "event": "go", "with": "4"})
    assert found.stuck.state == (4,)


def test_trap_that_moves_for_ever_is_stuck_although_something_always_happens() -> None:
    found = explore(graph_world({0: [1, 2], 1: [0], 2: [3], 3: [2]}, frozenset({1})))
    assert found.stuck is not None
    assert found.stuck.message == "an end is out of reach"
    assert len(found.stuck.trace) == 1
    assert verdict(found, None) == "broken"


def test_world_without_an_end_is_stuck_at_its_start() -> None:
    found = explore(graph_world({0: [0]}))
    assert found.stuck is not None
    assert found.stuck.trace == ()


def test_long_chain_needs_no_recursion() -> None:
    found = explore(graph_world({i: [i + 1] for i in range(20_000)}, frozenset({20_000})))
    assert (len(found.states), found.transitions, found.stuck) == (20_001, 20_000, None)


def test_bound_says_incomplete_and_never_holds() -> None:
    endless = stepwise(0, lambda n: ["more"], lambda n, event: n + 1, lambda n: "", {"small": lambda n: None})
    found = explore(endless, limit=50)
    assert (len(found.states), found.complete) == (50, False)
    assert verdict(found, "small") == verdict(found, None) == "incomplete"
    with pytest.raises(NotExercised, match="incomplete: the search stopped after 50 states"):
        require(found, "small", "small numbers")


def test_bound_that_is_exactly_enough_is_complete() -> None:
    assert explore(graph_world({0: [1], 1: [0]}, frozenset({1})), limit=2).complete
    assert not explore(graph_world({0: [1], 1: [0]}, frozenset({1})), limit=1).complete
    with pytest.raises(ValueError, match="limit is 0 states; it must be at least 1"):
        explore(graph_world({}), limit=0)


def test_counterexample_is_reported_even_where_the_bound_was_hit() -> None:
    found = explore(graph_world({0: [1], 1: [2], 2: [3]}, bad=frozenset({1})), limit=2)
    assert verdict(found, "not bad") == "broken"


def test_search_stops_once_every_invariant_has_its_counterexample() -> None:
    found = explore(graph_world({0: [1], **{i: [i + 1] for i in range(1, 1000)}}, bad=frozenset({1, 2})))
    assert len(found.states) == 2
    assert found.broken["not bad"].message == "state 1 is bad"


def test_first_counterexample_of_one_invariant_does_not_hide_another() -> None:
    world = stepwise(
        0, lambda n: ["up"] if n < 5 else [], lambda n, event: n + 1, lambda n: "top" if n == 5 else "",
        {"below two": lambda n: None if n < 2 else str(n), "below four": lambda n: None if n < 4 else str(n)},
    )  # fmt: skip
    found = explore(world)
    assert {name: len(case.trace) for name, case in found.broken.items()} == {"below two": 2, "below four": 4}


def test_broken_start_has_an_empty_trace() -> None:
    found = explore(graph_world({}, bad=frozenset({0})))
    assert found.broken["not bad"].trace == ()


def test_coverage_counts_events_rejections_and_ends() -> None:
    def step(n: int, event: str) -> int | Rejected:
        if event == "up":
            return n + 1 if n < 2 else Rejected("full")
        return 0

    found = explore(stepwise(0, lambda n: ["up", "reset"], step, lambda n: "full" if n == 2 else ""))
    assert found.events == {"up": 2, "reset": 3}
    assert found.rejections == {"up: full": 1}
    assert found.terminals == {"full": 1}
    require(found, None, "an end", ["up", "reset"], ["up: full"], ["full"])
    for missing in (["events", "down"], ["rejections", "up: empty"], ["terminals", "empty"]):
        with pytest.raises(NotExercised, match=missing[1]):
            require(found, None, "an end", **{missing[0]: [missing[1]]})  # type: ignore[arg-type]


def test_require_raises_the_violation_with_its_table_and_knows_its_invariants() -> None:
    found = explore(graph_world({0: [1]}, bad=frozenset({1})))
    with pytest.raises(Violation) as broken:
        require(found, "not bad", "good states only")
    assert broken.value.trace == ({"step": 1, "event": "go", "with": "1"},)
    for ask in (lambda: require(found, "no such", ""), lambda: verdict(found, "no such")):
        with pytest.raises(WorldError, match="'no such' is not one of not bad"):
            ask()


def test_diagram_leaves_out_rejected_events() -> None:
    def step(n: int, event: str) -> int | Rejected:
        return n + 1 if n < 3 else Rejected("full")

    found = explore(stepwise(0, lambda n: ["up"], step, lambda n: "full" if n == 3 else ""))
    assert diagram(found, lambda n: "empty" if n == 0 else "filled" if n < 3 else "full") == (
        ("empty", "up", "filled"), ("filled", "up", "filled"), ("filled", "up", "full"))  # fmt: skip


graphs = st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=4), max_size=8)
some = st.frozensets(st.integers(0, 7), max_size=3)


def distances(graph: Graph) -> dict[int, int]:
    """Brute force: relax every edge until nothing changes."""
    far = {0: 0}
    for _ in range(10):
        for here, theres in graph.items():
            for there in theres if here in far else ():
                far[there] = min(far.get(there, 99), far[here] + 1)
    return far


@given(graphs, some, some)
def test_agrees_with_brute_force_on_random_graphs(graph: Graph, ends: frozenset[int], bad: frozenset[int]) -> None:
    far = distances(graph)
    everything = explore(graph_world(graph, ends))
    assert set(everything.states) == set(far)
    assert everything.transitions == sum(len(graph.get(n, [])) for n in far)
    stuck = [far[n] for n in far if not closes(graph, n, ends)]
    assert (everything.stuck is None) == (not stuck)
    if everything.stuck is not None:
        assert len(everything.stuck.trace) == min(stuck)
    found = explore(graph_world(graph, ends, bad))
    due = [far[n] for n in bad if n in far]
    assert ("not bad" in found.broken) == bool(due)
    if due:
        assert len(found.broken["not bad"].trace) == min(due)


def closes(graph: Graph, start: int, ends: frozenset[int]) -> bool:
    """Whether an end lies in the transitive closure of ``start``."""
    reached = {start}
    for _ in range(10):
        reached |= {there for here in reached for there in graph.get(here, [])}
    return not reached.isdisjoint(ends)


@dataclass(frozen=True)
class Box:
    got: tuple[int, ...] = ()
    asked: int = 0


def asks(state: Box, event: Any) -> Moved | Rejected:
    if event == "ask":
        return Moved(replace(state, asked=state.asked + 1), (("server", ("question", state.asked)),))
    return Moved(replace(state, got=tuple(sorted({*state.got, event[1]}))))


def answers(state: Box, event: Any) -> Moved | Rejected:
    if event[1] in state.got:
        return Rejected("answered")
    return Moved(
        replace(state, got=(*state.got, event[1])), (("client", ("answer", event[1])), ("log", ("saw", event[1])))
    )


def asking(network: Network, questions: int = 2) -> World:
    return compose(
        {
            "client": Machine(Box(), asks, lambda s: ["ask"] if s.asked < questions else []),
            "server": Machine(Box(), answers),
            "log": Machine((), lambda seen, event: Moved((*seen, event[1])), at_once=True),
        },
        network,
        lambda client, server, log, flight: "answered" if len(client.got) == questions and not flight else "",
        {
            "in order": lambda client, server, log, flight: None if list(log) == sorted(log) else f"log {log}",
            "logged": lambda client, server, log, flight: None if log == server.got else "log and server differ",
            "known": lambda client, server, log, flight: None if set(client.got) <= set(log) else "out of nowhere",
            "once": lambda client, server, log, flight: None if len(set(log)) == len(log) else "twice",
        },
        lambda client, server, log, flight: {"log": log},
    )


def test_network_reorders_and_the_shortest_way_is_shown() -> None:
    found = explore(asking(Network()))
    assert set(found.broken) == {"in order"}
    assert [row["event"] for row in found.broken["in order"].trace] == [
        "client ask", "client ask", "server gets question", "server gets question"]  # fmt: skip
    assert [row["with"] for row in found.broken["in order"].trace] == ["", "", "1", "0"]
    assert found.broken["in order"].trace[-1]["log"] == (1, 0)
    assert found.stuck is None


def test_lost_message_is_lost_and_a_client_that_does_not_ask_again_is_stuck() -> None:
    found = explore(asking(Network(losses=1)))
    assert found.stuck is not None
    assert [row["event"] for row in found.stuck.trace] == ["client ask", "lost question"]
    assert found.events["lost answer"] > 0


def test_copies_reach_the_machine_twice_and_a_refused_one_is_consumed() -> None:
    found = explore(asking(Network(duplicates=1), questions=1))
    assert found.rejections == {"server gets question: answered": 2}
    assert found.events["server gets copy of question"] == 1
    assert "once" not in found.broken
    refused = {state for state in found.states if found.world.view(state)[1].got and found.world.view(state)[3]}
    assert refused


def test_sure_messages_are_neither_lost_nor_copied_but_still_reordered() -> None:
    found = explore(asking(Network(losses=None, duplicates=None, sure=frozenset({"question"}))))
    assert "lost answer" in found.events
    assert not {"lost question", "server gets copy of question"} & set(found.events)
    assert "in order" in found.broken


def test_unbounded_network_stays_finite() -> None:
    found = explore(asking(Network(losses=None, duplicates=None), questions=1))
    assert found.complete


def test_observer_that_refuses_or_sends_is_an_error_of_the_world() -> None:
    for reply, deed in ((Rejected("no"), "refused it: no"), (Moved(0, (("a", "x"),)), "sent something")):
        world = compose(
            {
                "a": Machine(0, lambda s, e: Moved(s, (("b", "tell"),)), lambda s: ["go"]),
                "b": Machine(0, lambda s, e, reply=reply: reply, at_once=True),
            },
            Network(),
            lambda *parts: "",
        )  # fmt: skip
        with pytest.raises(ValueError, match=deed):
            explore(world)


def test_each_machine_step_is_worked_out_once_per_state_and_event() -> None:
    calls: list[tuple[Any, Any]] = []

    def counted(state: Box, event: Any) -> Moved | Rejected:
        calls.append((state, event))
        return answers(state, event)

    world = compose(
        {"client": Machine(Box(), asks, lambda s: ["ask"] if s.asked < 3 else []), "server": Machine(Box(), counted),
         "log": Machine((), lambda seen, event: Moved((*seen, event[1])), at_once=True)},
        Network(1, 1), lambda *parts: "",
    )  # fmt: skip
    found = explore(world)
    assert len(calls) == len(set(calls))
    assert len(found.states) > 10 * len({server for _, server, _, _ in map(world.view, found.states)})


def counting(network: Network, needed: int, misfortunes: frozenset[str] = frozenset()) -> World:
    """One message, and a receiver that is content after ``needed`` of them, or after a crash."""
    return compose(
        {
            "sender": Machine(0, lambda n, event: Moved(n + 1, (("receiver", "tell"),)), lambda n: [] if n else ["go"]),
            "receiver": Machine(0, lambda n, event: Moved(9 if event == "crash" else n + 1),
                                lambda n: ["crash"] if misfortunes else [], misfortunes=misfortunes),
        },
        network,
        lambda sender, receiver, flight: "content" if receiver >= needed else "",
    )  # fmt: skip


def test_nobody_waits_for_a_copy_a_loss_or_a_crash() -> None:
    assert explore(counting(Network(duplicates=1), needed=1)).stuck is None
    waits = explore(counting(Network(duplicates=1), needed=2))
    assert waits.terminals == {"content": 1}  # reached, by a copy
    assert waits.stuck is not None
    assert waits.stuck.trace == ()
    crashes = explore(counting(Network(), 2, misfortunes=frozenset({"crash"})), limit=100)
    assert crashes.terminals
    assert crashes.stuck is not None


@dataclass(unsafe_hash=True)
class Tally:
    count: int = 0


def changed_in_place(state: Tally) -> Tally:
    state.count += 1
    return state


def test_worlds_that_cannot_be_searched_are_refused_by_name() -> None:
    def alone(step: Any) -> World:
        return compose({"a": Machine(Tally(), step, lambda s: ["go"])}, Network(), lambda *parts: "")

    for step, why in (
        (lambda s, e: Moved(changed_in_place(s)), "machine a changed the state that it was given with 'go'"),
        (lambda s, e: None, "machine a answered 'go' with None; it must be Moved or Rejected"),
        (lambda s, e: Moved(s, (("nobody", "hello"),)), "machine a sends to 'nobody'; it must be one of a"),
        (lambda s, e: Rejected(""), "a refusal gives '' as its reason"),
    ):
        with pytest.raises(WorldError, match=why):
            explore(alone(step))
    with pytest.raises(WorldError, match="the step of 'go' changed the state"):
        explore(stepwise(Tally(), lambda s: ["go"], lambda s, e: changed_in_place(s), lambda s: ""))
    for name in ("losses", "duplicates"):
        with pytest.raises(WorldError, match=f"{name} is -1; it must be at least 0"):
            asking(Network(**{name: -1}))


def test_event_names() -> None:
    assert event_name("ask") == "ask"
    assert event_name(("ask", 3)) == "ask"


@pytest.mark.slow
def test_benchmark_searches_the_same_world_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    where = Path(__file__).parent.parent / "benchmarks" / "explore.py"
    spec = importlib.util.spec_from_file_location("benchmark_explore", where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmark_explore", module)
    spec.loader.exec_module(module)
    found, fast, slow = module.compare(rounds=1)
    assert found.complete
    assert not found.broken
    assert min(fast, slow) > 0
