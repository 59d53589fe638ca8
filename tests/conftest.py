"""Marked tests decide clauses that need another process; their outcomes are kept for the pages. Where no browser is, that is said.

The suite runs on as many processes as ``-n`` says; the controller alone keeps outcomes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from memspec_tools.errors import SpecError
from memspec_tools.outcomes import TestOutcome, write_outcomes
from memspec_tools.pages import load_pages
from memspec_tools.verify import closure_hash

WITHOUT_BROWSER = "there is no Chromium on this machine"

try:
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports triton
    torch.set_num_threads(1)
except ModuleNotFoundError:
    pass


class Outcomes:
    """What the reports say, wherever the tests ran."""

    def __init__(self) -> None:
        self.decided: dict[tuple[str, str], TestOutcome] = {}
        self.without_browser = 0
        self.closures: dict[str, str] = {}

    def pytest_sessionstart(self) -> None:
        try:
            self.closures = {page.slug: closure_hash(page) for page in load_pages()}  # as the code is now
        except SpecError as trouble:
            raise pytest.UsageError(str(trouble)) from trouble

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.without_browser += report.skipped and WITHOUT_BROWSER in str(report.longrepr)
        if report.when != "call" and report.passed:
            return
        verdict = {"passed": "pass", "failed": "fail", "skipped": "not-run"}[report.outcome]
        for clause, fault, detail in [told for name, told in report.user_properties if name == "clause"]:
            self.decided[report.nodeid, clause] = TestOutcome(report.nodeid, clause, fault, verdict, detail)

    def pytest_sessionfinish(self) -> None:
        if self.decided:
            write_outcomes(self.decided.values(), self.closures)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.without_browser:
            told = f"{self.without_browser} browser tests did not run: {WITHOUT_BROWSER}"
            terminalreporter.write_line(told, yellow=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-matrix", action="store_true", help="write the clause x fault matrix anew, for review")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(), "outcomes of marked tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    browser = shutil.which("chromium") or os.environ.get("CI")
    for item in items:
        if item.get_closest_marker("browser") and not browser:
            item.add_marker(pytest.mark.skip(reason=WITHOUT_BROWSER))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    for mark in item.iter_markers("clause"):
        why = str(call.excinfo.value).splitlines()[:1] if call.excinfo else []
        report.user_properties.append(("clause", [mark.args[0], mark.kwargs.get("fault"), "".join(why)]))
    return report
