"""
A ring that forgets a draft's row
=================================

DeepSeek-V4 compresses four (or 128) raw tokens into one entry. The raw rows that a later window needs are kept in a
small ring, and a verify step writes them before it knows which of its drafts will be accepted. This script shows what
a ring of 16 rows holds after a step that was planned with too small a pad, which entries become wrong for which
prefix and accept length, and where the limit of ten drafts comes from. The ring is a torch tensor that really
compresses.
"""

# %%
from __future__ import annotations

import random
import time
from collections.abc import Callable

import torch
from memspec.capacity.compress_ring_pad import (
    Geometry,
    Request,
    host_plan,
    max_draft_tokens,
    stale_reads,
    state_rows,
    tensors,
    write_pad,
    written_positions,
)
from memspec_tools import exhibit

device = exhibit.device()
exhibit.banner(device)

RING = Geometry(ratio=4, ring=16)
PAD = write_pad(4, 16)
exhibit.metric("draft tokens served by a ring of 16 rows, ratio 4", PAD)
exhibit.metric("draft tokens served by a ring of 256 rows, ratio 128", write_pad(128, 256))
exhibit.metric("draft tokens that DeepSeek-V4-Flash can be started with", max_draft_tokens({0: 3, 4: 21, 128: 20}) or 0)

# %%
# Five drafts at prefix 515
# -------------------------
#
# The step ends at 520, a multiple of four. A pad of four keeps 516 to 519 and leaves out 515, whose row then still
# holds what a former owner of the SWA page left there. One draft is accepted; the next step makes the entry of length
# 520 from the window 512 to 519.

PREFIX, DRAFTS = 515, 5


def held(pad: int) -> dict[int, int]:
    """Ring row -> position, inside SWA page 2, after a step planned with ``pad``; all before it had been written."""
    rows = {position % 16: position for position in range(PREFIX - 3, PREFIX)}
    rows.update({position % 16: position for position in written_positions(RING, pad, PREFIX, PREFIX + DRAFTS)})
    return rows


fig, axes = exhibit.figure(
    2, 1, "What the ring of one SWA page holds after five drafts at prefix 515", height=3.0, sharex=True
)
for axis, pad in zip(axes, (4, PAD), strict=True):
    rows = held(pad)
    for row in range(16):
        position = rows.get(row)
        needed = 512 <= 512 + row < 516
        colour = (
            exhibit.PALETTE[3]
            if needed and position is None
            else exhibit.PALETTE[0 if position and position < PREFIX else 1]
        )
        axis.bar(row, 1, color=colour if position or needed else "none", edgecolor=exhibit.INK, width=0.9)
        axis.text(row, 0.5, str(position) if position else ("stale" if needed else ""), ha="center", va="center",
                  color="white" if position or needed else exhibit.INK, fontsize=7)  # fmt: skip
    axis.set(yticks=[], ylabel=f"pad {pad}")
axes[1].set(
    xlabel="ring row (position modulo 16); blue: before the step, orange: drafts, red: needed and lost",
    xticks=range(16),
)

lost = sorted(set(held(PAD).values()) - set(held(4).values()))
if lost != [515]:
    raise RuntimeError(f"a pad of 4 loses {lost}, due [515]")

# %%
# The entry that is made from it
# ------------------------------
#
# The same in tensors: 512 channels, random rows, a planner with either pad. The wrong entry is finite and looks like
# any other.

WIDTH = 512
generator = torch.Generator().manual_seed(515)
truth_values, truth_scores, draft_values, draft_scores = torch.randn(4, 1024, WIDTH, generator=generator).to(device)
former_values, former_scores = torch.randn(2, 64, WIDTH, generator=generator).to(device)
pages = tuple(range(4))


def play(pad: int) -> torch.Tensor:
    """The entry of length 520 after the step at 515 (one draft accepted) and the step at 516."""
    ring = tensors.Ring(former_values.clone(), former_scores.clone())

    def step(prefix: int, extend: int, committed: int, keep: int) -> dict[int, torch.Tensor]:
        at = torch.arange(prefix, prefix + extend, device=device)
        known = (at < prefix + committed)[:, None]
        values = torch.where(known, truth_values[at], draft_values[at])
        scores = torch.where(known, truth_scores[at], draft_scores[at])
        plan = host_plan(RING, (Request(0, prefix, extend, pages),), extend)
        kept = set(written_positions(RING, keep, prefix, prefix + extend))
        writes = [w for w in plan.writes if prefix + w.token in kept]
        words = torch.tensor(plan.compressions, dtype=torch.int64, device=device).reshape(-1, 5)
        token, entries = tensors.compress(RING, ring, words, values, scores)
        tensors.write(ring, torch.tensor(writes, device=device).reshape(-1, 2), values, scores)
        return dict(zip((token + prefix + 1).tolist(), entries, strict=True))

    step(0, 515, 515, PAD)
    step(515, 5, 1, pad)
    return step(516, 5, 5, pad)[520]


weight = torch.softmax(truth_scores[512:520], 0)
due = (weight * truth_values[512:520]).sum(0)
errors = {pad: float((play(pad) - due).norm() / due.norm()) for pad in (4, PAD)}
exhibit.metric("relative error of the entry of length 520, pad 4", errors[4])
exhibit.metric(f"relative error of the entry of length 520, pad {PAD}", errors[PAD])
if not errors[PAD] < 1e-5 < 1e-2 < errors[4]:
    raise RuntimeError(f"errors {errors}")

# %%
# Which prefixes, which accept lengths
# ------------------------------------
#
# Each cell is one prefix residue and one accept length; the step after it commits all of its drafts. At eleven drafts
# the planned writes lose a row at every residue, and even a planner that writes everything loses one, where the last
# draft lies on the first row of the next window.

CASES = ((4, 5, "5 drafts, pad 4"), (4, 8, "8 drafts, pad 4"), (PAD, 10, "10 drafts, pad 10"), (PAD, 11, "11 drafts, pad 10"),
         (11, 11, "11 drafts, all written"))  # fmt: skip

fig, axes = exhibit.figure(
    1, 5, "Committed entries made from a stale row, by prefix residue and accept length", height=3.6, sharey=True
)
for axis, (pad, drafts, title) in zip(axes, CASES, strict=True):
    damage = [
        [len(stale_reads(RING, pad, 528 + r, drafts, (a, drafts))) for r in range(4)] for a in range(1, drafts + 1)
    ]
    axis.imshow(
        damage, cmap="Oranges", vmin=0, vmax=4, aspect="auto", origin="lower", extent=(-0.5, 3.5, 0.5, drafts + 0.5)
    )
    for a, row in enumerate(damage, 1):
        for r, count in enumerate(row):
            axis.text(r, a, str(count), ha="center", va="center", fontsize=6, color="#222222")
    axis.set(xlabel="prefix mod 4", xticks=range(4))
    axis.set_title(title, fontsize=8)
    total = sum(map(sum, damage))
    exhibit.metric(f"wrong entries over all cells, {title}", total)
    if (total == 0) != (pad == PAD and drafts == PAD):
        raise RuntimeError(f"{title}: {total} wrong entries")
axes[0].set_ylabel("accepted tokens of the first step")

# %%
# How often
# ---------
#
# A model, not a measurement: each draft is accepted with one probability, independently, and one token is always
# committed. What a pad of four loses grows with the number of drafts, and with how many of them are rejected.


def wrong_per_thousand(drafts: int, chance: float, pad: int, steps: int = 300) -> float:
    """Wrong entries for a thousand committed tokens, over a seeded run of verify steps."""
    source = random.Random(drafts)
    accepts = []
    for _ in range(steps):
        accepted = 1
        while accepted < drafts and source.random() < chance:
            accepted += 1
        accepts.append(accepted)
    return 1000 * len(stale_reads(RING, pad, 20, drafts, accepts)) / sum(accepts)


fig, axes = exhibit.figure(
    1, 2, "Wrong entries per 1,000 tokens, ratio 4 (model: independent acceptance)", height=3.0, sharey=True
)
for axis, (pad, title) in zip(axes, ((4, "pad 4, up to SGLang 0.5.17"), (PAD, "pad 10")), strict=True):
    for chance, marker in ((0.5, "o"), (0.8, "s"), (0.95, "^")):
        rates = [wrong_per_thousand(drafts, chance, pad) for drafts in range(2, 14)]
        axis.plot(range(2, 14), rates, marker=marker, markersize=4, label=f"accepted with {chance}")
        if any(rates[: 3 if pad == 4 else 9]):
            raise RuntimeError(f"pad {pad} loses rows within its limit: {rates}")
    axis.axvline(pad + 0.5, color=exhibit.INK, linewidth=0.8, linestyle="--")
    axis.set(xlabel="draft tokens of a step", xticks=range(2, 14))
    axis.set_title(title, fontsize=9)
axes[0].set_ylabel("wrong entries / 1,000 tokens")
axes[1].legend(loc="upper left")
exhibit.metric("wrong entries for 1,000 tokens, 6 drafts, pad 4, accepted with 0.8", wrong_per_thousand(6, 0.8, 4))

# %%
# What the room costs
# -------------------
#
# Twice the rows, in every layer: for an SWA pool of 65,536 tokens and 48 running requests.

for ratio, plain, ring in ((4, 8, 16), (128, 128, 256)):
    before, after = (state_rows(Geometry(ratio, size), 65_536, 48) for size in (plain, ring))
    exhibit.metric(f"ring rows of one layer of ratio {ratio} without drafts", before, unit="rows")
    exhibit.metric(f"ring rows of one layer of ratio {ratio} with drafts", after, unit="rows")

# %%
# On a GPU
# --------
#
# The device planner as torch operations over 1,024 requests of ten drafts, and the compression that follows. On a CPU
# nothing is timed.

if device == "cuda":
    requests = [Request(slot, 640 + slot % 97, PAD, tuple(range(4 * slot, 4 * slot + 4))) for slot in range(1024)]
    batch = tensors.batch_on(requests, device)
    tokens = PAD * len(requests)

    def timed(run: Callable[[], object]) -> float:
        for _ in range(5):
            run()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(50):
            run()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / 50

    seconds = timed(lambda: tensors.plan(RING, batch, tokens))
    exhibit.metric("device planner", len(requests) / seconds, unit="requests/s", benchmark=True)
    began = time.perf_counter()
    host = host_plan(RING, requests, tokens)
    exhibit.metric(
        "device planner against the host planner", (time.perf_counter() - began) / seconds, unit="x", benchmark=True
    )
    compressions, writes = tensors.plan(RING, batch, tokens)
    if writes[: len(host.writes)].tolist() != [list(w) for w in host.writes]:
        raise RuntimeError("device and host planner differ")
    rows = torch.randn(tokens, WIDTH, device=device)
    large = tensors.Ring(torch.randn(4096 * 16, WIDTH, device=device), torch.randn(4096 * 16, WIDTH, device=device))
    seconds = timed(lambda: tensors.compress(RING, large, compressions, rows, rows))
    windows = len(host.compressions)
    exhibit.metric("compression", windows * 8 * WIDTH * 2 * 4 / seconds / 1e9, unit="GB/s read", benchmark=True)
else:
    print("no CUDA device: nothing is timed")
