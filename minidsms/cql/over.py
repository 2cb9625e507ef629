"""OVER: the calls of a block that look at the rows beside a row, and the columns that they become.

While a select list is bound, a call stands as an `OverRef`. Then the block's rows are projected to what it shows and
what its calls look at, each call appends its result, and the select list is read from there.

Invariant: the columns projected decide the order of rows that are equal in all keys (docs/semantics R7), so a row is
told apart by nothing that the block does not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from minidsms.aggregates import AGGREGATES as TABLE
from minidsms.aggregates import SYNONYMS
from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.over import AGGREGATES, NEIGHBOURS, RANKS, Frame, OverCall
from minidsms.cql import bound, syntax
from minidsms.cql.aggregate_calls import AggregateCallBinder
from minidsms.cql.catalog import Catalog
from minidsms.cql.coercion import coerce
from minidsms.cql.errors import CqlError
from minidsms.cql.scalar import rewrite
from minidsms.cql.session import Session
from minidsms.elements import Field, Schema, Type

_KNOWN = ", ".join(name.upper() for name in (*RANKS, *NEIGHBOURS, *AGGREGATES))


@dataclass(frozen=True)
class _Written:
    """A call over the block's row."""

    function: str
    type: Type
    arg: bound.Expr | None
    partition: tuple[bound.Expr, ...]
    order: tuple[tuple[bound.Expr, SortKey], ...]
    frame: Frame
    distance: int | None
    label: str = field(compare=False)


@dataclass
class Overs:
    """The calls met so far; equal ones are computed once."""

    session: Session
    calls: list[_Written] = field(default_factory=list)

    def add(
        self,
        over: syntax.Over,
        args: Sequence[bound.Expr],
        partition: Sequence[bound.Expr],
        order: Sequence[bound.Expr],
    ) -> bound.Expr:
        """A placeholder for the result of a call, whose parts are bound."""
        call = over.call
        name = SYNONYMS.get(call.function.lower(), call.function.lower())
        for expr in (*args, *order, *partition):
            if expr.type.is_nested and not (expr in args and name in NEIGHBOURS):
                raise self.session.error("lists have no order", expr.span, "", "take an element")
        keys = tuple(SortKey(key.descending, bool(key.nulls_first)) for key in over.order)
        function, type_, arg, distance, frame = self._shape(over, name, args)
        label = self.session.snippet(call.span)
        ordered = tuple(zip(map(self._typed, order), keys))
        written = _Written(function, type_, arg, tuple(map(self._typed, partition)), ordered, frame, distance, label)
        if written not in self.calls:
            self.calls.append(written)
        return bound.OverRef(type_, self.calls.index(written), span=over.span)

    def _shape(
        self, over: syntax.Over, name: str, args: Sequence[bound.Expr]
    ) -> tuple[str, Type, bound.Expr | None, int | None, Frame]:
        """Function, type, argument, distance and frame of a call."""
        call, frame = over.call, over.frame
        if call.distinct or call.order or call.within or call.nulls:
            raise self._error(
                f"{call.function} with OVER takes its arguments only", over, "no DISTINCT, order or NULLS"
            )
        if name in RANKS or name in NEIGHBOURS:
            if frame is not None:
                raise self._error(f"{call.function} looks at no frame", frame, "leave ROWS out")
            if not over.order and name != "row_number":
                raise self._error(f"{call.function} needs an order", over, "OVER (PARTITION BY .. ORDER BY ..)")
        if name in RANKS:
            if args or call.args:
                raise self._error(f"{call.function} takes no argument", call)
            return name, Type.INTEGER, None, None, Frame.ROWS
        if name in NEIGHBOURS:
            return name, args[0].type if args else Type.NULL, *self._neighbour(call, args), Frame.ROWS
        if name not in TABLE:
            raise self._error(f"{call.function} takes no OVER", call, f"with OVER stand {_KNOWN}")
        if args or not call.args:
            aggregate = AggregateCallBinder(self.session, call, name).bind(args, ())
        else:
            aggregate = bound.AggregateCall("count", None, Type.INTEGER)
        if aggregate.function not in AGGREGATES:
            raise self._error(f"{call.function} takes no OVER", call, f"with OVER stand {_KNOWN}")
        if frame is not None:
            return aggregate.function, aggregate.type, aggregate.arg, frame.preceding, Frame.ROWS
        reach = Frame.PEERS if over.order else Frame.PARTITION
        return aggregate.function, aggregate.type, aggregate.arg, None, reach

    def _neighbour(self, call: syntax.Call, args: Sequence[bound.Expr]) -> tuple[bound.Expr, int]:
        if not 1 <= len(args) <= 2:
            hint = f"COALESCE({call.function}(x), default)" if len(args) == 3 else ""
            raise self._error(f"{call.function} takes a value and how many rows it stands away", call, hint)
        if len(args) == 1:
            return self._typed(args[0]), 1
        distance = args[1]
        if not isinstance(distance, bound.Literal) or type(distance.value) is not int or distance.value < 0:
            raise self._error(f"{call.function} looks a whole number of rows away", call.args[1])
        return self._typed(args[0]), distance.value

    def _typed(self, expr: bound.Expr) -> bound.Expr:
        return coerce(self.session, expr, Type.INTEGER) if expr.type is Type.NULL else expr

    def _error(self, reason: str, place: syntax.Syntax, hint: str = "") -> CqlError:
        return self.session.error(reason, place.span, "", hint)

    # -------------------------------------------------------------------------------------------------------- as nodes

    def over(self, node: bound.Node, shown: Sequence[bound.Expr]) -> tuple[bound.Node, list[bound.Expr]]:
        """The block's rows with the results of the calls, and the expressions of the select list over them."""
        columns: dict[bound.Expr, int] = {}

        def column(expr: bound.Expr) -> int:
            return columns.setdefault(expr, len(columns))

        plain = [not any(isinstance(e, bound.OverRef) for e in bound.walk(expr)) for expr in shown]
        for expr, is_plain in zip(shown, plain):
            if is_plain:
                column(expr)
        calls = [
            OverCall(
                w.function,
                w.type if w.type is not Type.NULL else Type.INTEGER,
                tuple(column(e) for e in w.partition),
                tuple((column(e), key) for e, key in w.order),
                w.label,
                None if w.arg is None else column(w.arg),
                w.frame,
                w.distance,
            )
            for w in self.calls
        ]
        for expr, is_plain in zip(shown, plain):
            if not is_plain:
                self._check_beside(expr)
                for e in bound.walk(expr):
                    if isinstance(e, bound.ColumnRef):
                        column(e)
        fields = tuple(
            Field(e.name if isinstance(e, bound.ColumnRef) else f"column{i + 1}", e.type) for e, i in columns.items()
        )
        over: bound.Node = bound.Project(Schema(fields), node, tuple(columns))
        for call in calls:
            first = call.order[0] if call.order else None
            in_order = (
                first is not None and not first[1].descending and is_instant(over, first[0], self.session.catalog)
            )
            over = bound.Over.of(over, call, in_order)
        refs = bound.column_refs(over.schema)

        def moved(e: bound.Expr) -> bound.Expr | None:
            if isinstance(e, bound.OverRef):
                return refs[len(columns) + e.index]
            return refs[columns[e]] if isinstance(e, bound.ColumnRef) else None

        exprs = [refs[columns[e]] if is_plain else rewrite(e, moved) for e, is_plain in zip(shown, plain)]
        return over, exprs

    def _check_beside(self, expr: bound.Expr) -> None:
        if any(bound.subqueries(e) for e in bound.walk(expr)):
            reason = "a subquery and OVER in one expression"
            raise self.session.error(reason, expr.span, "", "give one of them a column of its own in an inner query")


def is_instant(node: bound.Node, column: int, catalog: Catalog) -> bool:
    """Whether the column is known to hold the instant of each row's element, of the one stream beneath."""
    while True:
        match node:
            case bound.Project(exprs=exprs):
                expr = exprs[column]
                if not isinstance(expr, bound.ColumnRef):
                    return False
                node, column = node.input, expr.index
            case bound.Filter() | bound.Over() | bound.Window() if column < len(node.input.schema):
                node = node.input
            case bound.Stamped():
                if column == len(node.input.schema):
                    return True
                node = node.input
            case bound.BaseStream(name=name):
                return catalog.streams[name.lower()].timestamp_by == column
            case _:
                return False
