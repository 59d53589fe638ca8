"""Greedy serving of several requests with a target and a drafter, K chosen step by step, on the device of the models.

A request's first step is its prompt, alone and eager. All others decode together in one uniform batch: the last token and the drafts
of the step before. Then the drafter writes what it owes and proposes, in one batch too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from memspec.capacity.dynamic_speculation.data import Policy
from memspec.capacity.dynamic_speculation.reference.drafter import rows_to_write
from memspec.capacity.dynamic_speculation.reference.loop import agreeing
from memspec.capacity.dynamic_speculation.tensors.model import stale_rows
from memspec.capacity.dynamic_speculation.tensors.runner import Runner

Writes = Callable[[int, int, int, Policy], tuple[int, int]]
KOf = Callable[[int, int], int]  # (step, requests scheduled in it) -> drafts to ask for


class Request(NamedTuple):
    """A prompt of one token or more, the number of tokens of its answer, and the step in which it arrives."""

    prompt: tuple[int, ...]
    answer: int
    arrives: int = 0


class Row(NamedTuple):
    """One step: requests scheduled, drafts asked for and verified (a request), accepted (all), drafter forwards, stale rows.

    ``stale``: rows of the drafter's cache, all requests together, that differ from what it would compute, at a proposal; -1 unless asked.
    """

    scheduled: int
    k: int
    width: int
    accepted: int
    draft_forwards: int
    stale: int


@dataclass
class Live:
    slot: int
    request: Request
    tokens: list[int]
    current: int = 0  # rows that the drafter has, or believes to have
    drafts: list[int] = field(default_factory=list)

    @property
    def left(self) -> int:
        return len(self.request.prompt) + self.request.answer - len(self.tokens)


class Served(NamedTuple):
    """Tokens of each request, in the order in which they were given, and the steps."""

    tokens: tuple[tuple[int, ...], ...]
    rows: tuple[Row, ...]


def on(runner: Runner, rows: Sequence[Sequence[int]], starts: Sequence[int], slots: Sequence[int]) -> Tensor:
    """The model's choice at each position, (batch, query), on the host."""
    device = runner.model.device
    given = (torch.tensor([list(row) for row in rows], device=device), torch.tensor(starts, device=device),
             torch.tensor(slots, device=device))  # fmt: skip
    return runner.run(*given).argmax(-1).cpu()


def verify(target: Runner, live: Sequence[Live]) -> int:
    """Decode all of ``live`` in one batch of equal width. Returns how many drafts were accepted."""
    accepted = 0
    chosen = on(
        target, [[r.tokens[-1], *r.drafts] for r in live], [len(r.tokens) - 1 for r in live], [r.slot for r in live]
    )
    for request, choices in zip(live, chosen.tolist(), strict=True):
        good = agreeing(choices, request.drafts)
        accepted += good
        request.tokens += choices[: good + 1][: request.left]
    return accepted


def propose(drafter: Runner, live: Sequence[Live], k: int, policy: Policy, writes: Writes) -> int:
    """Bring the drafter's rows up to date and draft ``k`` tokens for each request. Returns the number of forwards.

    Requests that owe fewer rows than others repeat their last token: the rows past their end are written again before they are read.
    """
    spans = [writes(request.current, len(request.tokens), k, policy) for request in live]
    longest = max(end - first for first, end in spans)
    slots = [request.slot for request in live]
    for request, (_, end) in zip(live, spans, strict=True):
        request.current, request.drafts = end, []
    if not longest:
        return 0
    owed = [
        r.tokens[first:end] + [r.tokens[-1]] * (longest - end + first)
        for r, (first, end) in zip(live, spans, strict=True)
    ]
    chosen = on(drafter, owed, [first for first, _ in spans], slots)
    forwards = 1
    for request, choices, (first, end) in zip(live, chosen.tolist(), spans, strict=True):
        request.drafts = [choices[end - first - 1]][:k]
    for _ in range(k - 1):
        ends = [len(request.tokens) + len(request.drafts) - 1 for request in live]
        chosen = on(drafter, [[request.drafts[-1]] for request in live], ends, slots)
        forwards += 1
        for request, (choice,) in zip(live, chosen.tolist(), strict=True):
            request.drafts.append(choice)
    return forwards


def serve(
    target: Runner,
    drafter: Runner,
    requests: Sequence[Request],
    k_of: KOf,
    policy: Policy = "every-step",
    writes: Writes = rows_to_write,
    look: bool = False,
) -> Served:
    """Serve ``requests`` to their end; ``look`` compares the drafter's rows with fresh ones after each proposal.

    Both caches have a slot for each request and one to spare, and positions for its tokens and as many more as the drafter can owe at
    once (the longest prompt and what a pause adds), or ``k_max + 1``. ``writes`` is the
    drafter's rule, to be replaced by a broken one.
    """
    everyone = [Live(slot, request, list(request.prompt)) for slot, request in enumerate(requests)]
    waiting, running, rows = list(everyone), list[Live](), list[Row]()
    while waiting or running:
        step = len(rows)
        coming = [live for live in waiting if live.request.arrives <= step]
        waiting = [live for live in waiting if live.request.arrives > step]
        width = len(running[0].drafts) if running else 0
        accepted = verify(target, running) if running else 0
        for live in coming:
            first = on(target, [live.tokens], [0], [live.slot])
            live.tokens.append(int(first[0, -1]))
        scheduled = [*running, *coming]
        k = k_of(step, len(scheduled))
        running = [live for live in scheduled if live.left > 0]
        forwards = propose(drafter, running, k, policy, writes) if running else 0
        stale = sum(stale_rows(drafter.model, live.slot, live.tokens) for live in running) if look and k else -1
        rows.append(Row(len(scheduled), k, width, accepted, forwards, stale))
    return Served(tuple(tuple(live.tokens[len(live.request.prompt) :]) for live in everyone), tuple(rows))


def no_drafter(target: Runner, requests: Sequence[Request]) -> Served:
    """The same requests by the target alone: no drafter, one token a step."""
    idle = Runner(target.model.fresh(), ())
    return serve(target, idle, requests, lambda step, count: 0, "catch-up")
