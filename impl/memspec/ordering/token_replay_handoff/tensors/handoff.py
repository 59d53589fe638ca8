"""The handoff on real bytes: two workers with a pool each, and a copy that takes its time.

The prefill worker goes on decoding while its prompt pages are copied, one page of one layer at a time, into the decode
worker's pool. The decode worker replays the log, takes over, and the tokens must be those of a single worker.

What a missing page freeze does, as found by running it:

* Rows that are appended behind the prompt do no harm by themselves. The copied page carries rows that nobody asked for,
  a different number in each layer, but the decode worker masks by its own length and overwrites them in the replay.
* They do harm where the page says how full it is (``arrived="page-fill"``, as a page store does that keys a page by the
  tokens it holds when the copy ends): the rows were read earlier, layer by layer, so the page is torn under a valid key.
* They do harm where the page has another reader that appends (``sharer=True``): both write the same row. Delaying the
  bridge does not help then; a private copy does.
* State that is updated in place (``Shape.in_place``) has no rows to mask: without a snapshot the bridge tokens are in
  the state that is sent, and the replay applies them a second time, whatever the page size.
* A freeze at the source does not protect the target: a whole page that lands after the replay has begun
  (``replay_waits=False``) takes the replayed rows with it.

Sources: sgl-project/sglang issue #32143 (freeze, replay), novitalabs/pegaflow PR #395 (torn page under a valid key).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from memspec.ordering.token_replay_handoff.tensors.decoder import (
    HandoffError,
    Rows,
    Weights,
    Worker,
    choose,
    forward,
    gather,
    make_worker,
)

Mode = Literal["decode", "extend"]
Freeze = Literal["copy-on-write", "delay", "off"]
Arrived = Literal["prompt", "page-fill"]
Unit = tuple[int, int]  # (layer, page of the prompt): what one step of the copy moves

TOLERANCE_EPS = 16  # float32 KV may differ by this many epsilons times the largest element; about 5 have been seen


@dataclass(frozen=True)
class AloneRun:
    tokens: tuple[int, ...]
    margin: float  # smallest distance between the best and the second-best logit of the run
    keys: Tensor  # (layers, rows, kv_heads, head_dim)
    values: Tensor


@dataclass(frozen=True)
class HandoffRun:
    tokens: tuple[int, ...]  # the log, then what the decode worker makes of it
    log: tuple[int, ...]
    mismatch: int | None  # first log index at which the decode worker would have chosen another token
    # per layer: rows of the last prompt page that are not as frozen when the replay starts
    rows_beyond_prompt: tuple[int, ...]
    kv_error_max: float  # largest difference between a replayed KV element and the source's, 0 where none was replayed
    kv_scale: float  # largest KV element of the source
    keys: Tensor  # the decode worker's, (layers, rows, kv_heads, head_dim)
    values: Tensor


def continued(worker: Worker, rows: Rows, feed: Sequence[int], count: int) -> list[int]:
    """Greedy: ``feed`` in one pass, then one token a step, ``count`` tokens in all."""
    made: list[int] = []
    while len(made) < count:
        made.append(choose(forward(worker, rows, made[-1:] or feed)))
    return made


def pages_for(tokens: int, page_size: int) -> int:
    return -(-tokens // page_size)


def run_alone(weights: Weights, prompt: Sequence[int], max_new_tokens: int, page_size: int = 8) -> AloneRun:
    """One undisturbed worker: prefill in one pass, then greedy decode."""
    worker, rows = make_worker(weights, page_size, pages_for(len(prompt) + max_new_tokens, page_size)), Rows()
    tokens: list[int] = []
    margins = []
    while len(tokens) < max_new_tokens:
        logits = forward(worker, rows, tokens[-1:] or prompt)
        best = logits[-1].topk(2).values
        margins.append(float(best[0] - best[1]))
        tokens.append(choose(logits))
    return AloneRun(tuple(tokens), min(margins), *gather(worker, rows, slice(None), rows.length))


def row_error(one: AloneRun | HandoffRun, other: AloneRun | HandoffRun) -> Tensor:
    """Largest difference in each row that both have, keys and values together: (layers, rows), float64, on the CPU."""
    count = min(one.keys.shape[1], other.keys.shape[1])
    pairs = ((one.keys, other.keys), (one.values, other.values))
    apart = [(a[:, :count].double() - b[:, :count].double()).abs().amax((-2, -1)) for a, b in pairs]
    return torch.maximum(*apart).cpu()


def private_tail(worker: Worker, rows: Rows) -> Rows:
    """Copy-on-write before the first bridge write: a fresh page with the prompt's rows of the last one."""
    page, kept = divmod(rows.length, worker.page_size)
    copied = Rows(list(rows.pages), rows.length, rows.state)
    if kept:
        copied.pages[page] = worker.free.pop()
        for pool in (worker.keys, worker.values):
            pool[:, copied.pages[page], :kept] = pool[:, rows.pages[page], :kept]
    return copied


def run_handoff(
    weights: Weights,
    prompt: Sequence[int],
    max_new_tokens: int,
    *,
    bridge_tokens: int,
    page_size: int = 8,
    mode: Mode = "extend",
    page_freeze: Freeze = "copy-on-write",
    state_snapshot: bool = True,
    arrived: Arrived = "prompt",
    sharer: bool = False,
    replay_waits: bool = True,
    copy_order: Sequence[Unit] | None = None,
) -> HandoffRun:
    """Prefill on one worker, decode ``bridge_tokens`` there while the prompt is copied, replay on the other, go on
    there.

    ``copy_order`` names every (layer, page) of the prompt once; the default goes layer by layer. The copy is spread
    evenly over the bridge. The state, if any, is sent with the last of it. ``arrived`` is how many rows the decode
    worker takes to be in the copied pages: those of the prompt, or as many as the last page holds at the prefill worker
    when the copy ends. ``sharer``: a second request of the prefill worker has the same prompt pages, took the
    second-best first token, and decodes in step. ``replay_waits=False``: the replay starts before the last unit of the
    copy has landed. A mismatch is recorded, and the run goes on as if nobody had compared.

    Raises HandoffError for a bridge that leaves the decode worker nothing to do, an order that misses a unit, or an
    empty log with a recurrent state.
    """
    length, last = len(prompt), pages_for(len(prompt), page_size) - 1
    if not 0 <= bridge_tokens < max_new_tokens:
        raise HandoffError(f"{bridge_tokens} bridge tokens; at least 0 and at most {max_new_tokens - 1}")
    if weights.shape.in_place == "recurrent" and bridge_tokens == 0:
        raise HandoffError("0 bridge tokens; a recurrent state already holds the last prompt token, so at least 1")
    every = [(layer, page) for layer in range(weights.shape.layers) for page in range(last + 1)]
    order = list(every if copy_order is None else copy_order)
    if sorted(order) != every:
        raise HandoffError(f"copy_order has {len(order)} units; it must name each of the {len(every)} units once")

    room = 3 * pages_for(length + max_new_tokens, page_size)
    source, target = make_worker(weights, page_size, room), make_worker(weights, page_size, room)
    prompt_rows, there = Rows(), Rows([target.free.pop(0) for _ in range(last + 1)])
    logits = forward(source, prompt_rows, prompt)
    image = [pool[:, prompt_rows.pages[last]].clone() for pool in (source.keys, source.values)]
    snapshot = None if prompt_rows.state is None else prompt_rows.state.clone()
    frozen = page_freeze == "copy-on-write"
    here = private_tail(source, prompt_rows) if frozen else Rows(list(prompt_rows.pages), length, prompt_rows.state)
    other = private_tail(source, prompt_rows) if frozen else Rows(list(prompt_rows.pages), length)
    other.state = None if snapshot is None else snapshot.clone()
    other_token = int(logits[-1].topk(2).indices[1])

    log: list[int] = []
    waits = page_freeze == "delay" and length % page_size != 0
    due = [len(order) if waits else len(order) * (i + 1) // (bridge_tokens + 1) for i in range(bridge_tokens + 1)]
    due[-1] -= 0 if replay_waits else 1

    def copy(units: Sequence[Unit]) -> None:
        for layer, page in units:
            for pool, into in ((source.keys, target.keys), (source.values, target.values)):
                into[layer, there.pages[page]] = pool[layer, prompt_rows.pages[page]]

    for gap, until in enumerate(due):
        copy(order[due[gap - 1] if gap else 0 : until])
        if gap < bridge_tokens:
            log.append(choose(forward(source, here, log[-1:]) if log else logits))
            if sharer and gap:
                other_token = choose(forward(source, other, [other_token]))
    there.state = snapshot if state_snapshot else None if here.state is None else here.state.clone()
    received = [pool[:, there.pages[last]] for pool in (target.keys, target.values)]
    changed = [(a != b).flatten(2).any(-1) for a, b in zip(received, image, strict=True)]
    beyond = tuple(torch.logical_or(*changed).sum(-1).tolist())

    full = (last + 1) * page_size
    fill = min(here.length, full) if arrived == "page-fill" and not frozen and not waits else length
    there.length = fill if log else length - 1
    mismatch = replay(target, there, log, fill - length, mode)
    copy(order[due[-1] :])
    sent = length + max(len(log) - 1, 0)
    mine, theirs = gather(source, here, slice(None), sent), gather(target, there, slice(None), sent)
    apart = [(a[:, length:] - b[:, length:]).abs() for a, b in zip(mine, theirs, strict=True)]
    error = max(float(difference.max()) if difference.numel() else 0.0 for difference in apart)
    scale = max(float(pool.abs().max()) for pool in mine)
    made = continued(target, there, log[-1:] or prompt[-1:], max_new_tokens - len(log))
    keys, values = gather(target, there, slice(None), there.length)
    return HandoffRun((*log, *made), tuple(log), mismatch, beyond, error, scale, keys, values)


def replay(worker: Worker, rows: Rows, log: Sequence[int], already: int, mode: Mode) -> int | None:
    """Rebuild the rows of ``log[already:-1]``; return the first log index that would have been chosen differently.

    ``decode`` compares after each token, ``extend`` runs all in one pass and compares its one sample with the last.
    """
    inputs = list(log[already:-1])
    if not inputs:
        return None
    if mode == "extend":
        return None if choose(forward(worker, rows, inputs)) == log[-1] else len(log) - 1
    differs = [choose(forward(worker, rows, [token])) != log[already + i + 1] for i, token in enumerate(inputs)]
    return already + differs.index(True) + 1 if True in differs else None
