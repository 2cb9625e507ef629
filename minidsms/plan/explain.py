"""Plans as EXPLAIN shows them; as text, the logical plan, after each rule if asked, and the operators that run it.

A line per node, indented under its reader; a node read more than once is written once and referred to by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import indent

from minidsms.counted import counted
from minidsms.cql.bound import Node
from minidsms.cql.errors import Error
from minidsms.elements import MAX_INSTANT, MIN_INSTANT
from minidsms.engine.held_back import held_back
from minidsms.engine.network import Network
from minidsms.operators.operator import Operator
from minidsms.operators.select import Select
from minidsms.plan.formats import FORMATS
from minidsms.plan.logical import LogicalPlan
from minidsms.plan.plan_graph import Readers, plan_graph, screens_of

_NAMES = 5
"""Queries that a line names."""


class Plan:
    """What EXPLAIN shows of one query."""

    def __init__(self, expanded: str, logical: LogicalPlan, network: Network | None, start: str = "") -> None:
        """network: None for a query that does not run.  start: where a late query began, in words (`start_text`)."""
        self.start = start
        self.expanded = expanded
        self.logical = logical
        self.network = network

    def render(
        self,
        format: str = "text",
        analyze: bool = False,
        rules: bool = False,
        query: str = "",
        readers: Readers | None = None,
        shed: Mapping[str, int] | None = None,
    ) -> str:
        """The plan in one of `minidsms.plan.formats.FORMATS`; Error where there is no such format.

        analyze: with figures.  rules: the logical plan after each rule (text only).  query, readers, shed
        (elements by stream): of a running one.
        """
        if format == "text":
            lost = [f"  Shed: {counted(n, 'element')} of {stream}" for stream, n in (shed or {}).items() if analyze]
            return "\n".join([self.text(analyze, rules, readers), *lost])
        if format not in FORMATS or self.network is None:
            raise Error(f'no plan format "{format}"; there are: {", ".join(FORMATS)}')
        graph = plan_graph(self.network, query, readers, analyze, shed or {})
        if format == "json":
            from minidsms.plan.formats.json_format import json_plan

            return json_plan(graph, self.expanded, logical_text(self.logical.root).splitlines(), analyze)
        if format == "mermaid":
            from minidsms.plan.formats.mermaid import mermaid_plan

            return mermaid_plan(graph)
        from minidsms.plan.formats.svg import svg_plan

        return svg_plan(graph)

    def text(self, analyze: bool = False, rules: bool = False, readers: Readers | None = None) -> str:
        """The expanded query, the logical plan (rules: after every rule), the operators (analyze: with figures)."""
        parts = ["Query", indent(self.expanded, "  ")]
        if rules:
            shown = ""
            for name, stage in self.logical.stages:
                tree = logical_text(stage)
                if tree != shown:
                    parts += [f"Logical plan, {name}" if name == "as bound" else f"After {name}", tree]
                shown = tree
        else:
            parts += ["Logical plan", logical_text(self.logical.root)]
        if self.network is not None:
            parts += ["Physical plan", physical_text(self.network, analyze, readers)]
            parts += ["  " + self.start] if self.start else []
            parts += ["  " + note for note in self.logical.notes]
        return "\n".join(parts)


def start_text(network: Network, frontier: int, with_history: bool) -> str:
    """What a query that comes after others begins with (docs/semantics T7); frontier: what was closed before it."""
    if frontier == MIN_INSTANT:
        return ""
    after = f"after instant {instant_text(frontier)}"
    if with_history:
        return f"Began {after}, with what the stores still held"
    ran = sum(op.failures is not None for op in network.operators)
    return f"Began {after}, from empty; {ran} of its {len(network.operators)} operators ran already"


def _tree(root: object, inputs: Callable[[object], Sequence[object]], line: Callable[[object], Sequence[str]]) -> str:
    """An indented tree of a DAG; what has several readers is numbered and written once.

    line: a node's line, then one for each of its parts.
    """
    counts: dict[int, int] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        counts[id(node)] = counts.get(id(node), 0) + 1
        if counts[id(node)] == 1:
            stack.extend(inputs(node))
    numbers: dict[int, int] = {}
    written: set[int] = set()
    lines: list[str] = []
    todo: list[tuple[object, int]] = [(root, 0)]
    while todo:
        node, depth = todo.pop()
        text, *parts = line(node)
        if counts[id(node)] > 1:
            number = numbers.setdefault(id(node), len(numbers) + 1)
            if id(node) in written:
                lines.append("  " * (depth + 1) + f"(shared {number})")
                continue
            text += f"   (shared {number})"
        written.add(id(node))
        lines += ["  " * (depth + 1) + text, *("  " * (depth + 2) + "- " + part for part in parts)]
        todo.extend((child, depth + 1) for child in reversed(inputs(node)))
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------- logical plans


def logical_text(root: Node) -> str:
    """The logical plan as an indented tree."""
    return _tree(root, lambda n: n.inputs, lambda n: [n.text()])  # type: ignore[attr-defined]


# --------------------------------------------------------------------------------------------------- physical plans


def physical_text(network: Network, analyze: bool, readers: Readers | None = None) -> str:
    """The operators as an indented tree; analyze adds elements in and out, time and share of time, state, and, given
    readers, whom they serve.
    """
    total = sum(op.counters.time_ns for op in (*network.operators, *screens_of(network))) or 1

    def inputs(op: object) -> list[Operator]:
        assert isinstance(op, Operator)
        if isinstance(op, Select) and op.screen is not None:
            return [op.screen]
        return [queue.producer for queue in op.inputs if queue.producer is not None]

    def line(op: object) -> Sequence[str]:
        assert isinstance(op, Operator)
        description = op.describe()
        text = f"{description.name} {description.detail}".rstrip()
        if not analyze:
            return [text]
        counters = op.counters
        figures = [
            f"in {counters.elements_in:,}",
            f"out {counters.elements_out:,}",
            f"{counters.time_ns / 1e6:,.1f} ms ({100 * counters.time_ns / total:.0f} %)",
        ]
        figures += [f"{k.replace('_', ' ')} {figure(v)}" for k, v in description.figures.items() if v is not None]
        figures += _shared(op, readers) if readers is not None else []
        forms = () if op.compilation is None else op.compilation.describe()
        return [f"{text}   [{'; '.join(figures)}]", *description.parts, *forms]

    text = _tree(network.output, inputs, line)
    if analyze:
        text += "\n  Closed until " + instant_text(network.progress)
        stuck = held_back(network)
        if stuck is not None:
            text += f"\n  Waiting: {stuck}"
        if network.failure is not None:
            text += f"\n  Failed at {network.failure.ts}: {network.failure.reason}"
    return text


def _shared(operator: Operator, readers: Readers) -> list[str]:
    """Who else is served by an operator, or reads the store it reads."""
    figures = []
    for thing, words in ((operator, "serves"), (getattr(operator, "store", None), "store read by")):
        names = readers(thing)
        if len(names) > 1:
            rest = len(names) - _NAMES
            figures.append(f"{words} {', '.join(names[:_NAMES])}" + (f" and {rest} more" if rest > 0 else ""))
    return figures


def instant_text(ts: int) -> str:
    """An instant, or a word where it is not one."""
    return "nothing yet" if ts == MIN_INSTANT else "the end" if ts == MAX_INSTANT else str(ts)


def figure(value: object) -> str:
    """A value as EXPLAIN and the shell write it."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
