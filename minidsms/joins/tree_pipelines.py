"""The pipelines of a join tree as the kernel takes them.

The pipeline of an input climbs from its leaf to the root: at each node it visits the other children, windows or
subresults, one linked with what was visited before if there is one; what the node's last step completes goes into the
node's subresult. A subresult is probed by a key of one of its inputs; what else must be equal is checked.

Invariant: no step reads a subresult that the pipeline writes.  Babu 2005, section 5.3.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from minidsms.elements import Int64Array
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Tree
from minidsms.joins.tree import kept_nodes, leaves
from minidsms.kernels.join_layout import JoinStep, Pipelines
from minidsms.machine_code import record_in, rows_of

ViewKey = tuple[int, int]
"""The input and its key (by place among all inputs' keys) that give a subresult's cells their tag."""


@dataclass(frozen=True)
class Visit:
    """A step of a pipeline: the child visited, and the number of the node it completes, or -1."""

    target: Tree
    completes: int


class TreePipelines:
    """nodes: whose results are kept, each after those below it; a subresult has its node's number.

    visits: of each input.  steps (n most,), lengths (n,), checks (c, 4): as `Pipelines`.
    members, keys: of each subresult; bags: inputs whose rows leave in any order, which stand last among the members.
    """

    def __init__(self, graph: JoinGraph, tree: Tree, bags: Collection[int] = ()) -> None:
        self.tree = tree
        self.nodes = kept_nodes(tree)
        self.members = [sorted(leaves(node), key=lambda i: (i in bags, i)) for node in self.nodes]
        self._graph = graph
        self.visits = [self._climb(i) for i in range(graph.n)]
        self.keys: list[list[ViewKey]] = [[] for _ in self.nodes]
        self.lengths: Int64Array = np.array([len(visits) for visits in self.visits], np.int64)
        self._most = int(self.lengths.max())
        self.steps = rows_of(JoinStep, graph.n * self._most)
        self.checks: Int64Array
        self._fill_steps()
        self.bundle = Pipelines(self.steps, self.lengths, self.checks)

    def _climb(self, i: int) -> list[Visit]:
        """The steps of input i's pipeline."""
        above = [node for node in self.nodes if i in leaves(node)]
        assert isinstance(self.tree, tuple)
        visits: list[Visit] = []
        visited = {i}
        for node in sorted([*above, self.tree], key=lambda node: len(leaves(node))):
            rest = [child for child in node if not visited.issuperset(leaves(child))]
            number = self.nodes.index(node) if node in self.nodes else -1
            while rest:
                near = {j for v in visited for j in self._graph.linked(v)}
                child = next((c for c in rest if near.intersection(leaves(c))), rest[0])
                rest.remove(child)
                visited.update(leaves(child))
                visits.append(Visit(child, number if not rest else -1))
        return visits

    def _fill_steps(self) -> None:
        place = self._graph.places()
        checks: list[tuple[int, int, int, int]] = []
        probed: list[tuple[int, int, int, ViewKey]] = []
        for i, visits in enumerate(self.visits):
            visited, chosen_at, first = [i], {i: 0}, 0
            for d, visit in enumerate(visits):
                inputs = leaves(visit.target)
                (source, key, j, its), *others = self._graph.joining(visited, inputs)
                begin = len(checks)
                checks.extend((f, place[f, other], m, place[m, own]) for f, other, m, own in others)
                target, x = j, place[j, its]
                if not isinstance(visit.target, int):
                    v = self.nodes.index(visit.target)
                    if (j, x) not in self.keys[v]:
                        self.keys[v].append((j, x))
                    probed.append((i, d, v, (j, x)))
                    target = self._graph.n + v
                step = record_in(JoinStep, self.steps, i * self._most + d)
                step.target, step.probed, step.source, step.source_key = target, x, source, place[source, key]
                step.check, step.checks_end, step.kept = begin, len(checks), visit.completes
                step.asked = max(first, chosen_at[source])
                if visit.completes >= 0:
                    first = d + 1
                visited.extend(inputs)
                chosen_at.update(dict.fromkeys(inputs, d + 1))
        begins = np.cumsum([0, *map(len, self.keys)])
        for i, d, v, view_key in probed:
            self.steps["probed"][i * self._most + d] = begins[v] + self.keys[v].index(view_key)
        self.checks = np.array(checks, np.int64).reshape(-1, 4)
