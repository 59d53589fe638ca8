"""Clauses about one handoff as a whole: epochs, the log, acknowledgements, the seal, the commit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from memspec.conformance import Violation
from memspec.ordering.token_replay_handoff.checks.base import CHECKS, Coordinator
from memspec.ordering.token_replay_handoff.checks.walk import EPOCH, Script, parsed, walk

LOG = "append 0 31 32 33 -> produced=3"
READY = (LOG, "prompt_kv_ready -> ok")
DONE: Script = ("append 0 11 -> ok", "prompt_kv_ready -> ok", "ack 1 -> ok", "seal -> ok", "commit 1 -> owner=decode")
CANCELLED: Script = (LOG, "cancel -> phase=CANCELLED")
FAILED: Script = (LOG, "fail lost -> phase=FAILED")
EVERY = ("append 3 34", "prompt_kv_ready", "seal", "ack 3", "commit 3", "cancel", "fail lost")


def strangers() -> Iterator[Script]:
    for epoch in (8, 10):
        for event in EVERY:
            yield *READY, "ack 2 -> ok", f"{event}@{epoch} -> !stale-epoch"
        for end in (DONE, CANCELLED, FAILED):
            yield *end, f"append 0 11@{epoch} -> !stale-epoch"


@CHECKS.clause(strangers, Coordinator)
def other_epoch(subject: Coordinator, case: Script) -> None:
    walk(subject, case)


def breaks_in_the_log() -> Iterator[Script]:
    yield ("append 1 32 -> !gap",)
    yield LOG, "append 4 35 -> !gap", "append 3 34 -> produced=4"
    yield "append 0 31 32 -> ok", "append 1 32 33 -> !overlap"
    yield LOG, "append 0 31 32 33 34 -> !overlap"
    yield "append 0 31 32 -> ok", "append 0 31 99 -> !different-tokens"
    yield LOG, "append 2 34 -> !different-tokens"
    yield LOG, "append -2 32 33 -> !negative-index"
    yield LOG, "append -2 32 -> !negative-index"
    yield ("append -1 31 -> !negative-index",)
    yield LOG, "append 4 -> !gap", "append -1 -> !negative-index"


@CHECKS.clause(breaks_in_the_log, Coordinator)
def contiguous_log(subject: Coordinator, case: Script) -> None:
    walk(subject, case)


def repeats() -> Iterator[Script]:
    yield "append 0 31 32 -> ok", "append 0 31 32 -> produced=2"
    yield LOG, "append 1 32 -> produced=3"
    yield "append 0 -> produced=0", "append 0 31 -> produced=1", "append 0 -> produced=1", "append 1 -> produced=1"
    yield *READY, "ack 3 -> ok", "append 3 -> phase=READY_TO_COMMIT produced=3"
    yield *READY, "ack 3 -> ok", "append 0 31 32 33 -> phase=READY_TO_COMMIT produced=3"


@CHECKS.clause(repeats, Coordinator)
def resend(subject: Coordinator, case: Script) -> None:
    walk(subject, case)


@CHECKS.clause(lambda: [(*READY, "seal -> ok", "append 0 31 32 33 -> produced=3 sealed=3")], Coordinator)
def resend_after_seal(subject: Coordinator, case: Script) -> None:
    walk(subject, case)


def too_early() -> Iterator[Script]:
    yield ("ack 0 -> !before-ready",)
    yield ("seal -> !before-ready",)
    yield LOG, "ack 2 -> !before-ready", "prompt_kv_ready -> phase=REPLAYING", "ack 2 -> replayed=2"
    yield LOG, "seal -> !before-ready", "prompt_kv_ready -> phase=REPLAYING", "seal -> sealed=3"
    yield *READY, "ack 2 -> ok", "prompt_kv_ready -> !ready-already"


@CHECKS.clause(too_early, Coordinator)
def ready_first(subject: Coordinator, case: Script) -> None:
    walk(subject, case)


def acknowledgements() -> Iterator[Script]:
    yield *READY, "ack 2 -> ok", "ack 1 -> !ack-backwards", "ack 2 -> replayed=2", "ack 3 -> replayed=3"
    yield *READY, "ack 4 -> !ack-ahead", "ack 3 -> replayed=3"


@CHECKS.clause(acknowledgements, Coordinator)
def ack_in_range(subject: Coordinator, case: Script) -> None:
    walk(subject, case)


def seals() -> Iterator[Script]:
    twice = ("seal -> sealed=3 phase=DRAINING_FINAL_SUFFIX", "seal -> sealed=3 phase=DRAINING_FINAL_SUFFIX")
    yield *READY, "ack 2 -> ok", *twice, "ack 3 -> phase=READY_TO_COMMIT", "seal -> sealed=3 phase=READY_TO_COMMIT"
    for acknowledged in ((), ("ack 3 -> ok",)):
        yield *READY, *acknowledged, "seal -> sealed=3", "append 3 34 -> !sealed"


@CHECKS.clause(seals, Coordinator)
def seal_is_final(subject: Coordinator, case: Script) -> None:
    walk(subject, case)


SHORT = ("append 0 1", "append 1 2", "prompt_kv_ready", "ack 1", "ack 2", "seal")


def commits() -> Iterator[Script]:
    """Named refusals and successes; then every short order of events before a commit of all that was appended."""
    yield "append 0 11 12 13 -> ok", "prompt_kv_ready -> ok", "ack 3 -> ok", "commit 3 -> !unsealed"
    yield *READY, "ack 2 -> ok", "seal -> ok", "commit 3 -> !not-replayed"
    yield *READY, "ack 2 -> ok", "seal -> ok", "commit 2 -> !behind"
    yield *READY, "ack 3 -> ok", "seal -> ok", "commit 4 -> !behind"
    race: Script = ("append 0 1 2 -> ok", "prompt_kv_ready -> phase=REPLAYING", "ack 2 -> phase=READY_TO_COMMIT")
    race = (*race, "append 2 3 -> phase=REPLAYING", "commit 2 -> !behind", "ack 3 -> phase=READY_TO_COMMIT")
    yield *race, "seal -> phase=READY_TO_COMMIT", "commit 3 -> owner=decode"
    drained = ("append 0 1 2 3 4 -> ok", "prompt_kv_ready -> ok", "ack 2 -> ok", "seal -> phase=DRAINING_FINAL_SUFFIX")
    yield *drained, "ack 4 -> phase=READY_TO_COMMIT", "commit 4 -> owner=decode committed=4 phase=COMMITTED"
    yield "prompt_kv_ready -> phase=READY_TO_COMMIT", "seal -> sealed=0", "commit 0 -> owner=decode committed=0"
    for length in (2, 3, 4):
        for chosen in permutations(SHORT, length):
            if chosen[0] in ("append 0 1", "prompt_kv_ready"):
                yield *chosen, f"commit {1 + ('append 1 2' in chosen)}"


@CHECKS.clause(commits, Coordinator)
def commit_exact(subject: Coordinator, case: Script) -> None:
    if "->" in case[-1]:
        walk(subject, case)
        return
    events = [parsed(line)[0] for line in case]
    outcomes = subject.replay({"epoch": EPOCH}, events)
    accepted = [event for event, outcome in zip(events, outcomes, strict=True) if not outcome["rejected"]]
    stored = {e["first"] for e in accepted if e["event"] == "append"}
    acked = max((e["count"] for e in accepted if e["event"] == "ack"), default=0)
    sealed = [i for i, e in enumerate(accepted) if e["event"] == "seal"]
    late = bool(sealed) and any(e["event"] == "append" and e["first"] >= acked for e in accepted[sealed[0] :])
    exact = (len(stored), acked, bool(sealed), late) == (events[-1]["count"], events[-1]["count"], True, False)
    if exact != (outcomes[-1]["owner"] == "decode"):
        counts = f"{len(stored)} produced, {acked} replayed, {'' if sealed else 'not '}sealed"
        seen = f"commit {events[-1]['count']} {'refused' if exact else 'accepted'} with {counts}"
        trace = [{"step": i, **e} for i, e in enumerate(events, 1)]
        raise Violation(seen, "accepted exactly if count == produced == replayed == sealed", trace)


def after_the_end() -> Iterator[Script]:
    for event in ("append 3 34", "prompt_kv_ready", "seal", "ack 1", "commit 1", "cancel", "fail again"):
        for end in (DONE, CANCELLED, FAILED):
            yield *end, f"{event} -> !terminal"
    for ready in ((LOG,), READY, (*READY, "ack 3 -> ok", "seal -> ok")):
        for event, phase in (("cancel", "CANCELLED"), ("fail lost", "FAILED")):
            yield *ready, f"{event} -> phase={phase} owner=prefill produced=3 committed=0"


@CHECKS.clause(after_the_end, Coordinator)
def ended_is_final(subject: Coordinator, case: Script) -> None:
    walk(subject, case)
