"""Where text goes on: the decode side turns tokens into text behind the boundary, with what comes before as context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CONTEXT = 5  # tokens before the boundary; a token may be part of a character or of a word's spacing


class BoundaryError(ValueError):
    """A boundary outside the log; names both."""


@dataclass(frozen=True)
class Prime:
    """``ids`` for the detokenizer; the text of the first ``read_offset`` of them has been shown and is not shown again."""

    ids: tuple[int, ...]
    read_offset: int


def detokenizer_prime(prompt: Sequence[int], log: Sequence[int], owned: int) -> Prime:
    """Up to five tokens before the boundary, the prompt's included, and the log from the boundary on.

    ``owned`` is the number of log tokens whose text the client has. Raises BoundaryError outside ``0 .. len(log)``.
    """
    if not 0 <= owned <= len(log):
        raise BoundaryError(
            f"the client-visible prefix is {owned}; it must be between 0 and the log's {len(log)} tokens"
        )
    start = max(0, len(prompt) + owned - CONTEXT)
    return Prime((*prompt, *log)[start:], len(prompt) + owned - start)
