"""How a vector's plain input reaches a subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memspec.layout.canonical_layout.checks.base import CHECKS, Mapper, Names, Sharing, Transfers
from memspec.layout.canonical_layout.checks.world import LATENT, World, layer_of
from memspec.layout.canonical_layout.data import CopyRun, Grid, Group, Identity, PageMap

Input = Mapping[str, Any]


def layer_and_grid(given: Input) -> tuple[Any, Grid]:
    """A layer of ``form``/``family`` with the live view that such a cache has; ``view: none`` takes the tensors
    away.
    """
    sizes = {
        name: given[name]
        for name in ("heads", "tp", "dcp", "pcp", "interleave", "block", "head_size", "element_bytes")
        if name in given
    }
    base = LATENT if given["form"] == "latent" else World(given["form"], given.get("family", "nhd"))
    world = replace(base, **sizes)
    layer = layer_of(world)
    spec = replace(layer.spec, **given.get("spec", {}))
    return replace(layer, spec=spec, views=() if given.get("view") == "none" else layer.views), world.grid


def plain(page: PageMap) -> dict[str, Any]:
    """A map as plain data, its runs unrolled into fragments ``[local, canonical, bytes]``."""
    return {
        "form": page.form,
        "canonical_bytes": page.canonical_bytes,
        "writers": page.writers,
        "writer_index": page.writer_index,
        "portable": page.portable,
        "fragments": sorted(
            [run.local + i * run.local_stride, run.canonical + i * run.canonical_stride, run.size]
            for run in page.runs
            for i in range(run.count)
        ),
    }


@CHECKS.operation(Mapper)
def page_map(subject: Mapper, given: Input) -> Any:
    """The map of one ``rank`` (or "no map")."""
    maps = subject.map_layer(*layer_and_grid(given))
    return plain(maps[given["rank"]]) if maps else "no map"


@CHECKS.operation(Mapper)
def start_tiling(subject: Mapper, given: Input) -> Any:
    """Put maps given as fragments through the check at start."""
    maps = [
        PageMap(
            "packed",
            m["canonical_bytes"],
            m.get("writers", 1),
            m.get("writer_index", 0),
            tuple(CopyRun(*f) for f in m["fragments"]),
            True,
        )
        for m in given["maps"]
    ]
    subject.check_layer(maps, given["page_bytes"])
    return "tiles"


@CHECKS.operation(Transfers)
def store_pages(subject: Transfers, given: Input) -> Any:
    """Ids of the pages of a transfer."""
    return list(subject.page_ids(given["chunks"], given["blocks_per_chunk"], given["count"], given.get("skip", 0)))


@CHECKS.operation(Transfers)
def row(subject: Transfers, given: Input) -> Any:
    """Row length, cell widths and rows of a region whose tensors hold layers as given."""
    tensors = [
        [subject.map_layer(*layer_and_grid({**layer, "tp": given["tp"]})) for layer in layers]
        for layers in given["tensors"]
    ]
    region = subject.lay_out(tensors, given.get("blocks_per_chunk", 1))
    return {
        "row_bytes": region.row_bytes,
        "cells": [c.page_bytes * c.blocks_per_chunk for c in region.cells],
        "rows": subject.rows(given.get("capacity_bytes", 0), region),
    }


@CHECKS.operation(Sharing)
def worker_start(subject: Sharing, given: Input) -> Any:
    """Start a worker with the maps of the given layers; says whether all are portable."""
    layers = [(layer["name"], subject.map_layer(*layer_and_grid(layer))) for layer in given["layers"]]
    return subject.start_worker(given["shared"], layers)


def identity_of(given: Input) -> Identity:
    groups = tuple(Group(g["tokens_per_block"], tuple(g["layer_names"])) for g in given.get("groups", []))
    return Identity(**{**given, "groups": groups})


@CHECKS.operation(Names)
def name(subject: Names, given: Input) -> Any:
    """A file's name under the empty root, without the leading slash."""
    key = bytes.fromhex(given["block"]) + given["group"].to_bytes(4, "big")
    return subject.file_name("", identity_of(given["identity"]), given.get("rank", 0), key).lstrip("/")


@CHECKS.operation(Names)
def format_name(subject: Names, given: Input) -> Any:
    """The format id of a layout and its forms."""
    return subject.format_id(given["layout"], given["forms"])


@CHECKS.operation(Names)
def after_short_read(subject: Names, given: Input) -> Any:
    """What becomes of a file."""
    return subject.short_read(given["held"], given["wanted"], given["recorded"])
