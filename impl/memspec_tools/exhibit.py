"""What a gallery script needs: the device, a banner, metrics that can be recorded, and figures that survive dark mode.

Scripts run under sphinx-gallery and plainly (``python plot_x.py --device cuda``). The standard library is enough to
import this module; torch and matplotlib are imported by the functions that need them.

Environment: ``MEMSPEC_DEVICE`` asks for a device, ``MEMSPEC_RECORD`` names a file to which every metric is appended as
one JSON line.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import runpy
import sys
import textwrap
from collections.abc import Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Any, Literal

Device = Literal["cpu", "cuda"]

DEVICES: tuple[Device, ...] = ("cpu", "cuda")

# Okabe and Ito's colour-blind palette without its black, which vanishes on a dark ground.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")

# The grey of equal contrast, 4.0 to 1, on white and on the site's dark slate (#1e2129).
INK = "#7A7F87"


class DeviceError(ValueError):
    """The device that was asked for is unknown or absent; names it and what there is."""


def cuda_name() -> str | None:
    """The name of the first CUDA device, or None where torch or the device is missing."""
    if util.find_spec("torch") is None:
        return None
    import torch

    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else None


def device(argv: Sequence[str] | None = None) -> Device:
    """The device to run on: ``--device``, else ``MEMSPEC_DEVICE``, else "cuda" where there is one, else "cpu".

    Other arguments in ``argv`` (default: those of the process) are left alone. On the CPU, Triton kernels are to be
    interpreted, which Triton has to know before its first import. Raises DeviceError when the device is neither "cpu"
    nor "cuda", or is "cuda" where none can be used; it never falls back in silence.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--device")
    known, _ = parser.parse_known_args(sys.argv[1:] if argv is None else list(argv))
    asked = known.device or os.environ.get("MEMSPEC_DEVICE") or None
    if asked is None:
        asked = "cpu" if cuda_name() is None else "cuda"
    if asked == "cpu":
        if "triton" not in sys.modules:
            os.environ.setdefault("TRITON_INTERPRET", "1")
        return "cpu"
    if asked == "cuda":
        if cuda_name() is None:
            raise DeviceError("device cuda was asked for, but torch finds no CUDA device here; use --device cpu")
        return "cuda"
    raise DeviceError(f"device {asked!r} is not one of {', '.join(DEVICES)}")


def version(distribution: str) -> str:
    """The installed version of ``distribution``, or "not installed"."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def machine(device: Device) -> dict[str, str]:
    """Device name and the versions that a result depends on, as plain text by name."""
    name = cuda_name() if device == "cuda" else f"CPU, {platform.machine()}"
    versions = {package: version(package) for package in ("torch", "triton", "memspec")}
    return {"device": f"{device} ({name})", **versions, "python": platform.python_version()}


def banner(device: Device) -> None:
    """Print the device and the versions of torch, triton, memspec and Python: one line each for device and versions."""
    facts = machine(device)
    print(f"device: {facts.pop('device')}")
    print("versions: " + ", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)


def metric(name: str, value: float, unit: str = "", benchmark: bool = False) -> None:
    """Print ``name: value unit`` and, where ``MEMSPEC_RECORD`` names a file, append the metric to it as one JSON line.

    ``benchmark`` is True only for a speed that was measured on the device in question, never for a count or a fact.
    Raises ValueError for a value that is not a finite number, and for a benchmark without a unit.
    """
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"metric {name!r} is {value!r}; it must be a finite number")
    if benchmark and not unit:
        raise ValueError(f"benchmark metric {name!r} has no unit")
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"
    print(f"{name}: {shown}{' ' + unit if unit else ''}", flush=True)
    if record := os.environ.get("MEMSPEC_RECORD"):
        line = json.dumps({"name": name, "value": number, "unit": unit, "benchmark": benchmark}, ensure_ascii=False)
        with Path(record).open("a", encoding="utf-8") as lines:
            lines.write(line + "\n")


def style() -> dict[str, Any]:
    """matplotlib settings: Okabe-Ito colours, clear ground, grey text and axes, glyphs as paths, reproducible SVG."""
    from matplotlib.rcsetup import cycler

    grey = ("text.", "axes.label", "axes.edge", "axes.title", "xtick.", "ytick.", "legend.label", "grid.")
    clear = ("figure", "axes", "savefig", "legend")
    return {
        **{f"{part}color": INK for part in grey},
        **{f"{part}.facecolor": "none" for part in clear},
        "savefig.transparent": True,
        "savefig.edgecolor": "none",
        "legend.edgecolor": "none",
        "legend.framealpha": 0.0,
        "axes.prop_cycle": cycler(color=list(PALETTE)),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 10,
        "axes.labelsize": 9,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
        "figure.titlesize": 11,
        "grid.alpha": 0.35,
        "grid.linewidth": 0.6,
        "font.family": "DejaVu Sans",
        "svg.fonttype": "path",
        "svg.hashsalt": "memspec",
        "figure.constrained_layout.use": True,
        "figure.dpi": 100,
    }


def figure(
    rows: int = 1, columns: int = 1, title: str = "", height: float = 3.2, width: float = 7.2, **options: Any
) -> tuple[Any, Any]:
    """A figure of ``rows`` x ``columns`` axes in the house style, ``width`` x ``height`` inches in all.

    Returns ``(figure, axes)`` as ``matplotlib.pyplot.subplots`` does; ``options`` go there as well. The gallery and
    :func:`launch` save every figure that is still open as SVG, so a script neither saves nor shows it.
    """
    import matplotlib
    from matplotlib import pyplot

    matplotlib.rcParams.update(style())
    made, axes = pyplot.subplots(rows, columns, figsize=(width, height), **options)
    if title:
        made.suptitle("\n".join(textwrap.wrap(title, int(width * 11))))
    return made, axes


def save_figures(folder: str | Path, stem: str) -> list[Path]:
    """Write every open figure to ``folder/<stem>_001.svg`` and so on, close them, and return the paths in order."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot

    written = []
    for position, number in enumerate(pyplot.get_fignums(), start=1):
        path = Path(folder) / f"{stem}_{position:03d}.svg"
        pyplot.figure(number).savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        written.append(path)
    pyplot.close("all")
    return written


def launch(script: str, folder: str = "", *arguments: str) -> None:
    """Run ``script`` as ``python script *arguments`` would, then write its figures into ``folder``, if one is given."""
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    runpy.run_path(script, run_name="__main__")
    if folder:
        save_figures(folder, Path(script).stem)
