"""The texts of codes as bytes, for kernels that compare them.

A text is its UTF-8, which is in the order of code points, up to a byte 0; the bytes 0 and 1 of a text are written as
two, 1 1 and 1 2, so that the order stays.

Invariant: the bytes of all codes that are held stand here, once `cover` has been called. `kernels.text_order` reads
them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minidsms.elements import Column, Int64Array
from minidsms.kernels.text_order import WrittenTexts
from minidsms.synopses.object_states import Texts

_FEW = 16
"""Codes that are looked up one by one."""
_FIRST_BYTES = 1024
_UNKNOWN = -1


class TextBytes:
    """texts: the dictionary; None where there are no codes."""

    def __init__(self, texts: Texts | None) -> None:
        self._texts = texts
        self.forget()

    @property
    def written(self) -> WrittenTexts:
        """For kernels."""
        return WrittenTexts(self._starts, self._bytes)

    @property
    def nbytes(self) -> int:
        return self._starts.nbytes + self._bytes.nbytes

    def forget(self) -> None:
        """Codes may get other texts from now on."""
        self._starts: Int64Array = np.full(1, _UNKNOWN, np.int64)
        self._bytes = np.zeros(_FIRST_BYTES, np.uint8)
        self._used = 0
        self._has_held = False

    def cover(self, codes: Int64Array, held: Callable[[], Int64Array]) -> None:
        """See that the texts of these codes are here, and of those that the owner holds, which `held` gives."""
        new = self._unknown(codes)
        if not self._has_held or (len(new) and not self._add(new)):
            self._write_anew(np.concatenate([codes, held()]))

    def _unknown(self, codes: Int64Array) -> Int64Array:
        """Those that stand in the dictionary and not here, each once."""
        starts = self._starts
        if len(codes) <= _FEW:
            few = {c for c in codes.tolist() if c > 0 and (c >= len(starts) or starts.item(c) == _UNKNOWN)}
            return np.array([*few], np.int64)
        found = codes[codes > 0]
        is_known = found < len(starts)
        is_known[is_known] = starts[found[is_known]] != _UNKNOWN
        return np.unique(found[~is_known])

    def _add(self, new: Int64Array) -> bool:
        """Whether there is room."""
        written = self._in_bytes(new)
        total = sum(map(len, written))
        if self._used + total > len(self._bytes):
            return False
        self._put(new, written, total)
        return True

    def _write_anew(self, codes: Int64Array) -> None:
        """Write these, and no others; there is room for as much."""
        codes = np.unique(codes)
        codes = codes[codes > 0]
        written = self._in_bytes(codes)
        total = sum(map(len, written))
        self._starts = np.full(1, _UNKNOWN, np.int64)
        self._bytes = np.zeros(max(_FIRST_BYTES, 1 << (2 * total).bit_length()), np.uint8)
        self._used = 0
        self._has_held = True
        self._put(codes, written, total)

    def _put(self, codes: Int64Array, written: list[bytes], total: int) -> None:
        if not len(codes):
            return
        missing = int(codes.max()) + 1 - len(self._starts)
        if missing > 0:
            more = np.full(max(missing, len(self._starts)), _UNKNOWN, np.int64)
            self._starts = np.concatenate([self._starts, more])
        lengths = np.fromiter(map(len, written), np.int64, len(written))
        self._starts[codes] = self._used + lengths.cumsum() - lengths
        self._bytes[self._used : self._used + total] = np.frombuffer(b"".join(written), np.uint8)
        self._used += total

    def _in_bytes(self, codes: Int64Array) -> list[bytes]:
        assert self._texts is not None
        return [
            text.encode().replace(b"\1", b"\1\2").replace(b"\0", b"\1\1") + b"\0"
            for text in self._texts.decode(Column(codes))
            if text is not None
        ]
