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


def wrong_pages(folder: Path, writers: str, readers: str, fault: str = "") -> dict[str, list[int]]:
    """The pages that some rank read wrong, by cache and sizes. Every process is gone when this returns."""
    command = [sys.executable, str(SCRIPT), str(folder), writers, readers, *([fault] if fault else [])]
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
    seen = wrong_pages(tmp_path, "4,2", "2,4,1")
    caches = ("packed-hnd", "split-nhd", "two-heads", "latent")
    assert seen == {f"{cache} {w}->{r}": [] for cache in caches for w in (4, 2) for r in (2, 4, 1)}


@pytest.mark.clause("canonical-layout.round-trip-processes", fault="rotation-elects-ranks-that-do-not-submit")
def test_pages_stay_stale_when_elected_ranks_do_not_submit(tmp_path: Path) -> None:
    seen = wrong_pages(tmp_path, "4", "1", "rotation-elects-ranks-that-do-not-submit")
    assert seen["latent 4->1"] == [1, 2, 3, 5, 6, 7], "only every fourth page was written"
    assert seen["two-heads 4->1"] == []


@pytest.mark.clause("canonical-layout.round-trip-processes", fault="direct-read-as-canonical")
def test_direct_pages_under_the_canonical_name_are_read_wrong(tmp_path: Path) -> None:
    seen = wrong_pages(tmp_path, "2", "2,1", "direct-read-as-canonical")
    assert seen["split-nhd 2->1"] == list(range(8))
    assert seen["split-nhd 2->2"] == [], "at its own size it reads what it wrote"
    assert seen["packed-hnd 2->1"] == [], "rank by rank is head by head here"
