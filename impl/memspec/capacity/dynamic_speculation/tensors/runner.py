"""Captured shapes on the device: a batch replays the smallest graph of its own query length that holds it, or runs eagerly.

On CUDA each shape is a ``torch.cuda.CUDAGraph``. Elsewhere the same buffers, the same padding and the same dispatch are used and the
forward is called, so that the counts are those of CUDA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from memspec.capacity.dynamic_speculation.data import Graph
from memspec.capacity.dynamic_speculation.reference.graphs import dispatch
from memspec.capacity.dynamic_speculation.tensors.model import Model

WARM_UPS = 3

Dispatch = Callable[[Sequence[Graph], int, int], Graph | None]


@dataclass
class Used:
    """Forwards by the way they ran, and tokens that were computed for nobody."""

    replays: int = 0
    eager: int = 0
    padded: int = 0


class Captured:
    """One shape: buffers that stay where they are, and a graph over them where the device has graphs."""

    def __init__(self, model: Model, shape: Graph) -> None:
        self.model, self.shape = model, shape
        spare = model.slots - 1
        self.tokens = torch.zeros(shape.batch, shape.query, dtype=torch.int64, device=model.device)
        self.starts = torch.zeros(shape.batch, dtype=torch.int64, device=model.device)
        self.slots = torch.full((shape.batch,), spare, dtype=torch.int64, device=model.device)
        self.spare = spare
        self.graph: torch.cuda.CUDAGraph | None = None
        self.logits: Tensor | None = None
        if model.device.type == "cuda":
            self.capture()

    def forward(self) -> Tensor:
        return self.model.forward(self.tokens, self.starts, self.slots)

    def capture(self) -> None:
        """Warm up on another stream, as capture demands, then record on the model's device. Only the spare slot is written."""
        with torch.cuda.device(self.model.device):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(WARM_UPS):
                    self.forward()
            torch.cuda.current_stream().wait_stream(stream)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.logits = self.forward()

    def run(self, tokens: Tensor, starts: Tensor, slots: Tensor) -> Tensor:
        """Logits of the batch, without those of the padding. Rows past the batch point at the spare slot."""
        batch = len(tokens)
        self.tokens[:batch], self.starts[:batch], self.slots[:batch] = tokens, starts, slots
        self.tokens[batch:], self.starts[batch:], self.slots[batch:] = 0, 0, self.spare
        if self.graph is None or self.logits is None:
            return self.forward()[:batch]
        self.graph.replay()
        return self.logits[:batch].clone()


class Runner:
    """A model with its captured shapes. ``find`` picks one: the reference's rule unless another is given."""

    def __init__(self, model: Model, graphs: Sequence[Graph], find: Dispatch = dispatch) -> None:
        self.model, self.graphs, self.find, self.used = model, tuple(graphs), find, Used()
        self.captured = {graph: Captured(model, graph) for graph in sorted(graphs, reverse=True)}

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def run(self, tokens: Tensor, starts: Tensor, slots: Tensor) -> Tensor:
        """Logits (batch, query, vocabulary) of a uniform batch."""
        batch, query = tokens.shape
        graph = self.find(self.graphs, batch, query)
        if graph is None:
            self.used.eager += 1
            return self.model.forward(tokens, starts, slots)
        self.used.replays += 1
        self.used.padded += graph.tokens - batch * query
        return self.captured[graph].run(tokens, starts, slots)
