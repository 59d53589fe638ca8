"""What marked tests decided: clauses that need another process. Kept between runs, and worth something only while nothing changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memspec_tools.kept import keep, read_kept
from memspec_tools.places import cache_dir, root

SEVERITY = ("fail", "crash", "not-run", "pass")


@dataclass(frozen=True)
class TestOutcome:
    """One marked test of this build: the clause it decides, or the fault that it shows to be caught."""

    __test__ = False

    test: str
    clause: str
    fault: str | None
    verdict: str  # "pass" | "fail" | "crash" | "not-run"
    detail: str = ""


def outcomes_path() -> Path:
    return cache_dir() / "outcomes.json"


def write_outcomes(outcomes: Iterable[TestOutcome], closures: Mapping[str, str]) -> None:
    """Replace what is known of each test that ran; ``closures`` says for which code of each finding (by slug) it was seen."""
    path = outcomes_path()
    kept = read_kept(path)
    for outcome in outcomes:
        kept[outcome.test + "|" + outcome.clause] = vars(outcome) | {
            "closure": closures.get(outcome.clause.partition(".")[0], "")
        }
    keep(path, dict(sorted(kept.items())))


def read_outcomes(slug: str, closure: str) -> list[TestOutcome]:
    """The outcomes of one finding's marked tests that were seen with exactly this code; older ones become "not-run"."""
    found: list[TestOutcome] = []
    if root() is None:
        return found
    for record in read_kept(outcomes_path()).values():
        if record["clause"].partition(".")[0] != slug:
            continue
        fields = {key: value for key, value in record.items() if key != "closure"}
        if record["closure"] != closure:
            fields |= {"verdict": "not-run", "detail": "stale: the code or the clauses changed since this test ran"}
        found.append(TestOutcome(**fields))
    return found
