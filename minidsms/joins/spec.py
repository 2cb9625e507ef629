"""What a join is asked for: which columns are equal, which are put out, and how rows come and leave.

Invariant: a spec says what the answer is; a plan (`joins.plan`) says how it is found, and never changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from minidsms.elements import Batch, BoolArray, Schema
from minidsms.joins.bands import Band
from minidsms.joins.equal_columns import Equality
from minidsms.joins.graph import JoinGraph
from minidsms.kernels.access_methods.cells import Cells, CellsInOrder
from minidsms.synopses.window_index import WindowIndex

Predicate = Callable[[Batch], tuple[BoolArray, BoolArray | None]]
"""Rows for which a condition is TRUE, and rows for which it fails (None: none does)."""


@dataclass(frozen=True, eq=False)
class Condition:
    """What else must hold. predicate: over the whole rows of all inputs side by side, whose columns are gathered when
    it reads them.  reason: what to say of a row (a batch of one) for which it fails.
    """

    predicate: Predicate
    reason: Callable[[Batch], str] = lambda row: "a join condition failed"


@dataclass(frozen=True, eq=False)
class JoinSpec:
    """The rows of all inputs side by side where every equality, and the condition if there is one, holds.

    columns: the (input, column) of each output column; schema: theirs.
    shown: where the consumer is ISTREAM, the output columns that stand unchanged in its rows; then deletions that
    cancel no insertion of their instant may be left out. None: all deletions are put out.
    ranges: where given (there are two inputs, or `shown` is), the inputs are streams, and each row stays so many ticks,
    as in a RangeWindow; None: for ever. Then no deletion is ever an element, which halves the work.
    fifo: of each input, whether its deletions come in the order of its insertions (default: of all).
    bands: what the condition, or one that is applied to the rows put out, asks of columns of two inputs: pairs outside
    of a band need not be found.
    outer: of two inputs, whether rows of the first that no row of the second meets are there, too, with NULLs.
    only_enters: deletions are of no use to who reads the answer; they may be left out.
    """

    equalities: Sequence[Equality]
    columns: Sequence[tuple[int, int]]
    schema: Schema
    shown: Sequence[int] | None = None
    ranges: Sequence[int | None] | None = None
    fifo: Sequence[bool] | None = None
    condition: Condition | None = None
    bands: Sequence[Band] = ()
    outer: bool = False
    only_enters: bool = False

    def __post_init__(self) -> None:
        assert self.ranges is None or ((self.shown is not None or len(self.ranges) == 2) and not self.bags)
        assert self.condition is None or self.shown is None
        is_bare = self.shown is None and self.condition is None and not self.bands
        assert not self.outer or (is_bare and self.equalities), "an outer join asks for equalities and nothing else"

    @property
    def bags(self) -> frozenset[int]:
        """The inputs whose rows leave in any order."""
        return frozenset(i for i, is_fifo in enumerate(self.fifo or ()) if not is_fifo)

    @property
    def leaves_out(self) -> bool:
        """Deletions that cancel nothing are left out."""
        return self.shown is not None and not self.bags

    def windows(self, schemas: Sequence[Schema], graph: JoinGraph) -> WindowIndex:
        """Empty windows for the inputs, indexed by the keys of the graph, with the marks that the answer asks for."""
        n = graph.n
        marked = None
        if self.leaves_out:
            marked = [sorted({c for j in self.shown or () for k, c in [self.columns[j]] if k == i}) for i in range(n)]
        keyed = graph.equal_to(self.columns[j] for j in self.shown or ())
        if marked is not None:
            of_keys = [any((i, *key) in keyed for key in graph.keys[i]) for i in range(n)]
            if all(has_one or not columns for has_one, columns in zip(of_keys, marked)):
                marked = None  # what the answer shows of the keys tells rows apart well enough
        needed: list[Iterable[int]] = [
            range(len(schemas[i])) if self.condition is not None else [c for k, c in self.columns if k == i]
            for i in range(n)
        ]
        bags = [i in self.bags for i in range(n)]
        cells: dict[tuple[int, int], Cells | CellsInOrder] = {}
        for number, band in enumerate(graph.bands):
            types = {(i, c): schemas[i][c].type for i, c in (band.a, band.b)}
            for (i, c), its in band.cells(types):
                cells[i, ~number] = its
                needed[i] = {*needed[i], c}
        index = WindowIndex(schemas, graph.keys, marked, needed, self.ranges, bags, graph.rooms, cells)
        index.show(keyed)
        return index
