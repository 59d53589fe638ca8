"""Two small models with a cache of their own on the device: a greedy transformer, and a table that reads its rows.

A model takes ``tokens`` (batch, query), the position of each row's first token ``starts`` (batch,) and its place in the cache ``slots``
(batch,); it writes the rows and returns logits (batch, query, vocabulary). Shapes are fixed by the arguments and nothing
is asked of the host, so that a CUDA graph can hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

STALE = 3.0  # what a row of the transformer's cache holds from its last owner


class Model(Protocol):
    """What is run and captured. ``slots`` counts cache places; the last one is for padding."""

    slots: int
    device: torch.device

    def forward(self, tokens: Tensor, starts: Tensor, slots: Tensor) -> Tensor: ...
    def rows(self, slot: int, length: int) -> Tensor: ...
    def fresh(self) -> Model: ...


@dataclass(frozen=True)
class Shape:
    vocabulary: int = 64
    layers: int = 2
    heads: int = 2
    head_dim: int = 16
    positions: int = 96

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
    key_value: Tensor  # (layers, hidden, 2 * hidden)
    output: Tensor  # (layers, hidden, hidden)
    up: Tensor  # (layers, hidden, 2 * hidden)
    down: Tensor  # (layers, 2 * hidden, hidden)


def make_weights(
    generator: torch.Generator, device: str, dtype: torch.dtype = torch.float64, shape: Shape | None = None
) -> Weights:
    """Random weights, drawn on the CPU in float64 so that every device gets the same numbers, rounded once."""
    shape = shape or Shape()
    hidden, layers = shape.hidden, shape.layers

    def draw(*size: int, gain: float = 1.0) -> Tensor:
        drawn = torch.randn(*size, generator=generator, dtype=torch.float64)
        return (drawn * gain / size[-2] ** 0.5).to(device, dtype)

    return Weights(
        shape,
        embedding=draw(shape.vocabulary, hidden, gain=shape.vocabulary**0.5),
        head=draw(hidden, shape.vocabulary),
        position=draw(shape.positions, hidden, gain=0.5 * shape.positions**0.5),
        query=draw(layers, hidden, hidden, gain=2.0),
        key_value=draw(layers, hidden, 2 * hidden),
        output=draw(layers, hidden, hidden, gain=2.0),
        up=draw(layers, hidden, 2 * hidden),
        down=draw(layers, 2 * hidden, hidden),
    )


def near(weights: Weights, generator: torch.Generator, amount: float) -> Weights:
    """A drafter: the same weights with ``amount`` of their own spread added as noise, drawn on the CPU."""

    def noisy(weight: Tensor) -> Tensor:
        noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64).to(weight.device, weight.dtype)
        return weight + amount * weight.std() * noise

    return Weights(weights.shape, **{n: noisy(w) for n, w in vars(weights).items() if isinstance(w, Tensor)})


def normalized(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class Attention:
    """A pre-norm transformer over a cache of ``slots`` requests, (layers, slots, positions, heads, head_dim)."""

    def __init__(self, weights: Weights, slots: int) -> None:
        shape = weights.shape
        size = (shape.layers, slots, shape.positions, shape.heads, shape.head_dim)
        self.weights, self.slots, self.device = weights, slots, weights.embedding.device
        self.keys = torch.full(size, STALE, dtype=weights.embedding.dtype, device=self.device)
        self.values = self.keys.clone()

    def fresh(self) -> Attention:
        return Attention(self.weights, self.slots)

    def rows(self, slot: int, length: int) -> Tensor:
        """Keys and values of the first ``length`` positions of a slot, (length, features)."""
        found = [pool[:, slot, :length].transpose(0, 1).flatten(1) for pool in (self.keys, self.values)]
        return torch.cat(found, 1)

    def forward(self, tokens: Tensor, starts: Tensor, slots: Tensor) -> Tensor:
        weights, shape = self.weights, self.weights.shape
        batch, query = tokens.shape
        at = starts[:, None] + torch.arange(query, device=self.device)  # (batch, query)
        hidden_by_causality = torch.arange(shape.positions, device=self.device) > at[..., None]
        x = weights.embedding[tokens] + weights.position[at]
        for layer in range(shape.layers):
            y = normalized(x)
            new = (y @ weights.key_value[layer]).view(batch, query, 2, shape.heads, shape.head_dim)
            self.keys[layer, slots[:, None], at] = new[:, :, 0]
            self.values[layer, slots[:, None], at] = new[:, :, 1]
            keys, values = self.keys[layer, slots], self.values[layer, slots]  # (batch, positions, heads, head_dim)
            queries = (y @ weights.query[layer]).view(batch, query, shape.heads, shape.head_dim)
            scores = torch.einsum("bqhd,bphd->bhqp", queries, keys) / shape.head_dim**0.5
            attention = scores.masked_fill(hidden_by_causality[:, None], -torch.inf).softmax(-1)
            mixed = torch.einsum("bhqp,bphd->bqhd", attention, values).reshape(batch, query, -1)
            x = x + mixed @ weights.output[layer]
            x = x + torch.nn.functional.silu(normalized(x) @ weights.up[layer]) @ weights.down[layer]
        return normalized(x) @ weights.head


class Lookup:
    """The choice after tokens ``a, b`` is ``table[a][b]``, read from cache rows (slots, positions); an unwritten row holds 0."""

    def __init__(self, table: Sequence[Sequence[int]], slots: int, positions: int, device: str | torch.device) -> None:
        self.table = torch.tensor([list(row) for row in table], device=device)
        self.slots, self.device = slots, self.table.device
        self.cache = torch.zeros(slots, positions, dtype=torch.int64, device=device)

    def fresh(self) -> Lookup:
        return Lookup(self.table.tolist(), self.slots, self.cache.shape[1], self.device)

    def rows(self, slot: int, length: int) -> Tensor:
        return self.cache[slot, :length, None]

    def forward(self, tokens: Tensor, starts: Tensor, slots: Tensor) -> Tensor:
        at = starts[:, None] + torch.arange(tokens.shape[1], device=self.device)
        self.cache[slots[:, None], at] = tokens
        before = self.cache[slots[:, None], (at - 1).clamp(min=0)]
        return (self.table[before, tokens][..., None] == torch.arange(len(self.table), device=self.device)).double()


def stale_rows(model: Model, slot: int, tokens: Sequence[int]) -> int:
    """Committed tokens whose row in the model's cache is not what the model computes for them; the cache is left alone."""
    ideal = model.fresh()
    given = torch.tensor([list(tokens)], device=model.device)
    ideal.forward(given, torch.zeros(1, dtype=torch.int64, device=model.device), given.new_tensor([slot]))
    difference = (ideal.rows(slot, len(tokens)) - model.rows(slot, len(tokens))).abs().double()
    return int((difference.amax(1) > 1e-6).sum())
