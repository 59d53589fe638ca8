"""Which caches are zeroed."""

from __future__ import annotations

from collections.abc import Sequence

from memspec.conformance import expect
from memspec.layout.packed_block_zeroing.checks.cases import MIXED, group
from memspec.layout.packed_block_zeroing.checks.facets import CHECKS, Scope
from memspec.layout.packed_block_zeroing.data import CacheGroup


@CHECKS.clause(lambda: [MIXED, (group("keys"), group("state", "mamba")), (group("a"), group("b", quantisation="fp8-per-head")),
                        (group("first"), group("second"), group("third", "mla", dtype="float8_e4m3"))], facet=Scope)  # fmt: skip
def zeroed_where_misread(scope: Scope, groups: Sequence[CacheGroup]) -> None:
    expect(scope.needs_zeroing(groups), True)
    expect(sorted(scope.zeroed_layers(groups)), sorted(n for g in groups if g.kind != "mamba" for n in g.layers))


@CHECKS.clause(lambda: [(), (group("only"),), (group("full"), group("window", "sliding-window")),
                        (group("device"), group("host", dtype="float8_e4m3", host_resident=True)),
                        (group("a"), group("host", dtype="float8_e4m3", host_resident=True), group("b"))], facet=Scope)  # fmt: skip
def uniform_left_alone(scope: Scope, groups: Sequence[CacheGroup]) -> None:
    expect(
        (scope.needs_zeroing(groups), tuple(scope.zeroed_layers(groups)), tuple(scope.recorded_groups(groups))),
        (False, (), ()),
    )


@CHECKS.clause(lambda: [(group("state", "mamba"), group("other", kind)) for kind in
                        ("full-attention", "sliding-window", "chunked-local", "mla")], facet=Scope)  # fmt: skip
def every_attention_kind(scope: Scope, groups: Sequence[CacheGroup]) -> None:
    expect((tuple(scope.zeroed_layers(groups)), tuple(scope.recorded_groups(groups))), (groups[1].layers, ("other",)))


@CHECKS.clause(
    lambda: [(*MIXED, group("state", "mamba")), (*MIXED, group("ring", "sliding-window", ring=True))], facet=Scope
)
def state_caches_untouched(scope: Scope, groups: Sequence[CacheGroup]) -> None:
    expect(sorted(scope.recorded_groups(groups)), ["eight", "plain"])
    expect([n for n in scope.zeroed_layers(groups) if n.startswith("state")], [])


@CHECKS.clause(lambda: [(*MIXED, group("odd", **how)) for how in
                        ({"storage": "list"}, {"storage": "runner-only"}, {"kernel_block_size": None})], facet=Scope)  # fmt: skip
def pages_only(scope: Scope, groups: Sequence[CacheGroup]) -> None:
    expect(sorted(scope.zeroed_layers(groups)), sorted(n for g in groups[:2] for n in g.layers))
