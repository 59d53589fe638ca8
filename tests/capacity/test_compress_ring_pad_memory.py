"""The ring at work: a wrong plan changes committed entries, exactly those that the audit names; a right one changes none."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from memspec.capacity.compress_ring_pad import reference, stale_reads
from memspec.capacity.compress_ring_pad.checks import cases, memory
from memspec.capacity.compress_ring_pad.checks.cases import C4, C128, PLAIN4, PLAIN128, Stage, Story
from memspec.capacity.compress_ring_pad.data import BatchRefused, Geometry, Request
from memspec.conformance import Violation, variant

torch = pytest.importorskip("torch")
from memspec.capacity.compress_ring_pad import tensors  # noqa: E402

SUBJECTS: dict[str, Callable[[], Any]] = {"reference": lambda: reference, "tensors": lambda: tensors.subject("cpu")}
both = pytest.mark.parametrize("make", SUBJECTS.values(), ids=SUBJECTS)


def random_story(rng: Random, number: int) -> Story:
    """Three requests that start, run in chunks, verify, decode and roll back in random company."""
    geometry = rng.choice((C4, C4, PLAIN4, C128, PLAIN128))
    pad, known, stages = cases.PADS[geometry], set[int](), []
    for _ in range(rng.randint(4, 12)):
        parts = []
        kind = rng.choice(("extend", "verify" if pad else "extend", "decode" if known else "extend"))
        for of in rng.sample(range(3), rng.randint(1, 3)):
            if kind == "extend" or of not in known:
                tokens = committed = 1 if kind == "decode" else rng.choice((rng.randint(1, 9), rng.randint(1, 150)))
            elif kind == "verify":
                tokens = rng.randint(1, min(pad, rng.choice((10, 130))))
                committed = rng.randint(1, tokens)
            else:
                tokens = committed = 1
            parts.append((of, tokens, committed))
            known.add(of)
        stages.append(Stage(kind, tuple(parts)))
    return Story(f"random story {number}", geometry, tuple(stages))


@both
def test_random_stories_leave_every_committed_entry_as_the_history_has_it(make: Callable[[], Any]) -> None:
    rng = Random(6)
    for number in range(60):
        memory.play(make(), random_story(rng, number))


@both
def test_every_residue_and_accept_length_of_ratio_4(make: Callable[[], Any]) -> None:
    for accepted in range(1, 11):
        ready = tuple((of, 12 + of, 12 + of) for of in range(4))
        drafts = tuple((of, 10, accepted) for of in range(4))
        again = tuple((of, 10, 10) for of in range(4))
        memory.play(
            make(),
            Story("four residues", C4, (Stage("extend", ready), Stage("verify", drafts), Stage("verify", again))),
        )


def wrong_entries(geometry: Geometry, pad: int, prefix: int, drafts: int, accepts: tuple[int, ...]) -> set[int]:
    """Lengths of committed entries that a torch ring gets wrong when the planner's pad is ``pad``; width 16, all history written."""
    planner = variant(reference, host_pad=lambda geometry: pad)
    request = Request(0, 0, prefix, tuple(range(16)))
    rows = [cases.raw_row(0, p) for p in range(prefix)]
    lift = torch.linspace(0.5, 1.5, 16)
    ring = tensors.Ring(torch.full((16 * 16 if geometry.ratio == 4 else 256, 16), 50.0), torch.full((16 * 16, 16), 0.5))

    def columns(rows: list[tuple[float, float]]) -> tuple[Any, Any]:
        both = torch.tensor(rows)
        return both[:, :1] * lift, both[:, 1:].expand(len(rows), 16)

    full = reference.host_plan(geometry, (request,), prefix)
    tensors.write(ring, torch.tensor(full.writes), *columns(rows))
    wrong = set()
    for step, accepted in enumerate(accepts, 1):
        request = Request(0, prefix, drafts, tuple(range(16)))
        rows = [cases.raw_row(0, p, 0 if p < prefix + accepted else step) for p in range(prefix, prefix + drafts)]
        plan, values = planner.host_plan(geometry, (request,), drafts), columns(rows)
        compressions = torch.tensor(plan.compressions, dtype=torch.int64).reshape(-1, 5)
        token, entries = tensors.compress(geometry, ring, compressions, *values)
        for index, entry in zip(token.tolist(), entries, strict=True):
            length = prefix + index + 1
            due = cases.true_entry(geometry.ratio, 0, 0, 0, length) * lift
            if index < accepted and not torch.allclose(entry, due, atol=1e-5):
                wrong.add(length)
        tensors.write(ring, torch.tensor(plan.writes), *values)
        prefix += accepted
    return wrong


@pytest.mark.parametrize(("pad", "drafts"), [(4, 5), (4, 6), (4, 8), (0, 2), (10, 10), (10, 11), (11, 11)])
def test_a_torch_ring_gets_exactly_those_entries_wrong_that_the_audit_names(pad: int, drafts: int) -> None:
    for prefix in range(528, 536):
        for accepts in ((1, drafts), (2, 1, drafts), (drafts, 1, drafts), (drafts - 1, drafts)):
            named = {found.length for found in stale_reads(C4, pad, prefix, drafts, accepts)}
            assert wrong_entries(C4, pad, prefix, drafts, accepts) == named


@pytest.mark.parametrize(
    ("pad", "drafts", "accepts", "prefix"), [(4, 5, (1, 5), 509), (0, 2, (1, 2), 511), (131, 131, (1, 1), 510)]
)
def test_so_does_a_torch_ring_of_ratio_128(pad: int, drafts: int, accepts: tuple[int, ...], prefix: int) -> None:
    named = {found.length for found in stale_reads(C128, pad, prefix, drafts, accepts)}
    assert wrong_entries(C128, pad, prefix, drafts, accepts) == named


def test_the_device_rule_on_tensors_is_the_host_planner() -> None:
    rng = Random(40)
    for _ in range(200):
        geometry = rng.choice(tuple(cases.PADS))
        requests = tuple(
            cases.request(slot, rng.randint(0, 900), rng.choice((5, rng.randint(1, 200))))
            for slot in range(rng.randint(1, 5))
        )
        tokens = sum(request.extend for request in requests)
        host = reference.host_plan(geometry, requests, tokens, tokens + 3)
        compressions, writes = tensors.plan(geometry, tensors.batch_on(requests, "cpu"), tokens + 3)
        assert writes.tolist() == [list(write) for write in host.writes]
        assert compressions.tolist() == [list(entry) for entry in host.compressions]


def test_clearing_the_rows_of_rejected_drafts_changes_no_entry() -> None:
    """What SGLang's EAGLE worker does for ratio 128 and others do not."""

    class Clearing:
        rejected: tuple[int, ...] = ()

        def step(self, geometry: Geometry, arena: Any, base: int, kind: str, requests: Any, rows: Any) -> Any:
            entries = reference.step(geometry, arena, base, kind, requests, rows)
            (request,) = requests
            if request.extend == 130:  # one draft of the step is committed, the others' rows are cleared
                for position in range(request.prefix + 1, request.prefix + 130):
                    arena[base + reference.ring_slot(geometry, request, position)] = (0.0, float("-inf"))
            return entries

    for start in (200, 254, 255):
        stages = (
            Stage("extend", ((0, start, start),)),
            *[Stage("verify", ((0, 130, 1),))] * 3,
            Stage("verify", ((0, 129, 129),)),
        )
        memory.play(Clearing(), Story("cleared", C128, stages))


def test_a_stale_row_shows_in_the_trace() -> None:
    from memspec.capacity.compress_ring_pad.faults import FAULTS

    twin = next(fault for fault in FAULTS if fault.name == "both-planners-of-0-5-17").subject()
    stages = (Stage("extend", ((1, 515, 515),)), Stage("verify", ((1, 5, 1),)), Stage("verify", ((1, 5, 5),)))
    with pytest.raises(Violation, match=r"entry of length 520") as caught:
        memory.play(twin, Story("five drafts at 515", C4, stages))
    assert [row["step"] for row in caught.value.trace] == ["extend", "verify", "verify"]


@both
def test_a_step_of_another_kind_is_refused_and_writes_nothing(make: Callable[[], Any]) -> None:
    arena = memory.layer(256)
    with pytest.raises(BatchRefused, match="'verify'"):
        make().step(C4, arena, memory.BASE, "verify", (cases.request(0, 20, 1),), [(0.5, 0.0)])
    assert arena == memory.layer(256)
