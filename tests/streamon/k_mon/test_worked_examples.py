"""The worked examples of Babu 2005, chapter 6, on the join graphs of figure 6.8.

(a)  S1(A, B) -> S2(A, C) on A,  S1 -> S3(B, D) on B,  with D < 8
(b)  S1(A, B) -> S2(B, C) on B,  S2 -> S3(C, D) on C,  with D > 10
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import Batch, Column, Int64Array, Schema, Type
from minidsms.joins.directed_graph import Edge
from minidsms.kernels.k_mon_reduction import NO, UNKNOWN, YES
from minidsms.kernels.k_mon_rows import ROWS, UNBOUNDED
from minidsms.operators.k_mon.contracts import Arrivals, KConstraint, Kind, Monitor, Source, User
from minidsms.operators.k_mon_join import KMonJoin, KMonSpec, Surroundings
from minidsms.queues import Queue
from minidsms.streamon.k_mon.watching import watched_by
from minidsms.synopses.k_mon_rows import Window

Rows = list[tuple[int, ...]]


class Held:
    """A constraint that holds with a k that is known."""

    def __init__(self, constraint: KConstraint, k: int | None) -> None:
        self.constraint, self.k = constraint, k
        self._values: list[int] = []

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        self._values += arrivals.values.tolist()

    attention = "all"

    @property
    def asleep_until(self) -> int:
        return 0

    def need(self, user: object, most: int, may_sample: bool) -> None:
        """All is kept."""

    def below(self, k: int, number: int | None = None) -> int | None:
        return max(self._values[: max(0, len(self._values) - k)], default=None)

    def notice(self, number: int) -> None:
        """It does not sleep."""

    def refuted(self) -> None:
        raise AssertionError("the constraint holds")


class Holding:
    """Constraints that hold, by kind, stream and attribute; others do not."""

    def __init__(self, ks: dict[tuple[Kind, str, str], int]) -> None:
        self._ks = ks

    def watch(self, constraint: KConstraint, user: User) -> Monitor:
        key = constraint.kind, constraint.stream, constraint.attributes[0]
        return Held(constraint, self._ks.get(key))  # type: ignore[return-value]

    def leave(self, constraint: KConstraint, user: User) -> None:
        """Nothing is kept."""


class Example:
    """One of the graphs. Rows come one at a time, and what is not needed goes at once."""

    def __init__(self, names: Sequence[str], edges: Sequence[Edge], filtered: int, sense: str, bound: int) -> None:
        self._names, self._edges = names, edges
        self._filtered, self._sense, self._bound = filtered, sense, bound

    def start(
        self, ks: dict[tuple[Kind, str, str], int] | None = None, windows: Sequence[Window] | None = None,
        is_lossy: bool = True, for_istream: bool = True,
    ) -> None:  # fmt: skip
        schemas = [
            Schema.of((name[0], Type.INTEGER), (name[1], Type.INTEGER), ("pass", Type.BOOLEAN)) for name in self._names
        ]
        windows = [Window(UNBOUNDED)] * 3 if windows is None else windows
        shown = [(0, 0), (0, 1), (1, 1), (2, 1)]
        passes = [2 if i == self._filtered else None for i in range(3)]
        sources = [
            Source(f"s{i + 1}", (name[0].lower(), name[1].lower(), "pass")) for i, name in enumerate(self._names)
        ]
        schema = Schema(tuple(schemas[i][c] for i, c in shown))
        spec = KMonSpec(self._edges, windows, shown, schema, passes, for_istream=for_istream, is_lossy=is_lossy)
        around = Surroundings(watch=watched_by(Holding(ks or {}), sources), collects_always=True)
        self.join = KMonJoin([Queue(s, 1000) for s in schemas], spec, around)
        self._now = 0

    def push(self, stream: int, *row: int) -> list[tuple[int, ...]]:
        """A row of S1, S2 or S3; returns the changes of the result, sign first."""
        self._now += 1
        i = stream - 1
        passes = i != self._filtered or (row[1] < self._bound if self._sense == "<" else row[1] > self._bound)
        columns = [Column(np.array([v], np.int64)) for v in row] + [Column(np.array([passes]))]
        batches: list[Batch | None] = [None] * 3
        batches[i] = Batch(np.array([self._now], np.int64), None, columns)
        out = []
        for batch in self.join.process(batches, self._now):
            for k in range(len(batch)):
                out.append((int(batch.signs[k]), *(int(c.values[k]) for c in batch.columns)))
        return out

    def held(self, stream: int, component: int | None = None) -> Rows:
        """The rows of a stream in memory; of one component, if it is given."""
        rows, components = self.join.reduction.components(self.join.down, stream - 1)
        places = self.join.rows.places[stream - 1]
        found = [
            tuple(int(row[places[c]]) for c in (0, 1)) for row, of in zip(rows, components) if component in (None, of)
        ]
        return sorted(found)

    def dead(self, stream: int) -> list[int]:
        """The keys of a stream's No component that are kept by themselves."""
        assert self.join.reduction is not None
        keys: list[Int64Array] = [
            self.join.reduction.dead.keys_of(s)[:, 0] for s in self.join.reduction.dead.sides_of[stream - 1]
        ]
        return sorted(int(v) for k in keys for v in k)


def figure_a() -> Example:
    edges = (Edge(0, 1, ((0, 0),), right_key=True), Edge(0, 2, ((1, 0),), right_key=True))
    return Example(("AB", "AC", "BD"), edges, 2, "<", 8)


def figure_b() -> Example:
    edges = (Edge(0, 1, ((1, 0),), right_key=True), Edge(1, 2, ((1, 0),), right_key=True))
    return Example(("AB", "BC", "CD"), edges, 2, ">", 10)


def begin_a(example: Example, third: Sequence[tuple[int, int]] = ((5, 3), (7, 9), (10, 12))) -> None:
    """The state of figure 6.8(a)."""
    for row in ((6, 20), (4, 15)):
        assert example.push(2, *row) == []
    for row in third:
        assert example.push(3, *row) == []


def test_example_6_3_1_a_row_whose_children_are_in_yes_is_in_the_result_and_one_with_a_dead_child_is_not() -> None:
    example = figure_a()
    example.start()
    begin_a(example)
    assert example.held(2, YES) == [(4, 15), (6, 20)]
    assert example.held(3, YES) == [(5, 3)] == example.held(3)
    assert example.dead(3) == [7, 10]
    assert example.push(1, 6, 5) == [(1, 6, 5, 20, 3)]
    assert example.push(1, 8, 10) == []
    assert example.held(1) == [], "a root keeps neither Yes nor No"


def test_example_6_3_2_unknown_rows_wait_and_move_to_yes_together() -> None:
    example = figure_b()
    example.start()
    example.push(2, 2, 4)
    assert example.held(2, UNKNOWN) == [(2, 4)]
    assert example.push(1, 1, 2) == []
    assert example.held(1, UNKNOWN) == [(1, 2)]
    assert example.push(3, 4, 12) == [(1, 1, 2, 4, 12)]
    assert example.held(3, YES) == [(4, 12)]
    assert example.held(2, YES) == [(2, 4)]
    assert example.held(1) == []


def test_example_6_3_3_keys_of_no_rows_spare_the_parents_to_come() -> None:
    example = figure_b()
    example.start()
    example.push(3, 6, 8)
    assert example.held(3) == []
    assert example.dead(3) == [6], "only what its parents are joined by is kept"
    example.push(2, 3, 6)
    assert example.held(2) == []
    assert example.dead(2) == [3]
    for x in range(20):
        example.push(1, x, 3)
    assert example.held(1) == []


def test_example_6_3_4_a_row_that_leaves_its_window_takes_the_result_with_it() -> None:
    example = figure_b()
    example.start(windows=[Window(UNBOUNDED), Window(UNBOUNDED), Window(ROWS, 1)], for_istream=False)
    example.push(1, 1, 2)
    example.push(2, 2, 4)
    assert example.push(3, 4, 12) == [(1, 1, 2, 4, 12)]
    assert example.push(3, 5, 11) == [(-1, 1, 2, 4, 12)]
    assert example.held(2) == [], "its child has left"


def test_example_6_6_1_rids_needs_no_dead_keys() -> None:
    example = figure_a()
    example.start({(Kind.RIDS, "s3", "b"): 1})
    begin_a(example)
    assert example.dead(3) == []
    example.push(1, 4, 10)
    assert example.held(1, UNKNOWN) == [(4, 10)]
    example.push(3, 30, 1)
    assert example.held(1) == [], "the next row of S3 was not its child"


def test_example_6_7_1_a_cluster_that_is_over_frees_its_child() -> None:
    example = figure_a()
    example.start({(Kind.CA, "s1", "b"): 1})
    begin_a(example)
    assert example.push(1, 6, 5) == [(1, 6, 5, 20, 3)]
    assert example.push(1, 8, 8) == []
    assert example.held(1, UNKNOWN) == [(8, 8)]
    assert example.push(1, 4, 5) == [(1, 4, 5, 15, 3)]
    assert example.held(3) == [(5, 3)]
    assert example.push(1, 11, 10) == []
    assert example.held(1) == [(8, 8)]
    assert example.held(3) == [], "two other values have come after the first 5"


def test_example_6_8_1_a_parent_below_the_order_of_its_child_does_not_wait() -> None:
    example = figure_a()
    example.start({(Kind.OAC, "s3", "b"): 2})
    begin_a(example, [(7, 9), (5, 3), (10, 12)])
    assert example.dead(3) == []
    example.push(1, 6, 4)
    assert example.held(1) == []
    example.push(1, 6, 8)
    assert example.held(1) == [(6, 8)]


def test_example_6_10_1_constraints_together_let_go_more_than_each_alone() -> None:
    rows = ((4, 5), (6, 8), (3, 13))
    ca, oac = {(Kind.CA, "s1", "a"): 0}, {(Kind.OAC, "s3", "b"): 0}

    def after(ks: dict[tuple[Kind, str, str], int]) -> tuple[Rows, Rows]:
        example = figure_a()
        example.start(ks)
        begin_a(example)
        out = [change for row in rows for change in example.push(1, *row)]
        assert out == [(1, 4, 5, 15, 3)]
        return example.held(1), example.held(2)

    assert after(ca) == ([(3, 13), (6, 8)], [(6, 20)])
    assert after(oac) == ([(3, 13)], [(4, 15), (6, 20)])
    assert after({**ca, **oac}) == ([(3, 13)], [])


def test_example_6_10_2_another_constraint_may_keep_rows_longer() -> None:
    rows = ((6, 10), (4, 10), (8, 8))
    ca, rids = {(Kind.CA, "s1", "b"): 0}, {(Kind.RIDS, "s3", "b"): 3}
    example = figure_a()
    example.start(ca)
    begin_a(example)
    for row in rows:
        example.push(1, *row)
    assert example.held(1) == [(8, 8)]
    assert example.dead(3) == [7], "no row with 10 will come any more"
    example.start({**ca, **rids})
    begin_a(example)
    for row in rows:
        example.push(1, *row)
    assert example.held(1) == [(4, 10), (6, 10), (8, 8)]
    for b in (40, 41, 42):
        assert example.held(1) == [(4, 10), (6, 10), (8, 8)]
        example.push(3, b, 1)
    assert example.held(1) == []


def test_no_is_never_held_by_the_root() -> None:
    example = figure_a()
    example.start()
    begin_a(example)
    example.push(1, 8, 7)
    assert example.held(1, NO) == []
