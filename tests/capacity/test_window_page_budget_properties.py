"""The rule against its second formulation on drawn configurations, and admitted implies allocated on drawn lives of a worker."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memspec.capacity.window_page_budget import Budget, Charge, Demand, Load, PoolState, Request, Worker, reference
from memspec.capacity.window_page_budget.checks.cases import a_request, a_trace, a_worker
from memspec.capacity.window_page_budget.checks.model import due_budget, due_demand, due_plan, pages_of, stored
from memspec.capacity.window_page_budget.checks.watching import watch
from memspec.capacity.window_page_budget.checks.worlds import follows, kept
from memspec.capacity.window_page_budget.reference import empty_pools, release, resize, take

CONFIGURATIONS = 1500

workers = st.builds(
    Worker,
    page_size=st.integers(1, 300),
    window=st.none() | st.integers(-1, 3000),
    reserve=st.integers(0, 600),
    radix_cache=st.booleans(),
    decode_radix=st.booleans(),
    window_pool=st.booleans(),
    tail_allocation=st.booleans(),
)
requests = st.builds(Request, st.just("r"), st.integers(0, 3000), st.integers(0, 300), st.booleans())


def test_price_budget_and_queue_agree_with_the_second_formulation_on_random_configurations() -> None:
    random = Random(33794)
    for number in range(CONFIGURATIONS):
        worker = a_worker(random)
        queue = tuple(a_request(random, f"r{i}", 200) for i in range(random.randrange(6)))
        pools = 2 if worker.window_pool else 1
        for request in queue:
            assert reference.demand(worker, request)[:pools] == due_demand(worker, request)[:pools]
            assert reference.charge(worker, reference.fill(request)) == pages_of(worker, stored(request))
        state = PoolState(*(random.randrange(4000) for _ in range(5)))
        load = Load(*(random.randrange(6) for _ in range(4)))
        single = Demand(random.randrange(600), random.randrange(600))
        assert reference.resume_budget(worker, state, load) == due_budget(worker, state, load)
        seen, due = (
            reference.admission_budget(worker, state, load, queue, single),
            due_budget(worker, state, load, queue, single),
        )
        assert seen[:pools] == due[:pools]
        budget = Budget(random.randrange(-100, 2000), random.randrange(-100, 2000))
        only = tuple(r.name for r in queue if random.random() < 0.7) if number % 3 == 0 else None
        plan, planned = (
            reference.resume(worker, queue, budget, number % 5, only),
            due_plan(worker, queue, budget, number % 5, only),
        )
        assert (plan.resumed, plan.left, plan.stopped) == (planned.resumed, planned.left, planned.stopped)
        assert plan.budget[:pools] == planned.budget[:pools]


@given(workers, requests)
@settings(max_examples=150, deadline=None)
def test_a_demand_is_whole_pages_and_the_reserve_and_at_most_a_page_too_much(worker: Worker, request: Request) -> None:
    need, tokens = reference.demand(worker, request), reference.fill(request)
    assert (need.full - worker.reserve) % worker.page_size == 0
    assert 0 <= need.full - worker.reserve - tokens < worker.page_size
    tail = reference.window_tail(worker, tokens)
    windowed = reference.tail_mode(worker) and (worker.window or 0) > 0
    assert (
        min(tokens, worker.window or 0) <= tail < (worker.window or 0) + worker.page_size
        if windowed
        else tail == tokens
    )
    assert not windowed or (tokens - tail) % worker.page_size == 0


@given(workers, requests, st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_a_longer_request_never_costs_less(worker: Worker, request: Request, more: int) -> None:
    shorter = reference.charge(worker, reference.fill(request))
    longer = reference.charge(worker, reference.fill(request) + more)
    assert longer.full >= shorter.full
    assert longer.full - longer.window >= shorter.full - shorter.window


@given(st.integers(0, 5000), st.integers(1, 500), st.integers(1, 200))
@settings(max_examples=200, deadline=None)
def test_a_decode_radix_tail_is_never_shorter(tokens: int, window: int, page_size: int) -> None:
    start, plain = (
        reference.decode_radix_start(tokens, window, page_size),
        reference.window_start(tokens, window, page_size),
    )
    assert start <= plain
    assert start % page_size == 0
    assert plain - start <= page_size + max(page_size, window) - window


@given(
    workers,
    st.lists(requests, max_size=6),
    st.integers(0, 60),
    st.integers(0, 60),
    st.integers(0, 3),
)
@settings(max_examples=150, deadline=None)
def test_admitted_implies_allocated_whatever_the_sizes(
    worker: Worker, queue: list[Request], full_pages: int, window_pages: int, running: int
) -> None:
    named = tuple(Request(f"r{i}", r.prompt, r.outputs, r.rebootstrap) for i, r in enumerate(queue))
    pools = empty_pools(full_pages, window_pages, worker.page_size)
    for resume_with in (reference.resume_and_allocate, reference.resume_rereading):
        after, plan = resume_with(worker, pools, named, running, 99, None)
        assert [held.owner for held in after.held] == list(plan.resumed)
        assert plan.budget.full <= len(after.full_free) * worker.page_size
        assert not worker.window_pool or plan.budget.window <= len(after.window_free) * worker.page_size


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_admitted_implies_allocated_over_random_lives(seed: int) -> None:
    lives(Random(seed), 40)


@pytest.mark.slow
def test_admitted_implies_allocated_over_many_long_lives() -> None:
    random = Random(7)
    for _ in range(400):
        lives(random, 60)


def lives(random: Random, length: int) -> None:
    trace = a_trace(random, length)
    rows = watch(reference.replay, trace)
    kept(rows, trace)
    follows(rows)
    rows = watch(reference.replay_rereading, trace, rereading=True)
    kept(rows, trace)
    follows(rows)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_pools_keep_every_page_exactly_once(moves: list[tuple[int, int, int, bool]]) -> None:
    pools: Any = empty_pools(12, 9, 4)
    for owner, more, gone, cache in moves:
        name = f"o{owner}"
        held = next((h for h in pools.held if h.owner == name), None)
        before = pools
        if held is None:
            pools, lack = take(pools, name, Charge(more, min(more, gone)))
        elif more == 5:
            pools, lack = release(pools, name, cache), ""
        else:
            first = min(len(held.full) - len(held.window) + gone, len(held.full) + more)
            pools, lack = resize(pools, name, Charge(len(held.full) + more, len(held.full) + more - first))
        assert not lack or pools is before
        full = [*pools.full_free, *pools.full_cached, *(p for h in pools.held for p in h.full)]
        window = [*pools.window_free, *pools.window_cached, *(p for h in pools.held for p in h.window)]
        assert (sorted(full), sorted(window)) == (list(range(12)), list(range(9)))
