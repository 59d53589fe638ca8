"""The machine-readable twins of the pages."""

from __future__ import annotations

import json
from typing import Any

from memspec_tools.pages import AREAS, Page
from memspec_tools.site.content import Content
from memspec_tools.site.gallery_records import exported
from memspec_tools.vectors import schema


def exports(content: Content) -> dict[str, str]:
    """Path in the site -> text. objects.inv is made by mkdocstrings."""
    recorded = {slug: exported(evidence) for slug, evidence in content.evidence.items()}
    made = {
        "vectors/vectors.schema.json": _json(schema()),
        "clauses.json": _json(clauses(content)),
        "evidence.json": _json(
            {"memspec": content.edition.version, "this_build": this_build(content), "recorded": recorded}
        ),
        "llms.txt": llms(content),
    }
    for page in content.pages:
        made[f"vectors/{page.slug}.json"] = _json(
            {"finding": page.slug, "memspec": content.edition.version, "vectors": content.vectors.get(page.slug, [])}
        )
    return made


def clauses(content: Content) -> dict[str, Any]:
    """Every clause with what a citation needs and what this build found; withdrawn ids with their successors."""
    listed: list[dict[str, Any]] = []
    for page in content.pages:
        verdicts = content.verdicts(page.slug)
        for clause in page.clauses:
            judged = verdicts.get(clause.id, {})
            listed.append(
                {
                    "id": clause.id,
                    "level": clause.level,
                    "text": clause.text,
                    "hash": clause.hash,
                    "since": content.since.get(clause.id),
                    "finding": page.slug,
                    "area": page.area,
                    "url": content.edition.address(page, clause.id),
                    "source_comment": f"memspec:{clause.id}@{clause.hash}",
                    "decided_by": clause.decided_by,
                    "unchecked": clause.unchecked or None,
                    "stricter_than_released": clause.stricter or None,
                    "verdict": "unchecked" if clause.unchecked else judged.get("verdict", "not-run"),
                    "broken_by": list(judged.get("broken_by") or ()),
                }
            )
    withdrawn = [
        {"id": t.id, "successor": None if t.successor == "none" else t.successor}
        for page in content.pages
        for t in page.tombstones
    ]
    return {"memspec": content.edition.version, "clauses": listed, "withdrawn": withdrawn}


def this_build(content: Content) -> dict[str, Any]:
    """The build's own run: platform, and per finding the verdict of every clause and fault."""
    return {
        "platform": dict(content.platform),
        "findings": {
            slug: {
                "clauses": {clause["id"]: clause["verdict"] for clause in found["clauses"]},
                "faults": {fault["name"]: fault["verdict"] for fault in found["faults"]},
                "vectors": found.get("vectors"),
            }
            for slug, found in content.report.items()
        },
    }


def llms(content: Content) -> str:
    """A plain map of the site for programs that read text."""
    base = content.edition.base
    lines = [
        "# memspec",
        "",
        "> An executable specification of what must hold when the memory of an LLM serving system changes hands. Every rule is a",
        "> clause with a stable id, a reference implementation, checks, and broken twins that the checks must catch.",
        "",
        f"Version {content.edition.version}. Data: {base}clauses.json (all clauses), {base}vectors/SLUG.json (test vectors",
        f"of a finding), {base}evidence.json (results).",
    ]
    for area, question in AREAS.items():
        pages = [page for page in content.pages if page.area == area]
        if pages:
            lines += ["", f"## {question}", ""] + [
                f"- [{page.title}]({content.edition.address(page)}): {page.summary}" for page in pages
            ]
    for page in content.pages:
        lines += ["", f"## Clauses of {page.slug}", ""] + [
            f"- {clause.id} ({clause.level}): {clause.text}" for clause in page.clauses
        ]
    return "\n".join(lines) + "\n"


def page_links(page: Page) -> str:
    """Where a page's data lie, as Markdown for its end. Relative to /spec/<area>/<slug>/."""
    links = {f"vectors/{page.slug}.json": "test vectors", "clauses.json": "all clauses", "evidence.json": "results"}
    listed = ", ".join(f'<a href="../../../{address}">{name}</a>' for address, name in links.items())
    return f'<p class="ms-data">Data: {listed}.</p>'


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n"
