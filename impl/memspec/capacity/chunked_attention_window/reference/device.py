"""The device cache's rule for the same layers, and what a request may take of it.

It asks another question than the offload lookup: not which chunks a store must supply, but which blocks may stay empty. Source:
the chunked-local manager and cache description in vLLM 0.33.0, and the suffix lookup of its simple CPU offload.
"""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.chunked_attention_window.data import DeviceHit, KindRefused, SizeRefused
from memspec.capacity.chunked_attention_window.reference.window import ceil_div, check_size


def skipped_tokens(tokens: int, attention_chunk: int) -> int:
    """Tokens that no later token reads once ``tokens`` are computed: those of finished attention chunks.

    Raises SizeRefused for an attention chunk below 1 or a count below 0.
    """
    return check_size("length", tokens, 0) // check_size("attention chunk", attention_chunk) * attention_chunk


def check_device(attention_chunk: int, block: int, alignment: int, draft_drop: bool, context_ranks: int) -> None:
    """Raise unless the rule holds for the configuration.

    SizeRefused: blocks and attention chunks of which neither is whole pieces of the other (a placeholder would lie where a
    token reads), or blocks that differ from the alignment. KindRefused: a dropped draft block, or context ranks.
    """
    check_size("attention chunk", attention_chunk)
    check_size("block", block)
    if attention_chunk % block and block % attention_chunk:
        raise SizeRefused(
            f"block of {block} tokens and attention chunk of {attention_chunk}: neither divides the other"
        )
    if block != alignment:
        raise SizeRefused(f"block of {block} tokens must equal the hit alignment of {alignment}")
    if draft_drop:
        raise KindRefused("chunked-local groups cannot drop a draft's last block")
    if context_ranks != 1:
        raise KindRefused(f"chunked-local groups are not split over {context_ranks} context ranks; the limit is 1")


def device_hit(
    max_length: int,
    attention_chunk: int,
    block: int,
    cached: Sequence[bool],
    alignment: int | None = None,
    draft_drop: bool = False,
    context_ranks: int = 1,
) -> DeviceHit:
    """The device's hit for at most ``max_length`` tokens: placeholders up to the attention chunk of token ``max_length``, then
    cached blocks up to the first miss. ``cached[b]`` says whether block ``b`` is resident; blocks beyond the list are not.
    Raises SizeRefused and KindRefused.
    """
    check_device(attention_chunk, block, block if alignment is None else alignment, draft_drop, context_ranks)
    placeholders = skipped_tokens(max_length, attention_chunk) // block
    blocks = placeholders
    while blocks < min(max_length // block, len(cached)) and cached[blocks]:
        blocks += 1
    return DeviceHit(blocks * block, placeholders)


def suffix_hit(prompt: int, local: int, attention_chunk: int, block: int, cached: Sequence[bool]) -> int:
    """Tokens beyond ``local`` that a second block cache can supply when it is searched from ``local`` on as if from token 0.

    ``cached[b]`` speaks of block ``b`` of the whole prompt. 0 where ``local`` is not on the block grid or not on the attention
    chunk grid: counted from there, the chunks would lie elsewhere. The last prompt token is left to compute. Raises
    SizeRefused for a size or prompt below 1 or a local prefix below 0.
    """
    check_size("prompt", prompt)
    check_size("local prefix", local, 0)
    if local % check_size("block", block) or local % check_size("attention chunk", attention_chunk):
        return 0
    return device_hit(max(0, prompt - 1 - local), attention_chunk, block, cached[local // block :]).tokens


def admission_blocks(attention_chunk: int, in_flight: int, max_length: int, block: int) -> int:
    """Blocks that one request may take: an attention chunk and what is in flight, at most its longest length.

    Raises SizeRefused for a size below 1 or a count below 0.
    """
    held = check_size("attention chunk", attention_chunk) + check_size("tokens in flight", in_flight, 0)
    return ceil_div(min(held, check_size("longest length", max_length, 0)), check_size("block", block))
