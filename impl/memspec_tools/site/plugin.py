"""The MkDocs plugin: it brings spec/ and generated files in and hands each page to plain functions.

Material for MkDocs ends on 2027-05-05 and MkDocs 1.x is frozen, so nothing but this module knows either of them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page as SitePage
from mkdocs.structure.toc import get_toc

from memspec_tools.citations import site_url
from memspec_tools.errors import SpecError
from memspec_tools.evidence import NEVER, FindingEvidence
from memspec_tools.gallery import GalleryPage
from memspec_tools.gallery_html import anchors
from memspec_tools.pages import Page
from memspec_tools.places import root
from memspec_tools.site import clauses, exports, gallery_pages, gallery_records, home, spec_pages
from memspec_tools.site.content import Content, gather
from memspec_tools.site.navigation import filled
from memspec_tools.site.results import ResultsFailed

FINDINGS = "<!-- memspec:findings -->"
SPEC_INDEX = f"""---
title: Specification
---

# Specification

Every finding has one page; its rules are clauses with stable ids. The state of each is what this build found.

{FINDINGS}
"""

_Event = TypeVar("_Event", bound=Callable[..., Any])
_early: Callable[[_Event], _Event] = event_priority(50)
_log = logging.getLogger("mkdocs.plugins.memspec")


class MemspecPlugin(BasePlugin):  # type: ignore[misc]
    """Events in, calls out."""

    def __init__(self) -> None:
        self.serving = False
        self.content: Content | None = None
        self.finding_files: dict[str, Path] = {}
        self.gallery_files: dict[str, GalleryPage] = {}

    def on_startup(self, *, command: str, dirty: bool) -> None:
        """A server must outlive bad input; that it is one is told here only."""
        self.serving = command == "serve"

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Gather everything before MkDocs cleans the old site away: a build that ends here leaves nothing half-written."""
        top = Path(config.config_file_path).resolve().parent
        if top != root():
            raise PluginError(
                f"{config.config_file_path} is not the site of the checkout that memspec_tools runs from, {root()}"
            )
        self.content = _or_stop(lambda: gather(site_url(), top, _log.info, forgiving=self.serving))
        if not config.repo_url:
            config.edit_uri = None
        if self.content.trouble:
            _log.error(self.content.trouble)
        config.nav = filled(config.nav, self.content)
        if self.content.gallery.pages:
            config.extra_css = [gallery_pages.STYLE, *config.extra_css]
        return config

    def on_files(self, files: Files, config: MkDocsConfig) -> Files:
        """spec/ beside docs/, the index of findings, and the exports."""
        content, top = self._content(), Path(config.config_file_path).resolve().parent
        self.finding_files = {f"spec/{page.area}/{page.slug}.md": page.path for page in content.pages}
        self.finding_files |= {path.relative_to(top).as_posix(): path for path in content.broken}
        general = [path.relative_to(top).as_posix() for path in sorted((top / "spec").glob("*.md"))]
        for address in [*self.finding_files, *general]:
            file = File(
                address, src_dir=str(top), dest_dir=config.site_dir, use_directory_urls=config.use_directory_urls
            )
            file.edit_uri = "../" + address
            files.append(file)
        files.append(File.generated(config, "spec/index.md", content=SPEC_INDEX))
        for address, text in exports.exports(content).items():
            files.append(File.generated(config, address, content=text))
        self.gallery_files = {page.uri: page for page in gallery_pages.shown(content.gallery)}
        for address, script in self.gallery_files.items():
            file = File.generated(config, address, content=f"---\ntitle: {json.dumps(script.title)}\n---\n")
            file.edit_uri = f"../{script.edit_path}"
            files.append(file)
        records = [
            asset for evidence in content.evidence.values() for asset in gallery_records.assets(evidence).items()
        ]
        for address, path in [*content.gallery.assets.items(), *records]:
            files.append(File.generated(config, address, abs_src_path=str(path)))
        return files

    @_early
    def on_page_markdown(self, markdown: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
        """Put a finding's head in place; a server shows above each page what keeps the results from being made."""
        content = self._content()
        if why := content.broken.get(self.finding_files.get(page.file.src_uri, Path())):
            return f"# {page.file.name}\n\n{spec_pages.failure(why)}\n"
        if finding := self._finding(page):
            page.meta = {"title": finding.title, "description": finding.summary}
            example = gallery_pages.url_of(content.gallery, finding.slug)
            markdown = spec_pages.markdown(finding, content.ran(finding.slug), f"../../../{example}" if example else "")
        return spec_pages.troubled(markdown, content.trouble) if content.trouble else markdown

    @_early
    def on_page_content(self, html: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
        """Fill the markers and register clauses where links and anchors are looked up."""
        content = self._content()
        if script := self.gallery_files.get(page.file.src_uri):
            return self._gallery_page(script, page)
        if FINDINGS in html:
            prefix = "" if page.file.src_uri == "spec/index.md" else "spec/"
            ran = {finding.slug: content.ran(finding.slug) for finding in content.pages}
            html = html.replace(FINDINGS, home.findings(content.pages, content.report, ran, prefix))
        finding = self._finding(page)
        if finding is None:
            return html
        autorefs = config.plugins["autorefs"]
        for clause in finding.clauses:
            autorefs.register_anchor(page, clause.id, title=clause.id, primary=True)
        evidence = content.evidence.get(finding.slug)
        return spec_pages.html(html, finding, content, gallery_records.verdicts(evidence) if evidence else ())

    @_early
    def on_post_build(self, config: MkDocsConfig) -> None:
        """Clauses become search entries just before the search plugin writes its index."""
        index = next(plugin for name, plugin in config.plugins.items() if name.endswith("search")).search_index
        for page in self._content().pages:
            index.entries += clauses.search_entries(page, f"spec/{page.area}/{page.slug}/")

    def _gallery_page(self, script: GalleryPage, page: SitePage) -> str:
        """Body, contents list and anchors of an executed page."""
        content = self._content()
        finding = content.page(script.slug)
        evidence = content.evidence.get(script.slug) or FindingEvidence(script.slug, (), NEVER)
        rules = f"../../../spec/{finding.area}/{finding.slug}/" if finding else ""
        body = gallery_pages.html(script, gallery_records.section(evidence), rules)
        page.toc = get_toc(gallery_pages.nested(gallery_pages.headings(script, gallery_records.headings(evidence))))
        page.present_anchor_ids = anchors(body)
        return body

    def _content(self) -> Content:
        if self.content is None:
            raise PluginError("on_config has not run")
        return self.content

    def _finding(self, page: SitePage) -> Page | None:
        path = self.finding_files.get(page.file.src_uri)
        return next((finding for finding in self._content().pages if finding.path == path), None) if path else None


def _or_stop(work: Callable[[], Any]) -> Any:
    """Bad input becomes MkDocs' own kind of stop: one line and exit code 1."""
    try:
        return work()
    except (SpecError, ResultsFailed) as why:
        raise PluginError(str(why)) from why
