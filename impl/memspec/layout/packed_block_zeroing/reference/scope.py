"""Whose bytes: which caches are zeroed at all, and for which groups the scheduler keeps a record.

Stale bytes hurt where they can be read as another type: a state cache's bytes as keys, an fp8 page as bfloat16. A
cache of one attention precision needs no zeroing. Source: vllm-project/vllm PRs #35219, #47574 and #51749, as they
stand in 0.33.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from memspec.layout.packed_block_zeroing.data import CacheGroup


def is_attention(group: CacheGroup) -> bool:
    """Every kind of attention counts, not full attention alone; a state cache is none."""
    return group.kind != "mamba"


def needs_zeroing(groups: Sequence[CacheGroup]) -> bool:
    """Whether stale bytes can be misread: there are state caches, or attention groups on the device with more than
    one precision.
    """
    precisions = {(g.dtype, g.quantisation) for g in groups if is_attention(g) and not g.host_resident}
    return len(precisions) > 1 or any(not is_attention(g) for g in groups)


def zeroed_layers(groups: Sequence[CacheGroup]) -> tuple[str, ...]:
    """Layers from whose caches segments are made: attention, one tensor, a known kernel block. None where no
    zeroing is needed.
    """
    if not needs_zeroing(groups):
        return ()
    return tuple(layer for g in groups if is_attention(g) and g.storage == "tensor" and g.kernel_block_size is not None
                 for layer in g.layers)  # fmt: skip


def recorded_groups(groups: Sequence[CacheGroup]) -> tuple[str, ...]:
    """Groups whose newly allocated blocks the scheduler records. A ring is overwritten in place; a state cache
    starts itself.
    """
    return tuple(g.name for g in groups if needs_zeroing(groups) and is_attention(g) and not g.ring)
