"""The wrong halves of the broken twins of the simulator; the others are in ``twins``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from memspec.capacity.dynamic_speculation.data import Hypotheses, Mode, Report, Role, Scheduled, World
from memspec.capacity.dynamic_speculation.reference import scheduling, simulator, table


def different_ks(ks: Sequence[int]) -> int:
    return len(set(ks)) - 1


def zero_not_counted(rows: Sequence[Any], latencies: Sequence[int], preempted: int, now: int) -> Report:
    return simulator.summed(rows, latencies, preempted, now)._replace(zero_forwards=0)


def against_static(found: dict[str, Report]) -> Fraction:
    return Fraction(found["dynamic"].microseconds, found["static"].microseconds) - 1


def none_is_k_zero(world: World, readings: Hypotheses = simulator.AS_READ) -> dict[str, Report]:
    idle = replace(world, schedule=((1, world.max_batch, 0),))
    return {**simulator.compared(world, readings), "none": simulator.simulate(idle, "dynamic", readings)}


def without_none(world: World, readings: Hypotheses = simulator.AS_READ) -> dict[str, Report]:
    found = simulator.compared(world, readings)
    return {"none": found["static"], "static": found["static"], "dynamic": found["dynamic"]}


def always_the_table(world: World, mode: Mode) -> tuple[int, ...]:
    return simulator.table_of(world, "none" if mode == "none" else "dynamic")


def all_counted(requests: Iterable[Scheduled], counting: str = "scheduled") -> int:
    return table.scheduled_count(requests)


def widest_kept(world: World, share: Any, k: int, *rest: Any) -> tuple[int, int]:
    return simulator.deliver(world, share, max(k, share.request.drafts), *rest)


def places_for_nobody(world: World, mode: Mode, readings: Hypotheses, role: Role, k_now: int, k_next: int) -> int:
    return world.k_max if mode == "none" else scheduling.places(world, mode, readings, role, k_now, k_next)


def places_tangled(world: World, mode: Mode, readings: Hypotheses, role: Role, k_now: int, k_next: int) -> int:
    return 0 if mode == "none" else world.k_max


def places_of_the_synced(world: World, mode: Mode, readings: Hypotheses, role: Role, k_now: int, k_next: int) -> int:
    given = scheduling.places(world, mode, readings, role, k_now, k_next)
    return 0 if readings.sync == "catch-up" else given


def no_bonus(acceptance: Fraction, k: int) -> Fraction:
    return simulator.expected_tokens(acceptance, k) - 1


def independent(acceptance: Fraction, k: int) -> Fraction:
    return 1 + acceptance * k
