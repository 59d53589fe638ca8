"""Token replay as code: the log, the coordinator, the two sides, the plan before the first bridge token, admission."""

from memspec.ordering.token_replay_handoff.reference.admission import (
    Admission,
    AdmissionError,
    CatchUp,
    PageTail,
    ReplayPlan,
    admit,
    backlog_by_round,
    batched_replay_plan,
    bridge_budget,
    estimate_catch_up,
    kv_tail_bytes,
    log_bytes,
    page_tail,
    place_bridge,
)
from memspec.ordering.token_replay_handoff.reference.coordinator import Handoff, step
from memspec.ordering.token_replay_handoff.reference.decode import Decode, decode_initial, decode_step
from memspec.ordering.token_replay_handoff.reference.log import extended
from memspec.ordering.token_replay_handoff.reference.observe import replay
from memspec.ordering.token_replay_handoff.reference.plan import handoff_plan
from memspec.ordering.token_replay_handoff.reference.prefill import Prefill, prefill_initial, prefill_step
from memspec.ordering.token_replay_handoff.reference.text import BoundaryError, Prime, detokenizer_prime

__all__ = [
    "Admission", "AdmissionError", "BoundaryError", "CatchUp", "Decode", "Handoff", "PageTail", "Prefill", "Prime", "ReplayPlan", "admit",
    "backlog_by_round", "batched_replay_plan", "bridge_budget", "decode_initial", "decode_step", "detokenizer_prime", "estimate_catch_up",
    "extended", "handoff_plan", "kv_tail_bytes", "log_bytes", "page_tail", "place_bridge", "prefill_initial",
    "prefill_step", "replay", "step",
]  # fmt: skip
