from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from memspec_tools.clauses import ClauseText, Tombstone, clause_hash
from memspec_tools.errors import SpecError
from memspec_tools.lock import differences, read_lock, renew
from memspec_tools.pages import Page


def clause(idea: str, text: str, level: str = "MUST") -> ClauseText:
    return ClauseText(f"demo.{idea}", level, text, 7, clause_hash(text))  # type: ignore[arg-type]


def page(*clauses: ClauseText, tombstones: tuple[Tombstone, ...] = ()) -> Page:
    where = Path("spec/layout/demo.md")
    return Page("demo", "layout", "function", "t", "s", "merged", "proposal", (), (), where, "", 1, clauses, tombstones)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "clauses.lock"


def test_a_renewed_lock_holds_and_keeps_since(lock: Path) -> None:
    first = [page(clause("a", "a MUST."), clause("b", "b MUST."))]
    renew(first, "0.1.0", lock)
    assert differences(first, "0.2.0", lock) == []
    changed = [page(clause("a", "a MUST."), clause("b", "b MUST really."))]
    assert differences(changed, "0.2.0", lock)[0].startswith("spec/layout/demo.md:7: demo.b changed: locked MUST")
    renew(changed, "0.2.0", lock)
    assert {e.id: e.since for e in read_lock(lock).values()} == {"demo.a": "0.1.0", "demo.b": "0.2.0"}


def test_a_change_of_level_is_a_change(lock: Path) -> None:
    renew([page(clause("a", "a."))], "0.1.0", lock)
    loosened = [page(replace(clause("a", "a."), level="SHOULD"))]
    assert "locked MUST" in differences(loosened, "0.1.0", lock)[0]


def test_new_clauses_are_told(lock: Path) -> None:
    assert "is new and not in the lock" in differences([page(clause("a", "a."))], "0.1.0", lock)[0]


def test_an_id_does_not_vanish_without_a_tombstone(lock: Path) -> None:
    renew([page(clause("a", "a."), clause("b", "b."))], "0.1.0", lock)
    with pytest.raises(SpecError, match=r"demo\.b is gone without a tombstone"):
        renew([page(clause("a", "a."))], "0.2.0", lock)
    buried = [page(clause("a", "a."), tombstones=(Tombstone("demo.b", "demo.a", 9),))]
    renew(buried, "0.2.0", lock)
    assert read_lock(lock)["demo.b"].level == "withdrawn"
    assert differences(buried, "0.3.0", lock) == []


def test_a_withdrawn_id_is_never_reused(lock: Path) -> None:
    renew([page(clause("a", "a."), tombstones=(Tombstone("demo.b", "demo.a", 9),))], "0.1.0", lock)
    before = lock.read_text()
    with pytest.raises(SpecError, match="never reused"):
        renew([page(clause("a", "a."), clause("b", "b."))], "0.2.0", lock)
    assert lock.read_text() == before


def test_a_lock_that_is_no_text_names_its_line(lock: Path) -> None:
    lock.write_bytes(b"# head\n\xff\xfe\n")
    with pytest.raises(SpecError, match=r":2: not UTF-8"):
        read_lock(lock)


@pytest.mark.parametrize(
    ("text", "told"), [("demo.a | MUST\n", "is 'id | level"), ("a | M | h | 1\na | M | h | 1\n", "twice")]
)
def test_a_malformed_lock_names_its_line(lock: Path, text: str, told: str) -> None:
    lock.write_text("# head\n" + text)
    with pytest.raises(SpecError, match=told) as caught:
        read_lock(lock)
    assert caught.value.line == 1 + len(text.splitlines())
