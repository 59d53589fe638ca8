"""The findings under their four questions, with what this build found of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memspec_tools.pages import AREAS, Page
from memspec_tools.site.head import levels
from memspec_tools.site.markup import OUTCOMES, badge, heading, table, text, verdict

# What the specification is to cover, in the words of an index. A finding that has a page is listed by that page.
PLANNED: dict[str, dict[str, str]] = {
    "capacity": {
        "window-page-budget": "Sliding-window page budgets",
        "compress-ring-pad": "Padding of a compress-state ring",
        "chunked-attention-window": "Chunked local attention in an offload lookup",
        "draft-pool-budget": "The draft model's KV pool",
        "dynamic-speculation": "KV budgets under dynamic speculation",
    },
    "layout": {
        "packed-block-zeroing": "Zeroing blocks of a packed KV slab",
        "canonical-layout": "A canonical KV layout across tensor-parallel sizes",
        "unified-pool": "Unified pools",
        "graph-tracking-buffers": "Recurrent state under captured graphs",
        "mla-context-chunks": "Chunked context for MLA",
    },
    "ordering": {
        "token-replay-handoff": "Hand-off from prefill to decode with token replay",
        "staged-prefix-transfer": "Staged prefix transfer",
        "remote-load-fallback": "Fallback when a remote load is late",
        "failed-load-verdict": "Verdicts on failed loads",
        "session-recall-ledger": "Session recall ledgers",
    },
    "compatibility": {
        "hybrid-hit-capability": "Prefix hits in hybrid models",
        "kv-manager-default": "Who chooses the KV manager",
    },
}


def findings(
    pages: Sequence[Page], report: Mapping[str, Mapping[str, Any]], ran: Mapping[str, str], prefix: str = "spec/"
) -> str:
    """One table an area, as HTML. ``report`` and ``ran`` are by slug; ``prefix`` leads from the page to spec/."""
    return "".join(
        area_section(area, [page for page in pages if page.area == area], report, ran, prefix) for area in AREAS
    )


def area_section(
    area: str, pages: Sequence[Page], report: Mapping[str, Mapping[str, Any]], ran: Mapping[str, str], prefix: str
) -> str:
    """The findings of one area: those that have a page, then those that are planned."""
    titled = heading(3, area, f'{text(AREAS[area])} <span class="ms-area">{area}</span>')
    rows = [
        [
            f'<a href="{prefix}{page.area}/{page.slug}/">{text(page.title)}</a><br><small>{text(first_sentence(page.summary))}</small>',
            clauses_cell(page),
            *live(report.get(page.slug)),
            text(ran.get(page.slug, "not run")),
            f"{text(page.status)}<br><small>{text(page.evidence)}</small>",
        ]
        for page in pages
    ]
    written = {page.slug for page in pages}
    planned = [title for slug, title in PLANNED[area].items() if slug not in written]
    shown = (
        table(
            ["Finding", "Clauses", "In this build", "Broken twins", "Has run on", "Upstream"],
            rows,
            AREAS[area],
            "ms-findings",
        )
        if rows
        else ""
    )
    later = f'<p class="ms-planned"><b>Planned, no page yet:</b> {text("; ".join(planned))}.</p>' if planned else ""
    return titled + shown + later


def clauses_cell(page: Page) -> str:
    binding = sum(number for level, number in levels(page).items() if level.startswith("MUST"))
    return f"{len(page.clauses)}<br><small>{binding} binding</small>"


def live(found: Mapping[str, Any] | None) -> tuple[str, str]:
    """How many clauses hold, and how many broken twins were caught, in this build."""
    if found is None:
        return verdict("not-run"), verdict("not-run")
    outcomes = Counter(str(clause["verdict"]) for clause in found["clauses"])
    bad = outcomes["fail"] + outcomes["crash"]
    worst = "fail" if bad else "not-run" if outcomes["not-run"] + outcomes["not-exercised"] else "pass"
    rest = ", ".join(f"{number} {OUTCOMES[name][2]}" for name, number in outcomes.items() if name != "pass")
    held = badge(worst, f"{outcomes['pass']} of {outcomes.total()} hold") + (
        f"<br><small>{rest}</small>" if rest else ""
    )
    twins = Counter(str(fault["verdict"]) for fault in found["faults"])
    worst = "fail" if twins["missed"] else "not-run" if twins["not-run"] else "pass"
    words = {"redundant": "masked by another guard", "missed": "missed", "not-run": "not run"}
    rest = ", ".join(f"{twins[name]} {word}" for name, word in words.items() if twins[name])
    return held, badge(worst, f"{twins['caught']} of {twins.total()} caught") + (
        f"<br><small>{rest}</small>" if rest else ""
    )


def first_sentence(summary: str) -> str:
    return summary.split(". ")[0].rstrip(".") + "."
