"""The plain functions under the plugin, on made-up reports: what a page says when things did not go well."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from memspec_tools.clauses import ClauseText
from memspec_tools.evidence import FindingEvidence, RecordState
from memspec_tools.gallery_html import Heading
from memspec_tools.pages import Page
from memspec_tools.site import clauses, diagram, gallery_pages, gallery_records, home, markup, spec_pages, verification
from memspec_tools.site.cite import Edition, page_box

EDITION = Edition("1.2.3", "https://example.org/memspec/", "2026-11-29")


def clause(idea: str, level: Any = "MUST", **more: Any) -> ClauseText:
    return ClauseText(f"some-finding.{idea}", level, f"A thing {level} hold.", 10, "0123abcd", **more)


def finding(*written: ClauseText) -> Page:
    return Page("some-finding", "layout", "function", "Some <finding>", "Too much loses. Too little leaks.", "merged", "patch + tests",
                ({"system": "X", "ref": "PR #1"},), (), Path("spec/layout/some-finding.md"), "", 1, written, ())  # fmt: skip


def report(*written: ClauseText, verdict: str = "pass", faults: tuple[Any, ...] = ()) -> dict[str, Any]:
    judged = [
        {
            "id": c.id,
            "verdict": verdict,
            "cases": 3,
            "detail": "why",
            "broken_by": ["twin"],
            "implementations": {"reference": {"verdict": verdict, "detail": "why"}},
        }
        for c in written
    ]
    return {"clauses": judged, "faults": list(faults), "vectors": {"valid": 2, "invalid": 1, "failed": ["one"]}}


@pytest.mark.parametrize("outcome", ["not-run", "not-exercised", "fail", "crash"])
def test_what_did_not_pass_is_never_shown_as_passed(outcome: str) -> None:
    one = clause("idea")
    shown = verification.section(finding(one), report(one, verdict=outcome))
    assert "ms-verdict--pass" not in shown
    assert markup.OUTCOMES[outcome][2] in shown
    assert "why" in shown
    assert "0 of 1 clause hold" in shown
    assert "2 of 3 vectors" in shown
    assert "ms-verdict--pass" not in home.live(report(one, verdict=outcome))[0]


def test_an_unchecked_clause_gives_its_reason_even_if_something_ran() -> None:
    one = clause("idea", unchecked="nobody can see it")
    shown = verification.section(finding(one), report(one))
    assert "ms-verdict--pass" not in shown
    assert "nobody can see it" in shown


def test_a_clause_decided_by_tests_is_shown_in_a_column_of_its_own() -> None:
    one = clause("idea", decided_by="test")
    found = report(one, verdict="pass")
    found["clauses"][0]["implementations"] = {}
    shown = verification.section(finding(one), found)
    assert "Tests of this build" in shown
    assert "holds" in shown


def test_a_finding_without_results_says_so() -> None:
    assert "not verified" in verification.section(finding(clause("idea")), None)
    assert "not run" in home.live(None)[0]


def fault(**more: Any) -> dict[str, Any]:
    cell = {
        "verdict": "fail",
        "case": "<case>",
        "detail": "saw 1, due 2",
        "trace": [{"event": "send", "owner": "a"}, {"event": "lose", "page": 3}],
    }
    told = {"name": "twin", "origin": "released", "seen_in": "X 1.0", "note": "Somebody <did> it.", "masked_by": ""}
    return told | {"breaks": ["some-finding.idea"], "verdict": "caught", "matrix": {"some-finding.idea": cell}} | more


def test_a_fault_shows_origin_note_and_counterexample_as_event_table() -> None:
    one = clause("idea")
    shown = verification.section(finding(one), report(one, faults=(fault(),)))
    for due in ("released", "X 1.0", "Somebody &lt;did&gt; it.", "&lt;case&gt;", "saw 1, due 2", "caught"):
        assert due in shown
    table = shown[shown.index("ms-events") :]
    assert re.findall(r'<th scope="col">(.*?)</th>', table)[:4] == ["#", "event", "owner", "page"]
    assert "<case>" not in shown


def test_a_missed_fault_and_a_masked_one_are_told_apart() -> None:
    one = clause("idea")
    page = finding(one)
    missed = verification.fault(
        page, fault(verdict="missed", matrix={"some-finding.idea": {"verdict": "crash", "detail": "x"}})
    )
    assert "ms-verdict--fail" in missed
    assert "Declared, not broken" in missed
    masked = verification.fault(page, fault(verdict="redundant", breaks=[], matrix={}, masked_by="the size check"))
    assert "the size check" in masked
    assert "ms-verdict--fail" not in masked
    assert "ms-verdict--pass" not in masked


def test_a_long_case_says_how_much_of_it_is_missing() -> None:
    assert markup.plain("x" * 50, 20).endswith("(30 more characters)")


def test_clauses_are_dressed_and_tombstones_name_their_successor() -> None:
    from memspec_tools.pages import Tombstone

    one = clause("idea", "MUST NOT", stricter="releases warn")
    page = Page(**(vars(finding(one)) | {"tombstones": (Tombstone("some-finding.old", "some-finding.idea", 3),)}))
    source = '<p class="clause" data-stricter="x" id="some-finding.idea">A thing MUST NOT hold.</p>'
    source += '<p class="withdrawn" id="some-finding.old">Gone.</p>'
    shown = clauses.dress(
        source,
        page,
        {"some-finding.idea": {"verdict": "pass", "broken_by": ["a", "b"]}},
        {"some-finding.idea": "1.0"},
        EDITION,
    )
    assert '<strong class="ms-level">MUST NOT</strong>' in shown
    assert "releases warn" in shown
    assert "2 faults break it" in shown
    assert "memspec:some-finding.idea@0123abcd" in shown
    assert '<autoref identifier="some-finding.idea">' in shown
    assert clauses.dress("<p>x</p>", page, {}, {}, EDITION) == "<p>x</p>"


def test_a_citation_has_version_date_and_address() -> None:
    shown = page_box(finding(), EDITION)
    for due in ("1.2.3", "2026-11-29", "year = {2026}", "https://example.org/memspec/spec/layout/some-finding/"):
        assert due in shown


def test_a_state_diagram_joins_events_and_keeps_its_syntax_clean() -> None:
    source = diagram.mermaid([("a", "go", "b"), ("a", "run", "b"), ("b", 'stop: "now"; or later', "a")])
    assert "s0 --> s1: go / run" in source
    assert source.count(":") == 2
    assert ";" not in source
    table = diagram.section([("a", "go", "b")], "Name")
    assert "The diagram as a table" in table
    assert "<td>go</td>" in table


def record_state(validity: Any, changes: tuple[str, ...] = ()) -> RecordState:
    record = {
        "device": {"kind": "cuda", "class": "h200", "name": "NVIDIA H200", "driver": "1"},
        "versions": {"torch": "2"},
        "recorded": "2026-11-01T00:00:00Z",
        "commit": {"id": "a" * 40, "dirty": False},
        "clauses": [{"id": "some-finding.idea", "verdict": "pass"}],
        "metrics": [],
        "stdout": "printed",
        "figures": {"plot_some_finding_001.svg": "0" * 64},
        "duration": {"seconds": 2.0, "note": "not a benchmark"},
    }
    return RecordState(
        Path("gallery/recorded/h200/some-finding/record.json"), "h200", "some-finding", validity, changes, record
    )


def test_a_valid_record_is_shown_under_its_device_and_gives_a_column() -> None:
    evidence = FindingEvidence("some-finding", (record_state("valid"),), "ran on NVIDIA H200")
    shown = gallery_records.section(evidence)
    assert "Recorded: NVIDIA H200" in shown
    assert "1 of 1 clause held" in shown
    assert "Stale" not in shown
    assert list(gallery_records.assets(evidence)) == ["gallery/recorded/h200/some-finding/plot_some_finding_001.svg"]
    one = clause("idea")
    assert "NVIDIA H200, recorded" in verification.section(
        finding(one), report(one), gallery_records.verdicts(evidence)
    )


def test_a_stale_record_names_what_changed_and_verifies_nothing() -> None:
    evidence = FindingEvidence("some-finding", (record_state("stale", ("kernels changed",)),), "")
    shown = gallery_records.section(evidence)
    assert "Stale" in shown
    assert "kernels changed" in shown
    assert gallery_records.verdicts(evidence) == []


def test_an_inconsistent_record_is_left_out_with_the_reason() -> None:
    evidence = FindingEvidence("some-finding", (record_state("inconsistent", ("the figure is missing",)),), "")
    shown = gallery_records.section(evidence)
    assert "the figure is missing" in shown
    assert "has not run on CUDA yet" in shown
    assert gallery_records.assets(evidence) == {}


def test_headings_nest_by_level() -> None:
    roots = gallery_pages.nested(
        [Heading(1, "a", "A"), Heading(2, "b", "B"), Heading(3, "c", "C"), Heading(2, "d", "D")]
    )
    assert [child["id"] for child in roots[0]["children"]] == ["b", "d"]
    assert roots[0]["children"][0]["children"][0]["id"] == "c"


def test_trouble_stands_above_the_page_and_hides_code_that_may_not_parse() -> None:
    shown = spec_pages.troubled("# Page\n\n::: memspec.layout.x.reference\n", "spec/a.md:3: <bad>")
    assert shown.index("spec/a.md:3: &lt;bad&gt;") < shown.index("# Page")
    assert ":::" not in shown
