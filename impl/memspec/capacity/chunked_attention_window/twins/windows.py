"""Wrong windows and needs."""

from __future__ import annotations

from memspec.capacity.chunked_attention_window.data import LayerGroup
from memspec.capacity.chunked_attention_window.reference import window


def chunked_kind_unknown(group: LayerGroup) -> int | None:
    if group.kind == "chunked-local":
        raise AssertionError
    return window.reported_window(group)


def bare_assertions(group: LayerGroup) -> int | None:
    try:
        return window.reported_window(group)
    except ValueError:
        raise AssertionError from None


def unnamed_size(name: str, value: int | None, least: int = 1) -> int:
    if value is None or value < least:
        raise AssertionError
    return value


def offload_chunk_unchecked(name: str, value: int | None, least: int = 1) -> int:
    return value or 1 if name == "offload chunk" else window.check_size(name, value, least)


def any_size(name: str, value: int | None, least: int = 1) -> int:
    return max(least, value or least)


def unknown_is_full(group: LayerGroup) -> int | None:
    return window.reported_window(group) if group.kind in window.KINDS else None


def floored(attention_chunk: int, offload_chunk: int) -> int:
    return max(1, window.window_in_chunks(attention_chunk, offload_chunk) - (attention_chunk % offload_chunk > 0))


def floored_demand(boundary: int, group: LayerGroup) -> int | None:
    if group.kind == "chunked-local" and group.attention_chunk:
        return floored(group.attention_chunk, group.offload_chunk)
    return window.reported_window(group)


def one_more(attention_chunk: int, offload_chunk: int) -> int:
    return window.window_in_chunks(attention_chunk, offload_chunk) + 1


def nearest(attention_chunk: int, offload_chunk: int) -> int:
    window.window_in_chunks(attention_chunk, offload_chunk)
    return (2 * attention_chunk + offload_chunk) // (2 * offload_chunk)


def without_extra(sliding_window: int, offload_chunk: int, extra_retained: int = 0) -> int:
    return window.ceil_div(sliding_window, offload_chunk)


def hinted(group: LayerGroup) -> int | None:
    found = window.reported_window(group)
    hint = group.attention_chunk or group.sliding_window
    return window.ceil_div(hint, group.offload_chunk) if found is None and hint else found


def last_tokens(boundary: int, attention_chunk: int, offload_chunk: int) -> range:
    return range(max(0, boundary - attention_chunk) // offload_chunk, window.ceil_div(boundary, offload_chunk))


def last_finished_chunk(boundary: int, attention_chunk: int, offload_chunk: int) -> range:
    previous = max(0, boundary - 1) // attention_chunk * attention_chunk
    return range(previous // offload_chunk, window.ceil_div(boundary, offload_chunk)) if boundary else range(0)


def only_multiples(attention_chunk: int, offload_chunk: int) -> bool:
    return attention_chunk % offload_chunk == 0


def always_enough(attention_chunk: int, offload_chunk: int) -> bool:
    return True


def grids_meet(attention_chunk: int, offload_chunk: int) -> int:
    return window.window_in_chunks(attention_chunk, offload_chunk)


def window_anywhere(boundary: int, group: LayerGroup) -> int | None:
    return window.demanded_chunks(boundary, group) if group.kind in window.SLIDING else window.reported_window(group)


def window_of_any_kind(boundary: int, group: LayerGroup) -> int | None:
    return window.reported_window(group)


def worst_anywhere(boundary: int, group: LayerGroup) -> int | None:
    if group.kind == "chunked-local" and group.attention_chunk:
        return max(window.reported_window(group) or 1, window.worst_need(group.attention_chunk, group.offload_chunk))
    return window.demanded_chunks(boundary, group)
