"""The rules that keep conformance honest, over all findings at once, and the core itself."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest
from memspec.conformance import CannotRun, Checks, NotExercised, Violation, expect, judge, lacks, once, refused, variant
from memspec_tools.findings import Finding, load_findings
from memspec_tools.guards import delete_each
from memspec_tools.judging import judged
from memspec_tools.verify import run_finding

FINDINGS = load_findings()
SNAPSHOTS = Path(__file__).parent / "matrix"

every_finding = pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.slug)


@cache
def report(slug: str) -> dict[str, Any]:
    return run_finding(next(finding for finding in FINDINGS if finding.slug == slug), "cpu")


@every_finding
def test_every_checkable_clause_is_decided_and_passes_on_every_implementation_that_ran(finding: Finding) -> None:
    for clause in report(finding.slug)["clauses"]:
        if clause["decided_by"] == "verify":
            assert clause["verdict"] in ("pass", "unchecked"), (clause["id"], clause["detail"])
        ran = {name: per["verdict"] for name, per in clause["implementations"].items() if per["verdict"] != "not-run"}
        assert set(ran.values()) <= {"pass"}, (clause["id"], ran)


@every_finding
def test_checks_decide_clauses_of_the_page_and_no_others(finding: Finding) -> None:
    checkable = {c.id for c in finding.page.clauses if not c.unchecked and c.decided_by == "verify"}
    assert set(finding.checks.clauses) == checkable


@every_finding
def test_faults_break_what_they_declare_and_the_matrix_is_the_reviewed_one(
    finding: Finding, request: pytest.FixtureRequest
) -> None:
    lines: list[str] = []
    for fault in report(finding.slug)["faults"]:
        outcomes = {name.partition(".")[2]: cell["verdict"] for name, cell in fault["matrix"].items()}
        broken = sorted(idea for idea, outcome in outcomes.items() if outcome == "fail")
        decided_here = {c.idea for c in finding.page.clauses if c.decided_by == "verify"}
        due = {idea.partition(".")[2] for idea in fault["breaks"]} & decided_here
        assert due <= set(broken), f"{fault['name']} is due to break {sorted(due - set(broken))}"
        assert broken or due < {idea.partition(".")[2] for idea in fault["breaks"]} or fault["masked_by"], fault["name"]
        crashed = sorted(idea for idea, outcome in outcomes.items() if outcome == "crash")
        lines.append(f"{fault['name']}: {' '.join(broken)}" + (f" | crash: {' '.join(crashed)}" if crashed else ""))
    seen, snapshot = "\n".join(lines) + "\n", SNAPSHOTS / f"{finding.slug}.txt"
    if request.config.getoption("--renew-matrix"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(seen, encoding="utf-8")
    assert snapshot.read_text(encoding="utf-8") == seen, "review the change, then run pytest --renew-matrix"


@every_finding
def test_every_must_is_broken_by_a_fault(finding: Finding) -> None:
    broken = {c["id"] for c in report(finding.slug)["clauses"] if c["broken_by"]}
    for clause in finding.page.clauses:
        if clause.level.startswith("MUST") and clause.decided_by == "verify" and not clause.unchecked:
            assert clause.id in broken, f"no fault breaks {clause.id}"


@every_finding
def test_faults_name_ideas_of_the_page_and_their_origin(finding: Finding) -> None:
    ideas = {clause.idea for clause in finding.page.clauses}
    assert len({fault.name for fault in finding.faults}) == len(finding.faults)
    assert sum(fault.origin in ("released", "reported", "prototype") for fault in finding.faults) >= 4
    for fault in finding.faults:
        assert fault.breaks <= ideas, (fault.name, fault.breaks - ideas)
        assert fault.note, f"{fault.name} does not say what it does"
        assert fault.origin not in ("released", "reported", "prototype") or fault.seen_in, fault.name
        assert bool(fault.breaks) != bool(fault.masked_by), fault.name


@every_finding
def test_a_subject_that_does_nothing_fails(finding: Finding) -> None:
    class Lazy:
        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: None

    outcomes = {verdict.outcome for verdict in judged(finding.checks, Lazy).values()}
    assert outcomes & {"fail", "crash"}


@every_finding
def test_what_is_due_imports_nothing_from_the_reference(finding: Finding) -> None:
    for path in _sources(finding, "checks"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [f"{node.module}.{n.name}" for n in node.names] if isinstance(node, ast.ImportFrom) else []
            names += [n.name for n in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not {"reference", "tensors", "kernels", "faults"} & set(name.split(".")), (
                    f"{path}: imports {name}"
                )


@every_finding
def test_findings_import_no_other_finding_and_no_tools(finding: Finding) -> None:
    others = {f.page.module for f in FINDINGS} - {finding.page.module}
    for path in _sources(finding, ""):
        source = path.read_text(encoding="utf-8")
        assert not any(other in source for other in others), path
        assert "memspec_tools" not in source, path
        assert len(source.splitlines()) <= 300, f"{path} is too long to read in one sitting"


@every_finding
def test_there_are_enough_vectors_and_they_pass(finding: Finding) -> None:
    vectors = report(finding.slug)["vectors"]
    assert vectors["failed"] == [], vectors["details"]
    assert vectors["not_run"] == [], vectors["details"]
    assert vectors["valid"] + vectors["invalid"] >= 15
    assert vectors["invalid"] >= 5


@pytest.mark.slow
@every_finding
def test_a_guard_that_can_be_deleted_unnoticed_says_what_masks_it(finding: Finding) -> None:
    deletions = list(delete_each(finding))
    assert deletions
    for deletion in deletions:
        assert deletion.noticed or deletion.guard.masked_by, f"{deletion.guard} breaks nothing"
        assert not (deletion.noticed and deletion.guard.masked_by), (
            f"{deletion.guard} is not masked: {deletion.clauses}"
        )


def _sources(finding: Finding, below: str) -> list[Path]:
    folder = Path(inspect.getfile(finding.reference)).parent
    while folder.name != finding.slug.replace("-", "_"):
        folder = folder.parent
    return [p for p in folder.rglob("*.py") if not below or below in (p.stem, *p.relative_to(folder).parts)]


class Facet(Protocol):
    def answer(self) -> int: ...


def _checks(*cases: int) -> Checks:
    checks = Checks("demo")

    @checks.clause(lambda: cases, Facet)
    def says_so(subject: Any, case: int) -> None:
        expect(subject.answer(), case)

    return checks


class Fixed:
    def __init__(self, value: Any) -> None:
        self.value = value

    def answer(self) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


@pytest.mark.parametrize(
    ("subject", "cases", "outcome"),
    [
        (Fixed(1), (1, 1), "pass"),
        (Fixed(1), (1, 2), "fail"),
        (Fixed(1), (), "not-exercised"),
        (Fixed(KeyError("x")), (1,), "crash"),
        (Fixed(SystemExit(0)), (1,), "crash"),
        (Fixed(CannotRun("no device")), (1,), "not-run"),
        (Fixed(NotExercised("never got there")), (1,), "not-exercised"),
        (object(), (1,), "not-run"),
    ],
)
def test_outcomes(subject: object, cases: tuple[int, ...], outcome: str) -> None:
    (verdict,) = judge(_checks(*cases), subject).values()
    assert verdict.outcome == outcome


def test_a_failing_verdict_carries_case_seen_and_due() -> None:
    (verdict,) = judge(_checks(1, 2), Fixed(1)).values()
    assert (verdict.case, verdict.cases) == (2, 2)
    assert "saw 1, due 2" in verdict.detail


def test_a_crash_does_not_hide_a_violation_that_comes_later() -> None:
    class Moody:
        def __init__(self, *answers: Any) -> None:
            self.answers = list(answers)

        def answer(self) -> int:
            told = self.answers.pop(0)
            if isinstance(told, Exception):
                raise told
            return int(told)

    def outcome(*answers: Any) -> str:
        (verdict,) = judge(_checks(1, 1, 1), Moody(*answers)).values()
        return verdict.outcome

    assert outcome(KeyError("x"), 1, 2) == "fail"
    assert outcome(NotExercised("x"), KeyError("x"), 1) == "crash"
    assert outcome(NotExercised("x"), 1, 1) == "not-exercised"


def test_a_clause_is_decided_once() -> None:
    checks = _checks(1)
    with pytest.raises(ValueError, match=r"demo\.says-so is decided already"):

        @checks.clause(lambda: ())
        def says_so(subject: Any, case: int) -> None: ...


def test_lacks_names_the_missing_methods() -> None:
    assert lacks(object(), Facet) == ("answer",)
    assert lacks(Fixed(1), Facet) == ()


def test_refused_wants_the_value_and_the_limit_in_the_message() -> None:
    def refuse() -> None:
        raise ValueError("7 tokens; at most 5")

    refused(refuse, 7, 5)
    with pytest.raises(Violation, match="also names 9"):
        refused(refuse, 7, 9)
    with pytest.raises(Violation, match="a refusal that names 7"):
        refused(lambda: "served", 7)


def test_once_runs_once_per_subject_and_judgement() -> None:
    runs: list[Any] = []
    checks = Checks("demo")

    @once
    def explore(subject: Any) -> int:
        runs.append(subject)
        return len(runs)

    for name in ("first", "second"):

        def decide(subject: Any, case: int) -> None:
            explore(subject)

        decide.__name__ = name
        checks.clause(lambda: (1, 2))(decide)
    judge(checks, "a")
    judge(checks, "a")
    judge(checks, "b")
    assert runs == ["a", "a", "b"]


def _module(name: str, source: str) -> ModuleType:
    import sys

    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), vars(module))  # noqa: S102
    return module


def test_variant_replaces_a_rule_for_all_its_callers_across_modules() -> None:
    import sys

    _module("ref_pkg.inner", "def rule(x):\n    return x + 1\ndef caller(x):\n    return rule(x)\n")
    package = _module(
        "ref_pkg", "from ref_pkg.inner import rule, caller\ndef outer(x, *, k=10):\n    return caller(x) * k\n"
    )
    try:
        twin = variant(package, rule=lambda x: x + 2)
        assert (package.outer(1), twin.outer(1), twin.caller(1), twin.rule(1)) == (20, 30, 3, 3)
        coded = variant(package, rule=(lambda x: x + 5).__code__)
        assert coded.outer(1) == 60
        with pytest.raises(ValueError, match="has no ruel"):
            variant(package, ruel=None)
    finally:
        del sys.modules["ref_pkg"], sys.modules["ref_pkg.inner"]
