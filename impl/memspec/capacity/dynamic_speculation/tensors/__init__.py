"""A target and a drafter on torch tensors: caches live on the device, shapes are captured, K varies from step to step."""

from __future__ import annotations

from memspec.capacity.dynamic_speculation.data import Decoded, Graph, Loop
from memspec.capacity.dynamic_speculation.reference.loop import check_loop
from memspec.capacity.dynamic_speculation.tensors.model import (
    Attention,
    Lookup,
    Shape,
    Weights,
    make_weights,
    near,
    stale_rows,
)
from memspec.capacity.dynamic_speculation.tensors.runner import Runner, Used
from memspec.capacity.dynamic_speculation.tensors.speculate import Request, Row, Served, no_drafter, serve

__all__ = [
    "Attention",
    "Lookup",
    "Request",
    "Row",
    "Runner",
    "Served",
    "Shape",
    "Subject",
    "Used",
    "Weights",
    "make_weights",
    "near",
    "no_drafter",
    "serve",
    "stale_rows",
    "subject",
]


class Subject:
    """Greedy decoding of one request whose models read their rows from tensors on the device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def decode(self, loop: Loop) -> Decoded:
        """Every second shape is captured, so that replayed, padded and eager forwards take turns."""
        check_loop(loop)
        positions = len(loop.prompt) + loop.count + loop.k_max + 2
        graphs = [Graph(2, query) for query in range(1, loop.k_max + 2, 2)]
        target, drafter = (
            Runner(Lookup(table, 3, positions, self.device), graphs) for table in (loop.target, loop.drafter)
        )
        k_of = [*loop.ks, *[loop.ks[-1]] * loop.count]
        found = serve(target, drafter, [Request(loop.prompt, loop.count)], lambda step, count: k_of[step], loop.policy)
        steps = found.rows[1:]
        return Decoded(
            found.tokens[0],
            tuple(row.width for row in steps),
            tuple(row.accepted for row in steps),
        )


def subject(device: str) -> Subject:
    """The rule with its caches on ``device``."""
    return Subject(device)
