"""The gallery: the real sphinx-gallery runs the scripts, and its pages come out as data for any site.

A script runs again when its text, a module that it imports, its finding's vectors, the device or a version changed. A script
that fails fails the build, all failures are told at once, and no failed result is kept.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memspec_tools import api_names, exhibit, gallery_html
from memspec_tools.closure import script_closure, tree
from memspec_tools.errors import SpecError
from memspec_tools.places import root, shown

DISTRIBUTIONS = ("sphinx", "sphinx-gallery", "matplotlib", "numpy", "torch", "triton")
INDEX = ":orphan:\n\nmemspec\n=======\n\n.. toctree::\n\n   gallery/index\n"


@dataclass(frozen=True)
class Example:
    """A gallery script: ``gallery/<area>/plot_<slug with underscores>.py``."""

    slug: str
    area: str
    path: Path
    title: str


@dataclass(frozen=True)
class GalleryPage:
    """One page, ready for the site: ``body`` is HTML. The facts are empty for the index pages, which have no slug."""

    uri: str
    title: str
    body: str
    headings: tuple[gallery_html.Heading, ...]
    edit_path: str
    area: str = ""
    slug: str = ""
    device: str = ""
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Gallery:
    """All pages, and the files that they need: path in the site -> file on disk."""

    pages: tuple[GalleryPage, ...]
    assets: Mapping[str, Path]
    ran: tuple[str, ...]


class GalleryError(SpecError):
    """Scripts failed or their pages did not build; one message names all of them."""

    def __init__(self, message: str) -> None:
        super().__init__(None, None, message)


def examples(top: Path) -> list[Example]:
    """All scripts in the order of their paths. Raises SpecError for one without a title docstring."""
    found = []
    for path in sorted((top / "gallery").glob("*/plot_*.py")):
        try:
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        except SyntaxError as trouble:
            raise SpecError(path, trouble.lineno, f"not Python: {trouble.msg}") from trouble
        title = next((line.strip() for line in text.splitlines() if re.search(r"\w", line)), "")
        if not title:
            raise SpecError(path, 1, "a gallery script begins with a docstring that is its title")
        slug = path.stem.removeprefix("plot_").replace("_", "-")
        found.append(Example(slug, path.parent.name, path, title))
    return found


def example(slug: str, top: Path) -> Example:
    """The script of one finding. Raises SpecError when there is none."""
    known = {found.slug: found for found in examples(top)}
    if slug not in known:
        raise SpecError(None, None, f"there is no gallery script for {slug!r}; known: {', '.join(known) or 'none'}")
    return known[slug]


def run(slug: str, device: str | None = None, top: Path | None = None, figures: Path | None = None) -> int:
    """Run one script in a process of its own; its output goes straight through. Returns the exit status.

    ``figures`` is a folder for the figures as SVG. Raises SpecError for a device that is not there.
    """
    top = checkout(top)
    found = example(slug, top)
    chosen = there(device)
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
    return subprocess.run(launch_command(found.path, chosen, figures), env=environment(top)).returncode


def checkout(top: Path | None) -> Path:
    """``top``, or the checkout that this package runs from. Raises SpecError where there is none."""
    top = top or root()
    if top is None:
        raise SpecError(None, None, "the gallery's scripts are not installed; run this in a checkout of memspec")
    return top.resolve()


def there(device: str | None) -> exhibit.Device:
    """The device that was asked for, or that there is. Raises SpecError for one that is not there."""
    try:
        return exhibit.device([] if device is None else ["--device", device])
    except exhibit.DeviceError as trouble:
        raise SpecError(None, None, str(trouble)) from trouble


def launch_command(script: Path, device: str, figures: Path | None) -> list[str]:
    """The command line that runs ``script`` on ``device`` and then saves its figures."""
    code = "import sys; from memspec_tools.exhibit import launch; launch(*sys.argv[1:])"
    folder = "" if figures is None else str(figures.resolve())
    return [sys.executable, "-u", "-c", code, str(script.resolve()), folder, "--device", device]


def environment(top: Path, **more: str) -> dict[str, str]:
    """The environment of a child process that runs scripts of the tree ``top``, without display and byte code."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MEMSPEC_RECORD", "PYTHONSAFEPATH")}
    path = os.pathsep.join([str(top / "impl"), *filter(None, [kept.get("PYTHONPATH")])])
    return kept | {"MPLBACKEND": "agg", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | more


def build(top: Path, cache: Path, device: str | None = None) -> Gallery:
    """Run what has to be run, and return all pages and their files.

    ``cache`` is a folder of our own, such as ``.cache/gallery``. ``device`` is "cpu", "cuda", or None for ``MEMSPEC_DEVICE``
    and then for what there is. Raises SpecError for a device that is not there, and GalleryError, which lists every
    script that failed with exception and line.
    """
    top, cache = checkout(top), cache.resolve()
    device = device or os.environ.get("MEMSPEC_DEVICE") or None
    if device is not None:
        device = there(device)
    with _alone(cache):
        ran = _refresh(top, cache, device)
        return Gallery(tuple(_pages(top, cache)), _assets(cache), tuple(ran))


def _refresh(top: Path, cache: Path, device: str | None) -> list[str]:
    found = examples(top)
    stamp, out = cache / "stamp.json", cache / "json"
    base, scripts, text = _state(top, found, device)
    old = json.loads(stamp.read_text(encoding="utf-8")) if stamp.is_file() else {}
    now = {"base": base, "scripts": scripts, "text": text}
    if old == now and out.is_dir():
        return []
    if old.get("base") != base:
        for folder in ("src", "doctrees", "facts"):
            shutil.rmtree(cache / folder, ignore_errors=True)
        old = {}
    kept = {name: state for name, state in old.get("scripts", {}).items() if scripts.get(name) == state}
    for name in sorted((scripts.keys() | old.get("scripts", {}).keys()) - kept.keys()):
        _forget(cache, Path(name), gone=name not in scripts)
    stamp.write_text(json.dumps({"base": base, "scripts": kept}), encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    failed, complaint = _run_sphinx(top, cache, device)
    if complaint:
        done = kept if failed is None else {name: state for name, state in scripts.items() if name not in failed}
        stamp.write_text(json.dumps({"base": base, "scripts": done}), encoding="utf-8")
        raise GalleryError(complaint)
    stamp.write_text(json.dumps(now), encoding="utf-8")
    return sorted(scripts.keys() - kept.keys())


def _state(
    top: Path, found: list[Example], device: str | None
) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """What all scripts depend on; what each depends on; and what only the pages depend on."""
    hooks = Path(__file__).with_name("gallery_hooks.py")
    base = {
        "top": str(top),
        "device": device or f"auto, {'with' if Path('/dev/nvidiactl').exists() else 'without'} an NVIDIA driver",
        "versions": {name: exhibit.version(name) for name in DISTRIBUTIONS} | {"python": platform.python_version()},
        "glue": [_sha(top / "gallery/_sphinx/conf.py"), _sha(hooks)],
    }
    where = tree(top)
    scripts = {
        one.path.relative_to(top / "gallery").as_posix(): f"{_sha(one.path)} {script_closure(one.path, where).hash}"
        for one in found
    }
    headers = sorted((top / "gallery").rglob("GALLERY_HEADER.rst"))
    text = {path.relative_to(top).as_posix(): _sha(path) for path in headers}
    return base, scripts, text | {"names": hashlib.sha256(api_names.api_page(where.impl).encode()).hexdigest()}


def _forget(cache: Path, script: Path, gone: bool) -> None:
    """Make sphinx-gallery run ``script`` again; when it is gone, remove everything that it left behind."""
    folder, stem = cache / "src/gallery" / script.parent, script.stem
    (folder / f"{stem}.py.md5").unlink(missing_ok=True)
    left = list((cache / "facts").glob(f"{stem}.*"))
    if gone:
        left += [*folder.glob(f"{stem}.*"), *folder.rglob(f"sphx_glr_{stem}_*")]
        left += (cache / "doctrees/gallery" / script.parent).glob(f"{stem}.doctree")
    for path in left:
        path.unlink()


def _run_sphinx(top: Path, cache: Path, device: str | None) -> tuple[set[str] | None, str]:
    """The scripts that failed (None where Sphinx ended before it knew) and what to complain of, if anything."""
    source, facts = cache / "src", cache / "facts"
    source.mkdir(parents=True, exist_ok=True)
    facts.mkdir(exist_ok=True)
    failures = facts / "failures"
    failures.unlink(missing_ok=True)
    (source / "index.rst").write_text(INDEX, encoding="utf-8")
    (source / "names.rst").write_text(api_names.api_page(top / "impl"), encoding="utf-8")
    told = {"MEMSPEC_GALLERY_SCRIPTS": str(top / "gallery"), "MEMSPEC_GALLERY_FACTS": str(facts)}
    if device is not None:
        told["MEMSPEC_DEVICE"] = device
    command = [sys.executable, "-m", "sphinx", "-qW", "--keep-going", "-b", "json", "-d", str(cache / "doctrees"),
               "-c", str(top / "gallery/_sphinx"), str(source), str(cache / "json")]  # fmt: skip
    done = subprocess.run(command, env=environment(top, **told), capture_output=True, text=True)
    if not failures.is_file():
        return None, _complaint({}, done.stderr, top)
    failed = json.loads(failures.read_text(encoding="utf-8"))
    names = {Path(script).relative_to(top / "gallery").as_posix() for script in failed}
    return names, _complaint(failed, done.stderr, top) if done.returncode or failed else ""


def _complaint(failed: Mapping[str, str], stderr: str, top: Path) -> str:
    """All scripts that failed, one line each; without such, Sphinx's warnings."""
    if failed:
        lines = [_one_failure(Path(script), trace, top) for script, trace in sorted(failed.items())]
        return f"{len(lines)} gallery script{'s' if len(lines) > 1 else ''} failed:\n" + "\n".join(lines)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stderr)
    warnings = [line for line in plain.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)]
    return "the gallery's pages did not build:\n" + "\n".join(warnings or plain.splitlines()[-15:])


def _one_failure(script: Path, trace: str, top: Path) -> str:
    trace = re.sub(r"\x1b\[[0-9;]*m", "", trace)
    inside = re.findall(rf'File "[^"]*{re.escape(script.name)}", line (\d+)', trace)
    last = [line for line in trace.strip().splitlines() if line.strip()][-1].strip()
    name = script.relative_to(top).as_posix() if script.is_relative_to(top) else shown(script)
    return f"  {name}{':' + inside[-1] if inside else ''}: {last}"


def _pages(top: Path, cache: Path) -> Iterator[GalleryPage]:
    canonical = api_names.aliases(top / "impl")
    known = {one.path.relative_to(top).with_suffix("").as_posix(): one for one in examples(top)}
    indexes = {"gallery/index", *(f"gallery/{one.area}/index" for one in known.values())}
    for path in sorted((cache / "json/gallery").rglob("*.fjson")):
        name = path.relative_to(cache / "json").with_suffix("").as_posix()
        if name not in known and name not in indexes:
            continue
        document, uri = json.loads(path.read_text(encoding="utf-8")), gallery_html.page_uri(name)
        body, title = gallery_html.fixed(document["body"], uri, canonical), gallery_html.plain(document["title"])
        one = known.get(name)
        if one is None:
            body, edit = gallery_html.without_empty_areas(body), re.sub(r"index$", "GALLERY_HEADER.rst", name)
            yield GalleryPage(uri, title, body, gallery_html.headings(body), edit)
            continue
        facts = json.loads((cache / "facts" / f"{one.path.stem}.json").read_text(encoding="utf-8"))
        yield GalleryPage(uri, title, body, gallery_html.headings(body), f"{name}.py", one.area, one.slug, facts["device"],
                          facts["seconds"], facts["versions"], tuple(facts["metrics"]))  # fmt: skip


def _assets(cache: Path) -> dict[str, Path]:
    out = cache / "json"
    files = [
        path for folder in ("_images", "_downloads") for path in sorted((out / folder).rglob("*")) if path.is_file()
    ]
    found = {f"gallery/{path.relative_to(out).as_posix()}": path for path in files}
    return found | {"gallery/_static/sg_gallery.css": out / "_static/sg_gallery.css"}


@contextlib.contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """One build at a time in a cache folder, where the system has file locks."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
