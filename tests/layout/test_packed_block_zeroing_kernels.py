"""The Triton kernel: interpreted on the CPU, compiled ahead of time for three architectures, run where there is a CUDA device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memspec.conformance import judge
from memspec.layout.packed_block_zeroing import reference
from memspec.layout.packed_block_zeroing.checks import CHECKS
from memspec.layout.packed_block_zeroing.checks.cases import deepseek
from memspec.layout.packed_block_zeroing.data import BlockRefused, View

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
from memspec.layout.packed_block_zeroing import kernels, tensors  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GIB = 2**30
FAR = View("far", 0, (4, 256), (GIB // 4, 1), 4)  # 4 blocks, 1 GiB apart, 1 KiB long

# Runs without TRITON_INTERPRET: compiles the kernel, its narrow twin and a twin without alignment, and asks how launches are told apart.
COMPILE = r"""
import json, re
import triton, torch
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource
from triton.runtime.jit import create_function_from_signature
from memspec.layout.packed_block_zeroing.kernels import CHUNK_WORDS, WARPS, clear_blocks

TYPES = {"addresses": "*u64", "strides": "*i64", "words": "*i64", "ids": "*i64", "id_count": "i32", "piece_count": "i32",
         "wide_count": "i32", "chunk": "constexpr", "offset_bits": "constexpr"}


def products(ttir):
    '''Types of the multiplications that reach an address, and the alignments that pointers are said to have.'''
    found = {m[1]: m[2] for m in re.finditer(r"(%\w+) = (.*)", ttir)}
    casts = [text for text in found.values() if text.startswith("tt.int_to_ptr")]
    reached, types, todo = set(), set(), [re.search(r"%\w+", text)[0] for text in casts]
    while todo:
        name = todo.pop()
        text = found.get(name, "")
        if name in reached or not re.match(r"arith\.(addi|muli|extsi|trunci|extui)", text):
            continue
        reached.add(name)
        if text.startswith("arith.muli"):
            types.add(re.search(r" : (\w+)", text)[1])
        todo += re.findall(r"%\w+", text)
    return sorted(types), sorted(int(m[1]) if (m := re.search(r"dense<(\d+)>", text)) else 0 for text in casts)


def stores(ptx):
    return {width: len(re.findall(rf"st\.global\.{re.escape(width)} ", ptx)) for width in ("v4.b32", "v2.b64", "b32")}


seen = {}
for architecture in (80, 90, 100):
    for bits in (64, 32):
        source = ASTSource(fn=clear_blocks, signature=TYPES, constexprs={"chunk": CHUNK_WORDS, "offset_bits": bits})
        made = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_warps": WARPS})
        types, alignments = products(made.asm["ttir"])
        seen[f"sm_{architecture}-{bits}"] = {"products": types, "alignments": alignments, **stores(made.asm["ptx"])}
    plain = triton.jit(clear_blocks.fn)
    plain._unsafe_update_src(plain.src.replace("tl.multiple_of(address.to(tl.pointer_type(tl.int32)), 16)",
                                               "address.to(tl.pointer_type(tl.int32))"))
    made = triton.compile(ASTSource(fn=plain, signature=TYPES, constexprs={"chunk": CHUNK_WORDS, "offset_bits": 64}),
                          target=GPUTarget("cuda", architecture, 32), options={"num_warps": WARPS})
    seen[f"sm_{architecture}-unhinted"] = stores(made.asm["ptx"])

backend, table = CUDABackend(GPUTarget("cuda", 90, 32)), torch.zeros(64, dtype=torch.int64)
for name, kernel in (("kernel", clear_blocks), ("specialised", triton.jit(clear_blocks.fn))):
    told_apart = create_function_from_signature(kernel.signature, kernel.params, backend)
    keys = {str(told_apart(table, table, table, table, count, 363, 363, chunk=CHUNK_WORDS, offset_bits=64)[1])
            for count in (1, 2, 3, 16, 32, 6870)}
    seen[name] = len(keys)
print(json.dumps(seen))
"""


@cache
def compiled() -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment.update(OMP_NUM_THREADS="1")
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


@pytest.mark.clause("packed-block-zeroing.kernel-addresses")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_product_of_id_and_stride_has_64_bits(architecture: str) -> None:
    assert compiled()[f"{architecture}-64"]["products"] == ["i64"]


@pytest.mark.clause("packed-block-zeroing.kernel-addresses", fault="narrow-offsets")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_product_of_32_bits_is_seen(architecture: str) -> None:
    assert compiled()[f"{architecture}-32"]["products"] == ["i32"]


@pytest.mark.clause("packed-block-zeroing.kernel-stores")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_aligned_body_goes_by_16_byte_stores_and_the_ends_by_words(architecture: str) -> None:
    made = compiled()[f"{architecture}-64"]
    assert made["v4.b32"] + made["v2.b64"] == kernels.CHUNK_WORDS // (kernels.WARPS * 32) // 4
    assert made["b32"] == kernels.CHUNK_WORDS // (kernels.WARPS * 32)
    assert made["alignments"] == [0, 16]  # the hint is on the wide pointer alone


@pytest.mark.clause("packed-block-zeroing.kernel-stores", fault="words-only")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_proof_of_alignment_all_stores_are_words(architecture: str) -> None:
    made = compiled()[f"{architecture}-unhinted"]
    assert made["v4.b32"] + made["v2.b64"] == 0
    assert made["b32"] > 0


@pytest.mark.clause("packed-block-zeroing.kernel-compiled-once")
def test_all_block_counts_share_one_kernel() -> None:
    assert compiled()["kernel"] == 1


@pytest.mark.clause("packed-block-zeroing.kernel-compiled-once", fault="count-specialised")
def test_a_count_left_to_the_compiler_makes_three_kernels() -> None:
    assert compiled()["specialised"] == 3


def far_clear(offset_bits: int) -> tuple[int, int]:
    """Clear block 3 of FAR in 6 GiB that nobody commits; the bytes left over where it lies, and those wiped 4 GiB below."""
    base = 2 * GIB
    try:
        storage = torch.empty(6 * GIB, dtype=torch.uint8, device=DEVICE)
    except RuntimeError:
        pytest.skip("this machine gives nobody 6 GiB, not even uncommitted")
    right, wrong = storage[base + 3 * GIB :][:1024], storage[base + 3 * GIB - 4 * GIB :][:1024]
    right.fill_(0xA5)
    wrong.fill_(0xA5)
    kernels.clear(kernels.plan(storage, base, (FAR,)), (3,), offset_bits)
    return int((right != 0).sum()), int((wrong == 0).sum())


@pytest.mark.clause("packed-block-zeroing.kernel-addresses")
def test_a_block_beyond_4_gib_is_cleared_where_it_lies() -> None:
    assert far_clear(64) == (0, 0)


@pytest.mark.clause("packed-block-zeroing.kernel-addresses", fault="narrow-offsets")
def test_the_narrow_twin_clears_4_gib_lower() -> None:
    assert far_clear(32) == (1024, 1024)


@pytest.mark.parametrize("subject", [tensors.subject, kernels.subject], ids=["tensors", "kernel"])
def test_the_bytes_on_a_device_conform(subject: Any) -> None:
    verdicts = judge(CHECKS, subject(DEVICE))
    assert {verdict.outcome for verdict in verdicts.values()} == {"pass", "not-run"}, verdicts
    assert verdicts["packed-block-zeroing.every-due-byte"].outcome == "pass"  # type: ignore[index]


@pytest.mark.parametrize("shift", [0, 4, 8, 12])
@pytest.mark.parametrize("row", [48, 52])
def test_ends_and_unaligned_rows_go_word_by_word(shift: int, row: int) -> None:
    views = (View("page", 4, (3, 36), (row, 1), 1),)
    storage = torch.full((256 + 3 * row,), 0xA5, dtype=torch.uint8, device=DEVICE)
    prepared = kernels.plan(storage, 64 + shift, views)
    assert (prepared.wide_count > 0) == (row % 16 == 0)
    kernels.clear(prepared, (1,))
    due = torch.full_like(storage, 0xA5)
    due[64 + shift + 4 + row : 64 + shift + 4 + row + 36] = 0
    assert torch.equal(storage, due)


@given(st.integers(1, 40), st.integers(0, 6), st.integers(0, 3), st.lists(st.integers(0, 3), max_size=3))
@settings(max_examples=25, deadline=None)
def test_the_kernel_clears_what_the_reference_clears(words: int, gap: int, shift: int, blocks: list[int]) -> None:
    views = [View(f"layer-{n}", 4 * (words + gap) * n, (4, words), (2 * (words + gap), 1), 4) for n in range(2)]
    size = 4 * 8 * (words + gap)
    ours, theirs = (bytearray([0xA5]) * (size + 160) for _ in range(2))
    reference.clear(ours, 64 + 4 * shift, views, blocks)
    kernels.subject(DEVICE).clear(theirs, 64 + 4 * shift, views, blocks)
    assert ours == theirs


def test_calls_that_follow_each_other_clear_their_own_ids() -> None:
    slab = deepseek(())
    storage = torch.full((slab.size,), 0xA5, dtype=torch.uint8, device=DEVICE)
    prepared = kernels.plan(storage, 0, slab.views[:1])
    for blocks in ((1,), (7, 3), (99,)):
        kernels.clear(prepared, blocks)
    rows = storage.view(100, -1)
    assert [n for n in range(100) if not rows[n, :37_376].any()] == [1, 3, 7, 99]
    assert bool((rows[:, 37_376:] == 0xA5).all())


def test_the_largest_step_is_launched_within_the_limits_of_the_device() -> None:
    storage = torch.zeros(64, dtype=torch.uint8, device=DEVICE)
    prepared = kernels.plan(storage, 0, (View("tiny", 0, (6_870, 4), (4, 1), 1),))
    assert prepared.block_count * prepared.words.numel() > prepared.programs
    assert prepared.programs <= 65_535


def test_warm_up_clears_block_0_and_nothing_where_there_is_none() -> None:
    storage = torch.full((64,), 0xA5, dtype=torch.uint8, device=DEVICE)
    kernels.warm_up(kernels.plan(storage, 0, (View("none", 0, (0, 16), (16, 1), 1),)))
    assert bool((storage == 0xA5).all())
    kernels.warm_up(kernels.plan(storage, 0, (View("some", 0, (4, 16), (16, 1), 1),)))
    assert (storage == 0).nonzero().flatten().tolist() == list(range(16))


def test_ids_outside_the_cache_are_refused_before_the_launch() -> None:
    prepared = kernels.plan(torch.zeros(64, dtype=torch.uint8, device=DEVICE), 0, (View("v", 0, (4, 16), (16, 1), 1),))
    with pytest.raises(BlockRefused, match="block 4 is none of the 4 blocks"):
        kernels.clear(prepared, (0, 4))
