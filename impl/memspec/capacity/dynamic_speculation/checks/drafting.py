"""The drafter's KV, and the tokens that come out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from memspec.capacity.dynamic_speculation.checks import oracle
from memspec.capacity.dynamic_speculation.checks.facets import CHECKS, Decoder, DraftKeeper
from memspec.capacity.dynamic_speculation.data import Decoded, Loop, Policy
from memspec.conformance import Violation, expect

Events = tuple[tuple[int, int], ...]
POLICIES: tuple[Policy, ...] = ("every-step", "catch-up")


def events() -> Iterator[tuple[Events, Policy]]:
    """Steps of (K, committed tokens): K falls and rises, a prompt before a pause, and all traces of three steps over K 0 and 3."""
    for policy in POLICIES:
        yield ((3, 2), (0, 1), (0, 1), (3, 1)), policy
        yield ((0, 20), (0, 1), (0, 1), (2, 1), (2, 3)), policy
        for ks in product((0, 3), repeat=3):
            yield tuple(zip(ks, (5, 1, 2), strict=True)), policy


@CHECKS.clause(events, DraftKeeper)
def current_before_proposal(keeper: DraftKeeper, case: tuple[Events, Policy]) -> None:
    steps, policy = case
    rows: set[int] = set()
    committed, trace = 0, []
    for (k, tokens), step in zip(steps, keeper.follow(steps, policy), strict=True):
        committed += tokens
        rows |= set(range(step.first, step.end))
        missing = committed - len(rows & set(range(committed)))
        trace.append({"K": k, "committed": committed, "rows written": len(rows), "missing": missing})
        if step.proposed and missing:
            raise Violation(f"{missing} committed tokens have no drafter row at a proposal", "none", trace)


@CHECKS.clause(events, DraftKeeper)
def debt_recorded(keeper: DraftKeeper, case: tuple[Events, Policy]) -> None:
    steps, policy = case
    committed = written = 0
    rows: set[int] = set()
    for (_, tokens), step in zip(steps, keeper.follow(steps, policy), strict=True):
        committed += tokens
        written += step.end - step.first
        rows |= set(range(step.first, step.end))
        expect((len(rows) + step.debt, written, max(rows, default=-1) < committed), (committed, len(rows), True))


@CHECKS.clause(events, DraftKeeper)
def sync_is_a_forward(keeper: DraftKeeper, case: tuple[Events, Policy]) -> None:
    steps, policy = case
    idle = {"every-step": 1, "catch-up": 0}[policy]
    found = keeper.follow(steps, policy)
    expect([(step.proposed, step.forwards) for step in found], [(k, k or idle) for k, _ in steps])
    for step in found:
        if step.end > step.first and not step.forwards:
            raise Violation(step, "no row that no forward wrote")


TARGET = ((1, 2, 0, 3), (2, 0, 3, 1), (3, 1, 2, 0), (0, 3, 1, 2))
NEAR = ((1, 2, 0, 3), (2, 0, 3, 1), (3, 1, 2, 1), (0, 3, 2, 2))  # differs from the target in two places
FAR = tuple(tuple((token + 1) % 4 for token in row) for row in TARGET)


def loops(perfect: bool) -> Iterator[Loop]:
    for policy in POLICIES:
        for ks in ((0,), (3,), (4, 0, 0, 4), (2, 0, 0, 2, 1), (4, 3, 0, 1, 2)):
            for drafter in (TARGET,) if perfect else (NEAR, FAR):
                yield Loop(TARGET, drafter, (3, 0, 2), 11, ks, policy)


def accounted(found: Decoded, loop: Loop) -> None:
    """The first token comes of the prompt; each later step emits what it accepts and one more, and the last may be cut short."""
    steps = [accepted + 1 for accepted in found.accepted]
    emitted = 1 + sum(steps)
    if len(found.verified) != len(steps) or not emitted - (steps[-1] if steps else 1) < loop.count <= emitted:
        raise Violation((found.verified, found.accepted), f"steps that emit {loop.count} tokens, the last one needed")


@CHECKS.clause(lambda: loops(perfect=False), Decoder)
def greedy_output(decoder: Decoder, loop: Loop) -> None:
    found = decoder.decode(loop)
    expect(tuple(found.tokens), oracle.greedy(loop))
    accounted(found, loop)


@CHECKS.clause(lambda: loops(perfect=True), Decoder)
def perfect_drafter_accepted(decoder: Decoder, loop: Loop) -> None:
    found = decoder.decode(loop)
    accounted(found, loop)
    due = [loop.ks[min(step, len(loop.ks) - 1)] for step in range(len(found.verified))]
    if due and loop.count <= 1 + sum(found.accepted) + len(due) and found.verified[-1] < due[-1]:
        due[-1] = found.verified[-1]  # the last step may leave out drafts that nobody wants
    expect((list(found.verified), list(found.accepted)), (due, due))
