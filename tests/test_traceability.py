"""Every page, clause, marked test and vector is bound to the others, and the lock holds."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

import pytest
from memspec import __version__
from memspec_tools.documents import read_yaml
from memspec_tools.findings import Finding, load_findings
from memspec_tools.lock import differences
from memspec_tools.pages import examples, load_pages
from memspec_tools.places import root, spec_dir
from memspec_tools.vectors import schema

FINDINGS = load_findings()
TOP = root() or Path()

every_finding = pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.slug)


def marked_clauses() -> dict[str, set[str | None]]:
    """Clause id -> faults of its marked tests (None for a test that decides it), read from the sources."""
    found: dict[str, set[str | None]] = {}
    for path in (TOP / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.clause":
                fault = next((ast.literal_eval(k.value) for k in node.keywords if k.arg == "fault"), None)
                found.setdefault(ast.literal_eval(node.args[0]), set()).add(fault)
    return found


def test_the_lock_holds() -> None:
    assert differences(load_pages(), __version__) == []


def test_marked_tests_and_test_decided_clauses_are_the_same() -> None:
    due = {c.id for finding in FINDINGS for c in finding.page.clauses if c.decided_by == "test"}
    assert set(marked_clauses()) == due


@every_finding
def test_a_test_decided_must_has_a_negative_control(finding: Finding) -> None:
    names = {fault.name for fault in finding.faults}
    marked = marked_clauses()
    for clause in finding.page.clauses:
        if clause.decided_by == "test":
            assert None in marked[clause.id], f"no test decides {clause.id}"
            controls = marked[clause.id] - {None}
            assert controls or not clause.level.startswith("MUST"), f"no negative control for {clause.id}"
            assert controls <= names, f"{clause.id}: {controls - names} are no faults"


@every_finding
def test_worked_examples_run(finding: Finding) -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    names: dict[str, object] = {}
    blocks = list(examples(finding.page))
    assert blocks, "the Problem section has a worked example"
    for line, source in blocks:
        test = parser.get_doctest(source, names, finding.slug, str(finding.page.path), line - 1)
        told: list[str] = []
        runner.run(test, out=told.append, clear_globs=False)
        names = test.globs
        assert not told, "".join(told)


@every_finding
def test_every_tree_has_the_finding(finding: Finding) -> None:
    area, name = finding.page.area, finding.slug.replace("-", "_")
    for path in (
        f"tests/{area}/test_{name}.py",
        f"gallery/{area}/plot_{name}.py",
        f"impl/memspec/{area}/{name}/__init__.py",
    ):
        assert (TOP / path).is_file(), path


@every_finding
def test_every_operation_is_used_by_a_vector(finding: Finding) -> None:
    assert set(finding.checks.operations) == {vector.data["operation"] for vector in finding.vectors}


def test_the_vector_schema_is_itself_in_order() -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema())
    for path in (spec_dir() / "vectors").rglob("*.yaml"):
        read_yaml(path.read_text(encoding="utf-8"), path, schema())


def test_clause_ids_in_the_repository_are_spelled_as_they_are() -> None:
    known = {c.id for finding in FINDINGS for c in finding.page.clauses}
    known |= {t.id for finding in FINDINGS for t in finding.page.tombstones}
    slugs = "|".join(re.escape(finding.slug) for finding in FINDINGS)
    pattern = re.compile(rf"(?<![\w/.-])({slugs})\.([a-z][a-z0-9-]*[a-z0-9])(?![\w(]|\.[a-z])")
    for path in _texts():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for mark in pattern.finditer(line):
                if mark[2] not in ("md", "yaml", "json", "py", "txt"):
                    assert mark[0] in known, f"{path}:{number}: {mark[0]} is no clause"


def _texts() -> list[Path]:
    folders = [TOP / name for name in ("docs", "spec", "impl", "gallery")]
    return [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "CHANGELOG.md"] + [
        path for folder in folders for path in folder.rglob("*") if path.suffix in {".md", ".py", ".yaml", ".rst"}
    ]
