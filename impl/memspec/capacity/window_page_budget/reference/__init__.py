"""The rule, in five parts: what a request costs, what may be promised, who comes back, where pages come from, and a worker that runs."""

from __future__ import annotations

from memspec.capacity.window_page_budget.reference.budget import admission_budget, resume_budget, window_growth
from memspec.capacity.window_page_budget.reference.demand import (
    charge,
    check_fits,
    decode_radix_start,
    demand,
    fill,
    page_count,
    tail_mode,
    whole_pages,
    window_start,
    window_tail,
)
from memspec.capacity.window_page_budget.reference.later import replay_rereading, reread_budget, resume_rereading
from memspec.capacity.window_page_budget.reference.pools import (
    Pools,
    allocations,
    empty_pools,
    release,
    report,
    resize,
    take,
)
from memspec.capacity.window_page_budget.reference.queue import misfit, resume
from memspec.capacity.window_page_budget.reference.scheduler import replay, resume_and_allocate

__all__ = [
    "Pools",
    "admission_budget",
    "allocations",
    "charge",
    "check_fits",
    "decode_radix_start",
    "demand",
    "empty_pools",
    "fill",
    "misfit",
    "page_count",
    "release",
    "replay",
    "replay_rereading",
    "report",
    "reread_budget",
    "resize",
    "resume",
    "resume_and_allocate",
    "resume_budget",
    "resume_rereading",
    "tail_mode",
    "take",
    "whole_pages",
    "window_growth",
    "window_start",
    "window_tail",
]
