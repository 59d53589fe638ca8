"""What crosses the boundary of the finding: settings of a side, a request, the plan that both sides follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Placement = Literal["aligned", "copy-on-write", "delay", "refuse"]


class PlanError(ValueError):
    """A plan has no meaning; names the value and the limit."""


@dataclass(frozen=True)
class Settings:
    """What one side is configured with. Both sides must have the same, field by field."""

    enabled: bool = True
    log_capacity: int = 15  # tokens
    replay_mode: Literal["extend", "decode"] = "extend"
    model: str = "model-a"
    tensor_parallel: int = 1
    kv_layout: str = "nhd"
    page_size: int = 16  # tokens
    copy_on_write: bool = True
    delay: bool = True


@dataclass(frozen=True)
class Request:
    prompt_tokens: int
    max_new_tokens: int
    streaming: bool = True
    greedy: bool = True
    recurrent: bool = False  # the model keeps state that is updated in place
    snapshot: bool = False  # a copy of that state can be kept while the transfer reads it
    free_pages: int = 1


@dataclass(frozen=True)
class Plan:
    """What both sides agreed on before the first bridge token of one handoff."""

    epoch: int = 9
    prompt_tokens: int = 32
    page_size: int = 16  # tokens
    max_new_tokens: int = 4
    bridge_min: int = 1
    bridge_max: int = 3
    placement: Placement = "aligned"
    recurrent: bool = False
    end_token: int = 0  # the end of the sequence


@dataclass(frozen=True)
class Negotiated:
    """Whether a request is handed over. ``reason`` is "" with a plan, else why it takes the ordinary path."""

    plan: Plan | None
    reason: str = ""
