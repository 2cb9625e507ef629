"""A sample of tuples: their attributes, and which filters drop them.

Unlike profile tuples, which some filter drops, these are all that were drawn: shares of them are shares of the stream.
Invariant: the last `capacity` tuples drawn since the last change, oldest first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.elements import AnyArray, BoolArray
from minidsms.expressions.attributes import Attributes, UInt8Array
from minidsms.expressions.classifiers import Classifier, Reading
from minidsms.expressions.value import Frame

_SEVERAL = 8
"""A column of a few tuples in ascending order may be so by chance."""
_MOST_TEXTS = 0.5
"""With more distinct texts than this share of the sample, a column is a comment, no class (section 4.4)."""


class Sample:
    """filters: how many there are.  capacity: tuples held.

    drops: (size, filters), 1 where the filter drops the tuple.  taken: tuples since the beginning.
    """

    def __init__(self, filters: int, attributes: Attributes, capacity: int) -> None:
        self.attributes = attributes
        self.capacity = capacity
        self.taken = 0
        self._filters = filters
        self.forget()

    def forget(self) -> None:
        """The streams have changed: what was drawn before tells nothing now."""
        self.drops: UInt8Array = np.zeros((0, self._filters), np.uint8)
        self._words: list[AnyArray | None] = [None for _ in self.attributes.fields]
        self._valid: list[BoolArray] = [np.zeros(0, np.bool_) for _ in self.attributes.fields]

    def __len__(self) -> int:
        return len(self.drops)

    def take(self, part: Frame, drops: BoolArray) -> None:
        """Take tuples in. part: these.  drops: (part.n, filters)."""
        last = self.capacity
        self.taken += part.n
        self.drops = np.ascontiguousarray(np.concatenate((self.drops, drops.astype(np.uint8)))[-last:])
        for column in range(len(self._words)):
            words, valid = self.attributes.words(column, part)
            before = self._words[column]
            self._words[column] = words[-last:].copy() if before is None else np.concatenate((before, words))[-last:]
            valid = np.ones(part.n, np.bool_) if valid is None else valid
            self._valid[column] = np.concatenate((self._valid[column], valid))[-last:]

    def classifier(self, column: int, reading: Reading, buckets: int, step: int = 1) -> Classifier | None:
        """The classifier that reads a column so; None where it could tell nothing: of a constant, of numbers that only
        grow or fall, as serials do, and of texts that are all different (section 4.4). step: each step-th tuple counts.
        """
        words, is_valid = self._words[column], self._valid[column][::step]
        if words is None:
            return None
        words = words[::step][is_valid]
        name = self.attributes.fields[column].name
        if reading in (Reading.HOUR, Reading.WEEKDAY):
            return Classifier(column, name, reading, {Reading.HOUR: 25, Reading.WEEKDAY: 8}[reading])
        if not len(words):
            return None
        ordered = np.sort(words)
        distinct = 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))
        if (distinct == 1 and is_valid.all()) or (distinct > _SEVERAL and _is_monotone(words, ordered)):
            return None
        if reading is Reading.RANGE:
            if distinct < 3:
                return None
            return Classifier(column, name, reading, buckets, _bounds(ordered, buckets))
        if self.attributes.is_hashed(column) and distinct > _MOST_TEXTS * len(words):
            return None
        return Classifier(column, name, reading, buckets)

    def buckets(self, classifier: Classifier, step: int = 1) -> UInt8Array:
        """Those of the tuples, or of each step-th."""
        words, valid = self._words[classifier.column], self._valid[classifier.column]
        if words is None:
            return np.zeros(0, np.uint8)
        return self.attributes.buckets(classifier, words[::step], None if valid.all() else valid[::step])


def _bounds(ordered: Any, buckets: int) -> tuple[float, ...]:
    """Between ranges of about as many of the values each, which are in order. They lie halfway between neighbouring
    values: of a few values, the grid that ranges are looked up in tells each from the next.
    """
    below = np.unique(ordered[np.arange(1, buckets - 1) * len(ordered) // (buckets - 1)])
    next_ones = np.searchsorted(ordered, below, side="right")
    below, next_ones = below[next_ones < len(ordered)], next_ones[next_ones < len(ordered)]
    return tuple((below.astype(float) / 2 + ordered[next_ones].astype(float) / 2).tolist())


def _is_monotone(words: Any, ordered: Any) -> bool:
    """It never falls, or never grows."""
    return bool((words == ordered).all() or (words == ordered[::-1]).all())
