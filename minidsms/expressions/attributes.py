"""The attributes of the tuples that a pipeline filters: as words to keep in a sample, and as buckets.

A word is the value itself (int64, float64); of a TEXT and of nested types a hash of what they say, and of a DECIMAL its
digits as a float, for codes are given to other texts once nobody holds them. Hashes are kept by code for a generation
of the dictionary.
Invariant: words of one column are all of one dtype; a NULL has word 0 and is not valid.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from minidsms.elements import AnyArray, BoolArray, Column, Int64Array, Schema
from minidsms.expressions.classifiers import Classifier, Reading, readings_of
from minidsms.expressions.value import Frame
from minidsms.values.coded import CODE_OF_ZERO, digits_of
from minidsms.values.dictionary import TextDictionary

UInt8Array = npt.NDArray[np.uint8]

MOST = 32
"""Columns that are considered: the first of the tuple."""
_HOUR_NS, _DAY_NS = 3_600_000_000_000, 86_400_000_000_000
_UNIT_NS = {"DATE": _DAY_NS, "TIME": 1000}
"""Of types that are not counted in ticks."""
_FEW = 8192
"""Tuples for which ranges are searched for rather than looked up in a grid."""
_GRID = 1022
"""Cells between the first and the last bound of ranges."""


class Attributes:
    """schema: of the tuples.  tick_ns: length of a tick."""

    def __init__(self, schema: Schema, dictionary: TextDictionary, tick_ns: int) -> None:
        self.fields = schema.fields[:MOST]
        self._dictionary = dictionary
        self._tick_ns = tick_ns
        self._hashes = _ByCode(dictionary, lambda text: zlib.crc32(text.encode("utf-8", "surrogatepass")))

    def readings(self) -> list[tuple[int, Reading]]:
        """Every column with every way to read it."""
        return [(i, reading) for i, field in enumerate(self.fields) for reading in readings_of(field.type)]

    def has(self, classifier: Classifier) -> bool:
        """Its column can be read so."""
        fields = self.fields
        return 0 <= classifier.column < len(fields) and classifier.reading in readings_of(
            fields[classifier.column].type
        )

    def is_hashed(self, column: int) -> bool:
        """Its words are hashes."""
        type_ = self.fields[column].type
        return type_.is_coded and type_.kind != "DECIMAL"

    def words(self, column: int, frame: Frame) -> tuple[AnyArray, BoolArray | None]:
        """(words, valid or None for all), both (frame.n,)."""
        value = frame.column(column)
        return self.words_of(column, Column(value.values, value.valid))

    def words_of(self, column: int, read: Column) -> tuple[AnyArray, BoolArray | None]:
        """As `words`, of what stands in the column."""
        values: Any = read.values
        if self.fields[column].type.kind == "DECIMAL":
            values = self._digits(values)
        elif self.is_hashed(column):
            values = self._hashes.of(values)
        elif values.dtype == np.bool_:
            values = values.astype(np.int64)
        return values, read.valid

    def _digits(self, codes: Int64Array) -> AnyArray:
        """The digits of DECIMALs without the point, as floats; 0 of NULL."""
        digits = np.where(codes < 0, codes - CODE_OF_ZERO, 0).astype(np.float64)
        for row in np.flatnonzero(codes > 0).tolist():
            digits[row] = digits_of(self._dictionary.text(codes.item(row)))
        return digits

    def buckets(self, classifier: Classifier, words: AnyArray, valid: BoolArray | None) -> UInt8Array:
        """(n,) each below `classifier.buckets`."""
        from minidsms.kernels import content_routing as kernels
        from minidsms.kernels.arrays import normal

        out = np.empty(len(words), np.uint8)
        numbers: Any = words
        match classifier.reading:
            case Reading.RANGE:
                floats = normal(numbers.astype(np.float64, copy=False))
                if len(floats) < _FEW:
                    out[:] = 1 + np.searchsorted(np.array(classifier.bounds), floats, side="left")
                else:
                    kernels.ranges(floats, *_grid(classifier.bounds), out)
            case Reading.VALUE:
                kernels.remainders(normal(numbers), classifier.buckets, out)
            case Reading.HOUR:
                out[:] = 1 + numbers // self._units(classifier.column, _HOUR_NS) % 24 % (classifier.buckets - 1)
            case Reading.WEEKDAY:
                # 1970 began on a Thursday.
                days = (numbers // self._units(classifier.column, _DAY_NS) + 3) % 7
                out[:] = 1 + days % (classifier.buckets - 1)
        if valid is not None:
            out[~valid] = 0
        return out

    def cells(self, classifier: Classifier, frame: Frame) -> UInt8Array:
        """The buckets of a frame's rows, (frame.n,)."""
        return self.buckets(classifier, *self.words(classifier.column, frame))

    def _units(self, column: int, ns: int) -> int:
        """How many of the column's units such a time has, at least 1."""
        return max(ns // _UNIT_NS.get(self.fields[column].type.kind, self._tick_ns), 1)


class _ByCode:
    """Words of the texts that a dictionary codes.  word: of a text."""

    def __init__(self, dictionary: TextDictionary, word: Callable[[str], int]) -> None:
        self._dictionary = dictionary
        self._word = word
        self._generation = dictionary.generation
        self._words: Any = np.zeros(1, np.int64)
        self._is_known = np.zeros(1, np.bool_)

    def of(self, codes: Int64Array) -> AnyArray:
        """(n,), 0 of NULL."""
        dictionary = self._dictionary
        if self._generation != dictionary.generation:
            self._generation = dictionary.generation
            self._is_known[:] = False
        if len(self._words) < dictionary.capacity:
            self._words, self._is_known = (
                np.concatenate((each, np.zeros(2 * dictionary.capacity - len(each), each.dtype)))
                for each in (self._words, self._is_known)
            )
        for code in np.unique(codes[~self._is_known[codes]]).tolist():
            self._words[code] = self._word(dictionary.text(code)) if code else 0
            self._is_known[code] = True
        words: AnyArray = self._words[codes]
        return words


@lru_cache(maxsize=64)
def _grid(bounds: tuple[float, ...]) -> tuple[float, float, UInt8Array]:
    """(low, scale, grid): the ranges between bounds, in cells of equal width; the first and the last lie outside."""
    if not bounds:
        return 0.0, 0.0, np.ones(1, np.uint8)
    low, high = bounds[0], bounds[-1]
    width = (high - low) / _GRID
    if not 0 < width < np.inf:
        # A single bound, or bounds further apart than floats go: below and above the first.
        return low - 1e-9, 1e9, np.array([1, 2], np.uint8)
    centres = low + width * (np.arange(-1, _GRID + 1) + 0.5)
    grid = 1 + np.searchsorted(np.array(bounds), centres, side="left")
    return low - width, 1 / width, grid.astype(np.uint8)
