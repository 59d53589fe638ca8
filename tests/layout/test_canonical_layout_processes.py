"""Processes of one size write pages into shared files, processes of another size read them: the clause that needs
real ranks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).with_name("canonical_layout_ranks.py")
LIMIT_S = 60.0
SIZES = [(writers, readers) for writers in (4, 2) for readers in (2, 4, 1)]


def wrong_pages(folder: Path, fault: str = "") -> dict[str, list[int]]:
    """The pages that some rank read wrong, by cache and sizes. Every process is gone when this returns."""
    command = [sys.executable, str(SCRIPT), str(folder), *([fault] if fault else [])]
    ranks = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        printed, errors = ranks.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(ranks.pid, signal.SIGKILL)
        ranks.communicate()
        pytest.fail(f"the ranks did not end within {LIMIT_S} s")
    assert ranks.returncode == 0, errors
    return {name: list(pages) for name, pages in json.loads(printed).items()}


@pytest.mark.clause("canonical-layout.round-trip-processes")
def test_readers_of_any_size_get_what_writers_of_another_size_stored(tmp_path: Path) -> None:
    seen = wrong_pages(tmp_path)
    caches = ("packed-hnd", "split-nhd", "two-heads", "latent")
    assert seen == {f"{cache} {writers}->{readers}": [] for cache in caches for writers, readers in SIZES}


@pytest.mark.clause("canonical-layout.round-trip-processes", fault="rotation-elects-ranks-that-do-not-submit")
def test_pages_stay_stale_when_elected_ranks_do_not_submit(tmp_path: Path) -> None:
    seen = wrong_pages(tmp_path, "rotation-elects-ranks-that-do-not-submit")
    for writers, readers in SIZES:
        assert seen[f"latent {writers}->{readers}"] == [page for page in range(8) if page % writers]
        assert seen[f"two-heads {writers}->{readers}"] == []


@pytest.mark.clause("canonical-layout.round-trip-processes", fault="direct-read-as-canonical")
def test_direct_pages_under_the_canonical_name_are_read_wrong(tmp_path: Path) -> None:
    seen = wrong_pages(tmp_path, "direct-read-as-canonical")
    every_page = list(range(8))
    assert [seen[f"split-nhd {w}->{r}"] for w, r in SIZES if w != r] == [every_page] * 4
    assert [seen[f"packed-hnd {w}->{r}"] for w, r in SIZES] == [[]] * 6, "rank by rank is head by head here"
