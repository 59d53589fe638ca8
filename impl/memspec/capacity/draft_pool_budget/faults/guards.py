"""Guards that were taken away."""

from __future__ import annotations

from memspec.capacity.draft_pool_budget import twins
from memspec.capacity.draft_pool_budget.faults.making import fault

GUARDS = (
    fault(
        "any-widths",
        "group-divides-width settings-hold",
        "guard removed",
        "",
        "Divides the attention width by any group.",
        check_parallel=twins.no_check,
    ),
    fault(
        "any-window",
        "settings-hold",
        "guard removed",
        "",
        "Takes a window pool of any ratio.",
        check_window=twins.no_check,
    ),
    fault(
        "any-geometry",
        "settings-hold",
        "guard removed",
        "",
        "Multiplies sizes below zero.",
        check_geometry=twins.no_check,
    ),
    fault(
        "any-draft",
        "settings-hold",
        "guard removed",
        "",
        "Takes any algorithm and any number of window layers.",
        check_draft=twins.any_draft,
    ),
    fault(
        "any-cell",
        "cells-positive",
        "guard removed",
        "",
        "Takes a given cell of nothing for none.",
        check_draft=twins.any_cell,
    ),
    fault("any-cap", "settings-hold", "guard removed", "", "Takes caps below zero.", check_caps=twins.no_check),
)
