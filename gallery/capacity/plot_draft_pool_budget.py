"""
Draft pool budget: what a group of ranks costs the draft
========================================================

Under decode context parallelism each rank of a group keeps one token in so many, and the draft's pool keeps them all, on every
rank. A budget that charges the draft once is exceeded by an amount that grows with the group.

This page draws how far, splits a device's memory for a real pair of models, counts what a group buys in context once the draft's
copies are paid, compares the versions that were released or reported, and allocates both plans on this device.
"""

# %%
# How far one copy takes it
# -------------------------
# The need of one target row is the target's bytes plus the group size times the draft's; the charge had the draft once. Their ratio
# depends on the two cells alone. Four pairs: the example of the page; DeepSeek-V3, whose latent every rank keeps whole,
# with a draft of five layers, heads divided by eight; the same with DeepSeek's own MTP layer, kept by every rank; and Qwen3-235B,
# whose rows get wider with the group, so that the draft weighs less.

from __future__ import annotations

import gc
from dataclasses import replace

import torch
from memspec.capacity.draft_pool_budget import (
    Draft,
    Heads,
    Latent,
    Memory,
    NotEnoughMemory,
    Parallel,
    Serving,
    Window,
    available,
    cell,
    explain,
    gain,
    overshoot,
    own_cell,
    plan,
)
from memspec.capacity.draft_pool_budget.faults import FAULTS
from memspec_tools import exhibit

device = exhibit.device()
exhibit.banner(device)
torch.set_num_threads(1)
BLUE, ORANGE, GREEN, RED, SKY, PINK, _ = exhibit.PALETTE

GIB = 1 << 30
GROUPS = (1, 2, 4, 8)
WRONG = {fault.name: fault.subject() for fault in FAULTS}


def require(holds: bool, what: str) -> None:
    """The page must not be built on a result that contradicts its text."""
    if not holds:
        raise RuntimeError(f"this page claims what this run did not show: {what}")


BLOCK = Draft("DFLASH", Heads(5, 8, 128, 128), layers=5)
PUBLIC = Serving(Latent(1, 32_768, 1), Parallel(8), draft=Draft("DFLASH", layers=5, cell=10_240))
DEEPSEEK = Serving(Latent(61, 576), Parallel(8), 64, BLOCK)
QWEN3 = Serving(Heads(94, 4, 128, 128), Parallel(8), 64, BLOCK)
MTP = replace(DEEPSEEK, draft=Draft("DFLASH", Latent(1, 576), layers=1))
PAIRS = {
    "32,768 B, draft of 10,240 B": PUBLIC,
    "DeepSeek-V3, draft of 5 layers": DEEPSEEK,
    "DeepSeek-V3, its MTP layer": MTP,
    "Qwen3-235B, draft of 5 layers": QWEN3,
}


def grouped(serving: Serving, group: int) -> Serving:
    return replace(serving, parallel=replace(serving.parallel, group=group))


def exceeded(serving: Serving) -> float:
    """Bytes needed by bytes charged, for one target row."""
    need, charged = overshoot(cell(serving).target_full, own_cell(serving) or 0, serving.parallel.group)
    return need / charged


curves = {name: [exceeded(grouped(serving, group)) for group in GROUPS] for name, serving in PAIRS.items()}
for name, curve in curves.items():
    print(f"{name}: " + ", ".join(f"{group} ranks {ratio:.2f}x" for group, ratio in zip(GROUPS, curve, strict=True)))
require(round(curves["32,768 B, draft of 10,240 B"][-1], 2) == 2.67, "the published example is exceeded 2.67 times")

once = WRONG["own-cell-once"]
public = grouped(PUBLIC, 8)
wrong_tokens = once.plan(public, 10**10).tokens
exhibit.metric("tokens of 10 GB, draft charged once", wrong_tokens, unit="tokens")
exhibit.metric("bytes that these need", wrong_tokens * sum(cell(public)), unit="B")
exhibit.metric("tokens of 10 GB, draft charged for each rank", plan(public, 10**10).tokens, unit="tokens")
require(wrong_tokens == 232_514 and plan(public, 10**10).tokens == 87_193, "the published token counts come out")

figure, axis = exhibit.figure(
    title="Charged once, the draft takes the pools beyond the budget, the further the larger the group"
)
for (name, curve), colour, mark in zip(curves.items(), (RED, BLUE, SKY, GREEN), "osd^", strict=True):
    axis.plot(GROUPS, curve, color=colour, marker=mark, label=name)
axis.axhline(1, color=exhibit.INK, linewidth=0.8, linestyle=":")
axis.set(xscale="log", xlabel="ranks that share a sequence", ylabel="bytes needed / bytes budgeted")
axis.set_xticks(GROUPS, [str(group) for group in GROUPS])
axis.minorticks_off()
axis.grid(axis="y")
axis.legend()

# %%
# Where the memory goes
# ---------------------
# A device with 139 GiB serves DeepSeek-V3 on eight ranks. That weights take 85 GiB of it is an assumption of this page, as are a static
# fraction of 0.9 and 2 GiB for images. The rest is one budget for target and draft. Each bar is one group size; the hatched bar is
# the same device at eight ranks with the draft charged once.

memory = Memory(139 * GIB, 54 * GIB, "0.9", multimodal=2 * GIB)
budget = available(memory)
exhibit.metric("budget for pools", budget, unit="B")
print("\n".join(explain(grouped(DEEPSEEK, 8), budget)))

bars: dict[str, dict[str, float]] = {}
for label, group, planner in (*((str(group), group, plan) for group in GROUPS), ("8, charged once", 8, once.plan)):
    serving = grouped(DEEPSEEK, group)
    tokens, price = planner(serving, budget).tokens, cell(serving)
    pools = {"target pool": tokens * price.target_full, "draft pool": tokens * price.own}
    spare = max(budget - sum(pools.values()), 0)
    bars[label] = {
        "weights": memory.before - memory.after,
        **pools,
        "reserves, slack, rest": memory.after - budget + spare,
    }
    exhibit.metric(f"ids that a group of {label} holds", tokens * group, unit="ids")

figure, axis = exhibit.figure(
    title="The draft's copies take a growing part of one budget; charged once, they do not fit", height=3.6
)
colours = dict(
    zip(
        ("weights", "target pool", "draft pool", "reserves, slack, rest"), (exhibit.INK, BLUE, ORANGE, SKY), strict=True
    )
)
for position, (label, parts) in enumerate(bars.items()):
    bottom = 0.0
    for name, size in parts.items():
        axis.bar(position, size / GIB, bottom=bottom / GIB, color=colours[name], width=0.7, label=name if position == 0 else None,
                 hatch="//" if "once" in label else None)  # fmt: skip
        bottom += size
    require((bottom > memory.before) == ("once" in label), "only the draft charged once needs more than the device has")
axis.axhline(memory.before / GIB, color=RED, linewidth=1)
axis.annotate("the device", (0.02, memory.before / GIB + 1), xycoords=("axes fraction", "data"), color=RED, fontsize=8)
axis.set(xlabel="ranks that share a sequence", ylabel="GiB of one rank", ylim=(0, 185))
axis.set_xticks(range(len(bars)), bars)
axis.legend(ncols=4, loc="upper center")

# %%
# What a group buys
# -----------------
# A group of *G* holds *G* times a rank's tokens. Without a draft a latent target gains all of that. With one, the gain cannot exceed
# ``(target + draft) / draft``, however large the group. A target with K and V by head gains only where heads had been copied: with at
# least as many heads as ranks, every doubling of the group doubles the rows, and nothing is won at all.

WIDE = tuple(2**power for power in range(8))
LLAMA = Serving(Heads(32, 8, 128, 128), Parallel(8), 64, BLOCK)


def gains(serving: Serving, groups: tuple[int, ...]) -> list[float]:
    together = [gain(grouped(serving, group), 32 * GIB) for group in groups]
    return [ids / alone for ids, alone in together]


figure, axes = exhibit.figure(
    columns=2, title="Context that a group holds, against one rank alone: the draft sets a ceiling", height=3.2
)
latent = replace(DEEPSEEK, parallel=Parallel(128))
wide_draft = replace(latent, draft=Draft("DFLASH", Heads(5, 8, 128, 128), layers=5))
ceiling = (cell(latent).target_full + (own_cell(latent) or 0)) / (own_cell(latent) or 1)
for serving, label, colour in (
    (replace(latent, draft=None), "no draft", GREEN),
    (wide_draft, "draft of 5 layers", ORANGE),
):
    found = gains(serving, WIDE)
    axes[0].plot(WIDE, found, color=colour, marker="o", label=label)
    print(
        f"DeepSeek-V3, {label}: "
        + ", ".join(f"{group}: {value:.1f}x" for group, value in zip(WIDE, found, strict=True))
    )
    require(found[-1] < ceiling or label == "no draft", "the draft's ceiling is not reached")
axes[0].axhline(ceiling, color=RED, linestyle=":", label=f"ceiling {ceiling:.1f}x")
exhibit.metric("most that a group can gain with this draft", ceiling, unit="x")
TARGETS = (
    (LLAMA, "Llama-3.1-8B, 8 KV heads", BLUE),
    (QWEN3, "Qwen3-235B, 4 KV heads", SKY),
    (DEEPSEEK, "DeepSeek-V3", ORANGE),
)
for serving, label, colour in TARGETS:
    found = gains(serving, GROUPS)
    axes[1].plot(GROUPS, found, color=colour, marker="o", label=label)
    exhibit.metric(f"gain of 8 ranks, {label}", found[-1], unit="x")
require(gains(LLAMA, (8,))[0] < 1.01, "8 heads on 8 ranks gain nothing from a group")
for axis, groups, title in zip(
    axes, (WIDE, GROUPS), ("DeepSeek-V3 on 128 ranks", "three targets on 8 ranks"), strict=True
):
    axis.set(xscale="log", xlabel="ranks that share a sequence", title=title)
    axis.set_xticks(groups, [str(group) for group in groups])
    axis.minorticks_off()
    axis.grid(axis="y")
    axis.legend()
axes[0].set_yscale("log")
axes[0].set_ylabel("ids / ids of one rank alone")

# %%
# Who fails to start
# ------------------
# Every version below is the reference with one function replaced by what was released or reported. Its tokens are priced by the
# rule: above one, the pools need more than the budget and the server does not start, or fails later; below, memory lies idle.

OSS = Heads(18, 8, 64, 64)
HYBRID = Serving(OSS, Parallel(8), 64, BLOCK, Window(OSS, "0.8", 128))
BIG_DRAFT = replace(DEEPSEEK, draft=Draft("DFLASH", Heads(8, 32, 128, 128), layers=8))
CASES = (
    ("own-cell-once", "once for the group, a few hours in 2026-08", grouped(DEEPSEEK, 8)),
    ("by-layers-always", "by layers, 0.5.17; draft with wider heads", grouped(BIG_DRAFT, 8)),
    ("by-layers-always", "by layers, 0.5.17; draft of 5 layers", grouped(DEEPSEEK, 8)),
    ("draft-by-tensor-width", "all ranks' width, #38202", grouped(replace(DEEPSEEK, parallel=Parallel(4, tensor=8)), 4)),
    ("other-drafts-once", "EAGLE once, #39799, 0.5.23", grouped(replace(DEEPSEEK, draft=Draft("EAGLE", layers=1)), 8)),
    ("request-cap-without-draft", "window pool by requests, 0.5.18 to 0.5.22", replace(HYBRID, window=Window(OSS, "0.8", 128, 20_000))),
    ("hybrid-without-fallback", "hybrid, own cell unknown, 0.5.23", replace(HYBRID, draft=Draft("DFLASH", layers=5))),
    ("two-owners", "two owners, TensorRT-LLM #12188", DEEPSEEK),
)  # fmt: skip


def spent(name: str, serving: Serving) -> float:
    """Bytes of the rows that the wrong version allocates, by the budget."""
    found, price = WRONG[name].plan(serving, 32 * GIB), cell(serving)
    full = price.target_full + price.own + price.layers_full
    return (found.tokens * full + found.window_tokens * (price.target_window + price.layers_window)) / (32 * GIB)


found = [(label, spent(name, serving)) for name, label, serving in CASES]
for label, ratio in found:
    print(f"{label}: {ratio:.3f} of the budget")
require(min(ratio for _, ratio in found) < 1 < max(ratio for _, ratio in found), "both directions are shown")
figure, axis = exhibit.figure(title="Pools by budget, in versions that were released or reported", height=3.4, width=8)
axis.barh(
    [label for label, _ in found],
    [ratio - 1 for _, ratio in found],
    left=1,
    color=[RED if ratio > 1 else SKY for _, ratio in found],
)
axis.axvline(1, color=exhibit.INK, linewidth=0.8)
axis.invert_yaxis()
axis.set(xlabel="bytes of the rows / budget")

# %%
# Allocate it
# -----------
# The same on a small scale with real tensors: 256 MiB, the example of ten gigabytes in pages of 64, target and draft pools with their
# padding pages. On a CUDA device the process is held to the budget and those padding pages, so that the plan that charges the
# draft once fails for want of memory; on the CPU the bytes are counted.

SMALL = 256 << 20
serving = replace(public, page_size=64)


def pool_rows(planner: object) -> tuple[int, int]:
    """(target rows, draft rows), padding pages included."""
    made = planner.plan(serving, SMALL)  # type: ignore[attr-defined]
    return made.tokens + serving.page_size, made.draft.backing_rows


def allocate(target_rows: int, draft_rows: int) -> int:
    """Make both pools and return their bytes; raises torch.cuda.OutOfMemoryError where they do not fit."""
    pools = [
        torch.empty((target_rows, cell(serving).target_full), dtype=torch.uint8, device=device),
        torch.empty((draft_rows, own_cell(serving) or 0), dtype=torch.uint8, device=device),
    ]
    return sum(pool.numel() * pool.element_size() for pool in pools)


import memspec.capacity.draft_pool_budget as ours

padding = plan(serving, SMALL).padding_bytes
if device == "cuda":
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    rounding = 8 << 20  # of the allocator's own segments
    torch.cuda.set_per_process_memory_fraction((SMALL + padding + rounding) / total)
for name, planner in (("charged for each rank", ours), ("charged once", once)):
    rows = pool_rows(planner)
    try:
        size = allocate(*rows)
        outcome = "allocated"
    except torch.cuda.OutOfMemoryError:
        size = rows[0] * cell(serving).target_full + rows[1] * (own_cell(serving) or 0)
        outcome = "out of memory"
    gc.collect()
    exhibit.metric(f"bytes of both pools, {name}", size, unit="B")
    fits = size <= SMALL + padding
    print(f"{name}: {outcome}; {'within' if fits else 'beyond'} the budget and its padding pages")
    require(fits == (planner is ours), "only the draft charged for each rank fits")
    if device == "cuda":
        require((outcome == "allocated") == fits, "the device agrees with the arithmetic")
        torch.cuda.empty_cache()
if device == "cuda":
    torch.cuda.set_per_process_memory_fraction(1.0)

# %%
# A budget too small for one page is refused, not rounded up to one:

try:
    plan(serving, serving.page_size * sum(cell(serving)) - 1)
except NotEnoughMemory as refusal:
    print(refusal)
else:
    raise RuntimeError("a budget of less than a page was accepted")

# %%
# What to take along
# ------------------
# Ask of every pool beside the target's: over which ids is it indexed, and who keeps them? What every rank keeps is charged for
# every id. Then divide once, round down to pages, and say each number.
