"""The handoff on real bytes: the tokens of one undisturbed worker, and what each missing precaution changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

torch = pytest.importorskip("torch")

from memspec.ordering.token_replay_handoff.tensors import (  # noqa: E402
    TOLERANCE_EPS,
    HandoffError,
    Shape,
    Weights,
    cast,
    make_weights,
    row_error,
    run_alone,
    run_handoff,
)

NEW_TOKENS = 20
EPS = torch.finfo(torch.float32).eps


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def weights(in_place: str = "none", seed: int = 0) -> Weights:
    return make_weights(torch.Generator().manual_seed(seed), "cpu", shape=Shape(in_place=in_place))  # type: ignore[arg-type]


def prompt(length: int) -> list[int]:
    return [(7 * i * i + 3 * i) % 128 for i in range(length)]


def test_the_demo_has_something_to_get_wrong() -> None:
    alone = run_alone(weights(), prompt(21), NEW_TOKENS)
    assert len(set(alone.tokens)) >= 8
    assert alone.margin > 1e-3  # far above float32 rounding, so that equal tokens are due, not luck


@pytest.mark.clause("token-replay-handoff.same-as-one-worker")
@pytest.mark.parametrize("mode", ["decode", "extend"])
@pytest.mark.parametrize("page_freeze", ["copy-on-write", "delay"])
@pytest.mark.parametrize(
    ("length", "page_size"), [(16, 8), (21, 8), (21, 1), (1, 8), (7, 8), (8, 8), (30, 16), (32, 16)]
)
def test_tokens_equal_those_of_one_worker(mode: str, page_freeze: str, length: int, page_size: int) -> None:
    model = weights()
    alone = run_alone(model, prompt(length), NEW_TOKENS, page_size)
    for bridge in (0, 1, 2, 3, 9, NEW_TOKENS - 1):
        run = run_handoff(
            model,
            prompt(length),
            NEW_TOKENS,
            bridge_tokens=bridge,
            page_size=page_size,
            mode=mode,
            page_freeze=page_freeze,
        )
        assert run.tokens == alone.tokens
        assert run.log == alone.tokens[:bridge]
        assert run.mismatch is None
        assert run.rows_beyond_prompt == (0, 0)
        assert run.kv_error_max <= TOLERANCE_EPS * EPS * run.kv_scale


def test_decode_replay_repeats_the_source_bit_for_bit() -> None:
    assert run_handoff(weights(), prompt(21), NEW_TOKENS, bridge_tokens=9, mode="decode").kv_error_max == 0.0


@pytest.mark.parametrize("mode", ["decode", "extend"])
def test_the_tolerance_is_what_float64_says(mode: str) -> None:
    worst = 0.0
    for seed, length in product(range(4), (5, 16, 21, 40)):
        model = weights(seed=seed)
        exact = run_alone(cast(model, torch.float64), prompt(length), NEW_TOKENS)
        run = run_handoff(model, prompt(length), NEW_TOKENS, bridge_tokens=12, mode=mode)
        assert run.tokens == exact.tokens
        scale = max(float(exact.keys.abs().max()), float(exact.values.abs().max()))
        worst = max(worst, float(row_error(run, exact).max()) / (EPS * scale))
    assert 0 < worst <= TOLERANCE_EPS / 2  # source and replay are both this near to it, so they are within the sum


@pytest.mark.parametrize("order", ["by-page", "backwards"])
def test_the_order_of_the_copy_does_not_matter(order: str) -> None:
    units = [(layer, page) for page in range(3) for layer in range(2)]
    chosen = units if order == "by-page" else units[::-1]
    model = weights()
    run = run_handoff(model, prompt(21), NEW_TOKENS, bridge_tokens=6, copy_order=chosen)
    assert run.tokens == run_alone(model, prompt(21), NEW_TOKENS).tokens


@pytest.mark.parametrize("mode", ["decode", "extend"])
def test_appended_rows_alone_do_no_harm(mode: str) -> None:
    """Without a freeze the copied page is not the page of the prompt, but a reader that masks by length never looks."""
    model = weights()
    run = run_handoff(model, prompt(21), NEW_TOKENS, bridge_tokens=4, mode=mode, page_freeze="off")
    assert run.rows_beyond_prompt == (1, 3)  # torn: one layer was read two tokens earlier than the other
    assert run.tokens == run_alone(model, prompt(21), NEW_TOKENS).tokens
    assert run.kv_error_max <= TOLERANCE_EPS * EPS * run.kv_scale


@pytest.mark.parametrize("mode", ["decode", "extend"])
def test_a_torn_page_under_a_valid_key_changes_tokens(mode: str) -> None:
    model = weights()
    alone = run_alone(model, prompt(21), NEW_TOKENS)
    torn = run_handoff(
        model, prompt(21), NEW_TOKENS, bridge_tokens=4, mode=mode, page_freeze="off", arrived="page-fill"
    )
    assert torn.log == alone.tokens[:4]
    assert torn.tokens != alone.tokens
    assert torn.kv_error_max > 1
    bad_rows = (row_error(torn, alone)[:, :24] > 1e-3).nonzero().tolist()
    assert bad_rows == [[0, 22], [0, 23]]  # layer 0 lacks two of the three rows that the page claims
    for freeze in ("copy-on-write", "delay"):
        whole = run_handoff(
            model, prompt(21), NEW_TOKENS, bridge_tokens=4, mode=mode, page_freeze=freeze, arrived="page-fill"
        )
        assert whole.tokens == alone.tokens


def test_an_aligned_prompt_needs_no_copy() -> None:
    model = weights()
    run = run_handoff(
        model, prompt(16), NEW_TOKENS, bridge_tokens=6, page_freeze="off", arrived="page-fill", sharer=True
    )
    assert run.tokens == run_alone(model, prompt(16), NEW_TOKENS).tokens
    assert run.rows_beyond_prompt == (0, 0)


def test_two_appenders_on_one_page_spoil_the_log_itself_and_only_a_private_copy_helps() -> None:
    model = weights()
    alone = run_alone(model, prompt(21), NEW_TOKENS)
    for freeze in ("off", "delay"):
        run = run_handoff(model, prompt(21), NEW_TOKENS, bridge_tokens=8, page_freeze=freeze, sharer=True)
        assert run.log != alone.tokens[:8]  # the client has these already
    private = run_handoff(model, prompt(21), NEW_TOKENS, bridge_tokens=8, sharer=True)
    assert private.tokens == alone.tokens


def test_one_sample_at_the_end_can_miss_what_a_comparison_at_each_step_finds() -> None:
    runs = [
        run_handoff(weights(), prompt(21), NEW_TOKENS, bridge_tokens=5, mode=mode, page_freeze="off", sharer=True)
        for mode in ("decode", "extend")
    ]
    assert runs[0].log == runs[1].log
    assert (runs[0].mismatch, runs[1].mismatch) == (2, None)


@pytest.mark.parametrize("kind", ["recurrent", "ring"])
@pytest.mark.parametrize(("length", "page_size"), [(21, 1), (21, 8), (16, 8), (3, 8)])
@pytest.mark.parametrize("mode", ["decode", "extend"])
def test_in_place_state_needs_a_snapshot_whatever_the_page_size(
    kind: str, length: int, page_size: int, mode: str
) -> None:
    model = weights(kind)
    alone = run_alone(model, prompt(length), NEW_TOKENS, page_size)
    for bridge in (1, 2, 3, 8):
        run = run_handoff(model, prompt(length), NEW_TOKENS, bridge_tokens=bridge, page_size=page_size, mode=mode)
        assert run.tokens == alone.tokens
        assert run.kv_error_max <= TOLERANCE_EPS * EPS * run.kv_scale
    mutated = run_handoff(
        model, prompt(length), NEW_TOKENS, bridge_tokens=8, page_size=page_size, mode=mode, state_snapshot=False
    )
    assert mutated.kv_error_max > 0.1
    if length == 21:
        assert mutated.tokens != alone.tokens


@pytest.mark.clause("token-replay-handoff.same-as-one-worker", fault="recurrent-model-eligible")
@pytest.mark.parametrize("kind", ["recurrent", "ring"])
def test_a_live_state_that_is_sent_and_replayed_changes_tokens(kind: str) -> None:
    model = weights(kind)
    sent = run_handoff(model, prompt(21), NEW_TOKENS, bridge_tokens=8, page_size=1, state_snapshot=False)
    assert sent.tokens != run_alone(model, prompt(21), NEW_TOKENS, 1).tokens


def test_a_ring_survives_one_overwritten_slot_and_a_recurrent_state_does_not() -> None:
    """The replay writes the first bridge row before it reads; a second row has displaced one that it still needs."""
    errors = {
        (kind, bridge): run_handoff(
            weights(kind), prompt(21), NEW_TOKENS, bridge_tokens=bridge, mode="decode", state_snapshot=False
        ).kv_error_max
        for kind, bridge in product(("recurrent", "ring"), (1, 2, 3))
    }
    assert {case for case, error in errors.items() if error > 0} == {("recurrent", 2), ("recurrent", 3), ("ring", 3)}


def test_a_page_that_lands_after_the_replay_takes_the_replayed_rows_with_it() -> None:
    model = weights()
    alone = run_alone(model, prompt(21), NEW_TOKENS)
    early = run_handoff(model, prompt(21), NEW_TOKENS, bridge_tokens=8, replay_waits=False)
    assert early.tokens != alone.tokens
    assert row_error(early, alone)[1, 21:24].min() > 0.1  # rows behind the prompt in its last page


def test_runs_without_meaning_are_refused() -> None:
    model = weights()
    with pytest.raises(HandoffError, match=r"20 bridge tokens; at least 0 and at most 19"):
        run_handoff(model, prompt(5), 20, bridge_tokens=20)
    with pytest.raises(HandoffError, match=r"-1 bridge tokens; at least 0"):
        run_handoff(model, prompt(5), 20, bridge_tokens=-1)
    with pytest.raises(HandoffError, match=r"copy_order has 1 units.*each of the 2 units"):
        run_handoff(model, prompt(5), 20, bridge_tokens=1, copy_order=[(0, 0)])
    with pytest.raises(HandoffError, match=r"0 tokens at position 0; at least 1"):
        run_alone(model, [], 20)
    with pytest.raises(HandoffError, match=r"1 tokens at position 256.*up to position 256"):
        run_alone(model, prompt(250), 20)
    with pytest.raises(HandoffError, match=r"0 bridge tokens; a recurrent state.*at least 1"):
        run_handoff(weights("recurrent"), prompt(5), 20, bridge_tokens=0)


@pytest.mark.parametrize("bridge", [0, 3])
def test_a_ring_may_be_handed_over_with_an_empty_log(bridge: int) -> None:
    model = weights("ring")
    assert run_handoff(model, prompt(21), 9, bridge_tokens=bridge).tokens == run_alone(model, prompt(21), 9).tokens
