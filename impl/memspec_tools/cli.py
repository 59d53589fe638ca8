"""The command ``memspec``. Exit codes: 0 all is well, 1 a clause is violated, 2 bad input."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from memspec import __version__
from rich.markup import escape

from memspec_tools.clauses import ClauseText
from memspec_tools.cli_device import evidence, gallery, need_device
from memspec_tools.errors import SpecError
from memspec_tools.judging import LIMIT_S
from memspec_tools.pages import AREAS, Page, load_pages
from memspec_tools.places import shown
from memspec_tools.printing import err, out, print_finding, print_methods, print_next_steps, print_page, progress


class Teach(click.Group):
    """A group whose bad input ends in one line on stderr and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SpecError as trouble:
            err.print(f"[red]error:[/] {escape(str(trouble))}", soft_wrap=True, highlight=False)
            ctx.exit(2)


@click.group(cls=Teach, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="memspec")
def main() -> None:
    """An executable specification of LLM-serving memory.

    \b
    memspec list                                     what there is
    memspec show packed-block-zeroing.page-span      one clause
    memspec check packed-block-zeroing               its reference and its broken twins
    memspec check packed-block-zeroing --subject mine:Zeroer
                                                     your own code (class, factory or module on the path)
    memspec verify                                   everything, as the site shows it

    Exit codes: 0 all is well, 1 a clause is violated, 2 bad input.
    """


@main.command("list")
@click.argument("slug", required=False)
def list_(slug: str | None) -> None:
    """List the findings, or the clauses of one."""
    pages = load_pages()
    if slug is None:
        for area, question in AREAS.items():
            if found := [page for page in pages if page.area == area]:
                out.print(f"[bold]{area}[/]  [dim]{question}[/]")
                for page in found:
                    out.print(
                        f"  {page.slug:<26} {len(page.clauses):>2} clauses  {page.kind:<9} {escape(page.title)}",
                        soft_wrap=True,
                    )
        return
    for clause in _page(slug).clauses:
        out.print(
            f"[bold]{clause.id}[/]  [cyan]{clause.level}[/]  [dim]{clause.hash}[/]\n    {escape(clause.text)}",
            soft_wrap=True,
            highlight=False,
        )


@main.command()
@click.argument("clause_id", metavar="ID")
def show(clause_id: str) -> None:
    """Show one clause: text, level, hash, since, how it is decided, what breaks it. Or a finding: its summary, and the methods
    that a subject may offer.
    """
    from memspec_tools.findings import load_findings, page_of
    from memspec_tools.lock import read_lock

    if "." not in clause_id:
        finding = load_findings([clause_id])[0]
        print_page(finding.page)
        print_methods(finding.checks, finding.page.module)
        return
    clause_id = _cited(clause_id)
    page = page_of(clause_id, load_pages())
    clause = _clause(page, clause_id)
    locked = read_lock().get(clause_id)
    out.print(
        f"[bold]{clause.id}[/]  [cyan]{clause.level}[/]  @{clause.hash}  since {locked.since if locked else 'not released'}",
        highlight=False,
    )
    out.print(escape(clause.text), soft_wrap=True, highlight=False)
    if clause.stricter:
        out.print(f"stricter than released versions: {escape(clause.stricter)}", soft_wrap=True)
    out.print(
        f"unchecked: {escape(clause.unchecked)}" if clause.unchecked else f"decided by: {clause.decided_by}",
        soft_wrap=True,
    )
    finding = load_findings([page.slug])[0]
    breaking = [fault for fault in finding.faults if clause.idea in fault.breaks]
    for fault in breaking:
        out.print(
            escape(
                f"  broken by {fault.name} ({fault.origin}{', ' + fault.seen_in if fault.seen_in else ''}): {fault.note}"
            ),
            soft_wrap=True,
        )
    out.print(
        escape(f"vectors: {', '.join(v.id for v in finding.vectors if clause.idea in v.data['clauses']) or 'none'}"),
        soft_wrap=True,
    )


@main.command()
@click.argument("clause_id", metavar="ID")
@click.option(
    "--format", "form", type=click.Choice(["markdown", "bibtex", "comment"]), help="One form only; default: all three."
)
def cite(clause_id: str, form: str | None) -> None:
    """Print citations of a clause: Markdown, BibTeX, and the comment for source code."""
    from memspec_tools.citations import citations
    from memspec_tools.findings import page_of
    from memspec_tools.lock import read_lock

    clause_id = _cited(clause_id)
    page = page_of(clause_id, load_pages())
    locked = read_lock().get(clause_id)
    forms = citations(page, _clause(page, clause_id), locked.since if locked else __version__)
    for text in [forms[form]] if form else forms.values():
        click.echo(text)


@main.command()
@click.argument("slug")
@click.option(
    "--subject",
    help="package.module, or package.module:attribute (a class, a factory that may take the device, or an object).",
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--strict", is_flag=True, help="A broken SHOULD fails too.")
@click.option("--limit", default=LIMIT_S, show_default=True, help="Seconds until a subject counts as hung.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable verdicts on stdout.")
def check(slug: str, subject: str | None, device: str, strict: bool, limit: float, as_json: bool) -> None:
    """Put code through the checks of one finding: the reference and its broken twins, or your own with --subject."""
    from memspec_tools.checking import check_own, check_subject

    need_device(device)
    with progress() as tell:
        report = check_own(slug, device, tell) if subject is None else check_subject(slug, subject, device, limit, tell)
    if as_json:
        click.echo(json.dumps(report, indent=1))
    else:
        print_finding(report, None if subject is None else {clause.id: clause.text for clause in _page(slug).clauses})
    if not any(c["verdict"] in ("pass", "fail", "crash") for c in report["clauses"]):
        raise SpecError(
            None, None, f"nothing was decided: {report['clauses'][0]['detail'] if report['clauses'] else 'no clauses'}"
        )
    broken = [
        c for c in report["clauses"] if c["verdict"] in ("fail", "crash") and (strict or c["level"].startswith("MUST"))
    ]
    if subject is not None and not as_json:
        print_next_steps(report, len(broken))
    missed = [f for f in report["faults"] if f["verdict"] == "missed"]
    if broken or missed or report["vectors"]["failed"]:
        sys.exit(1)


@main.command()
@click.argument("slugs", nargs=-1)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The whole report on stdout.")
@click.option(
    "--cached", is_flag=True, help="Take a finding's result from the cache while nothing it stands on has changed."
)
def verify(slugs: tuple[str, ...], device: str, as_json: bool, cached: bool) -> None:
    """Run every check on every reference and every fault (all findings, or those named)."""
    from memspec_tools import verify as verification

    need_device(device)
    with progress() as tell:
        report = (verification.cached_report if cached else verification.verify)(slugs, device, tell)
    if as_json:
        click.echo(json.dumps(report, indent=1))
    else:
        for finding in report["findings"]:
            print_finding(finding)
    told = verification.complaints(report)
    for line in told:
        err.print(f"[red]{escape(line)}[/]", soft_wrap=True, highlight=False)
    if told:
        sys.exit(1)


@main.command()
@click.argument("slugs", nargs=-1)
def guards(slugs: tuple[str, ...]) -> None:
    """Delete every guard of the references in turn and list what each deletion breaks.

    Exit code 1 if one breaks nothing and does not say what masks it.
    """
    from memspec_tools.findings import load_findings
    from memspec_tools.guards import delete_each

    unexplained = 0
    for finding in load_findings(slugs):
        with progress() as tell:
            deletions = list(delete_each(finding, tell))
        for deletion in deletions:
            click.echo(deletion.guard)
            click.echo(f"    {deletion.told}")
            unexplained += not deletion.noticed and not deletion.guard.masked_by
    if unexplained:
        sys.exit(1)


@main.command()
@click.option(
    "--check", "only_check", is_flag=True, help="Say what differs and change nothing; exit 1 if anything does."
)
def lock(only_check: bool) -> None:
    """Renew spec/clauses.lock after a clause was added, changed or withdrawn on purpose."""
    from memspec_tools.lock import differences, lock_path, renew

    told = differences(load_pages(), __version__) if only_check else renew(load_pages(), __version__)
    for line in told:
        click.echo(line)
    if told and only_check:
        click.echo(
            "Renew the lock with `memspec lock`, and say in CHANGELOG what was tightened, loosened or withdrawn.",
            err=True,
        )
        sys.exit(1)
    click.echo(f"{shown(lock_path())}: {f'{len(told)} changes' if told else 'unchanged'}")


def _page(slug: str) -> Page:
    pages = load_pages()
    for page in pages:
        if page.slug == slug:
            return page
    raise SpecError(None, None, f"there is no finding {slug!r}; known: {', '.join(page.slug for page in pages)}")


def _cited(name: str) -> str:
    """The clause id in a citation (``memspec:<id>@<hash>``). Says so where the text is no longer the one that was cited."""
    clause_id, _, cited = name.removeprefix("memspec:").partition("@")
    now = next((c.hash for page in load_pages() for c in page.clauses if c.id == clause_id), cited)
    if cited and cited != now:
        err.print(
            f"{clause_id} was cited as @{cited}; its text is another now, @{now}", soft_wrap=True, highlight=False
        )
    return clause_id


def _clause(page: Page, clause_id: str) -> ClauseText:
    return next(clause for clause in page.clauses if clause.id == clause_id)


main.add_command(gallery)
main.add_command(evidence)

if __name__ == "__main__":
    main()
