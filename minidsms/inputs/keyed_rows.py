"""The rows of a relation by its KEY, for changes that put a row in the place of those with its key.

Invariant: it holds exactly the rows present, each as often as it is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.elements import Batch, Column, Int8Array, Int64Array, Schema, columns_of_words, row_words, words_width

_Words = tuple[int, ...]
_ROW_BYTES = 300
"""About what a row takes."""


@dataclass(frozen=True)
class Replacement:
    """Changes after which each row given stands alone under its key: instants, signs, rows as columns and as words;
    none where all stand so already.  now: the row that then stands under each key given.
    """

    instants: Int64Array
    signs: Int8Array
    columns: Sequence[Column]
    words: Int64Array
    now: Mapping[_Words, list[_Words]]


class KeyedRows:
    """The rows of a relation. key: the columns of its KEY.  present: the rows there now."""

    def __init__(self, schema: Schema, key: Sequence[int], present: Batch) -> None:
        self._schema = schema
        self._places = [(i, len(schema) + i // 62, i % 62) for i in key]
        """Of each column of the KEY the word, and the word and the bit that say whether it is NULL."""
        self._rows: defaultdict[_Words, list[_Words]] = defaultdict(list)
        self.add(present.ts, None, present.columns)

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return len(self._rows) * _ROW_BYTES

    def add(self, instants: Int64Array, signs: Int8Array | None, columns: Sequence[Column]) -> None:
        """Changes have been made; signs None: all are insertions."""
        present = [1] * len(instants) if signs is None else signs.tolist()
        for key, row, sign in zip(*self._keys_and_rows(columns), present):
            self._change(key, row, sign)

    def replacing(self, instants: Int64Array, columns: Sequence[Column]) -> Replacement:
        """By which changes each row comes to stand alone under its key, the last of several."""
        now: dict[_Words, list[_Words]] = {}
        changes: list[tuple[int, int, _Words]] = []
        for ts, key, row in zip(instants.tolist(), *self._keys_and_rows(columns)):
            before = now.get(key, self._rows.get(key, []))
            if before != [row]:
                changes += [(ts, -1, old) for old in before]
                changes.append((ts, 1, row))
            now[key] = [row]
        words = np.array([row for _, _, row in changes], np.int64).reshape(-1, words_width(len(columns)))
        signs = np.array([sign for _, sign, _ in changes], np.int8)
        changed = np.array([ts for ts, _, _ in changes], np.int64)
        return Replacement(changed, signs, columns_of_words(words, self._schema), words, now)

    def replace(self, by: Replacement) -> None:
        """The changes that `replacing` gave have been made."""
        self._rows.update(by.now)

    def _keys_and_rows(self, columns: Sequence[Column]) -> tuple[list[_Words], list[_Words]]:
        """Of each row the words of its KEY, every one behind a bit for NULL, and all words."""
        rows = list(map(tuple, row_words(columns).tolist()))
        keys: list[_Words] = []
        for row in rows:
            key: _Words = ()
            for i, mask, bit in self._places:
                key += row[mask] >> bit & 1, row[i]
            keys.append(key)
        return keys, rows

    def _change(self, key: _Words, row: _Words, sign: int) -> None:
        rows = self._rows[key]
        if sign > 0:
            rows.append(row)
            return
        rows.remove(row)
        if not rows:
            del self._rows[key]
