"""Small pieces of HTML: escaped text, verdicts in words and symbols, tables that scroll inside their own box."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

# outcome -> (CSS suffix, symbol, word). The word always stands beside the colour.
OUTCOMES = {
    "pass": ("pass", "✓", "holds"),
    "fail": ("fail", "✗", "broken"),
    "crash": ("crash", "⚡", "crash"),
    "not-run": ("open", "–", "not run"),
    "not-exercised": ("open", "○", "not exercised"),
    "unchecked": ("open", "?", "unchecked"),
}


def text(value: object) -> str:
    """``value`` as text of a page."""
    return escape(str(value), quote=False)


def attribute(value: object) -> str:
    """``value`` inside double quotes."""
    return escape(str(value), quote=True)


def code(value: object) -> str:
    return f"<code>{text(value)}</code>"


def plain(value: Any, limit: int = 2000) -> str:
    """A case or a detail as one string; what is cut off is said, never dropped in silence."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= limit else f"{shown[:limit]} … ({len(shown) - limit:,} more characters)"


def verdict(outcome: str) -> str:
    """The badge of an outcome: symbol and word."""
    return badge(outcome, OUTCOMES[outcome][2])


def badge(outcome: str, words: str) -> str:
    """``words`` in the colour and with the symbol of an outcome."""
    suffix, symbol, _ = OUTCOMES[outcome]
    return (
        f'<span class="ms-verdict ms-verdict--{suffix}"><span aria-hidden="true">{symbol}</span> {text(words)}</span>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], label: str, css: str = "") -> str:
    """A table in a box of its own that scrolls sideways, by keyboard too. The cells are HTML; the first of a row is its heading."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        "<tr>"
        + "".join(f'<th scope="row">{cell}</th>' if i == 0 else f"<td>{cell}</td>" for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="ms-scroll" role="region" tabindex="0" aria-label="{attribute(label)}">'
        f'<table class="ms-table {css}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def event_table(rows: Sequence[dict[str, Any]], label: str) -> str:
    """A counterexample's events, one row each; a column for every key in the order in which it first appears."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = (
        [str(number), *(text(plain(row[key])) if key in row else "" for key in columns)]
        for number, row in enumerate(rows, 1)
    )
    return table(["#", *(text(column) for column in columns)], cells, label, "ms-events")


def block(source: str, language: str) -> str:
    """A block of source with the theme's copy button."""
    return f'<div class="language-{language} highlight"><pre><code>{text(source)}</code></pre></div>'


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def details(css: str, summary: str, about: str, body: str) -> str:
    """A box that opens without scripts; ``about`` completes the summary for those who hear it out of its place."""
    hidden = f'<span class="ms-hidden"> {text(about)}</span>' if about else ""
    return f'<details class="{css}" data-search-exclude><summary>{text(summary)}{hidden}</summary>{body}</details>'


def heading(level: int, anchor: str, inner: str) -> str:
    """A heading with its permalink, as the Markdown of the site makes them. ``inner`` is HTML."""
    link = f'<a class="headerlink" href="#{attribute(anchor)}" title="Link to this heading">¶</a>'
    return f'<h{level} id="{attribute(anchor)}">{inner}{link}</h{level}>'
