"""Functions of TEXT, computed once per distinct text and looked up by code.

Invariant: a remembered result is dropped when the dictionary's generation changes: codes, of arguments and of results,
may then name other texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from minidsms.coded import text_of, value_of
from minidsms.dictionary import TextDictionary
from minidsms.elements import Int64Array, Type
from minidsms.expressions import like
from minidsms.expressions.value import Value, any_failed, both_valid, finish
from minidsms.functions.function import FAILED

_UNKNOWN, _VALUE, _NULL, _FAILED = 0, 1, 2, 3

TextFunction = Callable[..., Any]


def _length(text: str) -> int:
    return len(text)


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
    "length": _length,
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
    """The results of a function of one TEXT, by code. `type` is that of the results.

    lookup costs one gather once the texts are known; memory is 9 bytes per code of the dictionary.
    """

    def __init__(self, dictionary: TextDictionary, function: Callable[[str], Any], type_: Type) -> None:
        self._dictionary = dictionary
        self._function = function
        self._type = type_
        self._forget()

    def _forget(self) -> None:
        self._generation = self._dictionary.generation
        self._results: np.ndarray[Any, Any] = np.zeros(1, self._type.dtype)
        self._states = np.full(1, _NULL, np.uint8)
        self._is_total = True

    def __call__(self, a: Value) -> Value:
        """The function of every row, strict in NULL and failure."""
        if self._generation != self._dictionary.generation:
            self._forget()
        codes: Int64Array = a.values
        if len(self._states) < self._dictionary.capacity:
            self._grow(max(self._dictionary.capacity, 2 * len(self._states)))
        states = self._states[codes]
        if not states.all():
            for code in np.unique(codes[states == _UNKNOWN]).tolist():
                self._learn(code)
            states = self._states[codes]
        results = self._results[codes]
        if self._is_total:
            return finish(results, a.valid, a.failed)
        return finish(results, a.valid, a.failed, bad=states == _FAILED, null=states == _NULL)

    def _grow(self, size: int) -> None:
        results = np.zeros(size, self._type.dtype)
        states = np.zeros(size, np.uint8)
        results[: len(self._results)] = self._results
        states[: len(self._states)] = self._states
        self._results, self._states = results, states

    def _learn(self, code: int) -> None:
        state, word = _word(self._function(self._dictionary.text(code)), self._type, self._dictionary)
        self._states[code] = state
        self._results[code] = word
        if state != _VALUE:
            self._is_total = False


def _word(result: Any, type_: Type, dictionary: TextDictionary) -> tuple[int, Any]:
    if result is FAILED:
        return _FAILED, 0
    if result is None or result != result:
        return _NULL, 0
    return _VALUE, dictionary.code(text_of(result, type_)) if type_.is_coded else result


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
    if varying is Type.TEXT:
        return CodeTable(dictionary, lambda text: function(*before, text, *after), type_)
    return CodeTable(dictionary, lambda text: function(*before, value_of(text, varying), *after), type_)


def per_combination(
    function: TextFunction,
    arg_types: Sequence[Type],
    dictionary: TextDictionary,
    type_: Type,
    is_strict: bool = True,
) -> Callable[[Sequence[Value]], Value]:
    """The function of several varying arguments, computed once per distinct combination in the chunk.

    is_strict: of a NULL it is NULL; else the function is given None.
    """

    def apply(args: Sequence[Value]) -> Value:
        valid, failed = both_valid(*args) if is_strict else None, any_failed(*args)
        n = max((len(a.values) for a in args), default=1)
        if any(len(a.values) == 0 for a in args):
            n = 0
        columns = [np.broadcast_to(_words(a, valid), (n,)) for a in args]
        # A NULL has the word of 0.
        masks = [valid] if is_strict else [a.valid for a in args]
        columns += [np.broadcast_to(mask, (n,)).astype(np.int64) for mask in masks if mask is not None]
        rows, inverse = _combinations(columns)
        pools = [_python(a, t, dictionary) for a, t in zip(args, arg_types)]
        results = np.zeros(len(rows), type_.dtype)
        states = np.full(len(rows), _VALUE, np.uint8)
        usable = np.broadcast_to(np.ones(1, np.bool_) if valid is None else valid, (n,))[rows]
        for i, row in enumerate(rows.tolist()):
            if usable[i]:
                operands = (pool(row if len(a.values) == n else 0) for pool, a in zip(pools, args))
                states[i], results[i] = _word(function(*operands), type_, dictionary)
        per_row = states[inverse]
        return finish(results[inverse], valid, failed, bad=per_row == _FAILED, null=per_row == _NULL)

    return apply


def _words(value: Value, valid: Any) -> Int64Array:
    """The argument as int64 words, alike in all rows whose result is NULL anyway."""
    values = value.values
    words: Int64Array = values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64)
    return words if valid is None else np.where(valid, words, 0)


def _combinations(columns: Sequence[Int64Array]) -> tuple[Int64Array, Int64Array]:
    """(first row of each distinct combination, combination of each row)."""
    n = len(columns[0])
    key = np.zeros(n, np.int64)
    for column in columns:
        _, part = np.unique(column, return_inverse=True)
        # Both factors are at most n after the renumbering below, so the key stays far inside int64.
        key = key * (int(part.max()) + 1 if n else 1) + part.reshape(-1)
        _, key = np.unique(key, return_inverse=True)
        key = key.reshape(-1)
    _, first = np.unique(key, return_index=True)
    return first, key


def _python(value: Value, type_: Type, dictionary: TextDictionary) -> Callable[[int], Any]:
    """Row -> Python value, None for NULL."""
    values, valid = value.values, value.valid

    def present(row: int) -> Any:
        return value_of(dictionary.text(int(values[row])), type_) if type_.is_coded else values[row].item()

    if valid is None:
        return present
    return lambda row: present(row) if valid[row if len(valid) > 1 else 0] else None
