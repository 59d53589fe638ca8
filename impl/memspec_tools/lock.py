"""``spec/clauses.lock``: the promise about ids. A changed, added or withdrawn clause fails until the lock is renewed on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memspec_tools.documents import read_text
from memspec_tools.errors import SpecError
from memspec_tools.pages import Page
from memspec_tools.places import spec_dir

WITHDRAWN = "withdrawn"
HEAD = "# id | level or 'withdrawn' | first 8 hex digits of the SHA-256 of the text | since\n# Renewed by `memspec lock`, never by hand.\n"


@dataclass(frozen=True)
class Entry:
    id: str
    level: str
    hash: str
    since: str


def lock_path() -> Path:
    return spec_dir() / "clauses.lock"


def read_lock(path: Path | None = None) -> dict[str, Entry]:
    """The locked clauses by id. Raises SpecError for a malformed line or a repeated id."""
    path = path or lock_path()
    entries: dict[str, Entry] = {}
    if not path.is_file():
        return entries
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 4 or not all(parts):
            raise SpecError(path, number, f"a locked clause is 'id | level | hash | since', not {line!r}")
        if parts[0] in entries:
            raise SpecError(path, number, f"{parts[0]} is locked twice")
        entries[parts[0]] = Entry(*parts)
    return entries


def current(pages: Iterable[Page], version: str, locked: dict[str, Entry]) -> dict[str, Entry]:
    """What the lock would say of these pages; an unchanged clause keeps the version since which it stands."""
    entries: dict[str, Entry] = {}
    for page in pages:
        for clause in page.clauses:
            old = locked.get(clause.id)
            since = old.since if old and (old.level, old.hash) == (clause.level, clause.hash) else version
            entries[clause.id] = Entry(clause.id, clause.level, clause.hash, since)
        for tombstone in page.tombstones:
            old = locked.get(tombstone.id)
            since = old.since if old and old.level == WITHDRAWN else version
            entries[tombstone.id] = Entry(tombstone.id, WITHDRAWN, old.hash if old else "-", since)
    return entries


def differences(pages: Iterable[Page], version: str, path: Path | None = None) -> list[str]:
    """One line, with file and line where there is one, for each way in which the pages and the lock disagree."""
    pages = list(pages)
    locked = read_lock(path)
    now = current(pages, version, locked)
    places = {clause.id: (page.path, clause.line) for page in pages for clause in page.clauses}
    places |= {tombstone.id: (page.path, tombstone.line) for page in pages for tombstone in page.tombstones}
    told: list[str] = []
    for name, entry in now.items():
        old, place = locked.get(name), places[name]
        if old is None:
            told.append(str(SpecError(*place, f"{name} is new and not in the lock")))
        elif old.level == WITHDRAWN and entry.level != WITHDRAWN:
            told.append(str(SpecError(*place, f"{name} was withdrawn in {old.since}; an id is never reused")))
        elif (old.level, old.hash) != (entry.level, entry.hash):
            told.append(
                str(SpecError(*place, f"{name} changed: locked {old.level} {old.hash}, now {entry.level} {entry.hash}"))
            )
    told += [
        str(SpecError(path or lock_path(), None, f"{name} is gone without a tombstone"))
        for name in locked
        if name not in now
    ]
    return told


def renew(pages: Iterable[Page], version: str, path: Path | None = None) -> list[str]:
    """Write the lock anew and return what changed. Refuses to lose an id or to bring a withdrawn one back."""
    path, pages = path or lock_path(), list(pages)
    told = differences(pages, version, path)
    if refusals := [line for line in told if "never reused" in line or "without a tombstone" in line]:
        raise SpecError(None, None, refusals[0])
    entries = current(pages, version, read_lock(path))
    body = "".join(f"{e.id} | {e.level} | {e.hash} | {e.since}\n" for e in sorted(entries.values(), key=lambda e: e.id))
    path.write_text(HEAD + body, encoding="utf-8")
    return told
