"""The commands that run on a device: gallery scripts, and the records they leave."""

from __future__ import annotations

import sys

import click

from memspec_tools.errors import SpecError
from memspec_tools.gallery import Example, examples
from memspec_tools.places import root, shown


def need_device(device: str) -> None:
    """Raise SpecError when "cuda" is asked for and there is none."""
    if device == "cuda":
        try:
            import torch
        except ModuleNotFoundError:
            raise SpecError(None, None, "--device cuda needs torch; pip install 'memspec[torch]'") from None
        if not torch.cuda.is_available():
            raise SpecError(None, None, "--device cuda: torch sees no CUDA device on this machine")


@click.group()
def gallery() -> None:
    """List and run the gallery scripts, or record them on a CUDA machine."""


@gallery.command("list")
def gallery_list() -> None:
    """List the gallery scripts by finding."""
    for example in _examples():
        click.echo(f"{example.slug:<26} {shown(example.path)}")


@gallery.command("run")
@click.argument("slugs", nargs=-1)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Default: CUDA where there is one.")
def gallery_run(slugs: tuple[str, ...], device: str | None) -> None:
    """Run gallery scripts plainly (all, or those of the findings named) and print what they print."""
    from memspec_tools.gallery import run

    codes = [run(slug, device) for slug in slugs or [example.slug for example in _examples()]]
    sys.exit(1 if any(codes) else 0)


@gallery.command("record")
@click.argument("slugs", nargs=-1)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cuda", show_default=True)
def gallery_record(slugs: tuple[str, ...], device: str) -> None:
    """Run checks and scripts on a device and write gallery/recorded/<device>/<slug>/ (needs no Sphinx)."""
    from memspec_tools.evidence import record

    need_device(device)
    for path in record(slugs or [example.slug for example in _examples()], device):
        click.echo(path)


@click.group()
def evidence() -> None:
    """Results recorded on CUDA machines."""


@evidence.command("check")
def evidence_check() -> None:
    """Recompute the hashes of every record: valid, stale (with what changed since), or inconsistent (exit 1)."""
    from memspec_tools.evidence import check as check_records

    states = check_records()
    for state in states:
        click.echo(f"{state.path}: {state.validity}" + "".join(f"\n  {line}" for line in state.changes))
    if not states:
        click.echo("no records: nothing has been run on a CUDA machine yet")
    if any(state.validity == "inconsistent" for state in states):
        sys.exit(1)


def _examples() -> list[Example]:
    top = root()
    if top is None:
        raise SpecError(None, None, "the gallery lies in a checkout; an installed package has none")
    return examples(top)
