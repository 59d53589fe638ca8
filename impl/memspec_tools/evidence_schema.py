"""The shape of ``gallery/recorded/<device-class>/<slug>/record.json``, as a JSON schema."""

from __future__ import annotations

from typing import Any

SCHEMA_VERSION = 1

_text = {"type": "string", "minLength": 1}
_any_text = {"type": "string"}
_hash = {"type": "string", "pattern": "^[0-9a-f]{8,64}$"}
_verdict = {"enum": ["pass", "fail", "crash", "not-run", "not-exercised", "unchecked"]}
_count = {"type": "integer", "minimum": 0}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """An object that has exactly these properties."""
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


RECORD: dict[str, Any] = _closed(
    {
        "schema": {"const": SCHEMA_VERSION},
        "finding": _closed(
            {
                "slug": {"type": "string", "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$"},
                "area": {"enum": ["capacity", "layout", "ordering", "compatibility"]},
            }
        ),
        "recorded": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"},
        "device": _closed(
            {
                "kind": {"enum": ["cpu", "cuda"]},
                "class": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
                "name": _text,
                "driver": _text,
            }
        ),
        "versions": _closed(dict.fromkeys(("memspec", "torch", "triton", "python"), _text)),
        "commit": _closed(
            {"id": {"type": ["string", "null"], "pattern": "^[0-9a-f]{40,64}$"}, "dirty": {"type": ["boolean", "null"]}}
        ),
        "seed": {"type": "integer"},
        "closure": _closed({"hash": _hash, "parts": {"type": "object", "additionalProperties": _hash}}),
        "clauses": {
            "type": "array",
            "items": _closed(
                {
                    "id": _text,
                    "level": {"enum": ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"]},
                    "hash": _hash,
                    "verdict": _verdict,
                    "implementations": {"type": "object", "additionalProperties": _verdict},
                }
            ),
        },
        "faults": {
            "type": "array",
            "items": _closed({"name": _text, "verdict": {"enum": ["caught", "missed", "redundant", "not-run"]}}),
        },
        "vectors": _closed(
            {
                "valid": _count,
                "invalid": _count,
                "failed": {"type": "array", "items": _text},
                "not_run": {"type": "array", "items": _text},
            }
        ),
        "metrics": {
            "type": "array",
            "items": _closed({"name": _text, "value": {"type": "number"}, "unit": _any_text, "benchmark": {"type": "boolean"}}),
        },
        "stdout": _any_text,
        "figures": {
            "type": "object",
            "propertyNames": {"pattern": r"^[a-z0-9_]+\.svg$"},
            "additionalProperties": _hash,
        },
        "duration": _closed({"seconds": {"type": "number", "minimum": 0}, "note": {"const": "not a benchmark"}}),
    }
)  # fmt: skip
