"""The words in a drawn plan: an operator's lines, short, without anything that could be taken for markup or control."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from minidsms.counted import counted
from minidsms.plan.plan_graph import PlanEdge, PlanNode

WIDTH = 36
"""Characters in a line."""
_LINES = 3
_QUERIES = 3
# Controls, marks of direction and lone surrogates are no characters of a drawing.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def plain(text: str) -> str:
    """The text on one line, with what cannot be shown replaced."""
    return _UNSEEN.sub("\ufffd", text.replace("\n", " ").replace("\t", " "))


def detail_lines(node: PlanNode) -> list[str]:
    """What the operator does, in at most three lines."""
    lines = textwrap.wrap(plain(node.detail), WIDTH, break_long_words=True)
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], lines[_LINES - 1][: WIDTH - 2] + ".."]
    return lines


def figure_lines(node: PlanNode) -> list[str]:
    """Its figures in one or two lines; [] where there are none."""
    f = node.figures
    if not f:
        return []
    if node.kind == "store":
        return [f"{counted(f['elements'], 'element')}, {size(f['nbytes'])}"]
    first = f"{f['elements_in']:,} in, {f['elements_out']:,} out"
    second = f"{f['time_ms']:,.1f} ms ({100 * f['time_share']:.0f} %)"
    if f["state_bytes"]:
        second += f", {size(f['state_bytes'])}"
    return [first, second]


def sharing_line(node: PlanNode) -> str:
    """Whom it serves, where that is more than one query; else ""."""
    if len(node.queries) < 2:
        return ""
    names = [plain(name) for name in node.queries[:_QUERIES]]
    rest = len(node.queries) - len(names)
    shown = ", ".join(names) + (f" and {rest} more" if rest else "")
    return "serves " + (shown if len(shown) <= WIDTH else f"{len(node.queries)} queries")


def edge_text(edge: PlanEdge) -> str:
    """What waits in a queue; "" where nothing does."""
    waiting = edge.figures.get("elements", 0)
    return f"{waiting:,} of {edge.figures['bound']:,} wait" if waiting else ""


def size(nbytes: Any) -> str:
    """Bytes, readable.

    >>> size(2048)
    '2.0 KB'
    """
    value = float(nbytes)
    for unit in ("bytes", "KB", "MB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"
