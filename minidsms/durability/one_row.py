"""Record batches of one row without NULL, written and read without Arrow, whose calls take longer than all the rest.

Invariant: the bytes are those that Arrow writes. What stands before the values says how long texts are and nothing else
of them, so that it is Arrow's own, kept from the first row with texts as long; and it is kept only where the values
behind it stand as `struct` packs them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

_MOST = 1024
"""Different lengths of texts that are remembered."""
_ALIGNED = 8
_MARK = struct.Struct("<ii")
"""-1, and the length of what stands between it and the values."""
_CODES = {pa.int64(): "q", pa.float64(): "d", pa.bool_(): "?7x"}

Lengths = tuple[int, ...]


class OneRow:
    """Rows of one schema of int64, double, boolean and string."""

    def __init__(self, schema: pa.Schema) -> None:
        self._kinds = schema.types
        self._texts = [pa.types.is_string(kind) for kind in self._kinds]
        self._heads: dict[Lengths, tuple[bytes, struct.Struct]] = {}
        self._lengths: dict[bytes, Lengths] = {}

    def encoded(self, values: Sequence[Any]) -> bytes | None:
        """A row's message; None where no row with texts as long has been learned, or a value is NULL."""
        if None in values:
            return None
        flat, lengths = self._flat(values)
        known = self._heads.get(lengths)
        return None if known is None else known[0] + known[1].pack(*flat)

    def decoded(self, message: memoryview) -> list[Any] | None:
        """The values of a message; None as of `encoded`."""
        end = _MARK.size + _MARK.unpack_from(message)[1]
        lengths = self._lengths.get(bytes(message[:end]))
        if lengths is None:
            return None
        flat = iter(self._heads[lengths][1].unpack_from(message, end))
        return [_text(flat) if is_text else next(flat) for is_text in self._texts]

    def learn(self, values: Sequence[Any], message: memoryview) -> None:
        """Take a message of Arrow for a pattern."""
        if None in values or len(self._heads) >= _MOST:
            return
        flat, lengths = self._flat(values)
        form = self._form(lengths)
        if form is None or lengths in self._heads:
            return
        end = len(message) - form.size
        head = bytes(message[:end])
        if end == _MARK.size + _MARK.unpack_from(message)[1] and bytes(message[end:]) == form.pack(*flat):
            self._heads[lengths] = head, form
            self._lengths[head] = lengths

    def _flat(self, values: Sequence[Any]) -> tuple[list[Any], Lengths]:
        """What `struct` packs, and how many bytes each text has."""
        flat: list[Any] = []
        lengths: list[int] = []
        for value, is_text in zip(values, self._texts):
            if is_text:
                text = value.encode()
                lengths.append(len(text))
                flat += 0, len(text), text
            else:
                flat.append(value)
        return flat, tuple(lengths)

    def _form(self, lengths: Lengths) -> struct.Struct | None:
        """How the values are packed; None where a column is of another kind."""
        left = iter(lengths)
        codes = [f"ii{-(-next(left) // _ALIGNED) * _ALIGNED}s" if t else _CODES.get(k) for k, t in self._columns()]
        return None if None in codes else struct.Struct("<" + "".join(filter(None, codes)))

    def _columns(self) -> zip[tuple[pa.DataType, bool]]:
        return zip(self._kinds, self._texts)


def _text(flat: Any) -> str:
    _, length, text = next(flat), next(flat), next(flat)
    return str(text[:length], "utf-8")
