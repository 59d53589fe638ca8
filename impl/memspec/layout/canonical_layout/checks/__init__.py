"""One decision per clause of the canonical layout, and the operations of its vectors."""

# the order of the clauses follows the order of these imports
from memspec.layout.canonical_layout.checks import maps  # isort: skip
from memspec.layout.canonical_layout.checks import certification  # isort: skip
from memspec.layout.canonical_layout.checks import writing  # isort: skip
from memspec.layout.canonical_layout.checks import moving  # isort: skip
from memspec.layout.canonical_layout.checks import sharing  # isort: skip
from memspec.layout.canonical_layout.checks import operations  # isort: skip
from memspec.layout.canonical_layout.checks.base import CHECKS, Mapper, Names, Sharing, Transfers

__all__ = [
    "CHECKS",
    "Mapper",
    "Names",
    "Sharing",
    "Transfers",
    "certification",
    "maps",
    "moving",
    "operations",
    "sharing",
    "writing",
]
