"""One decision per clause of the handoff, the operations of its vectors, and its state diagrams."""

# the order of the clauses follows the order of these imports
from memspec.ordering.token_replay_handoff.checks import coordinator  # isort: skip
from memspec.ordering.token_replay_handoff.checks import exploration  # isort: skip
from memspec.ordering.token_replay_handoff.checks import prefill  # isort: skip
from memspec.ordering.token_replay_handoff.checks import decode  # isort: skip
from memspec.ordering.token_replay_handoff.checks import planning  # isort: skip
from memspec.ordering.token_replay_handoff.checks import operations  # isort: skip
from memspec.ordering.token_replay_handoff.checks.base import (
    CHECKS,
    Coordinator,
    DecodeSide,
    Negotiation,
    PrefillSide,
    Sides,
)
from memspec.ordering.token_replay_handoff.checks.operations import state_diagrams
from memspec.ordering.token_replay_handoff.checks.planning import Admission

__all__ = [
    "CHECKS", "Admission", "Coordinator", "DecodeSide", "Negotiation", "PrefillSide", "Sides", "coordinator", "decode",
    "exploration", "operations", "planning", "prefill", "state_diagrams",
]  # fmt: skip
