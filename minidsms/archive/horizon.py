"""How far back a plan's state reaches: what must be read again so that a query can go on from an instant.

Going on from an instant, every node has to give the right changes behind it. What a node remembers follows from the
rows that its inputs give at that instant (a join, an aggregate), from elements that came shortly before (RANGE, HOP and
ROWS windows directly over streams), or from nothing less than all that has come; then its operator may have kept its
state (`operators/resuming.py`), and knows the rows it gives, or not. Windows over all forget their rows, and what
reads these has to have kept its own state, or to remember nothing.

A horizon is a reach in ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from minidsms.cql import bound
from minidsms.cql.bound import Node, StreamKind
from minidsms.cql.node import Memory
from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.plan.logical import Stop, nodes

Keeps = Callable[[Node], bool | None]
"""Whether a node's state is kept: None where it is not, else whether the rows it gives are known."""


def horizon(root: Node) -> int | None:
    """Ticks before an instant that hold all elements which matter after it; None: the whole past does."""
    found = reach_of(root)
    return None if found.whole or found.rows else found.ticks


@dataclass
class Reach:
    """What matters of the past: the elements of so many ticks, of some streams so many of the last, and the state of
    the nodes that have kept it. is_of_elements: some of these elements stand in windows.  whole: what needs the whole
    past instead, in words, or "".
    """

    ticks: int = 1
    rows: dict[str, int] = field(default_factory=dict)
    kept: list[Node] = field(default_factory=list)
    is_of_elements: bool = False
    whole: str = ""


def reach_of(root: Node, keeps: Keeps = lambda node: None, late: Collection[str] = ()) -> Reach:
    """What matters after an instant of what came up to it.

    late: streams, by lower-case name, of which elements are there that came too late to count in any window.
    """
    walk = _Walk(keeps, late)
    for node in nodes(root):
        walk.visit(node)
    return walk.reach


class _Walk:
    """Over the nodes of a plan, inputs first."""

    def __init__(self, keeps: Keeps, late: Collection[str]) -> None:
        self.reach = Reach()
        self._keeps = keeps
        self._late = late
        self._forgotten: set[int] = set()
        """The nodes whose present rows do not follow from what is kept, by id."""

    def visit(self, node: Node) -> None:
        """Note what the node needs."""
        knows_inputs = self._knows(node.inputs)
        match node:
            case bound.Window() if node.is_append_only:
                self._forgotten.add(id(node))
            case _ if node.own_windows:
                if not knows_inputs or not all([self._add_window(spec, stream) for spec, stream in node.own_windows]):
                    self._keep(node)
            case _ if node.memory is Memory.FIRST:
                is_kept = bool(node.inputs) and self._keeps(node) is not None
                if is_kept or not all([self._add_rows(source, 1) for source in node.inputs]):
                    self._keep(node)
            case bound.RelationToStream(op=StreamKind.RSTREAM):
                if not self._knows([node.input]):
                    self._keep(node)
            case Stop():
                if node.is_relation and not knows_inputs:
                    self._need_all("its rows are all that came")
            case _ if node.memory is Memory.ALL:
                self._need_all(node.text())
            case _ if node.memory is Memory.OWN:
                self._keep(node)
            case _ if knows_inputs:
                pass
            case _ if node.memory is Memory.NOTHING:
                self._forgotten.add(id(node))
            case _:
                self._keep(node)

    def _knows(self, inputs: Sequence[Node]) -> bool:
        return not any(id(each) in self._forgotten for each in inputs)

    def _keep(self, node: Node) -> None:
        """The node goes on from its state, or needs all that has come."""
        knows_rows = self._keeps(node)
        if knows_rows is None:
            self._need_all(node.text())
        else:
            self.reach.kept.append(node)
            if not knows_rows:
                self._forgotten.add(id(node))

    def _need_all(self, reason: str) -> None:
        self.reach.whole = self.reach.whole or reason

    def _add_rows(self, node: Node, n: int) -> bool:
        """So many elements of what a window is over; False where it is no stream as it was declared."""
        while isinstance(node, bound.Project | bound.Stamped):
            node = node.inputs[0]
        if not isinstance(node, bound.BaseStream) or node.name.lower() in self._late:
            return False
        self.reach.is_of_elements = True
        self.reach.rows[node.name.lower()] = max(n, self.reach.rows.get(node.name.lower(), 0))
        return True

    def _add_window(self, spec: WindowSpec, node: Node) -> bool:
        """A window over a node; False where elements of some ticks, or so many, do not do."""
        if spec.kind is WindowKind.ROWS and spec.rows is not None and spec.slide is None:
            return self._add_rows(node, spec.rows)
        if spec.kind not in (WindowKind.RANGE, WindowKind.HOP) or spec.range_ is None or not bound.is_of_declared(node):
            return False
        self.reach.is_of_elements = True
        self.reach.ticks = max(self.reach.ticks, spec.range_ + (spec.slide or 0) + spec.lag + 1)
        return True
