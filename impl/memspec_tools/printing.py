"""What the command line shows a person."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from memspec.conformance import Checks, facet_methods
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from memspec_tools.pages import Page
from memspec_tools.verify import Report, Tell

MARKS = {
    "pass": "[green]pass[/]",
    "fail": "[bold red]FAIL[/]",
    "crash": "[bold red]CRASH[/]",
    "not-run": "[yellow]not run[/]",
    "not-exercised": "[yellow]not exercised[/]",
    "unchecked": "[dim]unchecked[/]",
    "caught": "[green]caught[/]",
    "missed": "[bold red]MISSED[/]",
    "redundant": "[dim]redundant[/]",
}

WIDE = 120  # columns, where stdout is no terminal
out = Console() if Console().is_terminal else Console(width=WIDE)
err = Console(stderr=True)


@contextmanager
def progress() -> Iterator[Tell]:
    """A spinner on stderr that says what is being done; silent where stderr is no terminal."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    ) as bar:
        task = bar.add_task("reading the specification")
        yield lambda what: bar.update(task, description=escape(what))


def print_page(page: Page) -> None:
    """The head of a page: title, summary, status, sources."""
    out.print(f"[bold]{escape(page.title)}[/]  ({page.area}, {page.kind})\n{escape(page.summary)}", soft_wrap=True)
    out.print(f"status: {page.status}; evidence: {page.evidence}")
    for source in page.sources:
        release = f", first release {source['first_release']}" if source.get("first_release") else ""
        out.print(escape(f"  {source['system']}: {source['ref']}{release}"), soft_wrap=True)


def print_methods(checks: Checks, module: str) -> None:
    """What a subject may offer: each facet that some clause asks for, its methods with their signatures, its clauses; and
    where the types of a finding's ``module`` are explained.
    """
    asked: dict[type, list[str]] = {}
    for clause in checks.clauses.values():
        if clause.facet is not None:
            asked.setdefault(clause.facet, []).append(clause.id.partition(".")[2])
    out.print("what a subject may offer, each facet alone or with others:")
    for facet, ideas in asked.items():
        out.print(
            f"  [bold]{facet.__name__}[/]  {escape(' '.join((facet.__doc__ or '').split()))}",
            soft_wrap=True,
            highlight=False,
        )
        for name in facet_methods(facet):
            signature = str(inspect.signature(getattr(facet, name))).replace("'", "")
            out.print(escape(f"    {name}{signature}"), soft_wrap=True, highlight=False)
        out.print(f"    [dim]judged for {', '.join(ideas)}[/]", soft_wrap=True, highlight=False)
    if find_spec(f"{module}.data"):
        out.print(f"the types in these signatures: python -m pydoc {module}.data", soft_wrap=True, highlight=False)


def print_finding(report: Report, texts: Mapping[str, str] | None = None) -> None:
    """The verdicts of one finding as a table, then what was seen where one is not in order. Clauses that did not run are summed up.

    With ``texts`` (clause texts by id, for somebody's own subject) each broken clause is quoted.
    """
    implementations = list(dict.fromkeys(name for clause in report["clauses"] for name in clause["implementations"]))
    several = implementations if len(implementations) > 1 else []
    table = Table(
        title=f"{report['slug']}  ({report['kind']})",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
    )
    for name in ("clause", "level", "verdict", *several):
        table.add_column(name, no_wrap=True)
    table.add_column("cases", justify="right")
    table.add_column("broken by", overflow="fold")
    waiting: dict[str, list[str]] = {}
    for clause in report["clauses"]:
        idea = clause["id"].partition(".")[2]
        if clause["verdict"] == "not-run":
            waiting.setdefault(clause["detail"], []).append(idea)
            continue
        columns = [
            MARKS[clause["implementations"][n]["verdict"]] if n in clause["implementations"] else "" for n in several
        ]
        broken = ", ".join(clause["broken_by"][:3]) + (
            f" and {len(clause['broken_by']) - 3} more" if clause["broken_by"][3:] else ""
        )
        table.add_row(idea, clause["level"], MARKS[clause["verdict"]], *columns, str(clause["cases"] or ""), broken)
    out.print(table)
    for why, ideas in waiting.items():
        out.print(f"  {MARKS['not-run']} {escape(why)}: {', '.join(ideas)}", soft_wrap=True, highlight=False)
    for clause in report["clauses"]:
        if clause["verdict"] not in ("pass", "unchecked", "not-run"):
            out.print(
                f"  {MARKS[clause['verdict']]} {clause['id']}: {escape(clause['detail'])}",
                soft_wrap=True,
                highlight=False,
            )
            if texts is not None:
                out.print(f"      {escape(texts[clause['id']])}", soft_wrap=True, highlight=False)
            for name, per in clause["implementations"].items():
                if per["verdict"] in ("fail", "crash"):
                    out.print(f"      {name}, case {escape(per['case'])}", soft_wrap=True, highlight=False)
                    for row in per["trace"]:
                        told = "  ".join(f"{k}={v}" for k, v in row.items())
                        out.print("        " + escape(told), soft_wrap=True, highlight=False)
    for fault in report["faults"]:
        out.print(
            f"  {MARKS[fault['verdict']]} fault {fault['name']}"
            + ("" if fault["verdict"] != "missed" else f": due to break {', '.join(fault['breaks'])}"),
            soft_wrap=True,
            highlight=False,
        )
    vectors = report["vectors"]
    failed, not_run = len(vectors["failed"]), len(vectors["not_run"])
    counts = f"{vectors['valid']} valid, {vectors['invalid']} must-reject, {failed} failed, {not_run} not run"
    out.print(f"  vectors: {counts}")
    for name in vectors["failed"]:
        out.print(f"    [red]{name}[/]: {escape(vectors['details'][name])}", soft_wrap=True, highlight=False)


def print_next_steps(report: Report, broken: int) -> None:
    """How somebody's own subject stands, in one line, and where to read on."""
    seen = [clause["verdict"] for clause in report["clauses"]]
    first = next((c["id"] for c in report["clauses"] if c["verdict"] in ("fail", "crash")), None)
    undecided = len(seen) - seen.count("pass") - seen.count("fail") - seen.count("crash")
    out.print(
        f"{seen.count('pass')} clauses hold, {seen.count('fail') + seen.count('crash')} do not"
        f"{f' ({broken} of them decide the exit code)' if broken else ''}, {undecided} not decided.",
        soft_wrap=True,
        highlight=False,
    )
    if first:
        out.print(f"  memspec show {first}   what breaks this clause, and its vectors", soft_wrap=True, highlight=False)
    if "not-run" in seen:
        out.print(
            f"  memspec show {report['slug']}   the methods that a subject may offer", soft_wrap=True, highlight=False
        )
