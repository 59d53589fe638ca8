"""Wrong device rules, loads and plans."""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.chunked_attention_window.data import DeviceHit
from memspec.capacity.chunked_attention_window.reference import device, window


def blocks_looked_up(
    max_length: int,
    attention_chunk: int,
    block: int,
    cached: Sequence[bool],
    alignment: int | None = None,
    draft_drop: bool = False,
    context_ranks: int = 1,
) -> DeviceHit:
    """A prefix lookup: finished attention chunks have to be resident too."""
    device.check_device(attention_chunk, block, block if alignment is None else alignment, draft_drop, context_ranks)
    blocks = 0
    while blocks < max_length // block and cached[blocks]:
        blocks += 1
    return DeviceHit(blocks * block, 0)


def last_tokens_kept(tokens: int, attention_chunk: int) -> int:
    return max(0, tokens - attention_chunk)


def any_blocks(attention_chunk: int, block: int, alignment: int, draft_drop: bool, context_ranks: int) -> None:
    device.check_device(attention_chunk, attention_chunk, attention_chunk, draft_drop, context_ranks)
    window.check_size("block", block)
    if block != alignment:
        device.check_device(attention_chunk, block, alignment, draft_drop, context_ranks)


def alone_unchecked(attention_chunk: int, block: int, alignment: int, draft_drop: bool, context_ranks: int) -> None:
    device.check_device(attention_chunk, block, block, False, 1)


def relative(prompt: int, local: int, attention_chunk: int, block: int, cached: Sequence[bool]) -> int:
    if local % block:
        return 0
    return device.device_hit(max(0, prompt - 1 - local), attention_chunk, block, cached[local // block :]).tokens


def no_suffix(prompt: int, local: int, attention_chunk: int, block: int, cached: Sequence[bool]) -> int:
    return 0 if local else device.suffix_hit(prompt, local, attention_chunk, block, cached)


def whole_window_loaded(local: int, boundary: int, attention_chunk: int, offload_chunk: int) -> range:
    end = window.ceil_div(boundary, offload_chunk)
    return range(max(local // offload_chunk, end - window.window_in_chunks(attention_chunk, offload_chunk)), end)


def all_loaded(local: int, boundary: int, attention_chunk: int, offload_chunk: int) -> range:
    return range(local // offload_chunk, window.ceil_div(boundary, offload_chunk))


def whole_chunks_loaded(local: int, boundary: int, attention_chunk: int, offload_chunk: int) -> range:
    due = window.chunks_to_load(local, boundary, attention_chunk, offload_chunk)
    return range(due.start, min(due.stop, boundary // offload_chunk))


def planned_in_full(max_length: int, window_: int | None, offload_chunk: int) -> int:
    return window.ceil_div(max_length, offload_chunk)


def planned_as_the_window(max_length: int, window_: int | None, offload_chunk: int) -> int:
    return window_ or window.ceil_div(max_length, offload_chunk)


def settled_tokens_only(attention_chunk: int, in_flight: int, max_length: int, block: int) -> int:
    return window.ceil_div(min(attention_chunk, max_length), block)


def as_full_attention(attention_chunk: int, in_flight: int, max_length: int, block: int) -> int:
    return window.ceil_div(max_length, block)


def beyond_the_length(attention_chunk: int, in_flight: int, max_length: int, block: int) -> int:
    return window.ceil_div(attention_chunk + in_flight, block)
