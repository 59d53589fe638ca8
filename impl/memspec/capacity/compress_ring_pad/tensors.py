"""The device rule over whole batches, and a ring that really compresses: both as torch operations, on the device of
the caller's tensors.

Plans keep a static shape, as a captured graph needs it: nothing here waits for the device except :func:`compress` and
:func:`write`, which drop the sentinels of a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from memspec.capacity.compress_ring_pad.data import (
    SENTINEL,
    Arena,
    BatchRefused,
    Compression,
    Geometry,
    Plan,
    Request,
    Row,
    Write,
)
from memspec.capacity.compress_ring_pad.reference.memory import check_decode, decode_plan
from memspec.capacity.compress_ring_pad.reference.plan import check_batch, check_device_batch
from memspec.capacity.compress_ring_pad.reference.sizes import overlaps, window_of, write_pad
from memspec.capacity.compress_ring_pad.reference.slots import anchored_by_page

Tensor = Any  # torch.Tensor: torch is not imported where types are checked


@dataclass(frozen=True)
class Batch:
    """A batch on the device: ``slots``, ``prefixes`` and ``extends`` of shape (requests,), ``pages`` of shape
    (requests, pages), all int64.
    """

    slots: Tensor
    prefixes: Tensor
    extends: Tensor
    pages: Tensor


@dataclass(frozen=True)
class Ring:
    """One layer's rows: values and scores of shape (rows, width). ``index_copy`` into them is the write of the memory
    rule.
    """

    values: Tensor
    scores: Tensor


def batch_on(requests: Sequence[Request], device: str) -> Batch:
    """The requests as tensors; page lists of different length are filled up with 0."""
    longest = max((len(r.pages) for r in requests), default=0)
    pages = [[*r.pages, *[0] * (longest - len(r.pages))] for r in requests]

    def column(values: list[Any]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    slots, prefixes, extends = ([getattr(r, name) for r in requests] for name in ("slot", "prefix", "extend"))
    return Batch(column(slots), column(prefixes), column(extends), column(pages).reshape(len(requests), longest))


def slots_of(geometry: Geometry, batch: Batch, owner: Tensor, position: Tensor) -> Tensor:
    """Ring rows of positions, (tokens,); ``owner`` is the request of each."""
    if not anchored_by_page(geometry):
        return batch.slots[owner] * geometry.ring + position % geometry.ring
    return batch.pages[owner, position // geometry.page] * geometry.ring + position % geometry.page % geometry.ring


def packed(found: Tensor, entries: Tensor) -> Tensor:
    """The entries that were ``found``, in front; sentinels behind. Shape (tokens, words), as before."""
    order = torch.argsort((~found).to(torch.int8), stable=True)
    return torch.where(found[:, None], entries, SENTINEL)[order]


def plan(geometry: Geometry, batch: Batch, rows: int) -> tuple[Tensor, Tensor]:
    """Compressions, (rows, 5), and writes, (rows, 2), of a batch that has at least one request; every token answers
    for itself.
    """
    ratio, window, pad = geometry.ratio, window_of(geometry.ratio), write_pad(geometry.ratio, geometry.ring)
    token = torch.arange(rows, device=batch.extends.device)
    ends = torch.cumsum(batch.extends, 0)
    inside = token < ends[-1]
    owner = torch.searchsorted(ends, token, right=True).clamp(max=len(ends) - 1)
    index = torch.where(inside, token - (ends - batch.extends)[owner], 0)
    prefix = batch.prefixes[owner]
    position, end = prefix + index, prefix + batch.extends[owner]

    first = torch.minimum(end // ratio * ratio - (ratio if overlaps(ratio) else 0), end - pad)
    kept = position >= first
    if anchored_by_page(geometry):
        kept |= position % geometry.page >= geometry.page - ratio
    own = slots_of(geometry, batch, owner, position)
    writes = packed(inside & kept, torch.stack([token, own], 1))

    from_ring = window - (index + 1).clamp(max=window)
    before = slots_of(geometry, batch, owner, (position - ratio).clamp(min=0))
    needed = from_ring > 0
    words = [
        position + 1,
        token,
        from_ring,
        torch.where(needed, before // ratio, -1),
        torch.where(needed, own // ratio, owner),
    ]
    return packed(inside & ((position + 1) % ratio == 0), torch.stack(words, 1)), writes


def compress(
    geometry: Geometry, ring: Ring, compressions: Tensor, values: Tensor, scores: Tensor
) -> tuple[Tensor, Tensor]:
    """Batch tokens, (windows,), and compressed entries, (windows, width). ``values`` and ``scores`` are the batch's
    rows, (tokens, width).
    """
    ratio, window = geometry.ratio, window_of(geometry.ratio)
    length, token, from_ring, before, own = (
        word[:, None] for word in compressions[compressions[:, 1] != SENTINEL].unbind(1)
    )
    place = torch.arange(window, device=values.device)[None]  # (1, window)
    kept = place < from_ring  # (windows, window)
    group = torch.where(place < ratio, before, own) if overlaps(ratio) else own
    in_ring = torch.where(kept, group * ratio + place % ratio, 0)
    in_batch = torch.where(kept, 0, token - (window - 1) + place)
    value = torch.where(kept[..., None], ring.values[in_ring], values[in_batch])  # (windows, window, width)
    score = torch.where(kept[..., None], ring.scores[in_ring], scores[in_batch])
    missing = (place < window - length)[..., None]
    weight = torch.softmax(score.masked_fill(missing, torch.finfo(score.dtype).min), 1)
    return token[:, 0], (weight * value.masked_fill(missing, 0)).sum(1)


def write(ring: Ring, writes: Tensor, values: Tensor, scores: Tensor) -> None:
    """Put the batch's rows where the plan says, in place."""
    token, slot = writes[writes[:, 0] != SENTINEL].unbind(1)
    ring.values[slot] = values[token]
    ring.scores[slot] = scores[token]


class TensorRing:
    """The planner, the consumer and the step of the checks, with rows of one channel on ``device``."""

    def __init__(self, device: str) -> None:
        self.device = device

    def device_plan(
        self, geometry: Geometry, requests: Sequence[Request], rows: int, arrival: Sequence[int] | None = None
    ) -> Plan:
        """As the reference's; the order of arrival cannot be chosen here."""
        check_device_batch(geometry, requests, rows)
        if not requests:
            empty = torch.full((rows, 5), SENTINEL)
            return _plain(empty, empty[:, :2])
        return _plain(*plan(geometry, batch_on(requests, self.device), rows))

    def compress_rows(self, geometry: Geometry, arena: Arena, base: int, compressions: Sequence[Compression],
                      rows: Sequence[Row]) -> dict[int, float]:  # fmt: skip
        values, scores = self._columns(rows)
        words = torch.tensor(compressions, dtype=torch.int64, device=self.device).reshape(len(compressions), 5)
        token, entry = compress(geometry, self._ring(arena, base), words, values, scores)
        return dict(zip(token.tolist(), entry[:, 0].tolist(), strict=True))

    def write_rows(self, arena: Arena, base: int, writes: Sequence[Write], rows: Sequence[Row]) -> None:
        words = torch.tensor(writes, dtype=torch.int64, device=self.device).reshape(len(writes), 2)
        ring = self._ring(arena, base)
        write(ring, words, *self._columns(rows))
        arena[base:] = list(zip(ring.values[:, 0].tolist(), ring.scores[:, 0].tolist(), strict=True))

    def step(self, geometry: Geometry, arena: Arena, base: int, kind: str, requests: Sequence[Request],
             rows: Sequence[Row]) -> dict[int, float]:  # fmt: skip
        if kind == "decode":
            check_decode(geometry, requests, len(rows))
            made = decode_plan(geometry, requests)
            self.write_rows(arena, base, made.writes, rows)
            return self.compress_rows(geometry, arena, base, made.compressions, rows)
        if kind != "extend":
            raise BatchRefused(f"no step {kind!r}; extend and decode are known")
        check_batch(geometry, requests, len(rows))
        made = self.device_plan(geometry, requests, len(rows))
        entries = self.compress_rows(geometry, arena, base, made.compressions, rows)
        self.write_rows(arena, base, made.writes, rows)
        return entries

    def _columns(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        both = torch.tensor(rows, dtype=torch.float32, device=self.device).reshape(len(rows), 2)
        return both[:, :1], both[:, 1:]

    def _ring(self, arena: Arena, base: int) -> Ring:
        return Ring(*self._columns(arena[base:]))


def _plain(compressions: Any, writes: Any) -> Plan:
    return Plan([Compression(*words) for words in compressions.tolist()], [Write(*words) for words in writes.tolist()])


def subject(device: str) -> TensorRing:
    """What the checks are put through, with every row on ``device``."""
    return TensorRing(device)
