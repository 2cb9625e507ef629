"""The text dictionary of a connection: TEXT values as int64 codes, so that kernels see numbers only.

A text has one code as long as anybody may hold it; equal texts have equal codes. Code 0 is NULL. What nobody holds is
reclaimed by `sweep`, and only then may its code name another text. Codes below 0 are computed from their texts
(`minidsms.values.coded`), which stand nowhere.

Invariants:
  - `_codes[_texts[c]] == c` for every live code c >= 1; freed codes have no text and stand in `_free`;
  - a code held by a `HeldText` (a constant of a plan) survives every sweep as long as that object lives;
  - `generation` grows whenever codes were freed: whoever remembers codes elsewhere forgets them then.
docs/design, decision 5; docs/semantics R4.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import compress, filterfalse, repeat
from typing import Any, cast

import numpy as np
import pyarrow as pa

from minidsms.cql.errors import DataError
from minidsms.elements import Column, Int64Array, Type, is_all_true
from minidsms.limits.allowance import OPEN, Allowance
from minidsms.values.coded import (
    CODE_OF_ZERO,
    code_of_digits,
    digits_of,
    scaled,
    text_of,
    text_of_digits,
    unscaled,
    value_of,
    values_of,
)

_UNSEEN = -1
_SMALL = 8
"""The order of the whole dictionary is kept up for questions of at least 1/8 of its size."""


_FIRST = -(2**63)
_FEW = 16
"""Codes that are ranked, and values that are looked up, in Python, one by one."""
_TEXT_NBYTES = 160
"""Bytes of a text beside its characters: the object, its places in the list and in the table of codes."""
_STEP = 2**18
"""Bytes by which it grows before anybody is told."""


class HeldText:
    """A text whose code stays valid as long as this object is referenced: a constant of a plan."""

    __slots__ = ("__weakref__", "code", "text")

    def __init__(self, text: str, code: int) -> None:
        self.text = text
        self.code = code


class TextDictionary:
    """Texts and their codes.

    >>> d = TextDictionary()
    >>> column = d.encode(["b", None, "a", "b"])
    >>> column.values.tolist(), d.decode(column)
    ([1, 0, 2, 1], ['b', None, 'a', 'b'])
    >>> d.sweep([d.encode(["a"]).values]); len(d)
    1
    """

    def __init__(self, allowance: Allowance = OPEN) -> None:
        """allowance: told as the texts grow; it may refuse one, which then is not there."""
        self._texts: list[str | None] = [None]
        self._codes: dict[str | None, int] = {None: 0}
        self._free: list[int] = []
        self._held: weakref.WeakSet[HeldText] = weakref.WeakSet()
        self._ranks: Int64Array | None = None
        self._arrow: Any = None
        self.generation = 0
        self.keeps_all = False
        """No code is freed: somebody is still to name those that are held."""
        self.nbytes = 0
        self.allowance = allowance
        self._told = 0

    def __len__(self) -> int:
        """How many texts are live."""
        return len(self._codes) - 1

    @property
    def capacity(self) -> int:
        """Every code is below it."""
        return len(self._texts)

    # ------------------------------------------------------------------------------------------------- one text

    def code(self, text: Any) -> int:
        """The code of the text, given to it now if it had none. DataError where it is not valid Unicode."""
        code = self._codes.get(text)
        return self._add(text) if code is None else code

    def code_of(self, value: Any, type_: Type) -> int:
        """The code of a value, not NULL, of a coded type."""
        if type_.kind == "DECIMAL":
            return self.code_of_digits(unscaled(value, type_.scale))
        return self.code(text_of(value, type_))

    def code_of_digits(self, digits: int) -> int:
        """The code of a DECIMAL, given its digits without the point."""
        return code_of_digits(digits) or self.code(text_of_digits(digits))

    def text(self, code: int) -> str:
        """The text of a live code; KeyError for NULL's 0 and for codes nobody has."""
        if code < 0:
            return text_of_digits(code - CODE_OF_ZERO)
        text = self._texts[code] if 0 < code < len(self._texts) else None
        if text is None:
            raise KeyError(code)
        return text

    def _grow(self, nbytes: int) -> None:
        """It is to grow by so much; MemoryLimitError where there is no room, which is asked at every step."""
        grown = self.nbytes + nbytes
        if grown > self._told + _STEP:
            if not self.allowance.is_open:
                self.allowance.take(grown - self._told)
            self._told = grown
        self.nbytes = grown

    def hold(self, value: Any, type_: Type = Type.TEXT) -> HeldText:
        """The code of a value of a coded type, safe from every sweep while the returned object lives."""
        held = HeldText(text_of(value, type_), self.code_of(value, type_))
        self._held.add(held)
        return held

    def _add(self, text: object) -> int:
        if not isinstance(text, str):
            raise DataError(f"a TEXT value must be a str or None, not {type(text).__name__}")
        text = str(text)
        try:
            # A lone surrogate is no character: it could neither be shown, nor written, nor handed to Arrow.
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(f"a TEXT value is not valid Unicode: {text[:40]!a}") from error
        self._grow(len(text) + _TEXT_NBYTES)
        code = self._free[-1] if self._free else len(self._texts)
        try:
            self._codes[text] = code
            if self._free:
                self._texts[code] = text
                self._free.pop()
            else:
                self._texts.append(text)
        except MemoryError:
            self._codes.pop(text, None)
            self.nbytes -= len(text) + _TEXT_NBYTES
            raise
        self._ranks = None
        self._arrow = None
        return code

    def _add_all(self, texts: Sequence[Any]) -> Int64Array | None:
        """Give codes to texts that have none, all different, at once; to none of them, and None, where one may be
        refused.
        """
        if {*map(type, texts)} != {str}:
            return None
        try:
            for text in filterfalse(str.isascii, texts):
                text.encode("utf-8")
        except UnicodeEncodeError:
            return None
        nbytes = sum(map(len, texts)) + _TEXT_NBYTES * len(texts)
        self._grow(nbytes)
        first = len(self._texts)
        reused = self._free[: -1 - len(texts) : -1]
        try:
            self._texts += texts[len(reused) :]
            codes = np.concatenate((np.array(reused, np.int64), np.arange(first, len(self._texts))))
            self._codes.update(zip(texts, codes.tolist()))
            for code, text in zip(reused, texts):
                self._texts[code] = text
        except MemoryError:
            for text in texts:
                self._codes.pop(text, None)
            del self._texts[first:]
            self.nbytes -= nbytes
            raise
        del self._free[len(self._free) - len(reused) :]
        self._ranks = None
        self._arrow = None
        return codes

    def take(self, codes: Sequence[int], texts: Sequence[str]) -> None:
        """Let texts have these codes, which rise, in a dictionary that is empty; they stay until somebody says that no
        more is to come (`keeps_all`). ValueError where it is not empty, or a text has two codes.
        """
        if len(self) or len(set(texts)) < len(texts):
            raise ValueError("texts come before all others, and once")
        self._texts += [None] * codes[-1]
        for code, text in zip(codes, texts):
            self._texts[code], self._codes[text] = text, code
        self.nbytes = sum(map(len, texts)) + _TEXT_NBYTES * len(texts)
        self._free = [c for c in range(codes[-1], 0, -1) if self._texts[c] is None]
        self.keeps_all = True

    def beside(self) -> TextDictionary:
        """The texts there are now, to be read by another thread as long as this one keeps all."""
        made = copy.copy(self)
        made._arrow = made._ranks = None
        return made

    # ------------------------------------------------------------------------------------------------- many texts

    def encode(self, values: Sequence[str | None] | Any) -> Column:
        """The values as a TEXT column, (n,).

        values: a sequence of str and None, or a pyarrow Array or ChunkedArray of string, large_string, string_view,
        null, or a dictionary of these. Python touches each distinct value of an Arrow batch once. DataError for
        anything else; then texts seen before the bad one may have got codes, which the next sweep takes back.
        """
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
            if isinstance(values, pa.ChunkedArray):
                return Column.concat([self.encode(chunk) for chunk in values.chunks])
        return _coded(self._encode_arrow(values) if isinstance(values, pa.Array) else self._encode_sequence(values))

    def _encode_sequence(self, values: Sequence[str | None]) -> Int64Array:
        items = values.tolist() if isinstance(values, np.ndarray) else values
        try:
            if len(items) <= _FEW:
                return np.array([self.code(item) for item in items], np.int64)
            codes = np.fromiter(map(self._codes.get, items, repeat(_UNSEEN)), np.int64, len(items))
        except TypeError as error:
            raise DataError("a TEXT value must be a str or None") from error
        unseen = (codes == _UNSEEN).nonzero()[0]
        if len(unseen) > _FEW:
            texts = [items[row] for row in unseen.tolist()]
            different = [*dict.fromkeys(texts)]
            added = self._add_all(different)
            if added is not None:
                if len(different) < len(texts):
                    added = np.fromiter(map(self._codes.__getitem__, texts), np.int64, len(texts))
                codes[unseen] = added
                return codes
        for row in unseen.tolist():
            codes[row] = self.code(items[row])
        return codes

    def _encode_arrow(self, array: Any) -> Int64Array:
        if not pa.types.is_dictionary(array.type):
            if pa.types.is_null(array.type):
                return np.zeros(len(array), np.int64)
            if not (
                pa.types.is_string(array.type)
                or pa.types.is_large_string(array.type)
                or pa.types.is_string_view(array.type)
            ):
                raise DataError(f"an Arrow column of {array.type} cannot be read as TEXT")
            if len(array) <= _FEW:
                return self._encode_sequence(array.to_pylist())
            if pa.types.is_string_view(array.type):
                array = array.cast(pa.large_string())
            array = array.dictionary_encode()
        codes = self._encode_sequence(array.dictionary.to_pylist())
        # Position 0 of the table is NULL, so that a NULL index finds it.
        table = np.concatenate((np.zeros(1, np.int64), codes))
        indices = array.indices.cast(pa.int64())
        if indices.null_count:
            indices = indices.fill_null(-1)
        return cast(Int64Array, table[indices.to_numpy(zero_copy_only=False) + 1])

    def decode(self, column: Column) -> list[Any]:
        """The column's texts, None for NULL."""
        codes = self.clean(column).tolist()
        texts = self._texts
        try:
            return [texts[code] for code in codes]
        except IndexError:  # a computed code is below all places from the end
            return [self.text(code) if code else None for code in codes]

    def column(self, values: Sequence[Any], type_: Type) -> Column:
        """Python values of the type (`minidsms.values.coded`), None for NULL, as a column."""
        if type_.kind == "DECIMAL":
            return self.digits_column([None if v is None else unscaled(v, type_.scale) for v in values])
        if type_ is Type.TEXT:
            return _coded(self._encode_sequence(values))
        if type_.is_coded:
            texts = (None if v is None else text_of(v, type_) for v in values)
            return _coded(self._encode_sequence(self.allowance.listed(texts)))
        valid = np.array([v is not None for v in values], np.bool_) if None in values else None
        return Column(np.array([v or 0 for v in values], type_.dtype), valid)

    def digits_column(self, digits: Sequence[int | None]) -> Column:
        """DECIMALs, given by their digits without the point, as a column."""
        return _coded(np.array([0 if d is None else self.code_of_digits(d) for d in digits], np.int64))

    def encode_as(self, texts: Sequence[str | None], type_: Type) -> Column:
        """Values of a coded type, given by their texts, as a column."""
        if type_.kind == "DECIMAL":
            return self.digits_column([None if text is None else digits_of(text) for text in texts])
        return self.encode(texts)

    def values(self, column: Column, type_: Type) -> list[Any]:
        """The inverse of `column`."""
        if not type_.is_coded:
            values = column.values.tolist()
            if column.valid is None:
                return values  # type: ignore[no-any-return]
            return [v if ok else None for v, ok in zip(values, column.valid.tolist())]
        if type_ is Type.TEXT:
            return self.decode(column)
        if type_.kind == "DECIMAL":
            scale = type_.scale
            return [
                scaled(code - CODE_OF_ZERO, scale) if code < 0 else value_of(self.text(code), type_) if code else None
                for code in self.clean(column).tolist()
            ]
        return [*values_of(self.decode(column), type_)]

    def new_values(self, codes: Int64Array, type_: Type) -> Iterable[Any]:
        """Values that were not asked for before, none NULL, one by one: of TEXT or what is nested."""
        texts = self.decode(Column(codes))
        return texts if type_ is Type.TEXT else values_of(texts, type_, _FEW)

    def decode_arrow(self, column: Column) -> Any:
        """The column's texts as a pyarrow string array. Each distinct text is touched at most once."""
        if len(column) <= _FEW:
            return pa.array(self.decode(column), pa.string())
        codes = self.clean(column)
        if self._is_small(codes):
            distinct, inverse = self._distinct(codes)
            return distinct.take(inverse)
        return self._all().take(pa.array(codes))

    def _is_small(self, codes: Int64Array) -> bool:
        """It is better, or there is no other way, to ask for the different texts of a column alone."""
        return (self._arrow is None and len(codes) * _SMALL < self.capacity) or has_computed(codes)

    def _distinct(self, codes: Int64Array) -> tuple[Any, Any]:
        """The different texts of a column, and which of them each row has."""
        unique, inverse = np.unique(codes, return_inverse=True)
        return pa.array(self.decode(Column(unique)), pa.string()), pa.array(inverse.reshape(-1))

    def _all(self) -> Any:
        """All texts by their codes."""
        if self._arrow is None:
            self._arrow = pa.array(self._texts, pa.string())
        return self._arrow

    def dictionary_arrow(self, column: Column, copy: Callable[[Int64Array], Int64Array] = np.copy) -> Any:
        """The column as a pyarrow dictionary array: codes and their texts, which need not be looked up one by one.

        copy: makes a copy of the codes, which in the column may change.
        """
        if len(column) <= _FEW:
            return pa.array(self.decode(column), pa.string())
        codes = self.clean(column)
        if self._is_small(codes):
            distinct, inverse = self._distinct(codes)
            return pa.DictionaryArray.from_arrays(inverse, distinct)
        return pa.DictionaryArray.from_arrays(pa.array(copy(codes)), self._all(), safe=False)

    @staticmethod
    def clean(column: Column) -> Int64Array:
        """The column's codes, 0 for NULL."""
        codes = cast(Int64Array, column.values)
        return codes if column.valid is None else np.where(column.valid, codes, 0)

    # ------------------------------------------------------------------------------------------------- order

    def ranks(self, codes: Int64Array) -> Int64Array:
        """Numbers in the order of the texts, by code point; NULL (0) ranks first. (n,) int64.

        Ranks compare with others of the same call only: rank two columns together by concatenating them.
        """
        computed = has_computed(codes)
        if computed and codes.max() <= 0:
            return np.where(codes == 0, _FIRST, codes)
        if self._ranks is None or computed:
            if len(codes) <= _FEW:
                distinct = [*set(codes.tolist())]
                ranks = dict(zip(distinct, self._order(distinct).tolist()))
                return np.array([ranks[code] for code in codes.tolist()], np.int64)
            if len(codes) * _SMALL < self.capacity or computed:
                unique, inverse = np.unique(codes, return_inverse=True)
                return self._order(unique.tolist())[inverse.reshape(-1)]
            self._ranks = self._order(range(self.capacity))
        return self._ranks[codes]

    def _order(self, codes: Sequence[int]) -> Int64Array:
        """The rank of each code among the given ones; freed codes rank with NULL."""
        texts = [self.text(c) if c < 0 else self._texts[c] for c in codes]
        # "" is less than every other text, yet more than NULL: the flag keeps them apart.
        order = sorted(range(len(texts)), key=lambda i: (texts[i] is not None, texts[i] or ""))
        ranks = np.empty(len(texts), np.int64)
        ranks[order] = np.arange(len(texts))
        return ranks

    # ------------------------------------------------------------------------------------------------- reclamation

    def sweep(self, live_codes: Iterable[Int64Array]) -> None:
        """Free every code that stands in none of the arrays and is not held. O(capacity + all codes given).

        The caller names everything that may still hold codes: stores, queues, groups, caches, undelivered results.
        """
        if self.keeps_all:
            return
        live = np.zeros(self.capacity, np.bool_)
        live[0] = True
        for codes in live_codes:
            live[codes[codes > 0] if has_computed(codes) else codes] = True
        for held in self._held:
            if held.code > 0:
                live[held.code] = True
        live[self._free] = False  # somebody may name what was freed before
        if np.count_nonzero(live) == len(self._codes):
            return
        kept = np.flatnonzero(live).tolist()
        gone = [text for code in np.flatnonzero(~live).tolist() if (text := self._texts[code]) is not None]
        # Free codes at the end are dropped, so that tables by code shrink too; small codes are reused first.
        live = live[: kept[-1] + 1]
        texts = [text if is_live else None for text, is_live in zip(self._texts, live.tolist())]
        if len(gone) < len(kept):
            for text in gone:
                del self._codes[text]
            codes_of = dict(self._codes)  # a dict never gives back room by deletion
        else:
            codes_of = dict(zip(compress(texts, live.tolist()), kept))
        self._texts, self._codes, self._free = texts, codes_of, np.flatnonzero(~live)[::-1].tolist()
        self.nbytes -= sum(map(len, gone)) + _TEXT_NBYTES * len(gone)
        self._told = min(self._told, self.nbytes)
        self._ranks = None
        self._arrow = None
        self.generation += 1


def has_computed(codes: Int64Array) -> bool:
    """Some code is computed: it stands in no table by code."""
    return bool(len(codes)) and bool(codes.min() < 0)


def _coded(codes: Int64Array) -> Column:
    valid = codes != 0
    return Column(codes, None if is_all_true(valid) else valid)
