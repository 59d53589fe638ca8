"""
Chunked attention in an offload store: asked for, read, loaded
==============================================================

Three of four layers of Llama 4 Scout read only the tokens of the current attention chunk of 8192 tokens. An offload store
keeps KV in chunks of its own length. This page shows where the two grids meet, how much a lookup asks for and how much is
read as a prompt grows, what the difference costs, and what a resume has to copy.

Everything here is counted, not measured; sizes are those of the published model configuration.
"""

# %%
# Two grids over one prompt
# -------------------------
# The ruler shows one boundary ``N`` with offload chunks of 1024 and of 768 tokens. The layer reads the tokens from the start
# of its attention chunk up to ``N``. Chunks that hold such tokens are needed; those that a lookup asks for beyond them only
# decide whether it calls the prompt a hit.

from __future__ import annotations

from fractions import Fraction

from memspec.capacity.chunked_attention_window import (
    LayerGroup,
    chunks_to_load,
    covers_every_boundary,
    demanded_chunks,
    device_hit,
    external_hit,
    mean_need,
    needed_chunks,
    window_in_chunks,
    worst_need,
)
from memspec.capacity.chunked_attention_window.faults import FAULTS
from memspec_tools import exhibit

device = exhibit.device()
exhibit.banner(device)
BLUE, ORANGE, GREEN, RED, SKY, PINK, _ = exhibit.PALETTE

C = 8192  # tokens of an attention chunk, Llama 4
BLOCK = 16  # tokens of a device block
K = 1024  # tokens, for axes


def require(holds: bool, what: str) -> None:
    """The page must not be built on a result that contradicts its text."""
    if not holds:
        raise RuntimeError(f"this page claims what this run did not show: {what}")


_, rulers = exhibit.figure(
    4, 1, "What token N reads (blue) and what the lookup asks for (outlined)", height=4.6, width=9, sharex=True
)
for axis, (boundary, size) in zip(rulers, ((12_288, 1024), (16_383, 1024), (16_383, 768), (16_384, 1024)), strict=True):
    group = LayerGroup("chunked-local", size, attention_chunk=C)
    needed, window, last = needed_chunks(boundary, C, size), window_in_chunks(C, size), -(-boundary // size)
    for chunk in range(-(-20 * K // size)):
        axis.barh(0, size / K, left=chunk * size / K, height=0.8, color=BLUE if chunk in needed else "none", alpha=0.6)
        axis.barh(
            0, size / K, left=chunk * size / K, height=0.8, facecolor="none", edgecolor=exhibit.INK, linewidth=0.5
        )
        if last - window <= chunk < last:
            axis.barh(0, size / K, left=chunk * size / K, height=0.8, facecolor="none", edgecolor=ORANGE, linewidth=1.8)
    for start in (0, C, 2 * C):
        axis.axvline(start / K, color=GREEN, linewidth=2)
    axis.axvline(boundary / K, color=RED, linestyle="--")
    axis.set_yticks([])
    axis.set_title(f"T = {size}, N = {boundary:,}: {len(needed)} read, {window} asked for as released", loc="left")
rulers[-1].set_xlim(-0.1, 20)
rulers[-1].set_xlabel("tokens, in units of 1024 (green: start of an attention chunk; red: N)")

require(
    len(needed_chunks(16_383, C, 768)) == window_in_chunks(C, 768) + 1, "768: one chunk more is read than asked for"
)
require(not needed_chunks(16_384, C, 1024), "nothing is read at a chunk start")

# %%
# In the third ruler one blue chunk lies outside the outline. A lookup that asks for eleven chunks claims the boundary
# although chunk 10 is missing. The twin below asks as vLLM 0.33.0 does; the cap of 16,384 tokens stands for a prompt that
# another cache bounds.

groups = (LayerGroup("full-attention", 768), LayerGroup("chunked-local", 768, attention_chunk=C))
released = next(fault for fault in FAULTS if fault.name == "window-off-the-grid").subject()
for what, missing in (("chunk 10 missing", 11), ("chunk 10 stored", 10)):
    answers = ("H" * 40, "M" * missing + "H" * (40 - missing))
    seen, due = (
        released.external_hit(30_720, 0, groups, answers, 16_384),
        external_hit(30_720, 0, groups, answers, 16_384),
    )
    exhibit.metric(f"{what}: hit, demand as released", seen or 0, "tokens")
    exhibit.metric(f"{what}: hit, demand of what is read", due or 0, "tokens")
    require((seen, due) == (16_383, 16_383 if missing == 10 else 0), "only the missing chunk makes the difference")

# %%
# A sawtooth against a constant
# -----------------------------
# The need grows from nothing to the whole attention chunk and falls back. The lookup asks for the same number everywhere;
# the part of the orange line above the blue one is asked for and not read. The dots are boundaries that are neither on the
# offload grid nor one token before it and at which more is read than the released lookup asks for.

_, axes = exhibit.figure(1, 3, "Chunks read at N (blue) and asked for (orange)", height=3.2, width=9)
for axis, size in zip(axes, (1024, 3000, 768), strict=True):
    turns = [n + d for step in (size, C) for n in range(0, 3 * C, step) for d in (0, 1)]
    places = sorted(n for n in set(turns) if n < 3 * C)
    axis.step([n / K for n in places], [len(needed_chunks(n, C, size)) for n in places], where="post", color=BLUE)
    axis.axhline(window_in_chunks(C, size), color=ORANGE)
    beyond = [n for n in range(3 * C) if len(needed_chunks(n, C, size)) > window_in_chunks(C, size)]
    if beyond:
        axis.plot(
            [n / K for n in beyond[::16]],
            [len(needed_chunks(n, C, size)) for n in beyond[::16]],
            ".",
            color=RED,
            markersize=3,
        )
    axis.set_title(f"T = {size}: {window_in_chunks(C, size)} asked for")
    axis.set_xlabel("N, in units of 1024 tokens")
    require(bool(beyond) == (not covers_every_boundary(C, size)), "the closed form knows where the window fails")
    require(all(n % size not in (0, size - 1) for n in beyond), "no such boundary is on the grid or one before")
    exhibit.metric(f"T = {size}: mean read at boundaries on the grid", float(mean_need(C, size)), "chunks")
axes[0].set_ylabel("offload chunks")

# %%
# How long should an offload chunk be?
# ------------------------------------
# A longer chunk asks for fewer objects, and rounds every hit down further. The last columns say whether the released demand
# is enough at every boundary, and how much of what is asked for is read on average.
#
# The right-hand panel is a model: every stored chunk is lost with a fixed probability, independently. A *false miss* is then
# a boundary at which all that is read is there and something that is only asked for is not. Real stores lose chunks by age,
# not by lot.

CHOICES = [2**i for i in range(3, 10)] + [48, 96, 188]
print(f"{'blocks':>6} {'T':>5} {'w':>4} {'mean read':>10} {'most read':>10}  {'w enough':<9} {'read of asked':>13}")
for blocks in sorted(CHOICES):
    size = blocks * BLOCK
    enough = "always" if covers_every_boundary(C, size) else "on grid"
    share = mean_need(C, size) / window_in_chunks(C, size)
    print(
        f"{blocks:>6} {size:>5} {window_in_chunks(C, size):>4} {float(mean_need(C, size)):>10.2f} {worst_need(C, size):>10}"
        f"  {enough:<9} {float(share):>12.0%}"
    )


def false_miss(size: int, loss: float) -> float:
    """Mean over the boundaries on the grid of: all that is read is there, and not all that is asked for."""
    places = [k * size for k in range(1, Fraction(C, size).numerator + 1)]
    window = window_in_chunks(C, size)
    return sum((1 - loss) ** len(needed_chunks(n, C, size)) - (1 - loss) ** window for n in places) / len(places)


sizes = [BLOCK * blocks for blocks in range(8, 513, 4)]
_, (asked, missed) = exhibit.figure(
    1, 2, "What whole windows cost, against the length of an offload chunk", height=3.4, width=9
)
asked.plot(sizes, [window_in_chunks(C, size) for size in sizes], color=ORANGE, label="asked for")
asked.plot(sizes, [float(mean_need(C, size)) for size in sizes], color=BLUE, label="read on average, on the grid")
asked.set_yscale("log")
asked.set_xlabel("offload chunk, tokens")
asked.set_ylabel("offload chunks")
asked.legend()
for loss, colour in ((0.01, GREEN), (0.05, RED)):
    missed.plot(
        sizes, [100 * false_miss(size, loss) for size in sizes], color=colour, label=f"{loss:.0%} of chunks lost"
    )
missed.set_xlabel("offload chunk, tokens")
missed.set_ylabel("false misses, % of boundaries")
missed.set_title("Model: chunks lost independently")
missed.legend()
require(
    all(0 <= false_miss(size, 0.05) < 1 for size in sizes),
    "a false miss is never negative: w covers what is read on the grid",
)
for size in (256, 1024, 4096):
    exhibit.metric(
        f"T = {size}: share of what is asked for that is read", float(mean_need(C, size) / window_in_chunks(C, size))
    )

# %%
# What a resume loads
# -------------------
# Llama 4 Scout has 48 layers, 12 with full attention and 36 with attention chunks of 8192 tokens, each with 8 KV heads of
# 128 elements for K and for V, here in bfloat16. A resume at ``N`` copies every chunk of the full layers and, of the chunked
# layers, only the open attention chunk.

LAYER_TOKEN = 2 * 8 * 128 * 2  # bytes of one layer for one token: K and V, heads, elements, bytes
FULL, CHUNKED, T = 12 * LAYER_TOKEN, 36 * LAYER_TOKEN, 1024
exhibit.metric("full layers, KV of one token", FULL, "B")
exhibit.metric("chunked layers, KV of one token", CHUNKED, "B")

where = range(0, 128 * K + 1, T)
full_bytes = [n * FULL for n in where]
chunked_bytes = [len(chunks_to_load(0, n, C, T)) * T * CHUNKED for n in where]
as_full = [n * CHUNKED for n in where]
GIB = 2**30

_, axis = exhibit.figure(1, 1, "Llama 4 Scout, bfloat16: bytes to copy for a resume at N", height=3.4, width=8)
axis.fill_between(
    [n / K for n in where], [b / GIB for b in full_bytes], color=BLUE, alpha=0.5, step="post", label="12 full layers"
)
axis.fill_between(
    [n / K for n in where],
    [b / GIB for b in full_bytes],
    [(a + b) / GIB for a, b in zip(full_bytes, chunked_bytes, strict=True)],
    color=ORANGE,
    alpha=0.7,
    step="post",
    label="36 chunked layers, open chunk only",
)
axis.plot(
    [n / K for n in where],
    [(a + b) / GIB for a, b in zip(full_bytes, as_full, strict=True)],
    color=exhibit.INK,
    linestyle="--",
    label="all 48 as full attention",
)
axis.set_xlabel("N, in units of 1024 tokens")
axis.set_ylabel("GiB")
axis.legend()

for boundary in (100 * K, 104 * K - 1, 104 * K):
    loaded = len(chunks_to_load(0, boundary, C, T)) * T * CHUNKED + -(-boundary // T) * T * FULL
    everything = -(-boundary // T) * T * (FULL + CHUNKED)
    exhibit.metric(f"resume at {boundary:,}: copied", loaded / GIB, "GiB")
    exhibit.metric(f"resume at {boundary:,}: as full attention", everything / GIB, "GiB")
require(max(chunked_bytes) <= window_in_chunks(C, T) * T * CHUNKED, "chunked layers never load more than one window")

# %%
# The device's rule is another one
# --------------------------------
# For the same layers the device's cache asks which blocks may stay empty. At a multiple of the attention chunk it reports a
# full hit with nothing resident; the store, which has to supply content, reports none. Taking one for the other is a false
# hit or a lost cache.

exhibit.metric("nothing resident, 16 tokens, chunk 8: device", device_hit(16, 8, 4, [False] * 4).tokens, "tokens")
store = external_hit(16, 0, [LayerGroup("chunked-local", 4, attention_chunk=8)], ["MMMM"])
exhibit.metric("nothing resident, 16 tokens, chunk 8: store", store or 0, "tokens")
require((device_hit(16, 8, 4, [False] * 4).tokens, store) == (16, 0), "the two rules disagree on purpose")
asked_for = demanded_chunks(16_383, LayerGroup("chunked-local", 768, attention_chunk=C))
require(asked_for == 12, "the reference asks for what is read")
