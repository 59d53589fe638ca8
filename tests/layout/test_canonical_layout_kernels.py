"""The Triton kernel: interpreted on the CPU, compiled ahead of time for wide accesses, run where there is a CUDA device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from memspec.conformance import CannotRun
from memspec.layout.canonical_layout import CopyPlan, lay_out, map_layer, moved, plan_copies
from memspec.layout.canonical_layout.checks.world import LATENT, World, layer_of, spec_of

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
from memspec.layout.canonical_layout import kernels  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# Runs without TRITON_INTERPRET: the widest accesses of the kernel for addresses in units of 16 and of 8 bytes.
COMPILE = r"""
import json, re
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from memspec.layout.canonical_layout.kernels import copy_fragments

TYPES = {"source": "*i64", "destination": "*i64", "starts": "*i64", "ends": "*i64", "length": "i32", "tiles": "i32",
         "unit": "constexpr", "tile": "constexpr"}
seen = {}
for unit in (2, 1):
    aligned = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
    source = ASTSource(fn=copy_fragments, signature=TYPES, constexprs={"unit": unit, "tile": 1024}, attrs=aligned)
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4}).asm["ptx"]
    seen[unit] = {kind: len(re.findall(rf"{kind}\.global\S*\.v(?:2\.b64|4\.b32) ", ptx)) for kind in ("ld", "st")}
print(json.dumps(seen))
"""


def carried_out(plan: CopyPlan, source: bytes, room: int) -> bytes:
    """What the kernel leaves in a buffer of ``room`` bytes that held 0xEE."""
    destination = torch.full((room,), 0xEE, dtype=torch.uint8, device=DEVICE)
    held = torch.frombuffer(bytearray(source), dtype=torch.uint8).to(DEVICE)
    kernels.copy_(kernels.prepare(plan, DEVICE), held, destination)
    return bytes(destination.cpu().tolist())


@pytest.mark.parametrize("direction", ["store", "load"])
@pytest.mark.parametrize(
    "world",
    [
        World("packed", "hnd", tp=2, head_size=8),
        World("split", "nhd", tp=2, head_size=8),
        World("packed", "nhd", heads=2, tp=4, head_size=3),
        replace(LATENT, tp=2, dcp=2, head_size=132, block=2),
    ],
    ids=lambda world: f"{world.form}-{world.family}-{world.head_size}",
)
def test_the_kernel_moves_what_the_rule_moves(world: World, direction: str) -> None:
    page = map_layer(layer_of(world), world.grid)[-1]
    cell, padded = lay_out([[(page,)]], 1).cells[0], spec_of(world).page_bytes + 16
    plan = plan_copies(direction, page, (2, 0, 1), (4, 1, 3), padded, cell)  # type: ignore[arg-type]
    device, store = padded * 3, cell.row_bytes * 5
    room, given = (store, device) if direction == "store" else (device, store)
    source = bytes(i * 131 % 251 for i in range(given))
    assert carried_out(plan, source, room) == moved(plan, source, bytes([0xEE]) * room)


@pytest.mark.parametrize("size", [1, 7, 132, 8192 + 8, 16384])
def test_fragments_of_any_length_over_several_tiles(size: int) -> None:
    plan = CopyPlan(((0, size + 5, size), (size, 0, size)), 1, 2 * size)
    source = bytes(i * 131 % 251 for i in range(2 * size))
    room = 2 * size + 5
    assert carried_out(plan, source, room) == moved(plan, source, bytes([0xEE]) * room)


@pytest.mark.slow
def test_accesses_are_sixteen_bytes_wide_where_the_plan_is_aligned() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"} | {
        "OMP_NUM_THREADS": "1"
    }
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["2"]["ld"] > 0
    assert seen["2"]["st"] > 0
    assert seen["1"] == {"ld": 0, "st": 0}, "units of 8 bytes prove no more than 8"


def test_without_a_cuda_device_the_whole_suite_is_not_run() -> None:
    if DEVICE == "cpu":
        with pytest.raises(CannotRun):
            kernels.subject("cpu")
