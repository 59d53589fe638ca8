"""How many rows a ring has, how many draft tokens it serves, and the check of that when a server starts.

A write at position ``w`` replaces the row of ``w - ring``. A verify step writes up to ``prefix + drafts - 1`` and
commits at least one token, so the earliest row that any later compression reads is ``prefix + 2 - window``: nothing is
lost if and only if ``drafts <= ring - window + 2``. Source: sgl-project/sglang PR #34189, as it stands in 0.5.23;
where this is stricter, the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memspec.capacity.compress_ring_pad.data import Geometry, RatioRefused, StartRefused

RATIOS = (2, 4, 128)  # raw tokens for one compressed entry


def overlaps(ratio: int) -> bool:
    """Whether a window holds the group before its own as well."""
    return ratio == 4


def window_of(ratio: int) -> int:
    """Raw rows that one compression reads."""
    return 2 * ratio if overlaps(ratio) else ratio


def ring_size(ratio: int, drafts: int = 0, online: bool = False, online_speculation: bool = False) -> int:
    """Rows of a ring of ``ratio`` on a server that verifies up to ``drafts`` tokens in a step (0: no speculation).

    ``online`` compresses ratio 128 as tokens come, in one row. Raises RatioRefused for an unknown ratio, and for
    online compression with speculation unless ``online_speculation`` asks for that experiment.
    """
    if ratio not in RATIOS:
        raise RatioRefused(f"there is no ring for ratio {ratio}; known ratios are {', '.join(map(str, RATIOS))}")
    if online and ratio == 128:
        if drafts and not online_speculation:
            raise RatioRefused(
                f"online compression of ratio 128 keeps 1 row and cannot roll back {drafts} draft tokens"
            )
        return 1
    if ratio == 2:
        return 1 << (drafts + 1).bit_length() if drafts else 2
    return window_of(ratio) * (2 if drafts else 1)


def write_pad(ratio: int, ring: int) -> int:
    """The last tokens of an extend that are always written: as many draft tokens as a ring of ``ring`` rows serves."""
    window = window_of(ratio)
    return ring - window + 2 if ring > window else 0


def largest_draft(flag: int, adaptive_steps: Sequence[int] = (), gamma: int | None = None) -> int:
    """Most tokens of a verify step: the largest adaptive tier and one, else ``gamma`` and one, else what the flag
    says.
    """
    if adaptive_steps:
        return max(adaptive_steps) + 1
    return flag if gamma is None else gamma + 1


def guarded_ratios(layers: Mapping[int, int], online: bool) -> tuple[int, ...]:
    """Ratios that have a layer and a ring; ratio 0 marks layers without compression. Online compression keeps no
    window to run out of.
    """
    return tuple(ratio for ratio, count in sorted(layers.items()) if count and ratio and not (online and ratio == 128))


def check_start(layers: Mapping[int, int], flag: int, adaptive_steps: Sequence[int] = (), gamma: int | None = None,
                online: bool = False) -> int:  # fmt: skip
    """The most tokens of a verify step, which every ring of the model serves. ``layers`` counts the layers of each
    ratio.

    Raises StartRefused when a ring does not serve them, RatioRefused for a layer whose ratio is unknown.
    """
    drafts = largest_draft(flag, adaptive_steps, gamma)
    for ratio in guarded_ratios(layers, online):
        pad = write_pad(ratio, ring_size(ratio, drafts))
        if drafts > pad:
            raise StartRefused(f"{drafts} draft tokens; the ring of ratio {ratio} serves at most {pad}")
    return drafts


def max_draft_tokens(layers: Mapping[int, int], online: bool = False) -> int | None:
    """The most draft tokens that a model's rings serve, None where no ring sets a limit (that of ratio 2 grows with
    them).
    """
    return min((write_pad(r, ring_size(r, 1)) for r in guarded_ratios(layers, online) if r != 2), default=None)


def state_rows(geometry: Geometry, swa_tokens: int, max_running: int, extra: int = 0) -> int:
    """Ring rows of one layer: a ring for each SWA page, or for each request that may run and one more.

    ``swa_tokens`` is the size of the SWA pool; ``extra`` are request slots that a decode worker keeps for requests on
    their way.
    """
    if geometry.ratio == 4 and not geometry.by_request:
        return swa_tokens // geometry.page * geometry.ring
    return (max_running + 1 + extra) * geometry.ring
