"""Functions of TEXT, computed once per distinct text and looked up by code.

Invariant: a remembered result is dropped when the dictionary's generation changes: codes, of arguments and of results,
may then name other texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

import numpy as np

from minidsms.elements import INT64_MIN, BoolArray, Column, Int64Array, Type, is_all_true
from minidsms.expressions import like
from minidsms.expressions.value import FEW, Value, any_failed, both_valid, finish, full
from minidsms.functions.function import FAILED
from minidsms.values.dictionary import TextDictionary

_UNKNOWN, _VALUE, _NULL, _FAILED = 0, 1, 2, 3
_LARGEST_KEY = 2**62
_MOST_SINGLE = 1024
"""Texts whose results are kept as they are given to a single row."""

TextFunction = Callable[..., Any]


def _substring(text: str, start: int, length: int | None = None) -> str:
    """SQL's: positions start .. start + length - 1, counted from 1; those outside the text are empty."""
    begin = max(start, 1) - 1
    if length is None:
        return text[begin:]
    return text[begin : max(start + length - 1, begin)]


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _like(text: str, pattern: str, escape: str = "") -> bool:
    return _matcher(pattern, escape)(text)


_matcher = lru_cache(maxsize=256)(like.matcher)


FUNCTIONS: dict[str, TextFunction] = {
    "||": lambda *texts: "".join(texts),
    "concat": lambda *texts: "".join(texts),
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "substring": _substring,
    "trim": lambda text, characters=" ": text.strip(characters),
    "ltrim": lambda text, characters=" ": text.lstrip(characters),
    "rtrim": lambda text, characters=" ": text.rstrip(characters),
    "replace": _replace,
    "starts_with": str.startswith,
    "like": _like,
}
"""The functions of TEXT by their names in `bound.Call`, over Python values; a NULL argument never reaches them."""


class CodeTable:
    """The results of a function of one value, TEXT or `varying`, by code. `type_` is that of the results.

    A look-up costs one gather once the texts are known; memory is 9 bytes per code of the dictionary.
    """

    def __init__(
        self, dictionary: TextDictionary, function: Callable[[Any], Any], type_: Type, varying: Type = Type.TEXT
    ) -> None:
        self._dictionary = dictionary
        self._function = function
        self._type = type_
        self._varying = varying
        self._forget()

    def _forget(self) -> None:
        self._generation = self._dictionary.generation
        is_truth = self._type.dtype == np.bool_
        self._words = np.zeros(1, np.int8 if is_truth else np.int64)
        self._missing = -128 if is_truth else INT64_MIN
        """What stands for a result that is not known: no BOOLEAN, FLOAT or code is this word, and an INTEGER is looked
        up once more."""
        self._states = np.full(1, _NULL, np.uint8)
        self._is_total = True
        self._single: dict[int, Value] = {}

    def __call__(self, a: Value) -> Value:
        """The function of every row, strict in NULL and failure."""
        if self._generation != self._dictionary.generation:
            self._forget()
        if len(a.values) > 1 or not len(a.values) or a.failed is not None:
            return self._looked_up(a)
        code = a.values.item()
        found = self._single.get(code)
        if found is None:
            if len(self._single) >= _MOST_SINGLE:
                self._single.clear()
            found = self._single[code] = self._looked_up(a)
        return found

    def _looked_up(self, a: Value) -> Value:
        codes: Int64Array = a.values
        if len(self._states) < self._dictionary.capacity:
            self._grow(max(self._dictionary.capacity, 2 * len(self._states)))
        words = self._words.take(codes)
        if self._is_total and self._are_known(words):
            return finish(words.view(self._type.dtype), a.valid, a.failed)
        states = self._states.take(codes)
        if not is_all_true(states):
            unknown = codes[states == _UNKNOWN]
            self._learn(unknown if len(unknown) == 1 else np.unique(unknown))
            states, words = self._states.take(codes), self._words.take(codes)
        results = words.view(self._type.dtype)
        if self._is_total:
            return finish(results, a.valid, a.failed)
        return finish(results, a.valid, a.failed, bad=states == _FAILED, null=states == _NULL)

    def _are_known(self, words: np.ndarray[Any, Any]) -> bool:
        if len(words) <= FEW:
            return self._missing not in words.tolist()
        return bool(words.min() != self._missing)

    def _grow(self, size: int) -> None:
        words = np.full(size, self._missing, self._words.dtype)
        states = np.zeros(size, np.uint8)
        words[: len(self._words)] = self._words
        states[: len(self._states)] = self._states
        self._words, self._states = words, states

    def _learn(self, codes: Int64Array) -> None:
        dictionary = self._dictionary
        values = dictionary.new_values(codes, self._varying)
        found = dictionary.allowance.listed(map(self._function, values))
        states, words = _words_of(found, self._type, self._dictionary)
        self._states[codes] = _VALUE if states is None else states
        self._words[codes] = words.view(self._words.dtype)
        self._is_total = self._is_total and states is None


def _words_of(found: list[Any], type_: Type, dictionary: TextDictionary) -> tuple[Any, np.ndarray[Any, Any]]:
    """(states, None where all are values; words) of what a function gave; the list is written into."""
    states = None
    if type_ is Type.TEXT and {*map(type, found)} == {str}:
        return states, dictionary.column(found, type_).values
    for i in [i for i, value in enumerate(found) if value is None or value is FAILED or value != value]:
        if states is None:
            states = np.full(len(found), _VALUE, np.uint8)
        states[i] = _FAILED if found[i] is FAILED else _NULL
        found[i] = None
    return states, dictionary.column(found, type_).values


def per_text(
    function: TextFunction,
    constants: Sequence[Any],
    position: int,
    dictionary: TextDictionary,
    type_: Type,
    varying: Type,
) -> CodeTable:
    """The function with all arguments constant but the one at `position`, whose type, a coded one, is `varying`.

    constants: the others.
    """
    before, after = tuple(constants[:position]), tuple(constants[position:])
    if function is _like and not before:
        return CodeTable(dictionary, like.matcher(*after), type_)
    if not after:
        return CodeTable(dictionary, partial(function, *before) if before else function, type_, varying)
    return CodeTable(dictionary, lambda value: function(*before, value, *after), type_, varying)


def per_combination(
    function: TextFunction,
    arg_types: Sequence[Type],
    dictionary: TextDictionary,
    type_: Type,
    is_strict: bool = True,
    writers: Sequence[Callable[[Any], str] | None] = (),
) -> Callable[[Sequence[Value]], Value]:
    """The function of several varying arguments, computed once per distinct combination in the chunk.

    is_strict: of a NULL it is NULL; else the function is given None.  writers: where arguments are joined, of each what
    makes it a TEXT, None where it is one.
    """

    def apply(args: Sequence[Value]) -> Value:
        valid, failed = both_valid(*args) if is_strict else None, any_failed(*args)
        lengths = [len(a.values) for a in args]
        n = max(lengths, default=1)
        if 0 in lengths:
            return Value(np.zeros(0, type_.dtype))
        # Few rows are computed one by one: None stands for all of them.
        rows, inverse = (None, None) if n <= FEW else _combinations(_keys(args, valid, n, is_strict), n)
        usable = rows
        if valid is not None:
            is_usable = full(valid, n) if rows is None else full(valid, n)[rows]
            usable = is_usable.nonzero()[0] if rows is None else rows[is_usable]
        operands = [_python(a, t, dictionary, usable, n) for a, t in zip(args, arg_types)]
        if writers:
            operands = [of if write is None else map(write, of) for write, of in zip(writers, operands)]
            found: list[Any] = [*map("".join, zip(*operands))]
        else:
            found = dictionary.allowance.listed(map(function, *operands)) if operands else [function()]
        states, results = _words_of(found, type_, dictionary)
        if valid is not None:
            results = _spread(results, is_usable)
            states = None if states is None else _spread(states, is_usable)
        if inverse is not None:
            results = results[inverse]
            states = None if states is None else states[inverse]
        if states is None:
            return finish(results, valid, failed)
        return finish(results, valid, failed, bad=states == _FAILED, null=states == _NULL)

    return apply


def _spread(results: np.ndarray[Any, Any], places: BoolArray) -> np.ndarray[Any, Any]:
    """The results at these places, 0 at others."""
    spread = np.zeros(len(places), results.dtype)
    spread[places] = results
    return spread


def _keys(args: Sequence[Value], valid: BoolArray | None, n: int, is_strict: bool) -> list[Int64Array]:
    """Columns that are alike where the arguments are, as far as the result depends on them."""
    columns = [_words(a, valid) for a in args if len(a.values) == n]
    # A NULL has the word of 0.
    masks = [valid] if is_strict else [a.valid for a in args]
    return columns + [full(mask, n).astype(np.int64) for mask in masks if mask is not None]


def _words(value: Value, valid: Any) -> Int64Array:
    """The argument as int64 words, alike in all rows whose result is NULL anyway."""
    values = value.values
    words: Int64Array = values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64)
    return words if valid is None else np.where(valid, words, 0)


def _combinations(columns: Sequence[Int64Array], n: int) -> tuple[Int64Array, Int64Array]:
    """(a row of each distinct combination, combination of each of n rows)."""
    key, size = np.zeros(n, np.int64), 1
    for column in columns:
        least = int(column.min())
        span = int(column.max()) - least + 1
        if size * span > _LARGEST_KEY:
            key, size = _numbered(key)
            column, span = _numbered(column)
            least = 0
        key = key * span + (column - least)
        size *= span
    inverse, count = _numbered(key)
    rows = np.empty(count, np.int64)
    rows[inverse] = np.arange(n)
    return rows, inverse


def _numbered(column: Int64Array) -> tuple[Int64Array, int]:
    """The number of each value among the different ones, and how many there are."""
    distinct, numbers = np.unique(column, return_inverse=True)
    return numbers.reshape(-1), len(distinct)


def _python(value: Value, type_: Type, dictionary: TextDictionary, rows: Int64Array | None, n: int) -> Iterable[Any]:
    """The Python values of rows, None for all of them; None for NULL, endlessly the same where all are alike."""
    if len(value.values) == 1 and n > 1:
        return repeat(dictionary.values(value.column(), type_)[0])
    column = Column(value.values, None if value.valid is None else full(value.valid, n))
    return dictionary.values(column if rows is None else column.take(rows), type_)
