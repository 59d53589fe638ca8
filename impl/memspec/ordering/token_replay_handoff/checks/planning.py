"""Clauses about what is settled before the first bridge token, and about the arithmetic of catching up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, Protocol

from memspec.conformance import Violation, expect, refused
from memspec.ordering.token_replay_handoff.checks.base import CHECKS, Negotiation
from memspec.ordering.token_replay_handoff.data import Request, Settings


class Admission(Protocol):
    """The arithmetic. Answers are compared by attribute, so any record with these names will do."""

    def estimate_catch_up(
        self, remaining_copy_ms: Any, prefill_tpot_ms: Any, replay_tokens_per_s: Any, replay_startup_ms: Any = 0.0
    ) -> Any: ...
    def bridge_budget(self, max_new_tokens: int, configured_max: int, configured_min: int) -> tuple[int, int]: ...
    def admit(
        self,
        remaining_copy_ms: Any,
        prefill_tpot_ms: Any,
        replay_tokens_per_s: Any,
        *,
        budget_tokens: int,
        replay_startup_ms: Any = 0.0,
        queue_delay_ms: Any = 0.0,
    ) -> Any: ...
    def page_tail(self, prompt_tokens: int, page_size: int) -> Any: ...
    def place_bridge(
        self, prompt_tokens: int, page_size: int, free_pages: int, *, copy_on_write: bool = True, delay: bool = True
    ) -> str: ...
    def batched_replay_plan(self, log: Sequence[int]) -> Any: ...


BOTH = Settings()
ASKED = Request(prompt_tokens=30, max_new_tokens=100)
OTHER: dict[str, Any] = {
    "enabled": False,
    "log_capacity": 31,
    "replay_mode": "decode",
    "model": "model-b",
    "tensor_parallel": 2,
    "kv_layout": "hnd",
    "page_size": 1,
    "copy_on_write": False,
    "delay": False,
}


@CHECKS.clause(lambda: sorted(OTHER), Negotiation)
def settings_agree(subject: Negotiation, case: str) -> None:
    other = replace(BOTH, **{case: OTHER[case]})
    for prefill, decode in ((BOTH, other), (other, BOTH)):
        verdict = subject.handoff_plan(prefill, decode, ASKED)
        expect(verdict.plan, None)
        if case not in verdict.reason:
            raise Violation(verdict.reason, f"a reason that names {case}")


def choices() -> Iterator[tuple[int, bool, bool, int]]:
    return product((32, 30), (True, False), (True, False), (0, 1))


def choice(prompt: int, copy: bool, delay: bool, free: int) -> str:
    """The first that is possible: nothing shared, a private copy, waiting, the ordinary path."""
    possible = (prompt % 16 == 0, copy and free > 0, delay, True)
    return ("aligned", "copy-on-write", "delay", "refuse")[possible.index(True)]


@CHECKS.clause(choices, Negotiation)
def agreed_is_handed_over(subject: Negotiation, case: tuple[int, bool, bool, int]) -> None:
    prompt, copy, delay, free = case
    both = replace(BOTH, copy_on_write=copy, delay=delay)
    plan = subject.handoff_plan(both, both, replace(ASKED, prompt_tokens=prompt, free_pages=free)).plan
    if (due := choice(*case)) == "refuse":
        expect(plan, None)
        return
    expect(
        plan is not None and (plan.placement, plan.bridge_min, plan.bridge_max, plan.prompt_tokens, plan.page_size),
        (due, 1, 15, prompt, 16),
    )
    expect(plan is not None and (plan.max_new_tokens, plan.recurrent), (100, False))


def ordinary() -> Iterator[tuple[Settings, Request]]:
    yield replace(BOTH, enabled=False), ASKED
    for change in ({"streaming": False}, {"greedy": False}, {"max_new_tokens": 1}, {"max_new_tokens": 0}):
        yield BOTH, replace(ASKED, **change)


@CHECKS.clause(ordinary, Negotiation)
def ordinary_path(subject: Negotiation, case: tuple[Settings, Request]) -> None:
    both, request = case
    expect(subject.handoff_plan(both, both, request).plan, None)
    plan = subject.handoff_plan(BOTH, BOTH, replace(ASKED, max_new_tokens=2)).plan
    expect(plan is not None and plan.bridge_max, 1)


@CHECKS.clause(lambda: [1, 16], Negotiation)
def recurrent_needs_a_snapshot(subject: Negotiation, case: int) -> None:
    paged, recurrent = replace(BOTH, page_size=case), replace(ASKED, recurrent=True)
    expect(subject.handoff_plan(paged, paged, recurrent).plan, None)
    plan = subject.handoff_plan(paged, paged, replace(recurrent, snapshot=True)).plan
    expect(plan is not None and plan.recurrent, True)


@CHECKS.clause(choices, Admission)
def page_choice(subject: Admission, case: tuple[int, bool, bool, int]) -> None:
    prompt, copy, delay, free = case
    expect(subject.place_bridge(prompt, 16, free, copy_on_write=copy, delay=delay), choice(*case))
    for page in (1, 2, 16):
        for tokens in range(1, 35):
            tail = subject.page_tail(tokens, page)
            shared = [position for position in range(tokens) if position // page == tokens // page]
            expect((tail.page, tail.rows), (tokens // page, len(shared)))


@CHECKS.clause(
    lambda: [(m, top, least) for m in range(6) for top in (1, 3, 15) for least in range(1, top + 1)], Admission
)
def bridge_bounds(subject: Admission, case: tuple[int, int, int]) -> None:
    most_new, top, least = case
    possible = [n for n in range(1, top + 1) if most_new - n >= 1]
    expect(tuple(subject.bridge_budget(most_new, top, least)), (min(least, len(possible)), len(possible)))


@CHECKS.clause(lambda: [(100, 20, 500, 10, 6), (100, 20, 500, 0, 5), (63, Fraction(13, 2), 400, 13, 12)], Admission)
def catch_up_estimate(subject: Admission, case: tuple[Any, ...]) -> None:
    copying, per_token, rate, startup, due = case
    predicted = subject.estimate_catch_up(copying, per_token, rate, startup)
    expect((predicted.feasible, predicted.backlog_tokens), (True, due))
    time = Fraction(startup) + Fraction(1000 * due) / (rate - 1000 / Fraction(per_token))
    expect(math.isclose(predicted.catch_up_ms, time, rel_tol=1e-9), True)
    started = len([k for k in range(1000) if k * Fraction(per_token) < copying + startup])
    expect(predicted.backlog_tokens, started)


@CHECKS.clause(
    lambda: [(100, 20, 500), (200, 10, 300), (60, 6, 400), (100, 20, 50), (100, 20, 49), (10, 5, 200)], Admission
)
def admission(subject: Admission, case: tuple[int, int, int]) -> None:
    copying, per_token, rate = case
    backlog = -(-copying // per_token)
    if rate * per_token <= 1000:
        predicted = subject.estimate_catch_up(*case)
        expect((predicted.feasible, predicted.catch_up_ms, predicted.backlog_tokens), (False, math.inf, backlog))
        expect(subject.admit(*case, budget_tokens=1000).admitted, False)
        return
    expect(subject.admit(0, *case[1:], budget_tokens=0).admitted, False)
    for startup, queue in ((0, 0), (13, 0), (0, 40), (13, 40)):
        waiting = copying + startup + queue
        caught = Fraction(1000 * -(-waiting // per_token)) / (rate - Fraction(1000, per_token))
        bridge, delays = (
            math.ceil((waiting + caught) / per_token),
            {"replay_startup_ms": startup, "queue_delay_ms": queue},
        )
        expect(subject.admit(*case, budget_tokens=bridge, **delays).admitted, True)
        expect(subject.admit(*case, budget_tokens=bridge - 1, **delays).admitted, False)


@CHECKS.clause(lambda: [(21, 22, 23, 24), (1, 2)], Admission)
def replay_leaves_the_last(subject: Admission, case: tuple[int, ...]) -> None:
    plan = subject.batched_replay_plan(list(case))
    expect((tuple(plan.inputs), plan.expected), (case[:-1], case[-1]))


@CHECKS.clause(lambda: [("copy", -1, 20, 50, 0, -1), ("tpot", 100, 0, 50, 0, 0), ("tpot", 100, -2, 50, 0, -2), ("rate", 100, 20, 0, 0, 0),
                        ("startup", 100, 20, 50, -3, -3), ("copy", math.inf, 20, 50, 0, "inf")], Admission)  # fmt: skip
def meaningless_is_refused(subject: Admission, case: tuple[Any, ...]) -> None:
    _, copying, per_token, rate, startup, named = case
    refused(lambda: subject.estimate_catch_up(copying, per_token, rate, startup), named)
    refused(lambda: subject.batched_replay_plan([21]), "1 tokens", "at least 2")
    refused(lambda: subject.page_tail(0, 16), "prompt_tokens is 0")
    refused(lambda: subject.page_tail(30, -16), "page_size is -16")
    refused(lambda: subject.bridge_budget(8, 3, 0), "configured_min is 0")
    refused(lambda: subject.bridge_budget(8, 3, 4), "configured_max is 3", "at least 4")
