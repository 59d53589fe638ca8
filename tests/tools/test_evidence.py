"""Records: made at once or not at all, valid while their closure stands, and never shown for what they are not."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import small_tree
from memspec_tools import evidence, exhibit, recording
from memspec_tools.errors import SpecError
from memspec_tools.recording import Machine

FAKE = Machine("cuda", "Fake Device 9000", "1.2, CUDA 3.4")
PLACE = "gallery/recorded/fake-device-9000/small-rule"
SCRIPT = '''"""
A small rule at work
====================
"""

import sys

from memspec.layout.small_rule import clear
from memspec_tools import exhibit

print("arguments:", *sys.argv[1:])
print(clear(1))
exhibit.metric("cleared bytes", 37376, unit="B")
exhibit.metric("rate", 2.5, unit="TB/s", benchmark=True)
figure, axes = exhibit.figure(title="One bar")
axes.bar(["a"], [1])
'''


def judged(slugs: Sequence[str], device: str) -> dict[str, Any]:
    """The part of a report of ``memspec verify`` that a record keeps."""
    clauses = [
        {"id": "small-rule.cleared", "level": "MUST", "hash": "", "verdict": "pass", "implementations": {
            "reference": {"verdict": "pass"}, "kernels": {"verdict": "not-run"}}},
        {"id": "small-rule.twice", "level": "MAY", "hash": "", "verdict": "unchecked", "implementations": {}},
    ]  # fmt: skip
    faults = [{"name": "forgets", "verdict": "caught"}]
    vectors: dict[str, Any] = {"valid": 1, "invalid": 0, "failed": [], "not_run": [], "details": {}}
    return {"findings": [{"slug": slugs[0], "clauses": clauses, "faults": faults, "vectors": vectors}]}


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    top = small_tree.with_tools(small_tree.make(tmp_path))
    (top / "gallery/layout/plot_small_rule.py").write_text(SCRIPT)
    monkeypatch.delenv("MEMSPEC_DEVICE", raising=False)
    return top


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = small_tree.with_tools(small_tree.make(tmp_path_factory.mktemp("recorded")))
    (top / "gallery/layout/plot_small_rule.py").write_text(SCRIPT)
    make(top)
    return top


@pytest.fixture
def recorded(recorded_once: Path, tmp_path: Path) -> Path:
    """A copy of a tree with one valid record."""
    return shutil.copytree(recorded_once, tmp_path / "copy")


def judge_of(top: Path) -> recording.Judge:
    """``judged``, with the hashes that the page of the tree has."""
    from memspec_tools.pages import read_page

    hashes = {clause.id: clause.hash for clause in read_page(top / "spec/layout/small-rule.md").clauses}

    def judge(slugs: Sequence[str], device: str) -> dict[str, Any]:
        report = judged(slugs, device)
        for clause in report["findings"][0]["clauses"]:
            clause["hash"] = hashes[clause["id"]]
        return report

    return judge


def make(top: Path, machine: Machine = FAKE) -> Path:
    (folder,) = evidence.record(["small-rule"], machine.kind, top, judge_of(top), machine)
    return folder


def edited(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "record.json"
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def only(top: Path) -> evidence.RecordState:
    (state,) = evidence.check(top)
    return state


def test_a_record_says_what_ran_where(top: Path) -> None:
    folder = make(top)
    assert folder == top / PLACE
    data = json.loads((folder / "record.json").read_text())
    assert data["device"] == {
        "kind": "cuda",
        "class": "fake-device-9000",
        "name": "Fake Device 9000",
        "driver": "1.2, CUDA 3.4",
    }
    assert data["versions"]["torch"] == exhibit.version("torch")
    assert data["stdout"] == ("arguments: --device cuda\n       1 cleared\ncleared bytes: 37,376 B\nrate: 2.5 TB/s\n")
    assert data["metrics"] == [
        {"name": "cleared bytes", "value": 37376, "unit": "B", "benchmark": False},
        {"name": "rate", "value": 2.5, "unit": "TB/s", "benchmark": True},
    ]
    assert [(c["id"], c["verdict"], c["implementations"]) for c in data["clauses"]] == [
        ("small-rule.cleared", "pass", {"reference": "pass", "kernels": "not-run"}),
        ("small-rule.twice", "unchecked", {}),
    ]
    assert data["faults"] == [{"name": "forgets", "verdict": "caught"}]
    assert data["duration"]["note"] == "not a benchmark"
    assert data["commit"] == {"id": None, "dirty": None}
    assert sorted(path.name for path in folder.iterdir()) == ["plot_small_rule_001.svg", "record.json"]
    assert list(data["figures"]) == ["plot_small_rule_001.svg"]


def test_a_fresh_record_is_valid_and_shown_by_its_device(recorded: Path) -> None:
    assert (only(recorded).validity, only(recorded).changes) == ("valid", ())
    found = evidence.state_of("small-rule", recorded)
    assert found.summary == "ran on Fake Device 9000"
    assert [state.device_name for state in found.records] == ["Fake Device 9000"]


def test_a_finding_without_records_has_not_run_on_cuda(top: Path) -> None:
    assert evidence.check(top) == []
    assert evidence.state_of("small-rule", top) == evidence.FindingEvidence("small-rule", (), "has not run on CUDA yet")


def test_a_cpu_record_is_never_a_cuda_record(top: Path) -> None:
    folder = make(top, Machine("cpu", "x86_64", "none"))
    assert folder == top / "gallery/recorded/cpu/small-rule"
    found = evidence.state_of("small-rule", top)
    assert found.summary == evidence.NEVER
    assert [(state.device_class, state.validity, state.on_cuda) for state in found.records] == [("cpu", "valid", False)]
    make(top)
    assert [state.device_class for state in evidence.state_of("small-rule", top).records] == ["fake-device-9000", "cpu"]

    def claim(data: dict[str, Any]) -> None:
        data["device"]["kind"] = "cuda"

    edited(folder, claim)
    cpu = next(state for state in evidence.check(top) if state.device_class == "cpu")
    assert (cpu.validity, cpu.changes) == ("inconsistent", ("a cuda device is recorded as class cpu",))


@pytest.mark.parametrize(
    ("file", "old", "new", "due"),
    [
        ("impl/memspec/layout/small_rule/reference.py", " cleared", " wiped", "reference changed"),
        ("impl/memspec/deep.py", "1", "2", "memspec.deep changed"),
        ("gallery/layout/plot_small_rule.py", "clear(1)", "clear(2)", "script changed"),
        ("spec/layout/small-rule.md", "before it changes", "before it ever changes", "clause small-rule.cleared changed"),
        ("spec/vectors/layout/small-rule.yaml", "a: 1", "a: 2", "vectors changed"),
    ],
)  # fmt: skip
def test_what_changed_makes_a_record_stale(recorded: Path, file: str, old: str, new: str, due: str) -> None:
    small_tree.replace(recorded / file, old, new)
    assert (only(recorded).validity, only(recorded).changes) == ("stale", (due,))
    assert evidence.state_of("small-rule", recorded).summary == f"ran on Fake Device 9000 before this changed: {due}"
    small_tree.replace(recorded / file, new, old)
    assert only(recorded).validity == "valid"


def test_prose_does_not_make_a_record_stale(recorded: Path) -> None:
    small_tree.replace(recorded / "impl/memspec/layout/small_rule/reference.py", "Clear it.", "Clear the block.")
    small_tree.replace(recorded / "spec/layout/small-rule.md", "Words.", "More words.")
    assert only(recorded).validity == "valid"


def test_a_finding_that_is_gone(recorded: Path) -> None:
    (recorded / "spec/layout/small-rule.md").unlink()
    assert (only(recorded).validity, only(recorded).changes) == (
        "stale",
        ("there is no finding layout/small-rule any more",),
    )


def set_in(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "due"),
    [
        (set_in("closure", "parts", "reference", value="0" * 16), "the closure's parts hash to "),
        (set_in("closure", "hash", value="0" * 16), "the record says 0000000000000000"),
        (set_in("clauses", 0, "hash", value="0" * 8), "clause small-rule.cleared: verdict and closure name different texts"),
        (set_in("clauses", 1, "id", value="small-rule.cleared"), "a clause has two verdicts"),
        (set_in("clauses", value=[]), "clause small-rule.cleared: verdict and closure name different texts"),
        (set_in("device", "class", value="other"), "the record is of device class other, its folder is fake-device-9000"),
        (set_in("finding", "slug", value="other-rule"), "the record is of other-rule, its folder is small-rule"),
        (set_in("figures", "plot_small_rule_001.svg", value="0" * 64), "the figure plot_small_rule_001.svg is not the one"),
        (set_in("figures", "plot_small_rule_002.svg", value="0" * 64), "the figure plot_small_rule_002.svg is missing"),
        (set_in("figures", value={}), "the file plot_small_rule_001.svg is not of the record"),
    ],
)  # fmt: skip
def test_an_edited_record_is_inconsistent(recorded: Path, edit: Callable[[dict[str, Any]], None], due: str) -> None:
    edited(recorded / PLACE, edit)
    assert only(recorded).validity == "inconsistent"
    assert due in "\n".join(only(recorded).changes)
    assert evidence.state_of("small-rule", recorded).summary == evidence.NEVER


@pytest.mark.parametrize(
    ("edit", "due"),
    [
        (set_in("surprise", value=1), "Additional properties are not allowed ('surprise' was unexpected)"),
        (set_in("metrics", 0, "value", value="many"), "metrics.0.value: 'many' is not of type 'number'"),
        (set_in("clauses", 0, "verdict", value="fine"), "clauses.0.verdict: 'fine' is not one of"),
        (set_in("duration", "note", value="fast"), "duration.note: 'not a benchmark' was expected"),
        (set_in("figures", value={"../x.svg": "0" * 64}), "figures: '../x.svg' does not match"),
        (lambda data: data.pop("commit"), "'commit' is a required property"),
    ],
)  # fmt: skip
def test_a_record_of_another_shape_is_told_in_one_line(
    recorded: Path, edit: Callable[[dict[str, Any]], None], due: str
) -> None:
    edited(recorded / PLACE, edit)
    (line,) = only(recorded).changes
    assert only(recorded).validity == "inconsistent"
    assert "gallery/recorded/fake-device-9000/small-rule/record.json: " + due in line
    assert "\n" not in line


def test_a_file_that_is_no_record_is_told_in_one_line(recorded: Path) -> None:
    path = recorded / PLACE / "record.json"
    wrong = {
        b"{\n oh": "record.json:2: not JSON",
        b"\xff": "record.json:1: not UTF-8",
        b'{"a": NaN}': "NaN is not a number",
        b"[]": "is not of type 'object'",
    }
    for content, due in wrong.items():
        path.write_bytes(content)
        (line,) = only(recorded).changes
        assert due in line
        assert "\n" not in line
    path.unlink()
    assert "record.json: cannot be read" in only(recorded).changes[0]


def test_a_script_that_fails_writes_nothing(top: Path) -> None:
    script = top / "gallery/layout/plot_small_rule.py"
    script.write_text(SCRIPT + "raise RuntimeError('out of memory')\n")
    line = len(SCRIPT.splitlines()) + 1
    with pytest.raises(
        SpecError, match=rf"1 of 1 not recorded: .*plot_small_rule\.py:{line}: RuntimeError: out of memory"
    ):
        make(top)
    assert list((top / "gallery/recorded").rglob("*")) == []


def test_a_failure_leaves_the_old_record(top: Path) -> None:
    folder = make(top)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (top / "gallery/layout/plot_small_rule.py").write_text(SCRIPT + "1 / 0\n")
    with pytest.raises(SpecError, match="ZeroDivisionError"):
        make(top)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["small-rule"]
    (top / "gallery/layout/plot_small_rule.py").write_text(
        SCRIPT.replace("figure, axes", "pair").replace("axes.bar", "pair[1].bar")
    )
    make(top)
    assert only(top).validity == "valid"
    assert [path.name for path in folder.parent.iterdir()] == ["small-rule"]


def test_code_that_changes_while_it_runs_is_not_recorded(top: Path) -> None:
    small_tree.replace(
        top / "gallery/layout/plot_small_rule.py",
        "print(clear(1))",
        "from pathlib import Path\nimport memspec.deep\nPath(memspec.deep.__file__).write_text('unit = 3')",
    )
    with pytest.raises(SpecError, match="the code changed while it ran"):
        make(top)


def test_a_broken_clause_is_recorded_as_broken(top: Path) -> None:
    def judge(slugs: Sequence[str], device: str) -> recording.Report:
        report = judge_of(top)(slugs, device)
        report["findings"][0]["clauses"][0]["verdict"] = "fail"
        return report

    (folder,) = evidence.record(["small-rule"], "cuda", top, judge, FAKE)
    assert json.loads((folder / "record.json").read_text())["clauses"][0]["verdict"] == "fail"
    assert only(top).validity == "valid"


def test_the_commit_and_whether_the_tree_differs(top: Path) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e"]
        return subprocess.run(["git", *who, *words], cwd=top, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (top / ".gitignore").write_text("__pycache__/\n")
    git("add", "-A")
    git("commit", "-qm", "all")
    data = json.loads((make(top) / "record.json").read_text())
    assert data["commit"] == {"id": git("rev-parse", "HEAD"), "dirty": False}
    again = json.loads((make(top) / "record.json").read_text())
    assert again["commit"]["dirty"] is False, "records alone do not make a tree dirty"
    small_tree.replace(top / "impl/memspec/stranger.py", "1", "2")
    assert json.loads((make(top) / "record.json").read_text())["commit"]["dirty"] is True


def test_unknown_findings_and_absent_devices_are_one_line(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match=r"^there is no finding 'nothing'; known: small-rule$"):
        evidence.record(["nothing"], "cpu", top, judged)
    monkeypatch.setattr(exhibit, "cuda_name", lambda: None)
    with pytest.raises(SpecError, match=r"^device cuda was asked for, but torch finds no CUDA device here"):
        evidence.record(["small-rule"], "cuda", top, judged)


def test_the_records_of_this_repository_do_not_contradict_themselves() -> None:
    assert [(str(state.path), state.changes) for state in evidence.check() if state.validity == "inconsistent"] == []
