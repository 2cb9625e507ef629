"""The rows of one instant.

Invariant: they are held only while rows of the next one may come.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from minidsms.elements import MIN_INSTANT, Int64Array, Schema, words_width


class InstantRows:
    """instant: theirs.  words: (n, w), see `elements.row_words`."""

    def __init__(self, schema: Schema) -> None:
        self._coded = schema.coded
        self._none: Int64Array = np.zeros((0, words_width(len(schema))), np.int64)
        self.instant = MIN_INSTANT
        self.words = self._none

    def __len__(self) -> int:
        return len(self.words)

    def hold(self, instant: int, words: Int64Array) -> None:
        """Hold these rows and no others."""
        self.instant, self.words = instant, words

    def clear(self) -> None:
        """Hold none."""
        self.words = self._none

    @property
    def nbytes(self) -> int:
        return self.words.nbytes

    def arrays(self) -> dict[str, Int64Array]:
        """The rows, as words, and their instant."""
        return {"words": self.words, "instant": np.array([self.instant], np.int64)}

    def restore(self, arrays: dict[str, Int64Array]) -> None:
        self.hold(int(arrays["instant"][0]), np.ascontiguousarray(arrays["words"]))

    def live_codes(self) -> Iterable[Int64Array]:
        return [self.words[:, c] for c in self._coded]
