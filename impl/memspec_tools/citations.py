"""How a clause is cited. The address comes from SITE_URL, so that every copy of the site cites itself."""

from __future__ import annotations

import os

from memspec_tools.clauses import ClauseText
from memspec_tools.pages import Page

DEFAULT_SITE_URL = "http://localhost:8000/"


def site_url() -> str:
    return os.environ.get("SITE_URL", DEFAULT_SITE_URL).rstrip("/") + "/"


def permalink(page: Page, clause: ClauseText) -> str:
    return f"{site_url()}spec/{page.area}/{page.slug}/#{clause.id}"


def citations(page: Page, clause: ClauseText, since: str) -> dict[str, str]:
    """The clause as Markdown, BibTeX and source comment. ``since`` is the version since which this text stands."""
    key = clause.id.replace(".", ":")
    note = f"memspec clause {clause.id}@{clause.hash}, {clause.level}, since version {since}"
    fields = {
        "title": f"{page.title}: {clause.idea}",
        "author": "{The memspec authors}",
        "note": note,
        "url": permalink(page, clause),
    }
    lines = "".join(f",\n  {name} = {{{value}}}" for name, value in fields.items())
    return {
        "markdown": f"[{clause.id}@{clause.hash}]({permalink(page, clause)}) (memspec {since})",
        "bibtex": f"@misc{{memspec:{key}{lines}\n}}",
        "comment": f"memspec:{clause.id}@{clause.hash}",
    }
