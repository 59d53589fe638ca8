"""Spec pages: front matter by schema, sections in their order, clauses, worked examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memspec_tools.clauses import ClauseText, Tombstone, read_clauses
from memspec_tools.documents import read_text, read_yaml
from memspec_tools.errors import SpecError
from memspec_tools.places import spec_dir

AREAS = {
    "capacity": "Whose space is counted, in which unit?",
    "layout": "Which bytes, where, and in what state?",
    "ordering": "Who owns it, and when is it done?",
    "compatibility": "Who may reuse it, and who decides?",
}
SECTIONS = (
    "Problem",
    "Rules",
    "Reference implementation",
    "Verification",
    "Not specified",
    "What the evidence does not show",
    "Report notes",
    "Seen in the wild",
    "Cite",
)
MARKERS = {"Verification": "<!-- memspec:verification -->", "Cite": "<!-- memspec:cite -->"}

_text = {"type": "string", "minLength": 1}
FRONT_MATTER: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["slug", "area", "kind", "title", "summary", "status", "evidence", "sources", "reports"],
    "properties": {
        "slug": {"type": "string", "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$"},
        "area": {"enum": list(AREAS)},
        "kind": {"enum": ["function", "protocol", "memory"]},
        "title": _text,
        "summary": _text,
        "status": {"enum": ["rfc", "report", "merged", "superseded"]},
        "evidence": {"enum": ["proposal", "reporter's claim", "patch + tests", "observed in release"]},
        "sources": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["system", "ref"],
                "properties": {
                    "system": _text,
                    "ref": _text,
                    "date": {"type": "string", "pattern": r"^\d{4}-\d{2}(-\d{2})?$"},
                    "first_release": {"type": ["string", "null"]},
                    "state": _text,
                },
            },
        },
        "reports": {"type": "array", "items": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}},
    },
}


@dataclass(frozen=True)
class Page:
    slug: str
    area: str
    kind: str
    title: str
    summary: str
    status: str
    evidence: str
    sources: tuple[dict[str, str], ...]
    reports: tuple[str, ...]
    path: Path
    body: str
    body_line: int
    clauses: tuple[ClauseText, ...]
    tombstones: tuple[Tombstone, ...]

    @property
    def module(self) -> str:
        return f"memspec.{self.area}.{self.slug.replace('-', '_')}"


def page_paths(folder: Path | None = None) -> list[Path]:
    """The files of all findings, in the order of the areas, then by slug."""
    top = folder or spec_dir()
    return [path for area in AREAS for path in sorted((top / area).glob("*.md"))]


def load_pages(folder: Path | None = None) -> list[Page]:
    """All pages. Raises SpecError for a malformed one, for an id that two pages claim, and for a page that lies in no area."""
    top = folder or spec_dir()
    for path in sorted(top.glob("*/**/*.md")):
        if (path.parent.parent != top or path.parent.name not in AREAS) and path.relative_to(top).parts[0] != "vectors":
            raise SpecError(path, None, f"a page lies in the folder of its area; the areas are {', '.join(AREAS)}")
    pages = [read_page(path) for path in page_paths(folder)]
    owners: dict[str, str] = {}
    for page in pages:
        if page.slug in owners:
            raise SpecError(page.path, 2, f"the slug {page.slug!r} is taken by {owners[page.slug]}")
        owners[page.slug] = page.path.name
    known = {clause.id for page in pages for clause in page.clauses} | {t.id for page in pages for t in page.tombstones}
    for page in pages:
        for tombstone in page.tombstones:
            if tombstone.successor != "none" and tombstone.successor not in known:
                raise SpecError(
                    page.path,
                    tombstone.line,
                    f"{tombstone.id} names the successor {tombstone.successor!r}, which is no clause",
                )
    return pages


def read_page(path: Path) -> Page:
    """Parse one page. Raises SpecError with file and line for anything that is out of order."""
    lines = read_text(path).splitlines()
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        raise SpecError(path, 1, "a page begins with front matter between two lines of ---")
    end = lines.index("---", 1)
    front, _ = read_yaml("\n".join(lines[1:end]), path, FRONT_MATTER, first_line=2)
    slug, area = front["slug"], front["area"]
    if (path.parent.name, path.stem) != (area, slug):
        raise SpecError(path, 2, f"slug and area say {area}/{slug}.md, the file is {path.parent.name}/{path.name}")
    body = "\n".join(lines[end + 1 :])
    clauses, tombstones = read_clauses(path, slug, lines, end + 1)
    _check_sections(path, lines, end + 1)
    return Page(
        slug,
        area,
        front["kind"],
        front["title"],
        " ".join(front["summary"].split()),
        front["status"],
        front["evidence"],
        tuple(front["sources"]),
        tuple(front["reports"]),
        path,
        body,
        end + 2,
        tuple(clauses),
        tuple(tombstones),
    )


def examples(page: Page) -> Iterator[tuple[int, str]]:
    """The ``pycon`` blocks of a page: line in the file and source text."""
    fence: str | None = None
    start, block = 0, list[str]()
    for number, line in enumerate(page.body.splitlines(), page.body_line):
        mark = re.match(r"\s*(`{3,})(.*)$", line)
        if fence is None and mark and mark[2].strip().split(" ")[0] == "pycon":
            fence, start, block = mark[1], number + 1, []
        elif fence is not None and mark and mark[1] == fence and not mark[2].strip():
            fence = None
            yield start, "\n".join(block) + "\n"
        elif fence is not None:
            block.append(line)


def _check_sections(path: Path, lines: list[str], start: int) -> None:
    fenced = False
    found: list[tuple[str, int]] = []
    for number, line in enumerate(lines[start:], start + 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and line.startswith("## "):
            found.append((line[3:].strip(), number))
    for due, (seen, number) in zip(SECTIONS, found, strict=False):
        if seen != due:
            raise SpecError(
                path, number, f"the section {seen!r} stands where {due!r} is due; the order is {', '.join(SECTIONS)}"
            )
    if len(found) != len(SECTIONS):
        raise SpecError(
            path,
            len(lines),
            f"{len(found)} sections of {len(SECTIONS)}; {SECTIONS[min(len(found), len(SECTIONS) - 1)]!r} is next",
        )
    for section, marker in MARKERS.items():
        if sum(line.strip() == marker for line in lines) != 1:
            raise SpecError(path, dict(found)[section], f"the section {section!r} needs the line {marker} once")
