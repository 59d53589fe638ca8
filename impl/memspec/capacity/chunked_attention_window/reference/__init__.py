"""The rule, in three parts: windows and needs, the store's lookup, the device's rule."""

from __future__ import annotations

from memspec.capacity.chunked_attention_window.reference.device import (
    admission_blocks,
    device_hit,
    skipped_tokens,
    suffix_hit,
)
from memspec.capacity.chunked_attention_window.reference.lookup import external_hit, find_prefix, find_run
from memspec.capacity.chunked_attention_window.reference.window import (
    chunks_to_load,
    covers_every_boundary,
    demanded_chunks,
    mean_need,
    needed_chunks,
    planned_chunks,
    reported_window,
    window_in_chunks,
    worst_need,
)

__all__ = [
    "admission_blocks",
    "chunks_to_load",
    "covers_every_boundary",
    "demanded_chunks",
    "device_hit",
    "external_hit",
    "find_prefix",
    "find_run",
    "mean_need",
    "needed_chunks",
    "planned_chunks",
    "reported_window",
    "skipped_tokens",
    "suffix_hit",
    "window_in_chunks",
    "worst_need",
]
