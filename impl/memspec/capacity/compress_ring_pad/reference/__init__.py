"""The rule, in five parts: how large a ring is, where a row lies, what a batch plans, what a step does, and what goes
wrong past the limit.
"""

from __future__ import annotations

from memspec.capacity.compress_ring_pad.reference.audit import stale_reads
from memspec.capacity.compress_ring_pad.reference.memory import commit, compress_rows, step, write_rows
from memspec.capacity.compress_ring_pad.reference.plan import check_size, device_plan, host_plan, written_positions
from memspec.capacity.compress_ring_pad.reference.sizes import (
    check_start,
    max_draft_tokens,
    ring_size,
    state_rows,
    window_of,
    write_pad,
)
from memspec.capacity.compress_ring_pad.reference.slots import check_geometry, ring_slot

__all__ = [
    "check_geometry",
    "check_size",
    "check_start",
    "commit",
    "compress_rows",
    "device_plan",
    "host_plan",
    "max_draft_tokens",
    "ring_size",
    "ring_slot",
    "stale_reads",
    "state_rows",
    "step",
    "window_of",
    "write_pad",
    "write_rows",
    "written_positions",
]
