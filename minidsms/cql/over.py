"""OVER: the calls of a block that look at the rows beside a row, and the columns that they become.

While a select list is bound, a call stands as an `OverRef`. Then the block's rows are projected to what it shows and
what its calls look at, each call appends its result, and the select list is read from there.

Invariant: the columns projected decide the order of rows that are equal in all keys (docs/semantics R7), so a row is
told apart by nothing that the block does not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from minidsms.aggregates import AGGREGATES as TABLE
from minidsms.aggregates import SYNONYMS
from minidsms.aggregates.aggregate import Settings, SortKey
from minidsms.aggregates.collected import number_of_values
from minidsms.aggregates.over import (
    AGGREGATES,
    FILLING,
    IN_ORDER,
    NEIGHBOURS,
    PARTITION,
    PEERS,
    PLACES,
    RANKS,
    SHARES,
    Frame,
    OverCall,
)
from minidsms.cql import bound, syntax
from minidsms.cql.aggregate_calls import AggregateCallBinder
from minidsms.cql.catalog import Catalog
from minidsms.cql.coercion import agree, typed
from minidsms.cql.errors import CqlError
from minidsms.cql.scalar import rewrite
from minidsms.cql.session import Session
from minidsms.cql.times import UNIT_NS, NotATime, duration_ticks
from minidsms.cql.window_spec import WindowKind
from minidsms.cql.windows import ticks
from minidsms.elements import Field, Schema, Type
from minidsms.values.types import known_type

_KNOWN = f"aggregates and {', '.join(map(str.upper, (*RANKS, *SHARES, *NEIGHBOURS, *PLACES)))}"
_WITH_NUMBER = {
    "lag": "LAG takes a value, how many rows it stands away, and what it is where no row does",
    "lead": "LEAD takes a value, how many rows it stands away, and what it is where no row does",
    "nth_value": "NTH_VALUE takes a value and which of the frame's rows it is of, from 1",
    "ntile": "NTILE takes the number of parts",
    "first_value": "FIRST_VALUE takes one value",
    "last_value": "LAST_VALUE takes one value",
}
_IN_FRAMES = {"first": "first_value", "last": "last_value"}
"""Aggregates by arrival, which the order of a frame takes the place of."""
_OF_DISTANCE = (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL, Type.DATE)
"""The types of keys that frames reach from by a distance."""


class _Shape(NamedTuple):
    """What is called, of what; as in `OverCall`. several: the values that the argument holds, if several."""

    function: str
    type: Type
    arg: bound.Expr | None = None
    distance: int | None = None
    frame: Frame = PARTITION
    settings: Settings | None = None
    distinct: bool = False
    several: tuple[bound.Expr, ...] = ()
    user: bool = False


@dataclass(frozen=True)
class _Written:
    """A call over the block's row."""

    shape: _Shape
    partition: tuple[bound.Expr, ...]
    order: tuple[tuple[bound.Expr, SortKey], ...]
    default: bound.Expr | None
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
        within: Sequence[bound.Expr] = (),
    ) -> bound.Expr:
        """A placeholder for the result of a call, whose parts are bound. within: what WITHIN GROUP names."""
        call = over.call
        name = call.function.lower()
        user = self.session.catalog.aggregates.get(name)
        if user is None:
            name = SYNONYMS.get(name, name)
            if len(args) == 1:
                name = _IN_FRAMES.get(call.function.lower(), name)
        takes_lists = user is not None or name in (*NEIGHBOURS, *PLACES, *IN_ORDER, "count")
        for expr in (*order, *within, *(() if takes_lists else args)):
            if expr.type.is_nested:
                raise self.session.error("lists have no order", expr.span, "", "take an element")
        args, default = self._with_default(call, name, args)
        keys = tuple(SortKey(key.descending, bool(key.nulls_first)) for key in over.order)
        if user is None:
            shape = self._shape(over, name, args, order, within)
        else:
            shape = self._of_user(over, name, user.type, args, order)
        label = self.session.snippet(call.span)
        ordered = tuple(zip([typed(self.session, e) for e in order], keys))
        parted = tuple([typed(self.session, e) for e in partition])
        if over.frame is not None and over.frame.unit == "groups" and shape.frame.is_by_distance:
            # So many groups of equal keys away is so far away in the numbers of these.
            number = self._place(_Written(_Shape("dense_rank", Type.INTEGER), parted, ordered, None, "DENSE_RANK()"))
            ordered = ((bound.OverRef(Type.INTEGER, number), SortKey()),)
        fills = shape.function in FILLING or (name in NEIGHBOURS and shape.settings is not None)
        written = _Written(shape, parted, ordered, None if fills else default, label)
        found: bound.Expr = bound.OverRef(shape.type, self._place(written), span=over.span)
        if name in NEIGHBOURS and shape.settings is not None:
            assert shape.arg is not None
            found = _farthest(found, shape.arg.type, name == "lag", shape.settings.parameters[0])
        if fills and default is not None:
            return bound.Call(found.type, "coalesce", (found, default), span=over.span)
        return found

    def _place(self, call: _Written) -> int:
        """The number of a call."""
        if call not in self.calls:
            self.calls.append(call)
        return self.calls.index(call)

    def _shape(
        self, over: syntax.Over, name: str, args: Sequence[bound.Expr], order: Sequence[bound.Expr],
        within: Sequence[bound.Expr],
    ) -> _Shape:  # fmt: skip
        call, frame = over.call, over.frame
        has_nulls = (name in (*NEIGHBOURS, *PLACES) and name != "nth_value") or name in IN_ORDER
        if (call.order and not call.within) or (call.nulls and not has_nulls):
            hint = "values come in the order of OVER" if call.order else "no NULLS"
            raise self._error(f"{call.function} with OVER takes its arguments only", over, hint)
        if call.distinct and name not in TABLE:
            raise self._error(f"{call.function} takes no DISTINCT", over)
        if name in (*RANKS, *SHARES, *NEIGHBOURS):
            if frame is not None:
                raise self._error(f"{call.function} looks at no frame", frame, f"leave {frame.unit.upper()} out")
            if not over.order and name != "row_number":
                raise self._error(f"{call.function} needs an order", over, "OVER (PARTITION BY .. ORDER BY ..)")
        if name in (*RANKS, "percent_rank", "cume_dist"):
            if args or call.args:
                raise self._error(f"{call.function} takes no argument", call)
            return _Shape(name, Type.INTEGER if name in RANKS else Type.FLOAT)
        if name in _WITH_NUMBER:
            arg, distance = self._with_number(call, name, args)
            type_ = Type.INTEGER if name == "ntile" else args[0].type
            if call.nulls == "ignore":
                return self._filling(over, name, arg, distance, order)
            return _Shape(name, type_, arg, distance, self._frame(over, order) if name in PLACES else PARTITION)
        if name not in TABLE:
            raise self._error(f"{call.function} takes no OVER", call, f"with OVER stand {_KNOWN}")
        if not args and call.args:
            return _Shape("count", Type.INTEGER, frame=self._frame(over, order))
        found = AggregateCallBinder(self.session, call, name).bind(args, within)
        function, arg, settings, several = found.function, found.arg, found.settings, found.args
        if function == "sum_decimal":
            function, arg, settings = "sum", found.args[0], None
        elif settings is not None:
            arg = found.args[0]
        if function not in AGGREGATES:
            raise self._error(f"{call.function} takes no OVER", call, f"with OVER stand {_KNOWN}")
        if function in IN_ORDER and call.distinct:
            raise self._error(f"{call.function} with OVER takes no DISTINCT", over, "values come in the order of OVER")
        if settings is None or settings.values == 1:
            return _Shape(function, found.type, arg, None, self._frame(over, order), settings, found.distinct)
        arg, several = _together(several), tuple(several)
        return _Shape(function, found.type, arg, None, self._frame(over, order), settings, several=several)

    def _of_user(
        self, over: syntax.Over, name: str, type_: Type, args: Sequence[bound.Expr], order: Sequence[bound.Expr]
    ) -> _Shape:
        """A user's aggregate of the rows of a frame."""
        call = over.call
        if call.distinct or call.order or call.nulls:
            raise self._error("a user aggregate takes arguments only", over, "no DISTINCT, no order")
        if not args:
            raise self._error(f"{call.function} has no argument and takes no OVER", call, "declare it with one")
        several = tuple(args) if len(args) > 1 else ()
        arg = _together(several) if several else args[0]
        return _Shape(name, type_, arg, frame=self._frame(over, order), several=several, user=True)

    def _filling(
        self, over: syntax.Over, name: str, arg: bound.Expr | None, distance: int | None, order: Sequence[bound.Expr]
    ) -> _Shape:
        """IGNORE NULLS: the nearest value of the rows before and behind, or the first or last one of the frame."""
        assert arg is not None
        if arg.type.is_nested:
            raise self._error(f"{over.call.function} IGNORE NULLS takes no {arg.type}", over.call)
        before_and_behind = {"lag": Frame(False, None, -1), "lead": Frame(False, 1, None)}
        frame = before_and_behind.get(name) or self._frame(over, order)
        if distance is not None and distance > 1:
            problem = number_of_values(distance)
            if problem is not None:
                raise self._error(f"{over.call.function} IGNORE NULLS: {problem}", over)
            of_rows = Settings(1, (distance,), by_arrival=True)
            function = "last_n" if name == "lag" else "first_n"
            return _Shape(function, arg.type.list_type, arg, frame=frame, settings=of_rows)
        if distance == 0:
            raise self._error(f"{over.call.function} IGNORE NULLS looks at other rows", over, "write a number from 1")
        return _Shape("first" if name in ("first_value", "lead") else "last", arg.type, arg, frame=frame)

    def _frame(self, over: syntax.Over, order: Sequence[bound.Expr]) -> Frame:
        """The frame that is written, or the one that is meant where none is."""
        written = over.frame
        if written is None:
            return PEERS if over.order else PARTITION
        if written.unit == "groups" and not over.order:
            raise self._error("GROUPS needs an order", written, "OVER (PARTITION BY .. ORDER BY .. GROUPS ..)")
        is_of_days = written.unit == "range" and len(order) == 1 and order[0].type is Type.DATE
        lengths = [each.length for each in (written.start, written.end) if each.length is not None]
        has_distance = written.unit == "range" and any(length.number.strip("0.") for length in lengths)
        if has_distance and (len(order) != 1 or order[0].type not in _OF_DISTANCE):
            reason = "RANGE with a distance needs one key, an INTEGER, a TIMESTAMP, an INTERVAL or a DATE"
            raise self._error(
                reason, written, "ORDER BY ts RANGE 10 SECONDS PRECEDING, or count rows: ROWS n PRECEDING"
            )
        start, end = (self._bound_of(written, each, is_of_days) for each in (written.start, written.end))
        if start is not None and end is not None and start > end:
            raise self._error("a frame begins before it ends", written, "BETWEEN n PRECEDING AND CURRENT ROW")
        frame = Frame(written.unit != "rows", start, end)
        if not over.order and frame.by_value:
            return PARTITION
        return frame

    def _bound_of(self, frame: syntax.Frame, bound_: syntax.FrameBound, is_of_days: bool) -> int | None:
        length = bound_.length
        if length is None:
            return None if bound_.direction else 0
        if frame.unit != "range" and (length.unit is not None or not length.number.isdecimal()):
            reason = "ROWS counts rows" if frame.unit == "rows" else "GROUPS counts groups of rows with equal keys"
            raise self._error(reason, bound_, "a length of time stands behind RANGE")
        n = self._days(length) if is_of_days else ticks(self.session, length)
        return n * bound_.direction

    def _days(self, length: syntax.Duration) -> int:
        """How many days away a DATE is; so many where the length has no unit."""
        try:
            return duration_ticks(length.number, length.unit or "day", UNIT_NS["day"])
        except NotATime:
            hint = "RANGE BETWEEN INTERVAL '3 days' PRECEDING AND .."
            raise self._error("a DATE is whole days away", length, hint) from None

    def _with_number(
        self, call: syntax.Call, name: str, args: Sequence[bound.Expr]
    ) -> tuple[bound.Expr | None, int | None]:
        """The argument, and the number that is written behind it, or by itself."""
        takes_number = name not in ("first_value", "last_value")
        values = args if name == "ntile" else args[1:]
        most = (0 if name == "ntile" else 1) + takes_number
        if not (len(args) == most or (name in NEIGHBOURS and len(args) == 1)):
            raise self._error(_WITH_NUMBER[name], call)
        arg = None if name == "ntile" else typed(self.session, args[0])
        if not values:
            return arg, 1 if name in NEIGHBOURS else None
        number, least = values[0], 0 if name in NEIGHBOURS else 1
        if not isinstance(number, bound.Literal) or type(number.value) is not int or number.value < least:
            what, hint = "takes a number from 1", ""
            if name in NEIGHBOURS:
                what, called = "looks a whole number of rows away", call.function.upper()
                hint = f"by a column: CASE n WHEN 1 THEN {called}(x, 1) OVER w WHEN 2 THEN {called}(x, 2) OVER w END"
            raise self._error(f"{call.function} {what}", call.args[name != "ntile"], hint)
        return arg, number.value

    def _with_default(
        self, call: syntax.Call, name: str, args: Sequence[bound.Expr]
    ) -> tuple[Sequence[bound.Expr], bound.Expr | None]:
        """The arguments without the default of LAG and LEAD, and this; both it and the value have one type."""
        if name not in NEIGHBOURS or len(args) != 3:
            return args, None
        value, default = agree(self.session, (args[0], args[2]), f"{call.function} cannot give both")
        return (value, args[1]), typed(self.session, default)

    def _error(self, reason: str, place: syntax.Syntax, hint: str = "") -> CqlError:
        return self.session.error(reason, place.span, "", hint)

    # -------------------------------------------------------------------------------------------------------- as nodes

    def over(self, node: bound.Node, shown: Sequence[bound.Expr]) -> tuple[bound.Node, list[bound.Expr]]:
        """The block's rows with the results of the calls, and the expressions of the select list over them."""
        columns: dict[bound.Expr, int] = {}

        def column(expr: bound.Expr) -> int:
            """Its number; of the result of a call, which stands behind all columns, -1 less that of the call."""
            return -1 - expr.index if isinstance(expr, bound.OverRef) else columns.setdefault(expr, len(columns))

        def argument(shape: _Shape) -> int | None:
            for expr in shape.several:  # by these rows that are equal in the keys are sorted
                column(expr)
            return None if shape.arg is None else column(shape.arg)

        plain = [not any(isinstance(e, bound.OverRef) for e in bound.walk(expr)) for expr in shown]
        for expr, is_plain in zip(shown, plain):
            if is_plain:
                column(expr)
        calls = [
            OverCall(
                w.shape.function,
                known_type(w.shape.type),
                tuple(column(e) for e in w.partition),
                tuple((column(e), key) for e, key in w.order),
                w.label,
                argument(w.shape),
                w.shape.frame,
                w.shape.distance,
                None if w.default is None else column(w.default),
                w.shape.settings,
                w.shape.distinct,
                len(w.shape.several) or 1,
                w.shape.user,
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
            call = replace(call, order=tuple((i if i >= 0 else len(columns) - 1 - i, key) for i, key in call.order))
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
            case bound.ByRow() | bound.Over() | bound.Window() if column < len(node.input.schema):
                node = node.input
            case bound.Stamped():
                if column == len(node.input.schema):
                    return True
                node = node.input
            case bound.RelationToStream():
                held = _held_as_it_comes(node, column)
                if held is None:
                    return False
                node, column = held
            case bound.BaseStream(name=name):
                return catalog.streams[name.lower()].timestamp_by == column
            case _:
                return False


def _held_as_it_comes(stream: bound.RelationToStream, column: int) -> tuple[bound.Window, int] | None:
    """The window that the column is of, where the stream has each row at the instant of that window's element."""
    node, is_plain = stream.input, stream.op is bound.StreamKind.ISTREAM
    while stream.op is not bound.StreamKind.DSTREAM:
        match node:
            case bound.Project(exprs=exprs):
                expr = exprs[column]
                if not isinstance(expr, bound.ColumnRef):
                    return None
                is_plain = is_plain and not any(map(bound.subqueries, exprs))
                node, column = node.input, expr.index
            case bound.Filter(condition=condition):
                is_plain = is_plain and not bound.subqueries(condition)
                node = node.input
            case bound.Distinct():
                node = node.input
            case bound.Join(join=bound.JoinKind.INNER | bound.JoinKind.LEFT) if column < len(node.left.schema):
                node, is_plain = node.left, False
            case bound.Window(spec=spec) if spec.is_now or (
                is_plain and spec.slide is None and spec.kind is not WindowKind.SESSION
            ):
                return node, column
            case _:
                return None
    return None


def _together(values: Sequence[bound.Expr]) -> bound.Expr:
    """The STRUCT of several values; NULL where one of them is."""
    type_ = Type.struct([(f"f{i}", known_type(value.type)) for i, value in enumerate(values)])
    some = [bound.Call(Type.BOOLEAN, "not", (bound.Call(Type.BOOLEAN, "is null", (value,)),)) for value in values]
    made = bound.Call(type_, "struct", tuple(values))
    return bound.Case(type_, ((bound.Call(Type.BOOLEAN, "and", tuple(some)), made),), bound.Literal(type_, None))


def _farthest(nearest: bound.Expr, type_: Type, is_before: bool, n: int) -> bound.Expr:
    """Of the list of the n nearest values before a row, or behind it, that farthest away; NULL where it has fewer."""
    places = [bound.Literal(Type.INTEGER, i) for i in ((n, 1) if is_before else (n, n))]
    count = bound.Call(Type.INTEGER, "cardinality", (nearest,))
    has_all = bound.Call(Type.BOOLEAN, "=", (count, places[0]))
    found = bound.Call(type_, "element_at", (nearest, places[1]))
    return bound.Case(type_, ((has_all, found),), bound.Literal(type_, None))
