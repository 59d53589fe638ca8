"""The built site as files: links, anchors, third parties, exports, search entries, and nothing shown better than it was."""

from __future__ import annotations

import html
import json
import re
import zlib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from memspec_tools.citations import site_url
from memspec_tools.evidence import state_of
from memspec_tools.pages import Page, load_pages
from memspec_tools.vectors import load_vectors

PAGES = load_pages()
pages = pytest.mark.parametrize("page", PAGES, ids=[page.slug for page in PAGES])
LOADS = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "srcset"),
    ("img", "srcset"),
    ("object", "data"),
}


class Collector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.repeated: list[str] = []
        self.links: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                if value in self.ids:
                    self.repeated.append(value)
                self.ids.add(value)
            elif name in ("href", "src", "srcset", "data") and value is not None:
                self.links.append((tag, name, value.split(" ")[0] if name == "srcset" else value))


@cache
def collected(path: Path) -> Collector:
    collector = Collector()
    collector.feed(path.read_text(encoding="utf-8"))
    return collector


def target(site: Path, source: Path, link: str) -> tuple[Path, str]:
    """The file and anchor that a link of ``source`` leads to."""
    parts = urlsplit(link)
    here = "/" + source.relative_to(site).as_posix().removesuffix("index.html")
    path = unquote(urlsplit(urljoin(here, parts.path)).path) if parts.path else here
    file = site / path.lstrip("/")
    return (file / "index.html" if path.endswith("/") or file.is_dir() else file), unquote(parts.fragment)


def html_files(site: Path) -> list[Path]:
    return [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]


def spec_html(site: Path, page: Page) -> str:
    return (site / "spec" / page.area / page.slug / "index.html").read_text(encoding="utf-8")


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    dead = []
    for source in html_files(site):
        for _, _, link in collected(source).links:
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            file, anchor = target(site, source, link)
            if not file.is_file():
                dead.append(f"{source.relative_to(site)}: {link}: no such file")
            elif anchor and file.suffix == ".html" and anchor not in collected(file).ids:
                dead.append(f"{source.relative_to(site)}: {link}: no such anchor")
    assert dead == []


def test_ids_are_unique_in_every_page(site: Path) -> None:
    assert {
        str(path.relative_to(site)): collected(path).repeated for path in html_files(site) if collected(path).repeated
    } == {}


def test_no_page_or_style_loads_anything_from_another_host(site: Path) -> None:
    asked = [
        f"{path.relative_to(site)}: {link}"
        for path in site.rglob("*.html")
        for tag, name, link in collected(path).links
        if (tag, name) in LOADS and (urlsplit(link).netloc and not link.startswith(site_url()))
    ]
    styles = [
        f"{path.relative_to(site)}: {found}"
        for path in site.rglob("*.css")
        for found in re.findall(r"""(?:@import|url\()\s*["']?(?:https?:)?//[^)"']*""", path.read_text(encoding="utf-8"))
    ]
    assert asked + styles == []


def test_no_marker_is_left_unfilled(site: Path) -> None:
    assert [
        str(path.relative_to(site))
        for path in site.rglob("*.html")
        if "<!-- memspec:" in path.read_text(encoding="utf-8")
    ] == []


@pages
def test_every_clause_is_an_anchor_with_its_citations(site: Path, page: Page) -> None:
    shown = spec_html(site, page)
    for clause in page.clauses:
        assert shown.count(f'id="{clause.id}"') == 1
        assert f"memspec:{clause.id}@{clause.hash}" in shown
        assert f"{site_url()}spec/{page.area}/{page.slug}/#{clause.id}" in html.unescape(shown)


@pages
def test_the_verification_section_shows_each_verdict_as_it_was(site: Path, page: Page) -> None:
    """Against evidence.json, which is written from the report; a clause that did not pass is never shown with a pass in its row."""
    found = json.loads((site / "evidence.json").read_text(encoding="utf-8"))["this_build"]["findings"][page.slug]
    shown = spec_html(site, page)
    table = shown[shown.index("ms-matrix") : shown.index('id="faults"')]
    rows = {re.search(r'href="#([^"]+)"', row)[1]: row for row in table.split("<tr>")[2:]}  # type: ignore[index]
    assert list(rows) == [clause.id for clause in page.clauses]
    for name, outcome in found["clauses"].items():
        if outcome == "pass":
            assert "ms-verdict--pass" in rows[name], name
        elif outcome != "not-run":
            assert (
                f"ms-verdict--{'fail' if outcome == 'fail' else 'crash' if outcome == 'crash' else 'open'}"
                in rows[name]
            ), name
        if outcome in ("unchecked", "not-run", "not-exercised") and not any(
            s.validity == "valid" for s in state_of(page.slug).records
        ):
            assert "ms-verdict--pass" not in rows[name], name
    assert re.findall(r'<h4 id="fault-([^"]+)"', shown) == list(found["faults"])


@pages
def test_the_head_says_whether_it_ran_on_cuda(site: Path, page: Page) -> None:
    assert html.escape(state_of(page.slug).summary, quote=False) in spec_html(site, page)


@pages
def test_clauses_are_search_entries_of_their_own(site: Path, page: Page) -> None:
    entries = {
        entry["location"]: entry
        for entry in json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    }
    for clause in page.clauses:
        entry = entries[f"spec/{page.area}/{page.slug}/#{clause.id}"]
        assert entry["title"] == clause.id
        assert clause.level in entry["text"]


def test_clauses_json_is_what_the_pages_say(site: Path) -> None:
    exported = json.loads((site / "clauses.json").read_text(encoding="utf-8"))["clauses"]
    written = [(clause.id, clause.level, clause.text, clause.hash) for page in PAGES for clause in page.clauses]
    assert [(entry["id"], entry["level"], entry["text"], entry["hash"]) for entry in exported] == written
    for entry in exported:
        file, anchor = target(site, site / "index.html", "/" + entry["url"].removeprefix(site_url()))
        assert anchor in collected(file).ids, entry["url"]


@pages
def test_vectors_are_exported_unchanged(site: Path, page: Page) -> None:
    exported = json.loads((site / f"vectors/{page.slug}.json").read_text(encoding="utf-8"))
    assert exported["finding"] == page.slug
    assert exported["vectors"] == json.loads(json.dumps([vector.data for vector in load_vectors(page)]))


@pages
def test_the_inventory_knows_the_reference(site: Path, page: Page) -> None:
    lines = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    assert f"{page.module}.reference" in zlib.decompress(lines).decode()


def test_llms_txt_lists_every_page_and_clause(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"{site_url()}spec/{page.area}/{page.slug}/" in text
        assert all(clause.id in text for clause in page.clauses)


def test_home_lists_each_finding_once_by_page_or_as_planned(site: Path) -> None:
    from memspec_tools.site.home import PLANNED

    home = (site / "index.html").read_text(encoding="utf-8")
    body = home[home.index('id="findings"') : home.index('id="what-it-is-and-what-it-is-not"')]
    written = {page.slug for page in PAGES}
    for page in PAGES:
        assert body.count(f'href="spec/{page.area}/{page.slug}/"') == 1
    for planned in PLANNED.values():
        for slug, title in planned.items():
            assert (slug in written) != (
                html.escape(title, quote=False) in "".join(re.findall(r'ms-planned">.*?</p>', body))
            )


def test_a_gallery_page_names_its_device_and_says_whether_a_record_exists(site: Path) -> None:
    for page in PAGES:
        path = site / "gallery" / page.area / f"plot_{page.slug.replace('-', '_')}" / "index.html"
        if not path.is_file():
            continue
        shown = path.read_text(encoding="utf-8")
        assert "This build's run on" in html.unescape(shown)
        if not any(state.on_cuda for state in state_of(page.slug).records):
            assert "This example has not run on CUDA yet" in shown
