"""What ASOF JOIN compares: keys by equalities, and the instants of both sides (docs/semantics R11).

Invariant: what leaves here says that each key is a column of the right stream, and that at most one comparison of order
is of instants, in which those of the right stream are not later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from minidsms.cql import syntax
from minidsms.cql.errors import CqlError
from minidsms.cql.printer import print_expression, print_name
from minidsms.cql.scope import Ambiguous, Scope, ambiguous
from minidsms.cql.session import Session, parts

StreamItem: TypeAlias = syntax.TableRef | syntax.QueryRef | syntax.ParenthesisedRef

INSTANTS = ("ts", "current_timestamp")
"""What the instant of a row is called, where no column has the name."""


@dataclass(frozen=True)
class Ordered:
    """A comparison of order, turned so that the column of the right stream stands behind."""

    written: syntax.Expr
    op: str
    ours: syntax.Expr
    theirs: syntax.Name


@dataclass(frozen=True)
class Compared:
    """What ON, MATCH_CONDITION and USING compare.

    merged: the keys that USING names.  keys, equal: the columns of the right stream in other equalities, and these.
    instant: the last name of USING, where no MATCH_CONDITION stands beside it.  form: the condition as it may be.
    """

    merged: tuple[syntax.Name, ...]
    keys: tuple[syntax.Name, ...]
    equal: tuple[syntax.Expr, ...]
    ordered: tuple[Ordered, ...]
    instant: syntax.Name | None
    form: str


def stream_item(session: Session, item: syntax.FromItem) -> StreamItem:
    """The item, where it may be a stream of its own."""
    inner = item
    while isinstance(inner, syntax.ParenthesisedRef):
        inner = inner.item
    if isinstance(inner, syntax.TableRef | syntax.QueryRef):
        assert isinstance(item, StreamItem)
        return _window_outside(item)
    hint = "one stands behind another: FROM S ASOF JOIN T ON .. ASOF JOIN U ON .., or in (SELECT ..) AS x"
    if isinstance(inner, syntax.Unnest):
        hint = "UNNEST stands behind the join: FROM S ASOF JOIN T ON .., UNNEST(S.list) AS e"
    elif not inner.as_of:
        hint = "other joins stand behind it: FROM S ASOF JOIN T ON S.k = T.k AND S.ts >= T.ts JOIN R ON S.k = R.k"
    raise session.error("ASOF JOIN joins two streams", item.span, "", hint)


def _window_outside(item: StreamItem) -> StreamItem:
    """`(S [RANGE 3])` as `(S) [RANGE 3]`."""
    if not isinstance(item, syntax.ParenthesisedRef) or item.window is not None:
        return item
    assert isinstance(item.item, StreamItem)
    inner = _window_outside(item.item)
    return replace(item, item=replace(inner, window=None), window=inner.window)


def left_window(session: Session, item: StreamItem) -> syntax.Window:
    """The window over the elements of the left stream, by default all."""
    window = item.window or syntax.UnboundedWindow()
    if isinstance(window, syntax.RowsWindow | syntax.PartitionWindow | syntax.SessionWindow):
        behind = f"FROM (SELECT * FROM S ASOF JOIN T ON ..) AS x {session.snippet(window.span)}"
        hint = f"of the rows that find one {behind}, of all with ASOF LEFT JOIN"
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
    """The comparisons of ON, MATCH_CONDITION and USING; CqlError for what is none of a key or of order."""
    merged, instant = ref.using, None
    if ref.on is None:
        *keys_named, instant = ref.using
        merged = tuple(keys_named)
    keys, equal, ordered, others = [], [], [], []
    for part in [] if ref.on is None else _column_by_column(ref.on):
        op, ours, theirs = _sides(part, left, right)
        if theirs is None:
            others.append(part)
        elif op == "=":
            keys.append(theirs)
            equal.append(part)
        else:
            ordered.append(Ordered(part, op, ours, theirs))
    mine, yours = (_called(scope) for scope in (left, right))
    shown = [f"{mine}.{print_name(name.name)} = {yours}.{print_name(name.name)}" for name in _named_keys(merged)]
    shown += [print_expression(part) for part in equal if not _is_of_instants(part)]
    form = f"ON {' AND '.join([*shown, f'{mine}.{_instant(left)} >= {yours}.{_instant(right)}'])}"
    found = Compared(merged, tuple(keys), tuple(equal), tuple(ordered), instant, form)
    for part in others:
        raise _another(session, part, found, left, right)
    for part, key in zip((*merged, *equal), (*merged, *keys)):
        if key.name.lower() in INSTANTS and right.find(key.name, key.qualifier) is None:
            raise using_refused(session, ref, found, left, right) if ref.using else _once(session, part, found)
    return found


def check_instants(
    session: Session,
    ref: syntax.Join,
    found: Compared,
    left: Scope,
    right: Scope,
    of_left: Callable[[syntax.Expr], bool],
    of_right: Callable[[syntax.Expr], bool],
) -> None:
    """CqlError unless instants of both sides are compared once, and nothing else by order.

    of_left, of_right: whether an expression is known to hold the instants of the side.
    """
    if found.instant is not None:
        if not (of_right(found.instant) and of_left(found.instant)):
            raise using_refused(session, ref, found, left, right)
        return
    known = [(each, of_left(each.ours), of_right(each.theirs)) for each in found.ordered]
    instants = [each for each, is_ours, is_theirs in known if is_ours and is_theirs]
    for each in instants:
        if each.op != ">=":
            note = "a row is found from its own instant on" if each.op == ">" else "what comes later is not known yet"
            reason = "an ASOF JOIN finds what is not later"
            raise session.error(reason, each.written.span, note, f"write {found.form}")
    if not known or instants[1:]:
        raise _once(session, instants[1].written if known else ref.on or ref, found)
    for each, is_ours, is_theirs in known:
        if not instants:
            name, scope = (each.theirs, right) if is_ours else (each.ours, left)
            note = f"the instant of a row is {_called(scope)}.{_instant(scope)}, and the column that TIMESTAMP BY names"
            raise session.error("an ASOF JOIN compares instants", name.span, note, f"write {found.form}")
        if not (is_ours and is_theirs):
            raise _another(session, each.written, found, left, right)


def using_refused(session: Session, ref: syntax.Join, found: Compared, left: Scope, right: Scope) -> CqlError:
    """The error for a USING that does not name the keys, and last the instants."""
    hint = f"write USING ({', '.join([*(print_name(name.name) for name in _named_keys(ref.using)), 'ts'])})"
    if ref.on is not None or "current_timestamp" in (_instant(left), _instant(right)):
        hint = f"write {found.form}"
    note = "USING names the keys, and last the instants"
    return session.error("an ASOF JOIN compares instants", ref.using[-1].span, note, hint)


def _once(session: Session, part: syntax.Syntax, found: Compared) -> CqlError:
    reason = "an ASOF JOIN compares the instants of both sides once, by >="
    return session.error(reason, part.span, "", f"write {found.form}")


def _another(session: Session, part: syntax.Expr, found: Compared, left: Scope, right: Scope) -> CqlError:
    """The error for a condition that is neither of a key nor of the instants."""
    for name in _names(part):
        if name.qualifier is None and all(_has(s, name) for s in (left, right)):
            return ambiguous(name.name, [s.tables[0].alias for s in (left, right)], session.text, name.span)
    table, alias = print_name(right.tables[0].declared or "T"), _called(right)
    source = f"FROM {table}" if table == alias else f"FROM {table} AS {alias}"
    within = f"(SELECT * {source} WHERE ..) AS {alias}"
    hint = f"write {found.form}; a condition on what is found stands in WHERE, on what may be found in {within}"
    key = _computed_key(part, left, right)
    if key is not None:
        ours, theirs = map(print_expression, key)
        hint = f"a key is a column: (SELECT *, {theirs} AS key {source}) AS {alias}, and {ours} = {alias}.key"
    reason = "an ASOF JOIN compares columns of its right side, by = and once by >="
    return session.error(reason, part.span, "", hint)


def _computed_key(part: syntax.Expr, left: Scope, right: Scope) -> tuple[syntax.Expr, syntax.Expr] | None:
    """Both sides of an equality with what is computed of columns of the right stream alone."""
    if not isinstance(part, syntax.Binary) or part.op != "=":
        return None
    for ours, theirs in ((part.left, part.right), (part.right, part.left)):
        mine, other = ([_is_of(name, right, left) for name in _names(side)] for side in (theirs, ours))
        if mine and all(mine) and not any(other) and not isinstance(theirs, syntax.Row):
            return ours, theirs
    return None


def _names(expr: syntax.Expr) -> list[syntax.Name]:
    return [part for part in parts(expr, syntax.Query) if isinstance(part, syntax.Name)]


def _named_keys(using: tuple[syntax.Name, ...]) -> list[syntax.Name]:
    return [name for name in using if name.name.lower() not in INSTANTS]


def _called(scope: Scope) -> str:
    return print_name(scope.tables[0].alias or "t")


def _instant(scope: Scope) -> str:
    """What the instant is called that no column hides."""
    return "current_timestamp" if any(c.name.lower() == "ts" for c in scope.tables[0].columns) else "ts"


def _is_of_instants(part: syntax.Expr) -> bool:
    return all(name.name.lower() in INSTANTS for name in _names(part))


def _column_by_column(condition: syntax.Expr) -> Iterator[syntax.Expr]:
    """What AND connects, with `(a, b) = (c, d)` as `a = c AND b = d`."""
    for part in syntax.conjuncts(condition):
        match part:
            case syntax.Binary("=", syntax.Row(ours), syntax.Row(theirs)) if len(ours) == len(theirs):
                yield from (syntax.Binary("=", a, b, span=part.span) for a, b in zip(ours, theirs))
            case _:
                yield part


def _sides(part: syntax.Expr, left: Scope, right: Scope) -> tuple[str, syntax.Expr, syntax.Name | None]:
    """A comparison turned so that the column of the right side stands behind; None where it is none."""
    ways: tuple[tuple[str, syntax.Expr, syntax.Expr], ...] = ()
    if isinstance(part, syntax.Binary) and part.op in _TURNED:
        ways = (part.op, part.left, part.right), (_TURNED[part.op], part.right, part.left)
    elif isinstance(part, syntax.IsDistinctFrom) and part.negated:
        ways = ("=", part.left, part.right), ("=", part.right, part.left)
    for op, ours, theirs in ways:
        if isinstance(theirs, syntax.Name) and _is_of(theirs, right, left):
            return op, ours, None if any(_is_of(name, right, left) for name in _names(ours)) else theirs
    return "", part, None


_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _is_of(name: syntax.Name, mine: Scope, other: Scope) -> bool:
    """Whether it is a column that only these tables have."""
    if name.qualifier is not None:
        return mine.table(name.qualifier) is not None
    return _has(mine, name) and not _has(other, name)


def _has(scope: Scope, name: syntax.Name) -> bool:
    try:
        return scope.find(name.name, None) is not None
    except Ambiguous:
        return True
