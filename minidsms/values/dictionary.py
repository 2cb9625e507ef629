"""The text dictionary of a connection: TEXT values as int64 codes, so that kernels see numbers only.

A text has one code as long as anybody may hold it; equal texts have equal codes. Code 0 is NULL. What nobody holds is
reclaimed by `sweep`, and only then may its code name another text.

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
from itertools import repeat
from typing import Any, cast

import numpy as np
import pyarrow as pa

from minidsms.cql.errors import DataError
from minidsms.elements import Column, Int64Array, Type, is_all_true
from minidsms.limits.allowance import OPEN, Allowance
from minidsms.values.coded import text_of, value_of

_UNSEEN = -1
_SMALL = 8
"""The order of the whole dictionary is kept up for questions of at least 1/8 of its size."""


_FEW = 16
"""Codes that are ranked in Python, whatever the dictionary's size."""
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

    def text(self, code: int) -> str:
        """The text of a live code; KeyError for NULL's 0 and for codes nobody has."""
        text = self._texts[code] if 0 < code < len(self._texts) else None
        if text is None:
            raise KeyError(code)
        return text

    def _tell(self, text: str) -> None:
        """It is to grow by more than a step since this was told; MemoryLimitError where there is no room."""
        if not self.allowance.is_open:
            try:
                self.allowance.take(self.nbytes - self._told)
            except BaseException:
                self.nbytes -= len(text) + _TEXT_NBYTES
                raise
        self._told = self.nbytes

    def hold(self, text: str) -> HeldText:
        """The text's code, safe from every sweep while the returned object lives."""
        held = HeldText(text, self.code(text))
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
        self.nbytes += len(text) + _TEXT_NBYTES
        if self.nbytes > self._told + _STEP:
            self._tell(text)
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
        self.keeps_all = True
        self._shrink()

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
            codes = np.fromiter(map(self._codes.get, items, repeat(_UNSEEN)), np.int64, len(items))
        except TypeError as error:
            raise DataError("a TEXT value must be a str or None") from error
        for row in (codes == _UNSEEN).nonzero()[0].tolist():
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
        texts = self._texts
        return [texts[code] for code in self.clean(column).tolist()]

    def column(self, values: Sequence[Any], type_: Type) -> Column:
        """Python values of the type (`minidsms.values.coded`), None for NULL, as a column."""
        if type_.is_coded:
            return _coded(self._encode_sequence([None if v is None else text_of(v, type_) for v in values]))
        valid = np.array([v is not None for v in values], np.bool_) if None in values else None
        return Column(np.array([v or 0 for v in values], type_.dtype), valid)

    def values(self, column: Column, type_: Type) -> list[Any]:
        """The inverse of `column`."""
        if type_ is Type.TEXT:
            return self.decode(column)
        if type_.is_coded:
            return [None if text is None else value_of(text, type_) for text in self.decode(column)]
        values = column.values.tolist()
        if column.valid is None:
            return values  # type: ignore[no-any-return]
        return [v if ok else None for v, ok in zip(values, column.valid.tolist())]

    def decode_arrow(self, column: Column) -> Any:
        """The column's texts as a pyarrow string array. Each distinct text is touched at most once."""
        codes = self.clean(column)
        if self._arrow is None and len(codes) * _SMALL < self.capacity:
            unique, inverse = np.unique(codes, return_inverse=True)
            return pa.array([self._texts[c] for c in unique.tolist()], pa.string()).take(pa.array(inverse.reshape(-1)))
        if self._arrow is None:
            self._arrow = pa.array(self._texts, pa.string())
        return self._arrow.take(pa.array(codes))

    def dictionary_arrow(self, column: Column, copy: Callable[[Int64Array], Int64Array] = np.copy) -> Any:
        """The column as a pyarrow dictionary array: codes and their texts, which need not be looked up one by one.

        copy: makes a copy of the codes, which in the column may change.
        """
        codes = self.clean(column)
        if self._arrow is None and len(codes) * _SMALL < self.capacity:
            unique, inverse = np.unique(codes, return_inverse=True)
            texts = pa.array([self._texts[c] for c in unique.tolist()], pa.string())
            return pa.DictionaryArray.from_arrays(pa.array(inverse.reshape(-1)), texts)
        if self._arrow is None:
            self._arrow = pa.array(self._texts, pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(copy(codes)), self._arrow, safe=False)

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
        if self._ranks is None:
            if len(codes) <= _FEW:
                distinct = [*set(codes.tolist())]
                ranks = dict(zip(distinct, self._order(distinct).tolist()))
                return np.array([ranks[code] for code in codes.tolist()], np.int64)
            if len(codes) * _SMALL < self.capacity:
                unique, inverse = np.unique(codes, return_inverse=True)
                return self._order(unique.tolist())[inverse.reshape(-1)]
            self._ranks = self._order(range(self.capacity))
        return self._ranks[codes]

    def _order(self, codes: Sequence[int]) -> Int64Array:
        """The rank of each code among the given ones; freed codes rank with NULL."""
        texts = [self._texts[c] for c in codes]
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
            live[codes] = True
        for held in self._held:
            live[held.code] = True
        dead = [c for c in np.flatnonzero(~live).tolist() if self._texts[c] is not None]
        if not dead:
            return
        for code in dead:
            text = self._texts[code]
            del self._codes[text]
            self.nbytes -= len(text or "") + _TEXT_NBYTES
            self._texts[code] = None
        self._told = min(self._told, self.nbytes)
        self._shrink()
        self._ranks = None
        self._arrow = None
        self.generation += 1

    def _shrink(self) -> None:
        """Drop the free codes at the end, so that tables by code shrink too; reuse small codes first."""
        while len(self._texts) > 1 and self._texts[-1] is None:
            self._texts.pop()
        self._free = [c for c in range(len(self._texts) - 1, 0, -1) if self._texts[c] is None]
        # A dict never gives back room by deletion.
        self._codes = dict(self._codes)


def _coded(codes: Int64Array) -> Column:
    valid = codes != 0
    return Column(codes, None if is_all_true(valid) else valid)
