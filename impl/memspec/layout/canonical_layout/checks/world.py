"""The second formulation: element by element, by enumeration. No formula of the mapping is used here.

Tokens are dealt out to the context-parallel ranks one by one; heads are repeated for their replicas and the row of
heads is cut into equal pieces; the canonical page is whatever four nested loops visit, in the order of the layout
family.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import shake_128
from itertools import product

from memspec.layout.canonical_layout.data import Family, Form, Grid, Kind, Layer, PageMap, Quantisation, Spec, View

Element = tuple[int, int, int, int]  # half, global head, canonical token, byte of the head


@dataclass(frozen=True)
class World:
    """One layer on one grid, small enough to be walked byte by byte. For the latent form ``head_size`` is the row in
    elements.
    """

    form: Form = "packed"
    family: Family = "nhd"
    heads: int = 4
    tp: int = 1
    dcp: int = 1
    pcp: int = 1
    interleave: int = 1
    block: int = 2
    head_size: int = 2
    element_bytes: int = 1
    kind: Kind = "full"
    quantisation: Quantisation = "none"

    @property
    def grid(self) -> Grid:
        return Grid(self.tp, self.dcp, self.pcp, self.interleave)

    @property
    def head_bytes(self) -> int:
        return self.head_size * self.element_bytes


@cache
def rank_heads(heads: int, ranks: int) -> tuple[tuple[int, ...], ...]:
    """The global heads of each tensor-parallel rank: every head repeated for its replicas, the row cut into equal
    pieces.
    """
    row = [head for head in range(heads) for _ in range(max(1, ranks // heads))]
    each = len(row) // ranks
    return tuple(tuple(sorted(set(row[i * each : (i + 1) * each]))) for i in range(ranks))


@cache
def rank_tokens(world: World) -> tuple[tuple[int, ...], ...]:
    """The canonical tokens of each rank, in local order: dealt to the context-parallel ranks, ``interleave`` at a
    time.
    """
    slices = world.dcp * world.pcp
    hands: list[list[int]] = [[] for _ in range(slices)]
    for token in range(world.block * slices):
        hands[token // world.interleave % slices if slices > 1 else 0].append(token)
    return tuple(
        tuple(hands[rank // world.tp * world.dcp + rank % world.tp % world.dcp]) for rank in range(world.tp * world.pcp)
    )


def held(world: World, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Global heads and canonical tokens of a rank."""
    heads = (0,) if world.form == "latent" else rank_heads(world.heads, world.tp)[rank % world.tp]
    return heads, rank_tokens(world)[rank]


def walk(world: World, heads: tuple[int, ...], tokens: tuple[int, ...]) -> list[Element]:
    """The elements in the order in which memory holds them."""
    bytes_of = range(world.head_bytes)
    if world.form == "latent":
        return [(0, 0, token, byte) for token, byte in product(tokens, bytes_of)]
    outer = (
        product(tokens, heads) if world.family == "nhd" else ((token, head) for head, token in product(heads, tokens))
    )
    if world.form == "packed":
        return [(half, head, token, byte) for token, head in outer for half in (0, 1) for byte in bytes_of]
    places = list(outer)
    return [(half, head, token, byte) for half in (0, 1) for token, head in places for byte in bytes_of]


@cache
def canonical_page(world: World) -> tuple[Element, ...]:
    """The canonical page as a row of elements."""
    heads = 1 if world.form == "latent" else world.heads
    return tuple(walk(world, tuple(range(heads)), tuple(range(world.block * world.dcp * world.pcp))))


@cache
def due(world: World) -> tuple[tuple[int, ...], ...]:
    """For each rank, the canonical byte of every byte of its page."""
    place = {element: i for i, element in enumerate(canonical_page(world))}
    return tuple(tuple(place[e] for e in walk(world, *held(world, rank))) for rank in range(world.grid.world))


def seen(page: PageMap) -> tuple[tuple[int, int], ...]:
    """A map byte by byte: sorted ``(local byte, canonical byte)``, overlaps included."""
    return tuple(
        sorted(
            (run.local + i * run.local_stride + b, run.canonical + i * run.canonical_stride + b)
            for run in page.runs
            for i in range(run.count)
            for b in range(run.size)
        )
    )


@cache
def spec_of(world: World) -> Spec:
    heads = 1 if world.form == "latent" else max(1, world.heads // world.tp)
    page = (1 if world.form == "latent" else 2 * heads) * world.block * world.head_bytes
    model = 1 if world.form == "latent" else world.heads
    return Spec(world.kind, world.block, heads, model, world.head_size, world.element_bytes, page, world.quantisation)


def view_of(world: World) -> View:
    """The live tensor of a rank: allocated in the family's order, seen with the axes in the order of the form."""
    heads, tokens, cell = spec_of(world).heads, world.block, (2 if world.form == "packed" else 1) * world.head_size
    head, token = (cell, heads * cell) if world.family == "nhd" else (tokens * cell, cell)
    if world.form == "packed":
        return View((8, heads, tokens, cell), (heads * tokens * cell, head, token, 1))
    return View((8, 2, tokens, heads, cell), (2 * heads * tokens * cell, heads * tokens * cell, token, head, 1))


@cache
def layer_of(world: World) -> Layer:
    views = () if world.form == "latent" else (view_of(world),) * world.grid.world
    return Layer("model.layers.0.attn", spec_of(world), views, world.family)


@cache
def payload(world: World, page: int) -> bytes:
    """The canonical page ``page``: each byte a function of (half, head, token, byte) and the page, the same in every
    layout and topology.

    Reading the page in another order than it was written gives other bytes.
    """
    heads, tokens = (1 if world.form == "latent" else world.heads), world.block * world.dcp * world.pcp
    stream = shake_128(f"page {page}".encode()).digest(2 * heads * tokens * world.head_bytes)
    return bytes(
        stream[((half * heads + head) * tokens + token) * world.head_bytes + byte]
        for half, head, token, byte in canonical_page(world)
    )


@cache
def local_payload(world: World, rank: int, page: int) -> bytes:
    """What the rank's own page holds of canonical page ``page``."""
    whole = payload(world, page)
    return bytes(whole[i] for i in due(world)[rank])


LATENT = World("latent", "nhd", 1, head_size=3, kind="latent")
FORMS: tuple[tuple[Form, Family], ...] = (("packed", "nhd"), ("packed", "hnd"), ("split", "nhd"), ("split", "hnd"))
