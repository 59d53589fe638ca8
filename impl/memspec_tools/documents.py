"""YAML that remembers its lines, checked against a JSON schema; every complaint names file and line."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from memspec_tools.errors import SpecError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str, path: Path, schema: Mapping[str, Any], first_line: int = 1) -> tuple[Any, yaml.Node]:
    """The data of ``text`` and its syntax tree, which :func:`line_of` reads. Dates become ISO strings.

    ``first_line`` is the line of ``path`` on which ``text`` begins. Raises SpecError for bad YAML, a repeated key, or data that the schema
    does not admit.
    """
    try:
        node = yaml.compose(text, Loader=_LOADER)
        data = _plain(parse_yaml(text))
    except yaml.MarkedYAMLError as trouble:
        mark = trouble.problem_mark or trouble.context_mark
        raise SpecError(path, first_line + (mark.line if mark else 0), f"not YAML: {trouble.problem}") from trouble
    except (yaml.YAMLError, ValueError) as trouble:
        raise SpecError(path, first_line, f"not YAML: {' '.join(str(trouble).split())}") from trouble
    if node is None:
        raise SpecError(path, first_line, "empty where data is due")
    _refuse_repeated_keys(node, path, first_line)
    errors = list(Draft202012Validator(schema).iter_errors(data))
    if errors:
        worst = min(errors, key=lambda e: (bool(e.context), line_of(node, e.absolute_path)))
        told = (
            worst.schema.get("$comment", worst.message)
            if worst.context and isinstance(worst.schema, Mapping)
            else worst.message
        )
        where, message = ".".join(str(step) for step in worst.absolute_path), " ".join(told.split())
        message = message if len(message) < 200 else message[:197] + "..."
        line = first_line + line_of(node, worst.absolute_path)
        raise SpecError(path, line, f"{where}: {message}" if where else message)
    return data, node


def parse_yaml(text: str) -> Any:
    """The data of one YAML document, by libyaml where it is there. Raises yaml.YAMLError or ValueError."""
    loader = _LOADER(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def read_text(path: Path) -> str:
    """The UTF-8 text of a file. Raises SpecError with file and line where there is none."""
    try:
        raw = path.read_bytes()
    except OSError as trouble:
        raise SpecError(path, None, f"cannot be read: {trouble.strerror}") from trouble
    try:
        return raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as trouble:
        line = 1 + raw[: trouble.start].count(b"\n")
        raise SpecError(path, line, f"not UTF-8: {trouble.reason} at byte {trouble.start}") from trouble


def line_of(node: yaml.Node, steps: Sequence[str | int]) -> int:
    """Zero-based line of the element that ``steps`` (keys and indices) lead to, or of the nearest one above it."""
    line = node.start_mark.line
    for step in steps:
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            found = next((value for key, value in node.value if key.value == str(step)), None)
            line = next((key.start_mark.line for key, _ in node.value if key.value == str(step)), line)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = node.value[step]
            line = found.start_mark.line
        if found is None:
            break
        node = found
    return int(line)


def _refuse_repeated_keys(node: yaml.Node, path: Path, first_line: int) -> None:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if key.value in seen:
                    raise SpecError(path, first_line + key.start_mark.line, f"the key {key.value!r} appears twice")
                seen.add(key.value)
                waiting.append(value)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(value) for value in data]
    return data.isoformat() if isinstance(data, datetime.date) else data
