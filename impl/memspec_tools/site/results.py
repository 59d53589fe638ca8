"""Results for the site from a fresh process, so that a server that keeps running shows the code as it is now.

``python -m memspec_tools.site.results`` prints one JSON document: the report of ``memspec verify --json`` with the state diagrams.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memspec_tools.closure import finding_closure
from memspec_tools.errors import SpecError
from memspec_tools.kept import keep, read_kept
from memspec_tools.pages import Page, load_pages
from memspec_tools.places import cache_dir, shown

DIAGRAM = "<!-- memspec:state-diagram -->"


class ResultsFailed(Exception):
    """The process that makes the results ended with an error; the message is one line."""


def collect(tell: Callable[[str], None]) -> dict[str, Any]:
    """Run this module in a process of its own and return what it prints. Raises ResultsFailed; ``tell`` hears of progress."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command, said = [sys.executable, "-m", "memspec_tools.site.results"], list[str]()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        with subprocess.Popen(command, env=environment, text=True, stdout=printed, stderr=subprocess.PIPE) as process:
            for line in process.stderr or ():
                if line.startswith("progress: "):
                    tell(line.removeprefix("progress: ").rstrip())
                else:
                    said.append(line.rstrip())
        printed.seek(0)
        text = printed.read()
    if process.returncode == 2:
        raise ResultsFailed(said[-1] if said else "bad input")
    if process.returncode:
        raise ResultsFailed(_one_line(said) or f"the results could not be made: exit status {process.returncode}")
    found: dict[str, Any] = json.loads(text)
    return found


def _one_line(trace: list[str]) -> str:
    """The last line of a traceback, with the innermost place in this checkout."""
    text = "\n".join(line for line in trace if line.strip())
    places = [(Path(name), line) for name, line in re.findall(r'File "([^"]+)", line (\d+)', text)]
    inside = [f"{shown(path)}:{line}: " for path, line in places if not Path(shown(path)).is_absolute()]
    return "".join(inside[-1:]) + text.rpartition("\n")[2]


def main() -> int:
    from memspec_tools.verify import cached_report

    try:
        report = cached_report(tell=lambda what: print(f"progress: {what}", file=sys.stderr, flush=True))
        pages = {page.slug: page for page in load_pages()}
        for found in report["findings"]:
            found["diagrams"] = diagrams(pages[found["slug"]])
    except SpecError as trouble:
        print(trouble, file=sys.stderr)
        return 2
    json.dump(report, sys.stdout)
    return 0


def diagrams(page: Page) -> dict[str, list[list[str]]]:
    """Name -> edges (state, event, next state) of each state diagram of a page that asks for one, kept while the closure is the same.

    They come from ``state_diagrams()`` of the finding's checks. Raises SpecError where that is missing or gives no edge.
    """
    if DIAGRAM not in page.body:
        return {}
    closure, path = finding_closure(page).hash, cache_dir() / "diagrams" / f"{page.slug}.json"
    kept = read_kept(path)
    if kept.get("closure") != closure:
        make = getattr(importlib.import_module(f"{page.module}.checks"), "state_diagrams", None)
        found = {name: [list(edge) for edge in edges] for name, edges in make().items()} if make else {}
        if not found or not all(found.values()):
            raise SpecError(
                page.path,
                None,
                f"the page asks for a state diagram, and state_diagrams() of {page.module}.checks gives none",
            )
        kept = {"closure": closure, "diagrams": found}
        keep(path, kept)
    diagrams: dict[str, list[list[str]]] = kept["diagrams"]
    return diagrams


if __name__ == "__main__":
    sys.exit(main())
