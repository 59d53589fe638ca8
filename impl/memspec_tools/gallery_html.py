"""From a page of Sphinx's JSON builder to a body that a MkDocs Material page can hold. Text in, text out."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

_HEADING = re.compile(r'<h(\d)[^>]*>(.*?)<a class="headerlink" href="#([^"]*)"[^>]*>.*?</a></h\1>', re.DOTALL)
_ASSET = re.compile(r'((?:src|srcset|href)=")[^"]*?(_images|_downloads)/')
_API = re.compile(
    r'<a class="[^"]*" href="[^"]*#(?:module-)?(?P<name>memspec[\w.]*)"[^>]*>(?P<text>.*?)</a>', re.DOTALL
)
_FIGURE = re.compile(r'<img [^>]*class = "sphx-glr-single-img"[^>]*/>')


@dataclass(frozen=True)
class Heading:
    level: int
    id: str
    name: str


def headings(body: str) -> tuple[Heading, ...]:
    """The headings of a body in order, as plain text: what a table of contents is made from."""
    return tuple(Heading(int(level), anchor, plain(text)) for level, text, anchor in _HEADING.findall(body))


def anchors(body: str) -> frozenset[str]:
    """Every id in a body."""
    return frozenset(re.findall(r'\bid="([^"]+)"', body))


def page_uri(docname: str) -> str:
    """Sphinx document name -> source path in the site: ``gallery/layout/plot_x`` -> ``gallery/layout/plot_x.md``."""
    return f"{docname}.md"


def page_url(uri: str) -> str:
    """Where MkDocs puts a page, with directory URLs: ``a/index.md`` -> ``a/``, ``a/b.md`` -> ``a/b/``."""
    base = uri.removesuffix(".md")
    return posixpath.dirname(base) + "/" if posixpath.basename(base) == "index" else base + "/"


def fixed(body: str, uri: str, canonical: Mapping[str, str], prefix: str = "gallery/") -> str:
    """The body for the page ``uri``.

    Sections go, their ids move to the headings. Pictures and downloads are found below ``prefix``; a figure can scroll.
    Code gets ``<code>``, so that it is highlighted and copied like all code of the site; math is left to the site. Links to
    names of ``memspec`` become ``<autoref>``, to the name under which the thing is defined (``canonical``).
    """
    up = "../" * page_url(uri).count("/")
    body = re.sub(r"</?section[^>]*>|<div id='sg-tag-list'[^>]*></div>", "", body)
    body = body.replace('class="math notranslate nohighlight"', 'class="arithmatex"')
    body = _HEADING.sub(lambda m: f'<h{m[1]} id="{m[3]}"' + m[0][3:], body)
    body = _ASSET.sub(lambda m: f"{m[1]}{up}{prefix}{m[2]}/", body)
    body = _FIGURE.sub(r'<div class="ms-figure" tabindex="0">\g<0></div>', body)
    body = re.sub(r"<pre>(.*?)</pre>", r"<pre><code>\1</code></pre>", body, flags=re.DOTALL)
    return _API.sub(lambda m: _autoref(m["name"], m["text"], canonical), body)


def without_empty_areas(body: str) -> str:
    """A gallery index without the headings below which there is no example."""
    return re.sub(r'<h2 id="[^"]*">(?:(?!<h2).)*?<div class="sphx-glr-thumbnails"></div>', "", body, flags=re.DOTALL)


def plain(markup: str) -> str:
    """Markup without tags and entities, white space folded."""
    return " ".join(html.unescape(re.sub("<[^>]+>", "", markup)).split())


def _autoref(name: str, text: str, canonical: Mapping[str, str]) -> str:
    return f'<autoref identifier="{canonical.get(name, name)}" optional>{text}</autoref>'
