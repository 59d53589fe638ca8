"""Where a position's raw row lies: in its SWA page's ring for ratio 4, in its request's ring for ratio 128."""

from __future__ import annotations

from memspec.capacity.compress_ring_pad.data import Geometry, GeometryRefused, Request
from memspec.capacity.compress_ring_pad.reference.sizes import window_of

PLANNED_RATIOS = (4, 128)
SWA_PAGE = 256  # tokens


def anchored_by_page(geometry: Geometry) -> bool:
    """Whether each SWA page has a ring of its own, so that a request that shares the page shares its rows."""
    return geometry.ratio == 4 and not geometry.by_request


def check_geometry(geometry: Geometry) -> None:
    """Raise GeometryRefused unless both planners can address the ring."""
    ratio, ring, page = geometry.ratio, geometry.ring, geometry.page
    if ratio not in PLANNED_RATIOS:
        raise GeometryRefused(
            f"ratio {ratio} has no ring that is planned; {' and '.join(map(str, PLANNED_RATIOS))} have"
        )
    if ring % ratio:
        raise GeometryRefused(f"a ring of {ring} rows is not made of groups of {ratio}")
    if ring < window_of(ratio):
        raise GeometryRefused(f"a ring of {ring} rows does not hold a window of {window_of(ratio)}")
    if anchored_by_page(geometry):
        check_page(ring, page)


def check_page(ring: int, page: int) -> None:
    """Raise GeometryRefused unless a ring fits evenly into an SWA page of the one size that is supported."""
    if page != SWA_PAGE:
        raise GeometryRefused(f"an SWA page of {page} tokens; rings in pages need {SWA_PAGE}")
    if page % ring:
        raise GeometryRefused(f"an SWA page of {page} tokens is not made of rings of {ring} rows")


def swa_location(geometry: Geometry, request: Request, position: int) -> int:
    """Token index of a position in the SWA pool."""
    return request.pages[position // geometry.page] * geometry.page + position % geometry.page


def ring_slot(geometry: Geometry, request: Request, position: int) -> int:
    """The ring row of a position, counted from the first row of the layer."""
    if not anchored_by_page(geometry):
        return request.slot * geometry.ring + position % geometry.ring
    location = swa_location(geometry, request, position)
    return location // geometry.page * geometry.ring + location % geometry.ring
