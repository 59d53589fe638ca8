"""Clauses on a built page: level, permalink, verdict, cite box; and their entries for search and cross-references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memspec_tools.clauses import ClauseText
from memspec_tools.pages import Page
from memspec_tools.site.cite import Edition, clause_box
from memspec_tools.site.markup import attribute, counted, text, verdict

_PARAGRAPH = re.compile(
    r'<p\b(?P<attributes>[^>]*\bclass="(?P<kind>clause|withdrawn)"[^>]*)>(?P<body>.*?)</p>', re.DOTALL
)


def dress(
    html: str, page: Page, verdicts: Mapping[str, Mapping[str, Any]], since: Mapping[str, str], edition: Edition
) -> str:
    """``html`` with each clause's paragraph in a box of its own. ``verdicts``: clause id -> what `memspec verify` says of it."""
    clauses = {clause.id: clause for clause in page.clauses}
    successors = {tombstone.id: tombstone.successor for tombstone in page.tombstones}

    def replace(match: re.Match[str]) -> str:
        found = re.search(r'\bid="([^"]+)"', match["attributes"])
        name = found[1] if found else ""
        if name in clauses:
            return clause(page, clauses[name], match["body"], verdicts.get(name, {}), since.get(name, ""), edition)
        if name in successors:
            return tombstone(name, successors[name], match["body"])
        return match[0]

    return _PARAGRAPH.sub(replace, html)


def clause(page: Page, written: ClauseText, body: str, judged: Mapping[str, Any], since: str, edition: Edition) -> str:
    """One clause: its text, then one line of facts, then the cite box."""
    name = attribute(written.id)
    loud = body.replace(written.level, f'<strong class="ms-level">{written.level}</strong>', 1)
    facts = [
        f'<a class="ms-id" href="#{name}" title="Permanent link to this clause">{text(written.id)}</a>',
        outcome(written, judged),
    ]
    if broken_by := judged.get("broken_by"):
        facts.append(f'<a href="#verification">{counted(len(broken_by), "fault breaks", "faults break")} it</a>')
    notes = ""
    if written.unchecked:
        notes += f'<p class="ms-note"><b>No check decides this:</b> {text(written.unchecked)}</p>'
    if written.stricter:
        notes += f'<p class="ms-note"><b>Stricter than released versions:</b> {text(written.stricter)}</p>'
    return (
        f'<div class="ms-clause ms-clause--{written.level.split()[0].lower()}"><p class="clause" id="{name}">{loud}</p>{notes}'
        f'<p class="ms-clause__facts" data-search-exclude>{" ".join(facts)}</p>{clause_box(page, written, since, edition)}</div>'
    )


def outcome(written: ClauseText, judged: Mapping[str, Any]) -> str:
    """What this build found; a clause that tests decide says so."""
    if written.unchecked:
        return verdict("unchecked")
    return verdict(str(judged.get("verdict", "not-run"))) + (
        " <span>by tests of this build</span>" if written.decided_by == "test" else ""
    )


def tombstone(name: str, successor: str, body: str) -> str:
    """A withdrawn id keeps its place and names its successor."""
    link = (
        "It has no successor."
        if successor == "none"
        else f'See <autoref identifier="{attribute(successor)}">{text(successor)}</autoref>.'
    )
    told = f'<p class="withdrawn" id="{attribute(name)}"><b>Withdrawn:</b> {body} {link}</p>'
    return f'<div class="ms-clause ms-clause--withdrawn">{told}</div>'


def search_entries(page: Page, url: str) -> list[dict[str, Any]]:
    """An entry of its own for each clause; the theme's index has headings only. Boosted, else a clause hides below its page's entry."""
    return [
        {
            "location": f"{url}#{written.id}",
            "title": written.id,
            "text": f"{written.text} ({written.level}, {page.title})",
            "boost": 4,
        }
        for written in page.clauses
    ]
