"""From bound expressions to the steps of a program (`minidsms.kernels.expressions`).

Steps are first written with a register for each; equal ones are one. Then registers that nobody reads any more are
used again, so that a block's registers stay in the first-level cache.

Invariant: what is written computes what `compiler` computes by numpy; what cannot be written is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from minidsms.cql import bound
from minidsms.elements import Column, Type
from minidsms.expressions.programs import Program
from minidsms.expressions.value import constants
from minidsms.kernels import expressions as steps
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


class _Impossible(Exception):
    """No step does this."""


def written(
    exprs: Sequence[bound.Expr], is_condition: bool, dictionary: TextDictionary
) -> tuple[Program | None, tuple[int, ...]]:
    """The program that stores the values of the expressions, or keeps the rows of a condition, and which of them those
    are that it can compute.
    """
    writer, results = _Writer.over(exprs, dictionary)
    places = tuple(i for i, result in enumerate(results) if result is not None)
    if len(places) < len(exprs):  # what was written of the others is not to be computed for nothing
        writer, results = _Writer.over([exprs[i] for i in places], dictionary)
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


class _Writer:
    def __init__(self, dictionary: TextDictionary) -> None:
        self._dictionary = dictionary
        self._steps: dict[tuple[int, ...], int] = {}
        """Operation and operands to its number. An operand is the number of a step, of a source what it says itself."""
        self._columns: list[int] = []
        self._held: list[object] = []
        self._words: dict[tuple[Type, object], int] = {}
        """Of constants."""

    @classmethod
    def over(cls, exprs: Sequence[bound.Expr], dictionary: TextDictionary) -> tuple[_Writer, list[int | None]]:
        """A writer that has written these, and the step of each; None where no steps compute it."""
        writer = cls(dictionary)
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
                return self._call(name, args, expr.type)
        raise _Impossible

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
            table.append([operation, to, *(operands + 3 * operands[:1] + [0, 0, 0])[:3]])
        once = sum(step[0] == steps.CONSTANT for step in numbered)
        if used > MOST_REGISTERS:
            return None
        return Program(np.array(table, np.int64), once, used, tuple(self._columns), tuple(self._held))
