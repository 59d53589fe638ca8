"""Reading one record, and holding it against itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from memspec_tools.closure import closure_from
from memspec_tools.errors import SpecError
from memspec_tools.evidence_schema import RECORD

CPU_CLASS = "cpu"


def read_record(path: Path) -> dict[str, Any]:
    """One record. Raises SpecError, in one line with the file, when it is unreadable or not of the schema."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as trouble:
        raise SpecError(path, 1, f"not UTF-8: {trouble.reason} at byte {trouble.start}") from trouble
    except json.JSONDecodeError as trouble:
        raise SpecError(path, trouble.lineno, f"not JSON: {trouble.msg}") from trouble
    except ValueError as trouble:
        raise SpecError(path, None, f"not JSON: {trouble}") from trouble
    except OSError as trouble:
        raise SpecError(path, None, f"cannot be read: {trouble.strerror}") from trouble
    errors = sorted(
        Draft202012Validator(RECORD).iter_errors(data), key=lambda error: list(map(str, error.absolute_path))
    )
    if errors:
        where, message = ".".join(map(str, errors[0].absolute_path)), " ".join(errors[0].message.split())
        message = message if len(message) < 200 else message[:197] + "..."
        raise SpecError(path, None, f"{where}: {message}" if where else message)
    found: dict[str, Any] = data
    return found


def contradictions(path: Path, data: Mapping[str, Any], slug: str, device_class: str) -> list[str]:
    """In what a record disagrees with itself, its place (``slug`` and ``device_class``), or the figures beside it."""
    folder, device = path.parent, data["device"]
    told: list[str] = []
    if data["finding"]["slug"] != slug:
        told.append(f"the record is of {data['finding']['slug']}, its folder is {slug}")
    if device["class"] != device_class:
        told.append(f"the record is of device class {device['class']}, its folder is {device_class}")
    if (device["kind"] == "cpu") != (device["class"] == CPU_CLASS):
        told.append(f"a {device['kind']} device is recorded as class {device['class']}")
    parts = data["closure"]["parts"]
    if (due := closure_from(parts).hash) != data["closure"]["hash"]:
        told.append(f"the closure's parts hash to {due}, the record says {data['closure']['hash']}")
    clauses = {f"clause {clause['id']}": clause["hash"] for clause in data["clauses"]}
    if len(clauses) != len(data["clauses"]):
        told.append("a clause has two verdicts")
    claimed = {name: short for name, short in parts.items() if name.startswith("clause ")}
    told += [f"{name}: verdict and closure name different texts" for name in sorted(clauses.keys() | claimed.keys())
             if clauses.get(name) != claimed.get(name)]  # fmt: skip
    for name, short in data["figures"].items():
        figure = folder / name
        if not figure.is_file():
            told.append(f"the figure {name} is missing")
        elif hashlib.sha256(figure.read_bytes()).hexdigest() != short:
            told.append(f"the figure {name} is not the one that was recorded")
    known = {path.name, *data["figures"]}
    return told + [
        f"the file {other.name} is not of the record" for other in sorted(folder.iterdir()) if other.name not in known
    ]


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that JSON knows")
