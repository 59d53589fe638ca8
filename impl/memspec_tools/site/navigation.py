"""The parts of the navigation that depend on which pages exist."""

from __future__ import annotations

from typing import Any

from memspec_tools.pages import AREAS
from memspec_tools.places import spec_dir
from memspec_tools.site import gallery_pages
from memspec_tools.site.content import Content


def filled(nav: Any, content: Content) -> list[Any]:
    """``nav`` with "$specification" and "$gallery" replaced by the pages that exist, one section an area."""
    parts = {"$specification": specification(content), "$gallery": gallery_pages.navigation(content.gallery)}
    made: list[Any] = []
    for item in nav or ():
        if isinstance(item, dict):
            name, target = next(iter(item.items()))
            if isinstance(target, str) and target in parts:
                if not parts[target]:
                    continue
                item = {name: parts[target]}
        made.append(item)
    return made


def specification(content: Content) -> list[Any]:
    """The index, then each area that has pages, then the pages about the text itself."""
    listed: list[Any] = ["spec/index.md"]
    for area in AREAS:
        pages = [{page.title: f"spec/{area}/{page.slug}.md"} for page in content.pages if page.area == area]
        pages += [{path.stem: f"spec/{area}/{path.name}"} for path in content.broken if path.parent.name == area]
        if pages:
            listed.append({area.capitalize(): pages})
    about = [{path.stem.capitalize(): f"spec/{path.name}"} for path in sorted(spec_dir().glob("*.md"))]
    return [*listed, {"About the text": about}] if about else listed
