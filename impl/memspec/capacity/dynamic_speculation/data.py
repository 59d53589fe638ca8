"""What crosses the boundary: settings, graphs, drafter rows, decoding loops, simulated worlds, and the refusals.

Counts are requests or tokens, times are microseconds, sizes of a pool are blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Table = tuple[int, ...]  # Table[n]: drafts of a request after a step that scheduled n requests; [0] is unused and 0
Policy = Literal["every-step", "catch-up"]  # when the drafter's KV is brought up to date
Counting = Literal["scheduled", "sampling"]  # which requests of a step select K
Form = Literal["narrow", "wide"]  # drafts are handed over K wide, or k_max wide and filled up with -1
Role = Literal["decode", "chunk", "last-chunk"]  # a chunk that is not a prompt's last one samples nothing


class SpeculationRefused(ValueError):
    """What was asked for has no safe meaning."""


class ScheduleRefused(SpeculationRefused):
    """A schedule that gives no K to some batch, or two; names the entry and the limit."""


class CountRefused(SpeculationRefused):
    """A number of scheduled requests outside the table; names the number and the limit."""


class GraphRefused(SpeculationRefused):
    """A graph plan or a batch without meaning; names the value and the limit."""


class ReservationRefused(SpeculationRefused):
    """A reservation without meaning; names the value and the limit."""


class LoopRefused(SpeculationRefused):
    """A decoding loop without a prompt to go on from or a K to follow; names the value and the limit."""


class WorldRefused(SpeculationRefused):
    """A simulated world in which some request cannot finish; names the need and the limit."""


class Scheduled(NamedTuple):
    """One request in one step: its role and how many of its tokens are scheduled."""

    role: Role
    tokens: int


class Graph(NamedTuple):
    """A captured shape: ``batch`` requests of ``query`` tokens each."""

    batch: int
    query: int

    @property
    def tokens(self) -> int:
        return self.batch * self.query


@dataclass(frozen=True)
class Settings:
    """What a user configures. ``schedule`` holds ``(first batch, last batch, K)``; None means always ``k_max``.

    ``shared_count``: data-parallel ranks agree on one number of scheduled requests before they look K up.
    ``hold``: steps for which another K has to be asked for before it is taken; 1 takes it at once.
    """

    k_max: int
    max_batch: int
    schedule: tuple[tuple[int, int, int], ...] | None = None
    runner: Literal["V1", "V2"] = "V2"
    method: str = "mtp"
    data_parallel: int = 1
    shared_count: bool = False
    counting: Counting = "scheduled"
    hold: int = 1


class Resolved(NamedTuple):
    """What became of the settings. ``table`` is None for a static K; ``dropped`` says why a schedule is not used."""

    table: Table | None
    graphs: Literal["full", "pieces"]
    dropped: str


class DraftStep(NamedTuple):
    """What the drafter did in one step: KV rows ``[first, end)`` written for committed tokens, forwards, drafts, debt."""

    first: int
    end: int
    forwards: int
    proposed: int
    debt: int


@dataclass(frozen=True)
class Loop:
    """One greedy request. ``target[a][b]`` is the target's choice after tokens ``a, b``; ``drafter[a][b]`` the drafter's.

    ``ks`` is the K of each step, the last one repeated. The prompt has two tokens or more, ``count`` are due.
    """

    target: tuple[tuple[int, ...], ...]
    drafter: tuple[tuple[int, ...], ...]
    prompt: tuple[int, ...]
    count: int
    ks: tuple[int, ...]
    policy: Policy = "every-step"
    k_max: int = 4


class Decoded(NamedTuple):
    """``tokens`` that were emitted; for each step after the prompt the drafts ``verified`` and ``accepted``."""

    tokens: tuple[int, ...]
    verified: tuple[int, ...]
    accepted: tuple[int, ...]


@dataclass(frozen=True)
class Costs:
    """Time of a step in microseconds: a launch, then the longer of reading the weights and computing the tokens."""

    launch_full: int = 100
    launch_pieces: int = 900
    weights: int = 8_000
    token: int = 60
    draft_launch: int = 100
    draft_weights: int = 600
    draft_token: int = 4


class Arrival(NamedTuple):
    """A request: when it comes (microseconds), tokens of its prompt, tokens of its answer."""

    at: int
    prompt: int
    answer: int


@dataclass(frozen=True)
class World:
    """What is served. ``accepts``: draws in 0..99, read in order and round again; a draft is accepted when its draw is below
    ``acceptance``. ``budget`` is tokens a step, ``pool`` blocks of ``block`` tokens.
    """

    arrivals: tuple[Arrival, ...]
    k_max: int
    schedule: tuple[tuple[int, int, int], ...]
    max_batch: int = 8
    acceptance: int = 80
    accepts: tuple[int, ...] = (50,)
    budget: int = 64
    block: int = 16
    pool: int = 1_000
    costs: Costs = Costs()


@dataclass(frozen=True)
class Hypotheses:
    """The four readings of the report, each a switch: H1 ``sync``, H2 ``graphs``, H3 ``counting``, H4 ``lookahead``.

    ``graphs`` and ``counting`` act on a dynamic K only.
    """

    sync: Policy = "every-step"
    graphs: Literal["full", "pieces"] = "full"
    counting: Counting = "scheduled"
    lookahead: Literal["static", "needed"] = "static"


Mode = Literal["none", "static", "dynamic"]


class StepRow(NamedTuple):
    """One simulated step: what was scheduled, what it cost, what it left behind."""

    scheduled: int  # requests with tokens in the step
    prefills: int  # those of them that compute a prompt
    k: int  # drafts that it asks for
    width: int  # drafts of a request that it verifies
    verified: int  # drafts verified, all requests together
    tokens: int  # tokens of the target's forward, without padding
    padded: int  # tokens added to reach a captured shape
    graph: str  # full, pieces, or mixed (a step with a prefill)
    draft_forwards: int
    blocks: int  # held at the end of scheduling
    delivered: int
    microseconds: int


class Report(NamedTuple):
    """A run: its rows and the figures that are read off them."""

    rows: tuple[StepRow, ...]
    microseconds: int
    delivered: int
    draft_forwards: int
    zero_forwards: int  # drafter forwards after steps that ask for no draft
    verified: int
    padded: int
    switches: int
    peak_blocks: int
    preempted: int
    latencies: tuple[int, ...]  # one for each token after a request's first, microseconds, sorted
