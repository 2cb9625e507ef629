"""Calls of functions registered with `create_function`.

A scalar function is called row by row with Python values as rows show them, None for NULL, and gives one back. A
vectorised one gets numpy arrays (INTEGER, TIMESTAMP, INTERVAL int64; FLOAT float64; BOOLEAN bool; of all other types
object arrays of such values) of only those rows in which every argument is non-NULL, the others being NULL without
asking it; it returns an array of as many rows, in which None, a masked entry or NaN is NULL.

Invariant: a failure belongs to a row. An exception, SystemExit too, or a result that is not of the declared type, fails
that row; a vectorised call that raises is halved until the rows that raise stand alone: answers do not depend on
batches (T5). Rows whose argument failed are not passed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from minidsms.cql.catalog import FunctionDef
from minidsms.cql.errors import Error
from minidsms.elements import INT64_MAX, INT64_MIN, Column, Int64Array, Type
from minidsms.expressions.value import Value, any_failed, both_valid, finish, full
from minidsms.inputs.values import ValueRefused, inner_reader
from minidsms.process.interrupts import breakable, let_handlers_exit
from minidsms.values.coded import shown
from minidsms.values.dictionary import TextDictionary


class WrongResult(Error):
    """A user function gave something that is not of its declared type."""


def call(definition: FunctionDef, args: Sequence[Value], n: int, dictionary: TextDictionary, tick_ns: int) -> Value:
    """The function of n rows. Constants are written out: the function may count its calls."""
    if definition.vectorized and n and _is_plain(definition.type) and definition.type is not Type.FLOAT:
        plain = _call_plain(definition, args, n)
        if plain is not None:
            return plain
    results = np.zeros(n, definition.type.dtype)
    state = _State(definition, dictionary, tick_ns, results, np.ones(n, np.bool_), np.zeros(n, np.bool_))
    failed = any_failed(*args)
    columns = [Value(full(a.values, n), None if a.valid is None else full(a.valid, n)) for a in args]
    usable = np.ones(n, np.bool_) if failed is None else ~np.broadcast_to(failed, (n,))
    if definition.vectorized:
        valid = both_valid(*columns)
        if valid is not None:
            state.valid &= valid
            usable = usable & valid
        rows = np.flatnonzero(usable)
        arrays = [array_of(c.values, t, dictionary) for c, t in zip(columns, definition.arg_types)]
        if len(rows):
            state.call_vectorized(arrays, rows)
    else:
        lists = [_objects(c, t, dictionary) for c, t in zip(columns, definition.arg_types)]
        allowance = dictionary.allowance
        for row in np.flatnonzero(usable).tolist():
            if not allowance.is_open:
                allowance.check_time()
            state.call_scalar([values[row] for values in lists], row)
    # A function result that fails stands under a mask of its own; operands that failed add theirs.
    bad = state.failed if failed is None else state.failed | failed
    has_failed = bool(bad.any())
    valid_rows = state.valid & ~bad
    return finish(results, None if valid_rows.all() else valid_rows, bad if has_failed else None)


def _call_plain(definition: FunctionDef, args: Sequence[Value], n: int) -> Value | None:
    """A vectorised function of rows without NULL whose words are values; None if its result cannot be taken as it is.

    The same rows are then computed again with every care: a function may be called several times.
    """
    if any(a.valid is not None or a.failed is not None for a in args) or not all(map(_is_plain, definition.arg_types)):
        return None
    is_shared = is_elementwise(definition.function) and any(len(a.values) == n for a in args)
    try:
        with breakable:
            returned = definition.function(*(a.values if is_shared else _own(a.values, n) for a in args))
    except (Exception, SystemExit) as error:
        let_handlers_exit(error)
        return None
    if type(returned) is not np.ndarray or returned.shape != (n,) or returned.dtype != definition.type.dtype:
        return None
    # An array that nobody else refers to, and that is no view, cannot change any more.
    is_ours = returned.flags.owndata and sys.getrefcount(returned) <= _NOBODY_ELSE
    return Value(returned if is_ours else returned.copy())


_NOBODY_ELSE = 2
"""References to an object that one local variable holds, as `sys.getrefcount` counts: its own argument is one."""


def is_elementwise(function: object) -> bool:
    """A universal function, of numpy or made by numba, for other than Python objects: it writes into nothing that it
    gets, keeps nothing, and a constant need not be written out for it.
    """
    universal = function if isinstance(function, np.ufunc) else getattr(function, "ufunc", None)
    return isinstance(universal, np.ufunc) and any("O" not in types for types in universal.types)


def _own(values: Any, n: int) -> Any:
    """n rows that the function may write into; a constant is written out."""
    return values.copy() if len(values) == n else full(values, n)


def _is_plain(type_: Type) -> bool:
    """Its words are its values."""
    return type_.is_basic and type_ is not Type.TEXT


def python_result(definition: FunctionDef, result: Any, tick_ns: int) -> Any:
    """The result as the word of its type (coded types before it), None for NULL; WrongResult where it is not of it."""
    if isinstance(result, np.generic):
        result = result.item()
    if result is None or result is np.ma.masked or (isinstance(result, float) and result != result):
        return None
    match definition.type:
        case Type.FLOAT if isinstance(result, int | float):
            return float(result) + 0.0
        case Type.BOOLEAN if isinstance(result, bool):
            return result
        case Type.TEXT if isinstance(result, str):
            return result
        case Type.INTEGER | Type.TIMESTAMP | Type.INTERVAL if isinstance(result, int):
            if INT64_MIN <= result <= INT64_MAX:
                return int(result)
            raise WrongResult(f"{definition.name} gave {result}, which INTEGER cannot hold")
        case type_ if not type_.is_basic:
            try:
                return inner_reader(type_, tick_ns)(result)
            except ValueRefused as refused:
                raise WrongResult(f"{definition.name} must give {type_}, and {refused}") from None
    raise WrongResult(f"{definition.name} must give {definition.type}, not {type(result).__name__}")


def array_of(values: Any, type_: Type, dictionary: TextDictionary) -> Any:
    """A vectorised function's argument: a copy, for it may write into what it gets."""
    if _is_plain(type_):
        return values.copy()
    distinct, inverse = np.unique(values, return_inverse=True)
    found = np.empty(len(distinct), object)
    for i, value in enumerate(shown_values(Column(distinct), type_, dictionary)):
        found[i] = value
    return found[inverse.reshape(-1)]


def _objects(column: Value, type_: Type, dictionary: TextDictionary) -> list[Any]:
    """A scalar function's argument, row by row."""
    if not _is_plain(type_):
        return shown_values(column.column(), type_, dictionary)
    items: list[Any] = column.values.tolist()
    if column.valid is not None:
        for row in np.flatnonzero(~column.valid).tolist():
            items[row] = None
    return items


def shown_values(column: Column, type_: Type, dictionary: TextDictionary) -> list[Any]:
    """A column as a function in Python sees it."""
    return [shown(value, type_) for value in dictionary.values(column, type_)]


class _State:
    """The results of one call as they come in."""

    def __init__(
        self, definition: FunctionDef, dictionary: TextDictionary, tick_ns: int, results: Any, valid: Any, failed: Any
    ) -> None:
        self.definition = definition
        self.dictionary = dictionary
        self.tick_ns = tick_ns
        self.results = results
        self.valid = valid
        self.failed = failed

    def call_scalar(self, operands: list[Any], row: int) -> None:
        try:
            with breakable:
                result = self.definition.function(*operands)
            self._store(result, row)
        except (Exception, SystemExit) as error:
            let_handlers_exit(error)
            self.failed[row] = True

    def _store(self, result: Any, row: int) -> None:
        type_, word = self.definition.type, python_result(self.definition, result, self.tick_ns)
        if word is None:
            self.valid[row] = False
        else:
            self.results[row] = self.dictionary.code_of(word, type_) if type_.is_coded else word

    def call_vectorized(self, arrays: list[Any], rows: Int64Array) -> None:
        pending = [rows]
        while pending:
            part = pending.pop()
            try:
                with breakable:
                    returned = self.definition.function(*(a[part] for a in arrays))
                self._store_all(returned, part)
            except (Exception, SystemExit) as error:
                let_handlers_exit(error)
                if len(part) == 1:
                    self.failed[part[0]] = True
                else:
                    middle = len(part) // 2
                    pending += [part[middle:], part[:middle]]

    def _store_all(self, returned: Any, rows: Int64Array) -> None:
        masked = isinstance(returned, np.ma.MaskedArray)
        array = returned if masked else np.asarray(returned)
        if array.shape != (len(rows),):
            raise WrongResult(f"{self.definition.name} must give {len(rows)} rows, not shape {array.shape}")
        type_ = self.definition.type
        if not masked and array.dtype == type_.dtype and _is_plain(type_):
            if type_ is Type.FLOAT:
                nan = np.isnan(array)
                self.results[rows] = np.where(nan, 0.0, array) + 0.0
                self.valid[rows] = ~nan
            else:
                self.results[rows] = array
            return
        for row, item in zip(rows.tolist(), array.tolist()):
            try:
                self._store(item, row)
            except Error:
                self.failed[row] = True
