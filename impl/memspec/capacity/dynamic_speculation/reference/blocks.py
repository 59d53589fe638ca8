"""KV blocks of a request in a step, the places for drafts included.

Source: vLLM 0.28.0 and 0.33.0 reserve for ``k_max`` in every step; ROCm/ATOM #250; local-inference-lab/vllm #99.
"""

from __future__ import annotations

from memspec.capacity.dynamic_speculation.data import ReservationRefused, Role


def reserved_blocks(computed: int, new: int, lookahead: int, block: int) -> int:
    """Blocks that hold ``computed + new + lookahead`` tokens. Raises ReservationRefused."""
    if block < 1:
        raise ReservationRefused(f"a block of {block} tokens; at least 1")
    if min(computed, new, lookahead) < 0:
        raise ReservationRefused(f"{min(computed, new, lookahead)} tokens; at least 0")
    return -(-(computed + new + lookahead) // block)


def added_blocks(length: int, added: int, block: int) -> int:
    """Blocks to allocate when a request of ``length`` tokens gets ``added`` more: a number, not a yes or no."""
    return reserved_blocks(length, added, 0, block) - reserved_blocks(length, 0, 0, block)


def lookahead(role: Role, k_now: int, k_next: int, k_max: int, extra: int = 0, tight: bool = True) -> int:
    """Places for drafts beyond a step's own tokens.

    ``k_now``: drafts that the step verifies, which are among its own tokens; ``k_next``: drafts that it asks for and the next step
    verifies. None for a prompt's chunk that is not its last. Otherwise the larger of the two where the pool is tight, and
    ``k_max`` where it is not; ``extra`` for drafters that write more rows than they propose.
    """
    if role == "chunk":
        return 0
    return (max(k_now, k_next) if tight else k_max) + extra


def static_extra(reserved: int, block: int) -> int:
    """Blocks too many, summed over ``block`` consecutive decode steps of one request that drafts nothing: ``reserved``."""
    if block < 1:
        raise ReservationRefused(f"a block of {block} tokens; at least 1")
    return reserved
