"""How many draft tokens a ring of raw rows serves, and which rows a batch leaves in it.

A compression reads the last ``window`` raw rows; those that are not in its own batch come from a ring. A verify step
writes optimistically and then rolls back, so every draft's row has to be kept, and none may replace a row that is
still read: ``ring - window + 2`` drafts at most, of which at least one is committed. Fewer rows kept, or more drafts,
and later entries are compressed from somebody else's rows: finite, wrong and permanent. The limit is a property of the
ring; planners cannot see it being passed, so the server checks it when it starts.

Lineage: sgl-project/sglang PR #34189 (first release 0.5.18; supersedes #33872), #32470 and #32467; rules of 0.5.23.
Deliberate differences: refusals are typed errors, not assertions; both planners bound tokens and requests and check
extends; a ring smaller than its window is refused, and so is a step that commits nothing.
"""

from memspec.capacity.compress_ring_pad.data import (
    BatchRefused,
    CommitRefused,
    Compression,
    Geometry,
    GeometryRefused,
    Plan,
    RatioRefused,
    Request,
    RingRefused,
    StaleRead,
    StartRefused,
    Write,
)
from memspec.capacity.compress_ring_pad.reference import (
    check_start,
    commit,
    compress_rows,
    device_plan,
    host_plan,
    max_draft_tokens,
    ring_size,
    ring_slot,
    stale_reads,
    state_rows,
    step,
    write_pad,
    write_rows,
    written_positions,
)

__all__ = [
    "BatchRefused",
    "CommitRefused",
    "Compression",
    "Geometry",
    "GeometryRefused",
    "Plan",
    "RatioRefused",
    "Request",
    "RingRefused",
    "StaleRead",
    "StartRefused",
    "Write",
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
    "write_pad",
    "write_rows",
    "written_positions",
]
