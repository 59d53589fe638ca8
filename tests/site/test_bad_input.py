"""What happens to a build and to a server when a page is malformed: one line, exit code 1, the old site untouched; the server lives on."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from memspec_tools.pages import load_pages

TOP = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the site is made from, with one finding and without gallery scripts, so that a build takes seconds."""
    for name in ("docs", "impl", "spec"):
        shutil.copytree(TOP / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "CITATION.cff"):
        if (TOP / name).is_file():
            shutil.copy(TOP / name, tmp_path / name)
    if (TOP / ".cache/verify").is_dir():
        shutil.copytree(TOP / ".cache/verify", tmp_path / ".cache/verify")
    (tmp_path / "gallery").mkdir()
    whole = [
        page
        for page in load_pages()
        if (page.path.parents[2] / "impl" / page.module.replace(".", "/") / "faults.py").is_file()
    ]
    kept = min(whole, key=lambda page: len(page.clauses)).path.relative_to(TOP)
    for path in (tmp_path / "spec").glob("*/*.md"):
        if path.relative_to(tmp_path) != kept:
            path.unlink()
    return tmp_path


def environment(checkout: Path) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(checkout / "impl"),
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def page_of(checkout: Path) -> Path:
    return next((checkout / "spec").glob("*/*.md"))


def build(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(command, cwd=checkout, env=environment(checkout), capture_output=True, text=True)


def test_a_malformed_page_ends_the_build_in_one_line_and_leaves_the_old_site(checkout: Path) -> None:
    (checkout / "site").mkdir()
    (checkout / "site/old.html").write_text("old")
    page = page_of(checkout)
    page.write_text(page.read_text(encoding="utf-8").replace("\nkind: ", "\nkind: un", 1), encoding="utf-8")
    done = build(checkout)
    assert done.returncode == 1
    complaints = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    assert len(complaints) == 1
    assert f"{page.relative_to(checkout).as_posix()}:" in complaints[0]
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in (checkout / "site").iterdir()) == ["old.html"]


def test_code_that_does_not_parse_ends_the_build_in_one_line(checkout: Path) -> None:
    page = page_of(checkout)
    module = checkout / "impl/memspec" / page.parent.name / page.stem.replace("-", "_") / "faults.py"
    module.write_text(module.read_text(encoding="utf-8") + "\ndef broken(:\n", encoding="utf-8")
    done = build(checkout)
    assert done.returncode == 1
    assert "faults.py:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (checkout / "site").exists()


def test_another_checkouts_package_is_refused(checkout: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(command, cwd=checkout, env=environment(TOP), capture_output=True, text=True)
    assert done.returncode == 1
    assert str(TOP) in done.stderr


@pytest.mark.slow
def test_a_server_shows_edits_and_errors_and_lives_on(checkout: Path) -> None:
    page, port = page_of(checkout), free_port()
    text = page.read_text(encoding="utf-8")
    address = f"http://127.0.0.1:{port}/{page.relative_to(checkout).with_suffix('').as_posix()}/"
    with (checkout / "log").open("w") as log:
        command = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", f"127.0.0.1:{port}"]
        server = subprocess.Popen(command, cwd=checkout, env=environment(checkout), stdout=log, stderr=log)
    try:
        until(address, lambda shown: 'id="problem"' in shown, 120)
        page.write_text(text.replace("## Not specified\n", "## Not specified\n\nAn edit of prose.\n"), encoding="utf-8")
        until(address, lambda shown: "An edit of prose." in shown, 15)
        page.write_text(text.replace("\nkind: ", "\nkind: un", 1), encoding="utf-8")
        until(address, lambda shown: "This cannot be shown as it stands" in shown and f"{page.name}:" in shown, 15)
        page.write_text(text, encoding="utf-8")
        until(address, lambda shown: 'id="problem"' in shown and "This cannot be shown" not in shown, 15)
        module = checkout / "impl/memspec" / page.parent.name / page.stem.replace("-", "_") / "faults.py"
        module.write_text(module.read_text(encoding="utf-8") + "\ndef broken(:\n", encoding="utf-8")
        until(address, lambda shown: "This cannot be shown as it stands" in shown and "faults.py:" in shown, 15)
        assert server.poll() is None
    finally:
        server.terminate()
        server.wait(20)


def until(address: str, accept: Callable[[str], bool], seconds: float) -> None:
    """Ask until the answer is as it should be."""
    end, shown = time.monotonic() + seconds, ""
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310
                shown = answer.read().decode()
            if accept(shown):
                return
        except OSError as trouble:
            shown = str(trouble)
        time.sleep(0.3)
    raise AssertionError(f"not within {seconds:g} s; the last answer began {shown[:300]!r}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
