"""What a join tree costs per element, from the sizes of joins and the rates of the inputs; and the best of all trees.

An element of input i is at the set X of inputs visited in tuples(X) / rows(i) tuples, on average. Each of them probes
the next child, each tuple found is visited, and where it completes a kept node it is written. A step that compares
columns with several inputs goes by one of them and passes over what differs in the others (C_D of Works, Rundensteiner
and Agu 2012), unless the pipelines go by patterns: then it hashes, and rows are linked; or by bits: then it looks at
all that these do not tell apart. What an element pays at a node depends on how the node's inputs are parted among its
children, not on what is below these: so the cost of a tree is a sum over its nodes, and the best tree is found by
dynamic programming over sets of inputs, which looks at every legal tree. So are the best orders of pipelines: what a
step costs depends on the inputs visited before. Babu 2005, sections 5.3, 5.5.1 and 5.8.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Index, Orders, Tree
from minidsms.joins.tree import flat, leaves
from minidsms.kernels.access_methods.bit_addresses import Bits
from minidsms.streamon.join_index.selection import HASHED_NS, INSPECTED_NS, LINKED_NS, VISITED_NS
from minidsms.streamon.join_trees.sizes import is_connected, members


@dataclass(frozen=True)
class UnitCosts:
    """Nanoseconds. probe, match: of a probe and of a row it finds.  keep: of a tuple written into a subresult, and of
    taking it out again.

    element, tuple: of what every plan does with an element and with a tuple of the answer.
    inspected: of a slot that does not join.  linked: of a row linked by a pattern.  hashed: of a column of a probe.
    visited: of an address.
    flat_probe, flat_match: of the MJoin, whose kernels are faster.
    """

    probe: float
    match: float
    keep: float
    flat_probe: float
    flat_match: float
    element: float
    tuple: float
    inspected: float = INSPECTED_NS
    linked: float = LINKED_NS
    hashed: float = HASHED_NS
    visited: float = VISITED_NS


MEASURED = UnitCosts(probe=14.1, match=8.7, keep=31.8, flat_probe=8.2, flat_match=2.1, element=37.1, tuple=3.2)
"""As `python -m experiments.caching.calibration` finds them on the machine of its results. What another machine, or
other rows, cost more or less is learned while joins run (`reoptimizer.py`)."""
ENTERING = UnitCosts(probe=26.3, match=24.7, keep=1.0, flat_probe=6.5, flat_match=3.2, element=33.4, tuple=15.5)
"""Where joins of streams with ranges let rows go themselves: the MJoin probes block by block there."""
ALIKE = UnitCosts(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""Where time is not measured."""


class TreeCosts:
    """sizes: tuples of the join of a set of inputs.  rates: (n,) shares of the elements.

    deletes: half of the elements are rows that leave, and are joined as those that come are.  saving: the share of
    what the MJoin's pipelines cost that caches in them save.  by_patterns: these have all patterns that they probe.
    bits: by which the rows of inputs are found instead.
    """

    def __init__(
        self,
        graph: JoinGraph,
        sizes: Callable[[int], float],
        rates: Sequence[float],
        deletes: bool,
        unit: UnitCosts = MEASURED,
        saving: float = 0.0,
        by_patterns: bool = False,
        bits: Index = (),
    ) -> None:
        self._bits = bits
        self._steps: dict[tuple[tuple[int, ...], int], float] = {}
        self._graph = graph
        self._n = graph.n
        self._sizes = sizes
        self._rates = rates
        self._kept = 0.5 if deletes else 1.0
        self._unit = unit
        self._left = 1.0 - saving
        self._by_patterns = by_patterns
        self._probes: dict[tuple[tuple[int, ...], int], tuple[int, int, int]] = {}
        self._known: dict[int, float] = {}
        self._linked = [sum(1 << j for j in graph.linked(i)) for i in range(graph.n)]

    def of(self, tree: Tree, orders: Orders) -> float:
        """ns per element. orders: those of the MJoin, which the flat tree has."""
        if tree == flat(self._n):
            return self._common() + self._flat(orders)
        return self._common() + self._node_costs(tree)

    def best(self, orders: Orders, binary: bool, keeps: bool = False) -> tuple[Tree, float]:
        """The cheapest legal tree and its cost. binary: of XJoins only; keeps: of those that keep something. The graph
        is connected and has three inputs at least.
        """
        found: dict[int, tuple[float, Tree]] = {}
        everything = (1 << self._n) - 1
        for mask in sorted(range(1, everything + 1), key=int.bit_count):
            if mask & (mask - 1) == 0:
                found[mask] = 0.0, mask.bit_length() - 1
            elif is_connected(self._graph, mask):
                for parts in _partitions(mask):
                    if len(parts) < 2 or (binary and len(parts) > 2) or not all(part in found for part in parts):
                        continue
                    is_root = mask == everything
                    if is_root and len(parts) == self._n:
                        if keeps:
                            continue
                        cost = self._flat(orders)
                    else:
                        cost = self._node(parts, is_root) + sum(found[part][0] for part in parts)
                    if mask not in found or cost < found[mask][0]:
                        found[mask] = cost, tuple(found[part][1] for part in parts)
        cost, tree = found[everything]
        return tree, cost + self._common()

    def _at(self, mask: int) -> float:
        if mask not in self._known:
            self._known[mask] = self._sizes(mask)
        return self._known[mask]

    def _common(self) -> float:
        """What every plan costs."""
        answer = self._at((1 << self._n) - 1)
        tuples = sum(rate * answer / max(1.0, self._at(1 << i)) for i, rate in enumerate(self._rates))
        return self._unit.element + self._unit.tuple * tuples

    def _node_costs(self, tree: Tree) -> float:
        if isinstance(tree, int):
            return 0.0
        parts = [sum(1 << i for i in leaves(child)) for child in tree]
        is_root = sum(parts) == (1 << self._n) - 1
        return self._node(parts, is_root) + sum(map(self._node_costs, tree))

    def _node(self, parts: Sequence[int], is_root: bool) -> float:
        """What a node with these children costs."""
        unit = self._unit
        total = 0.0
        for own in parts:
            # Of each child alike but for the rates of the inputs below it: tuples(X) / rows(i).
            weight = sum(self._rates[i] / max(1.0, self._at(1 << i)) for i in members(own))
            visited, rest = own, [part for part in parts if part != own]
            cost = 0.0
            while rest:
                near = self._near(visited)
                child = next((part for part in rest if part & near), rest[0])
                rest.remove(child)
                before, found = self._at(visited), self._at(visited | child)
                passed, _ = self._passed(tuple(members(visited)), child, before, found)
                visited |= child
                cost += unit.probe * before + unit.match * found + unit.inspected * passed
            if not is_root:
                cost += self._kept * unit.keep * self._at(visited)
            total += weight * cost
        return total

    def orders(self) -> Orders:
        """Those in which the pipelines cost least, links of patterns aside. The graph is connected."""
        return tuple(self._best_order(i) for i in range(self._n))

    def _best_order(self, i: int) -> tuple[int, ...]:
        """Of the pipeline of input i: the best end of each set of inputs visited, the largest sets first."""
        everything = (1 << self._n) - 1
        ends: dict[int, tuple[float, tuple[int, ...]]] = {everything: (0.0, ())}
        for mask in sorted(range(everything), key=int.bit_count, reverse=True):
            if mask >> i & 1:
                visited = (i, *(j for j in members(mask) if j != i))
                ways = ((j, *ends[mask | 1 << j]) for j in self._graph.following(visited))
                ends[mask] = min((self._step(visited, j) + cost, (j, *order)) for j, cost, order in ways)
        return ends[1 << i][1]

    def _flat(self, orders: Orders) -> float:
        unit = self._unit
        total = 0.0
        for i, order in enumerate(orders):
            total += self._rates[i] * sum(cost for _, cost in self.steps(i, order))
        if self._by_patterns:
            links = map(len, self._graph.patterns(orders))
            total += unit.linked * self._kept * sum(rate * keys for rate, keys in zip(self._rates, links))
        return total * self._left

    def steps(self, i: int, order: Sequence[int]) -> list[tuple[float, float]]:
        """Of each step of a pipeline, for a row of input i: how often it probes, and what it costs."""
        rows = max(1.0, self._at(1 << i))
        told = []
        for d, j in enumerate(order):
            visited = (i, *order[:d])
            before = self._at(sum(1 << k for k in visited)) / rows if d else 1.0
            told.append((before, self._step(visited, j) / rows))
        return told

    def _step(self, visited: tuple[int, ...], j: int) -> float:
        """What a step of a pipeline costs, for all tuples of the inputs visited that there are."""
        if (visited, j) not in self._steps:
            self._steps[visited, j] = self._step_anew(visited, j)
        return self._steps[visited, j]

    def _step_anew(self, visited: tuple[int, ...], j: int) -> float:
        unit = self._unit
        mask = sum(1 << k for k in visited)
        before, found = max(1.0, self._at(mask)) if len(visited) == 1 else self._at(mask), self._at(mask | 1 << j)
        bits = self._bits[j] if self._bits else ()
        if isinstance(bits, Bits):
            known = self._graph.known(visited, j)
            told = [count for k, count in enumerate(bits.of) if count and known >> k & 1]
            addresses, rows = 2.0 ** (bits.total - sum(told)), self._at(1 << j) / 2.0 ** sum(told)
            searching = before * (unit.hashed * len(told) + unit.visited * addresses + unit.inspected * rows)
        else:
            passed, compared = self._passed(visited, 1 << j, before, found)
            searching = unit.hashed * compared * before if self._by_patterns else unit.inspected * passed
        return unit.flat_probe * before + unit.flat_match * found + searching

    def _passed(self, visited: tuple[int, ...], child: int, before: float, found: float) -> tuple[float, int]:
        """Where a step compares columns with several inputs: the slots that it inspects and that do not join, if so
        many tuples of the inputs visited go by one key, and how many columns these are. (0, 0) elsewhere.
        """
        if not self._graph.has_patterns:
            return 0.0, 0
        if (visited, child) not in self._probes:
            (source, _, target, _), *others = self._graph.joining(visited, tuple(members(child)))
            self._probes[visited, child] = source, target, len(others) and 1 + len(others)
        source, target, compared = self._probes[visited, child]
        if not compared:
            return 0.0, 0
        pairs = max(1.0, self._at(1 << source)) * max(1.0, self._at(1 << target))
        equal = self._at(1 << source | 1 << target) / pairs
        return max(0.0, before * self._at(child) * equal - found), compared

    def _near(self, mask: int) -> int:
        near = 0
        for i in members(mask):
            near |= self._linked[i]
        return near


def _partitions(mask: int) -> Iterator[tuple[int, ...]]:
    """All ways to part a set; parts in the order of their least inputs."""
    if not mask:
        yield ()
        return
    first = mask & -mask
    rest = mask ^ first
    others = rest
    while True:
        for parts in _partitions(others):
            yield (rest ^ others | first, *parts)
        if not others:
            return
        others = (others - 1) & rest
