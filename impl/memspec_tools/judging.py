"""Judging a subject that may hang, print, or raise anything. It runs in this process: that catches mistakes, not sabotage."""

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


AGAIN_S = 1.0  # a subject that swallows the alarm is rung again


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[list[TookTooLong]]:
    """Raise TookTooLong in this thread after ``seconds``, and again each second after. Yields the alarms that have rung.

    Without POSIX alarms, or outside the main thread, there is no limit.
    """
    rung: list[TookTooLong] = []
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield rung
        return

    def ring(number: int, frame: object) -> None:
        rung.append(TookTooLong(f"no verdict within {seconds:g} s"))
        raise rung[-1]

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def contained(seconds: float) -> Iterator[list[TookTooLong]]:
    """Run a subject: what it prints goes to stderr, and it has ``seconds``. Yields the alarms that have rung."""
    with contextlib.redirect_stdout(sys.stderr), time_limit(seconds) as rung:
        yield rung


def told(trouble: BaseException) -> str:
    """Kind and message of what a subject raised, whatever its message does when it is asked for."""
    try:
        return f"{type(trouble).__name__}: {trouble}"
    except Exception:
        return f"{type(trouble).__name__}, whose message cannot be read"


def made(make: Callable[[], Any], limit_s: float = LIMIT_S) -> tuple[Any, Verdict | None]:
    """The subject that ``make`` makes, or what is to be said of every clause because there is none."""
    try:
        with contained(limit_s):
            return make(), None
    except KeyboardInterrupt:
        raise
    except CannotRun as why:
        return None, Verdict("not-run", detail=str(why))
    except BaseException as crash:
        return None, Verdict("crash", detail=f"making the subject: {told(crash)}")


def judged(checks: Checks, make: Callable[[], Any], limit_s: float = LIMIT_S) -> dict[str, Verdict]:
    """The verdict of each clause about the subject that ``make`` makes. What the subject prints goes to stderr."""
    subject, none = made(make, limit_s)
    if none is not None:
        return dict.fromkeys(map(str, checks.clauses), none)
    fallen: dict[Any, Verdict] = {}
    while waiting := [name for name in checks.clauses if name not in fallen]:
        try:
            with contained(limit_s) as rung:

                def keep(name: Any, verdict: Verdict, rung: list[TookTooLong] = rung) -> None:
                    if rung:  # swallowed on the way here: what was decided then is worth nothing
                        raise rung[0]
                    fallen[name] = verdict

                judge(checks, subject, waiting, after=keep)
        except KeyboardInterrupt:
            raise
        except BaseException as end:  # what no check catches, or the alarm; then the rest is not judged
            late = isinstance(end, TookTooLong)
            stuck = next(name for name in waiting if name not in fallen)
            fallen[stuck] = Verdict("crash", detail=str(end) if late else told(end))
            for name in waiting if late else ():
                fallen.setdefault(name, Verdict("not-run", detail=str(end)))
    return {str(name): fallen[name] for name in checks.clauses}


def run_vectors(
    vectors: Iterable[Vector], checks: Checks, subject: Any, limit_s: float = LIMIT_S
) -> list[tuple[Vector, Verdict]]:
    """Put vectors through a subject. After one that hangs, the rest is not run."""
    results: list[tuple[Vector, Verdict]] = []
    hung = ""
    for vector in vectors:
        try:
            with contained(limit_s) as rung:
                verdict = Verdict("not-run", detail=hung) if hung else run_vector(vector, checks, subject)
                if rung:
                    raise rung[0]
        except KeyboardInterrupt:
            raise
        except TookTooLong as late:
            hung = str(late)
            verdict = Verdict("crash", 1, vector.id, hung)
        except BaseException as crash:
            verdict = Verdict("crash", 1, vector.id, told(crash))
        results.append((vector, verdict))
    return results
