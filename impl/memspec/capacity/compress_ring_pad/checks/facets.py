"""What an implementation offers to be checked: any of these facets, alone or together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from memspec.capacity.compress_ring_pad.data import Arena, Compression, Geometry, Plan, Request, Row, StaleRead, Write
from memspec.conformance import Checks

CHECKS = Checks("compress-ring-pad")


class Sizes(Protocol):
    """Rows of a ring, and how many tokens its planner always keeps."""

    def ring_size(self, ratio: int, drafts: int = 0, online: bool = False, online_speculation: bool = False) -> int: ...
    def write_pad(self, ratio: int, ring: int) -> int: ...


class Allocation(Protocol):
    """Ring rows of one layer."""

    def state_rows(self, geometry: Geometry, swa_tokens: int, max_running: int, extra: int = 0) -> int: ...


class Start(Protocol):
    """The check when a server starts; ``layers`` counts the layers of each ratio. Returns the most tokens of a verify
    step.
    """

    def check_start(
        self,
        layers: Mapping[int, int],
        flag: int,
        adaptive_steps: Sequence[int] = (),
        gamma: int | None = None,
        online: bool = False,
    ) -> int: ...


class Calculator(Protocol):
    """The most draft tokens that a model's rings serve, None where nothing limits them."""

    def max_draft_tokens(self, layers: Mapping[int, int], online: bool = False) -> int | None: ...


class Slots(Protocol):
    """The ring row of a position."""

    def ring_slot(self, geometry: Geometry, request: Request, position: int) -> int: ...


class GeometryGuard(Protocol):
    """Refuses a ring that cannot be planned."""

    def check_geometry(self, geometry: Geometry) -> None: ...


class SizeGuard(Protocol):
    """Refuses a batch whose ids could be taken for the sentinel."""

    def check_size(self, tokens: int, requests: int) -> None: ...


class HostPlanner(Protocol):
    """Exact plans; filled with sentinels to ``rows`` entries of each kind where that is given."""

    def host_plan(
        self, geometry: Geometry, requests: Sequence[Request], tokens: int, rows: int | None = None
    ) -> Plan: ...


class DevicePlanner(Protocol):
    """Plans of ``rows`` entries of each kind, in no order; ``arrival`` is the order in which threads get their places,
    if that can be chosen.
    """

    def device_plan(
        self, geometry: Geometry, requests: Sequence[Request], rows: int, arrival: Sequence[int] | None = None
    ) -> Plan: ...


class WriteRule(Protocol):
    """Which positions of ``[prefix, end)`` are written with a given pad; every release's pad can be asked for."""

    def written_positions(self, geometry: Geometry, pad: int, prefix: int, end: int) -> Iterable[int]: ...


class Consumer(Protocol):
    """What acts on a plan: the layer's first ring row is ``arena[base]``, ``rows`` are the batch's raw rows."""

    def compress_rows(
        self, geometry: Geometry, arena: Arena, base: int, compressions: Sequence[Compression], rows: Sequence[Row]
    ) -> Mapping[int, float]: ...
    def write_rows(self, arena: Arena, base: int, writes: Sequence[Write], rows: Sequence[Row]) -> None: ...


class Stepper(Protocol):
    """A whole step in place, ``kind`` "extend" or "decode"; gives every compressed entry of the step by its batch
    token.
    """

    def step(
        self, geometry: Geometry, arena: Arena, base: int, kind: str, requests: Sequence[Request], rows: Sequence[Row]
    ) -> Mapping[int, float]: ...


class Committer(Protocol):
    """The prefix after a verify step."""

    def commit(self, prefix: int, drafts: int, accepted: int) -> int: ...


class Audit(Protocol):
    """Committed compressions that read a row which is not the committed one, over several verify steps."""

    def stale_reads(
        self, geometry: Geometry, pad: int, prefix: int, drafts: int, accepts: Sequence[int]
    ) -> Sequence[StaleRead]: ...
