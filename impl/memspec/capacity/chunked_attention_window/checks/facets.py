"""What an implementation offers to be checked: any of these facets, alone or together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

from memspec.capacity.chunked_attention_window.data import LayerGroup
from memspec.conformance import Checks, Violation, refused

CHECKS = Checks("chunked-attention-window")


class Windows(Protocol):
    """The demand, from sizes and from a group of layers; None stands for all chunks."""

    def window_in_chunks(self, attention_chunk: int, offload_chunk: int) -> int: ...
    def reported_window(self, group: LayerGroup) -> int | None: ...


class Needs(Protocol):
    """What is really read at one boundary."""

    def needed_chunks(self, boundary: int, attention_chunk: int, offload_chunk: int) -> Sequence[int]: ...


class Bounds(Protocol):
    """What is read over all boundaries, and whether the window is enough at each of them."""

    def worst_need(self, attention_chunk: int, offload_chunk: int) -> int: ...
    def covers_every_boundary(self, attention_chunk: int, offload_chunk: int) -> bool: ...
    def mean_need(self, attention_chunk: int, offload_chunk: int) -> Fraction: ...


class Demand(Protocol):
    """The demand at one boundary."""

    def demanded_chunks(self, boundary: int, group: LayerGroup) -> int | None: ...


class RunLookup(Protocol):
    """One windowed group's lookup: the end of the run, or None to ask again."""

    def find_run(self, answers: Sequence[str], window: int) -> int | None: ...


class Lookup(Protocol):
    """The lookup of all groups: tokens beyond the local prefix, or None to ask again."""

    def external_hit(self, prompt: int, local: int, groups: Sequence[LayerGroup], answers: Sequence[Sequence[str]],
                     cap: int | None = None) -> int | None: ...  # fmt: skip


class Transfers(Protocol):
    """Offload chunks to copy for a hit."""

    def chunks_to_load(self, local: int, boundary: int, attention_chunk: int, offload_chunk: int) -> Sequence[int]: ...


class Plans(Protocol):
    """Space for one request, in offload chunks."""

    def planned_chunks(self, max_length: int, window: int | None, offload_chunk: int) -> int: ...


class Admission(Protocol):
    """Space for one request, in device blocks."""

    def admission_blocks(self, attention_chunk: int, in_flight: int, max_length: int, block: int) -> int: ...


class Device(Protocol):
    """The device cache's own rule: (tokens, placeholder blocks)."""

    def skipped_tokens(self, tokens: int, attention_chunk: int) -> int: ...
    def device_hit(self, max_length: int, attention_chunk: int, block: int, cached: Sequence[bool],
                   alignment: int | None = None, draft_drop: bool = False,
                   context_ranks: int = 1) -> tuple[int, int]: ...  # fmt: skip


class Suffix(Protocol):
    """A lookup that begins at the local prefix."""

    def suffix_hit(self, prompt: int, local: int, attention_chunk: int, block: int, cached: Sequence[bool]) -> int: ...


class BothRules(Lookup, Device, Protocol):
    """The two rules side by side."""


def refused_by_name(call: Callable[[], object], *named: object) -> None:
    """As ``refused``; a bare assertion is a refusal that names nothing."""

    def told() -> object:
        try:
            return call()
        except AssertionError as bare:
            raise ValueError(f"assertion {str(bare)!r}") from bare

    refused(told, *named)


def accepted(call: Callable[[], object]) -> object:
    """What ``call`` returns. Raises Violation when it refuses."""
    try:
        return call()
    except (ValueError, AssertionError) as refusal:
        raise Violation(f"refusal {str(refusal)!r}", "an answer") from refusal
