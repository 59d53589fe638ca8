"""Greedy decoding with a target and a drafter that each read their own cache, one request, K given for each step.

The models are tables: the choice after tokens ``a, b``. They read ``a, b`` from cache rows, so a row that was never written shows. The
drafter has no cache of the target's: what it does not write it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.dynamic_speculation.data import Decoded, Loop, LoopRefused
from memspec.capacity.dynamic_speculation.reference.drafter import rows_to_write
from memspec.capacity.dynamic_speculation.reference.timing import received

STALE = 0  # what a row holds that this request has not written
Rows = dict[int, int]  # position -> token; a cache that can be asked for any position


def write(rows: Rows, first: int, tokens: Sequence[int]) -> None:
    rows.update(enumerate(tokens, first))


def choice(model: Sequence[Sequence[int]], rows: Rows, position: int) -> int:
    """The model's next token after the rows up to ``position``."""
    return model[rows.get(position - 1, STALE)][rows.get(position, STALE)]


def propose(loop: Loop, rows: Rows, tokens: Sequence[int], current: int, k: int) -> tuple[list[int], int]:
    """Bring the drafter's rows up to date as its policy has it, then draft ``k`` tokens. Returns them and the rows' end."""
    first, end = rows_to_write(current, len(tokens), k, loop.policy)
    write(rows, first, tokens[first:end])
    drafts: list[int] = []
    for position in range(len(tokens) - 1, len(tokens) - 1 + k):
        drafts.append(choice(loop.drafter, rows, position))
        rows[position + 1] = drafts[-1]
    return drafts, end


def agreeing(chosen: Sequence[int], drafts: Sequence[int]) -> int:
    """Drafts that the target would have chosen itself, up to the first that it would not."""
    return next((n for n, draft in enumerate(drafts) if draft != chosen[n]), len(drafts))


def check_loop(loop: Loop) -> None:
    """Raises LoopRefused where there is nothing to choose after, or no K that the drafter can follow."""
    if len(loop.prompt) < 2:
        raise LoopRefused(f"a prompt of {len(loop.prompt)} tokens; at least 2")
    if not loop.ks or not 0 <= min(loop.ks) <= max(loop.ks) <= loop.k_max:
        raise LoopRefused(f"K of {list(loop.ks)}; at least one, each from 0 to {loop.k_max}")


def decode(loop: Loop) -> Decoded:
    """Emit ``count`` tokens. Each step verifies the drafts of the step before it and asks for ``ks[step]`` new ones.

    Raises LoopRefused.
    """
    check_loop(loop)
    tokens, target, drafter = list(loop.prompt), Rows(), Rows()
    verified, accepted = [], []
    drafts: tuple[int, ...] = ()
    current = step = 0
    due = len(loop.prompt) + loop.count
    write(target, 0, tokens)
    while len(tokens) < due:
        write(target, len(tokens), drafts)
        chosen = [choice(loop.target, target, len(tokens) - 1 + n) for n in range(len(drafts) + 1)]
        good = agreeing(chosen, drafts)
        new = chosen[: good + 1]
        if step:
            verified.append(len(drafts))
            accepted.append(good)
        write(target, len(tokens), new)
        tokens += new[: due - len(tokens)]
        k = loop.ks[min(step, len(loop.ks) - 1)]
        proposed, current = propose(loop, drafter, tokens, current, k)
        drafts = received([proposed], loop.k_max, "wide")[0]
        step += 1
    return Decoded(tuple(tokens[len(loop.prompt) :]), tuple(verified), tuple(accepted))
