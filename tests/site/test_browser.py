"""The built site in Chromium. The fixture ``visit`` fails a test on any request to another host and on any console error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from memspec_tools.pages import load_pages
from memspec_tools.site.results import DIAGRAM

pytestmark = pytest.mark.browser

PAGES = load_pages()
PAGE = PAGES[0]
SPEC = f"spec/{PAGE.area}/{PAGE.slug}/"
SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "gallery").glob("*/plot_*.py"))
GALLERY = [f"gallery/{SCRIPTS[0].parent.name}/{SCRIPTS[0].stem}/"] if SCRIPTS else []
KINDS = ["", SPEC, "spec/terms/", "start/run/", *GALLERY]


def found(page: Any, words: str, at_once: bool = False) -> list[str]:
    """Addresses that the search offers; ``at_once`` leaves out those folded away as "more on this page".

    Material listens to keys: a filled field alone starts nothing.
    """
    page.click("label.md-search__icon[for=__search]") if page.viewport_size["width"] < 960 else page.click(
        ".md-search__input"
    )
    page.fill(".md-search__input", words)
    page.press(".md-search__input", "End")
    page.wait_for_selector(".md-search-result__item a")
    page.wait_for_timeout(500)
    links = page.query_selector_all(".md-search-result__item a")
    return [re.sub(r"[?][^#]*", "", link.get_attribute("href")) for link in links if link.is_visible() or not at_once]


@pytest.mark.parametrize("page", PAGES, ids=[page.slug for page in PAGES])
def test_search_finds_a_clause_by_its_id(visit: Any, page: Any) -> None:
    clause = page.clauses[len(page.clauses) // 2]
    hits = found(visit(""), clause.id, at_once=True)
    assert any(hit.endswith(f"spec/{page.area}/{page.slug}/#{clause.id}") for hit in hits), hits


@pytest.mark.parametrize("page", PAGES, ids=[page.slug for page in PAGES])
def test_search_finds_a_clause_by_its_words(visit: Any, page: Any) -> None:
    clause = page.clauses[0]
    words = " ".join(sorted(set(re.findall(r"[a-z]{4,}", clause.text)), key=lambda word: (len(word), word))[-5:])
    hits = found(visit("start/cite/"), words)
    assert any(hit.endswith(f"#{clause.id}") for hit in hits), (words, hits)


@pytest.mark.parametrize("term", ["清零", "槽位", "缓存块", "交接"])
def test_search_finds_chinese_terms(visit: Any, term: str) -> None:
    assert any("spec/terms/" in hit for hit in found(visit(""), term))


@pytest.mark.parametrize("words", ["50276", "#50276", "PR #50276"])
def test_search_finds_an_upstream_number(visit: Any, words: str) -> None:
    assert any("spec/layout/packed-block-zeroing/" in hit for hit in found(visit(""), words))


@pytest.mark.parametrize("path", KINDS)
def test_pages_load_without_errors_and_ask_only_this_host(visit: Any, path: str) -> None:
    page = visit(path)
    page.wait_for_load_state("networkidle")
    assert page.query_selector("h1")


@pytest.mark.parametrize("path", KINDS)
def test_no_page_scrolls_sideways_at_360_pixels(visit: Any, path: str) -> None:
    page = visit(path, viewport={"width": 360, "height": 740})
    page.wait_for_load_state("networkidle")
    page.evaluate("for (const box of document.querySelectorAll('details')) box.open = true")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360, page.evaluate(WIDE)


@pytest.mark.parametrize("path", KINDS)
def test_pages_can_be_read_without_scripts(visit: Any, path: str) -> None:
    page = visit(path, java_script_enabled=False, viewport={"width": 360, "height": 740})
    assert page.locator("h1").first.is_visible()
    assert page.locator(".md-content").inner_text().strip()


def test_a_clause_and_its_counterexample_open_without_scripts(visit: Any) -> None:
    page = visit(SPEC, java_script_enabled=False)
    box = page.locator("details.ms-cite").first
    assert not box.locator("pre").first.is_visible()
    box.locator("summary").click()
    assert box.locator("pre").first.is_visible()
    assert page.locator(".ms-matrix").is_visible()


def test_the_palette_toggles_between_system_light_and_dark(visit: Any) -> None:
    page = visit("", color_scheme="light")
    scheme = "document.body.dataset.mdColorScheme"
    assert page.evaluate(scheme) == "default"
    seen = []
    for _ in range(3):
        page.locator("label[for^=__palette]:visible").click()
        seen.append(page.evaluate(f"[{scheme}, document.body.dataset.mdColorMedia]"))
    assert [scheme for scheme, _ in seen][:2] == ["default", "slate"]
    assert seen[2][1] == "(prefers-color-scheme)"


def test_the_system_palette_follows_the_system(visit: Any) -> None:
    page = visit("", color_scheme="dark")
    assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"


@pytest.mark.parametrize("page", PAGES, ids=[page.slug for page in PAGES])
def test_the_permalink_of_a_clause_shows_that_clause(visit: Any, page: Any) -> None:
    clause = page.clauses[-1]
    shown = visit(f"spec/{page.area}/{page.slug}/#{clause.id}")
    shown.wait_for_timeout(400)
    place = shown.evaluate("id => document.getElementById(id).getBoundingClientRect().top", clause.id)
    assert 0 <= place < 900
    assert (
        shown.evaluate("id => getComputedStyle(document.getElementById(id).parentElement).backgroundColor", clause.id)
        != "rgba(0, 0, 0, 0)"
    )


def test_navigation_is_instant_and_scripts_still_work_after_it(visit: Any) -> None:
    page = visit("")
    page.wait_for_load_state("networkidle")
    page.evaluate("window.stays = true")
    page.click(f'.md-content a[href$="{SPEC}"]')
    page.wait_for_selector(f'[id="{PAGE.clauses[0].id}"]')
    assert page.evaluate("window.stays") is True
    assert SPEC in page.url
    assert found(page, PAGE.clauses[0].id)


@pytest.mark.parametrize("page", [page for page in PAGES if DIAGRAM in page.body], ids=lambda page: page.slug)
def test_state_diagrams_are_drawn_from_this_host_in_both_palettes(visit: Any, page: Any) -> None:
    for scheme in ("light", "dark"):
        shown = visit(f"spec/{page.area}/{page.slug}/", color_scheme=scheme)
        shown.wait_for_selector(".ms-diagram--drawn svg")
        assert shown.locator("pre.ms-diagram:visible").count() == 0
        assert not shown.locator("text=Syntax error").count()


def test_the_main_parts_are_reached_and_opened_by_keyboard(visit: Any) -> None:
    page = visit(SPEC)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className").startswith("md-skip")
    page.locator("details.ms-cite summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.ms-cite pre").first.is_visible()
    page.locator(".ms-scroll").first.focus()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"


def test_print_shows_counterexamples_and_hides_what_is_for_screens(visit: Any) -> None:
    page = visit(SPEC)
    page.emulate_media(media="print")
    assert not page.locator("details.ms-cite").first.is_visible()
    assert page.locator("details.ms-box .ms-cases").first.is_visible()
    assert not page.locator(".md-header").is_visible()


@pytest.mark.parametrize("path", [SPEC, ""])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_have_enough_contrast(visit: Any, path: str, scheme: str) -> None:
    """WCAG AA, 4.5 to 1, for all small text of the content on its own ground."""
    page = visit(path, color_scheme=scheme)
    page.wait_for_load_state("networkidle")
    assert page.evaluate(CONTRAST) == []


WIDE = """() => {
  const boxes = '.ms-scroll, .ms-figure, pre, .md-typeset__scrollwrap, .ms-diagram--drawn, table';
  return [...document.querySelectorAll('.md-content *')].filter(e => e.getBoundingClientRect().right > 361 && !e.closest(boxes))
    .map(e => e.outerHTML.slice(0, 120));
}"""

CONTRAST = """() => {
  const words = ['p', 'td', 'th', 'small', 'dt', 'dd', 'a', '.ms-verdict'].map(name => '.md-content ' + name).join();
  const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const over = (top, ground) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + ground[i] * (1 - a)); };
  const ground = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(numbers(getComputedStyle(e).backgroundColor));
    return layers.filter(l => l.length >= 3).reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const bad = new Map();
  for (const e of document.querySelectorAll(words)) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.matches('.headerlink')) continue;
    const below = ground(e), [a, b] = [light(over(numbers(getComputedStyle(e).color), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.set(e.className || e.tagName, `${e.tagName}.${e.className} ${ratio.toFixed(2)}: ${e.textContent.slice(0, 40)}`);
  }
  return [...bad.values()];
}"""
