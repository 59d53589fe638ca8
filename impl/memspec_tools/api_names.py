"""The public names of ``memspec`` as Sphinx targets, read from the syntax trees: nothing is imported, no docstring parsed.

Roles such as ``:func:`memspec.layout.x.reference.plan``` and code in the gallery resolve against these targets; the site
then turns the links into references to its own API pages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from memspec_tools.closure import modules_below
from memspec_tools.errors import SpecError

HEAD = ":orphan:\n\nNames\n=====\n"


def api_page(impl: Path) -> str:
    """A reStructuredText page that declares each public name below ``memspec`` once, and shows none of them."""
    options, after = "   :no-typesetting:\n   :no-index-entry:\n", "\n.. py:currentmodule:: None\n"
    lines = [HEAD]
    for name, kind in names(impl).items():
        lines.append(f".. py:{kind}:: {name}\n{after if kind == 'module' else options}")
    return "\n".join(lines)


def names(impl: Path) -> dict[str, str]:
    """Dotted name -> kind of Sphinx object, for modules, functions, classes, methods, constants and re-exports."""
    found: dict[str, str] = {}
    for module, path in [*modules_below("memspec", impl), *modules_below("memspec_tools.exhibit", impl)]:
        found[module] = "module"
        tree = _parse(path)
        found |= {f"{module}.{name}": kind for name, kind in _defined(tree.body)}
    for alias, target in aliases(impl).items():
        if found.get(target, "module") != "module":
            found.setdefault(alias, found[target])
    return found


def aliases(impl: Path) -> dict[str, str]:
    """Re-exported name -> the name under which it is defined, for every ``from memspec... import ...`` of a package."""
    direct: dict[str, str] = {}
    for module, path in modules_below("memspec", impl):
        if path.name != "__init__.py":
            continue
        for node in _parse(path).body:
            if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("memspec")):
                above = module.split(".")
                steps = above[: len(above) - node.level + 1] if node.level else []
                base = ".".join([*steps, *([node.module] if node.module else [])])
                direct |= {f"{module}.{name.asname or name.name}": f"{base}.{name.name}" for name in node.names}
    return {alias: _last(alias, direct) for alias in direct}


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as trouble:
        raise SpecError(path, trouble.lineno, f"not Python: {trouble.msg}") from trouble


def _last(name: str, direct: dict[str, str]) -> str:
    seen: set[str] = set()
    while name in direct and name not in seen:
        seen.add(name)
        name = direct[name]
    return name


def _defined(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _public(node.name, "function")
        elif isinstance(node, ast.ClassDef):
            yield from _public(node.name, "class")
            for name, kind in _defined(node.body):
                if not node.name.startswith("_"):
                    yield f"{node.name}.{name}", {"function": "method", "data": "attribute"}.get(kind, kind)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield from _public(node.target.id, "data")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield from _public(target.id, "data")


def _public(name: str, kind: str) -> Iterator[tuple[str, str]]:
    if not name.startswith("_"):
        yield name, kind
