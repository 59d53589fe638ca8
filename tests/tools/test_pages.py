"""A malformed page ends in one line with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from memspec_tools.clauses import clause_hash
from memspec_tools.errors import SpecError
from memspec_tools.pages import examples, load_pages, read_page

PAGE = """---
slug: demo-rule
area: layout
kind: function
title: A demonstration
summary: Too early loses. Too late leaks.
status: merged
evidence: patch + tests
sources:
  - {system: vLLM, ref: "PR #1", date: 2026-08-01, first_release: 0.28.0, state: in 0.33.0}
reports: [2026-08-07]
---

## Problem

```pycon
>>> 1 + 1
2
```

## Rules

### Spans

The cleared length MUST be the page span,
not the stride.
{: #demo-rule.page-span .clause }

A short page MAY be kept.
{: #demo-rule.short-page .clause data-unchecked="nothing to observe" }

Withdrawn in 0.2.0.
{: #demo-rule.old-span .withdrawn data-successor="demo-rule.page-span" }

## Reference implementation

## Verification

<!-- memspec:verification -->

## Not specified

## What the evidence does not show

## Report notes

## Seen in the wild

## Cite

<!-- memspec:cite -->
"""


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str, name: str = "demo-rule", area: str = "layout") -> Path:
        path = tmp_path / area / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_page_in_order(write) -> None:
    page = read_page(write(PAGE))
    span, short = page.clauses
    assert (span.id, span.idea, span.level, span.decided_by) == ("demo-rule.page-span", "page-span", "MUST", "verify")
    assert span.text == "The cleared length MUST be the page span, not the stride."
    assert span.line == 25
    assert (short.level, short.unchecked) == ("MAY", "nothing to observe")
    assert [t.successor for t in page.tombstones] == ["demo-rule.page-span"]
    assert page.sources[0]["date"] == "2026-08-01"
    assert list(examples(page)) == [(17, ">>> 1 + 1\n2\n")]
    assert page.module == "memspec.layout.demo_rule"


def test_the_hash_folds_white_space_and_normalises() -> None:
    assert clause_hash("a  b\nc") == clause_hash("a b c")
    assert clause_hash("caf\u00e9") == clause_hash("cafe\u0301")
    assert clause_hash("a b") != clause_hash("a c")


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("---\nslug", "slug", 1, "begins with front matter"),
        ("kind: function\n", "", 2, "'kind' is a required property"),
        ("area: layout", "area: lay", 3, "'lay' is not one of"),
        ("status: merged", "status: done", 7, "'done' is not one of"),
        ("title: A demonstration", "title: [", 7, "not YAML"),
        ("title: A demonstration", "title: x\ntitle: y", 6, "'title' appears twice"),
        ("reports: [2026-08-07]", "reports: [August]", 11, "'August' does not match"),
        ("  - {system: vLLM, ref", "  - {sistem: vLLM, ref", 10, "'sistem' was unexpected"),
        ("slug: demo-rule\n", "slug: demo-rules\n", 2, "the file is layout/demo-rule.md"),
        ("#demo-rule.page-span", "#demo-rule.Page_Span", 27, "is not demo-rule.<idea>"),
        ("#demo-rule.page-span", "#other.page-span", 27, "is not demo-rule.<idea>"),
        ("#demo-rule.short-page", "#demo-rule.page-span", 30, "is taken by line 27"),
        ("length MUST be", "length SHALL be", 25, "uses the keyword 'SHALL'"),
        ("length MUST be", "length will be", 25, "has 0 keywords"),
        ("length MUST be", "length MUST and MUST be", 25, "has 2 keywords"),
        ("### Spans", "It MUST not be here.", 23, "MUST outside a clause"),
        (".clause data-unchecked", ".clause data-uncheckd", 30, "unknown attribute 'data-uncheckd'"),
        ('"nothing to observe"', '""', 30, "unchecked without a reason"),
        ("{: #demo-rule.page-span .clause }", "{: .clause #demo-rule.page-span }", 27, "a clause mark has the form"),
        ('data-successor="demo-rule.page-span"', "", 33, "needs data-successor"),
        ("## Rules", "## Rule", 21, "'Rule' stands where 'Rules' is due"),
        ("## Cite\n", "", 50, "'Cite' is next"),
        ("<!-- memspec:cite -->", "", 49, "needs the line <!-- memspec:cite -->"),
    ],
)
def test_what_is_out_of_order_is_told_with_its_line(write, old: str, new: str, line: int, told: str) -> None:
    assert PAGE.count(old) >= 1
    path = write(PAGE.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        read_page(path)
    assert told in str(caught.value)
    assert caught.value.line == line, str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text(write) -> None:
    path = write(PAGE)
    path.write_bytes(b"---\n\xff\xfe")
    with pytest.raises(SpecError, match=r":2: not UTF-8"):
        read_page(path)


def test_a_page_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "layout").mkdir()
    (tmp_path / "layout/folder.md").mkdir()
    with pytest.raises(SpecError, match=r"folder\.md: cannot be read"):
        load_pages(tmp_path)


@pytest.mark.parametrize("place", ["layuot/demo-rule.md", "layout/deeper/demo-rule.md"])
def test_a_page_outside_the_areas_is_not_overlooked(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(PAGE, encoding="utf-8")
    with pytest.raises(SpecError, match="the areas are capacity, layout"):
        load_pages(tmp_path)


def test_a_tombstone_names_a_living_clause(write, tmp_path: Path) -> None:
    write(PAGE.replace('successor="demo-rule.page-span"', 'successor="demo-rule.nowhere"'))
    with pytest.raises(SpecError, match=r"demo-rule\.md:33: .*'demo-rule\.nowhere', which is no clause"):
        load_pages(tmp_path)


def test_clauses_inside_fences_are_not_clauses(write) -> None:
    fenced = PAGE.replace("## Not specified", "```\nX MUST y.\n{: #demo-rule.fenced .clause }\n```\n\n## Not specified")
    assert len(read_page(write(fenced)).clauses) == 2
