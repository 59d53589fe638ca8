"""A finding is found by its page; slug and area are its address in every tree."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from memspec.conformance import CannotRun, Checks, Fault

from memspec_tools.errors import SpecError
from memspec_tools.pages import Page, load_pages
from memspec_tools.vectors import Vector, load_vectors

OPTIONAL_PACKAGES = {"torch", "triton", "numpy"}


@dataclass(frozen=True)
class Finding:
    page: Page
    reference: ModuleType
    checks: Checks
    faults: tuple[Fault, ...]
    vectors: tuple[Vector, ...]

    @property
    def slug(self) -> str:
        return self.page.slug

    def implementations(self, device: str) -> dict[str, Callable[[], Any]]:
        """Our own subjects by name: the reference, and those that act on ``device``. Making one may raise CannotRun."""
        made: dict[str, Callable[[], Any]] = {"reference": lambda: self.reference}
        if device == "cpu" and "triton" not in sys.modules:
            os.environ.setdefault("TRITON_INTERPRET", "1")  # counts only before triton is first imported
        for name in ("tensors", "kernels"):
            if importlib.util.find_spec(f"{self.page.module}.{name}") is not None:
                module = _optional(f"{self.page.module}.{name}")
                if isinstance(module, str):
                    made[name] = partial(_cannot, module)
                elif hasattr(module, "subject"):
                    made[name] = partial(module.subject, device)
        return made


def load_findings(slugs: Sequence[str] = ()) -> list[Finding]:
    """All findings, or those named. Raises SpecError for an unknown slug or a page without code."""
    pages = load_pages()
    known = [page.slug for page in pages]
    for slug in slugs:
        if slug not in known:
            raise SpecError(None, None, f"there is no finding {slug!r}; known: {', '.join(known)}")
    return [_load(page) for page in pages if not slugs or page.slug in slugs]


def page_of(clause_id: str, pages: Iterable[Page]) -> Page:
    """The page that carries a clause. Raises SpecError, with the successor of a withdrawn id, when there is none."""
    for page in pages:
        if any(clause.id == clause_id for clause in page.clauses):
            return page
        for tombstone in page.tombstones:
            if tombstone.id == clause_id:
                raise SpecError(
                    page.path, tombstone.line, f"{clause_id} is withdrawn; its successor is {tombstone.successor}"
                )
    raise SpecError(None, None, f"there is no clause {clause_id!r}; `memspec list` names the findings")


def _load(page: Page) -> Finding:
    parts: list[ModuleType] = []
    for name in ("reference", "checks", "faults"):
        try:
            parts.append(importlib.import_module(f"{page.module}.{name}"))
        except ModuleNotFoundError as trouble:
            raise SpecError(page.path, 2, f"{page.slug} needs {page.module}.{name}: {trouble}") from trouble
    reference, checks_module, faults_module = parts
    checks: Checks = checks_module.CHECKS
    if checks.slug != page.slug:
        raise SpecError(page.path, 2, f"the checks of {page.module} say that they are of {checks.slug!r}")
    return Finding(page, reference, checks, tuple(faults_module.FAULTS), tuple(load_vectors(page, checks)))


def _optional(name: str) -> ModuleType | str:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as trouble:
        if (trouble.name or "").partition(".")[0] not in OPTIONAL_PACKAGES:
            raise
        return f"{trouble.name} is not installed"


def _cannot(why: str) -> Any:
    raise CannotRun(why)
