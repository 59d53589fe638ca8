from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from memspec.conformance import CannotRun, Checks
from memspec_tools.clauses import ClauseText
from memspec_tools.errors import SpecError
from memspec_tools.judging import run_vectors
from memspec_tools.pages import Page
from memspec_tools.vectors import Vector, load_vectors, run_vector

ONE = """finding: demo
vectors:
  - id: one
    clauses: [a]
    source: public
    result: valid
    operation: double
    input: {x: 2}
    expect: 4
"""
SECOND = """  - id: two
    clauses: [a]
    source: memspec
    result: invalid
    operation: double
    input: {x: -1}
    reject: ["-1"]
"""

CHECKS = Checks("demo")


@CHECKS.operation()
def double(subject: Callable[[Any], Any], given: Mapping[str, Any]) -> Any:
    return subject(given.get("x", given))


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], list[Vector]]:
    def read(text: str) -> list[Vector]:
        folder = tmp_path / "vectors" / "layout"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "demo.yaml").write_text(text, encoding="utf-8")
        clause = ClauseText("demo.a", "MUST", "a MUST.", 1, "0" * 8)
        where = tmp_path / "layout" / "demo.md"
        page = Page("demo", "layout", "function", "t", "s", "merged", "proposal", (), (), where, "", 1, (clause,), ())
        return load_vectors(page, CHECKS)

    return read


def test_vectors_in_order(read) -> None:
    one, two = read(ONE + SECOND)
    assert (one.valid, one.line, two.valid, two.line) == (True, 3, False, 10)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("    source: public\n", "", 3, "'source' is a required property"),
        ("    expect: 4\n", "", 3, "a valid vector has 'expect'"),
        ("    input: {x: 2}\n", "    input: 2\n", 8, "2 is not of type 'object'"),
        ("result: valid", "result: maybe", 6, "'maybe' is not one of"),
        ("operation: double", "operation: halve", 3, "no operation 'halve'"),
        ("clauses: [a]", "clauses: [b]", 3, "demo.b is no clause of the page"),
        ("finding: demo", "finding: other", 1, "of 'other'"),
        ("    expect: 4\n", "    expect: 4\n    because: x\n", 3, "'because' was unexpected"),
        ("id: one", "id: One!", 3, "does not match"),
        (
            "    expect: 4\n",
            "    steps: [{event: {}, reject: late}]\n",
            3,
            "invalid exactly if one of them is rejected",
        ),
    ],
)
def test_what_is_out_of_order_is_told_with_its_line(read, old: str, new: str, line: int, told: str) -> None:
    assert old in ONE
    with pytest.raises(SpecError) as caught:
        read(ONE.replace(old, new, 1))
    assert told in str(caught.value)
    assert caught.value.line == line, str(caught.value)
    assert "\n" not in str(caught.value)


def test_ids_are_unique(read) -> None:
    with pytest.raises(SpecError, match=r"demo\.yaml:10: the vector id 'one' is taken by line 3"):
        read(ONE + SECOND.replace("two", "one"))


def refuse(message: str) -> Callable[[Any], Any]:
    def subject(x: Any) -> Any:
        raise ValueError(message)

    return subject


def crash(x: Any) -> Any:
    raise KeyError(x)


def absent(x: Any) -> Any:
    raise CannotRun("no device")


def test_outcomes_of_a_valid_vector(read) -> None:
    (one,) = read(ONE)
    for subject, outcome in (
        (lambda x: 2 * x, "pass"),
        (lambda x: x, "fail"),
        (refuse("2"), "fail"),
        (crash, "crash"),
        (absent, "not-run"),
    ):
        assert run_vector(one, CHECKS, subject).outcome == outcome


def test_outcomes_of_a_must_reject_vector(read) -> None:
    two = read(ONE + SECOND)[1]
    for subject, outcome in (
        (refuse("-1 is below 0"), "pass"),
        (refuse("no"), "fail"),
        (lambda x: x, "fail"),
        (crash, "crash"),
    ):
        assert run_vector(two, CHECKS, subject).outcome == outcome


def test_a_subject_that_ends_the_process_fails_the_vector_only(read) -> None:
    def leave(x: Any) -> Any:
        raise SystemExit(0)

    assert [v.outcome for _, v in run_vectors(read(ONE + SECOND), CHECKS, leave)] == ["crash", "crash"]


def test_bytes_that_are_no_text_are_told_with_their_line(read, tmp_path: Path) -> None:
    read(ONE)
    path = tmp_path / "vectors/layout/demo.yaml"
    path.write_bytes(b"finding: demo\n# \xff\n")
    page = Page(
        "demo", "layout", "function", "t", "s", "merged", "proposal", (), (), tmp_path / "layout/demo.md", "", 1, (), ()
    )
    with pytest.raises(SpecError, match=r"demo\.yaml:2: not UTF-8"):
        load_vectors(page)


def test_steps_are_compared_one_by_one(read) -> None:
    text = ONE.replace(
        "    expect: 4\n",
        "    steps:\n      - {event: {a: 1}, expect: {n: 1}}\n      - {event: {a: 2}, reject: late}\n",
    )
    (walk,) = read(text.replace("result: valid", "result: invalid").replace("input: {x: 2}", "input: {}"))
    good = [{"n": 1, "more": 0}, {"rejected": "late"}]
    assert run_vector(walk, CHECKS, lambda given: good).outcome == "pass"
    assert "step 1" in run_vector(walk, CHECKS, lambda given: [good[0], {"rejected": "early"}]).detail
    assert run_vector(walk, CHECKS, lambda given: [{"n": 1, "rejected": "x"}, good[1]]).outcome == "fail"
    assert run_vector(walk, CHECKS, lambda given: good[:1]).outcome == "fail"
    assert run_vector(walk, CHECKS, lambda given: "rubbish").outcome == "fail"
