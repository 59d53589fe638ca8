"""Wrong lookups: of one group, then of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memspec.capacity.chunked_attention_window.data import ASK_AGAIN, KindRefused, LayerGroup
from memspec.capacity.chunked_attention_window.reference import lookup

Answers = Sequence[str]


def no_check(*_: Any) -> None:
    return None


def pending_remembered(answers: Answers, window: int, first_window: int | None = None) -> int | None:
    found = lookup.find_run(answers, window, first_window)
    return ASK_AGAIN if found is not None and "P" in answers[max(0, found - window) :] else found


def short_run_anywhere(answers: Answers, window: int, first_window: int | None = None) -> int | None:
    return lookup.find_run(answers, 1)


def short_run_never(answers: Answers, window: int, first_window: int | None = None) -> int | None:
    found = lookup.find_run(answers, window, first_window)
    return 0 if found is not None and found < window else found


def left_most_run(answers: Answers, window: int, first_window: int | None = None) -> int | None:
    for end in range(1, len(answers)):
        found = lookup.find_run(answers[:end], window)
        if found is ASK_AGAIN or found >= window:
            return found
    return lookup.find_run(answers, window, first_window)


def read_as(answers: Answers, **meaning: str) -> str:
    return "".join(meaning.get(answer, answer) for answer in answers)


def pending_is_a_hit(answers: Answers, window: int, first_window: int | None = None) -> int | None:
    return lookup.find_run(read_as(answers, P="H"), window, first_window)


def pending_is_a_miss(answers: Answers, window: int, first_window: int | None = None) -> int | None:
    return lookup.find_run(read_as(answers, P="M"), window, first_window)


def uncertain_is_a_miss(answers: Answers, window: int, first_window: int | None = None) -> int | None:
    return lookup.find_run(read_as(answers, U="M"), window, first_window)


def uncertain_is_pending(answers: Answers, window: int, first_window: int | None = None) -> int | None:
    return lookup.find_run(read_as(answers, U="P"), window, first_window)


def single_pass(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    """Asks every group once, each within what the ones before it left."""
    lookup.check_request(prompt, local, cap)
    lookup.check_groups(prompt, groups, answers)
    limit, waiting = lookup.furthest_boundary(prompt, local, groups, cap), False
    for group, own in zip(groups, answers, strict=True):
        if limit - local < group.offload_chunk:
            return 0
        served = lookup.served_boundary(group, own, local, limit)
        waiting |= served is ASK_AGAIN
        limit = limit if served is None else served
        if limit - local < group.offload_chunk:
            return 0
    return ASK_AGAIN if waiting else limit - local


def least_answer(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    """Takes the smallest of the groups' own hits."""
    own = [lookup.external_hit(prompt, local, [g], [a], cap) for g, a in zip(groups, answers, strict=True)]
    found = [h for h in own if h is not None]
    lookup.external_hit(prompt, local, groups, answers, cap)
    return ASK_AGAIN if len(found) < len(own) else min(found)


def largest_answer(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    own = [lookup.external_hit(prompt, local, [g], [a], cap) for g, a in zip(groups, answers, strict=True)]
    found = [h for h in own if h is not None]
    lookup.external_hit(prompt, local, groups, answers, cap)
    return max(found) if found else ASK_AGAIN


def open_at_any_boundary(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    """Gives up as soon as one group has to be asked again, although another one is about to shorten the boundary."""
    found = lookup.external_hit(prompt, local, groups, answers, cap)
    limit = lookup.furthest_boundary(prompt, local, groups, cap)
    for group, own in zip(groups, answers, strict=True):
        if found and lookup.served_boundary(group, own, local, limit) is ASK_AGAIN:
            return ASK_AGAIN
    return found


def open_is_served(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    return lookup.external_hit(prompt, local, groups, [read_as(a, P="H", U="H") for a in answers], cap)


def open_is_no_hit(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    return lookup.external_hit(prompt, local, groups, answers, cap) or 0


def trailing_chunk_dropped(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    """Treats every group as a draft's, whose last chunk may still change."""
    found = lookup.external_hit(prompt, local, groups, answers, cap)
    size = max(group.offload_chunk for group in groups)
    return max(0, found - found % size - size) if found else found


def never(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    return (lookup.external_hit(prompt, local, groups, answers, cap) or 0) * 0


def whole_prompt(prompt: int, local: int, groups: Sequence[LayerGroup], cap: int | None = None) -> int:
    limit = prompt if cap is None else min(prompt, local + cap)
    return min(limit, *(prompt // group.offload_chunk * group.offload_chunk for group in groups))


def whole_chunks_short(prompt: int, local: int, groups: Sequence[LayerGroup], cap: int | None = None) -> int:
    limit = lookup.furthest_boundary(prompt, local, groups, cap)
    return min(limit, *(limit // group.offload_chunk * group.offload_chunk for group in groups))


def from_token_0(group: LayerGroup, answers: Answers, local: int, limit: int) -> int | None:
    return lookup.served_boundary(group, answers, 0, limit)


def part_chunks(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    found = lookup.external_hit(prompt, local, groups, answers, cap)
    return found if found is None or found else max(0, lookup.furthest_boundary(prompt, local, groups, cap) - local)


def device_rule_for_the_store(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Answers], cap: int | None = None
) -> int | None:
    """Takes what the device cache may leave empty for something that the store has."""
    found = lookup.external_hit(prompt, local, groups, answers, cap)
    limit = lookup.furthest_boundary(prompt, local, groups, cap)
    finished = [limit // g.attention_chunk * g.attention_chunk for g in groups if g.attention_chunk]
    return found if found is None or not finished else max(found, min(finished) - local)


def any_groups(prompt: int, groups: Sequence[LayerGroup], answers: Sequence[Answers]) -> None:
    """Keeps only the refusal of recurrent state."""
    for group in groups:
        if group.kind == "mamba":
            raise KindRefused("layer group kind 'mamba'")
