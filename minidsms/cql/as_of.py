"""What ASOF JOIN compares: keys by equalities, and the instants of both sides (docs/semantics R11).

Invariant: what leaves here says that each key is a column of the right stream, and that exactly one comparison is of
instants, in which those of the right stream are not later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from minidsms.cql import syntax
from minidsms.cql.scope import Ambiguous, Scope
from minidsms.cql.session import Session

_FORM = "write ON s.k = t.k AND s.ts >= t.ts"

StreamItem: TypeAlias = syntax.TableRef | syntax.QueryRef | syntax.ParenthesisedRef


@dataclass(frozen=True)
class Compared:
    """keys: the columns of the right stream, for its window.  equal: their equalities; of USING none.

    earlier, later: the instant of the right stream, and the one that is not before it.
    """

    keys: tuple[syntax.Name, ...]
    equal: tuple[syntax.Expr, ...]
    earlier: syntax.Name
    later: syntax.Name


def stream_item(session: Session, item: syntax.FromItem) -> StreamItem:
    """The item, where it may be a stream of its own."""
    if isinstance(item, StreamItem):
        return item
    hint = "put the join around it: FROM (SELECT * FROM S AS s ASOF JOIN T AS t ON ..) AS x JOIN .."
    raise session.error("ASOF JOIN joins two streams", item.span, "", hint)


def left_window(session: Session, item: StreamItem) -> syntax.Window:
    """The window over the elements of the left stream, by default all."""
    window = item.window or syntax.UnboundedWindow()
    if isinstance(window, syntax.RowsWindow | syntax.PartitionWindow | syntax.SessionWindow):
        hint = (
            "say which rows are counted, those of S or those that find one: "
            "FROM (SELECT RSTREAM(..) FROM S [NOW] AS s JOIN T [PARTITION BY k ROWS 1] AS t ON s.k = t.k) [ROWS 10]"
        )
        raise session.error("the left side of an ASOF JOIN has a window by time", window.span, "", hint)
    return window


def without_window(session: Session, item: StreamItem) -> StreamItem:
    """The right stream, whose window is the last row of each key."""
    if item.window is None or isinstance(item.window, syntax.UnboundedWindow):
        return item
    hint = "with another window: FROM S [NOW] AS s JOIN T [PARTITION BY k ROWS 1 RANGE 5 SECONDS] AS t ON s.k = t.k"
    note = "it finds the last row of each key"
    raise session.error("the right side of an ASOF JOIN has no window", item.window.span, note, hint)


def compared(session: Session, ref: syntax.Join, left: Scope, right: Scope) -> Compared:
    """The conditions of ON, or of USING, whose last column holds the instants."""
    if ref.using:
        *keys, instant = ref.using
        return Compared(tuple(keys), (), instant, instant)
    assert ref.on is not None
    keys, equal, instants = [], [], []
    for part in syntax.conjuncts(ref.on):
        op, ours, theirs = _sides(part, left, right)
        if theirs is None:
            reason = "an ASOF JOIN compares columns of its right side, by = and once by >="
            raise session.error(reason, part.span, "", f"{_FORM}; other conditions stand in WHERE")
        if op == "=":
            keys.append(theirs)
            equal.append(part)
        elif op == ">=" and isinstance(ours, syntax.Name):
            instants.append((part, theirs, ours))
        else:
            note = "a row is found from its own instant on" if op == ">" else "what comes later is not known yet"
            raise session.error("an ASOF JOIN finds what is not later", part.span, note, _FORM)
    if len(instants) != 1:
        span = instants[1][0].span if instants else ref.on.span
        raise session.error("an ASOF JOIN compares the instants of both sides once", span, "", _FORM)
    return Compared(tuple(keys), tuple(equal), *instants[0][1:])


def _sides(part: syntax.Expr, left: Scope, right: Scope) -> tuple[str, syntax.Expr, syntax.Name | None]:
    """A comparison turned so that the column of the right side stands behind; None where it is none."""
    if isinstance(part, syntax.Binary) and part.op in _TURNED:
        if _is_of(part.right, right, left):
            assert isinstance(part.right, syntax.Name)
            return part.op, part.left, part.right
        if _is_of(part.left, right, left):
            assert isinstance(part.left, syntax.Name)
            return _TURNED[part.op], part.right, part.left
    return "", part, None


_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _is_of(expr: syntax.Expr, mine: Scope, other: Scope) -> bool:
    """Whether it is a column that only these tables have."""
    if not isinstance(expr, syntax.Name):
        return False
    if expr.qualifier is not None:
        return mine.table(expr.qualifier) is not None
    try:
        return mine.find(expr.name, None) is not None and other.find(expr.name, None) is None
    except Ambiguous:
        return False
