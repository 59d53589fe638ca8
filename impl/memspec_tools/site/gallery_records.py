"""Recorded runs as the gallery shows them: a valid one under its device's name, a stale one with what changed, never as verified."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memspec_tools.evidence import FindingEvidence, RecordState
from memspec_tools.gallery_html import Heading
from memspec_tools.site.gallery_pages import metrics
from memspec_tools.site.markup import attribute, block, code, counted, details, heading, plain, text, verdict

FOLDER = "gallery/recorded"


def on_cuda(evidence: FindingEvidence) -> list[RecordState]:
    """The records that a page shows as runs: made on a CUDA device, and in agreement with themselves."""
    return [state for state in evidence.records if state.on_cuda and state.validity != "inconsistent"]


def verdicts(evidence: FindingEvidence) -> list[tuple[str, Mapping[str, Any]]]:
    """(device, clause id -> verdict) of each valid record: a column each in the table of a finding."""
    valid = [state for state in on_cuda(evidence) if state.validity == "valid"]
    return [
        (state.device_name, {clause["id"]: clause["verdict"] for clause in state.record["clauses"]}) for state in valid
    ]


def exported(evidence: FindingEvidence) -> list[dict[str, Any]]:
    """The records as data, each with what it is worth today."""
    return [
        {
            "device_class": state.device_class,
            "validity": state.validity,
            "changes": list(state.changes),
            "record": state.record,
        }
        for state in evidence.records
    ]


def assets(evidence: FindingEvidence) -> dict[str, Path]:
    """Path in the site -> file, for the figures of the records that are shown."""
    return {
        address(state, name): state.path.parent / name
        for state in on_cuda(evidence)
        for name in state.record["figures"]
    }


def address(state: RecordState, figure: str) -> str:
    return f"{FOLDER}/{state.device_class}/{state.slug}/{figure}"


def headings(evidence: FindingEvidence) -> list[Heading]:
    return [Heading(2, anchor(state), title(state)) for state in on_cuda(evidence)]


def anchor(state: RecordState) -> str:
    return f"recorded-{state.device_class}"


def title(state: RecordState) -> str:
    return f"{'Recorded' if state.validity == 'valid' else 'Stale record'}: {state.device_name}"


def section(evidence: FindingEvidence) -> str:
    """All that is known from CUDA machines, or that nothing is. For a gallery page, two levels below gallery/."""
    shown = "".join(run(state) for state in on_cuda(evidence))
    if not shown:
        shown = (
            f'<p class="ms-note">{verdict("not-run")} <b>This example has not run on CUDA yet.</b> On a machine with a CUDA device '
            f"{code('memspec gallery record ' + evidence.slug)} records it.</p>"
        )
    left_out = {
        state.device_class: "; ".join(state.changes) for state in evidence.records if state.validity == "inconsistent"
    }
    return shown + "".join(
        f'<p class="ms-note"><b>A record is not shown:</b> {text(device)}, {text(why)}.</p>'
        for device, why in left_out.items()
    )


def run(state: RecordState) -> str:
    """One record: device and versions, whether it still holds, metrics, figures, what was printed."""
    record = state.record
    versions = ", ".join(f"{name} {value}" for name, value in record["versions"].items())
    commit = (record["commit"]["id"] or "unknown")[:12] + (" with changes" if record["commit"]["dirty"] else "")
    facts = (
        f"{text(record['recorded'])}; driver {text(record['device']['driver'])}; {text(versions)}; commit {text(commit)}; "
        f"{record['duration']['seconds']:,.1f} s in all, not a benchmark."
    )
    body = metrics(record["metrics"], title(state)) + "".join(figure(state, name) for name in record["figures"])
    if record["stdout"].strip():
        body += details(
            "ms-box",
            "What the script printed",
            f"on {state.device_name}",
            block(plain(record["stdout"], 20_000), "text"),
        )
    held = [clause for clause in record["clauses"] if clause["verdict"] == "pass"]
    told = f"<p>{len(held)} of {counted(len(record['clauses']), 'clause')} held on this device.</p>"
    if state.validity != "valid":
        why = f'<p class="ms-note"><b>Stale, not evidence for the present text.</b> Since this run: {text(", ".join(state.changes))}.</p>'
        told, body = why, details("ms-box", "The run as it was then", f"on {state.device_name}", told + body)
    return f'{heading(2, anchor(state), text(title(state)))}<p class="ms-data">{facts}</p>{told}{body}'


def figure(state: RecordState, name: str) -> str:
    number = name.removesuffix(".svg").rpartition("_")[2]
    alt = attribute(f"Figure {number} of {state.slug}, recorded on {state.device_name}")
    return f'<div class="ms-figure"><img loading="lazy" alt="{alt}" src="../../../{attribute(address(state, name))}"></div>'
