"""The order of the inner joins of a plan for DataFrame operations, chosen by random samples of the archives.

Spark takes joins in the order they are written; while it runs it changes how it joins, and not the order. Here every
size is a bounding box, as wide as the sample leaves it open, and the order is taken that loses least against the best
one at the corners of the boxes. While none is good at all of them, larger samples are drawn (Babu 2005, section 7.2:
proactive re-optimization). Inputs that are small whatever happens are sent to all tasks.

Invariant: the rows and their columns are those of the plan before. Joins whose conditions can fail stay as they are.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minidsms.archive.format import Archive
from minidsms.cql import bound
from minidsms.cql.bound import Expr, JoinKind, Node
from minidsms.cql.catalog import Catalog
from minidsms.cql.functions import can_fail
from minidsms.cql.node import AS_WRITTEN
from minidsms.cql.scalar import renumbered
from minidsms.elements import Schema
from minidsms.plan.logical import Stop, columns_used, conjunction, conjuncts, nodes, projected
from minidsms.spark.costs import Box
from minidsms.spark.sampling import Sample, Sampler

_FIRST_ROWS, _MORE_ROWS = 4_000, 40_000
"""Of a sample, and of another where that leaves it open which order is best."""
_ROBUST = 1.2
_WORTH = 1.2
"""So much less must be at stake where a part is carried out before the rest is ordered."""
_MOST_INPUTS = 5
_SMALL_ROWS = 100_000
"""So many rows are sent to every task rather than both sides sorted by their keys."""


class SampledJoin(bound.Join):
    """A join that knows how many rows it gives, and whether one of its inputs is small. part: what is counted as."""

    rows: Box
    small: str = ""
    part: str = ""

    def text(self) -> str:
        sent = f", the {self.small} side sent to all tasks" if self.small else ""
        return f"{super().text()}; {_told(self.rows)} by a sample{sent}"


class Switchable(Node):
    """Inner joins of which one part is carried out first, since the order of the rest depends on what it gives.

    parts: that part, which `key` names, then the other inputs.  rows: how many it may give.  after: given what it has
    given, the plan over the same parts, which may have such a node again.
    """

    parts: tuple[Node, ...]
    rows: Box = field(metadata=AS_WRITTEN)
    key: str = field(metadata=AS_WRITTEN)
    after: Callable[[Sample], Node] = field(metadata=AS_WRITTEN)

    def text(self) -> str:
        return f"Joins, ordered when the first input has been counted; {_told(self.rows)} by a sample"

    def needs(self, mine: Set[int]) -> list[Set[int]]:
        return [set(range(len(part.schema))) for part in self.parts]


def _told(rows: Box) -> str:
    return f"{rows.low:,.0f} to {rows.high:,.0f} rows"


def order_joins(root: Stop, archives: Sequence[Archive], catalog: Catalog, counted: Mapping[str, Box] = {}) -> Stop:
    """The plan with its inner joins in an order that is good whatever the sample leaves open.

    counted: how many rows parts of the joins gave in runs before, by their keys.
    """
    done: dict[int, Node] = {}
    for node in nodes(root):
        new = node.over([done[id(child)] for child in node.inputs])
        if bound.is_inner_join(new) and not _is_below_join(root, node):
            group = sum(isinstance(n, bound.Join) for n in done.values())
            new = _ordered(new, archives, catalog, f"{group}", counted)
        done[id(node)] = new
    result = done[id(root)]
    assert isinstance(result, Stop)
    return result


def _is_below_join(root: Node, node: Node) -> bool:
    """Whether a join above takes the node's rows as they are; then it is ordered together with that one."""
    readers = [n for n in nodes(root) if any(child is node for child in n.inputs)]
    return len(readers) == 1 and bound.is_inner_join(readers[0])


# ------------------------------------------------------------------------------------------------------------- joins


@dataclass(frozen=True)
class _Joined:
    """Inner joins in one: their inputs, the conditions over the columns of all, and which of these are given as what.

    keys: what each input is called where its rows have been counted; of joins, that of all inputs of these.
    """

    inputs: tuple[Node, ...]
    conditions: tuple[Expr, ...]
    columns: tuple[int, ...]
    schema: Schema
    keys: tuple[str, ...]

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """Where the columns of each input begin among all."""
        return tuple(itertools.accumulate((len(i.schema) for i in self.inputs[:-1]), initial=0))

    def key(self, among: Iterable[int]) -> str:
        """What the join of some inputs is called."""
        return " ".join(sorted(" ".join(self.keys[i] for i in among).split()))

    def inputs_of(self, condition: Expr) -> frozenset[int]:
        """Which inputs a condition reads."""
        return frozenset(max(i for i, b in enumerate(self.begins) if b <= c) for c in columns_used(condition))


def _flat(node: Node) -> tuple[list[Node], list[Expr]]:
    if not bound.is_inner_join(node):
        return [node], []
    left, conditions = _flat(node.left)
    right, others = _flat(node.right)
    width = len(node.left.schema)
    moved = [renumbered(e, lambda i: i + width) for e in others]
    return left + right, conditions + moved + conjuncts(node.condition)


def _ordered(
    node: bound.Join, archives: Sequence[Archive], catalog: Catalog, group: str, counted: Mapping[str, Box]
) -> Node:
    inputs, conditions = _flat(node)
    if len(inputs) > _MOST_INPUTS or any(map(can_fail, conditions)):
        return node
    keys = tuple(f"{group}.{i}" for i in range(len(inputs)))
    joined = _Joined(tuple(inputs), tuple(conditions), tuple(range(len(node.schema))), node.schema, keys)
    for rows in (_FIRST_ROWS, _MORE_ROWS):
        sampler = Sampler(archives, catalog, rows)
        samples = [sampler.of(input_) for input_ in inputs]
        known = [sample for sample in samples if sample is not None and sample.drawn]
        if len(known) < len(samples):
            return node
        sizes = _sizes(joined, known, float(sampler.span()), counted)
        if sizes.least_regret()[1] <= _ROBUST:
            break
    return _planned(joined, known, sizes, counted)


def _planned(joined: _Joined, samples: Sequence[Sample], sizes: Sizes, counted: Mapping[str, Box]) -> Node:
    """The joins in the best order; or, where that depends on a part that can be carried out first, that part first."""
    order, regret = sizes.least_regret()
    if regret > _ROBUST and len(order) > 2:
        first, less = sizes.part_to_know()
        if first and less * _WORTH <= regret:
            return _switchable(joined, samples, sizes, first, counted)
    result, place, _ = _tree(joined, order, sizes)
    columns = [place[c] for c in joined.columns]
    if columns == list(range(len(columns))):
        return dataclasses.replace(result, schema=joined.schema)
    refs = [bound.ColumnRef(f.type, c, f.name) for f, c in zip(joined.schema, columns)]
    return projected(result, refs, joined.schema.names)


def _tree(joined: _Joined, order: Sequence[int], sizes: Sizes) -> tuple[Node, dict[int, int], list[Expr]]:
    """Joins in an order, at which place each column of their inputs is then, and the conditions that still wait."""
    place: dict[int, int] = {}
    result: Node | None = None
    waiting = list(joined.conditions)
    for step, i in enumerate(order):
        right, begin = joined.inputs[i], joined.begins[i]
        width = 0 if result is None else len(result.schema)
        place |= {begin + c: width + c for c in range(len(right.schema))}
        if result is None:
            result = right
            continue
        due = [e for e in waiting if joined.inputs_of(e) <= set(order[: step + 1])]
        waiting = [e for e in waiting if not any(e is d for d in due)]
        condition = conjunction([renumbered(e, place.__getitem__) for e in due])
        rows, small = sizes.of(order[: step + 1]), sizes.small_side(order[:step], i)
        schema, key = result.schema + right.schema, joined.key(order[: step + 1])
        result = SampledJoin(schema, JoinKind.INNER, result, right, condition, rows, small, key)
    assert result is not None
    return result, place, waiting


def _switchable(
    joined: _Joined, samples: Sequence[Sample], sizes: Sizes, first: Sequence[int], counted: Mapping[str, Box]
) -> Node:
    stage, place, waiting = _tree(joined, first, sizes)
    rest = [i for i in range(len(joined.inputs)) if i not in first]
    width = len(stage.schema)
    for i in rest:
        place |= {joined.begins[i] + c: width + c for c in range(len(joined.inputs[i].schema))}
        width += len(joined.inputs[i].schema)
    left = _Joined(
        (stage, *(joined.inputs[i] for i in rest)),
        tuple(renumbered(e, place.__getitem__) for e in waiting),
        tuple(place[c] for c in joined.columns),
        joined.schema,
        (joined.key(first), *(joined.keys[i] for i in rest)),
    )

    def after(seen: Sample) -> Node:
        known = [seen, *(samples[i] for i in rest)]
        now = {**counted, left.keys[0]: Box(float(seen.total), float(seen.total))}
        return _planned(left, known, _sizes(left, known, sizes.span, now), now)

    return Switchable(joined.schema, left.inputs, sizes.of(first), left.keys[0], after)


# ------------------------------------------------------------------------------------------------------------- sizes


@dataclass(frozen=True)
class Sizes:
    """What is known of the rows of joins. inputs: how many rows each brings over all time.  lives: ticks that each is
    there, at most `span`.  shares: of two inputs, by (i, j), which share of the pairs of rows has equal keys.
    counted: how many rows some inputs have given together.
    """

    inputs: tuple[Box, ...]
    lives: tuple[float, ...]
    shares: dict[tuple[int, int], Box]
    span: float
    counted: Mapping[frozenset[int], Box] = field(default_factory=dict)

    def of(self, order: Sequence[int]) -> Box:
        """How many rows the inputs give together."""
        least = self._rows(order, [b.low for b in self.inputs], {k: b.low for k, b in self.shares.items()})
        most = self._rows(order, [b.high for b in self.inputs], {k: b.high for k, b in self.shares.items()})
        return Box(least[-1], most[-1])

    def small_side(self, before: Sequence[int], i: int) -> str:
        """Which side of a join is small, whatever happens; "" where none is."""
        left, right = self.of(before).high, self.inputs[i].high
        return "" if min(left, right) > _SMALL_ROWS else "right" if right <= left else "left"

    def least_regret(self) -> tuple[tuple[int, ...], float]:
        """The order that loses least at the corners of the boxes, and how many times the best one it may cost there.

        An order costs the rows of all its inputs and joins. Orders that join what no condition connects are left out,
        unless there is no other.
        """
        worst = {order: float(np.max(loss)) for order, loss in self._losses.items()}
        best = min(worst.values())
        return next(order for order in worst if worst[order] <= best * (1 + 1e-9)), best

    def part_to_know(self) -> tuple[tuple[int, ...], float]:
        """The inputs, in an order of their own, whose join is best carried out and counted before the rest is ordered;
        and how many times the best order all may cost then, the counting included. No inputs where all are known.

        An input that is counted alone may stand anywhere afterwards; what is joined stays first.
        """
        inputs, shares = self._corners
        boxes = {frozenset({i}): box for i, box in enumerate(self.inputs)}
        boxes |= {frozenset(pair): box for pair, box in self.shares.items()}
        found: dict[tuple[int, ...], float] = {}
        for first in dict.fromkeys(o[:k] for o in self._orders() for k in range(1, len(o) - 1)):
            is_inside = [among <= set(first) for among in boxes]
            if all(box.low == box.high for box, inside in zip(boxes.values(), is_inside) if inside):
                continue
            unknown = tuple(axis for axis, inside in enumerate(is_inside) if not inside)
            counting = self._rows(first, inputs, shares)[-1] / self._least
            after = [
                np.max((loss + counting).reshape((2,) * len(boxes)), axis=unknown)
                for order, loss in self._losses.items()
                if len(first) == 1 or order[: len(first)] == first
            ]
            found[first] = float(np.max(np.min(after, axis=0)))
        best = min(found.values(), default=math.inf)
        return next((first for first in found if found[first] <= best * (1 + 1e-9)), ()), best

    @cached_property
    def _costs(self) -> dict[tuple[int, ...], Any]:
        """What each order costs at each corner."""
        inputs, shares = self._corners
        return {o: np.sum([*inputs, *self._rows(o, inputs, shares)[1:]], axis=0) for o in self._orders()}

    @cached_property
    def _least(self) -> Any:
        """What the best order costs at each corner."""
        return np.maximum(np.min(list(self._costs.values()), axis=0), 1e-9)

    @cached_property
    def _losses(self) -> dict[tuple[int, ...], Any]:
        """How many times the best order each costs at each corner."""
        return {order: np.maximum(cost / self._least, 1.0) for order, cost in self._costs.items()}

    def _orders(self) -> Iterator[tuple[int, ...]]:
        """As written first."""
        every = list(itertools.permutations(range(len(self.inputs))))
        linked = [o for o in every if all(self._links(o[:k], o[k]) for k in range(1, len(o)))]
        yield from linked or every[:1]

    def _links(self, before: Sequence[int], i: int) -> list[tuple[int, int]]:
        return [(min(i, j), max(i, j)) for j in before if (min(i, j), max(i, j)) in self.shares]

    @cached_property
    def _corners(self) -> tuple[list[Any], dict[tuple[int, int], Any]]:
        """The inputs' rows and the shares, each as an array of its values at all corners."""
        boxes = [*self.inputs, *self.shares.values()]
        is_high = np.indices((2,) * len(boxes), np.bool_).reshape(len(boxes), -1)
        values = [np.where(high, box.high, box.low) for box, high in zip(boxes, is_high)]
        n = len(self.inputs)
        return values[:n], dict(zip(self.shares, values[n:]))

    def _rows(self, order: Sequence[int], inputs: Sequence[Any], shares: dict[tuple[int, int], Any]) -> list[Any]:
        """The rows after each step, as numbers or as arrays. Two rows meet where their lives overlap, and are there
        together for less.
        """
        rows, life = inputs[order[0]], self.lives[order[0]]
        found = [rows]
        for step, i in enumerate(order[1:], 1):
            share = math.prod(shares[link] for link in self._links(order[:step], i))
            rows = rows * inputs[i] * share * min((life + self.lives[i]) / self.span, 1.0)
            counted = self.counted.get(frozenset(order[: step + 1]))
            if counted is not None:
                rows = np.clip(rows, counted.low, counted.high)
            life = life * self.lives[i] / (life + self.lives[i])
            found.append(rows)
        return found


def _sizes(joined: _Joined, known: Sequence[Sample], span: float, counted: Mapping[str, Box]) -> Sizes:
    """What samples of the inputs tell, and what was counted."""
    inputs = tuple(
        counted.get(key) or _about(s.passed, s.total / s.drawn, s.drawn < s.total) for key, s in zip(joined.keys, known)
    )
    lives = tuple(span if s.life is None else min(s.life, span) for s in known)
    every = range(len(known))
    parts = {frozenset(c): joined.key(c) for n in range(2, len(known) + 1) for c in itertools.combinations(every, n)}
    seen = {part: counted[key] for part, key in parts.items() if key in counted}
    shares: dict[tuple[int, int], Box] = {}
    for condition in joined.conditions:
        pair = _equal_columns(condition)
        among = sorted(joined.inputs_of(condition))
        if pair is None or len(among) != 2:
            continue
        i, j = among
        left, right = sorted(pair)
        keys = known[i].columns[left - joined.begins[i]], known[j].columns[right - joined.begins[j]]
        share, before = _share(*keys, known[i], known[j]), shares.get((i, j))
        shares[i, j] = share if before is None else Box(before.low * share.low, before.high * share.high)
    return Sizes(inputs, lives, shares, span, seen)


def _equal_columns(condition: Expr) -> tuple[int, int] | None:
    """The columns that a condition says are equal; numbers may be compared as FLOAT."""
    if not isinstance(condition, bound.Call) or condition.function != "=":
        return None

    def end(e: Expr) -> Expr:
        if isinstance(e, bound.Cast) and e.type is bound.Type.FLOAT and e.arg.type is not bound.Type.TEXT:
            return e.arg
        return e

    ends = [end(e) for e in condition.args]
    columns = [e.index for e in ends if isinstance(e, bound.ColumnRef)]
    return (columns[0], columns[1]) if len(columns) == 2 else None


def _about(counted: float, times: float, is_sample: bool) -> Box:
    """A figure that was counted in a sample, as a box: twice its standard deviation to either side."""
    if not is_sample:
        return Box(counted * times, counted * times)
    spread = 1 + 2 / math.sqrt(counted + 1)
    return Box(counted / spread * times, max(counted * spread, 3.0) * times)


def _share(left: Any, right: Any, of_left: Sample, of_right: Sample) -> Box:
    """Which share of the pairs of rows of two inputs has equal values, NULL equal to nothing."""
    pairs = max(of_left.passed * of_right.passed, 1)
    if left.type != right.type:
        left, right = left.cast(pa.float64(), safe=False), right.cast(pa.float64(), safe=False)
    counts = [pc.value_counts(column.drop_null()) for column in (left, right)]
    a, b = (pa.table({"key": c.field("values"), "n": c.field("counts")}) for c in counts)
    met = a.join(b, "key", join_type="inner", right_suffix="_right")
    equal = pc.sum(pc.multiply(met["n"], met["n_right"])).as_py() or 0
    is_sample = of_left.drawn < of_left.total or of_right.drawn < of_right.total
    return _about(equal, 1 / pairs, is_sample)
