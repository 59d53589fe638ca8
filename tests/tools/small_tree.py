"""A checkout with one small finding, for tests that edit what they read."""

from __future__ import annotations

import shutil
from pathlib import Path

import memspec_tools

PAGE = """---
slug: small-rule
area: layout
kind: function
title: A small rule
summary: Too little is lost. Too much is wasted.
status: report
evidence: proposal
sources: [{system: none, ref: none}]
reports: []
---

## Problem
Words.
## Rules
A block MUST be cleared before it changes hands.
{: #small-rule.cleared .clause }

A block MAY be cleared twice.
{: #small-rule.twice .clause data-unchecked="a permission" }
## Reference implementation
## Verification
<!-- memspec:verification -->
## Not specified
## What the evidence does not show
## Report notes
## Seen in the wild
## Cite
<!-- memspec:cite -->
"""
FILES = {
    "mkdocs.yml": "",
    "impl/memspec/__init__.py": '"""The rules."""\n__version__ = "1"\n',
    "impl/memspec/terms.py": "from memspec.deep import unit\n",
    "impl/memspec/deep.py": "unit = 1\n",
    "impl/memspec/stranger.py": "unit = 1\n",
    "impl/memspec/layout/__init__.py": "",
    "impl/memspec/layout/small_rule/__init__.py": "from memspec.layout.small_rule.reference import clear\n",
    "impl/memspec/layout/small_rule/reference.py": (
        '"""The rule."""\n\n\n'
        'def clear(block: int) -> str:\n    """Clear it."""\n    return f"{block:>{8}} cleared"  # why\n'
    ),
    "impl/memspec/layout/small_rule/checks.py": "def later() -> None:\n    from ... import terms\n    terms.unit\n",
    "impl/memspec_tools/__init__.py": "",
    "impl/memspec_tools/exhibit.py": "PALETTE = ()\n",
    "spec/layout/small-rule.md": PAGE,
    "spec/vectors/layout/small-rule.yaml": "finding: small-rule\nvectors:\n  - {id: one, input: {a: 1, b: '1'}}\n",
    "gallery/layout/plot_small_rule.py": (
        '"""\nA title\n=======\n"""\n\n# %%\n# Prose.\nfrom memspec.layout.small_rule import clear\n'
        "from memspec_tools import exhibit\n\nprint(clear(1))\n"
    ),
}  # fmt: skip


def make(top: Path) -> Path:
    """Write the tree below ``top``."""
    for name, text in FILES.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return top


def with_tools(top: Path) -> Path:
    """Put in what a script and the gallery need of the real memspec_tools, and the real settings of the gallery."""
    ours = Path(memspec_tools.__file__).parent
    for name in ("exhibit.py", "gallery_hooks.py"):
        shutil.copy(ours / name, top / "impl/memspec_tools" / name)
    shutil.copytree(
        ours.parents[1] / "gallery/_sphinx", top / "gallery/_sphinx", ignore=shutil.ignore_patterns("__pycache__")
    )
    for header in (ours.parents[1] / "gallery").rglob("GALLERY_HEADER.rst"):
        target = top / header.relative_to(ours.parents[1])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(header, target)
    return top


def replace(path: Path, old: str, new: str) -> None:
    """Edit a file; what is replaced must be there."""
    text = path.read_text()
    if old not in text:
        raise ValueError(f"{path} does not contain {old!r}")
    path.write_text(text.replace(old, new))
