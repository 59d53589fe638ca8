"""What becomes of a request before its first bridge token: a plan that both sides follow, or the ordinary path."""

from __future__ import annotations

from dataclasses import fields

from memspec.ordering.token_replay_handoff.data import Negotiated, Plan, Request, Settings
from memspec.ordering.token_replay_handoff.reference.admission import bridge_budget, place_bridge

EPOCH = 1  # of the first handoff of a request


def handoff_plan(prefill: Settings, decode: Settings, request: Request) -> Negotiated:
    """Agree on a handoff of ``request``, or say why it takes the ordinary path.

    Raises AdmissionError for a prompt, a page or a log capacity of less than one token.
    """
    differing = [
        field.name for field in fields(Settings) if getattr(prefill, field.name) != getattr(decode, field.name)
    ]
    if differing:
        return Negotiated(None, f"settings differ: {', '.join(differing)}")
    if not prefill.enabled:
        return Negotiated(None, "disabled")
    if not (request.streaming and request.greedy):
        return Negotiated(None, "not a greedy stream")
    least, most = bridge_budget(request.max_new_tokens, prefill.log_capacity, 1)
    if most < 1:
        return Negotiated(None, f"{request.max_new_tokens} new tokens leave none to the decode side")
    if request.recurrent and not request.snapshot:
        return Negotiated(None, "no snapshot of the recurrent state")
    placement = place_bridge(
        request.prompt_tokens,
        prefill.page_size,
        request.free_pages,
        copy_on_write=prefill.copy_on_write,
        delay=prefill.delay,
    )
    if placement == "refuse":
        return Negotiated(None, "the last prompt page can neither be copied nor waited for")
    return Negotiated(
        Plan(
            EPOCH, request.prompt_tokens, prefill.page_size, request.max_new_tokens, least, most, placement,
            request.recurrent,
        )
    )  # fmt: skip
