"""What a live tensor proves about the bytes of its pages.

A layer is certified from exact shape, strides and byte size. The stride of an axis of size one addresses nothing and
proves nothing: there the family that the engine declares decides. Released versions read the family from that stride.
Source: vllm-project/vllm PR #48414.
"""

from __future__ import annotations

from memspec.layout.canonical_layout.data import Family, Form, NotCertified, Spec, View

# name of each axis after the block axis
PACKED: tuple[Form, tuple[str, ...]] = (
    "packed",
    ("head", "token", "cell"),
)  # (num_blocks, h, block_tokens, 2 * head_size)
SPLIT: tuple[Form, tuple[str, ...]] = (
    "split",
    ("half", "token", "head", "cell"),
)  # (num_blocks, 2, block_tokens, h, head_size)


def certify(view: View | None, spec: Spec, family: Family) -> Form:
    """The K/V form that ``view`` proves: "packed" or "split". Raises NotCertified naming the axis, what it is and
    what is due.
    """
    sizes, steps = (view.shape, view.strides) if view else ((), ())
    form, axes = SPLIT if len(sizes) == 5 else PACKED
    if not len(sizes) == len(steps) == 1 + len(axes):
        found = f"{len(sizes)} sizes and {len(steps)} strides" if view else "no tensor"
        raise NotCertified(f"the cache has {found}; 4 or 5 of each are due")
    shape, strides = dict(zip(axes, sizes[1:], strict=False)), dict(zip(axes, steps[1:], strict=False))
    for axis, due in expected_shape(form, spec).items():
        if shape.get(axis) != due:
            raise NotCertified(f"axis {axis} of the {form} cache has size {shape.get(axis)}; {due} is due")
    proven = 2 * spec.heads * spec.block_tokens * spec.head_size * spec.element_bytes
    if proven != spec.page_bytes:
        raise NotCertified(f"keys and values take {proven} B; the page has {spec.page_bytes} B")
    for axis, due in expected_strides(form, spec, family).items():
        if shape[axis] > 1 and strides[axis] != due:
            raise NotCertified(
                f"axis {axis} of the {form} cache has stride {strides[axis]}; {family} is certified at {due}"
            )
    return form


def expected_shape(form: Form, spec: Spec) -> dict[str, int]:
    if form == "packed":
        return {"head": spec.heads, "token": spec.block_tokens, "cell": 2 * spec.head_size}
    return {"half": 2, "token": spec.block_tokens, "head": spec.heads, "cell": spec.head_size}


def expected_strides(form: Form, spec: Spec, family: Family) -> dict[str, int]:
    """Strides in elements. NHD: token, head, cell from the outside in; HND: head, token, cell. The block stride is
    free.
    """
    cell = (2 if form == "packed" else 1) * spec.head_size
    head, token = (cell, spec.heads * cell) if family == "nhd" else (spec.block_tokens * cell, cell)
    strides = {"head": head, "token": token, "cell": 1}
    return strides if form == "packed" else {"half": spec.block_tokens * spec.heads * cell, **strides}
