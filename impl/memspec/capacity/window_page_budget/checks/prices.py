"""What a request costs. What is due comes from counting positions and pages one by one."""

from __future__ import annotations

from collections.abc import Iterator

from memspec.capacity.window_page_budget.checks.cases import REAL, Priced, priced
from memspec.capacity.window_page_budget.checks.facets import CHECKS, Gate, Pricer
from memspec.capacity.window_page_budget.checks.model import due_demand, pages_of, stored
from memspec.capacity.window_page_budget.data import Charge, Demand, Request, Worker
from memspec.conformance import Violation, expect, refused


def demanded(pricer: Pricer, case: Priced) -> Demand:
    return Demand(*pricer.demand(*case))


def lengths() -> Iterator[Request]:
    return (Request("lengths", p, o, r) for p in (0, 1, 7, 8) for o in (0, 1, 2, 9) for r in (False, True))


@CHECKS.clause(lengths, facet=Pricer)
def last_token(pricer: Pricer, request: Request) -> None:
    expect(demanded(pricer, (Worker(1, reserve=0), request)).full, stored(request))


def paged() -> Iterator[Priced]:
    return ((w, r) for w, r in priced() if w.page_size > 1 and w.window_pool)


@CHECKS.clause(paged, facet=Pricer)
def whole_pages(pricer: Pricer, case: Priced) -> None:
    expect(demanded(pricer, case).full, due_demand(*case).full)


@CHECKS.clause(lambda: ((w, r) for w, r in priced() if w.page_size > 1 and not w.window_pool), facet=Pricer)
def plain_pools_too(pricer: Pricer, case: Priced) -> None:
    expect(demanded(pricer, case).full, due_demand(*case).full)


@CHECKS.clause(
    lambda: (
        (Worker(page, 16, reserve, True), Request("r", n))
        for page in (4, 16)
        for reserve in (1, 3, 5, 17)
        for n in (4, 15, 16)
    ),
    facet=Pricer,
)
def reserve_after_rounding(pricer: Pricer, case: Priced) -> None:
    expect(demanded(pricer, case), due_demand(*case))


@CHECKS.clause(
    lambda: (
        (Worker(page, window, 7, radix), Request("r", 40))
        for page in (1, 16)
        for window in (None, 16)
        for radix in (False, True)
    ),
    facet=Pricer,
)
def window_reserve_with_radix(pricer: Pricer, case: Priced) -> None:
    expect(demanded(pricer, case).window, due_demand(*case).window)


def tailed() -> Iterator[Priced]:
    return ((w, r) for w, r in paged() if w.tail_allocation and (w.window or 0) > 0)


@CHECKS.clause(tailed, facet=Pricer)
def tail_pages(pricer: Pricer, case: Priced) -> None:
    expect(demanded(pricer, case).window, due_demand(*case).window)


@CHECKS.clause(
    lambda: (
        (Worker(page, window, 2, tail_allocation=tail), Request("r", n))
        for page in (2, 5)
        for window, tail in ((None, True), (0, True), (-1, True), (3, False), (None, False))
        for n in (0, 1, 5, 11, 20)
    ),
    facet=Pricer,
)
def full_length_without_tail(pricer: Pricer, case: Priced) -> None:
    expect(demanded(pricer, case).window, due_demand(*case).window)


@CHECKS.clause(
    lambda: (
        (Worker(1, window, 3, radix), Request("r", n, 1))
        for window in (None, 2, 8)
        for radix in (False, True)
        for n in range(12)
    ),
    facet=Pricer,
)
def page_of_one(pricer: Pricer, case: Priced) -> None:
    worker, request = case
    expect(demanded(pricer, case), (request.prompt + 3, request.prompt + (3 if worker.radix_cache else 0)))


@CHECKS.clause(priced, facet=Pricer)
def charge_is_demand(pricer: Pricer, case: Priced) -> None:
    worker, request = case
    pages = pages_of(worker, stored(request))
    expect(Charge(*pricer.charge(worker, stored(request))), pages)
    counted = demanded(pricer, case).full - worker.reserve
    expect(counted, pages.full * worker.page_size)


@CHECKS.clause(
    lambda: (
        (Worker(-8, 4), Request("r", 4), (-8, 1)),
        (Worker(0, 4), Request("r", 4), (0, 1)),
        (Worker(4, 4, -1), Request("r", 4), (-1, 0)),
        (Worker(4, 4), Request("r", -3), (-3, 0)),
        (Worker(4, 4), Request("r", 4, -2), (-2, 0)),
    ),
    facet=Pricer,
)
def well_formed(pricer: Pricer, case: tuple[Worker, Request, tuple[int, ...]]) -> None:
    worker, request, named = case
    refused(lambda: pricer.demand(worker, request), *named)
    if request.outputs == 0:
        try:
            refused(lambda: pricer.charge(worker, request.prompt), *named)
        except ZeroDivisionError as crash:
            raise Violation(f"{type(crash).__name__}: {crash}", "a refusal") from crash


Sized = tuple[Worker, Request, int, int]


def sizes(pool: int, surplus: int) -> Iterator[Sized]:
    """Requests whose demand in one pool is its size less ``surplus`` tokens; the other pool has room to spare."""
    for page, window in REAL:
        for worker in (
            Worker(page, window),
            Worker(page, window, radix_cache=True),
            Worker(page, window, tail_allocation=False),
        ):
            for request in (Request("long", 3 * page + window - 1), Request("grown", page, 2 * page + 1)):
                room = [10 * window + 10 * page + 10_000] * 2
                room[pool] = due_demand(worker, request)[pool] + surplus
                yield worker, request, room[0], room[1]


@CHECKS.clause(lambda: sizes(1, -1), facet=Gate)
def impossible_window_refused(gate: Gate, case: Sized) -> None:
    refused(lambda: gate.check_fits(*case), due_demand(*case[:2]).window, case[3])


@CHECKS.clause(lambda: sizes(0, -1), facet=Gate)
def impossible_full_refused(gate: Gate, case: Sized) -> None:
    refused(lambda: gate.check_fits(*case), due_demand(*case[:2]).full, case[2])


@CHECKS.clause(
    lambda: (*sizes(0, 0), *sizes(1, 0), (Worker(4, 4, window_pool=False), Request("r", 9), 600, 0)), facet=Gate
)
def possible_accepted(gate: Gate, case: Sized) -> None:
    try:
        gate.check_fits(*case)
    except ValueError as refusal:
        raise Violation(f"refusal {str(refusal)!r}", "a request that fits empty pools is accepted") from refusal
