"""Every check on every implementation and every fault: the results that pages, records and tests show."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from memspec import __version__
from memspec.conformance import Fault, Outcome, Verdict

from memspec_tools.closure import finding_closure, module_closure
from memspec_tools.errors import SpecError
from memspec_tools.findings import Finding, load_findings
from memspec_tools.judging import judged, run_vectors
from memspec_tools.kept import keep, read_kept
from memspec_tools.outcomes import SEVERITY, TestOutcome, read_outcomes
from memspec_tools.pages import Page
from memspec_tools.places import cache_dir, root
from memspec_tools.vectors import Vector

WORST_FIRST: tuple[Outcome, ...] = ("fail", "crash", "not-exercised", "pass", "not-run")

Report = dict[str, Any]
Tell = Callable[[str], None]


def verify(slugs: Sequence[str] = (), device: str = "cpu", tell: Tell = lambda what: None) -> Report:
    """Verify the findings named, or all, and return the report of ``memspec verify --json``."""
    findings, report = load_findings(slugs), _shell(device)
    ran = run_findings(findings, device, tell)
    report["findings"] = [with_outcomes(ran[finding.slug], finding) for finding in findings]
    return report


def run_findings(findings: Sequence[Finding], device: str, tell: Tell = lambda what: None) -> dict[str, Report]:
    """Judge several findings, by slug: on the CPU one in each core's process, on a device one after the other."""
    jobs = min(os.cpu_count() or 1, len(findings)) if device == "cpu" else 1
    if jobs < 2:
        return {finding.slug: run_finding(finding, device, tell) for finding in findings}
    ran: dict[str, Report] = {}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(_run_slug, finding.slug, device): finding.slug for finding in findings}
        for future in as_completed(futures):
            ran[futures[future]] = future.result()
            waiting = [slug for slug in futures.values() if slug not in ran]
            tell(f"{futures[future]} judged; waiting for {', '.join(waiting)}" if waiting else "all findings judged")
    return ran


def _run_slug(slug: str, device: str) -> Report:
    return run_finding(load_findings([slug])[0], device)


def run_finding(finding: Finding, device: str, tell: Tell = lambda what: None) -> Report:
    """Judge all implementations and faults of one finding. Test-decided clauses are filled in by :func:`with_outcomes`."""
    checks = finding.checks
    implementations: dict[str, dict[str, Verdict]] = {}
    for name, make in finding.implementations(device).items():
        tell(f"{finding.slug}: {name}")
        implementations[name] = judged(checks, make)
    faults: list[Report] = []
    for fault in finding.faults:
        tell(f"{finding.slug}: fault {fault.name}")
        faults.append(_fault_report(finding, fault, judged(checks, fault.subject)))
    tell(f"{finding.slug}: vectors")
    report = finding_report(finding, implementations, faults)
    report["vectors"] = vectors_report(run_vectors(finding.vectors, checks, finding.reference))
    return report


def finding_report(
    finding: Finding, implementations: Mapping[str, Mapping[str, Verdict]], faults: list[Report]
) -> Report:
    """The report of one finding from the verdicts of some implementations and the reports of some faults; no vectors yet."""
    clauses: list[Report] = []
    for clause in finding.page.clauses:
        per = {name: verdicts[clause.id] for name, verdicts in implementations.items() if clause.id in verdicts}
        overall = Verdict("unchecked", detail=clause.unchecked) if clause.unchecked else _overall(per)
        if clause.decided_by == "test":
            overall = Verdict("not-run", detail="decided by a marked test of this project, in another process")
        clauses.append(
            {
                "id": clause.id,
                "level": clause.level,
                "hash": clause.hash,
                "verdict": overall.outcome,
                "decided_by": clause.decided_by,
                "broken_by": [
                    fault["name"] for fault in faults if fault["matrix"].get(clause.id, {}).get("verdict") == "fail"
                ],
                "cases": overall.cases,
                "detail": _short(overall.detail),
                "implementations": {name: _verdict_report(verdict) for name, verdict in per.items()},
            }
        )
    page = finding.page
    return {
        "slug": page.slug,
        "area": page.area,
        "kind": page.kind,
        "clauses": clauses,
        "faults": faults,
        "vectors": vectors_report([]),
    }


def vectors_report(results: Sequence[tuple[Vector, Verdict]]) -> Report:
    return {
        "valid": sum(vector.valid for vector, verdict in results if verdict.outcome != "not-run"),
        "invalid": sum(not vector.valid for vector, verdict in results if verdict.outcome != "not-run"),
        "failed": [vector.id for vector, verdict in results if verdict.outcome in ("fail", "crash")],
        "not_run": [vector.id for vector, verdict in results if verdict.outcome == "not-run"],
        "details": {vector.id: _short(verdict.detail) for vector, verdict in results if verdict.outcome != "pass"},
    }


def with_outcomes(report: Report, finding: Finding) -> Report:
    """Fill in what marked tests of this build decided; without a fresh outcome such a clause is "not-run"."""
    decided = [clause for clause in report["clauses"] if clause["decided_by"] == "test"]
    outcomes = read_outcomes(finding.slug, closure_hash(finding.page)) if decided else []
    for clause in decided:
        mine = [outcome for outcome in outcomes if outcome.clause == clause["id"]]
        verdict, detail = _from_tests([outcome for outcome in mine if outcome.fault is None])
        clause["verdict"], clause["detail"] = verdict, detail
        clause["tests"] = [vars(outcome) for outcome in mine]
        clause["broken_by"] = clause["broken_by"] + sorted(
            {o.fault for o in mine if o.fault is not None and o.verdict == "pass"}
        )
    for fault in report["faults"]:
        shown = [o for o in outcomes if o.fault == fault["name"]]
        for outcome in shown:
            seen = {"pass": "fail", "fail": "pass"}.get(
                outcome.verdict, outcome.verdict
            )  # the test passes when the twin is caught
            fault["matrix"][outcome.clause] = {
                "verdict": seen,
                "cases": 1,
                "case": outcome.test,
                "detail": outcome.detail,
                "trace": [],
            }
        fault["verdict"] = _fault_verdict(
            fault["breaks"], {name: cell["verdict"] for name, cell in fault["matrix"].items()}
        )
    return report


def closure_hash(page: Page) -> str:
    """What the results of a page's finding stand on, as one hash; its marked tests included."""
    top = root()
    marked = (top / "tests" / page.area).glob(f"test_{page.slug.replace('-', '_')}*.py") if top else ()
    return finding_closure(page, extra=marked).hash


def complaints(report: Report) -> list[str]:
    """Why the report is not green, one line each: a clause not passed, a MUST that nothing breaks, a fault missed, a vector failed."""
    told: list[str] = []
    for finding in report["findings"]:
        for clause in finding["clauses"]:
            waiting = clause["decided_by"] == "test" and clause["verdict"] == "not-run"
            if clause["verdict"] not in ("pass", "unchecked") and not waiting:
                told.append(f"{clause['id']}: {clause['verdict']}: {clause['detail']}")
            if clause["level"].startswith("MUST") and clause["verdict"] == "pass" and not clause["broken_by"]:
                told.append(f"{clause['id']}: no fault breaks it")
        told += [
            f"{finding['slug']}: fault {f['name']}: {f['verdict']}"
            for f in finding["faults"]
            if f["verdict"] == "missed"
        ]
        vectors = finding["vectors"]
        told += [
            f"{finding['slug']}: vector {name}: {vectors['details'][name]}"
            for name in vectors["failed"] + vectors["not_run"]
        ]
    return told


def cached_report(slugs: Sequence[str] = (), device: str = "cpu", tell: Tell = lambda what: None) -> Report:
    """The report of :func:`verify`, each finding from the cache while its closure is unchanged. For the site, in a fresh process."""
    if root() is None:
        raise SpecError(None, None, "--cached needs a checkout; an installed package keeps no results")
    findings, report = load_findings(slugs), _shell(device)
    runner = module_closure(__name__).hash  # a changed runner makes kept verdicts worthless too
    closures = {finding.slug: closure_hash(finding.page) + runner for finding in findings}
    paths = {slug: cache_dir() / "verify" / device / f"{slug}.json" for slug in closures}
    kept = {slug: read_kept(path) for slug, path in paths.items()}
    stale = [finding for finding in findings if kept[finding.slug].get("closure") != closures[finding.slug]]
    for slug, ran in run_findings(stale, device, tell).items():
        kept[slug] = {"closure": closures[slug], "report": ran}
        keep(paths[slug], kept[slug])
    report["findings"] = [with_outcomes(kept[finding.slug]["report"], finding) for finding in findings]
    return report


def _shell(device: str) -> Report:
    return {
        "memspec": __version__,
        "device": device,
        "platform": {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()},
        "findings": [],
    }


def _overall(per: Mapping[str, Verdict]) -> Verdict:
    """The worst verdict of those implementations that ran; "not-run" only when none did."""
    return min(
        per.values(),
        key=lambda v: WORST_FIRST.index(v.outcome),
        default=Verdict("not-run", detail="no check decides it"),
    )


def _from_tests(outcomes: Sequence[TestOutcome]) -> tuple[str, str]:
    if not outcomes:
        return "not-run", "its marked test has not run in this build"
    worst = min(outcomes, key=lambda outcome: SEVERITY.index(outcome.verdict))
    return worst.verdict, worst.detail or ", ".join(outcome.test for outcome in outcomes)


def _fault_report(finding: Finding, fault: Fault, verdicts: Mapping[str, Verdict]) -> Report:
    matrix = {name: _verdict_report(verdict) for name, verdict in verdicts.items()}
    breaks = sorted(f"{finding.slug}.{idea}" for idea in fault.breaks)
    return {
        "name": fault.name,
        "seen_in": fault.seen_in,
        "breaks": breaks,
        "origin": fault.origin,
        "note": fault.note,
        "masked_by": fault.masked_by,
        "matrix": matrix,
        "verdict": _fault_verdict(breaks, {name: cell["verdict"] for name, cell in matrix.items()}),
    }


def _fault_verdict(breaks: Sequence[str], seen: Mapping[str, str]) -> str:
    if not breaks:
        return "missed" if "fail" in seen.values() else "redundant"
    outcomes = {seen.get(name, "not-run") for name in breaks}
    if outcomes == {"fail"}:
        return "caught"
    return "not-run" if outcomes <= {"fail", "not-run"} else "missed"


def _verdict_report(verdict: Verdict) -> Report:
    return {
        "verdict": verdict.outcome,
        "cases": verdict.cases,
        "case": _short(verdict.case),
        "detail": _short(verdict.detail),
        "trace": [{key: _short(value) for key, value in row.items()} for row in verdict.trace],
    }


def _short(thing: object, limit: int = 600) -> str:
    if thing is None:
        return ""
    text = thing if isinstance(thing, str) else repr(thing)
    return text if len(text) <= limit else text[: limit - 3] + "..."
