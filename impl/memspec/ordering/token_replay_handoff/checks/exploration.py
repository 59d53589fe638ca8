"""Clauses about both sides together, in every interleaving of small worlds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from memspec.conformance import expect, once
from memspec.explore import Exploration, explore, require, verdict
from memspec.ordering.token_replay_handoff.checks.base import CHECKS, Event, PrefillSide, Sides, needs
from memspec.ordering.token_replay_handoff.checks.walk import prefill_walk
from memspec.ordering.token_replay_handoff.checks.world import Setting, handoff_world
from memspec.ordering.token_replay_handoff.data import Placement, Plan

LIMIT = 1_500  # states of one small world; a broken side may have endless ones
FAR = 20_000  # states for sides with which nothing is wrong so far: they may say more, and more often, than ours


Names = tuple[str, ...]  # of worlds


@dataclass(frozen=True)
class Search:
    """A world, and what a search of it must have reached before it says anything."""

    name: str
    setting: Setting
    events: tuple[str, ...] = ()
    rejections: tuple[str, ...] = ()
    ends: tuple[str, ...] = ("handed over",)


ONE = Plan(bridge_max=1, max_new_tokens=2)
SHARED = Plan(prompt_tokens=30, placement="copy-on-write", recurrent=True, bridge_max=1, max_new_tokens=2)
HERE = "finished at the prefill side"
THREE = Search(
    "three bridge tokens, any order", Setting(Plan(), 4, repeats=False, landed=True),
    ("decode gets append", "decode gets seal", "decode gets commit", "prefill gets ack", "prefill gets committed", "decode replay"),
    ("decode gets append: gap", "decode gets commit: unsealed", "prefill decode: budget", "prefill decode: sealed", "prefill emit: sealed"),
)  # fmt: skip
ENDS = tuple(
    Search(f"end of the sequence at token {length}", setting, ("decode gets cancel", "prefill gets cancelled", *events),
           ("prefill decode: finished",), ends)
    for length, setting, events, ends in (
        (1, Setting(SHARED, 1, transfer_fails=True, repeats=False), ("transfer lands", "transfer fails"), (HERE,)),
        (2, Setting(Plan(), 2, repeats=False, landed=True), (), (HERE, "handed over")),
    )
)  # fmt: skip
NOTHING = Search(
    "nothing bridged, a loss", Setting(Plan(bridge_min=0, bridge_max=0, max_new_tokens=1), 1, losses=1, landed=True),
    ("lost seal", "lost commit", "lost committed"),
)  # fmt: skip
COPIES = Search(
    "a duplicate, stray epochs", Setting(ONE, 2, duplicates=1, strays=True, repeats=False, landed=True),
    ("decode gets copy of commit", "decode gets copy of append", "prefill gets copy of committed", "prefill gets copy of ack"),
    ("prefill gets committed: not-offered", "decode commit: stale-epoch", "decode append: stale-epoch", "decode cancel: stale-epoch",
     "prefill ack: stale-epoch", "prefill committed: stale-epoch", "prefill cancelled: stale-epoch"),
)  # fmt: skip
LOSSES = Search(
    "a loss, the bridge delayed",
    Setting(Plan(prompt_tokens=30, placement="delay", bridge_max=1, max_new_tokens=2), 2, losses=1, shows=False),
    ("lost append", "lost ack", "lost seal", "lost commit", "lost committed"),
    ("prefill decode: page-frozen", "decode gets seal: before-ready"),
)  # fmt: skip
COPYING = Search(
    "bridge during the copy, which may fail",
    Setting(SHARED, 2, transfer_fails=True, repeats=False),
    ("transfer lands", "transfer fails", "prefill gets transfer_failed", "prefill decode"), ends=("handed over", HERE),
)  # fmt: skip
FAILURE = Search(
    "replay may fail", Setting(ONE, 2, replay_fails=True, give_up=("committing",), repeats=False, landed=True, shows=False),
    ("decode replay_fails", "prefill gets failed"),
    ends=("handed over", HERE),
)  # fmt: skip
DEATH = Search(
    "the decode side may die, the prefill side may give up",
    Setting(ONE, 2, crash=("replaying", "committed"), give_up=("committing",), repeats=False, landed=True, shows=False),
    ("decode crash", "client fence", "prefill gets fenced", "prefill cancel", "decode gets cancel", "prefill gets cancelled",
     "decode gets commit"),
    ("decode gets commit: terminal", "prefill gets fenced: ended"), ("handed over", HERE, "lost with the decode side"),
)  # fmt: skip
PLACED: tuple[tuple[int, Placement], ...] = (
    (32, "aligned"),
    (30, "copy-on-write"),
    (17, "copy-on-write"),
    (30, "delay"),
)
SEARCHES = {search.name: search for search in (THREE, *ENDS, NOTHING, COPIES, LOSSES, COPYING, FAILURE, DEATH)}
ALL = tuple(SEARCHES)
# worlds in which what has to be sent again is sent again, or the prefill side may give up instead
WITH_A_WAY_OUT = (ENDS[0].name, NOTHING.name, LOSSES.name, FAILURE.name, DEATH.name)


@once
def searched(subject: Sides, name: str, limit: int) -> Exploration:
    return explore(handoff_world(subject, SEARCHES[name].setting), limit)


def explored(subject: Sides, name: str) -> Exploration:
    found: Exploration = searched(subject, name, LIMIT)
    if not found.complete and not any(searched(subject, other, LIMIT).broken for other in ALL):
        found = searched(subject, name, FAR)
    return found


def decide(subject: Sides, names: Names, invariants: tuple[str | None, ...], due: str) -> None:
    """Look for a counterexample in every world first; then ask whether each of them was explored far enough."""
    needs(subject, Sides)
    found = {name: explored(subject, name) for name in names}
    for name, invariant in product(names, invariants):
        if verdict(found[name], invariant) == "broken":
            require(found[name], invariant, f"{due} (world: {name})")
    for name in names:
        search = SEARCHES[name]
        require(found[name], invariants[0], due, search.events, search.rejections, search.ends)


@CHECKS.clause(lambda: [ALL], Sides)
def one_emitter(subject: Sides, case: Names) -> None:
    due = "at most one side may emit, and after the commit not the prefill side"
    decide(subject, case, ("one owner", "silent after commit"), due)


@CHECKS.clause(lambda: [ALL], Sides)
def nothing_lost_or_repeated(subject: Sides, case: Names) -> None:
    decide(subject, case, ("stream",), "every token once, in order")


@CHECKS.clause(lambda: [ALL], Sides)
def retained_until_known(subject: Sides, case: Names) -> None:
    decide(subject, case, ("retained",), "the KV is freed once, after the commit is known or the request is done")


@CHECKS.clause(lambda: [ALL], Sides)
def carries_its_epoch(subject: Sides, case: Names) -> None:
    decide(subject, case, ("epochs",), "every message carries the epoch")


@CHECKS.clause(lambda: [WITH_A_WAY_OUT], Sides)
def never_stuck(subject: Sides, case: Names) -> None:
    decide(subject, case, (None,), "an end stays within reach")


def prompts() -> Iterator[Names | Plan]:
    for recurrent in (False, True):
        yield from (Plan(prompt_tokens=tokens, placement=how, recurrent=recurrent) for tokens, how in PLACED)
    yield (COPYING.name,)


@CHECKS.clause(prompts, PrefillSide)
def prompt_unchanged(subject: Any, case: Names | Plan) -> None:
    if isinstance(case, tuple):
        decide(subject, case, ("pages",), "the prompt stays as the transfer reads it")
        return
    if case.placement == "delay":
        for told in ("transfer_done", "transfer_failed"):
            prefill_walk(subject, case, (("decode", 10), "page-frozen"), ((told, 9), ""), (("decode", 10), ""))
        return
    rows = [position for position in range(case.prompt_tokens) if position // 16 == case.prompt_tokens // 16]
    copy: list[Event] = [("copy", case.prompt_tokens // 16, len(rows))] if rows else []
    copy += [("snapshot",)] if case.recurrent else []
    two = ((("decode", 10), ""), (("decode", 11), ""))
    for steps, due in ((two[:1], [*copy, ("write", case.prompt_tokens)]), (two, [("write", case.prompt_tokens + 1)])):
        expect([event for to, event in prefill_walk(subject, case, *steps) if to == "pages"], due)


def bridges() -> Iterator[Names | Plan]:
    yield from (Plan(bridge_max=most) for most in (1, 2, 3))
    yield Plan(bridge_min=0, bridge_max=0)
    yield THREE.name, COPYING.name


@CHECKS.clause(bridges, PrefillSide)
def bridge_count(subject: Any, case: Names | Plan) -> None:
    if isinstance(case, tuple):
        decide(subject, case, ("budget",), "no more bridge tokens than the budget")
        return
    ready = (("transfer_done", 9), "")
    if case.bridge_min:
        prefill_walk(subject, case, ready, (("seal",), "below-minimum"), (("decode", 10), ""), (("seal",), ""))
    full = [(("decode", 10 + position), "") for position in range(case.bridge_max)]
    sent = prefill_walk(subject, case, *full, (("decode", 19), "budget"), ready, (("seal",), ""))
    expect(("decode", ("seal", 9, case.bridge_max)) in sent, True)
