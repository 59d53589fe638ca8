"""The rule, in four parts: which bytes, whose bytes, how they are launched, and when it is due."""

from __future__ import annotations

from memspec.layout.packed_block_zeroing.reference.keeping import Duty, duty, step
from memspec.layout.packed_block_zeroing.reference.launch import (
    check_grid,
    id_buffer,
    launch_grid,
    program_work,
    warm_up_ids,
    wide_body,
    wide_bytes,
    work_list,
)
from memspec.layout.packed_block_zeroing.reference.plan import (
    block_count,
    clear,
    cleared_intervals,
    page_span,
    segments,
    segments_of,
)
from memspec.layout.packed_block_zeroing.reference.released import Geometry, common_divisor_grid, rectangular_grid
from memspec.layout.packed_block_zeroing.reference.scope import needs_zeroing, recorded_groups, zeroed_layers

__all__ = [
    "Duty",
    "Geometry",
    "block_count",
    "check_grid",
    "clear",
    "cleared_intervals",
    "common_divisor_grid",
    "duty",
    "id_buffer",
    "launch_grid",
    "needs_zeroing",
    "page_span",
    "program_work",
    "recorded_groups",
    "rectangular_grid",
    "segments",
    "segments_of",
    "step",
    "warm_up_ids",
    "wide_body",
    "wide_bytes",
    "work_list",
    "zeroed_layers",
]
