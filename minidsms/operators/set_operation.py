"""UNION, EXCEPT [ALL] and INTERSECT [ALL] of two relations of equal column types; NULLs are equal here.

fifo: of left and of right, whether its deletions come in the order of its insertions; not, if not given.
UNION ALL needs no state and is `operators.union_all`.  docs/semantics R1, R5; Babu 2005, table 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.elements import Schema
from minidsms.kernels import counting
from minidsms.operators.counting import CountingOperator
from minidsms.queues import Queue


class Union(CountingOperator):
    """The rows that are in left or right, each once."""

    name = "Union"

    def __init__(self, left: Queue, right: Queue, schema: Schema | None = None, fifo: Sequence[bool] = ()) -> None:
        super().__init__([left, right], counting.UNION, schema or left.schema, fifo)


class Except(CountingOperator):
    """The rows of left that are not in right, each once; with `all`, as often as left has them more than right."""

    def __init__(
        self, left: Queue, right: Queue, all: bool, schema: Schema | None = None, fifo: Sequence[bool] = ()
    ) -> None:
        super().__init__([left, right], counting.EXCEPT_ALL if all else counting.EXCEPT, schema or left.schema, fifo)
        self.name = "Except All" if all else "Except"


class Intersect(CountingOperator):
    """The rows that are in left and in right, each once; with `all`, as often as in the one that has fewer."""

    def __init__(
        self, left: Queue, right: Queue, all: bool, schema: Schema | None = None, fifo: Sequence[bool] = ()
    ) -> None:
        super().__init__(
            [left, right], counting.INTERSECT_ALL if all else counting.INTERSECT, schema or left.schema, fifo
        )
        self.name = "Intersect All" if all else "Intersect"
