"""The runner: verdicts combine without flattery, hangs end, outcomes of marked tests go stale."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memspec.conformance import CannotRun, Checks, Fault, Violation, expect
from memspec_tools import outcomes as kept
from memspec_tools import verify
from memspec_tools.clauses import ClauseText
from memspec_tools.findings import Finding
from memspec_tools.judging import judged
from memspec_tools.outcomes import TestOutcome, read_outcomes, write_outcomes
from memspec_tools.pages import Page

CHECKS = Checks("demo")


@CHECKS.clause(lambda: (1, 2))
def doubles(subject: Any, case: int) -> None:
    expect(subject(case), 2 * case)


@CHECKS.clause(lambda: (3,))
def stays_positive(subject: Any, case: int) -> None:
    if subject(case) < 0:
        raise Violation("negative", "positive")


def finding(*faults: Fault, decided_by: str = "verify", **more: Callable[[], Any]) -> Finding:
    clauses = (
        ClauseText("demo.doubles", "MUST", "x MUST double.", 5, "0" * 8, decided_by=decided_by),
        ClauseText("demo.stays-positive", "SHOULD", "x SHOULD stay.", 7, "1" * 8),
    )
    where = Path("spec/layout/demo.md")
    page = Page("demo", "layout", "function", "t", "s", "merged", "proposal", (), (), where, "", 1, clauses, ())

    class Made(Finding):
        def implementations(self, device: str) -> dict[str, Callable[[], Any]]:
            return {"reference": lambda: lambda x: 2 * x, **more}

    return Made(page, verify, CHECKS, faults, ())  # type: ignore[arg-type]


def cannot() -> Any:
    raise CannotRun("torch is not installed")


NEGATIVE = Fault("negates", lambda: lambda x: -x, frozenset({"doubles", "stays-positive"}), "opposite", note="n")


def test_a_green_report() -> None:
    report = verify.run_finding(finding(NEGATIVE, kernels=cannot), "cpu")
    assert [c["verdict"] for c in report["clauses"]] == ["pass", "pass"]
    assert report["clauses"][0]["implementations"]["kernels"]["verdict"] == "not-run"
    assert report["faults"][0]["verdict"] == "caught"
    assert verify.complaints({"findings": [report]}) == []


def test_one_bad_implementation_makes_the_clause_fail() -> None:
    report = verify.run_finding(finding(NEGATIVE, tensors=lambda: lambda x: x + 1), "cpu")
    assert report["clauses"][0]["verdict"] == "fail"
    assert "demo.doubles: fail" in verify.complaints({"findings": [report]})[0]


def test_a_fault_that_crashes_or_passes_is_missed() -> None:
    crash = Fault("crashes", lambda: lambda x: 1 // 0, frozenset({"doubles"}), "opposite", note="n")
    harmless = Fault("harmless", lambda: lambda x: 2 * x, frozenset({"doubles"}), "opposite", note="n")
    report = verify.run_finding(finding(crash, harmless), "cpu")
    assert [f["verdict"] for f in report["faults"]] == ["missed", "missed"]
    told = verify.complaints({"findings": [report]})
    assert "demo.doubles: no fault breaks it" in told


def test_a_redundant_guard_that_breaks_something_is_told() -> None:
    masked = Fault("masked", lambda: lambda x: -x, frozenset(), "guard removed", masked_by="another", note="n")
    assert verify.run_finding(finding(masked), "cpu")["faults"][0]["verdict"] == "missed"


def test_a_hanging_subject_is_a_crash_and_the_rest_is_not_run() -> None:
    def hang(x: int) -> int:
        while True:
            time.sleep(0.01)

    verdicts = judged(CHECKS, lambda: hang, limit_s=0.2)
    assert [v.outcome for v in verdicts.values()] == ["crash", "not-run"]
    assert "no verdict within 0.2 s" in verdicts["demo.doubles"].detail


def test_making_a_subject_may_hang_or_crash() -> None:
    def broken() -> Any:
        raise RuntimeError("no engine")

    assert {v.outcome for v in judged(CHECKS, broken).values()} == {"crash"}
    assert {v.outcome for v in judged(CHECKS, lambda: time.sleep(5), limit_s=0.2).values()} == {"crash"}


class Odd(BaseException):
    """What no check and no test catches."""


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message")


@pytest.mark.parametrize(
    "trouble", [Odd("odd"), GeneratorExit(), Unreadable(), SystemExit(0), RuntimeError("y" * 10_000)]
)
def test_whatever_a_subject_raises_is_a_crash_of_that_clause_and_the_others_are_judged(trouble: BaseException) -> None:
    def broken(x: int) -> int:
        raise trouble

    def unmakeable() -> Any:
        raise trouble

    verdicts = judged(CHECKS, lambda: broken)
    assert {v.outcome for v in verdicts.values()} == {"crash"}
    assert all(type(trouble).__name__ in v.detail or "no message" in v.detail for v in verdicts.values())
    assert {v.outcome for v in judged(CHECKS, unmakeable).values()} == {"crash"}
    report = verify.finding_report(finding(), {"broken": verdicts}, [])
    assert all(len(clause["detail"]) <= 600 for clause in report["clauses"])


def test_an_interrupt_ends_the_run() -> None:
    def interrupted(x: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(CHECKS, lambda: interrupted)


def test_a_subject_that_swallows_the_alarm_is_hung_all_the_same() -> None:
    def deaf(x: int) -> int:
        with contextlib.suppress(BaseException):
            time.sleep(5)
        return 2 * x

    verdicts = judged(CHECKS, lambda: deaf, limit_s=0.2)
    assert [v.outcome for v in verdicts.values()] == ["crash", "not-run"]


def test_what_a_subject_prints_does_not_reach_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    def noisy(x: int) -> int:
        print("rubbish")
        return 2 * x

    judged(CHECKS, lambda: noisy)
    assert capsys.readouterr().out == ""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept, "cache_dir", lambda: tmp_path)
    return tmp_path


def test_outcomes_of_marked_tests_hold_for_one_closure(store: Path) -> None:
    write_outcomes([TestOutcome("t.py::a", "demo.doubles", None, "pass")], {"demo": "c0"})
    assert [o.verdict for o in read_outcomes("demo", "c0")] == ["pass"]
    (stale,) = read_outcomes("demo", "c1")
    assert (stale.verdict, stale.detail[:5]) == ("not-run", "stale")
    assert read_outcomes("other", "c0") == []


def test_a_rubbish_store_counts_as_nothing(store: Path) -> None:
    (store / "outcomes.json").write_text("{")
    assert read_outcomes("demo", "c0") == []


def test_marked_tests_decide_their_clause_and_show_their_fault(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = Fault("narrow", cannot, frozenset({"doubles"}), "opposite", note="n")
    made = finding(narrow, decided_by="test")
    monkeypatch.setattr(verify, "closure_hash", lambda page: "c0")
    waiting = verify.with_outcomes(verify.run_finding(made, "cpu"), made)
    assert (waiting["clauses"][0]["verdict"], waiting["faults"][0]["verdict"]) == ("not-run", "not-run")
    assert "demo.doubles" not in " ".join(verify.complaints({"findings": [waiting]}))
    write_outcomes(
        [TestOutcome("t::a", "demo.doubles", None, "pass"), TestOutcome("t::b", "demo.doubles", "narrow", "pass")],
        {"demo": "c0"},
    )
    decided = verify.with_outcomes(verify.run_finding(made, "cpu"), made)
    assert (decided["clauses"][0]["verdict"], decided["clauses"][0]["broken_by"]) == ("pass", ["narrow"])
    assert decided["faults"][0]["verdict"] == "caught"
    write_outcomes([TestOutcome("t::b", "demo.doubles", "narrow", "fail")], {"demo": "c0"})
    assert verify.with_outcomes(verify.run_finding(made, "cpu"), made)["faults"][0]["verdict"] == "missed"
