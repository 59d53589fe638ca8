"""How a vector's plain input reaches an implementation."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from memspec.capacity.chunked_attention_window.checks.facets import (
    CHECKS,
    Admission,
    Bounds,
    Demand,
    Device,
    Lookup,
    Needs,
    Plans,
    RunLookup,
    Suffix,
    Transfers,
    Windows,
)
from memspec.capacity.chunked_attention_window.data import LayerGroup

Input = Mapping[str, Any]


@CHECKS.operation(facet=Windows)
def window_in_chunks(rule: Windows, given: Input) -> Any:
    return rule.window_in_chunks(given["attention_chunk"], given["offload_chunk"])


@CHECKS.operation(facet=Windows)
def reported_window(rule: Windows, given: Input) -> Any:
    return rule.reported_window(LayerGroup(**given))


@CHECKS.operation(facet=Needs)
def needed_chunks(rule: Needs, given: Input) -> Any:
    """First and last offload chunk that is read, and how many; null and 0 at a chunk start."""
    read = list(rule.needed_chunks(given["boundary"], given["attention_chunk"], given["offload_chunk"]))
    return {"first": read[0] if read else None, "last": read[-1] if read else None, "count": len(read)}


@CHECKS.operation(facet=Bounds)
def need_and_window(rule: Bounds, given: Input) -> Any:
    """Over all boundaries: the most and the mean that is read, and whether the window is always enough."""
    sizes = given["attention_chunk"], given["offload_chunk"]
    mean: Fraction = rule.mean_need(*sizes)
    return {"most": rule.worst_need(*sizes), "mean": str(mean), "window_is_enough": rule.covers_every_boundary(*sizes)}


@CHECKS.operation(facet=Demand)
def demanded_chunks(rule: Demand, given: Input) -> Any:
    return rule.demanded_chunks(given["boundary"], LayerGroup(**given["group"]))


@CHECKS.operation(facet=RunLookup)
def find_run(lookup: RunLookup, given: Input) -> Any:
    """Answers as a string of H (hit), M (miss), P (pending), U (uncertain); "ask again" for an open answer."""
    found = lookup.find_run(given["answers"], given["window"])
    return "ask again" if found is None else found


@CHECKS.operation(facet=Lookup)
def external_hit(lookup: Lookup, given: Input) -> Any:
    groups = [LayerGroup(**group) for group in given["groups"]]
    hit = lookup.external_hit(given["prompt"], given["local"], groups, given["answers"], given.get("cap"))
    return "ask again" if hit is None else hit


@CHECKS.operation(facet=Lookup)
def hit_is_allowed(lookup: Lookup, given: Input) -> Any:
    """Whether the hit is one of ``allowed``: a lookup may ask for whole windows or for exactly what is read."""
    groups = [LayerGroup(**group) for group in given["groups"]]
    return (
        lookup.external_hit(given["prompt"], given["local"], groups, given["answers"], given.get("cap"))
        in given["allowed"]
    )


@CHECKS.operation(facet=Device)
def device_hit(rule: Device, given: Input) -> Any:
    cached = [letter == "H" for letter in given["cached"]]
    rest = {name: given[name] for name in ("alignment", "draft_drop", "context_ranks") if name in given}
    return list(rule.device_hit(given["max_length"], given["attention_chunk"], given["block"], cached, **rest))


@CHECKS.operation(facet=Suffix)
def suffix_hit(rule: Suffix, given: Input) -> Any:
    cached = [letter == "H" for letter in given["cached"]]
    return rule.suffix_hit(given["prompt"], given["local"], given["attention_chunk"], given["block"], cached)


@CHECKS.operation(facet=Transfers)
def chunks_to_load(rule: Transfers, given: Input) -> Any:
    sizes = given["attention_chunk"], given["offload_chunk"]
    return list(rule.chunks_to_load(given["local"], given["boundary"], *sizes))


@CHECKS.operation(facet=Plans)
def planned_chunks(rule: Plans, given: Input) -> Any:
    return rule.planned_chunks(given["max_length"], given["window"], given["offload_chunk"])


@CHECKS.operation(facet=Admission)
def admission_blocks(rule: Admission, given: Input) -> Any:
    return rule.admission_blocks(given["attention_chunk"], given["in_flight"], given["max_length"], given["block"])
