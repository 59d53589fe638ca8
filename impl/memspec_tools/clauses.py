"""Clauses in a page: one paragraph, one RFC 2119 keyword, one stable id; tombstones of withdrawn ids."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memspec_tools.errors import SpecError

LEVELS = ("MUST NOT", "SHOULD NOT", "MUST", "SHOULD", "MAY")
Level = Literal["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"]

_ATTRIBUTES = re.compile(
    r"^\{:\s*#(?P<id>\S+)\s+\.(?P<kind>clause|withdrawn)(?P<rest>(?:\s+[\w-]+=\"[^\"]*\")*)\s*\}\s*$"
)
_ID = re.compile(r"^[a-z][a-z0-9]*(?:-[a-z0-9]+)*\.[a-z][a-z0-9]*(?:-[a-z0-9]+)*$")
_KEYWORD = re.compile(
    r"\b(MUST NOT|SHALL NOT|SHOULD NOT|NOT RECOMMENDED|MUST|SHALL|SHOULD|MAY|REQUIRED|RECOMMENDED|OPTIONAL)\b"
)
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


def clause_hash(text: str) -> str:
    """First 8 hex digits of the SHA-256 of the text in NFC with white space folded."""
    return hashlib.sha256(unicodedata.normalize("NFC", " ".join(text.split())).encode()).hexdigest()[:8]


def read_clauses(path: Path, slug: str, lines: list[str], start: int) -> tuple[list[ClauseText], list[Tombstone]]:
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
                raise SpecError(
                    path,
                    number,
                    'a clause mark has the form {: #<slug>.<idea> .clause } with data-...="..." attributes',
                )
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


def _clause(
    path: Path, clause_id: str, text: str, first: int, mark_line: int, attributes: dict[str, str]
) -> ClauseText:
    if unknown := attributes.keys() - _CLAUSE_ATTRIBUTES:
        raise SpecError(path, mark_line, f"{clause_id} has the unknown attribute {sorted(unknown)[0]!r}")
    keywords = _KEYWORD.findall(text)
    if len(keywords) != 1:
        raise SpecError(
            path,
            first,
            f"{clause_id} has {len(keywords)} keywords ({', '.join(keywords) or 'none'}); a clause has exactly one",
        )
    if keywords[0] not in LEVELS:
        raise SpecError(
            path, first, f"{clause_id} uses the keyword {keywords[0]!r}; the known ones are {', '.join(LEVELS)}"
        )
    decided_by = attributes.get("data-decided-by", "verify")
    if decided_by not in ("verify", "test"):
        raise SpecError(
            path,
            mark_line,
            f"{clause_id} is decided by {decided_by!r}; it can be 'test', or 'verify' by leaving the attribute out",
        )
    if attributes.get("data-unchecked", "reason").strip() == "":
        raise SpecError(path, mark_line, f"{clause_id} is unchecked without a reason")
    return ClauseText(
        clause_id,
        keywords[0],
        text,
        first,
        clause_hash(text),
        attributes.get("data-unchecked", ""),
        attributes.get("data-stricter", ""),
        decided_by,
    )


def _refuse_stray_keyword(path: Path, paragraph: list[tuple[int, str]]) -> None:
    for number, line in paragraph:
        if found := re.search(r"\b(MUST|SHALL|SHOULD)\b", line):
            raise SpecError(
                path, number, f"{found[0]} outside a clause: the paragraph carries no {{: #<slug>.<idea> .clause }}"
            )
