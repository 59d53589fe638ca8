"""Which committed compressions read a row that is not the committed one: the hazard of too small a pad, and of too
many drafts.

Everything before the first step counts as written. Each verify step plans, compresses, writes, and rolls back to what
it committed; a ring row is known by the position and the step that wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence

from memspec.capacity.compress_ring_pad.data import Geometry, Request, StaleRead
from memspec.capacity.compress_ring_pad.reference.memory import commit
from memspec.capacity.compress_ring_pad.reference.plan import check_batch, written_positions
from memspec.capacity.compress_ring_pad.reference.sizes import window_of
from memspec.capacity.compress_ring_pad.reference.slots import ring_slot

Source = tuple[int, int]  # (position, step that wrote it)


def committed_ends(geometry: Geometry, prefix: int, after: int, end: int) -> range:
    """Last positions of the windows that a step of ``[prefix, end)`` commits when it keeps everything before
    ``after``.
    """
    return range(prefix + (-prefix - 1) % geometry.ratio, after, geometry.ratio)


def source_of(position: int, step: int) -> Source:
    """What tells one written row from another: a rejected draft and the token that replaced it share a position."""
    return position, step


def stale_reads(
    geometry: Geometry, pad: int, prefix: int, drafts: int, accepts: Sequence[int]
) -> tuple[StaleRead, ...]:
    """Committed compressions of a request that verifies ``drafts`` tokens in each step and commits ``accepts[i]`` of
    them in step ``i``.

    ``pad`` is the planner's; one as large as ``drafts`` writes everything. Raises what the planners and :func:`commit`
    raise.
    """
    pages = tuple(range((prefix + drafts * (len(accepts) + 1)) // geometry.page + 1))
    request = Request(0, prefix, drafts, pages)
    ring: dict[int, Source] = {}
    true: dict[int, Source] = {}
    for position in range(max(0, prefix - geometry.ring), prefix):
        ring[ring_slot(geometry, request, position)] = true[position] = source_of(position, -1)
    stale = []
    for number, accepted in enumerate(accepts):
        check_batch(geometry, (request,), drafts)
        after = commit(prefix, drafts, accepted)
        for last in committed_ends(geometry, prefix, after, prefix + drafts):
            first = max(0, last + 1 - window_of(geometry.ratio))
            wrong = [p for p in range(first, prefix) if ring.get(ring_slot(geometry, request, p)) != true[p]]
            if wrong:
                stale.append(StaleRead(last + 1, tuple(wrong)))
        for position in written_positions(geometry, pad, prefix, prefix + drafts):
            ring[ring_slot(geometry, request, position)] = source_of(position, number)
        true.update((position, source_of(position, number)) for position in range(prefix, after))
        prefix = after
        request = Request(0, prefix, drafts, pages)
    return tuple(stale)
