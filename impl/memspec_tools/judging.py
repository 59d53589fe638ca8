"""Judging a subject that may hang, print, or end the process."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from memspec.conformance import CannotRun, Checks, Verdict, judge

from memspec_tools.vectors import Vector, run_vector

LIMIT_S = 120.0


class TookTooLong(BaseException):
    """A subject did not answer in time. Not an Exception, so that no check and no subject swallows it; it counts as a crash."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in this thread after ``seconds``. Without POSIX alarms, or outside the main thread, there is no limit."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise TookTooLong(f"no verdict within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def contained(seconds: float) -> Iterator[None]:
    """Run a subject: what it prints goes to stderr, and it has ``seconds``."""
    with contextlib.redirect_stdout(sys.stderr), time_limit(seconds):
        yield


def judged(checks: Checks, make: Callable[[], Any], limit_s: float = LIMIT_S) -> dict[str, Verdict]:
    """The verdict of each clause about the subject that ``make`` makes. What the subject prints goes to stderr."""
    try:
        with contained(limit_s):
            subject = make()
    except CannotRun as why:
        return {name: Verdict("not-run", detail=str(why)) for name in checks.clauses}
    except (Exception, SystemExit, TookTooLong) as crash:
        told = f"making the subject: {type(crash).__name__}: {crash}"
        return {name: Verdict("crash", detail=told) for name in checks.clauses}
    fallen: dict[Any, Verdict] = {}
    try:
        with contained(limit_s):
            judge(checks, subject, after=fallen.__setitem__)
    except TookTooLong as late:
        hung = list(checks.clauses)[len(fallen)]
        for name in checks.clauses:
            fallen.setdefault(name, Verdict("crash" if name == hung else "not-run", detail=str(late)))
    return {str(name): fallen[name] for name in checks.clauses}


def run_vectors(
    vectors: Iterable[Vector], checks: Checks, subject: Any, limit_s: float = LIMIT_S
) -> list[tuple[Vector, Verdict]]:
    """Put vectors through a subject. After one that hangs, the rest is not run."""
    results: list[tuple[Vector, Verdict]] = []
    hung = ""
    for vector in vectors:
        try:
            with contained(limit_s):
                verdict = Verdict("not-run", detail=hung) if hung else run_vector(vector, checks, subject)
        except TookTooLong as late:
            hung = str(late)
            verdict = Verdict("crash", 1, vector.id, hung)
        results.append((vector, verdict))
    return results
