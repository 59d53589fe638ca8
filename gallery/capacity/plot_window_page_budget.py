"""
Sliding-window budgets in physical pages
========================================

A decode worker with two pools of pages lets retracted requests back in while their budgets last. Counted in tokens,
the budgets overlook the unused end of every request's last page. This script shows how much that is, how far the old
rule overcommits, and what becomes of a worker that runs by it.

The clauses are those of ``window-page-budget``.
"""

# %%
# The device plays no part in the counting; it is named so that a record says where it was made.

from __future__ import annotations

from memspec.capacity.window_page_budget import (
    Budget,
    PagesRefused,
    Request,
    Worker,
    charge,
    demand,
    fill,
    replay,
    resume,
)
from memspec.capacity.window_page_budget.faults import FAULTS
from memspec_tools import exhibit

device = exhibit.device()
exhibit.banner(device)

old = next(fault for fault in FAULTS if fault.name == "token-arithmetic").subject()

# %%
# Hidden waste
# ------------
#
# What the allocator takes less what the request stores, in both pools. In the full pool it is a saw-tooth: nothing at
# whole pages, a page less one token right above them. In the window pool the tail begins at a page boundary too, so a
# window of whole pages can touch one page more than it fills.
#
# gpt-oss-120b keeps 36,864 bytes a token in its 18 full layers and as many in its 18 layers with a window of 128
# (published configuration, bf16).

BYTES_PER_TOKEN = 36_864
WINDOW = 128
PAGES = (16, 64, 128)
lengths = range(1, 1025)


def hidden(page_size: int) -> tuple[list[int], list[int]]:
    """Tokens that the full and the window pool hold beyond those that anybody reads, for each length."""
    worker = Worker(page_size, WINDOW, reserve=0)
    pages = [charge(worker, tokens) for tokens in lengths]
    full = [found.full * page_size - tokens for found, tokens in zip(pages, lengths, strict=True)]
    window = [found.window * page_size - min(tokens, WINDOW) for found, tokens in zip(pages, lengths, strict=True)]
    return full, window


figure, axes = exhibit.figure(
    2, 1, "Each request hides up to a page less one token in the full pool, up to a page in the window pool", 4.6
)
for page_size in PAGES:
    full, window = hidden(page_size)
    if max(full) != page_size - 1 or min(full) != 0:
        raise RuntimeError(f"full waste at a page of {page_size} runs from {min(full)} to {max(full)} tokens")
    if max(window) != page_size:
        raise RuntimeError(f"window waste at a page of {page_size} reaches {max(window)} tokens")
    exhibit.metric(f"largest waste in the full pool, page of {page_size}", max(full), "tokens")
    exhibit.metric(f"largest waste in the window pool, page of {page_size}", max(window), "tokens")
    axes[0].plot(lengths, full, label=f"page of {page_size}", linewidth=1)
    axes[1].plot(lengths, window, linewidth=1)
axes[0].set_ylabel("full pool, tokens")
axes[1].set_ylabel("window pool, tokens")
axes[1].set_xlabel(f"stored tokens (window of {WINDOW})")
axes[0].set_ylim(-5, 170)
axes[0].legend(ncols=3, loc="upper right")

mean = sum(hidden(128)[0]) / len(lengths)
exhibit.metric("mean waste in the full pool, page of 128", mean, "tokens")
exhibit.metric("the same for gpt-oss-120b", mean * BYTES_PER_TOKEN / 2**20, "MiB per request")

# %%
# Overcommit
# ----------
#
# Requests of one length, admitted by the old rule until the budget of a full pool is spent: the pages that they need
# over the pages that there are. Above a page it stays below two and comes closest one token above a page. Requests
# shorter than a page are left out: there the ratio has no such bound.

POOL_TOKENS = 1 << 15
page_sizes = (16, 32, 64, 128, 256, 512)
multiples = [1 + step / 16 for step in range(65)]


def overcommit(page_size: int, tokens: int) -> float:
    """Pages needed over pages there, for the requests that the old rule admits."""
    worker = Worker(page_size, reserve=0, window_pool=False)
    queue = [Request(str(number), tokens) for number in range(POOL_TOKENS // tokens + 1)]
    admitted = len(old.resume(worker, queue, Budget(POOL_TOKENS, 0), len(queue)).resumed)
    right = len(resume(worker, queue, Budget(POOL_TOKENS, 0), len(queue)).resumed)
    if right * charge(worker, tokens).full * page_size > POOL_TOKENS:
        raise RuntimeError(f"{right} requests of {tokens} tokens do not fit {POOL_TOKENS} tokens")
    return admitted * charge(worker, tokens).full * page_size / POOL_TOKENS


ratios = [[overcommit(page, round(page * multiple) + (multiple == 1)) for multiple in multiples] for page in page_sizes]
worst = max(max(row) for row in ratios)
if not 1.9 < worst < 2:
    raise RuntimeError(f"the worst overcommit is {worst}, not just below two")
exhibit.metric("worst overcommit", worst, "x")
exhibit.metric("overcommit of the upstream test (page of 128, 574 tokens)", overcommit(128, 574), "x")

figure, axis = exhibit.figure(1, 1, "The old rule promises up to nearly twice the pages that there are", 3.0)
image = axis.imshow(ratios, aspect="auto", cmap="viridis", vmin=1, vmax=2, extent=(1, 5, len(page_sizes), 0))
axis.set_yticks([row + 0.5 for row in range(len(page_sizes))], [str(page) for page in page_sizes])
axis.set_xlabel("request length in pages (the first column is one token above a page)")
axis.set_ylabel("page size, tokens")
figure.colorbar(image, ax=axis, label="pages needed / pages there")

# %%
# A run of the queue
# ------------------
#
# A worker with 48 pages of 128 tokens. A request joins the queue each turn; each turn has four decode steps; every
# fourth turn the three oldest requests leave and a pass is made over the queue. Both workers see the same events. The
# old rule may run for a while: each pass begins with what is really free, so only what is hidden within one pass adds
# up. In the end a pass promises pages that are not there, an allocation fails, and the run is over. Under the new
# rule a pass stops at the first request that does not fit, and the queue moves on as others finish.

worker = Worker(128, 2047, reserve=0)
FULL, IN_WINDOW, TURNS = 48, 96, 48
LENGTHS = (574, 896, 129, 1030, 640, 385, 1153, 257)
events: list[dict[str, object]] = []
for turn in range(TURNS):
    events += [{"do": "retract", "name": f"r{turn}", "prompt": LENGTHS[turn % len(LENGTHS)]}] if turn < 32 else []
    events += [{"do": "decode"}] * 4
    events += [*[{"do": "finish"}] * 3, {"do": "resume"}] if turn % 4 == 3 else []


def run(implementation: object) -> tuple[list[int], list[int], str]:
    """Free full pages and queued requests after each event, and what ended the run, if anything did."""
    end = ""
    for number in range(len(events), 0, -1):
        try:
            outcomes = implementation.replay(worker, FULL, IN_WINDOW, events[:number])
        except PagesRefused as refusal:
            end = str(refusal)
        else:
            return [o["free"][0] for o in outcomes], [len(o["queued"]) for o in outcomes], end
    raise RuntimeError("not even the first event was served")


class Merged:
    """The reference, as an object with the same method."""

    replay = staticmethod(replay)


new_free, new_queued, new_end = run(Merged)
old_free, old_queued, old_end = run(old)
print(f"old rule: {old_end}")
if new_end or not old_end:
    raise RuntimeError(f"the new rule ended with {new_end!r}, the old one with {old_end!r}")
if new_queued[-1] != 0 or not max(new_queued):
    raise RuntimeError(f"{new_queued[-1]} requests still wait; at most {max(new_queued)} did")
exhibit.metric("events", len(events))
exhibit.metric("event at which the old rule crashes", len(old_free) + 1)
exhibit.metric("longest queue under the new rule", max(new_queued), "requests")

figure, axes = exhibit.figure(
    2, 1, "The old rule runs until an allocation fails; the new one serves the whole queue", 4.4, sharex=True
)
for free, queued, name, line in (
    (new_free, new_queued, "whole pages", "-"),
    (old_free, old_queued, "tokens (old)", "--"),
):
    steps = range(1, len(free) + 1)
    axes[0].step(steps, free, line, where="post")
    axes[1].step(steps, queued, line, where="post", label=name)
for axis in axes:
    axis.axvline(len(old_free) + 1, color=exhibit.PALETTE[3], linestyle=":", linewidth=1.2)
axes[0].annotate(
    "old rule crashes", (len(old_free) + 1, FULL * 0.92), xytext=(6, 0), textcoords="offset points", fontsize=8
)
axes[0].set_ylabel("free full pages")
axes[1].set_ylabel("queued requests")
axes[1].set_xlabel("event")
axes[1].legend(loc="upper right")

# %%
# The upstream test
# -----------------
#
# 18 pages of 128 tokens and four retracted requests of 574 tokens: three come back and three pages are left; the old
# rule promises the fourth its pages.

arrivals = [{"do": "retract", "name": f"r{number}", "prompt": 574} for number in range(4)]
first = replay(worker, 18, 40, [*arrivals, {"do": "resume"}])[-1]
if (first["resumed"], first["free"][0], first["stopped"]) != (["r0", "r1", "r2"], 3, "full"):
    raise RuntimeError(f"the pass brought back {first}")
promised = old.resume(
    worker, [Request(f"r{number}", 574) for number in range(4)], Budget(18 * 128, 40 * 128), 4
).resumed
exhibit.metric("requests that come back", len(first["resumed"]))
exhibit.metric("pages left", first["free"][0], "pages")
exhibit.metric("requests that the old rule admits", len(promised))

# %%
# One request, step by step
# -------------------------
#
# The same numbers for a request that was retracted after 40 outputs: the last sampled token has no KV, pages come
# first, the reserve after them.

gpt_oss = Worker(64, WINDOW, reserve=512)
request = Request("r", 1000, 40)
need, pages = demand(gpt_oss, request), charge(gpt_oss, fill(request))
exhibit.metric("stored tokens", fill(request), "tokens")
exhibit.metric("pages of the full pool", pages.full, "pages")
exhibit.metric("pages of the window pool", pages.window, "pages")
exhibit.metric("demand on the full pool", need.full, "tokens")
exhibit.metric("demand on the window pool", need.window, "tokens")
