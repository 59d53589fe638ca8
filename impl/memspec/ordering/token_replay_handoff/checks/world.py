"""The world in which both sides are explored: a network, the client's stream, the transfer, and the prefill side's KV memory.

The transfer, the stream and the memory are ours, not the subject's: they see what it does and say what is wrong. The
sequence is fixed: the token of position ``i`` is ``10 + i``, the last one is the end token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from memspec.compose import Machine, Network, compose
from memspec.conformance import Violation
from memspec.explore import Moved, Rejected, World
from memspec.ordering.token_replay_handoff.checks.base import Event, Sides
from memspec.ordering.token_replay_handoff.data import Plan


@dataclass(frozen=True)
class Setting:
    """One world: the plan, how long the sequence is, and what may go wrong how often."""

    plan: Plan
    length: int  # tokens of the whole sequence, the end token included
    losses: int = 0
    duplicates: int = 0
    transfer_fails: bool = False
    replay_fails: bool = False
    crash: tuple[str, ...] = ()  # phases in which the decode side may die
    give_up: tuple[str, ...] = ()  # stages in which the prefill side may give up
    strays: bool = False  # messages of the epochs before and after
    repeats: bool = True  # the prefill side sends again what may have been lost or refused
    shows: bool = True  # the prefill side emits during the bridge; else only tries to after it
    landed: bool = False  # the prompt KV is there from the start, and both sides know


@dataclass(frozen=True)
class Client:
    """The stream: tokens that the client has, and the first thing that was wrong with it."""

    tokens: int = 0
    wrong: str = ""
    cut_off: bool = False
    fenced: bool = False


@dataclass(frozen=True)
class Pages:
    """The prefill side's KV: whether the transfer still reads it, and the first thing done to it that must not be."""

    reading: bool = True
    copied: bool = False
    snapshot: bool = False
    freed: bool = False
    torn: str = ""
    lifetime: str = ""


def token_at(setting: Setting, position: int) -> int:
    """The token that either side produces at a position."""
    return setting.plan.end_token if position + 1 == setting.length else 10 + position


def handoff_world(subject: Sides, setting: Setting) -> World:
    """Both sides of ``subject``, the transfer, the client and the pages, in every order that the network allows."""
    plan, epoch = setting.plan, setting.plan.epoch

    def prefill_events(state: Any) -> Iterator[Event]:
        yield "decode", token_at(setting, len(state.log))
        if setting.shows or state.handoff != "bridging":
            yield ("emit",)
        if setting.repeats or state.handoff == "bridging":
            yield ("seal",)
        if setting.repeats or state.handoff == "sealed":
            yield ("commit",)
        if setting.repeats:
            yield ("resend",)
        if (setting.repeats and state.handoff == "cancelling") or state.handoff in setting.give_up:
            yield ("cancel",)
        if setting.strays:
            yield "ack", epoch - 1, len(state.log)
            yield "committed", epoch + 1, len(state.log)
            yield "cancelled", epoch - 1

    def decode_events(state: Any) -> Iterator[Event]:
        yield ("replay",)
        yield "emit", token_at(setting, state.emitted)
        if setting.replay_fails:
            yield ("replay_fails",)
        if state.phase in setting.crash:
            yield ("crash",)
        if setting.strays:
            yield "append", epoch - 1, len(state.log), (99,)
            yield "commit", epoch + 1, len(state.log), 0
            yield "cancel", epoch - 1

    def transfer(state: str, event: Event) -> Moved | Rejected:
        told = "transfer_done" if event[0] == "lands" else "transfer_failed"
        effects: list[tuple[str, Event]] = [("pages", ("reading ended",)), ("prefill", (told, epoch))]
        if event[0] == "lands":
            effects.append(("decode", ("prompt_kv_ready", epoch)))
        return Moved(event[0], tuple(effects))

    def transfer_events(state: str) -> Iterator[Event]:
        if state == "copying":
            yield ("lands",)
            if setting.transfer_fails:
                yield ("fails",)

    def client(state: Client, event: Event) -> Moved | Rejected:
        if event[0] == "fence":
            return Moved(replace(state, fenced=True), (("prefill", ("fenced", epoch, state.tokens)),))
        if event[0] == "cut off":
            return Moved(replace(state, cut_off=True))
        if state.wrong:
            return Moved(state)
        _, who, position, token = event
        wrong = ""
        if position != state.tokens:
            wrong = f"{who} shows token {position} where token {state.tokens} is due"
        elif position >= setting.length or token != token_at(setting, position):
            wrong = f"{who} shows {token} as token {position}"
        return Moved(replace(state, tokens=state.tokens + 1, wrong=wrong))

    def client_events(state: Client) -> Iterator[Event]:
        if state.cut_off and not state.fenced:
            yield ("fence",)

    may: dict[tuple[str, int], bool] = {}  # by identity: the world keeps each state of a side once, as long as it lives

    def may_emit(side: str, step: Callable[..., Moved | Rejected], state: Any, *events: Event) -> bool:
        key = (side, id(state))
        if key not in may:
            may[key] = not all(isinstance(step(state, event), Rejected) for event in events)
        return may[key]

    def prefill_may(state: Any) -> bool:
        shown = (("emit",), ("decode", token_at(setting, len(state.log))))
        return may_emit("prefill", subject.prefill_step, state, *shown)

    def decode_may(state: Any) -> bool:
        return may_emit("decode", subject.decode_step, state, ("emit", token_at(setting, state.emitted)))

    def one_owner(prefill: Any, decode: Any, *_: object) -> str | None:
        both = prefill_may(prefill) and decode_may(decode)
        return "both sides may emit" if both else None

    def silent_after_commit(prefill: Any, decode: Any, *_: object) -> str | None:
        late = decode.phase == "committed" and decode.alive and prefill_may(prefill)
        return "the prefill side goes on after the commit" if late else None

    def stream(prefill: Any, decode: Any, copy: str, client: Client, *_: object) -> str | None:
        return client.wrong or None

    def pages_as_read(prefill: Any, decode: Any, copy: str, client: Client, pages: Pages, *_: object) -> str | None:
        return pages.torn or None

    def retained(prefill: Any, decode: Any, copy: str, client: Client, pages: Pages, *_: object) -> str | None:
        if pages.freed and decode.phase != "committed" and client.tokens < setting.length:
            return "the KV is freed and the decode side has not committed"
        return pages.lifetime or None

    def epochs(
        prefill: Any, decode: Any, copy: str, client: Client, pages: Pages, flight: tuple[tuple[str, Event], ...]
    ) -> str | None:
        lost = [f"{event[0]} to {to}" for to, event in flight if len(event) < 2 or event[1] != epoch]
        return f"{lost[0]} does not carry the epoch" if lost else None

    def within_budget(prefill: Any, decode: Any, *_: object) -> str | None:
        bridge = max(
            len(prefill.log) if prefill.handoff == "bridging" else 0,
            0 if decode.phase == "committed" else len(decode.log),
        )
        return f"{bridge} bridge tokens, the budget is {plan.bridge_max}" if bridge > plan.bridge_max else None

    def terminal(prefill: Any, decode: Any, copy: str, client: Client, pages: Pages, *_: object) -> str:
        if not pages.freed:
            return ""
        if client.tokens == setting.length:
            if decode.phase == "committed":
                return "handed over"
            return "finished at the prefill side" if decode.phase in ("cancelled", "failed") or not decode.alive else ""
        return "lost with the decode side" if decode.phase == "committed" and not decode.alive else ""

    def show(prefill: Any, decode: Any, copy: str, client: Client, *_: object) -> dict[str, object]:
        return {
            "prefill": prefill.handoff,
            "decode": decode.phase if decode.alive else "dead",
            "client has": client.tokens,
        }

    first = (subject.prefill_initial(plan), subject.decode_initial(plan))
    if setting.landed:
        first = (
            after(subject.prefill_step(first[0], ("transfer_done", epoch))),
            after(subject.decode_step(first[1], ("prompt_kv_ready", epoch))),
        )
    return compose(
        {
            "prefill": Machine(
                first[0],
                subject.prefill_step,
                prefill_events,
                misfortunes=frozenset({"ack", "committed", "cancelled"}),
            ),
            "decode": Machine(
                first[1],
                subject.decode_step,
                decode_events,
                misfortunes=frozenset({"append", "commit", "cancel", "replay_fails", "crash"}),
            ),
            "transfer": Machine(
                "lands" if setting.landed else "copying", transfer, transfer_events, misfortunes=frozenset({"fails"})
            ),
            "client": Machine(Client(), client, client_events, at_once=True),
            "pages": Machine(
                Pages(reading=not setting.landed), lambda state, event: Moved(written(plan, state, event)), at_once=True
            ),
        },
        Network(
            setting.losses,
            setting.duplicates,
            frozenset({"transfer_done", "transfer_failed", "prompt_kv_ready", "fenced"}),
        ),
        terminal,
        {
            "stream": stream,
            "one owner": one_owner,
            "silent after commit": silent_after_commit,
            "pages": pages_as_read,
            "retained": retained,
            "budget": within_budget,
            "epochs": epochs,
        },
        show,
    )


def after(outcome: Moved | Rejected) -> Any:
    """The state after an event that must be accepted."""
    if isinstance(outcome, Rejected):
        raise Violation(f"refused: {outcome.reason}", "the news that the prompt KV has landed is taken")
    return outcome.state


def written(plan: Plan, state: Pages, event: Event) -> Pages:
    """What the prefill side's memory makes of ``copy page rows``, ``snapshot``, ``write position``, ``free``, ``reading ended``."""
    shared = plan.prompt_tokens % plan.page_size
    if event[0] == "reading ended":
        return replace(state, reading=False)
    if event[0] == "snapshot":
        return replace(state, snapshot=True)
    if event[0] == "copy":
        due = (plan.prompt_tokens // plan.page_size, shared)
        return replace(
            state,
            copied=True,
            torn=state.torn or ("" if event[1:] == due else f"copied {event[1:]}, due (page, rows) {due}"),
        )
    if event[0] == "free":
        wrong = "freed twice" if state.freed else "freed while the transfer reads it" if state.reading else ""
        return replace(state, freed=True, lifetime=state.lifetime or wrong)
    torn = ""
    if state.freed:
        return replace(state, lifetime=state.lifetime or "written after it was freed")
    if state.reading and plan.recurrent and not state.snapshot:
        torn = "the recurrent state moved on while the transfer reads it"
    page = event[1] // plan.page_size
    if state.reading and shared and page == plan.prompt_tokens // plan.page_size and not state.copied:
        torn = f"prompt page {page} written while the transfer reads it"
    return replace(state, torn=state.torn or torn)
