"""The command as a person uses it: exit codes 0, 1, 2, one line for bad input, the README's own subject."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from memspec_tools.citations import citations
from memspec_tools.cli import main
from memspec_tools.findings import load_findings
from memspec_tools.places import root

SLUG, CLAUSE = "packed-block-zeroing", "packed-block-zeroing.page-span"
TOP = root() or Path()


@pytest.fixture
def memspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, words)


def write(module: str, source: str) -> str:
    Path(f"{module}.py").write_text(source, encoding="utf-8")
    return module


def test_list_names_findings_and_clauses(memspec) -> None:
    assert SLUG in memspec("list").output
    assert CLAUSE in memspec("list", SLUG).output


def test_show_tells_text_hash_and_what_breaks_it(memspec) -> None:
    told = memspec("show", CLAUSE)
    assert told.exit_code == 0
    assert re.search(r"@[0-9a-f]{8}", told.output)
    assert "broken by" in told.output
    assert "decided by: verify" in told.output
    assert "packed" in memspec("show", SLUG).output.lower()


def test_cite_in_three_forms(memspec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_URL", "https://spec.example/1.0")
    page = next(f.page for f in load_findings() if f.slug == SLUG)
    clause = next(c for c in page.clauses if c.id == CLAUSE)
    told = memspec("cite", CLAUSE).output
    assert f"https://spec.example/1.0/spec/layout/{SLUG}/#{CLAUSE}" in told
    assert f"memspec:{CLAUSE}@{clause.hash}" in told
    assert "@misc{" in told
    assert memspec("cite", CLAUSE, "--format", "comment").output.strip() == citations(page, clause, "0")["comment"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "nothing"), "there is no finding 'nothing'"),
        (("show", "packed-block-zeroing.nothing"), "there is no clause"),
        (("cite", "nothing.here"), "there is no clause"),
        (("check", "nothing"), "there is no finding 'nothing'; known: "),
        (("check", SLUG, "--subject", "nowhere"), "no module 'nowhere' on the path"),
        (("check", SLUG, "--subject", "json:nothing"), "json has no 'nothing'"),
        (("check", SLUG, "--subject", "json"), "nothing was decided: the subject has no"),
        (("verify", "nothing"), "there is no finding"),
        (("list", "nothing"), "there is no finding"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(memspec, words: tuple[str, ...], told: str) -> None:
    result = memspec(*words)
    assert result.exit_code == 2, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert told in errors[0]


def test_an_unknown_command_is_bad_input(memspec) -> None:
    assert memspec("frobnicate").exit_code == 2
    assert memspec("check").exit_code == 2


@pytest.mark.parametrize(
    "source", ["raise RuntimeError('no engine')", "import sys; sys.exit(0)", "def make(a, b): ..."]
)
def test_a_subject_that_cannot_be_had_is_bad_input(memspec, source: str) -> None:
    name = write(f"bad_subject_{abs(hash(source))}", source)
    result = memspec("check", SLUG, "--subject", f"{name}:make")
    assert result.exit_code == 2, result.output
    assert result.stderr.count("error:") == 1


def test_the_subject_of_the_readme_is_caught(memspec) -> None:
    readme = (TOP / "README.md").read_text(encoding="utf-8")
    source = re.search(r"```python\n# toy\.py\n(.*?)```", readme, re.DOTALL)
    assert source
    name = write("readme_toy", source[1])
    result = memspec("check", SLUG, "--subject", f"{name}:Zeroer", "--json")
    assert result.exit_code == 1, result.output
    verdicts = {c["id"]: c["verdict"] for c in json.loads(result.stdout)["clauses"]}
    assert verdicts["packed-block-zeroing.neighbours-untouched"] == "fail"
    assert verdicts["packed-block-zeroing.inside-the-allocation"] == "fail"
    assert "crash" not in verdicts.values()
    assert "not-run" in verdicts.values()


def test_a_check_quotes_what_is_broken_and_says_where_to_read_on(memspec) -> None:
    name = write("idle_subject", "class Zeroer:\n    def clear(self, *rest): ...\n")
    told = memspec("check", SLUG, "--subject", f"{name}:Zeroer").output
    assert "Every byte of every element of the listed blocks MUST be zero afterwards." in told
    assert re.search(r"\d+ clauses hold, \d+ do not \(\d+ of them decide the exit code\), \d+ not decided\.", told)
    assert f"memspec show {SLUG}.every-due-byte" in told
    methods = memspec("show", SLUG).output
    assert (
        "clear(self, arena: bytearray, base: int, views: Sequence[View], block_ids: Sequence[int]) -> None" in methods
    )
    assert f"memspec show {SLUG} " in told


def test_a_subject_that_can_be_made_once_only_is_a_crash(memspec) -> None:
    source = "import sys\nmade = []\ndef make():\n    made.append(1) if not made else sys.exit(0)\n"
    name = write("once_only", source + "    class Zeroer:\n        def clear(self, *rest): ...\n    return Zeroer()\n")
    result = memspec("check", SLUG, "--subject", f"{name}:make")
    assert result.exit_code == 1
    assert "making the subject: SystemExit" in result.output


def test_a_citation_is_understood_whole(memspec) -> None:
    now = re.search(r"@([0-9a-f]{8})", memspec("show", CLAUSE).output)
    assert now
    assert memspec("show", f"memspec:{CLAUSE}@{now[1]}").stderr == ""
    stale = memspec("cite", f"memspec:{CLAUSE}@00000000")
    assert stale.exit_code == 0
    assert f"was cited as @00000000; its text is another now, @{now[1]}" in stale.stderr


def test_an_installed_package_keeps_no_results(memspec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memspec_tools.verify.root", lambda: None)
    result = memspec("verify", SLUG, "--cached")
    assert result.exit_code == 2
    assert "--cached needs a checkout" in result.stderr


def test_a_hanging_and_a_babbling_subject(memspec) -> None:
    name = write("hanging_subject", "class Zeroer:\n    def clear(self, *rest):\n        while True: pass\n")
    result = memspec("check", SLUG, "--subject", f"{name}:Zeroer", "--limit", "0.3")
    assert result.exit_code == 1
    assert "no verdict within 0.3 s" in result.output
    name = write("babbling_subject", "class Zeroer:\n    def clear(self, *rest):\n        print('\\x00{rubbish')\n")
    result = memspec("check", SLUG, "--subject", f"{name}:Zeroer", "--json")
    assert result.exit_code == 1
    json.loads(result.stdout)


def test_check_without_subject_is_green_and_json_is_json(memspec) -> None:
    result = memspec("check", SLUG, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert {f["verdict"] for f in report["faults"]} <= {"caught", "redundant", "not-run"}


def test_verify_prints_the_promised_json(memspec) -> None:
    result = memspec("verify", SLUG, "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0, result.output
    assert {"memspec", "device", "findings"} <= set(report)
    (finding,) = report["findings"]
    assert {"slug", "area", "kind", "clauses", "faults", "vectors"} <= set(finding)
    for clause in finding["clauses"]:
        assert {"id", "level", "hash", "verdict", "decided_by", "broken_by"} <= set(clause)
        assert clause["verdict"] in {"pass", "fail", "crash", "not-run", "not-exercised", "unchecked"}
        assert clause["decided_by"] in {"verify", "test"}
    for fault in finding["faults"]:
        assert {"name", "seen_in", "breaks", "verdict"} <= set(fault)
    assert finding["vectors"]["failed"] == []


def test_cuda_without_cuda_is_bad_input(memspec) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    result = memspec("verify", SLUG, "--device", "cuda")
    assert result.exit_code == 2
    assert "no CUDA device" in result.stderr


def test_lock_check_is_quiet_when_the_lock_holds(memspec) -> None:
    assert memspec("lock", "--check").exit_code == 0
