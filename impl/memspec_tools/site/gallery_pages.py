"""Pages of the executed gallery inside this site: a device's recorded run first, this build's own run below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memspec_tools.gallery import Gallery, GalleryPage
from memspec_tools.gallery_html import Heading, anchors
from memspec_tools.pages import AREAS
from memspec_tools.site.markup import heading, table, text

_EMPTY_AREA = re.compile(
    r'<h2 id="[^"]*">(?:(?!<h2 |<div class="sphx-glr-thumbcontainer").)*(?=<h2 |<div class="sphx-glr-footer)', re.DOTALL
)
STYLE = "gallery/_static/sg_gallery.css"
OWN_RUN = "this-build"


def navigation(gallery: Gallery) -> list[Any]:
    """The index, then the scripts of each area. An area's own index page lists the same scripts and is left out."""
    listed: list[Any] = ["gallery/index.md"] if gallery.pages else []
    for area in AREAS:
        scripts: list[Any] = [{page.title: page.uri} for page in gallery.pages if page.slug and page.area == area]
        if scripts:
            listed.append({area.capitalize(): [f"gallery/{area}/index.md", *scripts]})
    return listed


def shown(gallery: Gallery) -> list[GalleryPage]:
    """The pages that the site has: all but the indexes of areas without a script."""
    areas = {page.area for page in gallery.pages if page.slug}
    return [
        page for page in gallery.pages if page.slug or page.uri == "gallery/index.md" or page.uri.split("/")[1] in areas
    ]


def url_of(gallery: Gallery, slug: str) -> str:
    """Where a finding's gallery page lies in the site, or empty where it has none."""
    return next((page.uri.removesuffix(".md") + "/" for page in gallery.pages if page.slug == slug), "")


def headings(page: GalleryPage, added: Sequence[Heading]) -> list[Heading]:
    """What the table of contents lists; ``added`` are the headings of recorded runs, above this build's."""
    if not page.slug:
        kept = anchors(html(page, "", ""))
        return [one for one in page.headings if one.id in kept]
    first, *rest = page.headings
    own = Heading(2, OWN_RUN, own_title(page))
    return [first, *added, own, *(Heading(one.level + 1, one.id, one.name) for one in rest)]


def html(page: GalleryPage, records: str, spec_url: str) -> str:
    """The body with ``records`` (HTML) above this build's run. ``spec_url`` leads to the finding's page, or is empty."""
    if not page.slug:
        return _EMPTY_AREA.sub("", page.body)
    title, _, rest = page.body.partition("</h1>")
    link = f'<p class="ms-data">The rules: <a href="{spec_url}">{text(page.slug)}</a>.</p>' if spec_url else ""
    versions = ", ".join(f"{name} {version}" for name, version in page.versions.items())
    own = (
        f'{heading(2, OWN_RUN, text(own_title(page)))}<p class="ms-data">{text(versions)}; {page.seconds:.1f} s, not a benchmark.</p>'
        + metrics(page.metrics, own_title(page))
    )
    return f"{title}</h1>{link}{records}{own}{_one_level_down(rest)}"


def own_title(page: GalleryPage) -> str:
    """``page.device`` is "cpu (CPU, x86_64)" or "cuda (NVIDIA H200)"."""
    kind, _, name = page.device.removesuffix(")").partition(" (")
    return "This build's run on " + (f"the CPU ({name.removeprefix('CPU, ')})" if kind == "cpu" else name)


def metrics(rows: Iterable[Mapping[str, Any]], label: str) -> str:
    """What the script measured or counted, with units; a measured speed is told from a count."""
    cells = [
        [
            text(row["name"]),
            f'<span class="ms-nowrap">{text(number(row["value"]))} {text(row.get("unit") or "")}</span>',
            "measured on the device" if row.get("benchmark") else "a count, not a benchmark",
        ]
        for row in rows
    ]
    return table(["Figure", "Value", "Kind"], cells, f"Figures of {label}") if cells else ""


def number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _one_level_down(body: str) -> str:
    """Headings of the script stand below the heading of the run that they belong to."""
    for level in (5, 4, 3, 2):
        body = body.replace(f"<h{level} ", f"<h{level + 1} ").replace(f"</h{level}>", f"</h{level + 1}>")
    return body


def nested(listed: Sequence[Heading]) -> list[dict[str, Any]]:
    """Headings as the tokens that MkDocs makes a table of contents from."""
    roots: list[dict[str, Any]] = []
    open_: list[dict[str, Any]] = []
    for one in listed:
        token: dict[str, Any] = {"level": one.level, "id": one.id, "name": one.name, "html": text(one.name)}
        token |= {"data-toc-label": "", "children": []}
        while open_ and open_[-1]["level"] >= one.level:
            open_.pop()
        (open_[-1]["children"] if open_ else roots).append(token)
        open_.append(token)
    return roots
