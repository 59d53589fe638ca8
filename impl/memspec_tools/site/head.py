"""The head of a spec page, from its front matter."""

from __future__ import annotations

from memspec_tools.pages import AREAS, Page
from memspec_tools.site.markup import table, text

STATUS = {
    "rfc": "under discussion, nothing is merged",
    "report": "reported, and no merged fix is known",
    "merged": "the rule is in the upstream code",
    "superseded": "a later upstream rule took its place",
}
GRADES = {
    "proposal": "a proposal; nothing has been observed",
    "reporter's claim": "claimed by a reporter; not reproduced by us",
    "patch + tests": "an upstream patch with tests of its own",
    "observed in release": "observed by executing a released version",
}


def page_head(page: Page, ran: str) -> str:
    """Title, summary, facts and sources as Markdown with HTML inside. ``ran`` says on which devices this finding has run."""
    facts = {
        "Question": f"{AREAS[page.area]} ({page.area})",
        "Status": f"{page.status}: {STATUS[page.status]}",
        "Evidence": f"{page.evidence}: {GRADES[page.evidence]}",
        "Has run on": ran,
        "Clauses": ", ".join(f"{count} {level}" for level, count in levels(page).items()) or "none",
    }
    if page.reports:
        facts["Reported"] = ", ".join(page.reports)
    listed = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in facts.items())
    sources = table(
        ["System", "Reference", "Date", "First release", "State"],
        [
            [text(s.get(key) or "–") for key in ("system", "ref", "date", "first_release", "state")]
            for s in page.sources
        ],
        "Sources",
        "ms-sources",
    )
    return (
        f'# {page.title}\n\n<p class="ms-summary">{text(page.summary)}</p>\n\n<dl class="ms-facts" data-search-exclude>{listed}</dl>\n\n'
        f'<details class="ms-box" data-search-exclude open><summary>Sources</summary>{sources}</details>\n\n'
    )


def levels(page: Page) -> dict[str, int]:
    """Level -> number of clauses, in the order of RFC 2119's strength."""
    order = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY")
    count = {level: sum(clause.level == level for clause in page.clauses) for level in order}
    return {level: number for level, number in count.items() if number}
