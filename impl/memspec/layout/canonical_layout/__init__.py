"""One byte order for a stored KV page, whatever the topology that wrote it.

A byte's place follows from half, global head and token; a layer whose live tensor does not prove that is stored opaque
on all ranks. Replicas take turns by page id and all of them submit; a load covers the whole local page. Engines of
other sizes share files only if every layer is portable.

Lineage: vllm-project/vllm PR #48408 and #48414 (first release 0.28.0), #51689, #51690, #51718, #56799; rules of 0.33.0.
Deliberate differences: the format id names the K/V form, the row length follows from canonical pages alone, a size-1
axis proves no family, a fragment (not the page) chooses the copy path, a short file is removed only against its
recorded length, direct bytes are never shared, per-token-head scales close the gate.
"""

from memspec.layout.canonical_layout.data import (
    Cell,
    CopyPlan,
    CopyRun,
    Grid,
    Group,
    Identity,
    Layer,
    NameRefused,
    NotCertified,
    PageMap,
    PlanRefused,
    Region,
    Spec,
    StartRefused,
    TilingBroken,
    View,
)
from memspec.layout.canonical_layout.reference import (
    check_layer,
    complete,
    copy_path,
    elected,
    file_name,
    fingerprint,
    format_id,
    fragments,
    lay_out,
    map_layer,
    may_share,
    moved,
    namespace_fields,
    page_ids,
    plan_copies,
    rows,
    short_read,
    start_worker,
    submitting_ranks,
)

__all__ = [
    "Cell",
    "CopyPlan",
    "CopyRun",
    "Grid",
    "Group",
    "Identity",
    "Layer",
    "NameRefused",
    "NotCertified",
    "PageMap",
    "PlanRefused",
    "Region",
    "Spec",
    "StartRefused",
    "TilingBroken",
    "View",
    "check_layer",
    "complete",
    "copy_path",
    "elected",
    "file_name",
    "fingerprint",
    "format_id",
    "fragments",
    "lay_out",
    "map_layer",
    "may_share",
    "moved",
    "namespace_fields",
    "page_ids",
    "plan_copies",
    "rows",
    "short_read",
    "start_worker",
    "submitting_ranks",
]
