"""State diagrams: Mermaid text and a plain table, both from the edges that an exploration found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memspec_tools.site.markup import details, table, text

Edge = Sequence[str]  # (label, event, label)


def mermaid(edges: Sequence[Edge]) -> str:
    """Mermaid source; edges between the same two states share one arrow."""
    names = {
        label: f"s{number}"
        for number, label in enumerate(dict.fromkeys(label for here, _, there in edges for label in (here, there)))
    }
    arrows: dict[tuple[str, str], list[str]] = {}
    for here, event, there in edges:
        arrows.setdefault((names[here], names[there]), []).append(event)
    states = [f'  state "{_quoted(label)}" as {name}' for label, name in names.items()]
    lines = [f"  {here} --> {there}: {_quoted(' / '.join(events))}" for (here, there), events in arrows.items()]
    return "\n".join(["stateDiagram-v2", *states, *lines])


def section(edges: Sequence[Edge], title: str) -> str:
    """The picture, and the same as a table, which is what a reader without scripts or sight gets."""
    rows = [[text(here), text(event), text(there)] for here, event, there in edges]
    plain = table(["State", "Event", "Next state"], rows, f"{title}, as a table")
    return (
        f'<figure class="ms-states"><pre class="ms-diagram"><code>{text(mermaid(edges))}</code></pre>'
        f"<figcaption>{text(title)}: every edge that the exploration of this build took.</figcaption></figure>"
        f"{details('ms-box', 'The diagram as a table', title, plain)}"
    )


def named_sections(diagrams: Mapping[str, Sequence[Edge]]) -> str:
    """Name -> edges, one picture each."""
    return "".join(section(edges, name) for name, edges in diagrams.items())


def _quoted(label: str) -> str:
    return label.replace('"', "'").replace(";", ",").replace(":", " ").replace("\n", " ")
