"""What there is to spend: the bytes that weights, slack and reserves leave for pools.

Source: SGLang 0.5.23; the fraction that a refusal names counts the reserves here, and does not there.
"""

from __future__ import annotations

from fractions import Fraction

from memspec.capacity.draft_pool_budget.data import Memory, NoRoom, SettingRefused
from memspec.capacity.draft_pool_budget.reference.cells import fraction_of

STEPS = 1000  # a refusal names a fraction in steps of 0.001


def check_memory(memory: Memory) -> None:
    """Raise SettingRefused for a fraction outside (0, 1] and for bytes below 0."""
    if not 0 < fraction_of(memory.fraction) <= 1:
        raise SettingRefused(f"fraction {memory.fraction}; above 0 and at most 1")
    for name, size in vars(memory).items():
        if name != "fraction" and size < 0:
            raise SettingRefused(f"{name} {size} bytes; at least 0")


def slack(memory: Memory, fraction: Fraction) -> int:
    """Bytes left for everything that is not static, rounded up; never below the activation reserve."""
    rest = memory.before * (1 - fraction)
    return max(-(-rest.numerator // rest.denominator), memory.activation)


def left(memory: Memory, fraction: Fraction) -> int:
    """Bytes for pools; may be below 0."""
    return memory.after - slack(memory, fraction) - memory.multimodal - memory.state_pools


def least_fraction(memory: Memory) -> Fraction | None:
    """The smallest fraction, in thousandths, that leaves a byte; None where none does."""
    low, high = 1, STEPS
    if left(memory, Fraction(1)) <= 0:
        return None
    while low < high:
        middle = (low + high) // 2
        if left(memory, Fraction(middle, STEPS)) > 0:
            high = middle
        else:
            low = middle + 1
    return Fraction(low, STEPS)


def available(memory: Memory) -> int:
    """Bytes for the pools of target and draft together. Raises NoRoom when nothing is left, SettingRefused for senseless input."""
    check_memory(memory)
    found = left(memory, Fraction(memory.fraction))
    if found <= 0:
        least = least_fraction(memory)
        advice = "no fraction leaves room" if least is None else f"raise the fraction to {float(least):.3f} or more"
        raise NoRoom(f"{found} bytes are left for pools at a fraction of {memory.fraction}; {advice}")
    return found
