"""What a bounded source is: typed record batches read from a file, a block at a time.

Invariants: memory is bounded by a block, whatever the file's size; a row that cannot be read is counted and kept with
its line and reason, and does not stop the others; a batch has the schema's columns in its order, then `_ts` and
`_sign` where the file has them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.inputs.rejected import RejectedRows

TS_COLUMN = "_ts"
SIGN_COLUMN = "_sign"
"""Names of the columns a batch carries beside the schema's."""

BATCH_ROWS = 65_536
"""Rows of a batch of the columnar formats."""


class Source(Protocol):
    """A bounded source.

    rejected: malformed rows, (text, reason) with the line in the reason.  first_line: the file's line the last batch
    begins at, or None where lines mean nothing.  bytes_total, bytes_read: for a progress bar.
    """

    path: str
    schema: Schema
    rejected: RejectedRows
    first_line: int | None
    bytes_total: int

    @property
    def bytes_read(self) -> int:
        """Bytes of the file consumed so far."""
        ...

    def read(self) -> Iterator[Any]:
        """The rows as pyarrow.RecordBatch, in the file's order."""
        ...

    def close(self) -> None:
        """Give up the file. Closing twice is no error."""
        ...


@dataclass(frozen=True)
class FileColumn:
    """A column to read: its position and name in the file, and the name it has in the batch."""

    position: int
    name: str
    batch_name: str


def choose_columns(path: str, names: Sequence[str], schema: Schema, relation: bool) -> list[FileColumn]:
    """Where the schema's columns stand in the file, by case-insensitive name; then the ts and sign of a relation.

    A relation's file may have `ts` or `_ts`, `sign` or `_sign` beside the schema's columns: both or neither. Other
    columns are ignored. Error where a column is missing, or ambiguous.
    """
    positions: dict[str, int] = {}
    twice = set()
    for i, name in enumerate(names):
        if name.lower() in positions:
            twice.add(name.lower())
        positions.setdefault(name.lower(), i)
    chosen = []
    for field in schema:
        key = field.name.lower()
        if key in twice:
            raise Error(f'{path}: two columns are named "{field.name}"')
        if key not in positions:
            near = difflib.get_close_matches(key, positions, 1)
            has = ", ".join(names[:30]) + (", .." if len(names) > 30 else "")
            hint = f'did you mean "{names[positions[near[0]]]}"?' if near else f"the file has: {has}"
            raise Error(f'{path}: no column "{field.name}"\nhelp: {hint}')
        chosen.append(FileColumn(positions[key], names[positions[key]], field.name))
    if relation:
        own = {name.lower() for name in schema.names}
        extra = []
        for plain, name in (("ts", TS_COLUMN), ("sign", SIGN_COLUMN)):
            key = name if name in positions else plain
            if key in positions and key not in own:
                extra.append(FileColumn(positions[key], names[positions[key]], name))
        if len(extra) == 2:
            chosen += extra
        elif extra and extra[0].batch_name == SIGN_COLUMN:
            raise Error(f"{path}: a sign column without a ts column\nhelp: a file of changes has both, ts and sign")
        else:
            chosen += extra
    return chosen
