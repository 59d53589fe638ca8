"""Dynamic speculation on a small model: output, the drafter's rows, and which shapes are replayed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from memspec.capacity.dynamic_speculation import Graph, dense_table, planned, twins
from memspec.capacity.dynamic_speculation.checks import CHECKS, oracle
from memspec.capacity.dynamic_speculation.reference import next_size
from memspec.conformance import judge

torch = pytest.importorskip("torch")

from memspec.capacity.dynamic_speculation import tensors  # noqa: E402

COUNT, K_MAX = 14, 4
DRAFT_GRAPHS = [Graph(n, q) for n in (1, 2, 4, 6) for q in range(1, K_MAX + 2)]


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device"))])  # fmt: skip
def pair(request: pytest.FixtureRequest) -> Any:
    """(target, drafter, requests): the drafter is the target with noise; six requests arrive one step apart."""
    generator = torch.Generator().manual_seed(5)
    target = tensors.make_weights(generator, request.param)
    drafter = tensors.near(target, generator, 0.02)
    prompts = [tuple(torch.randint(0, 64, (3 + n,), generator=generator).tolist()) for n in range(6)]
    return target, drafter, [tensors.Request(prompt, COUNT, n) for n, prompt in enumerate(prompts)]


def runner(weights: Any, graphs: Sequence[Graph] = (), find: Any = None) -> Any:
    model = tensors.Attention(weights, 7)
    return tensors.Runner(model, graphs) if find is None else tensors.Runner(model, graphs, find)


@cache
def uncached(weights: Any, prompt: tuple[int, ...]) -> tuple[int, ...]:
    """The target alone, every token from a fresh cache: the slow way that cannot go stale."""
    tokens = list(prompt)
    for _ in range(COUNT):
        model = tensors.Attention(weights, 1)
        device = model.device
        given = torch.tensor([tokens], device=device)
        zero = torch.zeros(1, dtype=torch.int64, device=device)
        tokens.append(int(model.forward(given, zero, zero)[0, -1].argmax()))
    return tuple(tokens[len(prompt) :])


def traces() -> dict[str, tuple[int, ...]]:
    draw = random.Random(7)
    fixed = {"0": (0,), "4": (4,), "4/0": (4, 0), "late": (0,) * 9 + (3,), "down": (4, 3, 2, 1, 0)}
    return fixed | {f"random {n}": tuple(draw.choice((0, 0, 1, 2, 4)) for _ in range(40)) for n in range(2)}


@pytest.mark.parametrize("policy", ["every-step", "catch-up"])
@pytest.mark.parametrize("ks", traces().values(), ids=traces().keys())
def test_output_does_not_depend_on_the_k_trace(pair: Any, ks: tuple[int, ...], policy: str) -> None:
    target, drafter, requests = pair
    due = tuple(uncached(target, request.prompt) for request in requests)
    graphs = [Graph(n, q) for n in (2, 5) for q in range(1, K_MAX + 2)]
    found = tensors.serve(runner(target, graphs), runner(drafter, DRAFT_GRAPHS), requests,
                          lambda step, count: ks[step % len(ks)], policy, look=True)  # fmt: skip
    assert found.tokens == due
    assert {row.stale for row in found.rows} <= {0, -1}
    asked = [ks[step % len(ks)] for step in range(len(found.rows))]
    assert [row.k for row in found.rows] == asked
    assert [row.width for row in found.rows] == [0, *asked[:-1]]


def test_a_skipped_drafter_has_stale_rows_and_still_the_right_output(pair: Any) -> None:
    target, drafter, requests = pair
    ks = (3, 0, 0, 0, 0, 0, 0, 0, 3)
    runs = {
        name: tensors.serve(runner(target), runner(drafter), requests, lambda step, count: ks[min(step, 8)],
                            writes=writes, look=True)
        for name, writes in (("current", tensors.speculate.rows_to_write), ("skipped", twins.skipped))
    }  # fmt: skip
    assert runs["current"].tokens == runs["skipped"].tokens
    resumed = {name: next(row for row in run.rows[8:] if row.k) for name, run in runs.items()}
    assert (resumed["current"].stale, resumed["skipped"].stale > 0) == (0, True)
    accepted = {name: sum(row.accepted for row in run.rows[9:]) for name, run in runs.items()}
    assert accepted["skipped"] < accepted["current"]


def test_k_at_zero_costs_a_forward_when_synced_and_none_when_owed(pair: Any) -> None:
    target, drafter, requests = pair
    alone = tensors.no_drafter(runner(target), requests)
    for policy, due in (("every-step", 1), ("catch-up", 0)):
        found = tensors.serve(runner(target), runner(drafter), requests, lambda step, count: 0, policy)
        assert found.tokens == alone.tokens
        assert {row.draft_forwards for row in found.rows[:-1]} == {due}
        assert len(found.rows) == len(alone.rows)


def test_replays_and_eager_forwards_are_what_the_plan_says(pair: Any) -> None:
    target, drafter, requests = pair
    table = dense_table([[1, 3, 3], [4, 9, 0]], 8, 3)
    graphs = planned(table, ceiling=8)
    run = runner(target, graphs)
    found = tensors.serve(run, runner(drafter, DRAFT_GRAPHS), requests, lambda step, count: table[count])
    shapes = [(1, len(request.prompt)) for request in requests]
    for step, row in enumerate(found.rows):
        running = row.scheduled - sum(request.arrives == step for request in requests)
        shapes += [(running, row.width + 1)] if running else []
    held = [oracle.smallest({*graphs}, *shape) for shape in shapes]
    replayed = [(n, *shape) for n, shape in zip(held, shapes, strict=True) if n is not None]
    assert 0 < len(replayed) < len(shapes)
    assert (run.used.replays, run.used.eager) == (len(replayed), len(shapes) - len(replayed))
    assert run.used.padded == sum((n - batch) * query for n, batch, query in replayed)


def test_both_searches_give_the_same_tokens_and_different_counts(pair: Any) -> None:
    target, drafter, requests = pair
    graphs = [Graph(1, 4), Graph(2, 4), Graph(3, 4), Graph(6, 1)]  # four requests of 1 token meet 1 of 4
    ks = (3, 3, 3, 0, 0, 0, 0, 0, 3)
    runs = {}
    for name, find in (("own length", None), ("next size", next_size)):
        run = runner(target, graphs, find)
        found = tensors.serve(run, runner(drafter), requests, lambda step, count: ks[min(step, 8)])
        runs[name] = (found.tokens, run.used.replays, run.used.eager)
    assert runs["own length"][0] == runs["next size"][0]
    assert sum(runs["own length"][1:]) == sum(runs["next size"][1:])
    assert runs["own length"][1] > runs["next size"][1]


def test_padding_writes_the_spare_slot_only(pair: Any) -> None:
    target, _, _ = pair
    model = tensors.Attention(target, 5)
    run = tensors.Runner(model, [Graph(4, 2)])
    device = model.device
    before = model.keys.clone()
    given = torch.tensor([[3, 4], [5, 6]], device=device)
    run.run(given, torch.tensor([7, 2], device=device), torch.tensor([1, 3], device=device))
    changed = (model.keys != before).flatten(3).any(-1).any(0)  # (slots, positions)
    assert changed[:4].nonzero().tolist() == [[1, 7], [1, 8], [3, 2], [3, 3]]
    assert (run.used.replays, run.used.eager, run.used.padded) == (1, 0, 4)


def test_tensors_decode_what_the_tables_say() -> None:
    verdicts = judge(CHECKS, tensors.subject("cpu"))
    ran = {
        name.partition(".")[2]: verdict.outcome for name, verdict in verdicts.items() if verdict.outcome != "not-run"
    }
    assert ran == {"greedy-output": "pass", "perfect-drafter-accepted": "pass"}


def test_models_read_their_own_rows() -> None:
    model = tensors.Lookup(((1, 2), (0, 1)), 2, 6, "cpu")
    assert tensors.stale_rows(model, 0, (1, 0, 1)) == 2
    slot = torch.zeros(1, dtype=torch.int64)
    model.forward(torch.tensor([[1, 0, 1]]), slot, slot)
    assert tensors.stale_rows(model, 0, (1, 0, 1)) == 0
    assert oracle.smallest((), 1, 1) is None
