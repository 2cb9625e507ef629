"""A plan as an SVG picture: the output at the top, what feeds it below, stores at the bottom.

Operators and stores that serve several queries have a thick frame and say whom they serve; of a running query, boxes
are the darker the greater their share of the time.
Invariant: texts are escaped, and the picture has no script, no style from outside and no reference to anything.
"""

from __future__ import annotations

from html import escape

from minidsms.counted import counted
from minidsms.plan.formats.labels import detail_lines, edge_text, figure_lines, plain, sharing_line
from minidsms.plan.formats.placing import CHARACTER, LINE, MARGIN, PAD, Placing, placed
from minidsms.plan.plan_graph import PlanEdge, PlanGraph, PlanNode

_COOL, _WARM = (247, 249, 252), (255, 196, 140)


def svg_plan(graph: PlanGraph) -> str:
    """The picture, without an XML declaration, so that it may stand in a page."""
    texts = {node.number: _lines(node) for node in graph.nodes}
    notes = [plain(t) for t in (_title(graph), graph.waiting, graph.failure and f"failed {graph.failure}") if t]
    top = MARGIN + LINE * len(notes) + (PAD if notes else 0)
    placing = placed(graph, texts, top, max((int(len(note) * CHARACTER) for note in notes), default=0))
    width, height = placing.width, placing.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11.5">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
    ]
    for i, note in enumerate(notes):
        parts.append(_text(MARGIN, MARGIN + LINE * i + 8, note, "#333", bold=i == 0))
    parts += [part for edge in graph.edges for part in _edge(edge_text(edge), placing, edge)]
    parts += [part for node in graph.nodes for part in _box(node, texts[node.number], placing)]
    return "\n".join([*parts, "</svg>"])


def _title(graph: PlanGraph) -> str:
    if not graph.query:
        return ""
    closed = "" if graph.closed_until is None else f", closed until {graph.closed_until}"
    shed = "".join(f", {counted(n, 'element')} of {stream} shed" for stream, n in graph.shed.items())
    return f"{graph.query}{closed}{shed}"


def _lines(node: PlanNode) -> list[str]:
    return [node.name, *detail_lines(node), *figure_lines(node), *filter(None, [sharing_line(node)])]


def _box(node: PlanNode, lines: list[str], placing: Placing) -> list[str]:
    box = placing.boxes[node.number]
    x, y, w, h = box.x, box.y, box.width, box.height
    share = float(node.figures.get("time_share", 0.0))
    fill = "#eef3ec" if node.kind == "store" else _colour(share)
    thick = 2.5 if len(node.queries) > 1 else 1
    rounding = 12 if node.kind == "store" else 3
    parts = [
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{rounding}" fill="{fill}" '
        f'stroke="#4a5a6a" stroke-width="{thick}"/>'
    ]
    detail = 1 + len(detail_lines(node))
    for i, line in enumerate(lines):
        colour = "#1a1a1a" if i < detail else "#5a6672"
        parts.append(_text(x + PAD, y + PAD + LINE * i + 8, line, colour, bold=i == 0))
    return parts


def _edge(text: str, placing: Placing, edge: PlanEdge) -> list[str]:
    x1, y1, _, c1, _, c2, x2, y2 = placing.curve(edge)
    parts = [
        f'<path d="M {x1:.1f} {y1:.1f} C {x1:.1f} {c1:.1f}, {x2:.1f} {c2:.1f}, {x2:.1f} {y2 + 6:.1f}" '
        'fill="none" stroke="#7a8896" stroke-width="1.3"/>',
        f'<path d="M {x2 - 4:.1f} {y2 + 8:.1f} L {x2:.1f} {y2 + 1:.1f} L {x2 + 4:.1f} {y2 + 8:.1f} Z" fill="#7a8896"/>',
    ]
    if text:
        parts.append(_text((x1 + x2) / 2 + 6, (y1 + y2) / 2 + 4, text, "#a04000"))
    return parts


def _text(x: float, y: float, text: str, colour: str, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{weight} xml:space="preserve">{escape(text)}</text>'


def _colour(share: float) -> str:
    mixed = [round(a + (b - a) * min(1.0, share)) for a, b in zip(_COOL, _WARM)]
    return "#" + "".join(f"{c:02x}" for c in mixed)
