"""What runs inside Sphinx while the gallery is built: SVG figures, facts about each run, failures, names to link to.

This is a Sphinx extension, and the two functions that ``gallery/_sphinx/conf.py`` names. Its environment comes from
``memspec_tools.gallery``: ``MEMSPEC_GALLERY_FACTS`` is the folder for what is learnt about each script.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from memspec_tools import exhibit

AREAS = ("capacity", "layout", "ordering", "compatibility")

_started: dict[str, float] = {}


def svg_figures(block: Any, block_vars: Any, gallery_conf: Any, **options: Any) -> str:
    """sphinx-gallery's matplotlib scraper, writing SVG."""
    from sphinx_gallery.scrapers import matplotlib_scraper

    return str(matplotlib_scraper(block, block_vars, gallery_conf, format="svg", **options))


def around_a_script(gallery_conf: Any, fname: str | None, when: str) -> None:
    """Before a script: send its metrics to a file of its own. After it: write device, versions and seconds beside them."""
    if fname is None:
        return
    base = Path(os.environ["MEMSPEC_GALLERY_FACTS"]) / Path(fname).stem
    metrics = base.with_suffix(".jsonl")
    if when == "before":
        metrics.unlink(missing_ok=True)
        os.environ["MEMSPEC_RECORD"] = str(metrics)
        _started[base.name] = time.perf_counter()
        return
    seconds = time.perf_counter() - _started.pop(base.name)
    facts = exhibit.machine(exhibit.device([]))
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.is_file() else []
    told = {"seconds": round(seconds, 3), "device": facts.pop("device"), "versions": facts,
            "metrics": [json.loads(line) for line in lines]}  # fmt: skip
    base.with_suffix(".json").write_text(json.dumps(told), encoding="utf-8")


def by_area(folder: str) -> tuple[int, str]:
    """Sort key: the areas in the order of the specification, anything else after them."""
    name = Path(folder).name
    return (AREAS.index(name) if name in AREAS else len(AREAS), name)


def write_failures(app: Any, exception: Exception | None) -> None:
    """Hand the tracebacks of the scripts that failed to the process that started Sphinx."""
    failed = {str(script): trace for script, trace in app.config.sphinx_gallery_conf["failing_examples"].items()}
    path = Path(os.environ["MEMSPEC_GALLERY_FACTS"]) / "failures"
    path.write_text(json.dumps(failed), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write_failures, priority=1)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
