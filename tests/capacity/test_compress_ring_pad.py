"""Rings, pads and plans: the rule against its other formulations, exhaustively or at random, and the bound for all sizes."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memspec.capacity.compress_ring_pad import (
    BatchRefused,
    Geometry,
    Request,
    StartRefused,
    check_start,
    device_plan,
    host_plan,
    max_draft_tokens,
    ring_size,
    ring_slot,
    stale_reads,
    write_pad,
    written_positions,
)
from memspec.capacity.compress_ring_pad.checks import cases
from memspec.capacity.compress_ring_pad.reference.sizes import window_of

GEOMETRIES = tuple(cases.PADS)


def batches(rng: Random) -> tuple[Geometry, tuple[Request, ...]]:
    """A random batch: up to six requests, mostly verify steps, some chunks, sometimes all of one length."""
    geometry = rng.choice(GEOMETRIES)
    uniform = rng.choice((0, 0, rng.randint(1, 40)))
    requests = []
    for slot in rng.sample(range(12), rng.randint(1, 6)):
        extend = uniform or rng.choice((1, rng.randint(1, 16), rng.randint(1, 300)))
        requests.append(cases.request(slot, rng.choice((0, rng.randint(0, 1200), 256 * rng.randint(0, 4))), extend))
    return geometry, tuple(requests)


def test_the_planners_and_what_later_windows_read_agree_on_1500_random_batches() -> None:
    rng = Random(34189)
    for _ in range(1500):
        geometry, requests = batches(rng)
        tokens = sum(r.extend for r in requests)
        host, due = host_plan(geometry, requests, tokens), cases.due_plan.__wrapped__(geometry, requests)
        arrival = rng.sample(range(tokens), tokens)
        device = device_plan(geometry, requests, tokens + rng.randint(0, 9), arrival)
        for kind in ("writes", "compressions"):
            entries = sorted(getattr(due, kind))
            assert sorted(getattr(host, kind)) == entries
            assert sorted(getattr(device, kind)[: len(entries)]) == entries
            assert {word for entry in getattr(device, kind)[len(entries) :] for word in entry} <= {0xFFFFFFFF}
        slots = [write.slot for write in host.writes]
        assert len(set(slots)) == len(slots)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_plan_is_the_same_request_by_request(data: st.DataObject) -> None:
    geometry, requests = batches(Random(data.draw(st.integers(0, 2**32))))
    whole = host_plan(geometry, requests, sum(r.extend for r in requests))
    first = 0
    writes: list[tuple[int, int]] = []
    for request in requests:
        alone = host_plan(geometry, (request,), request.extend)
        writes += [(write.token + first, write.slot) for write in alone.writes]
        first += request.extend
    assert sorted(writes) == sorted((w.token, w.slot) for w in whole.writes)


@given(st.integers(0, 3000), st.integers(1, 400), st.integers(0, 300), st.sampled_from(GEOMETRIES))
@settings(max_examples=300, deadline=None)
def test_written_positions_are_those_that_are_due(prefix: int, extend: int, pad: int, geometry: Geometry) -> None:
    end = prefix + extend
    assert list(written_positions(geometry, pad, prefix, end)) == sorted(
        cases.due_positions.__wrapped__(geometry, pad, prefix, end)
    )


@pytest.mark.parametrize(("geometry", "end"), [(cases.C4, 2048), (cases.REQUEST4, 2048), (cases.C128, 2048)])
def test_rows_of_different_pages_or_requests_never_meet(geometry: Geometry, end: int) -> None:
    owners: dict[int, tuple[int, int]] = {}
    for slot, position in product(range(3), range(end)):
        anchor = cases.pages_of(slot)[position // 256] if cases.paged(geometry) else slot
        at = ring_slot(geometry, cases.request(slot, 0, 1), position)
        assert owners.setdefault(at, (anchor, position % geometry.ring)) == (anchor, position % geometry.ring)


@pytest.mark.parametrize("prefix", range(500, 532))
def test_with_ten_drafts_nothing_is_lost_and_with_eleven_something_is_at_every_residue(prefix: int) -> None:
    """Ratio 4, enumerated: 32 prefixes on both sides of a page boundary, every pair of accept lengths.

    The row that eleven drafts drop is the first one, except where it is kept as a page tail.
    """
    for drafts in range(1, 11):
        for accepts in product(range(1, drafts + 1), repeat=2):
            assert stale_reads(cases.C4, 10, prefix, drafts, (*accepts, drafts)) == ()
    lost = [stale_reads(cases.C4, 10, prefix, 11, (accepted, 11)) for accepted in range(1, 12)]
    assert any(lost) != (508 <= prefix < 512)


@pytest.mark.parametrize("prefix", range(528, 544))
def test_a_full_write_of_eleven_drafts_loses_a_row_at_one_residue(prefix: int) -> None:
    lost = [stale_reads(cases.C4, 11, prefix, 11, (accepted, 11)) for accepted in range(1, 12)]
    if (prefix + 2) % 4 == 0:
        assert lost[0] == ((prefix + 2, (prefix - 6,)),)
        assert not any(lost[1:])
    else:
        assert not any(lost)


@pytest.mark.slow
def test_with_130_drafts_nothing_is_lost_and_with_131_something_is() -> None:
    """Ratio 128, enumerated: every residue and every accept length."""
    for prefix in range(384, 512):
        for accepted in range(1, 131):
            assert stale_reads(cases.C128, 130, prefix, 130, (accepted, 130)) == ()
        assert any(stale_reads(cases.C128, 130, prefix, 131, (a, 131)) for a in (1, 2, 64)) or (prefix + 1) % 128 == 0
    assert stale_reads(cases.C128, 131, 510, 131, (1, 1)) == ((512, (384,)),)


def test_the_audit_is_what_a_log_of_writes_says_on_1000_random_runs() -> None:
    rng = Random(515)
    for _ in range(1000):
        geometry = rng.choice((cases.C4, cases.C4, cases.C4, cases.PLAIN4, cases.C128))
        drafts = rng.randint(1, 14) if geometry.ratio == 4 else rng.choice((2, 5, 131))
        accepts = tuple(rng.randint(1, drafts) for _ in range(rng.randint(1, 4)))
        pad, prefix = rng.choice((0, 4, write_pad(geometry.ratio, geometry.ring), drafts)), rng.randint(0, 900)
        seen = stale_reads(geometry, pad, prefix, drafts, accepts)
        assert seen == cases.due_stale_reads.__wrapped__(geometry, pad, prefix, drafts, accepts)


def test_the_bound_holds_for_all_sizes() -> None:
    """z3, linear integer arithmetic: no write replaces a row that is still read, and one more draft does."""
    import z3

    ring, window, drafts, earlier, prefix, write, read = z3.Ints("ring window drafts earlier prefix write read")
    world = [
        window >= 1, ring >= window, drafts >= 1, earlier >= 0,
        prefix >= earlier + 1,  # a step that begins at `prefix`, after one that began earlier and committed a token or more
        write >= earlier, write <= earlier + drafts - 1,
        read >= prefix - window + 1, read < prefix,  # a row that it takes from the ring
    ]  # fmt: skip

    def possible(*claims: object) -> bool:
        solver = z3.Solver()
        solver.add(*world, *claims)
        answer = solver.check()
        assert answer != z3.unknown
        return bool(answer == z3.sat)

    replaced = write - read >= ring  # necessary for the write to lie on the row: a positive multiple of the ring apart
    assert not possible(drafts <= ring - window + 2, replaced)
    last, earliest = write == earlier + drafts - 1, read == prefix - window + 1
    tight = [drafts == ring - window + 3, prefix == earlier + 1, last, earliest]
    assert possible(*tight)
    assert not possible(*tight, write - read != ring)

    # without a committed token, or with writes before the own compressions, one draft less is the limit
    world[4] = prefix >= earlier
    assert not possible(drafts <= ring - window + 1, replaced)
    assert possible(drafts == ring - window + 2, write - read == ring, prefix == earlier)


@pytest.mark.parametrize("ratio", [2, 4, 128])
def test_every_ring_serves_the_drafts_that_it_was_made_for(ratio: int) -> None:
    for drafts in range(1, 300):
        pad = write_pad(ratio, ring_size(ratio, drafts))
        if ratio == 2:
            assert drafts + 2 <= pad < 2 * (drafts + 2)
        else:
            assert pad == {4: 10, 128: 130}[ratio]


def test_the_calculator_is_the_edge_of_the_check() -> None:
    for layers in ({0: 3, 4: 21, 128: 20}, {0: 1, 4: 30, 128: 31}, {4: 0, 128: 20}, {128: 1}, {4: 5}):
        most = max_draft_tokens(layers)
        assert most is not None
        assert check_start(layers, most) == most
        with pytest.raises(StartRefused, match=rf"{most + 1} draft tokens; .* at most {most}"):
            check_start(layers, most + 1)
    assert max_draft_tokens({2: 9, 0: 1}) is None
    assert max_draft_tokens({128: 20}, online=True) is None


def test_the_old_pads_drop_rows_at_the_residues_of_the_table() -> None:
    for drafts in range(1, 40):
        for pad, ratio, ring in ((4, 4, 16), (0, 4, 16), (4, 128, 256), (0, 128, 256)):
            geometry = Geometry(ratio, ring)
            seen = {end % ratio for end in range(512 + drafts, 512 + drafts + ratio)
                    if len(list(written_positions(geometry, pad, end - drafts, end))) < drafts}  # fmt: skip
            kept = {r: 4 + r if ratio == 4 else max(r, pad) for r in range(ratio)}
            assert seen == {r for r in range(ratio) if kept[r] < drafts}


def test_windows_are_those_of_the_table() -> None:
    assert [window_of(ratio) for ratio in (2, 4, 128)] == [2, 8, 128]


def test_a_batch_of_1024_requests_is_planned_on_the_device() -> None:
    requests = tuple(Request(slot, 8, 1, (slot,)) for slot in range(1024))
    assert len(device_plan(cases.C4, requests, 1024).writes) == 1024
    with pytest.raises(BatchRefused, match="1 SWA pages of 256 tokens do not hold 257 positions"):
        host_plan(cases.C4, (Request(0, 250, 7, (3,)),), 7)
