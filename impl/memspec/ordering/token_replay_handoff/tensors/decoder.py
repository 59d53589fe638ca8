"""A small greedy decoder with paged attention: random weights, a pool of pages for each worker, one forward pass.

Two pre-norm layers, grouped-query attention, learned positions. The weights decide device and dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

STALE = 3.0  # what a page holds from its last owner


class HandoffError(ValueError):
    """The run has no meaning; names the value and the limit."""


@dataclass(frozen=True)
class Shape:
    """A decoder to experiment with. ``in_place`` adds a layer without pages, between the first two layers.

    ``recurrent``: one vector that every token updates. ``ring``: the last ``window`` rows, slot ``position % window``.
    """

    vocabulary: int = 128
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    positions: int = 256
    in_place: Literal["none", "recurrent", "ring"] = "none"
    window: int = 8

    @property
    def hidden(self) -> int:
        return self.heads * self.head_dim


@dataclass(frozen=True)
class Weights:
    shape: Shape
    embedding: Tensor  # (vocabulary, hidden)
    head: Tensor  # (hidden, vocabulary)
    position: Tensor  # (positions, hidden)
    query: Tensor  # (layers, hidden, hidden)
    key_value: Tensor  # (layers, hidden, 2 * kv_heads * head_dim)
    output: Tensor  # (layers, hidden, hidden)
    up: Tensor  # (layers, hidden, 2 * hidden)
    down: Tensor  # (layers, 2 * hidden, hidden)
    into_state: Tensor  # (hidden, hidden)


@dataclass
class Worker:
    """One worker's own pool. ``keys`` and ``values``: (layers, num_pages, page_size, kv_heads, head_dim)."""

    weights: Weights
    page_size: int
    keys: Tensor
    values: Tensor
    free: list[int]


@dataclass
class Rows:
    """One request at one worker: its pages in order, how many rows attention may read, and its in-place state."""

    pages: list[int] = field(default_factory=list)
    length: int = 0
    state: Tensor | None = None  # recurrent: (hidden,); ring: (window, 2, hidden)


def make_weights(
    generator: torch.Generator, device: str, dtype: torch.dtype = torch.float32, shape: Shape | None = None
) -> Weights:
    """Random weights, drawn on the CPU in float64 so that every device gets the same numbers, rounded once."""
    shape = shape or Shape()
    hidden, kv, layers = shape.hidden, 2 * shape.kv_heads * shape.head_dim, shape.layers

    def draw(*size: int, gain: float = 1.0) -> Tensor:
        drawn = torch.randn(*size, generator=generator, dtype=torch.float64)
        return (drawn * gain / size[-2] ** 0.5).to(device, dtype)

    return Weights(
        shape,
        embedding=draw(shape.vocabulary, hidden, gain=shape.vocabulary**0.5),
        head=draw(hidden, shape.vocabulary),
        position=draw(shape.positions, hidden, gain=shape.positions**0.5),
        query=draw(layers, hidden, hidden, gain=2.0),
        key_value=draw(layers, hidden, kv),
        output=draw(layers, hidden, hidden, gain=2.0),
        up=draw(layers, hidden, 2 * hidden),
        down=draw(layers, 2 * hidden, hidden),
        into_state=draw(hidden, hidden),
    )


def cast(weights: Weights, dtype: torch.dtype) -> Weights:
    """The same numbers in another dtype: a float64 copy of float32 weights measures the arithmetic alone."""
    tensors = {name: thing.to(dtype) for name, thing in vars(weights).items() if isinstance(thing, Tensor)}
    return Weights(weights.shape, **tensors)


def make_worker(weights: Weights, page_size: int, num_pages: int) -> Worker:
    """A pool of its own, full of its last owner's bytes. Pages are handed out from the highest index down."""
    shape = weights.shape
    size = (shape.layers, num_pages, page_size, shape.kv_heads, shape.head_dim)
    keys = torch.full(size, STALE, dtype=weights.embedding.dtype, device=weights.embedding.device)
    return Worker(weights, page_size, keys, keys.clone(), list(range(num_pages)))


def gather(worker: Worker, rows: Rows, layer: int | slice, length: int) -> tuple[Tensor, Tensor]:
    """The first ``length`` rows of a request: keys and values, (layers..., length, kv_heads, head_dim)."""
    found = [pool[layer, rows.pages].flatten(-4, -3)[..., :length, :, :] for pool in (worker.keys, worker.values)]
    return found[0], found[1]


def normalized(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def forward(worker: Worker, rows: Rows, tokens: Sequence[int]) -> Tensor:
    """Append ``tokens``: write their KV rows, advance the state, return the logits of each, (n, vocabulary).

    One token is a decode step; several are an extend. Both attend to the rows below their own position and to no
    others.
    """
    weights, shape, start, count = worker.weights, worker.weights.shape, rows.length, len(tokens)
    if not 0 < count <= shape.positions - start:
        raise HandoffError(f"{count} tokens at position {start}; at least 1, up to position {shape.positions}")
    while len(rows.pages) * worker.page_size < start + count:
        if not worker.free:
            raise HandoffError(f"no free page for position {start + count - 1}; all {worker.keys.shape[1]} are in use")
        rows.pages.append(worker.free.pop())
    device = weights.embedding.device
    at = torch.arange(start, start + count, device=device)
    slots = torch.tensor(rows.pages, device=device)[at // worker.page_size] * worker.page_size + at % worker.page_size
    hidden_by_causality = torch.arange(start + count, device=device) > at[:, None]  # (n, rows)
    x = weights.embedding[torch.tensor(tokens, device=device)] + weights.position[at]
    for layer in range(shape.layers):
        y = normalized(x)
        new_keys, new_values = (y @ weights.key_value[layer]).view(count, 2, shape.kv_heads, shape.head_dim).unbind(1)
        worker.keys[layer].flatten(0, 1)[slots] = new_keys
        worker.values[layer].flatten(0, 1)[slots] = new_values
        keys, values = gather(worker, rows, layer, start + count)
        queries = (y @ weights.query[layer]).view(count, shape.kv_heads, -1, shape.head_dim)
        scores = torch.einsum("nkgd,rkd->nkgr", queries, keys) / shape.head_dim**0.5
        attention = scores.masked_fill(hidden_by_causality[:, None, None], -torch.inf).softmax(-1)
        x = x + torch.einsum("nkgr,rkd->nkgd", attention, values).reshape(count, -1) @ weights.output[layer]
        x = x + torch.nn.functional.silu(normalized(x) @ weights.up[layer]) @ weights.down[layer]
        if shape.in_place != "none" and layer == 0:
            x = x + advance(weights, rows, normalized(x), start)
    rows.length = start + count
    return normalized(x) @ weights.head


def advance(weights: Weights, rows: Rows, x: Tensor, start: int) -> Tensor:
    """Put (n, hidden) into the request's state, token by token and in place; return what each token reads, (n, hidden)."""
    shape, after = weights.shape, []
    if rows.state is None:
        rows.state = x.new_zeros((shape.hidden,) if shape.in_place == "recurrent" else (shape.window, 2, shape.hidden))
    for position, (entering, own) in enumerate(zip(torch.tanh(x @ weights.into_state), x, strict=True), start):
        if shape.in_place == "recurrent":
            rows.state.mul_(0.75).add_(entering)
            after.append(rows.state.clone())
        else:
            rows.state[position % shape.window] = torch.stack((entering, own))
            keys, values = rows.state[: position + 1].unbind(1)
            after.append((keys @ own / shape.hidden**0.5).softmax(0) @ values)
    return torch.stack(after)


def choose(logits: Tensor) -> int:
    return int(logits[-1].argmax())
