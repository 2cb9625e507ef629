"""Grouped blocks: which aggregates they compute, and how an expression over a group becomes one over the group's row.

While a select list is bound, columns stand for the rows before grouping and aggregates for negative positions; `to_row`
then turns the whole expression into one over the Aggregate node's row: the keys, then the aggregates.

Invariant: after `to_row` no position of the ungrouped row is left; a column that is neither a key nor inside an
aggregate is an error that names it (docs/semantics R3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minidsms.aggregates import AGGREGATES, SYNONYMS
from minidsms.cql import bound, syntax
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import CqlError
from minidsms.cql.scalar import rewrite
from minidsms.cql.session import Session, parts


@dataclass
class Groups:
    """The keys of a grouped block, and the aggregates met so far. has_any: it is written with some.  absent: what is
    NULL in each group.
    """

    session: Session
    keys: tuple[bound.Expr, ...]
    has_any: bool = True
    absent: frozenset[bound.Expr] = frozenset()
    aggregates: list[bound.AggregateCall] = field(default_factory=list)
    _positions: dict[bound.Expr, int] = field(default_factory=dict)
    _slots: dict[bound.AggregateCall, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for i, key in enumerate(self.keys):
            self._positions.setdefault(key, i)

    def add(self, call: bound.AggregateCall, name: str) -> bound.Expr:
        """A placeholder for the aggregate's result; equal aggregates are computed once."""
        slot = self._slots.setdefault(call, len(self.aggregates))
        if slot == len(self.aggregates):
            self.aggregates.append(call)
        return bound.ColumnRef(call.type, -slot - 1, name, span=call.span)

    def to_row(self, expr: bound.Expr) -> bound.Expr:
        """The expression over the group's row."""

        def moved(e: bound.Expr) -> bound.Expr | None:
            position = self._positions.get(e)
            if position is not None:
                name = e.name if isinstance(e, bound.ColumnRef) else ""
                return bound.ColumnRef(e.type, position, name, span=e.span)
            if e in self.absent:
                return bound.Literal(e.type, None, span=e.span)
            if isinstance(e, bound.ColumnRef):
                if e.index < 0:
                    return bound.ColumnRef(e.type, len(self.keys) - e.index - 1, e.name, span=e.span)
                raise self._ungrouped(e)
            return None

        return rewrite(expr, moved)

    def is_in_no_key(self, column: bound.Expr) -> bool:
        """Whether nothing that is made of the column alone has a single value in a group."""
        columns, *of_keys = (
            {e for e in bound.walk(expr) if isinstance(e, bound.ColumnRef)} for expr in (column, *self.keys)
        )
        return bool(columns) and columns.isdisjoint(set().union(*of_keys))

    def without_value(self, expr: bound.Expr) -> list[bound.ColumnRef]:
        """The columns in the expression that have no single value in a group."""
        found: list[bound.ColumnRef] = []

        def seen(e: bound.Expr) -> bound.Expr | None:
            if isinstance(e, bound.ColumnRef) and e.index >= 0 and e not in self._positions:
                found.append(e)
            return e if e in self._positions or isinstance(e, bound.ColumnRef) else None

        rewrite(expr, seen)
        return found

    def _ungrouped(self, column: bound.ColumnRef) -> CqlError:
        has, else_ = "" if self.keys else "the query has aggregates but no GROUP BY", ""
        if not self.keys and not self.has_any:
            has, else_ = "HAVING without GROUP BY makes all rows one group", "; conditions on rows stand in WHERE"
        return self.session.error(
            f'column "{column.name}" has no single value in a group',
            column.span,
            has,
            f"add it to GROUP BY, or aggregate it, as in MIN({column.name}){else_}",
        )


def is_aggregate(name: str, catalog: Catalog) -> bool:
    """Whether a function of this name aggregates. A user's scalar function hides a built-in aggregate of its name."""
    key = name.lower()
    return key in catalog.aggregates or (SYNONYMS.get(key, key) in AGGREGATES and key not in catalog.functions)


def has_aggregates(expr: syntax.Syntax, catalog: Catalog) -> bool:
    """Whether an aggregate stands in the expression (not in its subqueries). One with OVER is none."""
    found = list(parts(expr, syntax.Query))
    over = {id(e.call) for e in found if isinstance(e, syntax.Over)}
    return any(isinstance(e, syntax.Call) and id(e) not in over and is_aggregate(e.function, catalog) for e in found)
