"""Dynamic speculative decoding: how many drafts a step asks for, when that acts, and what has to follow it.

A schedule of batch ranges becomes a dense table; the number of requests that a step schedules selects K. K is published with the
step, drafts are proposed at its end and verified in the next step. With K at 0 nothing is drafted, and yet the drafter's KV is
current before it drafts again. Blocks, graphs and ranks follow the same table. Too many drafts waste a step; a drafter that was
left behind proposes from stale rows; a shape that nobody captured runs eagerly; output tokens depend on none of it.

Lineage: vllm-project/vllm PRs #32374, #45953, #50488, #51575 and #57053, as in 0.33.0. Deliberate differences: a batch looks for
graphs of its own query length, what no graph covers is listed, no graph is captured beyond its tier, a count outside the table
is refused by name, and places for drafts can follow K.
"""

from memspec.capacity.dynamic_speculation.data import (
    Arrival,
    Costs,
    CountRefused,
    Graph,
    GraphRefused,
    Hypotheses,
    Loop,
    LoopRefused,
    ReservationRefused,
    Scheduled,
    ScheduleRefused,
    Settings,
    SpeculationRefused,
    World,
    WorldRefused,
)
from memspec.capacity.dynamic_speculation.reference import (
    compared,
    decode,
    dense_table,
    dispatch,
    expected_tokens,
    fall_out,
    follow,
    k_for,
    k_trace,
    lookahead,
    percentile,
    planned,
    rank_ks,
    reserved_blocks,
    resolve,
    simulate,
    tax,
    tiers,
    uncovered,
    verified_trace,
)

__all__ = [
    "Arrival",
    "Costs",
    "CountRefused",
    "Graph",
    "GraphRefused",
    "Hypotheses",
    "Loop",
    "LoopRefused",
    "ReservationRefused",
    "ScheduleRefused",
    "Scheduled",
    "Settings",
    "SpeculationRefused",
    "World",
    "WorldRefused",
    "compared",
    "decode",
    "dense_table",
    "dispatch",
    "expected_tokens",
    "fall_out",
    "follow",
    "k_for",
    "k_trace",
    "lookahead",
    "percentile",
    "planned",
    "rank_ks",
    "reserved_blocks",
    "resolve",
    "simulate",
    "tax",
    "tiers",
    "uncovered",
    "verified_trace",
]
