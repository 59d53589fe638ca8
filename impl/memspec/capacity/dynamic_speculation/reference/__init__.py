"""The rule, module by module: table, settings, timing, drafter, blocks, graphs, loop, scheduling, simulator, released."""

from memspec.capacity.dynamic_speculation.reference.blocks import (
    added_blocks,
    lookahead,
    reserved_blocks,
    static_extra,
)
from memspec.capacity.dynamic_speculation.reference.drafter import draft_forwards, follow, rows_to_write
from memspec.capacity.dynamic_speculation.reference.graphs import (
    coverage,
    dispatch,
    padding,
    planned,
    request_counts,
    tiers,
    uncovered,
)
from memspec.capacity.dynamic_speculation.reference.loop import decode
from memspec.capacity.dynamic_speculation.reference.released import captured, fall_out, next_size, shared_sizes
from memspec.capacity.dynamic_speculation.reference.settings import rank_ks, resolve
from memspec.capacity.dynamic_speculation.reference.simulator import (
    compared,
    expected_tokens,
    percentile,
    simulate,
    tax,
    transitions,
)
from memspec.capacity.dynamic_speculation.reference.table import (
    checked_schedule,
    dense_table,
    held,
    k_for,
    scheduled_count,
)
from memspec.capacity.dynamic_speculation.reference.timing import k_trace, padded_tokens, received, verified_trace

__all__ = [
    "added_blocks",
    "captured",
    "checked_schedule",
    "compared",
    "coverage",
    "decode",
    "dense_table",
    "dispatch",
    "draft_forwards",
    "expected_tokens",
    "fall_out",
    "follow",
    "held",
    "k_for",
    "k_trace",
    "lookahead",
    "next_size",
    "padded_tokens",
    "padding",
    "percentile",
    "planned",
    "rank_ks",
    "received",
    "request_counts",
    "reserved_blocks",
    "resolve",
    "rows_to_write",
    "scheduled_count",
    "shared_sizes",
    "simulate",
    "static_extra",
    "tax",
    "tiers",
    "transitions",
    "uncovered",
    "verified_trace",
]
