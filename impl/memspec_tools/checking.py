"""``memspec check``: one finding's own reference and faults, or somebody's subject."""

from __future__ import annotations

from memspec_tools.findings import load_findings
from memspec_tools.judging import judged, made, run_vectors
from memspec_tools.subjects import subject_factory
from memspec_tools.verify import Report, Tell, finding_report, run_finding, vectors_report, with_outcomes


def check_own(slug: str, device: str, tell: Tell) -> Report:
    """The report of our own implementations and faults."""
    finding = load_findings([slug])[0]
    return with_outcomes(run_finding(finding, device, tell), finding)


def check_subject(slug: str, name: str, device: str, limit_s: float, tell: Tell) -> Report:
    """The report of one foreign subject, in the same shape, without faults."""
    finding = load_findings([slug])[0]
    make = subject_factory(name, device)
    tell(f"{slug}: {name}")
    verdicts = judged(finding.checks, make, limit_s)
    report = finding_report(finding, {name: verdicts}, [])
    if any(verdict.outcome in ("pass", "fail") for verdict in verdicts.values()):
        tell(f"{slug}: vectors")
        subject, none = made(make, limit_s)
        results = [(vector, none) for vector in finding.vectors] if none else None
        report["vectors"] = vectors_report(results or run_vectors(finding.vectors, finding.checks, subject, limit_s))
    return report
