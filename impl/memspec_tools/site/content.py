"""What one build of the site shows, gathered before anything is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memspec import __version__

from memspec_tools import gallery
from memspec_tools.errors import SpecError
from memspec_tools.evidence import NEVER, FindingEvidence, state_of
from memspec_tools.lock import read_lock
from memspec_tools.pages import Page, load_pages, page_paths, read_page
from memspec_tools.places import cache_dir, spec_dir
from memspec_tools.site.cite import Edition
from memspec_tools.site.results import ResultsFailed, collect
from memspec_tools.vectors import load_vectors

NOTHING = gallery.Gallery((), {}, ())


@dataclass(frozen=True)
class Content:
    """``report`` is by slug; ``since`` by clause id; ``broken`` has the pages that could not be read, with the reason (a server only)."""

    pages: tuple[Page, ...]
    report: Mapping[str, Mapping[str, Any]]
    platform: Mapping[str, str]
    since: Mapping[str, str]
    vectors: Mapping[str, list[Mapping[str, Any]]]
    edition: Edition
    evidence: Mapping[str, FindingEvidence] = field(default_factory=dict)
    gallery: gallery.Gallery = NOTHING
    broken: Mapping[Path, str] = field(default_factory=dict)
    trouble: str = ""

    def page(self, slug: str) -> Page | None:
        return next((page for page in self.pages if page.slug == slug), None)

    def ran(self, slug: str) -> str:
        """On which devices the finding has run, in words."""
        cuda = self.evidence[slug].summary if slug in self.evidence else NEVER
        return f"{'CPU (this build)' if slug in self.report else 'nothing in this build'}; {cuda}"

    def verdicts(self, slug: str) -> dict[str, Mapping[str, Any]]:
        """Clause id -> what this build found."""
        return {clause["id"]: clause for clause in (self.report.get(slug) or {}).get("clauses", ())}


def gather(base: str, top: Path, tell: Callable[[str], None], forgiving: bool = False) -> Content:
    """Read the pages and make or fetch their results.

    Raises SpecError or ResultsFailed; a ``forgiving`` build (a server with an editor beside it) shows the trouble in the pages instead.
    """
    edition = Edition(__version__, base if base.endswith("/") else base + "/", release_date(top))
    pages, broken, trouble = _pages(forgiving)
    vectors: dict[str, list[Mapping[str, Any]]] = {}
    found: Mapping[str, Any] = {"findings": []}
    since: dict[str, str] = {}
    evidence: dict[str, FindingEvidence] = {}
    shown = NOTHING
    try:
        vectors = {page.slug: [vector.data for vector in load_vectors(page)] for page in pages}
        since = {name: entry.since for name, entry in read_lock().items()}
        evidence = {page.slug: state_of(page.slug, top) for page in pages}
        found = collect(tell)
        if gallery.examples(top):
            tell("gallery")
            shown = gallery.build(top, cache_dir() / "gallery")
    except Exception as why:
        if not forgiving:
            raise
        trouble = trouble or (
            str(why) if isinstance(why, SpecError | ResultsFailed) else f"{type(why).__name__}: {why}"
        )
    report = {finding["slug"]: finding for finding in found["findings"]}
    return Content(
        tuple(pages), report, found.get("platform", {}), since, vectors, edition, evidence, shown, broken, trouble
    )


def _pages(forgiving: bool) -> tuple[list[Page], dict[Path, str], str]:
    try:
        return load_pages(), {}, ""
    except SpecError as why:
        if not forgiving:
            raise
        trouble = str(why)
    pages, broken = list[Page](), dict[Path, str]()
    for path in page_paths(spec_dir()):
        try:
            pages.append(read_page(path))
        except SpecError as why:
            broken[path] = str(why)
    return pages, broken, trouble


def release_date(top: Path) -> str:
    """The date of the release, from CITATION.cff; empty where there is none."""
    path = top / "CITATION.cff"
    found = (
        re.search(r"^date-released:\s*['\"]?(\d{4}-\d{2}-\d{2})", path.read_text(encoding="utf-8"), re.MULTILINE)
        if path.is_file()
        else None
    )
    return found[1] if found else ""
