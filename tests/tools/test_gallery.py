"""The gallery: what runs, what runs again, how failures are told, and pages that another site can hold."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import small_tree
from memspec_tools import api_names, exhibit, gallery, gallery_hooks, gallery_html
from memspec_tools.errors import SpecError

FIRST = '''"""
A small rule at work
====================

:func:`memspec.layout.small_rule.clear` clears, see :mod:`memspec.layout.small_rule.reference`.
"""

# %%
# What it prints
# --------------
# Prose with ``code``.
from memspec.layout.small_rule import clear
from memspec_tools import exhibit

device = exhibit.device()
exhibit.banner(device)
print(clear(37))
exhibit.metric("cleared bytes", 37376, unit="B")

# %%
# What it draws
# -------------
figure, axes = exhibit.figure(title="One bar for each block")
axes.bar(["a", "b"], [1, 2])
'''
SECOND = '''"""
Another rule
============

See :ref:`sphx_glr_gallery_layout_plot_small_rule.py`.
"""

from memspec_tools import exhibit

exhibit.metric("blocks", 2)
'''


class Balance(HTMLParser):
    """Refuses markup whose tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("img", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None: ...

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tree for the whole module: the tests below edit it in their order, as a person would."""
    top = small_tree.with_tools(small_tree.make(tmp_path_factory.mktemp("gallery")))
    (top / "gallery/layout/plot_small_rule.py").write_text(FIRST)
    (top / "gallery/ordering/plot_other_rule.py").write_text(SECOND)
    return top


def build(top: Path) -> gallery.Gallery:
    return gallery.build(top, top / ".cache/gallery", "cpu")


def by_uri(built: gallery.Gallery) -> dict[str, gallery.GalleryPage]:
    return {page.uri: page for page in built.pages}


@pytest.fixture(scope="module")
def first(top: Path) -> gallery.Gallery:
    return build(top)


def test_all_scripts_run_once(first: gallery.Gallery) -> None:
    assert first.ran == ("layout/plot_small_rule.py", "ordering/plot_other_rule.py")
    assert set(by_uri(first)) == {
        "gallery/index.md", "gallery/layout/index.md", "gallery/ordering/index.md",
        "gallery/layout/plot_small_rule.md", "gallery/ordering/plot_other_rule.md",
    }  # fmt: skip


def test_a_page_carries_what_the_script_said(first: gallery.Gallery) -> None:
    page = by_uri(first)["gallery/layout/plot_small_rule.md"]
    assert (page.title, page.area, page.slug) == ("A small rule at work", "layout", "small-rule")
    assert page.edit_path == "gallery/layout/plot_small_rule.py"
    assert page.metrics == ({"name": "cleared bytes", "value": 37376, "unit": "B", "benchmark": False},)
    assert page.device.startswith("cpu (")
    assert page.versions["torch"] == exhibit.version("torch")
    assert page.seconds > 0
    assert [(h.level, h.id) for h in page.headings] == [
        (1, "a-small-rule-at-work"), (2, "what-it-prints"), (2, "what-it-draws"),
    ]  # fmt: skip
    assert "37 cleared" in gallery_html.plain(page.body)
    assert "cleared bytes: 37,376 B" in page.body


def test_pages_hold_together(first: gallery.Gallery) -> None:
    """Tags match, ids are unique, every heading has its id, every link inside the gallery and every file is there."""
    pages = by_uri(first)
    urls = {gallery_html.page_url(uri): page for uri, page in pages.items()}
    for uri, page in pages.items():
        parser = Balance()
        parser.feed(page.body)
        assert parser.open == []
        ids = re.findall(r'\bid=["\']([^"\']+)', page.body)
        assert len(ids) == len(set(ids))
        assert {heading.id for heading in page.headings} <= set(ids)
        assert "<section" not in page.body
        assert "<pre><code>" in page.body or not page.slug
        for link in re.findall(r'(?:src|href|srcset)="([^"]+)"', page.body):
            target, _, anchor = link.partition("#")
            where = os.path.normpath(Path("/", gallery_html.page_url(uri), target)).removeprefix("/")
            if where in first.assets:
                assert first.assets[where].is_file()
            else:
                assert where + "/" in urls
                assert not anchor or anchor in gallery_html.anchors(urls[where + "/"].body)


def test_names_of_memspec_become_references(first: gallery.Gallery) -> None:
    """Re-exports point to where the thing is defined; modules, roles and code alike."""
    found = re.findall(
        r'<autoref identifier="([^"]+)" optional>', by_uri(first)["gallery/layout/plot_small_rule.md"].body
    )
    assert {
        "memspec.layout.small_rule.reference.clear",
        "memspec.layout.small_rule.reference",
        "memspec_tools.exhibit.metric",
    } <= set(found)
    assert "memspec.layout.small_rule.clear" not in found


def test_figures_are_svg(first: gallery.Gallery) -> None:
    names = [name for name in first.assets if name.startswith("gallery/_images/")]
    assert any(name.endswith("plot_small_rule_001.svg") for name in names)
    assert any(name.endswith("plot_small_rule_thumb.svg") for name in names)


def test_downloads_run_elsewhere(first: gallery.Gallery, tmp_path: Path) -> None:
    """The downloaded script, and the notebook's cells, run in an empty folder with nothing but what is installed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MEMSPEC"))}
    script = tmp_path / "plot_other_rule.py"
    notebook = tmp_path / "plot_other_rule_notebook.py"
    for name, path in first.assets.items():
        if name.endswith("/plot_other_rule.py"):
            script.write_bytes(path.read_bytes())
        if name.endswith("/plot_other_rule.ipynb"):
            cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
            assert 'pip install "memspec[gallery]"' in "".join(cells[0]["source"])
            notebook.write_text("\n".join("".join(cell["source"]) for cell in cells[1:]))
    for path in (script, notebook):
        done = subprocess.run([sys.executable, path.name], cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "blocks: 2\n"), done.stderr


def test_nothing_changed_nothing_runs(top: Path, first: gallery.Gallery) -> None:
    again = build(top)
    assert again.ran == ()
    assert again.pages == first.pages


def test_an_imported_module_reruns_its_scripts_only(top: Path, first: gallery.Gallery) -> None:
    small_tree.replace(top / "impl/memspec/layout/small_rule/reference.py", " cleared", " wiped")
    again = build(top)
    assert again.ran == ("layout/plot_small_rule.py",)
    pages = by_uri(again)
    assert "37 wiped" in gallery_html.plain(pages["gallery/layout/plot_small_rule.md"].body)
    other = "gallery/ordering/plot_other_rule.md"
    assert pages[other] == by_uri(first)[other]


def test_prose_of_the_package_reruns_nothing(top: Path, first: gallery.Gallery) -> None:
    small_tree.replace(top / "impl/memspec/layout/small_rule/reference.py", "# why", "# because")
    assert build(top).ran == ()


def test_all_failures_are_told_at_once_and_none_is_kept(top: Path, first: gallery.Gallery) -> None:
    small, other = top / "gallery/layout/plot_small_rule.py", top / "gallery/ordering/plot_other_rule.py"
    small.write_text(FIRST.replace("print(clear(37))", 'raise ValueError("block 37 is not cleared")'))
    other.write_text(SECOND + "1 / 0\n")
    line = FIRST.splitlines().index("print(clear(37))") + 1
    for _ in range(2):
        with pytest.raises(gallery.GalleryError) as told:
            build(top)
        assert str(told.value).splitlines() == [
            "2 gallery scripts failed:",
            f"  gallery/layout/plot_small_rule.py:{line}: ValueError: block 37 is not cleared",
            f"  gallery/ordering/plot_other_rule.py:{len(SECOND.splitlines()) + 1}: ZeroDivisionError: division by zero",
        ]
    small.write_text(FIRST)
    other.write_text(SECOND)
    assert {page.slug for page in build(top).pages} == {"", "small-rule", "other-rule"}


def test_a_failure_through_a_module_is_kept_neither(top: Path, first: gallery.Gallery) -> None:
    """The script's text is the same before and after: sphinx-gallery alone would have kept the old result."""
    deep = top / "impl/memspec/layout/small_rule/reference.py"
    text = deep.read_text()
    deep.write_text(text.replace("return", "raise RuntimeError('no'); return"))
    with pytest.raises(
        gallery.GalleryError,
        match=r"1 gallery script failed:\n  gallery/layout/plot_small_rule\.py:\d+: RuntimeError: no",
    ):
        build(top)
    deep.write_text(text)
    assert build(top).ran == ("layout/plot_small_rule.py",)


def test_an_unknown_name_fails_and_says_where(top: Path, first: gallery.Gallery) -> None:
    script = top / "gallery/ordering/plot_other_rule.py"
    script.write_text(SECOND.replace("See", "See :func:`memspec.no_such_thing` and"))
    with pytest.raises(
        gallery.GalleryError,
        match=r"plot_other_rule.rst:\d+: WARNING: py:func reference target not found: memspec.no_such",
    ):
        build(top)
    script.write_text(SECOND)


def test_a_script_that_is_gone_leaves_nothing(top: Path, first: gallery.Gallery) -> None:
    script = top / "gallery/ordering/plot_other_rule.py"
    script.unlink()
    built = build(top)
    assert "gallery/ordering/index.md" not in by_uri(built)
    assert not [name for name in built.assets if "other_rule" in name]
    left = [path.name for path in (top / ".cache").rglob("*other_rule*")]
    script.write_text(SECOND)
    assert left == []


def test_an_absent_device_is_one_line(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhibit, "cuda_name", lambda: None)
    with pytest.raises(SpecError, match=r"^device cuda was asked for, but torch finds no CUDA device here"):
        gallery.build(top, top / ".cache/gallery", "cuda")
    monkeypatch.setenv("MEMSPEC_DEVICE", "tpu")
    with pytest.raises(SpecError, match=r"^device 'tpu' is not one of cpu, cuda$"):
        gallery.build(top, top / ".cache/gallery")


def test_plain_run(top: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert gallery.run("small-rule", "cpu", top, tmp_path / "figures") == 0
    assert "cleared bytes: 37,376 B" in capfd.readouterr().out
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["plot_small_rule_001.svg"]
    with pytest.raises(SpecError, match=r"no gallery script for 'nothing'; known: small-rule, other-rule"):
        gallery.run("nothing", "cpu", top)


def test_a_script_without_a_title_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gallery/layout").mkdir(parents=True)
    (tmp_path / "gallery/layout/plot_x.py").write_text("x = 1\n")
    with pytest.raises(SpecError, match=r"plot_x\.py:1: a gallery script begins with a docstring"):
        gallery.examples(tmp_path)


def test_areas_come_in_the_order_of_the_specification() -> None:
    folders = ["a/compatibility", "a/ordering", "a/zzz", "a/layout", "a/capacity"]
    assert sorted(folders, key=gallery_hooks.by_area) == [
        "a/capacity",
        "a/layout",
        "a/ordering",
        "a/compatibility",
        "a/zzz",
    ]


def test_names_are_read_without_importing(top: Path) -> None:
    names = api_names.names(top / "impl")
    assert names["memspec.layout.small_rule.reference.clear"] == "function"
    assert names["memspec.layout.small_rule.clear"] == "function"
    assert names["memspec.deep.unit"] == "data"
    assert names["memspec_tools.exhibit.PALETTE"] == "data"
    assert not [name for name in names if re.search(r"\._(?!_)", name)]


def test_device_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument, then the environment, then what there is; other arguments are left alone."""
    monkeypatch.setattr(exhibit, "cuda_name", lambda: "Device 9000")
    monkeypatch.delenv("MEMSPEC_DEVICE", raising=False)
    assert exhibit.device([]) == "cuda"
    assert exhibit.device(["--device", "cpu", "-v"]) == "cpu"
    monkeypatch.setenv("MEMSPEC_DEVICE", "cpu")
    assert exhibit.device([]) == "cpu"
    assert exhibit.device(["--device=cuda"]) == "cuda"
    monkeypatch.setattr(exhibit, "cuda_name", lambda: None)
    with pytest.raises(exhibit.DeviceError, match="torch finds no CUDA device"):
        exhibit.device(["--device=cuda"])
    monkeypatch.delenv("MEMSPEC_DEVICE")
    assert exhibit.device([]) == "cpu"


def test_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "metrics"
    monkeypatch.setenv("MEMSPEC_RECORD", str(lines))
    exhibit.metric("cleared bytes", 37376, unit="B")
    exhibit.metric("ratio to zero_", 0.93, unit="x", benchmark=True)
    assert capsys.readouterr().out == "cleared bytes: 37,376 B\nratio to zero_: 0.93 x\n"
    assert [json.loads(line)["benchmark"] for line in lines.read_text().splitlines()] == [False, True]
    for wrong in (float("nan"), float("inf"), True, "3"):
        with pytest.raises(ValueError, match="must be a finite number"):
            exhibit.metric("x", wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'speed' has no unit"):
        exhibit.metric("speed", 1.0, benchmark=True)


def test_exhibit_needs_the_standard_library_only() -> None:
    code = (
        "import sys, memspec_tools.exhibit; print({'torch', 'matplotlib', 'numpy', 'yaml', 'click'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
