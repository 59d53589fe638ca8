"""A step simulator: what static, dynamic and no speculation do to the same arrivals, with the four readings as switches.

Times are a model's, chosen by the caller: they show what follows from a reading, not what a machine does. A request that several
tokens reach in one step counts the same time for each of them: the time since its last token, divided by their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from memspec.capacity.dynamic_speculation.data import Costs, Graph, Hypotheses, Mode, Report, StepRow, World
from memspec.capacity.dynamic_speculation.reference.drafter import draft_forwards
from memspec.capacity.dynamic_speculation.reference.graphs import dispatch, padding, planned
from memspec.capacity.dynamic_speculation.reference.scheduling import Running, Share, check_world, planned_step
from memspec.capacity.dynamic_speculation.reference.table import dense_table

AS_READ = Hypotheses()  # how vLLM 0.33.0 behaves on Model Runner V2


def expected_tokens(acceptance: Fraction, k: int) -> Fraction:
    """Tokens of a step that verifies ``k`` drafts, each accepted with this probability while all before it were."""
    return sum((acceptance**i for i in range(k + 1)), Fraction(0))


def step_time(costs: Costs, tokens: int, graph: str) -> int:
    """Microseconds of the target's forward over ``tokens``, padding included."""
    launch = costs.launch_full if graph == "full" else costs.launch_pieces
    return launch + max(costs.weights, costs.token * tokens)


def draft_time(costs: Costs, forwards: int, tokens: int) -> int:
    """Microseconds of the drafter's forwards; the first one takes ``tokens``, the others one a request at most."""
    return forwards * (costs.draft_launch + costs.draft_weights) + costs.draft_token * tokens * min(forwards, 1)


def read_tokens(world: World, drawn: int, drafts: int) -> int:
    """Drafts accepted: draws below the acceptance, from ``drawn`` on, up to the first that is not."""
    for n in range(drafts):
        if world.accepts[(drawn + n) % len(world.accepts)] >= world.acceptance:
            return n
    return drafts


def transitions(ks: Sequence[int]) -> int:
    """Steps whose K differs from the one before."""
    return sum(before != after for before, after in pairwise(ks))


def table_of(world: World, mode: Mode) -> tuple[int, ...]:
    """K of each batch in this mode."""
    table = dense_table(world.schedule, world.max_batch, world.k_max)
    return table if mode == "dynamic" else (0, *[world.k_max if mode == "static" else 0] * world.max_batch)


def simulate(world: World, mode: Mode, readings: Hypotheses = AS_READ) -> Report:
    """Serve the world to its end. Raises WorldRefused for a request that does not fit; ScheduleRefused."""
    table = table_of(world, mode)
    graphs = planned(table)
    check_world(world, 0 if mode == "none" else world.k_max)
    arriving = sorted(world.arrivals)
    ready: list[Running] = []
    running: list[Running] = []
    now = drawn = owed = preempted = k = 0
    rows: list[StepRow] = []
    latencies: list[int] = []
    while arriving or ready or running:
        if not ready and not running:
            now = max(now, arriving[0].at)
        while arriving and arriving[0].at <= now:
            ready.append(Running(arriving[0], arriving.pop(0).prompt))
        plan, k, gave_way, running, ready = planned_step(world, mode, readings, table, running, ready, k)
        preempted += gave_way
        width = max((share.request.drafts for share in plan if share.role == "decode"), default=0)
        verified = sum(share.request.drafts for share in plan if share.role == "decode")
        tokens = sum(share.tokens for share in plan)
        kind, extra = shape_of(plan, width, graphs, readings.graphs if mode == "dynamic" else "full")
        forwards = 0 if mode == "none" else draft_forwards(k, readings.sync)
        owed += tokens
        spent = step_time(world.costs, tokens + extra, kind) + draft_time(world.costs, forwards, owed)
        owed = 0 if forwards or mode == "none" else owed
        now += spent
        delivered = 0
        for share in plan:
            held, drawn = deliver(world, share, k, now, drawn, latencies)
            delivered += held
        blocks = sum(request.blocks for request in running)
        running = [request for request in running if request.left > 0]
        rows.append(StepRow(len(plan), sum(s.role != "decode" for s in plan), k, width, verified, tokens, extra, kind, forwards,
                            blocks, delivered, spent))  # fmt: skip
    return summed(rows, latencies, preempted, now)


def shape_of(
    plan: Sequence[Share], width: int, graphs: Sequence[Graph], kind: Literal["full", "pieces"]
) -> tuple[str, int]:
    """The kind of graph that a step runs in and the tokens that it pads: full for decodes alone, of one width, captured.

    ``kind`` "pieces": full graphs are off, as Model Runner V1 has them under a table.
    """
    if any(share.role != "decode" for share in plan):
        return "mixed", 0
    if kind == "pieces" or any(share.request.drafts != width for share in plan):
        return "pieces", 0
    graph = dispatch(graphs, len(plan), 1 + width)
    return ("pieces", 0) if graph is None else ("full", padding(graph, len(plan), 1 + width))


def deliver(world: World, share: Share, k: int, now: int, drawn: int, latencies: list[int]) -> tuple[int, int]:
    """Give a request the tokens of a step that ended ``now``. Returns how many, and the next draw."""
    request, role, tokens = share
    if role == "chunk":
        request.computed += tokens
        return 0, drawn
    accepted = read_tokens(world, drawn, request.drafts) if role == "decode" else 0
    drawn += request.drafts if role == "decode" else 0
    held = min(1 + accepted, request.left)
    request.computed = request.known if role == "last-chunk" else request.computed + 1 + accepted
    request.known += held
    request.decoding, request.drafts = True, k
    if request.last >= 0:
        latencies += [(now - request.last) // held] * held
    request.last = now
    return held, drawn


def summed(rows: Sequence[StepRow], latencies: Sequence[int], preempted: int, now: int) -> Report:
    """The figures of a run, read off its rows."""
    return Report(
        tuple(rows), now, sum(row.delivered for row in rows), sum(row.draft_forwards for row in rows),
        sum(row.draft_forwards for row in rows if row.k == 0), sum(row.verified for row in rows),
        sum(row.padded for row in rows), transitions([row.k for row in rows]), max((row.blocks for row in rows), default=0),
        preempted, tuple(sorted(latencies)))  # fmt: skip


def percentile(latencies: Sequence[int], share: int) -> int:
    """The smallest latency that at least ``share`` in 100 do not exceed; ``latencies`` are sorted. 0 where there is none."""
    return latencies[max(0, -(-share * len(latencies) // 100) - 1)] if latencies else 0


def compared(world: World, readings: Hypotheses = AS_READ) -> dict[str, Report]:
    """The same arrivals without speculation, with static and with dynamic K."""
    modes: tuple[Mode, ...] = ("none", "static", "dynamic")
    return {mode: simulate(world, mode, readings) for mode in modes}


def tax(found: dict[str, Report]) -> Fraction:
    """How much longer dynamic K takes than no speculation at all: 0 is as fast, 1 is twice as long, below 0 is a gain."""
    return Fraction(found["dynamic"].microseconds, found["none"].microseconds) - 1
