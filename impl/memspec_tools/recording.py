"""Making a record: the checks and the script of a finding run on a device, and what they said is written at once or not at all."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memspec_tools import exhibit
from memspec_tools.closure import Closure, closure_of, tree
from memspec_tools.errors import SpecError
from memspec_tools.evidence_schema import SCHEMA_VERSION
from memspec_tools.gallery import checkout, environment, launch_command, there
from memspec_tools.pages import load_pages
from memspec_tools.records import CPU_CLASS, contradictions, read_record

SEED = 0

Report = Mapping[str, Any]
Judge = Callable[[Sequence[str], str], Report]


@dataclass(frozen=True)
class Machine:
    """The device that a record is about. ``kind`` is what torch calls it, ``folder`` the class that it is filed under."""

    kind: exhibit.Device
    name: str
    driver: str

    @property
    def folder(self) -> str:
        if self.kind == "cpu":
            return CPU_CLASS
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def this_machine(device: exhibit.Device) -> Machine:
    """Name and driver of the first device of that kind."""
    if device == "cpu":
        return Machine("cpu", platform.machine(), "none")
    return Machine("cuda", exhibit.cuda_name() or "unknown", _driver())


def record(
    slugs: Sequence[str],
    device: str,
    top: Path | None = None,
    judge: Judge | None = None,
    machine: Machine | None = None,
    tell: Callable[[str], None] = lambda what: None,
) -> list[Path]:
    """Run checks and script of each finding on ``device`` and write ``gallery/recorded/<class>/<slug>/``; return the folders.

    ``judge(slugs, device)`` is :func:`memspec_tools.verify.verify` unless given, ``machine`` what this machine says of itself.
    A finding whose script fails is not written; the others are, and then SpecError names all that failed. A broken clause is
    a result like any other and is recorded as such.
    """
    top = checkout(top)
    machine = machine or this_machine(there(device))
    areas = {page.slug: page.area for page in load_pages(top / "spec")}
    for slug in slugs:
        if slug not in areas:
            raise SpecError(None, None, f"there is no finding {slug!r}; known: {', '.join(areas)}")
    written, failed = list[Path](), list[str]()
    for slug in slugs or list(areas):
        tell(f"{slug} on {machine.name}")
        try:
            written.append(_record_one(areas[slug], slug, top, machine, judge or _verify))
        except SpecError as trouble:
            failed.append(str(trouble))
    if failed:
        raise SpecError(None, None, f"{len(failed)} of {len(written) + len(failed)} not recorded: " + "; ".join(failed))
    return written


def _record_one(area: str, slug: str, top: Path, machine: Machine, judge: Judge) -> Path:
    where = tree(top)
    closure, commit = closure_of(area, slug, where), _commit(top)
    begun = time.perf_counter()
    (found,) = judge([slug], machine.kind)["findings"]
    home = top / "gallery/recorded" / machine.folder
    home.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{slug}-", dir=home))
    try:
        stdout, metrics = "", list[Any]()
        if script := where.script(area, slug):
            stdout, metrics = _run_script(script, machine.kind, top, draft)
        seconds = time.perf_counter() - begun
        if closure_of(area, slug, where) != closure:
            raise SpecError(None, None, f"{slug}: the code changed while it ran")
        data = _record(area, slug, machine, closure, commit, found)
        data |= {
            "metrics": metrics,
            "stdout": stdout,
            "figures": {
                path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(draft.glob("*.svg"))
            },
            "duration": {"seconds": round(seconds, 3), "note": "not a benchmark"},
        }
        _write(draft / "record.json", data)
        draft.chmod(0o755)
        return _put_in_place(draft, home / slug)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if not any(home.iterdir()):
            home.rmdir()


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    read_record(path)
    slug = data["finding"]["slug"]
    if told := contradictions(path, data, slug, data["device"]["class"]):
        raise SpecError(None, None, f"{slug}: {'; '.join(told)}")


def _run_script(script: Path, device: exhibit.Device, top: Path, folder: Path) -> tuple[str, list[Any]]:
    """What the script printed, and its metrics; its figures go to ``folder``. Raises SpecError with the last line if it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        lines = Path(scratch) / "metrics"
        env = environment(top, MEMSPEC_RECORD=str(lines), MEMSPEC_DEVICE=device, PYTHONHASHSEED=str(SEED))
        if device == "cuda":
            env.pop("TRITON_INTERPRET", None)
        done = subprocess.run(
            launch_command(script, device, folder), env=env, cwd=scratch, capture_output=True, text=True
        )
        if done.returncode:
            last = (
                [line.strip() for line in done.stderr.splitlines() if line.strip()]
                or [f"exit status {done.returncode}"]
            )[-1]
            place = re.findall(rf'File "[^"]*{re.escape(script.name)}", line (\d+)', done.stderr)
            raise SpecError(script, int(place[-1]) if place else None, last)
        metrics = (
            [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()] if lines.is_file() else []
        )
    return done.stdout, metrics


def _record(
    area: str, slug: str, machine: Machine, closure: Closure, commit: Mapping[str, Any], found: Report
) -> dict[str, Any]:
    vectors = found["vectors"]
    return {
        "schema": SCHEMA_VERSION,
        "finding": {"slug": slug, "area": area},
        "recorded": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": {"kind": machine.kind, "class": machine.folder, "name": machine.name, "driver": machine.driver},
        "versions": {name: exhibit.version(name) for name in ("memspec", "torch", "triton")}
        | {"python": platform.python_version()},
        "commit": dict(commit),
        "seed": SEED,
        "closure": {"hash": closure.hash, "parts": dict(closure.parts)},
        "clauses": [_clause(clause) for clause in found["clauses"]],
        "faults": [{"name": fault["name"], "verdict": fault["verdict"]} for fault in found["faults"]],
        "vectors": {name: vectors[name] for name in ("valid", "invalid", "failed", "not_run")},
    }


def _clause(clause: Report) -> dict[str, Any]:
    per = {name: verdict["verdict"] for name, verdict in clause["implementations"].items()}
    return {name: clause[name] for name in ("id", "level", "hash", "verdict")} | {"implementations": per}


def _put_in_place(draft: Path, target: Path) -> Path:
    """Swap the finished folder in; a record that is there already is removed only once the new one stands."""
    old = draft.with_name(draft.name + "-old")
    if target.exists():
        target.rename(old)
    try:
        draft.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
    return target


def _commit(top: Path) -> dict[str, Any]:
    """The commit of the tree, and whether anything but records differs from it; both None outside a repository."""
    commands = (["rev-parse", "HEAD"], ["status", "--porcelain", "--", ".", ":(exclude)gallery/recorded"])
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = [
            subprocess.run(["git", *command], cwd=top, env=env, capture_output=True, text=True) for command in commands
        ]
    except FileNotFoundError:
        return {"id": None, "dirty": None}
    if any(one.returncode for one in done):
        return {"id": None, "dirty": None}
    return {"id": done[0].stdout.strip(), "dirty": bool(done[1].stdout.strip())}


def _driver() -> str:
    """The NVIDIA driver and the CUDA version that torch was built for."""
    import torch

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30)
        driver = done.stdout.split()[0] if done.returncode == 0 and done.stdout.split() else "unknown"
    except (FileNotFoundError, subprocess.TimeoutExpired):
        driver = "unknown"
    return f"{driver}, CUDA {torch.version.cuda}"


def _verify(slugs: Sequence[str], device: str) -> Report:
    if device == "cuda" and "triton" not in sys.modules:
        os.environ.pop("TRITON_INTERPRET", None)
    from memspec_tools.verify import verify

    return verify(slugs, device)
