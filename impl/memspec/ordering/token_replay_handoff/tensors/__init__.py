"""The handoff on real bytes. Needs torch; the device is that of the weights.

:mod:`decoder` is a small model with paged attention, :mod:`handoff` runs it alone and handed over.
"""

from memspec.ordering.token_replay_handoff.tensors.decoder import HandoffError, Shape, Weights, cast, make_weights
from memspec.ordering.token_replay_handoff.tensors.handoff import (
    TOLERANCE_EPS,
    AloneRun,
    HandoffRun,
    row_error,
    run_alone,
    run_handoff,
)

__all__ = [
    "TOLERANCE_EPS",
    "AloneRun",
    "HandoffError",
    "HandoffRun",
    "Shape",
    "Weights",
    "cast",
    "make_weights",
    "row_error",
    "run_alone",
    "run_handoff",
]
