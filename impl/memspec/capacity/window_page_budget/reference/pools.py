"""Two pools of pages under one allocator: what a request gets, it gets from both or from neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memspec.capacity.window_page_budget.data import Charge, PagesRefused, PoolState


@dataclass(frozen=True)
class Held:
    """The pages of one request, in token order; ``window`` holds its last ones only."""

    owner: str
    full: tuple[int, ...]
    window: tuple[int, ...]


@dataclass(frozen=True)
class Pools:
    """Page ids by state. ``*_cached`` pages belong to a prefix cache that nobody reads, oldest first."""

    page_size: int
    full_free: tuple[int, ...]
    window_free: tuple[int, ...]
    full_cached: tuple[int, ...] = ()
    window_cached: tuple[int, ...] = ()
    held: tuple[Held, ...] = ()


def empty_pools(full_pages: int, window_pages: int, page_size: int) -> Pools:
    """Pools in which every page is free."""
    return Pools(page_size, tuple(range(full_pages)), tuple(range(window_pages)))


def report(pools: Pools) -> PoolState:
    """What the pools tell admission, in tokens."""
    return PoolState(
        len(pools.full_free) * pools.page_size,
        len(pools.window_free) * pools.page_size,
        sum(len(h.window) for h in pools.held) * pools.page_size,
        len(pools.full_cached) * pools.page_size,
        len(pools.window_cached) * pools.page_size,
    )


def held_by(pools: Pools, owner: str) -> Held:
    """The pages of ``owner``. Raises PagesRefused for a stranger."""
    for held in pools.held:
        if held.owner == owner:
            return held
    raise PagesRefused(f"{owner} holds no pages; the owners are {', '.join(h.owner for h in pools.held) or 'none'}")


def lacking(pools: Pools, full: int, window: int) -> str:
    """The pool that has too few free pages, "full" or "window"; "" when both have enough."""
    if full > len(pools.full_free):
        return "full"
    return "window" if window > len(pools.window_free) else ""


def take(pools: Pools, owner: str, charge: Charge) -> tuple[Pools, str]:
    """Give ``owner`` its pages, or change nothing and name the pool that lacks them.

    Raises PagesRefused for a negative number of pages and for an owner that has pages already.
    """
    if min(charge) < 0:
        raise PagesRefused(f"{owner} asks for {min(charge)} pages; it must be at least 0")
    if any(held.owner == owner for held in pools.held):
        raise PagesRefused(f"{owner} holds pages already; it can only be resized")
    if lack := lacking(pools, charge.full, charge.window):
        return pools, lack
    held = Held(owner, pools.full_free[: charge.full], pools.window_free[: charge.window])
    left = replace(pools, full_free=pools.full_free[charge.full :], window_free=pools.window_free[charge.window :])
    return replace(left, held=(*pools.held, held)), ""


def resize(pools: Pools, owner: str, charge: Charge) -> tuple[Pools, str]:
    """Let ``owner`` grow to ``charge``: pages before the window come back first. Changes nothing and names the pool where pages lack.

    Raises PagesRefused for a stranger, and for a charge that is smaller or whose window begins earlier.
    """
    held = held_by(pools, owner)
    first, due = len(held.full) - len(held.window), charge.full - charge.window
    if charge.full < len(held.full) or due < first:
        raise PagesRefused(f"{owner} holds {len(held.full)} pages, {first} before its window; {charge} is no growth")
    back, kept = held.window[: due - first], held.window[due - first :]
    roomier = replace(pools, window_free=(*pools.window_free, *back))
    more_full, more_window = charge.full - len(held.full), charge.window - len(kept)
    if lack := lacking(roomier, more_full, more_window):
        return pools, lack
    grown = Held(owner, held.full + pools.full_free[:more_full], kept + roomier.window_free[:more_window])
    left = replace(roomier, full_free=pools.full_free[more_full:], window_free=roomier.window_free[more_window:])
    return replace(left, held=tuple(grown if h is held else h for h in pools.held)), ""


def release(pools: Pools, owner: str, cache: bool = False) -> Pools:
    """Take the pages of ``owner`` back: free, or with ``cache`` kept for a prefix cache. Raises PagesRefused for a stranger."""
    held = held_by(pools, owner)
    rest = tuple(h for h in pools.held if h is not held)
    if cache:
        return replace(
            pools, full_cached=pools.full_cached + held.full, window_cached=pools.window_cached + held.window, held=rest
        )
    return replace(pools, full_free=pools.full_free + held.full, window_free=pools.window_free + held.window, held=rest)


def evict(pools: Pools, full: int, window: int) -> Pools:
    """Free cached pages, oldest first, until ``full`` and ``window`` pages are free or the cache is empty."""
    drop_full, drop_window = max(0, full - len(pools.full_free)), max(0, window - len(pools.window_free))
    return replace(
        pools,
        full_free=pools.full_free + pools.full_cached[:drop_full],
        full_cached=pools.full_cached[drop_full:],
        window_free=pools.window_free + pools.window_cached[:drop_window],
        window_cached=pools.window_cached[drop_window:],
    )


def allocations(full_pages: int, window_pages: int, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Replay ``{"do": "take" | "resize", "owner", "full", "window"}`` (pages) and ``{"do": "release", "owner"}``.

    Each outcome has ``rejected`` (the pool that lacks pages, "" when granted), the pages ``free`` in both pools, and the page
    ids of each owner in ``held``. Raises PagesRefused for a stranger and for an unknown event.
    """
    pools, outcomes = empty_pools(full_pages, window_pages, 1), []
    for event in events:
        lack = ""
        if event["do"] == "release":
            pools = release(pools, event["owner"])
        elif event["do"] == "resize":
            pools, lack = resize(pools, event["owner"], Charge(event["full"], event["window"]))
        elif event["do"] == "take":
            pools, lack = take(pools, event["owner"], Charge(event["full"], event["window"]))
        else:
            raise PagesRefused(f"no event {event['do']!r}; take, resize and release are known")
        outcomes.append(
            {
                "rejected": lack,
                "free": [len(pools.full_free), len(pools.window_free)],
                "held": {h.owner: [list(h.full), list(h.window)] for h in pools.held},
            }
        )
    return outcomes
