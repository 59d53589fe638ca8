"""Which requests a simulated step runs: running ones in order of admission, then new ones, within tokens and blocks.

Source: the order of vLLM's scheduler; a running request that finds no block makes the youngest one give way and start again.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

from memspec.capacity.dynamic_speculation.data import (
    Arrival,
    Hypotheses,
    Mode,
    Role,
    Scheduled,
    Table,
    World,
    WorldRefused,
)
from memspec.capacity.dynamic_speculation.reference.blocks import lookahead, reserved_blocks
from memspec.capacity.dynamic_speculation.reference.table import k_for, scheduled_count


@dataclass
class Running:
    """A request on its way. ``known`` tokens exist, ``computed`` of them have KV; ``drafts`` wait to be verified."""

    arrival: Arrival
    known: int
    computed: int = 0
    drafts: int = 0
    blocks: int = 0
    last: int = -1  # when its last token came, microseconds; -1 before the first
    decoding: bool = False

    @property
    def left(self) -> int:
        return self.arrival.prompt + self.arrival.answer - self.known


class Share(NamedTuple):
    """What a request gets of a step."""

    request: Running
    role: Role
    tokens: int


def check_world(world: World, reserve: int) -> None:
    """Raises WorldRefused for a request that could never get its blocks, a budget that no decode fits, a world without draws.

    The last decode step of a request can verify ``reserve`` drafts and have as many places beyond them.
    """
    if not world.accepts:
        raise WorldRefused("0 draws decide which drafts are accepted; at least 1")
    if world.budget < 1 + world.k_max:
        raise WorldRefused(f"a budget of {world.budget} tokens; at least {1 + world.k_max}")
    for arrival in world.arrivals:
        if min(arrival.prompt, arrival.answer) < 1:
            raise WorldRefused(
                f"a prompt of {arrival.prompt} tokens and an answer of {arrival.answer}; at least 1 of each"
            )
        need = reserved_blocks(arrival.prompt, arrival.answer - 1, 2 * reserve, world.block)
        if need > world.pool:
            raise WorldRefused(f"a request needs {need} blocks; the pool has {world.pool}")


def share_of(request: Running, budget: int) -> Share:
    """What the request can use of ``budget`` tokens: a decode needs all of its tokens, a prompt takes what there is."""
    if request.decoding:
        wanted = 1 + request.drafts
        return Share(request, "decode", wanted if wanted <= budget else 0)
    missing = request.known - request.computed
    return Share(request, "last-chunk" if missing <= budget else "chunk", min(missing, budget))


def places(world: World, mode: Mode, readings: Hypotheses, role: Role, k_now: int, k_next: int) -> int:
    """Places reserved beyond a request's own tokens: K that the step verifies, and at least the K that it asks for."""
    if mode == "none":
        return 0
    if readings.lookahead == "static":
        return world.k_max
    return lookahead(role, k_now, k_next, world.k_max)


def free_blocks(world: World, running: Sequence[Running]) -> int:
    return world.pool - sum(request.blocks for request in running)


def give_way(running: list[Running], ready: list[Running]) -> Running:
    """The youngest running request loses its blocks and will compute its tokens again."""
    victim = running.pop()
    victim.computed = victim.drafts = victim.blocks = 0
    victim.decoding = False
    ready.insert(0, victim)
    return victim


def schedule(
    world: World, mode: Mode, readings: Hypotheses, running: list[Running], ready: list[Running], ks: tuple[int, int]
) -> tuple[list[Share], int]:
    """The step's shares and how many requests gave way; moves requests between ``running`` and ``ready``.

    ``ks``: what the step before it asked for, and the most that this one may ask for.
    """
    plan: list[Share] = []
    budget, gave_way, position = world.budget, 0, 0

    def need(share: Share) -> int:
        ahead = places(world, mode, readings, share.role, *ks)
        return reserved_blocks(share.request.computed, share.tokens, ahead, world.block)

    def take(share: Share) -> None:
        share.request.blocks = max(share.request.blocks, need(share))
        plan.append(share)

    while position < len(running) and budget > 0:
        share = share_of(running[position], budget)
        position += 1
        if not share.tokens:
            continue
        while need(share) > share.request.blocks + free_blocks(world, running):
            gave_way += 1
            if give_way(running, ready) is share.request:
                break
        else:
            take(share)
            budget -= share.tokens
    while ready and not gave_way and len(running) < world.max_batch and budget > 0:
        share = share_of(ready[0], budget)
        if need(share) > free_blocks(world, running):
            break
        running.append(ready.pop(0))
        take(share)
        budget -= share.tokens
    return plan, gave_way


class Planned(NamedTuple):
    """A step: what it runs, the K that follows, how many requests gave way, and who runs and waits from now on."""

    plan: list[Share]
    k: int
    gave_way: int
    running: list[Running]
    ready: list[Running]


def planned_step(
    world: World,
    mode: Mode,
    readings: Hypotheses,
    table: Table,
    running: Sequence[Running],
    ready: Sequence[Running],
    k_before: int,
) -> Planned:
    """Schedule with places for the fewest drafts; again with more where the K that follows from the plan is larger.

    Which requests run depends on the places, and K on which requests run. The last try has places for every K of the table.
    """
    most = 0 if mode == "none" else world.k_max
    for asked in sorted({*table[1:], most}):
        tried, waiting = [copy(request) for request in running], [copy(request) for request in ready]
        plan, gave_way = schedule(world, mode, readings, tried, waiting, (k_before, asked))
        count = scheduled_count([Scheduled(role, tokens) for _, role, tokens in plan], readings.counting)
        k = k_for(table, count, most)
        if readings.lookahead == "static" or k <= asked:
            break
    return Planned(plan, k, gave_way, tried, waiting)
