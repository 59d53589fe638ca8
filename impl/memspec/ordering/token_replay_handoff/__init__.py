"""Token replay: a prefill worker goes on decoding while its prompt KV is copied, and a decode worker replays the tokens.

The prompt's pages stay as the copy reads them. Every token made meanwhile goes into a log that only grows. The decode
side rebuilds the KV of the log, the prefill side seals it, and one commit moves the output from one side to the other:
at any moment at most one side may emit, and no token is lost or repeated, whatever the network does. The prefill side keeps
its KV until it knows that the commit was accepted, and goes on by itself once it knows that it never will be.

Lineage: sgl-project/sglang issue #32143 (RFC, closed as inactive) and PR #32177 (prototype, not merged). Deliberate
differences: epochs, acknowledgements and the commit are really on the wire; an identical range may be sent again after
the seal; after a failure the request goes on at the prefill side, once the decode side has confirmed or is fenced.
"""

from memspec.ordering.token_replay_handoff.reference import (
    Admission,
    AdmissionError,
    BoundaryError,
    CatchUp,
    Decode,
    Handoff,
    PageTail,
    Prefill,
    Prime,
    ReplayPlan,
    admit,
    backlog_by_round,
    batched_replay_plan,
    bridge_budget,
    decode_initial,
    decode_step,
    detokenizer_prime,
    estimate_catch_up,
    handoff_plan,
    page_tail,
    place_bridge,
    prefill_initial,
    prefill_step,
    replay,
    step,
)

__all__ = [
    "Admission", "AdmissionError", "BoundaryError", "CatchUp", "Decode", "Handoff", "PageTail", "Prefill", "Prime", "ReplayPlan", "admit",
    "backlog_by_round", "batched_replay_plan", "bridge_budget", "decode_initial", "decode_step", "detokenizer_prime", "estimate_catch_up",
    "handoff_plan", "page_tail", "place_bridge", "prefill_initial", "prefill_step", "replay", "step",
]  # fmt: skip
