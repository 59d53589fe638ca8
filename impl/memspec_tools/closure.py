"""What a result depends on, as one hash with named parts: a result holds while its closure is the same.

The closure of a finding is its gallery script, all modules of its package and whatever of ``memspec`` these import, its
clause texts and its vectors. Code counts as syntax trees without comments, docstrings and ``__version__``, vectors as
parsed data: neither layout nor prose makes a result stale. A tree is spelled so that the Python version does not show:
a record made with one holds with another.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from memspec_tools.clauses import ClauseText
from memspec_tools.documents import parse_yaml, read_text
from memspec_tools.errors import SpecError
from memspec_tools.pages import Page, read_page
from memspec_tools.places import HERE, root, spec_dir

PACKAGES = ("memspec", "memspec_tools")


@dataclass(frozen=True)
class Tree:
    """The folders that a closure is taken over. ``gallery`` is None in an installed wheel, which carries no scripts."""

    impl: Path
    spec: Path
    gallery: Path | None

    def script(self, area: str, slug: str) -> Path | None:
        """The finding's gallery script, or None where there is none."""
        path = self.gallery / area / f"plot_{slug.replace('-', '_')}.py" if self.gallery else None
        return path if path and path.is_file() else None


@dataclass(frozen=True)
class Closure:
    """``hash`` over all ``parts``; a part is named as a person would name it and has a short hash of its own."""

    hash: str
    parts: Mapping[str, str]


def tree(top: Path | None = None) -> Tree:
    """The tree below ``top``, or the one that this package runs from."""
    top = top or root()
    return Tree(top / "impl", top / "spec", top / "gallery") if top else Tree(HERE.parent, spec_dir(), None)


def closure_of(area: str, slug: str, where: Tree | None = None, extra: Iterable[Path] = ()) -> Closure:
    """Everything that a result about this finding depends on; ``extra`` adds files, such as its marked tests.

    Raises SpecError for a page, vectors file or module that cannot be read.
    """
    where = where or tree()
    path = where.spec / area / f"{slug}.md"
    clauses = read_page(path).clauses if path.is_file() else ()
    return _closure(area, slug, clauses, where, extra)


def finding_closure(page: Page, where: Tree | None = None, extra: Iterable[Path] = ()) -> Closure:
    """As :func:`closure_of`, for a page that is read already."""
    return _closure(page.area, page.slug, page.clauses, where or tree(), extra)


def _closure(area: str, slug: str, clauses: Iterable[ClauseText], where: Tree, extra: Iterable[Path]) -> Closure:
    parts = {f"test {path.name}": code_hash(path) for path in sorted(extra)}
    starts = [module for module, _ in modules_below(f"memspec.{area}.{slug.replace('-', '_')}", where.impl)]
    if script := where.script(area, slug):
        parts["script"] = code_hash(script)
        starts += imports(script, "", where.impl)
    parts |= _module_parts(starts, area, slug, where)
    parts |= {f"clause {clause.id}": clause.hash for clause in clauses}
    parts |= _vector_parts(area, slug, where)
    return closure_from(parts)


def script_closure(script: Path, where: Tree | None = None) -> Closure:
    """What the output of a gallery script depends on: its code, the modules it imports, and its finding's vectors."""
    where = where or tree()
    area, slug = script.parent.name, script.stem.removeprefix("plot_").replace("_", "-")
    parts = {"script": code_hash(script)} | _module_parts(imports(script, "", where.impl), area, slug, where)
    return closure_from(parts | _vector_parts(area, slug, where))


def module_closure(module: str, where: Tree | None = None) -> Closure:
    """What one of our modules does: its code and that of all modules of ours that it imports."""
    impl = (where or tree()).impl
    return closure_from({name: code_hash(path) for name, path in _reached([module], impl).items()})


def closure_from(parts: Mapping[str, str]) -> Closure:
    """The closure of ``parts``; a record's own parts must give its own hash, or the record was edited."""
    ordered = dict(sorted(parts.items()))
    return Closure(_short(json.dumps(ordered, ensure_ascii=True, separators=(",", ":"))), ordered)


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What became different between two closures' parts, one phrase each: "reference changed", "kernels added"."""
    names = sorted(old.keys() | new.keys(), key=lambda name: (name.startswith("clause "), name))
    words = {(True, True): "changed", (True, False): "removed", (False, True): "added"}
    return [f"{name} {words[name in old, name in new]}" for name in names if old.get(name) != new.get(name)]


def code_hash(path: Path) -> str:
    """Short hash of the syntax tree of a Python file, without comments, docstrings and ``__version__``."""
    return _code_hash(path, read_text(path))


def modules_below(module: str, impl: Path) -> Iterator[tuple[str, Path]]:
    """The module and, for a package, all modules in it: dotted name and file."""
    folder = impl.joinpath(*module.split("."))
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]:
        if path.is_file():
            steps = path.relative_to(impl).with_suffix("").parts
            yield ".".join(steps[:-1] if steps[-1] == "__init__" else steps), path


def module_path(module: str, impl: Path) -> Path | None:
    """The file of a dotted module name below ``impl``, or None."""
    base = impl.joinpath(*module.split("."))
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def imports(path: Path, module: str, impl: Path) -> list[str]:
    """Modules of ours that a file imports anywhere in it, with their packages. ``module`` is its own dotted name."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    wanted: set[str] = set()
    for node in ast.walk(_parse(path, read_text(path))):
        if isinstance(node, ast.Import):
            wanted |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            steps = above[: len(above) - node.level + 1] if node.level else []
            base = ".".join([*steps, *([node.module] if node.module else [])])
            wanted |= {base} | {f"{base}.{name.name}" for name in node.names}
    ours = [name.split(".") for name in sorted(wanted) if name.split(".")[0] in PACKAGES]
    candidates = {".".join(steps[:length]): None for steps in ours for length in range(1, len(steps) + 1)}
    return [name for name in candidates if module_path(name, impl)]


def _reached(starts: Iterable[str], impl: Path) -> dict[str, Path]:
    """The modules of ours among ``starts``, and all that they import, with their files."""
    waiting, found = list(starts), dict[str, Path]()
    while waiting:
        module = waiting.pop()
        path = module_path(module, impl)
        if path is not None and module not in found:
            found[module] = path
            waiting += imports(path, module, impl)
    return found


def _module_parts(starts: Iterable[str], area: str, slug: str, where: Tree) -> dict[str, str]:
    package = f"memspec.{area}.{slug.replace('-', '_')}"
    parts = {}
    for module, path in _reached(starts, where.impl).items():
        name = "package" if module == package else module.removeprefix(package + ".")
        parts[name] = code_hash(path)
    return parts


def _vector_parts(area: str, slug: str, where: Tree) -> dict[str, str]:
    path = where.spec / "vectors" / area / f"{slug}.yaml"
    if not path.is_file():
        return {}
    try:
        data = parse_yaml(read_text(path))
    except (yaml.YAMLError, ValueError) as trouble:
        mark = getattr(trouble, "problem_mark", None)
        raise SpecError(path, mark.line + 1 if mark else 1, f"not YAML: {' '.join(str(trouble).split())}") from trouble
    return {"vectors": _short(_plain(data))}


def _plain(data: Any) -> str:
    """Parsed data as text: mappings sorted by key, numbers and strings kept apart."""
    if isinstance(data, dict):
        return "{" + ",".join(sorted(f"{_plain(key)}:{_plain(value)}" for key, value in data.items())) + "}"
    if isinstance(data, list):
        return "[" + ",".join(map(_plain, data)) + "]"
    return ascii(data)


@lru_cache(maxsize=1024)
def _parse(path: Path, source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as trouble:
        raise SpecError(path, trouble.lineno, f"not Python: {trouble.msg}") from trouble


@lru_cache(maxsize=1024)
def _code_hash(path: Path, source: str) -> str:
    kept = [statement for statement in _parse(path, source).body if not _is_version(statement)]
    return _short(_tree(ast.Module(kept, [])))


def _is_version(statement: ast.stmt) -> bool:
    return (isinstance(statement, ast.Assign) and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name) and statement.targets[0].id == "__version__")  # fmt: skip


def _tree(node: Any) -> str:
    """A syntax tree as text that every Python version spells the same: empty fields and docstrings are left out."""
    if isinstance(node, list):
        return "[" + ",".join(map(_tree, node)) + "]"
    if not isinstance(node, ast.AST):
        return ascii(node)
    fields = {name: value for name, value in ast.iter_fields(node) if value is not None and value != []}
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _has_docstring(node):
        fields["body"] = node.body[1:]
    if isinstance(node, ast.JoinedStr):
        fields["values"] = [part for part in node.values if not (isinstance(part, ast.Constant) and part.value == "")]
    hidden = {"type_ignores", "type_comment", "kind"}
    return type(node).__name__ + "(" + ",".join(f"{n}={_tree(v)}" for n, v in fields.items() if n not in hidden) + ")"


def _has_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
