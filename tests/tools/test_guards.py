from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from memspec.conformance import Checks, expect, refused
from memspec_tools.guards import delete_each, guards

SOURCE = """
def size(value, limit):
    if value < 0:
        raise ValueError(f"{value} is below 0")
    if value > limit:  # masked by the caller
        raise ValueError(f"{value} is above {limit}")
    if value == 3:
        value = 4
    elif value == 7:
        raise ValueError("7 of 7")
    return value


def step(state, event):
    for word in (event,):
        if word == "late":
            return state, Rejected("late")
    return size(state, 10), None


def Rejected(why):
    return {"rejected": why}
"""

CHECKS = Checks("demo")


@CHECKS.clause(lambda: (-1, -2))
def positive(subject: Any, case: int) -> None:
    refused(lambda: subject.step(case, ""), case)


@CHECKS.clause(lambda: ("late",))
def on_time(subject: Any, case: str) -> None:
    expect(subject.step(1, case)[1], {"rejected": "late"})


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "guarded_demo.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield SimpleNamespace(reference=importlib.import_module("guarded_demo"), checks=CHECKS, vectors=())
    del sys.modules["guarded_demo"]


def test_guards_are_found_wherever_they_stand(demo) -> None:
    found = [(g.function, g.condition, g.masked_by) for g in guards(demo)]
    assert found == [
        ("size", "value < 0", ""),
        ("size", "value > limit", "the caller"),
        ("size", "value == 7", ""),
        ("step", "word == 'late'", ""),
    ]


def test_each_is_deleted_for_all_callers_and_only_it(demo) -> None:
    seen = {d.guard.condition: (d.clauses, d.noticed) for d in delete_each(demo)}
    assert seen["value < 0"] == (("demo.positive",), True)
    assert seen["word == 'late'"] == (("demo.on-time",), True)
    assert seen["value > limit"] == ((), False)
    assert demo.reference.step(1, "late")[1] == {"rejected": "late"}
