"""What it means to conform: clauses are decided on cases, about a subject; faults prove that they can be broken.

A *subject* is anybody's implementation of one finding, or of one facet of it: a module, an object, an adapter around an
engine. A *clause* is decided case by case and raises :class:`Violation` when it is broken. The cases are data: the same ones
are exported, sent to foreign programs, and drawn by Hypothesis. A *fault* is a subject that is known to be wrong, with the
clauses that it must break. A *variant* is the reference with some of its functions replaced for all their callers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, NewType

ClauseId = NewType("ClauseId", str)
Case = Any
Decide = Callable[[Any, Case], None]
Outcome = Literal["pass", "fail", "crash", "not-run", "not-exercised", "unchecked"]
Origin = Literal["released", "reported", "prototype", "guard removed", "opposite"]


class Violation(Exception):
    """A clause is broken: what was seen and what was due, and for a protocol the events that led there, one row each."""

    def __init__(self, seen: object, due: object, trace: Iterable[Mapping[str, object]] = ()) -> None:
        super().__init__(f"saw {seen!r}, due {due!r}")
        self.seen, self.due, self.trace = seen, due, tuple(trace)


class CannotRun(Exception):
    """The clause needs something that this machine or this subject lacks; the outcome is "not-run", never "pass"."""


class NotExercised(Exception):
    """The run never reached what the clause speaks of; the outcome is "not-exercised", never "pass"."""


def expect(seen: object, due: object) -> None:
    """Raise :class:`Violation` unless ``seen`` equals ``due``. ``due`` never comes from the subject."""
    if seen != due:
        raise Violation(seen, due)


def refused(call: Callable[[], object], *named: object) -> None:
    """Raise :class:`Violation` unless ``call`` raises ValueError and its message names every one of ``named``."""
    try:
        answer = call()
    except ValueError as refusal:
        missing = [str(n) for n in named if str(n) not in str(refusal)]
        if missing:
            raise Violation(f"refusal {str(refusal)!r}", f"a refusal that also names {', '.join(missing)}") from refusal
        return
    raise Violation(answer, f"a refusal that names {', '.join(map(str, named))}" if named else "a refusal")


@dataclass(frozen=True)
class Clause:
    id: ClauseId
    cases: Callable[[], Iterable[Case]]
    decide: Decide
    facet: type | None = None


@dataclass(frozen=True)
class Operation:
    """How a vector's plain input reaches a subject, and how the answer becomes plain data again."""

    name: str
    run: Callable[[Any, Mapping[str, Any]], Any]
    facet: type | None = None


def facet_methods(facet: type) -> tuple[str, ...]:
    """The public names that a facet (a Protocol class) asks of a subject, in the order of the source."""
    return tuple(
        name
        for base in reversed(facet.__mro__)
        for name, thing in vars(base).items()
        if not name.startswith("_") and callable(thing)
    )


def lacks(subject: object, facet: type | None) -> tuple[str, ...]:
    """The methods of ``facet`` that ``subject`` does not have."""
    return () if facet is None else tuple(n for n in facet_methods(facet) if not callable(getattr(subject, n, None)))


@dataclass
class Checks:
    """The clauses of one finding, in the order in which they were written, and the operations of its vectors."""

    slug: str
    clauses: dict[ClauseId, Clause] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)

    def clause(self, cases: Callable[[], Iterable[Case]], facet: type | None = None) -> Callable[[Decide], Decide]:
        """Bind the decorated function to the clause that its name spells: ``rounds_up`` decides ``<slug>.rounds-up``."""

        def bind(decide: Decide) -> Decide:
            name = ClauseId(f"{self.slug}.{decide.__name__.replace('_', '-')}")
            if name in self.clauses:
                raise ValueError(f"clause {name} is decided already")
            self.clauses[name] = Clause(name, cases, decide, facet)
            return decide

        return bind

    def operation(self, facet: type | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated ``(subject, input) -> plain data`` as the vector operation of the same name."""

        def bind(run: Callable[..., Any]) -> Callable[..., Any]:
            if run.__name__ in self.operations:
                raise ValueError(f"operation {run.__name__} of {self.slug} is registered already")
            self.operations[run.__name__] = Operation(run.__name__, run, facet)
            return run

        return bind


@dataclass(frozen=True)
class Fault:
    """A subject that is wrong on purpose. It breaks at least ``breaks``; the whole matrix is kept as a reviewed snapshot.

    ``breaks`` holds ideas (clause ids without the slug). A guard whose removal breaks nothing has an empty ``breaks`` and
    names in ``masked_by`` the guard that still catches the case.
    """

    name: str
    subject: Callable[[], Any]
    breaks: frozenset[str]
    origin: Origin
    seen_in: str = ""
    note: str = ""
    masked_by: str = ""


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    cases: int = 0
    case: Case = None
    detail: str = ""
    trace: tuple[Mapping[str, object], ...] = ()


_memory: ContextVar[dict[tuple[Any, ...], Any] | None] = ContextVar("memory of one judgement", default=None)


def once(run: Callable[..., Any]) -> Callable[..., Any]:
    """Run ``run(subject, *hashable)`` once per subject and judgement: an expensive run that several clauses read."""

    @wraps(run)
    def remembered(subject: Any, *rest: Any) -> Any:
        memory = _memory.get()
        if memory is None:
            return run(subject, *rest)
        key = (run, id(subject), rest)
        if key not in memory:
            try:
                memory[key] = (run(subject, *rest), None)
            except Exception as trouble:
                memory[key] = (None, trouble)
        answer, raised = memory[key]
        if raised is not None:
            raise raised
        return answer

    return remembered


def judge(
    checks: Checks,
    subject: Any,
    only: Iterable[ClauseId] | None = None,
    after: Callable[[ClauseId, Verdict], None] = lambda name, verdict: None,
) -> dict[ClauseId, Verdict]:
    """Decide every clause (or ``only`` some) about ``subject``; ``after`` is told of each verdict as it falls.

    A crash is an outcome of its own and never counts as a broken clause.
    """
    token = _memory.set({})
    verdicts: dict[ClauseId, Verdict] = {}
    try:
        for name in checks.clauses if only is None else only:
            verdicts[name] = decide(checks.clauses[name], subject)
            after(name, verdicts[name])
    finally:
        _memory.reset(token)
    return verdicts


def decide(clause: Clause, subject: Any) -> Verdict:
    """Decide one clause about ``subject``.

    Stops at the first violation, wherever it stands among the cases: a crash or a case that was not exercised does not hide one
    that comes later, and is the outcome only where nothing is violated.
    """
    if missing := lacks(subject, clause.facet):
        return Verdict("not-run", detail=f"the subject has no {', '.join(missing)}()")
    count, other = 0, None
    for case in clause.cases():
        count += 1
        try:
            clause.decide(subject, case)
        except CannotRun as why:
            return Verdict("not-run", count, case, str(why))
        except Violation as broken:
            return Verdict("fail", count, case, str(broken), broken.trace)
        except NotExercised as why:
            other = other or Verdict("not-exercised", count, case, str(why))
        except (Exception, SystemExit) as crash:
            if other is None or other.outcome != "crash":
                other = Verdict("crash", count, case, f"{type(crash).__name__}: {crash}")
    return other or Verdict("pass" if count else "not-exercised", count)


def modules_of(reference: ModuleType) -> dict[str, ModuleType]:
    """A module, or a package and its modules that are imported, by name."""
    name = reference.__name__
    below = {n: module for n, module in sys.modules.items() if module is not None and n.startswith(name + ".")}
    return {name: reference, **below}


def variant(reference: ModuleType, **changed: Any) -> ModuleType:
    """The reference with some of its names replaced for all their callers, its own functions included.

    ``reference`` is a module, or a package whose modules are already imported. A replacement that is a code object becomes a
    function of the twin: it sees the twin's names. Raises ValueError for a name that no module of the reference has: a fault that
    changes nothing would be a straw man.
    """
    inside = modules_of(reference)
    if strangers := changed.keys() - {name for module in inside.values() for name in vars(module)}:
        raise ValueError(f"{reference.__name__} has no {', '.join(sorted(strangers))}")
    twins = {name: ModuleType(name) for name in inside}
    copies: dict[int, Any] = {id(module): twins[name] for name, module in inside.items()}
    for name, module in inside.items():
        for thing in vars(module).values():
            if isinstance(thing, FunctionType) and thing.__module__ == name:
                replacement = changed.get(thing.__name__)
                code = replacement if isinstance(replacement, CodeType) else thing.__code__
                copy = FunctionType(code, vars(twins[name]), thing.__name__, thing.__defaults__, thing.__closure__)
                copy.__kwdefaults__, copy.__doc__, copy.__module__ = thing.__kwdefaults__, thing.__doc__, name
                copies[id(thing)] = copy
    whole = {name: thing for name, thing in changed.items() if not isinstance(thing, CodeType)}
    for name, module in inside.items():
        for key, thing in vars(module).items():
            setattr(twins[name], key, whole.get(key, copies.get(id(thing), thing)))
    return twins[reference.__name__]
