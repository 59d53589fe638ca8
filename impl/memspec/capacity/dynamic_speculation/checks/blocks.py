"""Blocks and places for drafts; ranks."""

from __future__ import annotations

from itertools import product

from memspec.capacity.dynamic_speculation.checks import oracle
from memspec.capacity.dynamic_speculation.checks.facets import CHECKS, Configured, Reserver
from memspec.capacity.dynamic_speculation.data import Role, Settings
from memspec.conformance import Violation, expect

ROLES: tuple[Role, ...] = ("decode", "last-chunk")
V1_METHODS = ("ngram", "eagle", "eagle3", "mtp", "draft_model", "dflash")


@CHECKS.clause(lambda: [*product((0, 15, 16), (0, 1, 6), (0, 2), (4, 16))], Reserver)
def blocks_rounded_up(reserver: Reserver, case: tuple[int, int, int, int]) -> None:
    computed, new, ahead, block = case
    total = oracle.blocks_touched(computed + new + ahead, block)
    added = oracle.blocks_touched(computed + new, block) - oracle.blocks_touched(computed, block)
    seen = (reserver.reserved_blocks(computed, new, ahead, block), reserver.added_blocks(computed, new, block))
    expect(seen, (total, added))


@CHECKS.clause(lambda: product(ROLES, (0, 1, 4), (0, 2, 4), (0, 1), (True, False)), Reserver)
def drafts_have_places(reserver: Reserver, case: tuple[Role, int, int, int, bool]) -> None:
    role, k_now, k_next, extra, tight = case
    ahead = reserver.lookahead(role, k_now, k_next, 4, extra, tight)
    if ahead < k_next + extra:  # the drafts that the step verifies are among its own tokens
        raise Violation(f"{ahead} places", f"places for {k_next} drafts and {extra} rows more")


@CHECKS.clause(lambda: product(("chunk", *ROLES), (0, 1, 2), (0, 1, 2), (0, 1)), Reserver)
def lookahead_follows_k(reserver: Reserver, case: tuple[Role, int, int, int]) -> None:
    role, k_now, k_next, extra = case
    most = 0 if role == "chunk" else max(k_now, k_next) + extra
    ahead = reserver.lookahead(role, k_now, k_next, 4, extra)
    if ahead > most:
        raise Violation(ahead, f"at most {most} where the pool is tight")


@CHECKS.clause(lambda: [*product((0, 2, 3, 17), (1, 4, 16))], Reserver)
def static_extra_known(reserver: Reserver, case: tuple[int, int]) -> None:
    ahead, block = case
    due = sum(
        oracle.blocks_touched(length + ahead, block) - oracle.blocks_touched(length, block)
        for length in range(1, block + 1)
    )
    expect(reserver.static_extra(ahead, block), due)


def parallel(**changed: object) -> Settings:
    return Settings(**{"k_max": 2, "max_batch": 16, "schedule": tuple(oracle.REPORTED), **changed})  # type: ignore[arg-type]


@CHECKS.clause(
    lambda: [(parallel(data_parallel=n, shared_count=shared), counts) for shared in (False, True)
             for n, counts in ((2, (4, 5)), (2, (1, 16)), (4, (5, 5, 4, 5)), (3, (0, 5, 5)))],
    Configured,
)  # fmt: skip
def ranks_agree(configured: Configured, case: tuple[Settings, tuple[int, ...]]) -> None:
    settings, counts = case
    try:
        ks = tuple(configured.rank_ks(settings, counts))
    except ValueError:
        return
    if len(ks) != len(counts) or len({*ks}) > 1:
        raise Violation(f"ranks with {counts} requests take K of {ks}", "one K for all of them, or a refusal")
    if not settings.shared_count:
        expect({*ks}, {settings.k_max})


@CHECKS.clause(
    lambda: [(parallel(), True), (parallel(data_parallel=2), False), (parallel(data_parallel=2, shared_count=True), True),
             (parallel(runner="V1", method="suffix"), False), (parallel(method="suffix"), True),
             *((parallel(runner="V1", method=method), True) for method in V1_METHODS)],
    Configured,
)  # fmt: skip
def dropped_table_told(configured: Configured, case: tuple[Settings, bool]) -> None:
    settings, kept = case
    try:
        resolved = configured.resolve(settings)
    except ValueError as refusal:
        if kept:
            raise Violation(f"refused: {refusal}", "a table in force") from refusal
        return
    expect((resolved.table is not None, bool(resolved.dropped)), (kept, not kept))
