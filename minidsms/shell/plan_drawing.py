"""The plan of a running query as a tree, with what each operator has done and does per second now."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from minidsms.plan.explain import figure
from minidsms.shell.instants import Instants, number
from minidsms.shell.showing import cell, layout

if TYPE_CHECKING:
    from minidsms.plan.operator_tree import OperatorNode
    from minidsms.query import Query

_BAR = 10


class PlanDrawing:
    """Draws the plan of one query again and again; rates are those since the last drawing."""

    def __init__(self, query: Query, instants: Instants, clock: Callable[[], float] = time.monotonic) -> None:
        self._query = query
        self._instants = instants
        self._clock = clock
        self._last_s: float | None = None
        self._last: list[int] = []

    def draw(self) -> list[str]:
        """The lines now."""
        root = self._query.operator_tree()
        rows = list(_walk(root))
        now = self._clock()
        counts = [node.elements_in for _, node, is_again in rows]
        passed = None if self._last_s is None else now - self._last_s
        total = sum(node.time_ns for _, node, is_again in rows if not is_again) or 1
        texts = []
        for i, (tree, node, is_again) in enumerate(rows):
            if is_again:
                texts.append([tree + cell(f"{node.name} (above)"), "", "", "", "", ""])
                continue
            rate = ""
            if passed and len(self._last) == len(counts):
                rate = number(max(0, counts[i] - self._last[i]) / passed)
            share = node.time_ns / total
            state = ", ".join(f"{k.replace('_', ' ')} {figure(v)}" for k, v in node.figures.items() if v is not None)
            bar = "#" * round(share * _BAR)
            name = cell(f"{node.name} {node.detail}".strip())
            figures = [f"{node.elements_in:,}", f"{node.elements_out:,}", rate]
            texts.append([tree + name, *figures, f"{100 * share:3.0f} % {bar}".ljust(6 + _BAR), cell(state)])
        self._last_s, self._last = now, counts
        columns = [("operator", False), ("in", True), ("out", True), ("in/s", True), ("time", False), ("state", False)]
        state = "failed" if self._query.failure else "running"
        title = f"{self._query.name}: {state}, answered until {self._instants.show(self._query.closed_until)}"
        return layout(title, columns, texts).rstrip("\n").split("\n")


def _walk(root: OperatorNode) -> list[tuple[str, OperatorNode, bool]]:
    """(branches before it, node, whether it has been drawn before), from the root down."""
    found: list[tuple[str, OperatorNode, bool]] = []
    seen: set[int] = set()
    # (node, what stands before its own line, what stands before its inputs' lines)
    todo = [(root, "", "")]
    while todo:
        node, before, below = todo.pop()
        is_again = id(node) in seen
        found.append((before, node, is_again))
        if is_again:
            continue
        seen.add(id(node))
        for i, child in reversed(list(enumerate(node.inputs))):
            last = i == len(node.inputs) - 1
            todo.append((child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
    return found
