"""A plan as an SVG picture: the output at the top, what feeds it below, stores at the bottom.

Operators and stores that serve several queries have a thick frame and say whom they serve; of a running query, boxes
are the darker the greater their share of the time.
Invariant: texts are escaped, and the picture has no script, no style from outside and no reference to anything.
"""

from __future__ import annotations

from html import escape

from minidsms.plan.formats.labels import detail_lines, edge_text, figure_lines, plain, sharing_line
from minidsms.plan.formats.layered import layers
from minidsms.plan.plan_graph import PlanEdge, PlanGraph, PlanNode

_CHARACTER = 7.0
_LINE = 16
_PAD = 10
_GAP_X = 28
_GAP_Y = 44
_MARGIN = 20
_COOL, _WARM = (247, 249, 252), (255, 196, 140)


def svg_plan(graph: PlanGraph) -> str:
    """The picture, without an XML declaration, so that it may stand in a page."""
    texts = {node.number: _lines(node) for node in graph.nodes}
    sizes = {n: _size(lines) for n, lines in texts.items()}
    rows = layers(graph)
    widths = [sum(sizes[n][0] for n in row) + _GAP_X * (len(row) - 1) for row in rows]
    notes = [plain(t) for t in (_title(graph), graph.waiting, graph.failure and f"failed {graph.failure}") if t]
    width = max([*widths, *(int(len(note) * _CHARACTER) for note in notes)]) + 2 * _MARGIN
    top: float = _MARGIN + _LINE * len(notes) + (_PAD if notes else 0)
    places: dict[int, tuple[float, float]] = {}
    for row, taken in zip(rows, widths):
        x = (width - taken) / 2
        for n in row:
            places[n] = x, top
            x += sizes[n][0] + _GAP_X
        top += max(sizes[n][1] for n in row) + _GAP_Y
    height = top - _GAP_Y + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11.5">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
    ]
    for i, note in enumerate(notes):
        parts.append(_text(_MARGIN, _MARGIN + _LINE * i + 8, note, "#333", bold=i == 0))
    parts += [part for edge in graph.edges for part in _edge(edge_text(edge), places, sizes, edge)]
    parts += [part for node in graph.nodes for part in _box(node, texts[node.number], places, sizes)]
    return "\n".join([*parts, "</svg>"])


def _title(graph: PlanGraph) -> str:
    if not graph.query:
        return ""
    closed = "" if graph.closed_until is None else f", closed until {graph.closed_until}"
    shed = "".join(f", {n:,} elements of {stream} shed" for stream, n in graph.shed.items())
    return f"{graph.query}{closed}{shed}"


def _lines(node: PlanNode) -> list[str]:
    return [node.name, *detail_lines(node), *figure_lines(node), *filter(None, [sharing_line(node)])]


def _size(lines: list[str]) -> tuple[float, float]:
    return max(len(line) for line in lines) * _CHARACTER + 2 * _PAD, len(lines) * _LINE + 2 * _PAD - 4


def _box(
    node: PlanNode,
    lines: list[str],
    places: dict[int, tuple[float, float]],
    sizes: dict[int, tuple[float, float]],
) -> list[str]:
    x, y = places[node.number]
    w, h = sizes[node.number]
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
        parts.append(_text(x + _PAD, y + _PAD + _LINE * i + 8, line, colour, bold=i == 0))
    return parts


def _edge(
    text: str,
    places: dict[int, tuple[float, float]],
    sizes: dict[int, tuple[float, float]],
    edge: PlanEdge,
) -> list[str]:
    producer, consumer = edge.producer, edge.consumer
    x1, y1 = places[producer][0] + sizes[producer][0] / 2, places[producer][1]
    x2 = places[consumer][0] + sizes[consumer][0] / 2
    y2 = places[consumer][1] + sizes[consumer][1]
    bend = (y1 - y2) / 2
    parts = [
        f'<path d="M {x1:.1f} {y1:.1f} C {x1:.1f} {y1 - bend:.1f}, {x2:.1f} {y2 + bend:.1f}, {x2:.1f} {y2 + 6:.1f}" '
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
