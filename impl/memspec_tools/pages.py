"""Spec pages: front matter by schema, clauses by their ids, tombstones of withdrawn ids, worked examples."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memspec_tools.documents import read_yaml
from memspec_tools.errors import SpecError
from memspec_tools.places import spec_dir

AREAS = {
    "capacity": "Whose space is counted, in which unit?",
    "layout": "Which bytes, where, and in what state?",
    "ordering": "Who owns it, and when is it done?",
    "compatibility": "Who may reuse it, and who decides?",
}
LEVELS = ("MUST NOT", "SHOULD NOT", "MUST", "SHOULD", "MAY")
SECTIONS = ("Problem", "Rules", "Reference implementation", "Verification", "Not specified", "What the evidence does not show",
            "Report notes", "Seen in the wild", "Cite")  # fmt: skip
MARKERS = {"Verification": "<!-- memspec:verification -->", "Cite": "<!-- memspec:cite -->"}

Level = Literal["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"]

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

_ATTRIBUTES = re.compile(r"^\{:\s*#(?P<id>\S+)\s+\.(?P<kind>clause|withdrawn)(?P<rest>(?:\s+[\w-]+=\"[^\"]*\")*)\s*\}\s*$")
_ID = re.compile(r"^[a-z][a-z0-9]*(?:-[a-z0-9]+)*\.[a-z][a-z0-9]*(?:-[a-z0-9]+)*$")
_KEYWORD = re.compile(r"\b(MUST NOT|SHALL NOT|SHOULD NOT|NOT RECOMMENDED|MUST|SHALL|SHOULD|MAY|REQUIRED|RECOMMENDED|OPTIONAL)\b")
_CLAUSE_ATTRIBUTES = {"data-unchecked", "data-stricter", "data-decided-by"}


@dataclass(frozen=True)
class ClauseText:
    """One clause as written: ``<slug>.<idea>``, its level, its text with white space folded, and the hash of that text."""

    id: str
    level: Level
    text: str
    line: int
    hash: str
    unchecked: str = ""
    stricter: str = ""
    decided_by: str = "verify"  # "verify" | "test"

    @property
    def idea(self) -> str:
        return self.id.partition(".")[2]


@dataclass(frozen=True)
class Tombstone:
    id: str
    successor: str
    line: int


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
    """All pages. Raises SpecError for a malformed one, and for an id that two pages claim."""
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
                raise SpecError(page.path, tombstone.line, f"{tombstone.id} names the successor {tombstone.successor!r}, which is no clause")
    return pages


def read_page(path: Path) -> Page:
    """Parse one page. Raises SpecError with file and line for anything that is out of order."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as trouble:
        raise SpecError(path, 1, f"not UTF-8: {trouble.reason} at byte {trouble.start}") from trouble
    lines = text.splitlines()
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        raise SpecError(path, 1, "a page begins with front matter between two lines of ---")
    end = lines.index("---", 1)
    front, _ = read_yaml("\n".join(lines[1:end]), path, FRONT_MATTER, first_line=2)
    slug, area = front["slug"], front["area"]
    if (path.parent.name, path.stem) != (area, slug):
        raise SpecError(path, 2, f"slug and area say {area}/{slug}.md, the file is {path.parent.name}/{path.name}")
    body = "\n".join(lines[end + 1 :])
    clauses, tombstones = _clauses(path, slug, lines, end + 1)
    _check_sections(path, lines, end + 1)
    return Page(
        slug, area, front["kind"], front["title"], " ".join(front["summary"].split()), front["status"], front["evidence"],
        tuple(front["sources"]), tuple(front["reports"]), path, body, end + 2, tuple(clauses), tuple(tombstones),
    )  # fmt: skip


def clause_hash(text: str) -> str:
    """First 8 hex digits of the SHA-256 of the text in NFC with white space folded."""
    return hashlib.sha256(unicodedata.normalize("NFC", " ".join(text.split())).encode()).hexdigest()[:8]


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


def _clauses(path: Path, slug: str, lines: list[str], start: int) -> tuple[list[ClauseText], list[Tombstone]]:
    clauses: list[ClauseText] = []
    tombstones: list[Tombstone] = []
    taken: dict[str, int] = {}
    paragraph: list[tuple[int, str]] = []
    fenced = False
    for number, line in enumerate(lines[start:], start + 1):
        if line.lstrip().startswith("```"):
            fenced, paragraph = not fenced, []
            continue
        if fenced:
            continue
        mark = _ATTRIBUTES.match(line)
        if mark is None:
            if re.search(r"\{:.*\.(?:clause|withdrawn)\b", line):
                raise SpecError(path, number, "a clause mark has the form {: #<slug>.<idea> .clause } with data-...=\"...\" attributes")
            if not line.strip() or line.startswith("#"):
                _refuse_stray_keyword(path, paragraph)
                paragraph = []
            else:
                paragraph.append((number, line))
            continue
        clause_id, text = mark["id"], " ".join(" ".join(part for _, part in paragraph).split())
        if not _ID.match(clause_id) or not clause_id.startswith(slug + "."):
            raise SpecError(path, number, f"the id {clause_id!r} is not {slug}.<idea> in lower case with hyphens")
        if clause_id in taken:
            raise SpecError(path, number, f"the id {clause_id} is taken by line {taken[clause_id]}")
        if not text:
            raise SpecError(path, number, f"{clause_id} has no paragraph right above it")
        taken[clause_id] = number
        attributes = dict(re.findall(r"([\w-]+)=\"([^\"]*)\"", mark["rest"]))
        if mark["kind"] == "withdrawn":
            if set(attributes) != {"data-successor"}:
                raise SpecError(path, number, f"the tombstone {clause_id} needs data-successor and nothing else")
            tombstones.append(Tombstone(clause_id, attributes["data-successor"], number))
        else:
            clauses.append(_clause(path, clause_id, text, paragraph[0][0], number, attributes))
        paragraph = []
    _refuse_stray_keyword(path, paragraph)
    return clauses, tombstones


def _clause(path: Path, clause_id: str, text: str, first: int, mark_line: int, attributes: dict[str, str]) -> ClauseText:
    if unknown := attributes.keys() - _CLAUSE_ATTRIBUTES:
        raise SpecError(path, mark_line, f"{clause_id} has the unknown attribute {sorted(unknown)[0]!r}")
    keywords = _KEYWORD.findall(text)
    if len(keywords) != 1:
        raise SpecError(path, first, f"{clause_id} has {len(keywords)} keywords ({', '.join(keywords) or 'none'}); a clause has exactly one")
    if keywords[0] not in LEVELS:
        raise SpecError(path, first, f"{clause_id} uses the keyword {keywords[0]!r}; the known ones are {', '.join(LEVELS)}")
    decided_by = attributes.get("data-decided-by", "verify")
    if decided_by not in ("verify", "test"):
        raise SpecError(path, mark_line, f"{clause_id} is decided by {decided_by!r}; it can be 'test', or 'verify' by leaving the attribute out")
    if attributes.get("data-unchecked", "reason").strip() == "":
        raise SpecError(path, mark_line, f"{clause_id} is unchecked without a reason")
    return ClauseText(clause_id, keywords[0], text, first, clause_hash(text), attributes.get("data-unchecked", ""),
                      attributes.get("data-stricter", ""), decided_by)  # fmt: skip


def _refuse_stray_keyword(path: Path, paragraph: list[tuple[int, str]]) -> None:
    for number, line in paragraph:
        if found := re.search(r"\b(MUST|SHALL|SHOULD)\b", line):
            raise SpecError(path, number, f"{found[0]} outside a clause: the paragraph carries no {{: #<slug>.<idea> .clause }}")


def _check_sections(path: Path, lines: list[str], start: int) -> None:
    fenced = False
    found: list[tuple[str, int]] = []
    for number, line in enumerate(lines[start:], start + 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and line.startswith("## "):
            found.append((line[3:].strip(), number))
    for due, (seen, number) in zip(SECTIONS, found, strict=False):
        if seen != due:
            raise SpecError(path, number, f"the section {seen!r} stands where {due!r} is due; the order is {', '.join(SECTIONS)}")
    if len(found) != len(SECTIONS):
        raise SpecError(path, len(lines), f"{len(found)} sections of {len(SECTIONS)}; {SECTIONS[min(len(found), len(SECTIONS) - 1)]!r} is next")
    for section, marker in MARKERS.items():
        if sum(line.strip() == marker for line in lines) != 1:
            raise SpecError(path, dict(found)[section], f"the section {section!r} needs the line {marker} once")
