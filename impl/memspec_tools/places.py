"""Where things lie: in a checkout, or in an installed wheel that carries ``spec/`` as package data."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent


def root() -> Path | None:
    """The top of the checkout that this package runs from, or None in an installed wheel."""
    top = HERE.parents[1]
    return top if (top / "spec").is_dir() and (top / "mkdocs.yml").is_file() else None


def spec_dir() -> Path:
    """The folder of pages, vectors, policy and lock."""
    top = root()
    return top / "spec" if top else HERE / "_spec"


def cache_dir() -> Path:
    """Where results of this checkout are kept between runs. Raises FileNotFoundError outside a checkout."""
    top = root()
    if top is None:
        raise FileNotFoundError("there is no checkout here, so there is nowhere to keep results")
    return top / ".cache"


def shown(path: Path) -> str:
    """``path`` as a person would type it from the top of the checkout."""
    top = root() or spec_dir().parent
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else str(path)
