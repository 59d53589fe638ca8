"""What machines with a device saw, kept where machines without one can show and check it.

``gallery/recorded/<device-class>/<slug>/`` holds one ``record.json`` and the figures of the finding's script. A record is valid
while the closure that it names is still the closure of the finding; else it is stale, and what changed is named. One that
disagrees with itself is inconsistent. A record can be checked, but it is no proof against forgery.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memspec_tools.closure import changes, closure_of, tree
from memspec_tools.errors import SpecError
from memspec_tools.places import root
from memspec_tools.recording import record
from memspec_tools.records import contradictions, read_record

__all__ = ["FindingEvidence", "RecordState", "check", "record", "state_of"]

NEVER = "has not run on CUDA yet"

Validity = Literal["valid", "stale", "inconsistent"]


@dataclass(frozen=True)
class RecordState:
    """A record and what it is worth today. ``record`` is empty where the file cannot be read; ``changes`` then says why."""

    path: Path
    device_class: str
    slug: str
    validity: Validity
    changes: tuple[str, ...]
    record: Mapping[str, Any]

    @property
    def on_cuda(self) -> bool:
        return bool(self.record) and self.record["device"]["kind"] == "cuda"

    @property
    def device_name(self) -> str:
        return str(self.record["device"]["name"]) if self.record else self.device_class


@dataclass(frozen=True)
class FindingEvidence:
    """All records of a finding, those from CUDA devices first, the valid ones first among them, and one line about CUDA."""

    slug: str
    records: tuple[RecordState, ...]
    summary: str


def check(top: Path | None = None) -> list[RecordState]:
    """The state of every record in the tree, in the order of the paths. A file that cannot be read is inconsistent."""
    top = top or root()
    return [] if top is None else [_state(path, top) for path in _record_paths(top)]


def state_of(slug: str, top: Path | None = None) -> FindingEvidence:
    """The records of one finding, for its pages. Only a record made on a CUDA device counts as one."""
    top = top or root()
    found = [] if top is None else [_state(path, top) for path in _record_paths(top) if path.parent.name == slug]
    order = ("valid", "stale", "inconsistent")
    found.sort(key=lambda state: (not state.on_cuda, order.index(state.validity), state.device_class))
    told = [_sentence(state) for state in found if state.on_cuda and state.validity != "inconsistent"]
    return FindingEvidence(slug, tuple(found), "; ".join(told) or NEVER)


def _state(path: Path, top: Path) -> RecordState:
    slug, device_class = path.parent.name, path.parent.parent.name
    try:
        data = read_record(path)
    except SpecError as trouble:
        return RecordState(path, device_class, slug, "inconsistent", (str(trouble),), {})
    if told := contradictions(path, data, slug, device_class):
        return RecordState(path, device_class, slug, "inconsistent", tuple(told), data)
    area = data["finding"]["area"]
    if not (top / "spec" / area / f"{slug}.md").is_file():
        return RecordState(path, device_class, slug, "stale", (f"there is no finding {area}/{slug} any more",), data)
    now = closure_of(area, slug, tree(top))
    told = changes(data["closure"]["parts"], now.parts)
    return RecordState(path, device_class, slug, "stale" if told else "valid", tuple(told), data)


def _sentence(state: RecordState) -> str:
    since = "" if state.validity == "valid" else f" before this changed: {', '.join(state.changes)}"
    return f"ran on {state.device_name}{since}"


def _record_paths(top: Path) -> Iterator[Path]:
    for folder in sorted((top / "gallery/recorded").glob("*/*/")):
        if not folder.name.startswith("."):
            yield folder / "record.json"
