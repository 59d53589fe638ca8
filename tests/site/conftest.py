"""The built site, a server for it on this machine, and a browser that may talk to nobody else."""

from __future__ import annotations

import fcntl
import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memspec_tools.citations import site_url

TOP = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def newest(*folders: str) -> float:
    files = [
        path
        for folder in folders
        for path in (TOP / folder).rglob("*")
        if path.suffix in {".md", ".py", ".yaml", ".css", ".js", ".json"}
    ]
    return max(path.stat().st_mtime for path in [*files, TOP / "mkdocs.yml"])


@pytest.fixture(scope="session")
def site() -> Path:
    """``site/``, built if it is absent or older than what it is made from; or the built site that MEMSPEC_SITE names, as it is."""
    if given := os.environ.get("MEMSPEC_SITE"):
        return Path(given)
    built, lock = TOP / "site" / "search" / "search_index.json", TOP / ".cache" / "site.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as held:  # of several processes one builds, the others wait for it
        fcntl.flock(held, fcntl.LOCK_EX)
        if not built.is_file() or built.stat().st_mtime < newest("docs", "spec", "impl", "gallery"):
            done = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
                cwd=TOP,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr[-3000:]
    return TOP / "site"


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves the site as if SITE_URL were this server: instant navigation looks every address up in the sitemap."""

    def do_GET(self) -> None:
        if self.path != "/sitemap.xml":
            super().do_GET()
            return
        host, port = self.server.server_address[:2]
        text = (
            (Path(self.directory) / "sitemap.xml")
            .read_text(encoding="utf-8")
            .replace(site_url(), f"http://{host}:{port}/")
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def base(site: Path) -> Iterator[str]:
    """The address of the site on a free port of this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any, base: str) -> Iterator[Any]:
    """``visit(path, **context options)`` opens a page. Requests to others, console errors and script errors fail the test at its end."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def opened(path: str, **options: Any) -> Any:
        context = chromium.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((base, "data:", "blob:")) else complaints.append(f"asks {request.url}")
            ),
        )
        page.on(
            "console",
            lambda message: complaints.append(f"console: {message.text}") if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        page.goto(base + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
