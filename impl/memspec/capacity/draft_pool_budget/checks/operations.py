"""How a vector's plain input reaches an implementation, and how the answer becomes plain data again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memspec.capacity.draft_pool_budget.checks.facets import CHECKS, DraftSizer, Pricer, Room, Sizer, Teller
from memspec.capacity.draft_pool_budget.data import (
    Cell,
    Draft,
    Geometry,
    Heads,
    Latent,
    Memory,
    Parallel,
    Pools,
    Serving,
    Window,
)

Input = Mapping[str, Any]


def geometry_of(given: Input | None) -> Geometry | None:
    """A geometry with ``width`` is a latent, any other keeps heads."""
    if given is None:
        return None
    return Latent(**given) if "width" in given else Heads(**given)


def serving_of(given: Input) -> Serving:
    parts = dict(given)
    target = geometry_of(parts.pop("target"))
    if target is None:
        raise ValueError("there is no target")
    draft, window = parts.pop("draft", None), parts.pop("window", None)
    return Serving(
        target,
        parallel=Parallel(**parts.pop("parallel", {})),
        draft=draft and Draft(**{**draft, "geometry": geometry_of(draft.get("geometry"))}),
        window=window and Window(**{**window, "geometry": geometry_of(window["geometry"])}),
        other_stages=tuple(parts.pop("other_stages", ())),
        **parts,
    )


@CHECKS.operation(facet=Pricer)
def cell(pricer: Pricer, given: Input) -> Any:
    """Bytes a token: the target in full and window pool, the draft by either price, and the sum of all."""
    price = Cell(*pricer.cell(serving_of(given)))
    return {"target": [price.target_full, price.target_window], "own": price.own,
            "by_layers": [price.layers_full, price.layers_window], "total": sum(price)}  # fmt: skip


@CHECKS.operation(facet=Sizer)
def plan(sizer: Sizer, given: Input) -> Any:
    found = sizer.plan(serving_of(given["serving"]), given["budget"])
    return {"tokens": found.tokens, "window_tokens": found.window_tokens, "target_bytes": found.target_bytes,
            "draft_bytes": found.draft_bytes}  # fmt: skip


@CHECKS.operation(facet=Room)
def available(room: Room, given: Input) -> Any:
    return room.available(Memory(**given))


@CHECKS.operation(facet=DraftSizer)
def draft_pool(sizer: DraftSizer, given: Input) -> Any:
    pool = sizer.draft_pool(Pools(**given["pools"]), given["page_size"], given["group"])
    return {"pools": list(pool.pools), "page_size": pool.page_size, "backing_rows": pool.backing_rows}


@CHECKS.operation(facet=Teller)
def explain(teller: Teller, given: Input) -> Any:
    """Whether each of ``numbers`` is in the text, with or without a comma after the thousands."""
    text = "\n".join(teller.explain(serving_of(given["serving"]), given["budget"]))
    told = re.findall(r"\d+", text.replace(",", ""))
    return [str(number) in told for number in given["numbers"]]
