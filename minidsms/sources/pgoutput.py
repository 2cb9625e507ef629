"""What PostgreSQL's logical decoding says (`pgoutput`, version 1): messages of transactions to rows that went and came.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minidsms.cql.errors import Error

Row = tuple[bytes | None, ...]
"""Values as PostgreSQL writes them, in the order asked for."""


@dataclass
class Transaction:
    """What a transaction did to the table: (sign, row). end: the position in the server's log behind it."""

    end: int
    changes: list[tuple[int, Row]]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, form: str) -> int:
        """A number, by its form as of struct."""
        (value,) = struct.unpack_from(f"!{form}", self._data, self._at)
        self._at += struct.calcsize(f"!{form}")
        return int(value)

    def some(self, length: int) -> bytes:
        """So many bytes."""
        self._at += length
        return self._data[self._at - length : self._at]

    def text(self) -> str:
        """A text that ends with a zero."""
        end = self._data.index(b"\0", self._at)
        found, self._at = self._data[self._at : end].decode(), end + 1
        return found

    def row(self, old: Sequence[bytes | None] = ()) -> list[bytes | None]:
        """The values of a row; what has not changed, and is not sent, is that of the old one."""
        values: list[bytes | None] = []
        for i in range(self.take("H")):
            kind = self.some(1)
            if kind == b"u":
                values.append(old[i])
            else:
                values.append(None if kind == b"n" else self.some(self.take("i")))
        return values


class Decoder:
    """Reads the messages of one table. table: (schema, name).  positions: of the columns asked for among those that a
    message names; Error where one is missing.
    """

    def __init__(self, table: tuple[str, str], positions: Callable[[list[str]], list[int]]) -> None:
        self._table, self._positions = table, positions
        self._chosen: dict[int, list[int]] = {}
        self._open: list[tuple[int, Row]] = []

    def read(self, message: bytes) -> Transaction | None:
        """A transaction, with the message that ends it. Error for TRUNCATE, which does not say what went."""
        reader = _Reader(message)
        kind = reader.some(1)
        if kind == b"B":
            self._open = []
        elif kind == b"C":
            reader.some(9)
            return Transaction(reader.take("Q"), self._open)
        elif kind == b"R":
            self._learn(reader)
        elif kind == b"T":
            count = reader.take("I")
            reader.some(1)
            if any(reader.take("I") in self._chosen for _ in range(count)):
                reason = "was emptied by TRUNCATE, which does not say which rows went"
                hint = "DELETE tells; or leave it out: ALTER PUBLICATION .. SET (publish = 'insert, update, delete')"
                raise Error(f"table {'.'.join(self._table)} {reason}\nhelp: {hint}")
        elif kind in (b"I", b"U", b"D"):
            self._change(reader)
        return None

    def _learn(self, reader: _Reader) -> None:
        """Which table a number means, and its columns as they are from now on."""
        number = reader.take("I")
        if (reader.text(), reader.text()) != self._table:
            return
        reader.some(1)
        names = []
        for _ in range(reader.take("H")):
            reader.some(1)
            names.append(reader.text())
            reader.some(8)
        self._chosen[number] = self._positions(names)

    def _change(self, reader: _Reader) -> None:
        chosen = self._chosen.get(reader.take("I"))
        if chosen is None:
            return
        old: list[bytes | None] = []
        kind = reader.some(1)
        if kind in (b"O", b"K"):
            old = reader.row()
            self._open.append((-1, tuple(old[i] for i in chosen)))
            kind = reader.some(1)
        if kind == b"N":
            new = reader.row(old)
            self._open.append((1, tuple(new[i] for i in chosen)))
