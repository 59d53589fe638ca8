"""
Dynamic speculation: what follows from one table
================================================

A table gives each number of scheduled requests its K, the drafts that a step asks for. A user reported that
throughput collapses when the number crosses a threshold. The cause is not established, and this page does not
establish it. It separates the four readings that were discussed, shows which figure speaks to which, and runs a
small target and drafter on this device to look at what has to hold whatever the cause is: the output does not
depend on K, and the drafter is current when it drafts again.
"""

# %%
# K, step by step
# ---------------
# Three long requests decode. Every 140 ms a prompt comes, is computed in chunks, answers with a few tokens and
# leaves. With two drafts up to batch 3 and none from 4 on, the prompt alone decides. The width that is verified
# follows K by one step. This is reading H3. Where sampling requests only are counted, K stays at 2 while chunks are
# computed and falls all the same when the prompt is done; the last prompt here finds fewer requests running and takes
# K nowhere. In a controlled study of that count no workload met the bar that was set for a benefit, and K changed 50
# times with it against 40 times without.

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace

import torch
from memspec.capacity.dynamic_speculation import (
    Arrival,
    Graph,
    Hypotheses,
    World,
    compared,
    dense_table,
    fall_out,
    percentile,
    planned,
    simulate,
    tax,
    uncovered,
)
from memspec.capacity.dynamic_speculation.reference import captured, dispatch, next_size, shared_sizes
from memspec.capacity.dynamic_speculation.tensors import (
    Attention,
    Request,
    Runner,
    make_weights,
    near,
    no_drafter,
    serve,
)
from memspec.capacity.dynamic_speculation.twins import skipped
from memspec_tools import exhibit

device = exhibit.device()
exhibit.banner(device)
torch.set_num_threads(1)
BLUE, ORANGE, GREEN, RED, SKY, *_ = exhibit.PALETTE
DRAWS = tuple((37 * n + 11) % 100 for n in range(101))  # one number in 0..99 for each draft, read round and round


def require(holds: bool, what: str) -> None:
    """The page must not be built on a result that contradicts its text."""
    if not holds:
        raise RuntimeError(f"this page claims what this run did not show: {what}")


long = tuple(Arrival(0, 64, 150) for _ in range(3))
short = tuple(Arrival(140_000 * n, 480, 6) for n in range(1, 6))
world = World(long + short, k_max=2, schedule=((1, 3, 2), (4, 512, 0)), accepts=DRAWS, budget=128, pool=200)
runs = {name: simulate(world, "dynamic", Hypotheses(counting=name)) for name in ("scheduled", "sampling")}
for name, run in runs.items():
    exhibit.metric(f"changes of K, counting {name} requests", run.switches)
    exhibit.metric(f"steps at K = 0, counting {name} requests", sum(row.k == 0 for row in run.rows))
    require(
        [row.width for row in run.rows[1:] if row.width]
        == [b.k for b, a in zip(run.rows, run.rows[1:], strict=False) if a.width],
        "the width follows K by one step",
    )

figure, axes = exhibit.figure(
    rows=2, title="A prompt that is computed in chunks takes K to 0 for everybody", height=3.8, sharex=True
)
for axis, (name, run) in zip(axes, runs.items(), strict=True):
    steps = range(len(run.rows))
    axis.step(steps, [row.k for row in run.rows], where="post", color=BLUE, label="K published")
    axis.step(
        steps, [row.width for row in run.rows], where="post", color=ORANGE, linestyle="--", label="drafts verified"
    )
    axis.fill_between(
        steps,
        0,
        [2 * (row.prefills > 0) for row in run.rows],
        step="post",
        color=GREEN,
        alpha=0.2,
        label="a prompt in the step",
    )
    axis.set(ylabel="drafts a request", yticks=[0, 1, 2], title=f"counting {name} requests: {run.switches} changes")
axes[-1].set(xlabel="step")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

# %%
# Three runs, one reading at a time
# ---------------------------------
# The report compares dynamic K with static K. Without a run that has no drafter at all, the price of a step at K = 0
# cannot be told from the loss of drafts. Here is the reported load: 8 requests of 180 tokens, K = 2 up to batch 4.
# The times are a model's: 8 ms to read the weights, 0.7 ms for a pass of the drafter, 0.8 ms more for a step in
# pieces. They are chosen, so the curves show what follows from a reading and nothing about a machine. The step down
# past the threshold is what giving up two drafts costs in this model. It stops near the run without a drafter, and is
# no collapse like the one that was reported.

load = World(
    tuple(Arrival(120_000 * n, 96, 180) for n in range(8)), 2, ((1, 4, 2), (5, 512, 0)), accepts=DRAWS, budget=2048
)
readings = {
    "as read from 0.33.0": Hypotheses(),
    "H1 off: rows owed": Hypotheses(sync="catch-up"),
    "H2 on: in pieces": Hypotheses(graphs="pieces"),
    "H3 off: sampling counted": Hypotheses(counting="sampling"),
    "H4 off: places follow K": Hypotheses(lookahead="needed"),
}
print(
    f"{'reading':26}{'run':9}{'drafter':>8}{'at K=0':>8}{'changes':>8}{'blocks':>8}{'P50':>8}{'P95':>8}  ms between tokens"
)
found = {name: compared(load, which) for name, which in readings.items()}
for name, three in found.items():
    for mode, run in three.items():
        print(f"{name:26}{mode:9}{run.draft_forwards:8}{run.zero_forwards:8}{run.switches:8}{run.peak_blocks:8}"
              f"{percentile(run.latencies, 50) / 1000:8.1f}{percentile(run.latencies, 95) / 1000:8.1f}")  # fmt: skip
at_zero = replace(load, schedule=((1, 512, 0),))
taxes = {name: 100 * float(tax(compared(at_zero, which))) for name, which in readings.items()}
exhibit.metric("tax of K = 0 against no drafter, drafter synced (model)", taxes["as read from 0.33.0"], unit="%")
exhibit.metric("tax of K = 0 against no drafter, rows owed (model)", taxes["H1 off: rows owed"], unit="%")
exhibit.metric("tax of K = 0 against no drafter, dynamic K in pieces (model)", taxes["H2 on: in pieces"], unit="%")
require(taxes["H1 off: rows owed"] == 0, "without the drafter's pass, K = 0 costs what no speculation costs")


def throughput(at_once: int, mode: str) -> float:
    """Tokens a second when as many requests come at once, in the model's time."""
    burst = replace(load, arrivals=tuple(Arrival(0, 96, 60) for _ in range(at_once)), max_batch=32)
    run = simulate(burst, mode)  # type: ignore[arg-type]
    return 1e6 * run.delivered / run.microseconds


sizes = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32]
lowest = min(throughput(n, "dynamic") / throughput(n, "none") for n in sizes)
exhibit.metric("lowest throughput of dynamic K against no drafter (model)", lowest, unit="x")
require(lowest > 0.9, "dynamic K is near no speculation at its worst")
figure, (left, right) = exhibit.figure(
    columns=2, title="What the readings move, in a model whose times were chosen", height=3.4
)
for mode, colour, mark in (("none", GREEN, "s"), ("static", BLUE, "o"), ("dynamic", RED, "x")):
    left.plot(sizes, [throughput(n, mode) for n in sizes], color=colour, marker=mark, label=mode)
left.axvline(4.5, color=exhibit.INK, linestyle="--", linewidth=1)
left.set(
    xlabel="requests at once", ylabel="tokens/s (model)", title="threshold between 4 and 5", xscale="log", yscale="log"
)
left.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
left.set_yticks([100, 300, 1_000, 3_000], ["100", "300", "1,000", "3,000"])
left.minorticks_off()
left.legend()
bars = range(len(readings))
right.barh(bars, taxes.values(), color=[BLUE, GREEN, ORANGE, SKY, SKY])
right.set_yticks(bars, readings)
right.invert_yaxis()
right.set(xlabel="time at K = 0 over no drafter (%)", title="H1 and H2 move the tax of K = 0")

# %%
# Shapes: captured, missed, missing
# ---------------------------------
# 16 drafts up to batch 16 and 2 from 17 on: decode batches have 17 or 3 tokens a request. vLLM 0.33.0 rounds every
# size to every length and looks at the next larger size only. Before its planner had one grid a tier, sizes were
# scaled by 17 alone. The reference captures a ladder for each length and looks among graphs of its own length.

table = dense_table([[1, 16, 16], [17, 256, 2]], 256, 16)
old, new, ours = fall_out(table, "widest-only"), fall_out(table, "each-tier"), planned(table)
exhibit.metric("batches of 256 without a full graph, sizes scaled by the widest length", old.dispatched)
exhibit.metric("requests of 3 tokens that those graphs reach", old.widest_covered[3])
exhibit.metric("batches of 256 without a full graph, one grid a tier", new.dispatched)
exhibit.metric("batches of 256 without a full graph, reference", len(uncovered(table, ours)))
exhibit.metric("graphs captured, one grid a tier", len(captured(table, shared_sizes(table, "each-tier"))))
exhibit.metric("graphs captured, reference", len(ours))
require((old.dispatched, old.widest_covered[3], new.dispatched) == (190, 227, 79), "the counts that were observed")

plans = {
    "0.33.0's search, sizes of the widest": (captured(table, shared_sizes(table, "widest-only")), next_size),
    "0.33.0's search, one grid a tier": (captured(table, shared_sizes(table, "each-tier")), next_size),
    "own length, one grid a tier": (ours, dispatch),
}
figure, axis = exhibit.figure(
    title="Which of 256 batch sizes find a full graph, and how much of it is padding", height=2.9
)
rows = torch.zeros(len(plans), 256)
for line, (graphs, find) in enumerate(plans.values()):
    for batch in range(1, 257):
        hit = find(graphs, batch, table[batch] + 1)
        rows[line, batch - 1] = -1 if hit is None else batch / hit.batch
from matplotlib.colors import LinearSegmentedColormap

useful = LinearSegmentedColormap.from_list("useful", ["#cfe3f3", BLUE])
useful.set_under(RED)
axis.imshow(rows, cmap=useful, vmin=0, vmax=1, aspect="auto", interpolation="nearest", extent=(0.5, 256.5, 2.5, -0.5))
for edge in (0.5, 1.5):
    axis.axhline(edge, color=exhibit.INK, linewidth=1)
axis.axvline(16.5, color="white", linestyle="--", linewidth=1.6)
axis.set(xlabel="requests in the decode batch (16 drafts left of the line, 2 right of it)", xlim=(0.5, 256.5))
axis.set_yticks(range(len(plans)), plans)
from matplotlib.patches import Patch

figure.legend(handles=[Patch(color=BLUE, label="full graph (paler: more padding)"), Patch(color=RED, label="in pieces or eager")],
              loc="outside lower center", ncols=2)  # fmt: skip

# %%
# A real target and drafter
# -------------------------
# Two small transformers in 64-bit floats, each with a cache of its own on this device; the drafter's weights are the
# target's with noise. Six requests arrive one step apart, and K falls to 0 at the fourth. Three drafters: one runs in
# every step, one owes its rows and catches up, one is skipped and forgets.

generator = torch.Generator().manual_seed(5)
target_weights = make_weights(generator, device)
drafter_weights = near(target_weights, generator, 0.02)
prompts = [tuple(torch.randint(0, 64, (6,), generator=generator).tolist()) for _ in range(6)]
requests = [Request(prompt, 24, n) for n, prompt in enumerate(prompts)]
switching = dense_table([[1, 3, 3], [4, 9, 0]], 8, 3)
shapes = planned(switching)
draft_shapes = [Graph(n, query) for n in (1, 2, 4, 6) for query in range(1, 5)]


def runner(weights, graphs, find=dispatch):  # type: ignore[no-untyped-def]
    return Runner(Attention(weights, len(requests) + 1), graphs, find)


alone = no_drafter(runner(target_weights, shapes), requests)
from memspec.capacity.dynamic_speculation.reference import rows_to_write

for name, policy, writes in (
    ("synced", "every-step", rows_to_write),
    ("owed", "catch-up", rows_to_write),
    ("skipped", "every-step", skipped),
):
    target, drafter = runner(target_weights, shapes), runner(drafter_weights, draft_shapes)
    served = serve(target, drafter, requests, lambda step, count: switching[count], policy, writes, look=True)
    require(served.tokens == alone.tokens, "output does not depend on K or on the drafter")
    stale = max(row.stale for row in served.rows)
    idle = sum(row.draft_forwards for row in served.rows if row.k == 0)
    exhibit.metric(f"{name}: most stale rows at a proposal", stale)
    exhibit.metric(f"{name}: forwards of the drafter at K = 0", idle)
    exhibit.metric(f"{name}: drafts accepted", sum(row.accepted for row in served.rows))
    exhibit.metric(f"{name}: target replays", target.used.replays)
    exhibit.metric(f"{name}: target eager forwards", target.used.eager)
    exhibit.metric(f"{name}: tokens of padding", target.used.padded)
    require((stale > 0) == (name == "skipped"), "only the skipped drafter drafts from stale rows")
switched = sum(a.k != b.k for a, b in zip(served.rows, served.rows[1:], strict=False))
exhibit.metric("changes of K", switched)

# %%
# How many drafts are accepted after a pause depends on whether the drafter has rows for what was emitted in it. The
# output is the same in all runs.

PAUSES = (0, 1, 2, 4, 8, 12, 16)


def acceptance(pause: int, writes: Callable[..., tuple[int, int]]) -> float:
    """Share of drafts accepted in the five steps after K was 0 for ``pause`` steps."""
    ks = [3, 3, *[0] * pause, *[3] * 60]
    batch = [Request(prompt, 40) for prompt in prompts]
    run = serve(
        runner(target_weights, ()), runner(drafter_weights, ()), batch, lambda step, count: ks[step], writes=writes
    )
    after = [row for row in run.rows[pause + 3 :] if row.width][:5]
    return sum(row.accepted for row in after) / sum(row.width * row.scheduled for row in after)


curves = {
    name: [acceptance(pause, writes) for pause in PAUSES]
    for name, writes in (("synced", rows_to_write), ("skipped", skipped))
}
figure, axis = exhibit.figure(title="Drafts accepted in the five steps after a pause at K = 0", height=3.0)
for (name, shares), colour, mark in zip(curves.items(), (BLUE, RED), ("o", "x"), strict=True):
    axis.plot(PAUSES, [100 * share for share in shares], color=colour, marker=mark, label=name)
axis.set(xlabel="steps at K = 0 before", ylabel="drafts accepted (%)", ylim=(0, 100))
axis.legend()
exhibit.metric("accepted after 16 steps at K = 0, synced", 100 * curves["synced"][-1], unit="%")
exhibit.metric("accepted after 16 steps at K = 0, skipped", 100 * curves["skipped"][-1], unit="%")
require(curves["synced"][0] == curves["skipped"][0], "without a pause the two drafters are alike")
require(curves["skipped"][-1] < curves["synced"][-1], "a skipped drafter loses acceptance")

# %%
# The tax on this device
# ----------------------
# On a CUDA device the shapes above are real CUDA graphs, and a decode step of six requests is timed at K = 0 with a
# drafter that is synced and without one; a drafter that owes its rows runs nothing in such a step. K is then switched
# between 0 and 3, and the tax of the run is set against a run without a drafter. On the CPU the same buffers, the same
# padding and the same dispatch are used, so the counts above are those of CUDA; nothing is timed.

ROUNDS = 40


def milliseconds(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median time of one run on the device, after five unmeasured ones."""
    times = []
    for _ in range(rounds + 5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[5:])


if device == "cuda":
    given = (
        torch.randint(0, 64, (6, 1), device=device),
        torch.full((6,), 20, device=device),
        torch.arange(6, device=device),
    )
    target, drafter = runner(target_weights, [Graph(6, 1)]), runner(drafter_weights, [Graph(6, 1)])
    bare = runner(target_weights, [])
    none = milliseconds(lambda: target.run(*given))
    synced = milliseconds(lambda: (target.run(*given), drafter.run(*given)))
    eager = milliseconds(lambda: bare.run(*given))
    require(target.used.eager == drafter.used.eager == bare.used.replays == 0, "replays replay and eager runs do not")
    exhibit.metric("decode step without a drafter", none, unit="ms", benchmark=True)
    exhibit.metric("decode step at K = 0, drafter synced", synced, unit="ms", benchmark=True)
    exhibit.metric("tax of K = 0 on this small model", 100 * (synced / none - 1), unit="%", benchmark=True)
    exhibit.metric("decode step without a graph", eager, unit="ms", benchmark=True)
    pairs = {  # runners are made once: capture is not timed
        "none": (runner(target_weights, shapes), runner(drafter_weights, [])),
        "switched": (runner(target_weights, shapes), runner(drafter_weights, draft_shapes)),
    }
    for name, k_of, policy in (
        ("none", lambda step, count: 0, "catch-up"),
        ("switched", lambda step, count: switching[count], "every-step"),
    ):
        run_time = milliseconds(lambda pair=pairs[name], k=k_of, p=policy: serve(*pair, requests, k, p), rounds=5)
        exhibit.metric(f"whole run, {name}", run_time, unit="ms", benchmark=True)
else:
    print("no CUDA device: nothing is timed")

# %%
# What to take along
# ------------------
# Count drafter forwards at K = 0, changes of K, blocks, and eager shapes before you blame one of them, and compare
# with a run that has no drafter. What this page cannot say is what happened on the reporter's machine.
