"""How to cite a finding or one clause of it: Markdown, BibTeX, and a comment for source code."""

from __future__ import annotations

from dataclasses import dataclass

from memspec_tools.citations import citations
from memspec_tools.clauses import ClauseText
from memspec_tools.pages import Page
from memspec_tools.site.markup import block, code, details, table, text

NAMES = {"permalink": "Permalink", "markdown": "Markdown", "bibtex": "BibTeX", "comment": "Comment for source code"}


@dataclass(frozen=True)
class Edition:
    """What every citation of one build shares. ``base`` is the site's address with a slash at its end; ``date`` may be empty."""

    version: str
    base: str
    date: str = ""

    def address(self, page: Page, anchor: str = "") -> str:
        return f"{self.base}spec/{page.area}/{page.slug}/" + (f"#{anchor}" if anchor else "")


def markdown(title: str, edition: Edition, address: str, mark: str = "") -> str:
    return f"[{title}]({address}) (memspec {edition.version}{', ' + edition.date if edition.date else ''}{', ' + mark if mark else ''})"


def bibtex(key: str, title: str, edition: Edition, address: str, note: str = "") -> str:
    fields = {
        "title": "{" + title + "}",
        "author": "{The memspec authors}",
        "year": edition.date[:4],
        "version": edition.version,
        "url": address,
        "note": note,
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{key},", *lines, "}"])


def clause_box(page: Page, clause: ClauseText, since: str, edition: Edition) -> str:
    """The cite box of one clause: facts in a table, then each format in a block that can be copied. ``since`` is empty for a new clause."""
    facts = table(
        ["Level", "Text hash", "Since", "This edition"],
        [[text(clause.level), code(clause.hash), text(since or "not locked yet"), text(edition.version)]],
        f"Facts to cite {clause.id}",
    )
    texts = {"permalink": edition.address(page, clause.id)} | citations(page, clause, since or edition.version)
    formats = "".join(
        f'<p class="ms-cite__format">{NAMES.get(name, name)}</p>{block(source, "bibtex" if name == "bibtex" else "text")}'
        for name, source in texts.items()
    )
    return details("ms-cite", "Cite", clause.id, facts + formats)


def page_box(page: Page, edition: Edition) -> str:
    """The section "Cite" of a page."""
    address = edition.address(page)
    return (
        f"<p>Cite a clause by its id and text hash: its own box, under the clause, has the texts. The whole finding:</p>"
        f"{block(markdown(f'memspec: {page.title}', edition, address), 'text')}"
        f"{block(bibtex(f'memspec-{page.slug}', page.title, edition, address, f'memspec {page.slug}'), 'bibtex')}"
        f"<p>Sources are named above as text; memspec states the rules in its own words.</p>"
    )
