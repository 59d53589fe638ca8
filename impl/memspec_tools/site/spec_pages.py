"""A spec page in, a page of the site out: once as Markdown, once as HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memspec_tools.pages import Page
from memspec_tools.site import clauses, diagram, exports, verification
from memspec_tools.site.cite import page_box
from memspec_tools.site.content import Content
from memspec_tools.site.head import page_head
from memspec_tools.site.markup import text
from memspec_tools.site.results import DIAGRAM

VERIFICATION = "<!-- memspec:verification -->"
CITE = "<!-- memspec:cite -->"


def markdown(page: Page, ran: str, example: str = "") -> str:
    """The page's Markdown with its head. ``example`` is the address of its gallery page, relative to this one, or empty."""
    link = (
        f'<p class="ms-data">Executed example: <a href="{example}">figures, output and downloads</a>.</p>\n\n'
        if example
        else ""
    )
    return page_head(page, ran) + link + page.body + "\n\n" + exports.page_links(page) + "\n"


def html(rendered: str, page: Page, content: Content, records: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> str:
    """The rendered page with its markers filled and its clauses dressed."""
    found = content.report.get(page.slug)
    diagrams = (found or {}).get("diagrams") or {}
    filled = (
        rendered.replace(VERIFICATION, verification.section(page, found, records))
        .replace(CITE, page_box(page, content.edition))
        .replace(
            DIAGRAM,
            diagram.named_sections(diagrams)
            if diagrams
            else '<p class="ms-note">The exploration has not run in this build.</p>',
        )
    )
    return clauses.dress(filled, page, content.verdicts(page.slug), content.since, content.edition)


def troubled(source: str, why: str) -> str:
    """A page's Markdown with the trouble above it, and without source code, which may be what cannot be read."""
    return f"{failure(why)}\n\n" + re.sub(
        r"^::: (\S+)$", r"`\1` is not shown while that is so.", source, flags=re.MULTILINE
    )


def failure(why: str) -> str:
    """What a server shows in place of a page that cannot be read, as HTML."""
    title = '<p class="admonition-title">This cannot be shown as it stands</p>'
    return f'<div class="admonition failure">{title}<pre><code>{text(why)}</code></pre></div>'
