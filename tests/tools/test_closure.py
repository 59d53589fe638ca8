"""A closure changes with what a result depends on, and with nothing else."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import small_tree
from memspec_tools import closure
from memspec_tools.errors import SpecError


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return small_tree.make(tmp_path)


def told(top: Path, edit: Callable[[], object]) -> list[str]:
    """What changed in the closure of small-rule by ``edit``; the hash changes if and only if something is named."""
    before = closure.closure_of("layout", "small-rule", closure.tree(top))
    edit()
    after = closure.closure_of("layout", "small-rule", closure.tree(top))
    named = closure.changes(before.parts, after.parts)
    assert (before.hash != after.hash) == bool(named)
    return named


def test_parts_of_a_finding(top: Path) -> None:
    parts = closure.closure_of("layout", "small-rule", closure.tree(top)).parts
    assert set(parts) == {
        "script", "package", "reference", "checks", "vectors", "clause small-rule.cleared", "clause small-rule.twice",
        "memspec", "memspec.layout", "memspec.terms", "memspec.deep", "memspec_tools", "memspec_tools.exhibit",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new", "due"),
    [
        ("impl/memspec/layout/small_rule/reference.py", ">{8}", ">{9}", ["reference changed"]),
        ("impl/memspec/layout/small_rule/checks.py", "terms.unit", "terms.unit, 1", ["checks changed"]),
        ("impl/memspec/deep.py", "1", "2", ["memspec.deep changed"]),
        ("impl/memspec_tools/exhibit.py", "()", "(1,)", ["memspec_tools.exhibit changed"]),
        ("gallery/layout/plot_small_rule.py", "clear(1)", "clear(2)", ["script changed"]),
        ("spec/layout/small-rule.md", "it changes", "it ever changes", ["clause small-rule.cleared changed"]),
        ("spec/layout/small-rule.md", "#small-rule.twice", "#small-rule.again",
         ["clause small-rule.again added", "clause small-rule.twice removed"]),
        ("spec/vectors/layout/small-rule.yaml", "'1'", "1", ["vectors changed"]),
    ],
)  # fmt: skip
def test_a_change_is_named(top: Path, file: str, old: str, new: str, due: list[str]) -> None:
    assert told(top, lambda: small_tree.replace(top / file, old, new)) == due


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("impl/memspec/layout/small_rule/reference.py", "# why", "# why not"),
        ("impl/memspec/layout/small_rule/reference.py", "Clear it.", "Clear the block."),
        ("impl/memspec/layout/small_rule/reference.py", '"""The rule."""\n\n\n', "# A rule.\n"),
        ("impl/memspec/stranger.py", "1", "2"),
        ("impl/memspec/__init__.py", '"1"', '"2"'),
        ("gallery/layout/plot_small_rule.py", "# Prose.", "# Other prose."),
        ("spec/layout/small-rule.md", "Words.", "More words."),
        ("spec/layout/small-rule.md", "A block MUST be", "A block\nMUST   be"),
        ("spec/vectors/layout/small-rule.yaml", "{a: 1, b: '1'}", '{"b": "1",   a: 1}'),
    ],
)  # fmt: skip
def test_layout_and_prose_do_not_count(top: Path, file: str, old: str, new: str) -> None:
    assert told(top, lambda: small_tree.replace(top / file, old, new)) == []


def test_files_come_and_go(top: Path) -> None:
    package = top / "impl/memspec/layout/small_rule"
    assert told(top, lambda: (package / "kernels.py").write_text("x = 1\n")) == ["kernels added"]
    assert told(top, lambda: (package / "kernels.py").unlink()) == ["kernels removed"]
    assert told(top, lambda: (top / "gallery/layout/plot_small_rule.py").unlink()) == [
        "memspec_tools removed", "memspec_tools.exhibit removed", "script removed",
    ]  # fmt: skip
    assert told(top, lambda: (top / "spec/vectors/layout/small-rule.yaml").unlink()) == ["vectors removed"]


def test_a_reference_that_becomes_a_package_is_followed(top: Path) -> None:
    package = top / "impl/memspec/layout/small_rule"

    def split() -> None:
        (package / "reference").mkdir()
        shutil.move(package / "reference.py", package / "reference/__init__.py")
        (package / "reference/rule.py").write_text("from ....terms import unit\n")

    assert told(top, split) == ["reference.rule added"]


def test_extra_files_count(top: Path) -> None:
    test = top / "tests/test_small.py"
    test.parent.mkdir()
    test.write_text("x = 1\n")
    assert "test test_small.py" in closure.closure_of("layout", "small-rule", closure.tree(top), [test]).parts


def test_a_script_depends_on_what_it_imports_only(top: Path) -> None:
    script = top / "gallery/layout/plot_small_rule.py"
    before = closure.script_closure(script, closure.tree(top)).parts
    assert not {"checks", "clause small-rule.cleared"} & set(before)
    assert {"script", "package", "reference", "vectors", "memspec_tools.exhibit"} <= set(before)


def test_the_hash_is_the_hash_of_the_parts() -> None:
    one = closure.closure_from({"a": "1", "b": "2"})
    assert one.hash == closure.closure_from({"b": "2", "a": "1"}).hash
    assert one.hash != closure.closure_from({"a": "1", "b": "3"}).hash


def test_what_cannot_be_read_is_named_with_its_line(top: Path) -> None:
    broken = top / "impl/memspec/layout/small_rule/reference.py"
    broken.write_text("x = 1\ndef (\n")
    with pytest.raises(SpecError, match=r"reference\.py:2: not Python"):
        closure.closure_of("layout", "small-rule", closure.tree(top))
    broken.write_text("")
    (top / "spec/vectors/layout/small-rule.yaml").write_text("a: [1\nb: 2\n")
    with pytest.raises(SpecError, match=r"small-rule\.yaml:2: not YAML"):
        closure.closure_of("layout", "small-rule", closure.tree(top))


def test_every_kind_of_node_counts() -> None:
    """Two programs that differ in one operator, name, constant or type of constant have different hashes."""
    sources = ["a + b", "a - b", "a + c", "a + 1", "a + 1.0", "a + '1'", "a + b'1'", "a + True", "a + None", "a + (b,)",
               "f'{a}'", "f'{a!r}'", "f'{a:x}'", "f'{a:y}'", "lambda a: a", "lambda a=1: a", "[a for a in b]",
               "{a for a in b}", "[a async for a in b]", "a if b else c", "not a", "-a", "a < b", "a <= b"]  # fmt: skip
    assert len({closure._tree(ast.parse(source)) for source in sources}) == len(sources)
