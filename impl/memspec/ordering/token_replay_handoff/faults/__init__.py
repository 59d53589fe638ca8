"""Broken twins: what was really built or written down, guards removed, and the opposite errors."""

from memspec.ordering.token_replay_handoff.faults.opposite import OPPOSITE
from memspec.ordering.token_replay_handoff.faults.reported import REPORTED
from memspec.ordering.token_replay_handoff.faults.unguarded import UNGUARDED

FAULTS = (*REPORTED, *UNGUARDED, *OPPOSITE)

__all__ = ["FAULTS"]
