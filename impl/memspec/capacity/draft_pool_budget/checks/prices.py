"""What a token costs, decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from memspec.capacity.draft_pool_budget.checks import cases, model
from memspec.capacity.draft_pool_budget.checks.cases import Wrong, WrongMemory, dflash, grouped, listed
from memspec.capacity.draft_pool_budget.checks.facets import CHECKS, Pricer
from memspec.capacity.draft_pool_budget.data import Cell, Draft, Geometry, Heads, Latent, Parallel, Serving, Window
from memspec.conformance import CannotRun, Violation, expect, refused


def priced(pricer: Pricer, serving: Serving) -> Cell:
    return Cell(*pricer.cell(serving))


def draft_bytes(price: Cell) -> tuple[int, int, int]:
    return price.own, price.layers_full, price.layers_window


@listed
def with_own_cell() -> Iterator[Serving]:
    yield from (*cases.plain(), *cases.windowed())
    yield Serving(cases.DEEPSEEK_V3, Parallel(8, 4), 64, dflash(cell=7_777))  # stands for the geometry
    yield Serving(cases.DEEPSEEK_V3, Parallel(8, 1), 64, dflash(algorithm="DSPARK"))
    yield Serving(cases.GPT_OSS, Parallel(16, 2), 64, dflash(window_layers=2, local_layers=1), Window(cases.GPT_OSS))


@listed
def groups() -> Iterator[Serving]:
    """One serving, every group that divides its width. The target is a latent, whose row no group widens."""
    for group in (1, 2, 4, 8):
        yield Serving(cases.DEEPSEEK_V3, Parallel(8, group), 64, dflash())
        yield Serving(cases.DEEPSEEK_V3, Parallel(8, group), 64, dflash(None, cell=10_240))


@CHECKS.clause(with_own_cell, Pricer)
def draft_times_group(pricer: Pricer, serving: Serving) -> None:
    expect(priced(pricer, serving).own, model.due_cell(serving).own)


@CHECKS.clause(groups, Pricer)
def target_not_multiplied(pricer: Pricer, serving: Serving) -> None:
    expect(priced(pricer, serving).target_full, 61 * 576 * 2)


@CHECKS.clause(groups, Pricer)
def replicated_once(pricer: Pricer, serving: Serving) -> None:
    """Against the same draft without a group: group size times its bytes, and nothing else changes."""
    alone, together = priced(pricer, grouped(serving, 1)), priced(pricer, serving)
    expect(together, alone._replace(own=alone.own * serving.parallel.group))


@listed
def asked_otherwise() -> Iterator[Serving]:
    for asked in (1, 2, 8):
        yield Serving(cases.DEEPSEEK_V3, Parallel(8, 4, asked=asked), 64, dflash())
        yield Serving(cases.DEEPSEEK_V3, Parallel(8, 4, asked=asked), 64, dflash(None))


@CHECKS.clause(asked_otherwise, Pricer)
def resolved_group(pricer: Pricer, serving: Serving) -> None:
    expect(draft_bytes(priced(pricer, serving)), draft_bytes(model.due_cell(serving)))


@listed
def own_geometries() -> Iterator[Serving]:
    geometries: tuple[Geometry, ...] = (
        *(Heads(5, heads, 128, 128) for heads in (2, 4, 7, 8)), cases.NARROW, Heads(5, 4, 64, 128), Heads(5, 4, 128, 128, 1),
        Latent(5, 576), Heads(3, 4, 128, 128), Heads(5, 4, 128, 128, 1, extra=40), Latent(2, 576, indexer=264),
    )  # fmt: skip
    for geometry in geometries:
        yield Serving(cases.THREAD, Parallel(), draft=dflash(geometry))
        yield Serving(cases.DEEPSEEK_V3, Parallel(8, 4, draft=4), draft=dflash(geometry))
        yield Serving(cases.GPT_OSS, Parallel(2), draft=dflash(geometry), window=Window(cases.GPT_OSS))


@CHECKS.clause(own_geometries, Pricer)
def own_geometry(pricer: Pricer, serving: Serving) -> None:
    expect(draft_bytes(priced(pricer, serving)), draft_bytes(model.due_cell(serving)))


@listed
def widths() -> Iterator[Serving]:
    for parallel in (
        Parallel(4, tensor=16),
        Parallel(4, 4, tensor=8),
        Parallel(8, 2, 2, tensor=8),
        Parallel(8, 1, 8, 16),
    ):
        yield Serving(cases.DEEPSEEK_V3, parallel, 64, dflash())


@CHECKS.clause(widths, Pricer)
def width_of_allocation(pricer: Pricer, serving: Serving) -> None:
    ranks = serving.parallel.draft or serving.parallel.attention
    expect(priced(pricer, serving).own, serving.parallel.group * model.held_bytes(cases.BLOCK, ranks, 1))


@listed
def target_heads() -> Iterator[Serving]:
    for heads in (1, 2, 4, 8, 6, 9):
        for group in (1, 2, 4, 8):
            yield Serving(Heads(2, heads, 128, 64, extra=16), Parallel(8, group))


@CHECKS.clause(target_heads, Pricer)
def heads_per_group(pricer: Pricer, serving: Serving) -> None:
    expect(priced(pricer, serving), model.due_cell(serving))


@CHECKS.clause(
    lambda: (Serving(cases.DEEPSEEK_V3, Parallel(w, g)) for w, g in ((1, 1), (8, 1), (8, 8), (16, 2))), Pricer
)
def latent_whole(pricer: Pricer, serving: Serving) -> None:
    expect(priced(pricer, serving).target_full, 61 * 576 * 2)


@listed
def indexed() -> Iterator[Serving]:
    for group in (1, 2, 8):
        yield Serving(cases.DEEPSEEK_V32, Parallel(8, group))
        yield Serving(cases.DEEPSEEK_V32, Parallel(8, group), window=Window(Latent(9, 288, indexer=9 * 68)))


@CHECKS.clause(indexed, Pricer)
def indexer_times_group(pricer: Pricer, serving: Serving) -> None:
    group, in_window = serving.parallel.group, 9 * 288 * 2 + 9 * 68 * serving.parallel.group
    due = (61 * 576 * 2 + 61 * 132 * group, in_window if serving.window else 0)
    expect(priced(pricer, serving)[:2], due)


@CHECKS.clause(cases.by_layers, Pricer)
def fallback_by_layers(pricer: Pricer, serving: Serving) -> None:
    """The published form: target bytes times (target layers + draft layers times group) by target layers, rounded up."""
    price, group = priced(pricer, serving), serving.parallel.group
    target = model.held_bytes(serving.target, serving.parallel.attention // group, group)
    layers = serving.draft.layers or 0 if serving.draft else 0
    whole = Fraction(target * (serving.target.layers + layers * group), serving.target.layers)
    expect(sum(price), -(-whole.numerator // whole.denominator))


@CHECKS.clause(cases.same_geometry, Pricer)
def paths_agree(pricer: Pricer, serving: Serving) -> None:
    draft = serving.draft
    if draft is None:
        raise ValueError("these cases have a draft")
    guessed = priced(pricer, replace(serving, draft=replace(draft, geometry=None)))
    expect(sum(guessed), sum(priced(pricer, serving)))


@listed
def widened() -> Iterator[Serving]:
    for heads, group in ((8, 2), (8, 8), (4, 4), (16, 2)):
        target = Heads(32, heads, 128, 128)
        yield Serving(target, Parallel(8, group), 16, dflash(None, 5))
        yield Serving(target, Parallel(8, group), 16, Draft("EAGLE", layers=1))


@CHECKS.clause(widened, Pricer)
def fallback_not_widened(pricer: Pricer, serving: Serving) -> None:
    expect(draft_bytes(priced(pricer, serving)), draft_bytes(model.due_cell(serving)))


@listed
def no_own_term() -> Iterator[Serving]:
    base = Serving(cases.DEEPSEEK_V3, Parallel(8, 4), 64, dflash(None, cell=10_240))
    yield replace(base, draft_worker=True)
    yield replace(base, draft=None)
    yield replace(base, draft=Draft("NGRAM"))
    for algorithm in ("EAGLE", "STANDALONE"):
        yield replace(base, draft=dflash(cases.BLOCK, 1, algorithm))
    hybrid = Serving(cases.GPT_OSS, Parallel(2, 2), 64, dflash(), Window(cases.GPT_OSS))
    yield replace(hybrid, draft_worker=True)
    yield replace(hybrid, draft=None)
    yield replace(hybrid, draft=dflash(cases.BLOCK, 1, "EAGLE"))


@CHECKS.clause(no_own_term, Pricer)
def own_cell_of_the_family(pricer: Pricer, serving: Serving) -> None:
    price, drafting = (
        priced(pricer, serving),
        serving.draft is not None and serving.draft.algorithm in ("EAGLE", "STANDALONE"),
    )
    expect(price.own, 0)
    if serving.draft_worker or not drafting:
        expect(draft_bytes(price), (0, 0, 0))


@listed
def other_drafts() -> Iterator[Serving]:
    for parallel in (Parallel(8, 8), Parallel(4, 2)):
        for algorithm in ("EAGLE", "STANDALONE"):
            yield Serving(cases.DEEPSEEK_V3, parallel, 64, Draft(algorithm, layers=1))
            yield Serving(cases.DEEPSEEK_V32, parallel, 64, Draft(algorithm, layers=2))
            draft = Draft(algorithm, layers=3, window_layers=1, local_layers=1)
            yield Serving(Heads(18, 2, 64, 64), parallel, 64, draft, Window(Heads(18, 1, 32, 64), "0.8", 128))


@CHECKS.clause(other_drafts, Pricer)
def other_drafts_replicated(pricer: Pricer, serving: Serving) -> None:
    expect(draft_bytes(priced(pricer, serving)), draft_bytes(model.due_cell(serving)))


@listed
def priceless() -> Iterator[Serving | Wrong]:
    base = Serving(cases.DEEPSEEK_V3, Parallel(8, 4), 64)
    yield replace(base, draft=dflash(cases.BLOCK, None))
    yield replace(base, draft=dflash(None, None, cell=10_240))
    yield Wrong(replace(base, draft=dflash(replace(cases.BLOCK, layers=0), 0)), ())
    yield Wrong(replace(base, draft=dflash(None, None)), ())
    yield Wrong(replace(base, draft=Draft("EAGLE")), ())


@CHECKS.clause(priceless, Pricer)
def never_free(pricer: Pricer, case: Serving | Wrong) -> None:
    if isinstance(case, Wrong):
        refused(lambda: pricer.cell(case.serving), *case.named)
    else:
        expect(draft_bytes(priced(pricer, case)), draft_bytes(model.due_cell(case)))


@listed
def hybrid_by_layers() -> Iterator[Serving]:
    for serving in cases.windowed():
        if serving.parallel.group == 1:
            yield replace(serving, draft=dflash(None, 2))
    latent = Serving(Latent(10, 576), Parallel(8, 4), 64, dflash(None, 2), Window(Latent(20, 288), "0.25"))
    yield latent
    yield replace(latent, draft=dflash(replace(cases.BLOCK, layers=0), 1))


@CHECKS.clause(hybrid_by_layers, Pricer)
def hybrid_fallback(pricer: Pricer, serving: Serving) -> None:
    expect(draft_bytes(priced(pricer, serving)), draft_bytes(model.due_cell(serving)))


@listed
def hybrid_groups() -> Iterator[Serving]:
    for group in (2, 4, 8):
        yield Serving(cases.GPT_OSS, Parallel(8, group), 64, None, Window(cases.GPT_OSS))
        yield Serving(cases.MIMO_FULL, Parallel(8, group), 64, dflash(), Window(cases.MIMO_WINDOW, request_cap=5_000))


@CHECKS.clause(hybrid_groups, Pricer)
def hybrid_heads_widen(pricer: Pricer, serving: Serving) -> None:
    expect(priced(pricer, serving)[:2], model.due_cell(serving)[:2])


@listed
def not_above_0() -> Iterator[Wrong]:
    for cell in (0, -10_240):
        yield Wrong(Serving(cases.DEEPSEEK_V3, draft=dflash(cell=cell)), (str(cell),))
    for target in (Latent(0, 576), Heads(4, 2, 0, 0), Latent(61, 0)):
        yield Wrong(Serving(target, draft=dflash()), ("0",))


@CHECKS.clause(not_above_0, Pricer)
def cells_positive(pricer: Pricer, case: Wrong) -> None:
    refused(lambda: pricer.cell(case.serving), *case.named)


@CHECKS.clause(lambda: (case for case in cases.settings() if case.named in (("3", "8"), ("8", "4"))), Pricer)
def group_divides_width(pricer: Pricer, case: Wrong) -> None:
    refused(lambda: pricer.cell(case.serving), *case.named)


@CHECKS.clause(lambda: (*cases.settings(), *cases.senseless_memories()))
def settings_hold(subject: Any, case: Wrong | WrongMemory) -> None:
    """Whichever of price and room a subject has."""
    if not any(callable(getattr(subject, name, None)) for name in ("cell", "available")):
        raise CannotRun("the subject has no cell() and no available()")
    name, given = ("cell", case.serving) if isinstance(case, Wrong) else ("available", case.memory)
    ask = getattr(subject, name, None)
    if ask is None:
        return
    try:
        refused(lambda: ask(given), *case.named)
    except ZeroDivisionError as crash:
        raise Violation(f"{type(crash).__name__}: {crash}", "a refusal") from crash
