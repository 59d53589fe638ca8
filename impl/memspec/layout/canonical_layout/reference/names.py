"""The format's identity, the namespace's fields and digest, file names, and what to do with a file that is too short.

Every fact that changes bytes is in the namespace, no other is. Source: vllm-project/vllm PR #48414, #51718, #56799;
issue #55904. The K/V form in the format id is stricter than released versions, which spell the family alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from memspec.layout.canonical_layout.data import Form, Identity, NameRefused

VERSION = 1
FAMILY_OF = {
    "nhd": "nhd",
    "hnd": "hnd",
    "lbnhc": "nhd",
    "lbhnc": "hnd",
}  # the old spelling stays, so that old files stay valid
ENGINE = "vllm"


def format_id(layout: str, forms: Iterable[Form], version: int = VERSION) -> str:
    """``v1-nhd-packed`` and the like; several forms are joined by "+". A model of latent rows alone has no head axis
    and names no family; an opaque page may hold any layout, so it does.
    """
    named = sorted(set(forms))
    if not named:
        raise NameRefused("a format of 0 forms; at least 1 is due")
    family = FAMILY_OF.get(layout.lower(), layout.lower())
    return "-".join([f"v{version}", *([family] if named != ["latent"] else []), "+".join(named)])


def namespace_fields(identity: Identity) -> dict[str, Any]:
    """The fields that are hashed. A key of a feature that is not in use is absent, never false: the names of direct
    bytes stay as they were.
    """
    if identity.shared and identity.format is None:
        raise NameRefused(
            f"model {identity.model_name} would share direct bytes between topologies; the format is None"
        )
    sizes = {name: 1 if identity.shared else getattr(identity, name) for name in ("tp", "pp", "pcp", "dcp")}
    return {
        "model_name": identity.model_name,
        "tokens_per_hash": identity.tokens_per_hash,
        "blocks_per_file": identity.blocks_per_file,
        **{f"{name}_size": size for name, size in sizes.items()},
        "dtype": identity.dtype,
        "kv_cache_groups": [
            {"tokens_per_block": g.tokens_per_block, "layer_names": list(g.layer_names)} for g in identity.groups
        ],
        "inference_engine": ENGINE,
        **({} if identity.shared else {"parallel_agnostic": False}),
        **({} if identity.format is None else {"canonical_format": identity.format}),
    }


def fingerprint(identity: Identity, digits: int = 12) -> str:
    """The first ``digits`` hex digits (12 for a directory, 16 between peers) of the SHA-256 of the fields as compact
    JSON with sorted keys.
    """
    text = json.dumps(namespace_fields(identity), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def file_name(root: str, identity: Identity, rank: int, key: bytes) -> str:
    """The one function that spells a file's name, for exists, put, get and remove alike.

    ``key`` is the block hash followed by the group as 4 bytes, big-endian. A shared namespace has one rank, 0.
    """
    if len(key) < 5:
        raise NameRefused(f"a key of {len(key)} bytes; a block hash and 4 bytes of group are due")
    block, group = key[:-4].hex(), int.from_bytes(key[-4:], "big")
    directory = (
        f"{root}/{identity.model_name.replace('/', '_')}_{fingerprint(identity)}_r{0 if identity.shared else rank}"
    )
    return f"{directory}/{block[:3]}/{block[3:5]}_g{group}/{block}.bin"


def short_read(held: int, wanted: int, recorded: int | None) -> str:
    """What to do with a file of ``held`` bytes of which a reader wants ``wanted``: "load", "miss" (it stays) or
    "remove".

    Only a file that is shorter than the length ``recorded`` when it was written is broken. Released versions delete
    what is shorter than *their* row.
    """
    if recorded is not None and held < recorded:
        return "remove"
    return "load" if held >= wanted else "miss"
