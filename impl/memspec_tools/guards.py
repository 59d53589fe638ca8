"""Delete every guard of a reference in turn and say what each deletion breaks.

A guard is an ``if`` whose only work is to refuse: it raises, or returns what a function named ``reject...`` or ``Rejected`` makes. A
guard whose deletion breaks nothing is redundant; its ``if`` carries a comment ``# masked by <what still catches the case>``.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

from memspec.conformance import modules_of, variant

from memspec_tools.findings import Finding
from memspec_tools.judging import judged, run_vectors
from memspec_tools.places import shown
from memspec_tools.verify import Tell

MASKED = "# masked by "
LIMIT_S = 60.0


@dataclass(frozen=True)
class Guard:
    path: Path
    line: int
    function: str
    condition: str
    masked_by: str
    code: CodeType

    def __str__(self) -> str:
        return f"{shown(self.path)}:{self.line} {self.function}: if {self.condition}"


@dataclass(frozen=True)
class Deletion:
    """What became of the checks without one guard: clauses broken by a Violation, and vectors failed."""

    guard: Guard
    clauses: tuple[str, ...]
    vectors: tuple[str, ...]

    @property
    def noticed(self) -> bool:
        return bool(self.clauses or self.vectors)

    @property
    def told(self) -> str:
        """In a line: what broke, what masks it, or that nothing did."""
        broken = [f"breaks {', '.join(name.partition('.')[2] for name in self.clauses)}"] * bool(self.clauses)
        broken += [f"fails vectors {', '.join(self.vectors)}"] * bool(self.vectors)
        masked = f"breaks nothing: masked by {self.guard.masked_by}" if self.guard.masked_by else "BREAKS NOTHING"
        return "; ".join(broken) or masked


def guards(finding: Finding) -> Iterator[Guard]:
    """Every guard in the functions of the finding's reference, module by module."""
    for _, module in sorted(modules_of(finding.reference).items()):
        yield from _guards_of(module)


def without(finding: Finding, guard: Guard) -> ModuleType:
    """The reference without one guard, for all its callers."""
    return variant(finding.reference, **{guard.function: guard.code})


def delete_each(finding: Finding, tell: Tell = lambda what: None) -> Iterator[Deletion]:
    """Put the reference through the checks and vectors once without each guard."""
    for guard in guards(finding):
        tell(str(guard))
        twin = without(finding, guard)
        verdicts = judged(finding.checks, lambda twin=twin: twin, LIMIT_S)  # type: ignore[misc]
        failed = [
            v.id
            for v, verdict in run_vectors(finding.vectors, finding.checks, twin, LIMIT_S)
            if verdict.outcome == "fail"
        ]
        yield Deletion(guard, tuple(n for n, verdict in verdicts.items() if verdict.outcome == "fail"), tuple(failed))


def _guards_of(module: ModuleType) -> Iterator[Guard]:
    path = Path(inspect.getfile(module))
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    tree = ast.parse(source)
    for function in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        for body, index, guard in _places(function):
            body[index : index + 1] = guard.orelse or [ast.copy_location(ast.Pass(), guard)]
            code = _code_of(compile(tree, str(path), "exec"), function)
            body[index : index + max(1, len(guard.orelse))] = [guard]
            head = lines[guard.lineno - 1 : guard.body[0].lineno - 1]  # a formatter may move the comment down
            masked = "".join(line.partition(MASKED)[2].strip() for line in head)
            yield Guard(path, guard.lineno, function.name, ast.unparse(guard.test), masked, code)


def _places(function: ast.FunctionDef) -> list[tuple[list[ast.stmt], int, ast.If]]:
    return [
        (body, index, statement)
        for node in ast.walk(function)
        for field in ("body", "orelse", "finalbody")
        if isinstance(body := getattr(node, field, None), list)
        for index, statement in enumerate(body)
        if isinstance(statement, ast.If) and len(statement.body) == 1 and _refuses(statement.body[0])
    ]


def _refuses(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return True
    if not isinstance(statement, ast.Return) or statement.value is None:
        return False
    calls = [node.func for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    names = [
        call.id if isinstance(call, ast.Name) else call.attr
        for call in calls
        if isinstance(call, ast.Name | ast.Attribute)
    ]
    return any(name.lower().startswith("reject") for name in names)


def _code_of(module: CodeType, function: ast.FunctionDef) -> CodeType:
    return next(c for c in module.co_consts if isinstance(c, CodeType) and c.co_name == function.name)
