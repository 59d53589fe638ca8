"""How far a store can extend a prompt's KV: the lookup of one group, and of groups that must agree on one boundary.

The store answers for each offload chunk: hit, miss, pending (there, not readable yet) or uncertain (not known yet). Source: the
offloading connector's scheduler in vLLM 0.33.0, without recurrent-state groups and drafts.
"""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.chunked_attention_window.data import (
    ANSWERS,
    ASK_AGAIN,
    MISS,
    PENDING,
    UNCERTAIN,
    AnswerRefused,
    KindRefused,
    LayerGroup,
    SizeRefused,
)
from memspec.capacity.chunked_attention_window.reference.window import (
    ceil_div,
    check_window,
    demanded_chunks,
    reported_window,
)


def check_answers(answers: Sequence[str]) -> None:
    """Raise AnswerRefused unless every answer is one of the four."""
    for chunk, answer in enumerate(answers):
        if answer not in ANSWERS:
            raise AnswerRefused(f"answer {answer!r} for offload chunk {chunk} is none of {', '.join(sorted(ANSWERS))}")


def find_run(answers: Sequence[str], window: int, first_window: int | None = None) -> int | None:
    """The end of the right-most run of ``window`` chunks, 0 without one; ASK_AGAIN when it depends on an open answer.

    A shorter run counts when it begins with the first candidate: what lies before that is on the device. A pending chunk is
    part of a run; an uncertain one is not, and the scan does not get past it without having to ask again. A run that ends with
    the last candidate is asked for ``first_window`` chunks, where that is more. Raises SizeRefused and AnswerRefused.
    """
    check_window(window)
    check_answers(answers)
    for end in range(len(answers), 0, -1):
        asked = max(window, first_window or 0) if end == len(answers) else window
        run = answers[max(0, end - asked) : end]
        if run[-1] == UNCERTAIN:
            return ASK_AGAIN
        if MISS not in run and UNCERTAIN not in run:
            return ASK_AGAIN if PENDING in run else end
    return 0


def find_prefix(answers: Sequence[str]) -> int | None:
    """Chunks before the first miss; ASK_AGAIN when one of them is pending or uncertain."""
    check_answers(answers)
    prefix = list(answers[: list(answers).index(MISS)] if MISS in answers else answers)
    return ASK_AGAIN if PENDING in prefix or UNCERTAIN in prefix else len(prefix)


def served_boundary(group: LayerGroup, answers: Sequence[str], local: int, limit: int) -> int | None:
    """The furthest boundary up to ``limit`` tokens that one group can serve, or ASK_AGAIN; ``local`` or less: none.

    ``answers`` are those for the prompt's offload chunks from chunk 0 on; candidates begin with the one that holds token
    ``local``, and those before it are on the device.
    """
    first, end = local // group.offload_chunk, ceil_div(limit, group.offload_chunk)
    window = reported_window(group)
    candidates = answers[first:end]
    found = find_prefix(candidates) if window is None else find_run(candidates, window, demanded_chunks(limit, group))
    return ASK_AGAIN if found is None else min(limit, (first + found) * group.offload_chunk)


def check_request(prompt: int, local: int, cap: int | None) -> None:
    """Raise SizeRefused unless the counts describe a request."""
    if prompt < 1:
        raise SizeRefused(f"prompt is {prompt} tokens; it must be at least 1")
    if not 0 <= local <= prompt:
        raise SizeRefused(f"local prefix is {local} tokens; it must be 0 to {prompt}")
    if cap is not None and cap < 0:
        raise SizeRefused(f"cap is {cap} tokens; it must be at least 0")


def check_groups(prompt: int, groups: Sequence[LayerGroup], answers: Sequence[Sequence[str]]) -> None:
    """Raise unless there is a group, every group has a rule, and an answer for each whole offload chunk of the prompt.

    Recurrent state is refused: its boundaries differ.
    """
    if not groups or len(groups) != len(answers):
        raise SizeRefused(f"{len(answers)} answer lists for {len(groups)} groups; one for each, and at least 1")
    for group, own in zip(groups, answers, strict=True):
        reported_window(group)
        if group.kind == "mamba":
            raise KindRefused(
                "layer group kind 'mamba' is not served by this lookup; its state exists at boundaries of its own"
            )
        whole = prompt // group.offload_chunk
        if len(own) < whole:
            raise SizeRefused(f"{len(own)} answers for the {whole} whole offload chunks of a {group.kind} group")
        check_answers(own)


def furthest_boundary(prompt: int, local: int, groups: Sequence[LayerGroup], cap: int | None = None) -> int:
    """The longest boundary worth asking for: whole chunks of every group, and, with a windowed group, one token short of the
    prompt, whose last token is computed again for its logits, and of the cap, as released.
    """
    limit = prompt if cap is None else min(prompt, local + cap)
    if any(reported_window(group) is not None for group in groups):
        limit -= 1
    return min(limit, *(prompt // group.offload_chunk * group.offload_chunk for group in groups))


def external_hit(
    prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Sequence[str]], cap: int | None = None
) -> int | None:
    """Tokens beyond ``local`` that the store can supply to all groups at once, or ASK_AGAIN.

    ``answers[g][i]`` is the answer for offload chunk ``i`` of group ``g``. Every group may shorten the boundary, which can take
    away the run on which an earlier group's answer stood; so all are asked until none shortens it. An open answer counts only
    at the boundary where they agree. ``cap`` bounds the tokens beyond ``local``. Raises SizeRefused, KindRefused or
    AnswerRefused.
    """
    check_request(prompt, local, cap)
    check_groups(prompt, groups, answers)
    limit = furthest_boundary(prompt, local, groups, cap)
    if limit - local < max(group.offload_chunk for group in groups):
        return 0
    while True:
        agreed, waiting = limit, False
        for group, own in zip(groups, answers, strict=True):
            served = served_boundary(group, own, local, agreed)
            waiting |= served is ASK_AGAIN
            agreed = agreed if served is None else served
            if agreed - local < group.offload_chunk:
                return 0
        if agreed == limit:
            return ASK_AGAIN if waiting else limit - local
        limit = agreed
