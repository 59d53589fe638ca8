"""Start-up refusals, the gate of a shared namespace, names and short files."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

from memspec.conformance import expect, refused
from memspec.layout.canonical_layout.checks.base import CHECKS, Names, Sharing
from memspec.layout.canonical_layout.checks.world import LATENT, World, layer_of, spec_of
from memspec.layout.canonical_layout.data import CopyRun, Grid, Group, Identity, Layer, PageMap, Spec

PORTABLE = (PageMap("packed", 8, 1, 0, (CopyRun(0, 0, 8),), True),)
BOUND = (PageMap("opaque", 8, 1, 0, (CopyRun(0, 0, 8),), False),)
HEADED = World("packed", "hnd", tp=2)
MAMBA = Spec("mamba", 2, 1, 1, 1, 1, 64)


@CHECKS.clause(
    lambda: [
        (layer_of(HEADED), Grid(2, pp=2)),
        (layer_of(replace(LATENT, tp=2)), Grid(2, pp=2)),
        (replace(layer_of(HEADED), spec=replace(spec_of(HEADED), kind="other")), Grid(2)),
    ],
    Sharing,
)
def missing_map(sharing: Sharing, case: tuple[Layer, Grid]) -> None:
    """Outside the tensor and context parallel grid, and for an unknown cache, there is no map, and the worker
    refuses.
    """
    layer, grid = case
    maps = sharing.map_layer(layer, grid)
    expect(tuple(maps), ())
    for shared in (False, True):
        start = partial(sharing.start_worker, shared, [("first", PORTABLE), ("model.layers.7.attn", maps)])
        refused(start, "model.layers.7.attn")


@CHECKS.clause(
    lambda: [
        (True, (BOUND,)),
        (True, (PORTABLE, BOUND)),
        (True, (PORTABLE, PORTABLE)),
        (True, (BOUND, PORTABLE)),
        (True, (PORTABLE + BOUND,)),
        (False, (PORTABLE, BOUND)),
        (False, (BOUND, PORTABLE)),
        (False, (PORTABLE + BOUND,)),
        (False, (PORTABLE,)),
    ],
    Sharing,
)
def portable_claim(sharing: Sharing, case: tuple[bool, tuple[tuple[PageMap, ...], ...]]) -> None:
    """A false claim is refused and names the layer; without the claim the same layers start, and are reported as not
    portable.
    """
    shared, maps = case
    layers = [(f"layer {i}", pages) for i, pages in enumerate(maps)]
    bound = [name for name, pages in layers if BOUND[0] in pages]
    if shared and bound:
        refused(lambda: sharing.start_worker(shared, layers), bound[0])
    else:
        expect(sharing.start_worker(shared, layers), not bound)


FULL, SLIDING, LATENTS = spec_of(HEADED), spec_of(replace(HEADED, kind="sliding")), spec_of(replace(LATENT, tp=2))


@CHECKS.clause(
    lambda: [
        ((FULL,), Grid(2), True, True),
        ((FULL, SLIDING), Grid(2), True, True),
        ((LATENTS,), Grid(2), True, True),
        ((LATENTS, replace(LATENTS, page_bytes=8)), Grid(2), True, True),
        ((replace(FULL, quantisation="per-tensor"),), Grid(2), True, True),
        ((spec_of(World(heads=2, tp=8)),), Grid(8), True, True),
        ((FULL,), Grid(2), False, False),
        ((FULL, MAMBA), Grid(2), True, False),
        ((FULL, replace(FULL, kind="other")), Grid(2), True, False),
        ((replace(FULL, quantisation="per-token-head"),), Grid(2), True, False),
        ((replace(LATENTS, page_bytes=7),), Grid(2), True, False),
        ((replace(FULL, heads=1, model_heads=6),), Grid(4), True, False),
        ((replace(FULL, heads=1, model_heads=3),), Grid(4), True, False),
        ((LATENTS, replace(LATENTS, kind="sliding-latent")), Grid(2), True, False),
        ((FULL, replace(SLIDING, tokens_per_state=4)), Grid(2), True, False),
        ((FULL, replace(FULL, heads=1)), Grid(2), True, False),
        ((spec_of(World(heads=2, tp=4)),), Grid(4, 2), True, False),
        ((LATENTS,), Grid(2, 1, 2), True, False),
        ((FULL,), Grid(2, pp=2), True, False),
    ],
    Sharing,
)
def shared_iff_portable(sharing: Sharing, case: tuple[tuple[Spec, ...], Grid, bool, bool]) -> None:
    specs, grid, canonical, share = case
    expect(sharing.may_share(specs, grid, canonical), share)


SMALL = Identity("test-model")
REAL = Identity("meta-llama/Llama-3.1-70B", 16, 1, "bfloat16", (Group(16, ("model.layers.0.attn",)),), tp=4)


@CHECKS.clause(
    lambda: [
        (("nhd", ("packed",)), "v1-nhd-packed"),
        (("hnd", ("split",)), "v1-hnd-split"),
        (("LBNHC", ("packed",)), "v1-nhd-packed"),
        (("LBHNC", ("packed", "packed")), "v1-hnd-packed"),
        (("BLHNC", ("split",)), "v1-blhnc-split"),
        (("hnd", ("latent",)), "v1-latent"),
        (("hnd", ("opaque",)), "v1-hnd-opaque"),
        (("nhd", ("packed", "latent")), "v1-nhd-latent+packed"),
        (("nhd", ("packed",), 2), "v2-nhd-packed"),
        (("nhd", ()), None),
    ],
    Names,
)
def format_in_namespace(names: Names, case: tuple[tuple[str, tuple[str, ...]], str | None]) -> None:
    """The id spells version, family and form, and every id has a directory of its own, apart from direct bytes'."""
    call, due = case
    if due is None:
        refused(lambda: names.format_id(*call), "0 forms")  # type: ignore[arg-type]
        return
    spelled = names.format_id(*call)  # type: ignore[arg-type]
    expect(spelled, due)
    others = [
        None,
        *(
            f
            for f in ("v1-nhd-packed", "v1-nhd-split", "v1-hnd-packed", "v1-hnd-split", "v1-latent", "v2-nhd-packed")
            if f != due
        ),
    ]
    taken = {names.file_name("", replace(REAL, format=other), 0, bytes(12)) for other in others}
    expect(
        (spelled, names.file_name("", replace(REAL, format=spelled), 0, bytes(12)) in taken, len(taken)),
        (due, False, len(others)),
    )


REAL_DIRECT = (
    '{"blocks_per_file":8,"dcp_size":1,"dtype":"bfloat16","inference_engine":"vllm","kv_cache_groups":'
    '[{"layer_names":["model.layers.0.attn"],"tokens_per_block":16}],"model_name":"meta-llama/Llama-3.1-70B",'
    '"parallel_agnostic":false,"pcp_size":2,"pp_size":1,"tokens_per_hash":16,"tp_size":4}'
)


@CHECKS.clause(lambda: [(SMALL, "de3bba26cf36"), (replace(REAL, blocks_per_file=8, pcp=2), REAL_DIRECT)], Names)
def direct_unchanged(names: Names, case: tuple[Identity, str]) -> None:
    """The digest of the defaults is public; that of a real model is of its fields, spelled out as JSON."""
    identity, due = case
    if due.startswith("{"):
        expect(names.namespace_fields(identity), json.loads(due))
        expect(names.fingerprint(identity, 16), sha256(due.encode()).hexdigest()[:16])
    else:
        expect(names.fingerprint(identity), due)


DIFFERENT: dict[str, Any] = {
    "model_name": "meta-llama/Llama-3.1-8B",
    "tokens_per_hash": 32,
    "blocks_per_file": 8,
    "dtype": "float8_e4m3fn",
    "groups": (Group(32, ("model.layers.0.attn",)),),
    "format": "v1-hnd-packed",
}


@CHECKS.clause(
    lambda: [(field, shared) for field in [*DIFFERENT, "layers", "number of groups"] for shared in (False, True)], Names
)
def every_field_separates(names: Names, case: tuple[str, bool]) -> None:
    """Engines that differ in one field alone, both for themselves or both in a shared namespace."""
    field, shared = case
    mine = replace(REAL, shared=shared, format="v1-nhd-packed" if shared else None)
    other = (Group(16, ("model.layers.1.attn",)),)
    changed: dict[str, dict[str, Any]] = {
        "layers": {"groups": other},
        "number of groups": {"groups": REAL.groups + other},
    }
    theirs = replace(mine, **changed.get(field, {field: DIFFERENT.get(field)}))
    for digits in (12, 16):
        expect(len({names.fingerprint(identity, digits) for identity in (mine, theirs)}), 2)
    expect(len({names.file_name("/kv", identity, 0, bytes(12)) for identity in (mine, theirs)}), 2)


CANONICAL = replace(REAL, format="v1-hnd-packed")


@CHECKS.clause(lambda: [CANONICAL, replace(CANONICAL, model_name="deepseek-ai/DeepSeek-V3", format="v1-latent")], Names)
def collapsed_name(names: Names, identity: Identity) -> None:
    """Shared: one name for every size and rank. Not shared: a name for each. Direct bytes are never shared."""
    grids: list[dict[str, Any]] = [{"tp": 1}, {"tp": 2}, {"tp": 8}]
    further: list[dict[str, Any]] = [{"tp": 2, "pp": 2}, {"tp": 2, "pcp": 2}, {"tp": 2, "dcp": 2}]
    collapsed = {
        names.file_name("/kv", replace(identity, shared=True, **grid), rank, bytes(12))
        for grid in grids
        for rank in range(grid["tp"])
    }
    expect(len(collapsed), 1)
    apart = {
        names.file_name("/kv", replace(identity, **grid), rank, bytes(12))
        for grid in (*grids, *further)
        for rank in (0, 1)
    }
    expect((len(apart), apart & collapsed), (12, set()))
    fields = names.namespace_fields(replace(identity, tp=8, shared=True))
    expect(
        [fields.get(f"{name}_size") for name in ("tp", "pp", "pcp", "dcp")] + ["parallel_agnostic" in fields],
        [1, 1, 1, 1, False],
    )
    refused(lambda: names.namespace_fields(replace(identity, format=None, shared=True)), identity.model_name, "direct")


@CHECKS.clause(
    lambda: [
        ("", SMALL, 3, "0001020304050607", 2, "/test-model_de3bba26cf36_r3/000/10_g2/0001020304050607.bin"),
        (
            "/kv",
            SMALL,
            0,
            "ffeeddccbbaa9988",
            16777216,
            "/kv/test-model_de3bba26cf36_r0/ffe/ed_g16777216/ffeeddccbbaa9988.bin",
        ),
        ("/kv", REAL, 0, "00", 0, "/kv/meta-llama_Llama-3.1-70B_"),
    ],
    Names,
)
def one_file_name(names: Names, case: tuple[str, Identity, int, str, int, str]) -> None:
    root, identity, rank, block, group, due = case
    spelled = names.file_name(root, identity, rank, bytes.fromhex(block) + group.to_bytes(4, "big"))
    expect(spelled[: len(due)], due)
    refused(lambda: names.file_name(root, identity, rank, group.to_bytes(4, "big")), 4)
    peers = names.fingerprint(identity, 16)
    expect((len(peers), peers[:12] in spelled), (16, True))


@CHECKS.clause(
    lambda: [
        ((131072, 65536, 131072), "load"),
        ((65536, 131072, 65536), "miss"),
        ((65536, 131072, None), "miss"),
        ((65536, 65536, 65536), "load"),
        ((65536, 65536, None), "load"),
        ((40960, 65536, 65536), "remove"),
        ((65536, 65536, 131072), "remove"),
        ((0, 65536, 65536), "remove"),
    ],
    Names,
)
def short_file(names: Names, case: tuple[tuple[int, int, int | None], str]) -> None:
    (held, wanted, recorded), due = case
    expect(names.short_read(held, wanted, recorded), due)
