"""A plan as a Mermaid flowchart, sources at the bottom, for pages that draw Mermaid.

Invariant: every label is quoted, and characters that mean something to Mermaid or HTML are written by their numbers.
"""

from __future__ import annotations

from minidsms.plan.formats.labels import detail_lines, edge_text, figure_lines, plain, sharing_line
from minidsms.plan.plan_graph import PlanGraph, PlanNode

_SPECIAL = frozenset("\"'`#<>&;|{}[]()\\%*_~$")


def mermaid_plan(graph: PlanGraph) -> str:
    """The plan's drawing."""
    lines = ["flowchart BT"]
    for node in graph.nodes:
        opening, closing = ("[(", ")]") if node.kind == "store" else ("[", "]")
        lines.append(f'  n{node.number}{opening}"{_label(node)}"{closing}')
    for edge in graph.edges:
        text = edge_text(edge)
        arrow = f'-->|"{escaped(text)}"|' if text else "-->"
        lines.append(f"  n{edge.producer} {arrow} n{edge.consumer}")
    shared = [f"n{node.number}" for node in graph.nodes if len(node.queries) > 1]
    if shared:
        lines += ["  classDef shared stroke-width:3px", f"  class {','.join(shared)} shared"]
    stuck = graph.failure or graph.waiting
    if stuck:
        lines += [f'  why["{escaped(stuck)}"]', f"  why -.- n{graph.root}"]
    return "\n".join(lines)


def _label(node: PlanNode) -> str:
    lines = [node.name, *detail_lines(node), *figure_lines(node), sharing_line(node)]
    return "<br/>".join(escaped(line) for line in lines if line)


def escaped(text: str) -> str:
    """Text as a label may carry it.

    >>> escaped('a < "b"')
    'a #60; #34;b#34;'
    """
    return "".join(f"#{ord(c)};" if c in _SPECIAL else c for c in plain(text))
