"""From views to segments. What is due comes from walking every element, or is given with the case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from memspec.conformance import Violation, expect, refused
from memspec.layout.packed_block_zeroing.checks.cases import NARROW, SMALL_ROW, WIDE, columns, slabs
from memspec.layout.packed_block_zeroing.checks.facets import CHECKS, Planner
from memspec.layout.packed_block_zeroing.data import Interval, View


def single_views() -> Iterator[View]:
    return (view for slab in slabs() for view in slab.views)


@CHECKS.clause(single_views, facet=Planner)
def block_address(planner: Planner, view: View) -> None:
    parts, blocks = planner.segments((view,)), view.shape[view.block_dim] * view.kernel_block_size // view.block_size
    for block in {0, 1, blocks - 1} & set(range(blocks)):
        expect(sorted(p.address + block * p.block_stride for p in parts), [start for start, _ in columns(view, block)])


@CHECKS.clause(single_views, facet=Planner)
def page_span(planner: Planner, view: View) -> None:
    expect({p.span for p in planner.segments((view,))}, {end - start for start, end in columns(view, 0)})


@CHECKS.clause(lambda: [(View("halves", 0, (8, 3), (3, 1), 4, 0, 32, 16), {(0, 24, 12), (12, 24, 12)}),
                        (View("packed", 8, (8, 8), (24, 1), 1, 0, 64, 16), {(8 + 24 * v, 96, 8) for v in range(4)}),
                        (View("apart", 0, (2, 4, 8), (32, 8, 1), 1, 1, 32, 16), {(0, 16, 8), (8, 16, 8), (32, 16, 8), (40, 16, 8)})],
               facet=Planner)  # fmt: skip
def virtual_blocks(planner: Planner, case: tuple[View, set[Interval]]) -> None:
    expect({tuple(p) for p in planner.segments((case[0],))}, case[1])


@CHECKS.clause(lambda: [(View("kv", 0, (2, 5, 16), (80, 16, 1), 1, 1), {(0, 16, 16), (80, 16, 16)}),
                        (View("heads", 4, (3, 2, 4, 8), (64, 32, 8, 1), 1, 2), {(4 + 32 * n, 8, 8) for n in range(6)}),
                        (View("inside", 0, (2, 5, 8), (8, 16, 1), 1, 1), {(0, 16, 16)}),
                        (View("one block", 0, (2, 1, 16), (16, 16, 1), 1, 1), {(0, 16, 16), (16, 16, 16)})], facet=Planner)  # fmt: skip
def outer_dimensions(planner: Planner, case: tuple[View, set[Interval]]) -> None:
    expect({tuple(p) for p in planner.segments((case[0],))}, case[1])


@CHECKS.clause(
    lambda: [(slab.name, slab.views) for slab in slabs() if slab.name in ("two page sizes", "two ratios")],
    facet=Planner,
)
def mixed_page_sizes(planner: Planner, case: tuple[str, tuple[View, ...]]) -> None:
    try:
        spans = sorted({part.span for part in planner.segments(case[1])})
    except ValueError as refusal:
        raise Violation(f"refusal {str(refusal)!r}", "views whose pages differ in size are accepted") from refusal
    expect(spans, sorted({end - start for view in case[1] for start, end in columns(view, 0)}))


OVERLAID = (NARROW, WIDE, View("middle", 0, (4, 3), (4, 1), 4))


@CHECKS.clause(lambda: [OVERLAID[:2], OVERLAID], facet=Planner)
def widest_span(planner: Planner, views: Sequence[View]) -> None:
    expect([tuple(p) for p in planner.segments(views)], [(0, 16, 16)])


@CHECKS.clause(lambda: [*permutations(OVERLAID), *permutations(SMALL_ROW[:3])], facet=Planner)
def order_independent(planner: Planner, views: Sequence[View]) -> None:
    due = ({(0, 16, 16)} if views[0] in OVERLAID else {(12 * n, 48, 8) for n in range(3)})  # fmt: skip
    expect({tuple(p) for p in planner.segments(views)}, due)


LONGER = View("longer", 0, (4, 16), (32, 1), 1)


@CHECKS.clause(lambda: [(WIDE, LONGER, 16, 32), (LONGER, WIDE, 32, 16)], facet=Planner)
def unequal_strides(planner: Planner, case: tuple[View, View, int, int]) -> None:
    refused(lambda: planner.segments(case[:2]), *case[2:])


@CHECKS.clause(lambda: [(View("address", 2, (4, 8), (8, 1), 1), 2), (View("stride", 0, (4, 4), (6, 1), 1), 6),
                        (View("span", 0, (4, 6), (8, 1), 1), 6), (View("outer", 0, (2, 4, 4), (18, 4, 1), 1, 1), 18),
                        (View("kernel block", 0, (8, 4), (6, 1), 1, 0, 32, 16), 6)],
               facet=Planner)  # fmt: skip
def whole_words(planner: Planner, case: tuple[View, int]) -> None:
    refused(lambda: planner.segments(case[:1]), case[1], 4)


@CHECKS.clause(lambda: [(View("tokens", 0, (6, 8), (8, 1), 1, 0, 24, 16), 24, 16),
                        (View("count", 0, (7, 8), (8, 1), 1, 0, 32, 16), 7, 2)], facet=Planner)  # fmt: skip
def whole_kernel_blocks(planner: Planner, case: tuple[View, int, int]) -> None:
    refused(lambda: planner.segments(case[:1]), *case[1:])


@CHECKS.clause(lambda: [(View("long", 0, (4, 24), (16, 1), 1), 24, 16), (View("rows", 0, (4, 3, 8), (16, 16, 1), 1), 40, 16),
                        (View("far heads", 0, (4, 2, 16), (16, 64, 1), 1), 80, 16), (View("expanded", 0, (4, 16), (0, 1), 1), 16, 0),
                        (View("point", 0, (4,), (0,), 4), 4, 0),
                        (View("halves", 0, (8, 16), (8, 1), 1, 0, 32, 16), 16, 8)], facet=Planner)  # fmt: skip
def span_within_stride(planner: Planner, case: tuple[View, int, int]) -> None:
    refused(lambda: planner.segments(case[:1]), *case[1:])


@CHECKS.clause(
    lambda: [View("none", 0, shape, (16, 4, 1), 1) for shape in ((0, 4, 4), (4, 0, 4), (4, 4, 0))], facet=Planner
)
def empty_dimension(planner: Planner, view: View) -> None:
    expect(list(planner.segments((view,))), [])
    expect([tuple(p) for p in planner.segments((view, WIDE))], [(0, 16, 16)])


@CHECKS.clause(lambda: [(WIDE, View("more", 64, (5, 16), (16, 1), 1), 4, 5)], facet=Planner)
def counts_agree(planner: Planner, case: tuple[View, View, int, int]) -> None:
    refused(lambda: planner.segments(case[:2]), *case[2:])


@CHECKS.clause(lambda: [(replace(WIDE, block_dim=-1), -1), (replace(WIDE, strides=(16, 1, 1)), 2, 3), (replace(WIDE, block_dim=2), 2),
                        (replace(WIDE, element=-3), -3), (replace(WIDE, kernel_block_size=-2, block_size=4), -2),
                        (replace(WIDE, block_size=-4), -4), (replace(WIDE, kernel_block_size=0), 0), (replace(WIDE, address=-8), -8),
                        (replace(WIDE, shape=(-4, 16)), -4), (View("back", 0, (4, 2, 8), (16, -8, 1), 1), -8)], facet=Planner)  # fmt: skip
def well_formed(planner: Planner, case: tuple[View, int]) -> None:
    refused(lambda: planner.segments(case[:1]), *case[1:])
