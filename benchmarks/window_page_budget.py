"""How fast the planner is, as a ratio to two plain ways of writing the same pass over the queue.

``loop`` does the arithmetic inline on bare integers; ``numpy`` prices the whole queue at once and finds the first misfit in
running sums. All three must bring back the same requests and leave the same budgets. Requests a second count every request
that was looked at. Run by hand: ``python benchmarks/window_page_budget.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random

import numpy
from memspec.capacity.window_page_budget import Budget, Request, Worker, resume
from rich.progress import track

SIZES = (100, 1_000, 10_000, 100_000)
ROUNDS = 7
PROMPT, OUTPUTS = 0, 1

Rows = Sequence[tuple[int, int]]
Result = tuple[int, int, int]  # requests that come back, tokens left in the full and in the window budget


def reference(worker: Worker, queue: Sequence[Request], budget: Budget) -> Result:
    """The planner of the specification."""
    plan = resume(worker, queue, budget, len(queue))
    return len(plan.resumed), plan.budget.full, plan.budget.window


def loop(worker: Worker, rows: Rows, budget: Budget) -> Result:
    """The same rule on bare integers, for a worker with a window and pages of more than one token."""
    page, window, reserve = worker.page_size, worker.window or 0, worker.reserve
    full, windowed, resumed = budget.full, budget.window, 0
    for prompt, outputs in rows:
        tokens = prompt + (outputs - 1 if outputs else 0)
        tail = tokens - max(0, tokens - window) // page * page
        need_full, need_window = -(-tokens // page) * page + reserve, -(-tail // page) * page
        if need_full > full or need_window > windowed:
            break
        full, windowed, resumed = full - need_full, windowed - need_window, resumed + 1
    return resumed, full, windowed


def in_numpy(worker: Worker, rows: numpy.ndarray[tuple[int, int], numpy.dtype[numpy.int64]], budget: Budget) -> Result:
    """The same rule on columns: (number of requests, 2), prompt and outputs."""
    page = worker.page_size
    tokens = rows[:, PROMPT] + numpy.maximum(rows[:, OUTPUTS] - 1, 0)
    tail = tokens - numpy.maximum(0, tokens - (worker.window or 0)) // page * page
    full = numpy.cumsum(-(-tokens // page) * page + worker.reserve)
    window = numpy.cumsum(-(-tail // page) * page)
    resumed = int(
        numpy.searchsorted(full, budget.full, "right").clip(max=numpy.searchsorted(window, budget.window, "right"))
    )
    taken = (int(full[resumed - 1]), int(window[resumed - 1])) if resumed else (0, 0)
    return resumed, budget.full - taken[0], budget.window - taken[1]


def best(run: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of the fastest of some rounds, and the result."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


def compare(size: int) -> tuple[int, float, float, float]:
    """Requests that came back, and requests a second of the reference, the loop and NumPy, on a queue whose last request does not fit."""
    random = Random(size)
    worker = Worker(page_size=128, window=2047)
    rows = [(random.randrange(1, 8192), random.randrange(512)) for _ in range(size)]
    queue = [Request(str(number), prompt, outputs) for number, (prompt, outputs) in enumerate(rows)]
    everything = Budget(10**12, 10**12)
    _, full, window = loop(worker, rows, everything)
    budget = Budget(everything.full - full - 1, everything.window - window)
    columns = numpy.array(rows, dtype=numpy.int64)
    ours, planned = best(lambda: reference(worker, queue, budget))
    plain, looped = best(lambda: loop(worker, rows, budget))
    vectors, summed = best(lambda: in_numpy(worker, columns, budget))
    if not planned == looped == summed or planned[0] != size - 1:
        raise RuntimeError(f"{size} requests: reference {planned}, loop {looped}, numpy {summed}")
    return planned[0], size / ours, size / plain, size / vectors


if __name__ == "__main__":
    results = [(size, compare(size)) for size in track(SIZES, "queues")]
    for size, (resumed, ours, plain, vectors) in results:
        print(
            f"queue {size:>7,}  back {resumed:>7,}  reference {ours:>11,.0f} requests/s  ratio to loop {ours / plain:.2f}"
            f"  ratio to numpy {ours / vectors:.3f}"
        )
