"""From bound expressions to the steps of a program (`minidsms.kernels.expressions`).

Steps are first written with a register for each; equal ones are one. Then registers that nobody reads any more are
used again, so that a block's registers stay in the first-level cache.

Invariant: what is written computes what `compiler` computes by numpy; what cannot be written is refused as a whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from minidsms.cql import bound
from minidsms.elements import Column, Type
from minidsms.expressions.programs import Program
from minidsms.expressions.value import constants
from minidsms.kernels import expressions as steps
from minidsms.kernels.filtering import EXACT
from minidsms.values.dictionary import TextDictionary

MOST_REGISTERS = 60
"""The kernel keeps a bit for each."""
MOST_LISTED = 8
"""Constants of an IN that are compared one by one; more are found in a table."""

_NUMBERS = frozenset((Type.INTEGER, Type.FLOAT, Type.TIMESTAMP, Type.INTERVAL, Type.NULL))
_READ = _NUMBERS | {Type.BOOLEAN, Type.DATE, Type.TIME, Type.TEXT}
_OF_INTEGERS = {
    "+": steps.ADD, "-": steps.SUBTRACT, "*": steps.MULTIPLY, "/": steps.DIVIDE, "%": steps.REMAINDER,
    "mod": steps.REMAINDER, "neg": steps.NEGATE, "abs": steps.ABSOLUTE, "<": steps.LESS, "<=": steps.LESS_EQUAL,
}  # fmt: skip
_OF_FLOATS = {
    "+": steps.FLOAT_ADD, "-": steps.FLOAT_SUBTRACT, "*": steps.FLOAT_MULTIPLY, "/": steps.FLOAT_DIVIDE,
    "neg": steps.FLOAT_NEGATE, "abs": steps.FLOAT_ABSOLUTE, "<": steps.FLOAT_LESS, "<=": steps.FLOAT_LESS_EQUAL,
}  # fmt: skip
_SWAPPED = {">": "<", ">=": "<="}
_COMPARED = frozenset(("<", "<=", ">", ">=", "=", "<>"))

_FLOAT, _WORD = struct.Struct("d"), struct.Struct("q")

_NARROW = range(-steps.SPAN, steps.SPAN)
"""What columns are taken to hold where that is worth trying."""


class _Bounds(NamedTuple):
    """Of an integer expression, where columns are narrow. is_dear: it takes longer than additions do."""

    least: int
    greatest: int
    is_dear: bool


_NARROW_BOUNDS = _Bounds(_NARROW[0], _NARROW[-1], False)
_QUOTIENTS = ("/", "%", "mod")


class _Impossible(Exception):
    """No step does this."""


def written(
    exprs: Sequence[bound.Expr], is_condition: bool, dictionary: TextDictionary, is_near: bool = False
) -> tuple[Program | None, tuple[int, ...]]:
    """The program that stores the values of the expressions, or keeps the rows of a condition, and which of them those
    are that it can compute.  is_near: it may ask for columns of 32 bits.
    """
    writer, results = _Writer.over(exprs, dictionary, is_near)
    places = tuple(i for i, result in enumerate(results) if result is not None)
    if len(places) < len(exprs):  # what was written of the others is not to be computed for nothing
        writer, results = _Writer.over([exprs[i] for i in places], dictionary, is_near)
    program = writer.program([r for r in results if r is not None], is_condition) if places else None
    return program, places


def _operations(name: str, args: Sequence[bound.Expr], type_: Type) -> Mapping[str, int]:
    """What a function's operands are computed by, of any types."""
    types = {a.type for a in args} - {Type.NULL}
    if len({t is Type.FLOAT for t in types}) > 1:
        raise _Impossible
    of_type = _OF_FLOATS if Type.FLOAT in types else _OF_INTEGERS
    is_ordering = name in _SWAPPED or name in _SWAPPED.values() or name in ("least", "greatest")
    if is_ordering and Type.TEXT in types:
        raise _Impossible
    if name in of_type and not is_ordering and not (types <= _NUMBERS and type_ in _NUMBERS):
        raise _Impossible
    return of_type


def _product(a: _Bounds, b: _Bounds) -> _Bounds:
    corners = [x * y for x in a[:2] for y in b[:2]]
    return _Bounds(min(corners), max(corners), True)


def _quotient(a: _Bounds, b: _Bounds) -> _Bounds | None:
    """By a constant above 0; no further from 0 than what is divided."""
    return _Bounds(min(a.least, 0), max(a.greatest, 0), True) if b.least == b.greatest > 0 else None


def _rest(a: _Bounds, b: _Bounds) -> _Bounds | None:
    """The same, with the sign of what is divided."""
    if not b.least == b.greatest > 0:
        return None
    return _Bounds(max(min(a.least, 0), 1 - b.least), min(max(a.greatest, 0), b.least - 1), True)


def _size(a: _Bounds) -> _Bounds:
    return _Bounds(0, max(-a.least, a.greatest), a.is_dear)


_OF_NEAR: Mapping[str, Callable[..., _Bounds | None]] = {
    "+": lambda a, b: _Bounds(a.least + b.least, a.greatest + b.greatest, a.is_dear or b.is_dear),
    "-": lambda a, b: _Bounds(a.least - b.greatest, a.greatest - b.least, a.is_dear or b.is_dear),
    "*": _product,
    "/": _quotient,
    "%": _rest,
    "mod": _rest,
    "neg": lambda a: _Bounds(-a.greatest, -a.least, a.is_dear),
    "abs": _size,
}


def _line(expr: bound.Expr) -> tuple[bound.Expr, int, int]:
    """(x, scale, shift): the expression is x * scale + shift, of at most one product."""
    literal = bound.Literal
    match expr:
        case bound.Call(function="*", args=(literal(value=int() as k), x) | (x, literal(value=int() as k))):
            return x, k, 0
        case bound.Call(function="+", args=(literal(value=int() as k), x) | (x, literal(value=int() as k))):
            x, scale, shift = _line(x)
            return x, scale, shift + k
        case bound.Call(function="-", args=(x, literal(value=int() as k))):
            x, scale, shift = _line(x)
            return x, scale, shift - k
        case bound.Call(function="-", args=(literal(value=int() as k), x)):
            x, scale, shift = _line(x)
            return x, -scale, k - shift
    return expr, 1, 0


def _word_of(value: float) -> int:
    """The bits of a float."""
    (word,) = _WORD.unpack(_FLOAT.pack(value))
    return int(word)


class _Writer:
    def __init__(self, dictionary: TextDictionary, is_near: bool) -> None:
        self._dictionary = dictionary
        self._is_near = is_near
        self._bounds: dict[int, _Bounds | None] = {}
        """By the identity of an expression."""
        self._steps: dict[tuple[int, ...], int] = {}
        """Operation and operands to its number. An operand is the number of a step, of a source what it says itself."""
        self._columns: list[int] = []
        self._held: list[object] = []
        self._words: dict[tuple[Type, object], int] = {}
        """Of constants."""

    @classmethod
    def over(
        cls, exprs: Sequence[bound.Expr], dictionary: TextDictionary, is_near: bool
    ) -> tuple[_Writer, list[int | None]]:
        """A writer that has written these, and the step of each; None where no steps compute it."""
        writer = cls(dictionary, is_near)
        results: list[int | None] = []
        for expr in exprs:
            try:
                results.append(writer.value(expr))
            except _Impossible:
                results.append(None)
        return writer, results

    def value(self, expr: bound.Expr) -> int:
        """The number of the step that computes it."""
        match expr:
            case bound.ColumnRef(index=index) if expr.type in _READ:
                if index not in self._columns:
                    self._columns.append(index)
                operation = steps.TRUTHS if expr.type is Type.BOOLEAN else steps.COLUMN
                return self._step(operation, self._columns.index(index))
            case bound.Literal(value=value) if expr.type in _READ:
                if value is None or value != value:
                    return self._step(steps.NOTHING)
                return self._constant(expr.type, value)
            case bound.Case(whens=whens, otherwise=otherwise):
                result = self.value(otherwise)
                for condition, branch in reversed(whens):
                    result = self._step(steps.CHOOSE, self.value(condition), self.value(branch), result)
                return result
            case bound.Cast(arg=arg):
                return self._cast(arg, expr.type)
            case bound.Call(function=name, args=args):
                if self._has_dear((expr,)):
                    return self._step(steps.WHOLE, self._near(expr))
                return self._call(name, args, expr.type)
        raise _Impossible

    def _has_dear(self, exprs: Sequence[bound.Expr]) -> bool:
        """All may be computed by floats, and for one that is worth it."""
        if not self._is_near or not all(e.type is Type.INTEGER for e in exprs):
            return False
        bounds = [self._bounded(e) for e in exprs]
        return None not in bounds and any(b is not None and b.is_dear for b in bounds)

    def _bounded(self, expr: bound.Expr) -> _Bounds | None:
        """None where it may be far, or is no arithmetic."""
        if id(expr) not in self._bounds:
            found = self._bounds_of(expr)
            is_far = found is None or found.least < -EXACT or found.greatest > EXACT
            self._bounds[id(expr)] = None if is_far else found
        return self._bounds[id(expr)]

    def _bounds_of(self, expr: bound.Expr) -> _Bounds | None:
        if expr.type is not Type.INTEGER:
            return None
        match expr:
            case bound.ColumnRef():
                return _NARROW_BOUNDS
            case bound.Literal(value=int() as value):
                return _Bounds(value, value, False)
            case bound.Call(function=name, args=args) if name in _OF_NEAR:
                if name in _QUOTIENTS and not isinstance(args[1], bound.Literal):
                    return None
                known = []
                for arg in args:
                    operand = self._bounded(arg)
                    if operand is None:
                        return None
                    known.append(operand)
                return _OF_NEAR[name](*known)
        return None

    def _near(self, expr: bound.Expr) -> int:
        """The number of the step that computes a bounded expression as a float."""
        match expr:
            case bound.Literal(value=int() as value):
                return self._step(steps.CONSTANT, _word_of(value))
            case bound.Call(function="/" | "%" | "mod" as name, args=(dividend, bound.Literal(value=int() as divisor))):
                operation = steps.NEAR_DIVIDE if name == "/" else steps.NEAR_REMAINDER
                operand, scale, shift = _line(dividend)
                return self._near_step(operation, operand, scale, shift, divisor, 1.0 / divisor)
            case bound.Call(function=name, args=args):
                operand, scale, shift = _line(expr)
                if operand is not expr:
                    return self._near_step(steps.NEAR_LINEAR, operand, scale, shift)
                return self._step(_OF_FLOATS[name], *map(self._near, args))
        return self._step(steps.NEAR, self.value(expr))

    def _near_step(self, operation: int, operand: bound.Expr, *constants_: float) -> int:
        return self._step(
            operation, self._near(operand), *(self._step(steps.CONSTANT, _word_of(x)) for x in constants_)
        )

    def _step(self, operation: int, *operands: int) -> int:
        return self._steps.setdefault((operation, *operands), len(self._steps))

    def _constant(self, type_: Type, value: object) -> int:
        word = self._words.get((type_, value))
        if word is None:
            array, held = constants(type_, [value], self._dictionary)
            self._held += held
            word = self._words[type_, value] = int(Column(array).words()[0])
        return self._step(steps.CONSTANT, word)

    def _cast(self, arg: bound.Expr, target: Type) -> int:
        """Between types whose words are alike, and from integers to FLOAT."""
        source = arg.type
        if not (source.is_basic and target.is_basic) or Type.TEXT in (source, target):
            raise _Impossible
        if source.dtype == target.dtype or source is Type.NULL:
            return self.value(arg)
        if target is Type.FLOAT:
            return self._step(steps.TO_FLOAT, self.value(arg))
        if target is Type.BOOLEAN:  # The word of 0.0 is 0.
            return self._step(steps.NOT, self._equal(self.value(arg), self._step(steps.CONSTANT, 0)))
        raise _Impossible

    def _call(self, name: str, args: Sequence[bound.Expr], type_: Type) -> int:
        if name == "in":
            return self._member(args)
        of_type = _OF_INTEGERS if all(a.type is Type.INTEGER for a in args) else _operations(name, args, type_)
        if name in _COMPARED and self._has_dear(args):
            of_type, operands = _OF_FLOATS, [self._near(a) for a in args]
        else:
            operands = [self.value(a) for a in args]
        match name:
            case ">" | ">=":
                return self._step(of_type[_SWAPPED[name]], *reversed(operands))
            case "=":
                return self._equal(*operands)
            case "<>":
                return self._step(steps.NOT, self._equal(*operands))
            case "and":
                return reduce(lambda a, b: self._step(steps.AND, a, b), operands)
            case "or":
                return reduce(lambda a, b: self._step(steps.OR, a, b), operands)
            case "not":
                return self._step(steps.NOT, *operands)
            case "is null":
                return self._step(steps.IS_NULL, *operands)
            case "is distinct from":
                return self._step(steps.IS_DISTINCT, *operands)
            case "nullif":
                a, b = operands
                return self._step(steps.CHOOSE, self._equal(a, b), self._step(steps.NOTHING), a)
            case "coalesce":
                return reduce(lambda b, a: self._step(steps.FIRST_KNOWN, a, b), reversed(operands))
            case "least" | "greatest":
                return reduce(lambda a, b: self._extreme(of_type["<="], a, b, name == "least"), operands)
        if name not in of_type:
            raise _Impossible
        return self._step(of_type[name], *operands)

    def _equal(self, a: int, b: int) -> int:
        return self._step(steps.EQUAL, a, b)

    def _extreme(self, less_equal: int, a: int, b: int, is_least: bool) -> int:
        """a where it is the one, else b; the other where one is NULL."""
        test = self._step(less_equal, a, b) if is_least else self._step(less_equal, b, a)
        return self._step(steps.CHOOSE, test, a, self._step(steps.FIRST_KNOWN, b, a))

    def _member(self, args: Sequence[bound.Expr]) -> int:
        needle, *items = args
        if isinstance(items[0], bound.LiteralList):
            listed = items[0]
            items = [bound.Literal(listed.type, value) for value in listed.values]
        if len(items) > MOST_LISTED or any(i.type not in (needle.type, Type.NULL) for i in items):
            raise _Impossible
        word = self.value(needle)
        return reduce(lambda a, b: self._step(steps.OR, a, b), [self._equal(word, self.value(i)) for i in items])

    def program(self, results: Sequence[int], is_condition: bool) -> Program | None:
        """Of what has been written, with these results."""
        numbered = list(self._steps)
        ends = [(steps.KEEP, results[0])] if is_condition else [(steps.STORE, number) for number in results]
        order = [*sorted(numbered, key=lambda step: step[0] != steps.CONSTANT), *ends]
        last = {number: at for at, step in enumerate(order) if step[0] > steps.NOTHING for number in step[1:]}
        registers: dict[int, int] = {}
        free: list[int] = []
        used = 0
        table = []
        for at, (operation, *operands) in enumerate(order):
            is_end = at >= len(numbered)
            if is_end:
                to = at - len(numbered)
            elif free:
                to = free.pop()
            else:
                to, used = used, used + 1
            if operation > steps.NOTHING:
                gone = {n for n in operands if last[n] == at and numbered[n][0] != steps.CONSTANT}
                free += [registers[n] for n in gone]
                operands = [registers[n] for n in operands]
            if not is_end:
                registers[self._steps[order[at]]] = to
            table.append([operation, to, *(operands + 4 * operands[:1] + 5 * [0])[:5]])
        once = sum(step[0] == steps.CONSTANT for step in numbered)
        if used > MOST_REGISTERS:
            return None
        its = np.array([(steps.PROGRAM, 0, 0, once, len(table), 0)])
        return Program(np.array(table, np.int64), its, used, tuple(self._columns), tuple(self._held))
