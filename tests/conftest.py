"""Marked tests decide clauses that need another process; their outcomes are kept for the pages. Where no browser is, that is said."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from memspec_tools.findings import load_findings
from memspec_tools.outcomes import TestOutcome, write_outcomes
from memspec_tools.verify import closure_hash

WITHOUT_BROWSER = "there is no Chromium on this machine"
_outcomes = pytest.StashKey[dict[tuple[str, str], TestOutcome]]()
_no_browser = pytest.StashKey[int]()

try:
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports triton
except ModuleNotFoundError:
    pass


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_outcomes] = {}
    config.stash[_no_browser] = 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if shutil.which("chromium") or os.environ.get("CI"):
        return
    for item in items:
        if item.get_closest_marker("browser"):
            config.stash[_no_browser] += 1
            item.add_marker(pytest.mark.skip(reason=WITHOUT_BROWSER))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    for mark in item.iter_markers("clause"):
        key = (item.nodeid, mark.args[0])
        if report.when == "call" or report.outcome != "passed":
            verdict = {"passed": "pass", "failed": "fail", "skipped": "not-run"}[report.outcome]
            why = "" if report.passed else str(call.excinfo.value if call.excinfo else "").splitlines()[0:1]
            detail = why[0] if why else ""
            item.config.stash[_outcomes][key] = TestOutcome(
                item.nodeid, mark.args[0], mark.kwargs.get("fault"), verdict, detail
            )
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    outcomes = session.config.stash[_outcomes]
    if outcomes:
        slugs = {clause.partition(".")[0] for _, clause in outcomes}
        closures = {finding.slug: closure_hash(finding) for finding in load_findings() if finding.slug in slugs}
        write_outcomes(outcomes.values(), closures)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[_no_browser]:
        terminalreporter.write_line(
            f"{config.stash[_no_browser]} browser tests did not run: {WITHOUT_BROWSER}", yellow=True
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-matrix", action="store_true", help="write the clause x fault matrix anew, for review")
