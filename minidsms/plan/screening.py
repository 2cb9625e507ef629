"""What a screen can know of a filter's condition: the box of values that its columns must have.

A conjunct says something of a column if it combines comparisons of that column alone with constants: =, <>, <, IN,
LIKE with a fixed beginning, IS NULL, IS DISTINCT FROM, a BOOLEAN column itself, and AND, OR and NOT of these. In SQL's
three-valued logic each has two sets of values: on which it is TRUE, and on which it is FALSE.

Invariant: such a conjunct cannot fail; what can fail, and what nobody can say in sets of values, is left to the filter.
docs/semantics R2, R4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from minidsms.cql import bound
from minidsms.cql.bound import Expr
from minidsms.cql.scalar import kept
from minidsms.elements import Type
from minidsms.expressions.like import fixed_beginning
from minidsms.expressions.logic import FLIPPED
from minidsms.plan.logical import conjuncts
from minidsms.screens.box import NOTHING, NULL, PRESENT, Box, Cut, Run, Values, all_of, any_of, float_key

_WHOLE = (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL)
_LEAST, _GREATEST = -(2**63), 2**63 - 1

Sides: TypeAlias = tuple[int, Values, Values]
"""(column, the values on which something is TRUE, those on which it is FALSE)."""


@kept
def box_of(condition: Expr) -> Box | None:
    """The box of a condition; None where it asks nothing of a single column, or a user function would notice that rows
    are missing.
    """
    parts = conjuncts(condition)
    if any(isinstance(e, bound.UserCall) for part in parts for e in bound.walk(part)):
        return None
    asked: dict[int, list[Values]] = {}
    is_all = True
    for part in parts:
        sides = _sides(part)
        if sides is None:
            is_all = False
        else:
            column, true, _ = sides
            asked.setdefault(column, []).append(true)
    box = Box.of({column: all_of(sets) for column, sets in asked.items()}, is_all)
    return box if box.columns else None


def _sides(expr: Expr) -> Sides | None:
    """Of a condition over one column; None where it is no such condition."""
    if isinstance(expr, bound.ColumnRef) and expr.type is Type.BOOLEAN:
        return expr.index, Values(((1, None),)), Values(((None, 1),))
    if not isinstance(expr, bound.Call):
        return None
    if expr.function in ("and", "or", "not"):
        return _combined(expr.function, [_sides(arg) for arg in expr.args])
    if expr.function in FLIPPED:
        return _comparison(expr.function, *expr.args)
    column = expr.args[0]
    if not isinstance(column, bound.ColumnRef):
        return None
    match expr.function:
        case "is null":
            return column.index, NULL, PRESENT
        case "in":
            return _member(column, expr.args[1:])
        case "like":
            return _like(column, expr.args[1:])
        case "is distinct from":
            same = _comparison("=", column, expr.args[1])
            return None if same is None else (column.index, same[2] | NULL, same[1])
        case _:
            return None


def _combined(function: str, parts: list[Sides | None]) -> Sides | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({column for column, _, _ in known}) != 1:
        return None
    column = known[0][0]
    if function == "not":
        return column, known[0][2], known[0][1]
    of_true, of_false = (all_of, any_of) if function == "and" else (any_of, all_of)
    return column, of_true([t for _, t, _ in known]), of_false([f for _, _, f in known])


def _comparison(function: str, left: Expr, right: Expr) -> Sides | None:
    if isinstance(left, bound.Literal):
        left, right, function = right, left, FLIPPED[function]
    if not isinstance(right, bound.Literal):
        return None
    if isinstance(left, bound.Cast) and isinstance(left.arg, bound.ColumnRef):
        if left.type is not Type.FLOAT or left.arg.type is not Type.INTEGER or type(right.value) is not float:
            return None
        low, high = _whole_numbers(right.value)
        return _sides_of(function, left.arg.index, low, high)
    if not isinstance(left, bound.ColumnRef) or left.type is not right.type:
        return None
    cuts = _cuts_around(left.type, right.value)
    return None if cuts is None else _sides_of(function, left.index, *cuts)


def _sides_of(function: str, column: int, low: Cut, high: Cut) -> Sides:
    """Of a comparison with what stands between two cuts (nothing, if they are one)."""
    equal = NOTHING if low == high else Values(((low, high),))
    less, greater = Values(((None, low),)), Values(((high, None),))
    match function:
        case "=":
            true = equal
        case "<>":
            true = equal.without()
        case "<":
            true = less
        case "<=":
            true = less | equal
        case ">":
            true = greater
        case _:
            true = greater | equal
    return column, true, true.without()


def _cuts_around(type_: Type, value: object) -> tuple[Cut, Cut] | None:
    """The cuts before and behind a constant of the type."""
    if type_ is Type.TEXT and isinstance(value, str):
        return (value, False), (value, True)
    if type_ in _WHOLE and isinstance(value, int) and not isinstance(value, bool):
        return value, value + 1
    if type_ is Type.BOOLEAN and isinstance(value, bool):
        return int(value), int(value) + 1
    if type_ is Type.FLOAT and isinstance(value, float) and value == value:
        return float_key(value), float_key(value) + 1
    return None


def _whole_numbers(value: float) -> tuple[int, int]:
    """The cuts around the whole numbers that are the value when they are taken as FLOATs."""
    return _least(lambda n: float(n) >= value), _least(lambda n: float(n) > value)


def _least(holds: Callable[[int], bool]) -> int:
    """The least whole number of 64 bits for which something holds that holds for all greater ones; 2**63: none."""
    low, high = _LEAST, _GREATEST + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _member(column: bound.ColumnRef, items: tuple[Expr, ...]) -> Sides | None:
    """Of IN. With NULL in its list it is TRUE for what is found, and FALSE for nothing."""
    found: list[Values] = []
    has_null = False
    for item in items:
        if isinstance(item, bound.Literal) and item.value is None:
            has_null = True
            continue
        one = _comparison("=", column, item)
        if one is None:
            return None
        found.append(one[1])
    true = any_of(found)
    return column.index, true, NOTHING if has_null else true.without()


def _like(column: bound.ColumnRef, rest: tuple[Expr, ...]) -> Sides | None:
    """Of LIKE where the pattern is a text, or one followed by %."""
    if column.type is not Type.TEXT or not all(isinstance(e, bound.Literal) for e in rest):
        return None
    pattern, *escape = [e.value for e in rest if isinstance(e, bound.Literal)]
    if not isinstance(pattern, str) or not all(isinstance(e, str) for e in escape):
        return None
    found = fixed_beginning(pattern, str(escape[0]) if escape else "")
    if found is None:
        return None
    beginning, is_whole = found
    run: Run = ((beginning, False), (beginning, True) if is_whole else _behind_all_with(beginning))
    true = Values((run,)) if beginning or is_whole else PRESENT
    return column.index, true, true.without()


def _behind_all_with(beginning: str) -> Cut | None:
    """The cut behind every text that begins so; None: there is nothing behind."""
    last = chr(0x10FFFF)
    kept = beginning.rstrip(last)
    return (kept[:-1] + chr(ord(kept[-1]) + 1), False) if kept else None
