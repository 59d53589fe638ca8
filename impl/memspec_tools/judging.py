"""Judging a subject that may hang, print, or end the process."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from memspec.conformance import CannotRun, Checks, Verdict, judge

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


def judged(checks: Checks, make: Callable[[], Any], limit_s: float = LIMIT_S) -> dict[str, Verdict]:
    """The verdict of each clause about the subject that ``make`` makes. What the subject prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            with time_limit(limit_s):
                subject = make()
        except CannotRun as why:
            return {name: Verdict("not-run", detail=str(why)) for name in checks.clauses}
        except (Exception, SystemExit, TookTooLong) as crash:
            return {
                name: Verdict("crash", detail=f"making the subject: {type(crash).__name__}: {crash}")
                for name in checks.clauses
            }
        fallen: dict[Any, Verdict] = {}
        try:
            with time_limit(limit_s):
                judge(checks, subject, after=fallen.__setitem__)
        except TookTooLong as late:
            hung = list(checks.clauses)[len(fallen)]
            for name in checks.clauses:
                fallen.setdefault(name, Verdict("crash" if name == hung else "not-run", detail=str(late)))
        return {str(name): fallen[name] for name in checks.clauses}
