"""Who may share a namespace, and what a worker refuses at start.

The gate reads specs, before any tensor exists; the worker reads maps. Where the two disagree the worker does not start.
Source: vllm-project/vllm PR #48414, gate per group since #51689, per wrapped layer since #51690; direct bytes never
shared as PR #55191 (open) proposes.
"""

from __future__ import annotations

from collections.abc import Sequence

from memspec.layout.canonical_layout.data import Grid, NotCertified, PageMap, Spec, StartRefused
from memspec.layout.canonical_layout.reference.mapping import HEADED_KINDS
from memspec.layout.canonical_layout.reference.sharding import head_share, latent_share


def portable_spec(spec: Spec, grid: Grid) -> bool:
    """Whether a layer of this spec has a portable map, as far as the spec can tell."""
    if grid.context > 1 or spec.kind not in (*HEADED_KINDS, "latent"):
        return False
    try:
        (latent_share if spec.kind == "latent" else head_share)(spec, grid, 0)
    except NotCertified:
        return False
    return True


def may_share(specs: Sequence[Spec], grid: Grid, canonical: bool) -> bool:
    """Whether engines of other tensor-parallel sizes may use the same files: canonical bytes, no other parallelism,
    every layer portable.
    """
    return canonical and grid.pp == 1 and all(portable_spec(spec, grid) for spec in specs)


def start_worker(shared: bool, layers: Sequence[tuple[str, Sequence[PageMap]]]) -> bool:
    """Whether all layers are portable, for the log. Raises StartRefused naming the layer; never falls back to direct
    bytes.

    ``layers`` holds, for each cache reference, its layer's name and the maps of all ranks (none: no map).
    """
    for name, maps in layers:
        if not maps:
            raise StartRefused(f"canonical bytes are asked for and layer {name} has no map")
    bound = [name for name, maps in layers if not all(page.portable for page in maps)]
    if shared and bound:
        raise StartRefused(
            f"the namespace is shared between topologies and {len(bound)} layers are not portable, first {bound[0]}"
        )
    return not bound
