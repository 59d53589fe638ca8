"""Chunked local attention in an offload lookup: how many chunks to ask for, and what a hit then means.

A layer with chunked local attention reads only the tokens of the current attention chunk, counted from token 0 of the prompt.
A lookup asks for ``ceil(C / T)`` stored chunks in a row, from the right. Too few claim a hit that the layer cannot read; too
many report a miss although the data is there. The number is enough where boundaries lie on the offload grid or one token
before; elsewhere the lookup asks for what is read. All groups of a model must agree on one boundary.

Lineage: vllm-project/vllm PR #51161 (first release 0.28.0), as in 0.33.0. Deliberate differences: sizes and kinds are refused
by name; a boundary off the grid asks for what is read there; all groups are asked again after a shortening, also those whose
offload chunks differ; the device rule refuses block sizes for which it would claim an empty block.
"""

from memspec.capacity.chunked_attention_window.data import (
    ASK_AGAIN,
    AnswerRefused,
    DeviceHit,
    KindRefused,
    LayerGroup,
    SizeRefused,
    WindowRefused,
)
from memspec.capacity.chunked_attention_window.reference import (
    admission_blocks,
    chunks_to_load,
    covers_every_boundary,
    demanded_chunks,
    device_hit,
    external_hit,
    find_prefix,
    find_run,
    mean_need,
    needed_chunks,
    planned_chunks,
    reported_window,
    skipped_tokens,
    suffix_hit,
    window_in_chunks,
    worst_need,
)

__all__ = [
    "ASK_AGAIN",
    "AnswerRefused",
    "DeviceHit",
    "KindRefused",
    "LayerGroup",
    "SizeRefused",
    "WindowRefused",
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
