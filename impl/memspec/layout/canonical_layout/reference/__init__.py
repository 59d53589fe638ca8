"""The canonical layout as code: shares and writers, certification, maps, tiling, transfers, sharing, names."""

from memspec.layout.canonical_layout.reference.certify import certify
from memspec.layout.canonical_layout.reference.mapping import coalesce, fragments, map_layer, map_rank, opaque_map
from memspec.layout.canonical_layout.reference.names import (
    file_name,
    fingerprint,
    format_id,
    namespace_fields,
    short_read,
)
from memspec.layout.canonical_layout.reference.plan import (
    complete,
    copy_path,
    elected,
    lay_out,
    moved,
    page_ids,
    plan_copies,
    rows,
    submitting_ranks,
)
from memspec.layout.canonical_layout.reference.sharding import Share, head_share, latent_share
from memspec.layout.canonical_layout.reference.sharing import may_share, start_worker
from memspec.layout.canonical_layout.reference.tiling import check_layer

__all__ = [
    "Share", "certify", "check_layer", "coalesce", "complete", "copy_path", "elected", "file_name", "fingerprint", "format_id", "fragments",
    "head_share", "latent_share", "lay_out", "map_layer", "map_rank", "may_share", "moved", "namespace_fields", "opaque_map", "page_ids",
    "plan_copies", "rows", "short_read", "start_worker", "submitting_ranks",
]  # fmt: skip
