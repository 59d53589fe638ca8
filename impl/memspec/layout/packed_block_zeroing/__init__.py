"""Packed KV block zeroing: which bytes are cleared when a block of a shared allocation is handed out, and when.

A segment keeps three numbers apart: where block 0 of a layer starts, how far it is to the next block, and how many
bytes are the layer's own. Block ``b`` is ``[address + b * block_stride, + span)`` and nothing else: not the
neighbours in the row, not the start of the next row, not the bytes past the allocation. A longer span silently
wipes live blocks or leaves the allocation; a shorter one leaves stale bytes that decode to NaN. The scheduler
records new blocks, delivers the record in every step before copies and computation, and never clears what a load
writes.

Lineage: vllm-project/vllm PR #50276 (first release 0.28.0), with #35219, #43990, #47574, #49704, #49903, #51749 and
#52058, as in 0.33.0. Deliberate differences: a span longer than the block stride, a stride of 0, ids outside the
cache and views that disagree about the number of blocks are refused; a record is withdrawn when its block goes to a
load; only pieces that exist are launched, with 16-byte stores.
"""

from memspec.layout.packed_block_zeroing.data import (
    BlockRefused,
    CacheGroup,
    LaunchRefused,
    Segment,
    View,
    ViewRefused,
    ZeroingRefused,
)
from memspec.layout.packed_block_zeroing.reference import (
    clear,
    cleared_intervals,
    duty,
    launch_grid,
    needs_zeroing,
    page_span,
    program_work,
    segments,
    wide_body,
    wide_bytes,
    zeroed_layers,
)

__all__ = [
    "BlockRefused",
    "CacheGroup",
    "LaunchRefused",
    "Segment",
    "View",
    "ViewRefused",
    "ZeroingRefused",
    "clear",
    "cleared_intervals",
    "duty",
    "launch_grid",
    "needs_zeroing",
    "page_span",
    "program_work",
    "segments",
    "wide_body",
    "wide_bytes",
    "zeroed_layers",
]
