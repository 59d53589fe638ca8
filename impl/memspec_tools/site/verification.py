"""The section "Verification": results of the build that made the page, and never more than was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memspec_tools.clauses import ClauseText
from memspec_tools.pages import Page
from memspec_tools.site.markup import (
    attribute,
    badge,
    code,
    counted,
    details,
    event_table,
    heading,
    plain,
    table,
    text,
    verdict,
)

Record = Mapping[str, Any]


def section(page: Page, found: Record | None, records: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> str:
    """Both tables. ``found`` is this finding's part of the report; ``records`` are (device, clause id -> verdict) of valid runs."""
    if found is None:
        return '<p class="ms-note">This finding was not verified in this build.</p>'
    by_id = {clause["id"]: clause for clause in found["clauses"]}
    return (
        f"<p>{overview(found)}</p>{clause_table(page, by_id, records)}{heading(3, 'faults', 'Broken twins')}"
        "<p>Each is the reference with one thing changed; a check that cannot fail proves nothing. "
        "The counterexample is the first case on which the check failed.</p>"
        + "".join(fault(page, entry) for entry in found["faults"])
    )


def overview(found: Record) -> str:
    """What this build ran, in one sentence or two."""
    clauses, faults, vectors = found["clauses"], found["faults"], found.get("vectors") or {}
    held = sum(clause["verdict"] == "pass" for clause in clauses)
    caught = sum(entry["verdict"] == "caught" for entry in faults)
    said = [
        f"In this build {held} of {counted(len(clauses), 'clause')} hold",
        f"{caught} of {counted(len(faults), 'broken twin')} are caught",
    ]
    if vectors:
        total = vectors.get("valid", 0) + vectors.get("invalid", 0)
        failed = vectors.get("failed", 0)
        count = failed if isinstance(failed, int) else len(failed)
        said.append(
            f"{total - count} of {counted(total, 'vector')} ({vectors.get('invalid', 0)} of them must be refused) agree"
        )
    return ", ".join(said[:-1]) + f" and {said[-1]}. What did not run is shown as not run, never as passed."


def clause_table(page: Page, by_id: Mapping[str, Record], records: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Clause x level x verdict x implementations and devices x cases x faults that break it."""
    names = list(dict.fromkeys(name for clause in by_id.values() for name in clause.get("implementations") or {}))
    tested = any(clause.decided_by == "test" for clause in page.clauses)
    head = ["Clause", "Level", *(text(name if name == "reference" else f"{name}, CPU") for name in names)]
    head += (
        ["Tests of this build"] * tested
        + [f"{text(device)}, recorded" for device, _ in records]
        + ["Cases", "Broken by"]
    )
    rows, notes = [], Notes()
    for written in page.clauses:
        judged = by_id.get(written.id, {})
        cells = [implementation(written, (judged.get("implementations") or {}).get(name), notes) for name in names]
        cells += [by_tests(written, judged, notes)] * tested + [
            recorded(verdicts.get(written.id)) for _, verdicts in records
        ]
        broken = ", ".join(f'<a href="#{anchor(name)}">{text(name)}</a>' for name in judged.get("broken_by") or ())
        first = f'<a href="#{attribute(written.id)}">{text(written.idea)}</a>'
        cases = f"{judged['cases']:,}" if judged.get("cases") else "–"
        rows.append([first, f'<span class="ms-nowrap">{written.level}</span>', *cells, cases, broken or "–"])
    return table(head, rows, f"Verification of {page.title}", "ms-matrix") + notes.shown()


class Notes:
    """Why clauses did not run, each reason once, under a letter."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def mark(self, reason: str) -> str:
        """The letter of a reason, as a link to it."""
        letter = self.letters.setdefault(reason, _letter(len(self.letters)))
        return f'<sup><a href="#not-run-{letter}">{letter}</a></sup>'

    def shown(self) -> str:
        """All reasons, in the order of their letters."""
        listed = "".join(
            f'<div id="not-run-{letter}"><dt>{letter}</dt><dd>{text(plain(reason, 300))}</dd></div>'
            for reason, letter in self.letters.items()
        )
        return f'<dl class="ms-facts ms-note" aria-label="Why clauses did not run">{listed}</dl>' if listed else ""


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else _letter(number // 26 - 1) + _letter(number % 26)


def implementation(written: ClauseText, judged: Record | None, notes: Notes) -> str:
    """What this build's checks say of one implementation."""
    if written.unchecked:
        return f"{verdict('unchecked')}<br><small>{text(written.unchecked)}</small>"
    if judged is None:
        return "–" if written.decided_by == "test" else verdict("not-run")
    return explained(judged, notes)


def by_tests(written: ClauseText, judged: Record, notes: Notes) -> str:
    """What the marked tests of this build say; a clause that the checks decide has none."""
    return explained(judged, notes) if written.decided_by == "test" and judged else "–"


def explained(judged: Record, notes: Notes) -> str:
    """The verdict, with the reason where it is not a pass."""
    outcome, detail = str(judged["verdict"]), str(judged.get("detail") or "")
    if outcome == "pass" or not detail:
        return verdict(outcome)
    if outcome == "not-run":
        return f'<span class="ms-nowrap">{verdict(outcome)}{notes.mark(detail)}</span>'
    return f"{verdict(outcome)}<br><small>{text(plain(detail, 300))}</small>"


def recorded(judged: Any) -> str:
    """A verdict from a recorded run: a word, or a mapping with the word in it."""
    outcome = judged.get("verdict") if isinstance(judged, Mapping) else judged
    return verdict(str(outcome)) if outcome else verdict("not-run")


def anchor(fault_name: str) -> str:
    return f"fault-{fault_name}"


def fault(page: Page, entry: Record) -> str:
    """One broken twin: where it comes from, what it breaks, its counterexamples."""
    name = entry["name"]
    matrix: Mapping[str, Record] = entry.get("matrix") or {}
    broken = {clause: found for clause, found in matrix.items() if found.get("verdict") == "fail"}
    declared = [
        idea if idea.startswith(f"{page.slug}.") else f"{page.slug}.{idea}" for idea in entry.get("breaks") or ()
    ]
    facts = [("Origin", text(entry["origin"]))]
    if entry.get("seen_in"):
        facts.append(("Seen in", text(entry["seen_in"])))
    links = [clause_link(page, clause) for clause in broken]
    if links or not entry.get("masked_by"):
        facts.append(("Breaks", ", ".join(links) or "nothing"))
    if missing := [clause_link(page, clause) for clause in declared if clause not in broken]:
        facts.append(("Declared, not broken", ", ".join(missing)))
    if entry.get("masked_by"):
        facts.append(("Masked by", text(entry["masked_by"])))
    listed = "".join(f"<div><dt>{label}</dt> <dd>{value}</dd></div> " for label, value in facts)
    title = f"{text(name)} {fault_verdict(str(entry['verdict']))}"
    note = f"<p>{text(entry['note'])}</p>" if entry.get("note") else ""
    return (
        f'<section class="ms-fault">{heading(4, anchor(name), title)}{note}'
        f'<dl class="ms-facts">{listed}</dl>{counterexamples(page, name, broken)}</section>'
    )


def fault_verdict(outcome: str) -> str:
    """A caught fault is what one wants; a redundant one is harmless and names its mask."""
    return badge(
        {"caught": "pass", "missed": "fail", "redundant": "not-exercised"}.get(outcome, "not-run"),
        outcome.replace("-", " "),
    )


def clause_link(page: Page, clause_id: str) -> str:
    return f'<a href="#{attribute(clause_id)}">{text(clause_id.removeprefix(page.slug + "."))}</a>'


def counterexamples(page: Page, name: str, broken: Mapping[str, Record]) -> str:
    """The case and what was seen for each clause; the first with a trace is shown as an event table as well."""
    if not broken:
        return ""
    rows = [
        [
            clause_link(page, clause),
            code(plain(found["case"], 600)) if found.get("case") is not None else "–",
            text(plain(found.get("detail") or "", 900)),
        ]
        for clause, found in broken.items()
    ]
    shown = table(["Clause", "Case", "What was seen"], rows, f"Counterexamples to {name}", "ms-cases")
    traced = next(((clause, found) for clause, found in broken.items() if found.get("trace")), None)
    if traced is not None:
        clause, found = traced
        shown = (
            f"<p>The events that break {clause_link(page, clause)}:</p>"
            f"{event_table(list(found['trace']), f'Events with which {name} breaks {clause}')}{shown}"
        )
    return details("ms-box", counted(len(broken), "counterexample"), f"to {name}", shown)
