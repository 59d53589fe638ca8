"""How many offload chunks a windowed group asks for, and how many it reads.

``C`` tokens form an attention chunk, ``T`` tokens an offload chunk; both grids are absolute and start at token 0. At
boundary ``N`` the first ``N`` tokens have KV, and token ``N`` is next. Source: vllm-project/vllm PR #51161, as it stands
in 0.33.0; where this is stricter, the page says so.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from memspec.capacity.chunked_attention_window.data import KindRefused, LayerGroup, SizeRefused

UNBOUNDED = ("full-attention", "mla")
SLIDING = ("sliding-window", "sliding-window-mla")
KINDS = (*UNBOUNDED, *SLIDING, "chunked-local", "mamba")


def ceil_div(tokens: int, size: int) -> int:
    """Pieces of ``size`` tokens that ``tokens`` tokens touch when the first piece begins with the first token."""
    return -(-tokens // size)


def check_size(name: str, value: int | None, least: int = 1) -> int:
    """``value``, when it is at least ``least`` tokens. Raises SizeRefused, which names all three, otherwise."""
    if value is None or value < least:
        raise SizeRefused(f"{name} is {value} tokens; it must be at least {least}")
    return value


def check_window(window: int) -> None:
    """Raise SizeRefused for a window of less than one offload chunk."""
    if window < 1:
        raise SizeRefused(f"window is {window} chunks; it must be at least 1")


def check_sizes(attention_chunk: int, offload_chunk: int) -> None:
    """Raise SizeRefused unless both grids have steps of at least 1 token."""
    check_size("attention chunk", attention_chunk)
    check_size("offload chunk", offload_chunk)


def window_in_chunks(attention_chunk: int, offload_chunk: int) -> int:
    """``w``: offload chunks that a lookup asks for, ``ceil(C / T)``. Raises SizeRefused for a size below 1."""
    check_sizes(attention_chunk, offload_chunk)
    return ceil_div(attention_chunk, offload_chunk)


def sliding_window_in_chunks(sliding_window: int, offload_chunk: int, extra_retained: int = 0) -> int:
    """The same for a sliding window: its ``W`` tokens, or its ``W - 1`` earlier ones and what is retained beyond."""
    return max(ceil_div(sliding_window, offload_chunk), ceil_div(sliding_window - 1 + extra_retained, offload_chunk))


def reported_window(group: LayerGroup) -> int | None:
    """Offload chunks that a group asks for at the boundaries that a scheduler emits; None: all of them.

    Raises KindRefused for a kind without a rule and SizeRefused for a size below what exists.
    """
    if group.kind not in KINDS:
        raise KindRefused(f"layer group kind {group.kind!r} has no offload window; known are {', '.join(KINDS)}")
    size = check_size("offload chunk", group.offload_chunk)
    if group.kind in UNBOUNDED:
        return None
    if group.kind in SLIDING:
        extra = check_size("extra retained", group.extra_retained, 0)
        return sliding_window_in_chunks(check_size("sliding window", group.sliding_window), size, extra)
    if group.kind == "chunked-local":
        return window_in_chunks(check_size("attention chunk", group.attention_chunk), size)
    return 1


def needed_chunks(boundary: int, attention_chunk: int, offload_chunk: int) -> range:
    """Offload chunks that token ``boundary`` reads: those that overlap ``[floor(N / C) * C, N)``; none at a chunk start.

    Raises SizeRefused for a size below 1 or a boundary below 0.
    """
    check_sizes(attention_chunk, offload_chunk)
    first_token = check_size("boundary", boundary, 0) // attention_chunk * attention_chunk
    if first_token == boundary:
        return range(0)
    return range(first_token // offload_chunk, ceil_div(boundary, offload_chunk))


def worst_need(attention_chunk: int, offload_chunk: int) -> int:
    """The most offload chunks that any boundary reads, wherever it lies.

    An attention chunk begins up to ``T - gcd(C, T)`` tokens into an offload chunk, and its last token reads the ``C - 1``
    tokens before it. Raises SizeRefused for a size below 1.
    """
    check_sizes(attention_chunk, offload_chunk)
    if attention_chunk == 1:
        return 0
    return ceil_div(offload_chunk - gcd(attention_chunk, offload_chunk) + attention_chunk - 1, offload_chunk)


def covers_every_boundary(attention_chunk: int, offload_chunk: int) -> bool:
    """Whether ``w`` chunks are enough at every boundary and not only at ``N = 0`` and ``N = -1`` modulo ``T``.

    Raises SizeRefused for a size below 1.
    """
    check_sizes(attention_chunk, offload_chunk)
    return attention_chunk % offload_chunk <= 1 + gcd(attention_chunk, offload_chunk)


def mean_need(attention_chunk: int, offload_chunk: int) -> Fraction:
    """Offload chunks that are read on average, over all boundaries that are multiples of ``T``.

    Raises SizeRefused for a size below 1.
    """
    check_sizes(attention_chunk, offload_chunk)
    period = attention_chunk // gcd(attention_chunk, offload_chunk)
    needs = (len(needed_chunks(k * offload_chunk, attention_chunk, offload_chunk)) for k in range(period))
    return Fraction(sum(needs), period)


def demanded_chunks(boundary: int, group: LayerGroup) -> int | None:
    """Offload chunks that a lookup asks for when its candidates end at ``boundary``; None: all of them.

    The reported window where a scheduler's own boundaries lie; more only where the boundary leaves the last offload chunk
    partly used and the group reads one chunk further to the left. Raises SizeRefused and KindRefused.
    """
    check_size("boundary", boundary, 0)
    window = reported_window(group)
    if window is None:
        return None
    if group.sliding_window is not None and group.kind in SLIDING:
        unused = -boundary % group.offload_chunk
        read = ceil_div(group.sliding_window - 1 + group.extra_retained + unused, group.offload_chunk)
        return max(window, read)
    if group.attention_chunk is not None and group.kind == "chunked-local":
        return max(window, len(needed_chunks(boundary, group.attention_chunk, group.offload_chunk)))
    return window


def chunks_to_load(local: int, boundary: int, attention_chunk: int, offload_chunk: int) -> range:
    """Offload chunks that are copied for a hit up to ``boundary`` when the device holds ``local`` tokens: what is read and
    not there, no more. Raises SizeRefused for a size below 1 or a count below 0.
    """
    check_sizes(attention_chunk, offload_chunk)
    check_size("boundary", boundary, 0)
    check_size("local prefix", local, 0)
    first_token = max(local, boundary // attention_chunk * attention_chunk)
    if first_token >= boundary:
        return range(0)
    return range(first_token // offload_chunk, ceil_div(boundary, offload_chunk))


def planned_chunks(max_length: int, window: int | None, offload_chunk: int) -> int:
    """Offload chunks to plan for one request: ``min(ceil(max_length / T), w)``, or all of them without a window.

    Raises SizeRefused for a size or window below 1 or a length below 0.
    """
    whole = ceil_div(check_size("longest length", max_length, 0), check_size("offload chunk", offload_chunk))
    if window is None:
        return whole
    check_window(window)
    return min(whole, window)
