"""Test vectors: YAML with a JSON schema, portable to any language, run here through the operations that a finding's checks register."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from memspec.conformance import CannotRun, Checks, Verdict, lacks

from memspec_tools.documents import line_of, read_text, read_yaml
from memspec_tools.errors import SpecError
from memspec_tools.pages import Page
from memspec_tools.places import spec_dir


@dataclass(frozen=True)
class Vector:
    """One vector as data; ``line`` is where it stands in the file."""

    id: str
    data: Mapping[str, Any]
    line: int

    @property
    def valid(self) -> bool:
        return bool(self.data["result"] == "valid")


@cache
def schema() -> dict[str, Any]:
    """The published JSON schema of a vectors file."""
    found: dict[str, Any] = json.loads((spec_dir() / "vectors" / "vectors.schema.json").read_text(encoding="utf-8"))
    return found


def vectors_path(page: Page) -> Path:
    return page.path.parents[1] / "vectors" / page.area / f"{page.slug}.yaml"


def load_vectors(page: Page, checks: Checks | None = None) -> list[Vector]:
    """The vectors of a finding, in the order of the file. Raises SpecError with file and line for anything out of order."""
    path = vectors_path(page)
    if not path.is_file():
        raise SpecError(path, None, f"{page.slug} has no vectors")
    data, node = read_yaml(read_text(path), path, schema())
    if data["finding"] != page.slug:
        raise SpecError(path, 1, f"these vectors say that they are of {data['finding']!r}")
    ideas = {clause.idea for clause in page.clauses}
    taken: dict[str, int] = {}
    vectors: list[Vector] = []
    for index, entry in enumerate(data["vectors"]):
        line = 1 + line_of(node, ["vectors", index])
        if entry["id"] in taken:
            raise SpecError(path, line, f"the vector id {entry['id']!r} is taken by line {taken[entry['id']]}")
        taken[entry["id"]] = line
        if strangers := [idea for idea in entry["clauses"] if idea not in ideas]:
            raise SpecError(path, line, f"{entry['id']}: {page.slug}.{strangers[0]} is no clause of the page")
        if "steps" in entry and (entry["result"] == "invalid") != any("reject" in step for step in entry["steps"]):
            raise SpecError(
                path, line, f"{entry['id']}: a vector with steps is invalid exactly if one of them is rejected"
            )
        if checks is not None and entry["operation"] not in checks.operations:
            raise SpecError(
                path,
                line,
                f"{entry['id']}: there is no operation {entry['operation']!r}; known: {', '.join(checks.operations)}",
            )
        vectors.append(Vector(entry["id"], entry, line))
    return vectors


def run_vector(vector: Vector, checks: Checks, subject: Any) -> Verdict:
    """Put one vector through a subject."""
    data, operation = vector.data, checks.operations[vector.data["operation"]]
    if missing := lacks(subject, operation.facet):
        return Verdict("not-run", detail=f"the subject has no {', '.join(missing)}()")
    given = data["input"] | ({"events": [step["event"] for step in data["steps"]]} if "steps" in data else {})
    try:
        answer = json.loads(json.dumps(operation.run(subject, json.loads(json.dumps(given)))))
    except CannotRun as why:
        return Verdict("not-run", 1, vector.id, str(why))
    except ValueError as refusal:
        if "reject" not in data:
            return Verdict(
                "fail",
                1,
                vector.id,
                f"refused with {str(refusal)!r}, due {json.dumps(data.get('expect', 'an outcome per step'))}",
            )
        missing_names = [name for name in data["reject"] if name not in str(refusal)]
        wrong = f"the refusal {str(refusal)!r} does not name {', '.join(missing_names)}"
        return Verdict("fail", 1, vector.id, wrong) if missing_names else Verdict("pass", 1)
    except Exception as crash:
        return Verdict("crash", 1, vector.id, f"{type(crash).__name__}: {crash}")
    if "steps" in data:
        return _compare_steps(vector, answer)
    if "reject" in data:
        return Verdict(
            "fail", 1, vector.id, f"answered {json.dumps(answer)}, due a refusal that names {', '.join(data['reject'])}"
        )
    due = json.loads(json.dumps(data["expect"]))
    return (
        Verdict("pass", 1)
        if answer == due
        else Verdict("fail", 1, vector.id, f"saw {json.dumps(answer)}, due {json.dumps(due)}")
    )


def _compare_steps(vector: Vector, answer: Any) -> Verdict:
    steps = vector.data["steps"]
    if (
        not isinstance(answer, list)
        or len(answer) != len(steps)
        or not all(isinstance(outcome, dict) for outcome in answer)
    ):
        return Verdict("fail", 1, vector.id, f"due a list of {len(steps)} outcomes, one for each event")
    for number, (step, outcome) in enumerate(zip(steps, answer, strict=True)):
        due = {"rejected": step["reject"]} if "reject" in step else step.get("expect", {})
        wrong = {key: outcome.get(key) for key, value in due.items() if outcome.get(key) != value}
        if "reject" not in step and outcome.get("rejected"):
            wrong["rejected"] = outcome["rejected"]
        if wrong:
            return Verdict(
                "fail",
                1,
                vector.id,
                f"step {number} {json.dumps(step['event'])}: saw {json.dumps(wrong)}, due {json.dumps(due)}",
            )
    return Verdict("pass", 1)
