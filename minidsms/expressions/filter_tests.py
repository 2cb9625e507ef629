"""What a filter asks of one value: a range, a list, or TRUE itself.

Most filters compare something with constants: `price < 50`, `auction % 123 = 0`, `road IN ('A1', 'A8')`. Such a filter
is split into an operand, computed like any expression, and a test, which takes the rows still in question to those
that pass. Tests are compiled once for all queries (`minidsms.kernels.filtering`); before the kernels are loaded, and
for operands that are neither integers nor floats, numpy does the same.

Invariant: a test sees neither NULL nor failed values; both ways of a test keep the same rows.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from minidsms.cql import bound
from minidsms.elements import INT64_MAX, INT64_MIN, AnyArray, BoolArray, Column, Int64Array, Type
from minidsms.expressions.logic import FLIPPED
from minidsms.expressions.value import FEW, KERNELS_FROM, constants
from minidsms.kernels.arrays import normal
from minidsms.machine_code.compile_time import COMPILED
from minidsms.values.dictionary import TextDictionary

DENSE, AT, GATHERED = 0, 1, 2
"""Where the values stand: see `minidsms.kernels.filtering`."""

_WHOLE = frozenset((Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL))
_NO_ROWS = np.zeros(0, np.int64)
_FIRST = np.zeros(1, np.int64)


class ValueTest(Protocol):
    """Takes rows to those whose value passes."""

    def mask(self, values: AnyArray) -> BoolArray:
        """TRUE where a value passes, of the values' shape."""

    def passes(self, value: Any) -> bool:
        """Whether one value does, given as Python's."""

    def compiled(self, values: AnyArray, rows: Int64Array, layout: int) -> Int64Array | None:
        """The rows that pass, by a kernel; None where there is none for such values."""

    def words(self) -> tuple[int, ...] | None:
        """What the kernel of programs reads of it (`kernels.expressions`): its kind, what it asks, and whether it is
        negated; None where there is no such kind. Addresses are good as long as the test is there.
        """


def keep(test: ValueTest, values: AnyArray, rows: Int64Array | None, layout: int, use_kernels: bool) -> Int64Array:
    """The positions that pass, ascending. rows: those in question, None for all (then the layout is DENSE)."""
    if len(values) == 1:
        rows = _FIRST if rows is None else rows
        return rows if len(rows) and test.passes(values.item()) else _NO_ROWS
    if use_kernels:
        kept = test.compiled(values, _NO_ROWS if rows is None else rows, layout)
        if kept is not None:
            return kept
    if layout == AT:
        assert rows is not None
        values = values[rows]
    mask = test.mask(values)
    return mask.nonzero()[0] if rows is None else rows[mask]


def has_kernels(tuples: int) -> bool:
    """Kernels are loaded, now if it pays for so many tuples. Whether they must be compiled makes no difference: what is
    adapted must not depend on it.
    """
    if "minidsms.kernels.filtering" not in sys.modules:
        if tuples < KERNELS_FROM:
            return False
        with COMPILED.counted():
            importlib.import_module("minidsms.kernels.filtering")
    return True


class IsTrue:
    """The operand is BOOLEAN and decides itself."""

    def mask(self, values: AnyArray) -> BoolArray:
        return values  # type: ignore[return-value]

    def passes(self, value: Any) -> bool:
        return bool(value)

    def compiled(self, values: AnyArray, rows: Int64Array, layout: int) -> Int64Array | None:
        return None

    def words(self) -> tuple[int, ...] | None:
        return None


@dataclass(frozen=True)
class IntegerRange:
    """lo <= value % divisor <= hi, or not so; divisor 0: of the value itself. The remainder has the value's sign."""

    lo: int
    hi: int
    negated: bool = False
    divisor: int = 0

    def mask(self, values: AnyArray) -> BoolArray:
        v: Any = np.fmod(values, self.divisor) if self.divisor else values
        if self.lo == self.hi:
            return v != self.lo if self.negated else v == self.lo  # type: ignore[no-any-return]
        return _inside(v, self, INT64_MIN, INT64_MAX)

    def passes(self, value: Any) -> bool:
        if self.divisor:
            value = value % self.divisor if value >= 0 else -(-value % self.divisor)
        return (self.lo <= value <= self.hi) is not self.negated

    def compiled(self, values: AnyArray, rows: Int64Array, layout: int) -> Int64Array | None:
        from minidsms.kernels import filtering

        room = len(values) if layout == DENSE else len(rows)
        arguments = (normal(values), rows, layout, self.divisor, self.lo, self.hi, self.negated)
        return filtering.keep(filtering.keep_integers, *arguments, room=room)

    def words(self) -> tuple[int, ...] | None:
        from minidsms.kernels.expressions import INTEGERS

        return INTEGERS, self.divisor, self.lo, self.hi, self.negated


@dataclass(frozen=True)
class FloatRange:
    """lo <= value <= hi, or not so."""

    lo: float
    hi: float
    negated: bool = False

    def mask(self, values: AnyArray) -> BoolArray:
        return _inside(values, self, -math.inf, math.inf)

    def passes(self, value: Any) -> bool:
        return (self.lo <= value <= self.hi) is not self.negated

    def compiled(self, values: AnyArray, rows: Int64Array, layout: int) -> Int64Array | None:
        from minidsms.kernels import filtering

        room = len(values) if layout == DENSE else len(rows)
        arguments = (normal(values), rows, layout, self.lo, self.hi, self.negated)
        return filtering.keep(filtering.keep_floats, *arguments, room=room)

    def words(self) -> tuple[int, ...] | None:
        from minidsms.kernels.expressions import FLOATS

        return FLOATS, 0, *np.array([self.lo, self.hi]).view(np.int64).tolist(), self.negated


def _inside(values: Any, test: IntegerRange | FloatRange, least: float, greatest: float) -> BoolArray:
    """Which values pass the test; where it is open on one side, the other is compared alone."""
    if test.lo == least:
        inside = values <= test.hi
    elif test.hi == greatest:
        inside = values >= test.lo
    else:
        inside = (values >= test.lo) & (values <= test.hi)
    return ~inside if test.negated else inside  # type: ignore[no-any-return]


class Members:
    """The value is one of a list, or none of it. Floats are compared as words: equal ones have equal words."""

    def __init__(self, items: AnyArray, negated: bool, held: Sequence[object] = ()) -> None:
        """items: of the operand's dtype, at least one.  held: what keeps the codes of texts from being given away."""
        self.items = np.unique(items)
        self.negated = negated
        self._known = frozenset(self.items.tolist())
        self._held = held
        self._tables: list[tuple[Int64Array, BoolArray, int]] = []

    def mask(self, values: AnyArray) -> BoolArray:
        if len(values) > FEW:
            return np.isin(values, self.items, invert=self.negated)
        return np.array([(v in self._known) is not self.negated for v in values.tolist()], np.bool_)

    def passes(self, value: Any) -> bool:
        return (value in self._known) is not self.negated

    def compiled(self, values: AnyArray, rows: Int64Array, layout: int) -> Int64Array | None:
        from minidsms.kernels import filtering

        words = normal(Column(values).words())
        room = len(words) if layout == DENSE else len(rows)
        return filtering.keep(filtering.keep_members, words, rows, layout, *self._placed(), self.negated, room=room)

    def words(self) -> tuple[int, ...] | None:
        from minidsms.kernels.expressions import MEMBERS

        slots, filled, shift = self._placed()
        return MEMBERS, slots.ctypes.data, filled.ctypes.data, shift, self.negated

    def _placed(self) -> tuple[Int64Array, BoolArray, int]:
        """Where the kernel finds the items."""
        from minidsms.kernels.filtering import place_members

        if not self._tables:
            bits = max(4, (8 * len(self.items)).bit_length())
            slots, filled = np.zeros(1 << bits, np.int64), np.zeros(1 << bits, np.bool_)
            place_members(normal(Column(self.items).words()), 64 - bits, slots, filled)
            # Another thread may have been as fast: what has been told by address stays.
            self._tables.append((slots, filled, 64 - bits))
        return self._tables[0]


def split(expr: bound.Expr, dictionary: TextDictionary) -> tuple[bound.Expr, ValueTest]:
    """A filter as an operand and a test of it; the operand is the whole filter where it asks something else."""
    match expr:
        case bound.Call(function="not", args=(bound.Call(function="in", args=(operand, *items)),)):
            test = _members(operand, items, True, dictionary)
        case bound.Call(function="in", args=(operand, *items)):
            test = _members(operand, items, False, dictionary)
        case bound.Call(function=name, args=(operand, bound.Literal() as limit)) if name in FLIPPED:
            test = _comparison(name, operand, limit, dictionary)
        case bound.Call(function=name, args=(bound.Literal() as limit, operand)) if name in FLIPPED:
            test = _comparison(FLIPPED[name], operand, limit, dictionary)
        case _:
            return expr, IsTrue()
    if test is None or isinstance(operand, bound.Literal):
        return expr, IsTrue()
    match operand:
        case bound.Call(function="%" | "mod", args=(dividend, bound.Literal(value=int() as divisor))) if (
            isinstance(test, IntegerRange) and divisor > INT64_MIN and divisor != 0 and dividend.type is Type.INTEGER
        ):
            return dividend, IntegerRange(test.lo, test.hi, test.negated, abs(divisor))
    return operand, test


def _comparison(name: str, operand: bound.Expr, limit: bound.Literal, dictionary: TextDictionary) -> ValueTest | None:
    value = limit.value
    if value is None or operand.type is not limit.type:
        return None
    if isinstance(value, str):
        return _members(operand, (limit,), name == "<>", dictionary) if name in ("=", "<>") else None
    if operand.type in _WHOLE and isinstance(value, int):
        below = {"<": (INT64_MIN, value - 1), "<=": (INT64_MIN, value), ">": (value + 1, INT64_MAX)}
        lo, hi = below.get(name) or ((value, INT64_MAX) if name == ">=" else (value, value))
        if lo > INT64_MAX or hi < INT64_MIN:
            return None
        return IntegerRange(lo, hi, name == "<>")
    if operand.type is Type.FLOAT and isinstance(value, float | int) and value == value:
        x = float(value)
        if name in ("=", "<>"):
            return FloatRange(x, x, name == "<>")
        # A bound that is not in the range is the next float; past an infinity nothing is left, which NaN says.
        if name in ("<", "<="):
            return FloatRange(-math.inf, x if name == "<=" else _next(x, -math.inf))
        return FloatRange(x if name == ">=" else _next(x, math.inf), math.inf)
    return None


def _next(x: float, towards: float) -> float:
    return math.nan if x == towards else math.nextafter(x, towards)


def _members(
    operand: bound.Expr, items: Sequence[bound.Expr], negated: bool, dictionary: TextDictionary
) -> ValueTest | None:
    if len(items) == 1 and isinstance(items[0], bound.LiteralList) and items[0].type is operand.type:
        return _members_of(operand.type, items[0].values, negated, dictionary)
    literals = [i for i in items if isinstance(i, bound.Literal)]
    if operand.type in (Type.BOOLEAN, Type.NULL) or len(literals) < len(items):
        return None
    values = [i.value for i in literals if i.value is not None and i.value == i.value]
    # `x IN (1, NULL)` is TRUE where x = 1; `x NOT IN (1, NULL)` never is: the whole expression knows that.
    if not values or (negated and len(values) < len(literals)):
        return None
    if any(i.type is not operand.type for i in literals if i.value is not None):
        return None
    return _members_of(operand.type, values, negated, dictionary)


def _members_of(type_: Type, values: Sequence[object], negated: bool, dictionary: TextDictionary) -> Members:
    """The test of a list of values, all of the type."""
    array, held = constants(type_, values, dictionary)
    return Members(array, negated, held)
