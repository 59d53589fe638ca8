"""JSON that is kept between runs of a checkout: written whole or not at all, and worth nothing where it cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_kept(path: Path) -> dict[str, Any]:
    """What is kept at ``path``; empty where nothing readable is."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return found


def keep(path: Path, data: dict[str, Any]) -> None:
    """Replace what is kept at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(data), encoding="utf-8")
    fresh.replace(path)
