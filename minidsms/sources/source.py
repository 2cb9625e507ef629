"""What a source is: typed record batches, read a block at a time, or taken as they come.

Invariants: memory is bounded, whatever the source's size; a row that cannot be read is counted and kept with its line
and reason, and does not stop the others; a batch has the schema's columns in its order, then `_ts` and `_sign` where
the source has them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.inputs.rejected import RejectedRows

TS_COLUMN = "_ts"
SIGN_COLUMN = "_sign"
"""Names of the columns a batch carries beside the schema's."""

BATCH_ROWS = 65_536
"""Rows of a batch of the columnar formats."""


@dataclass(frozen=True)
class Pace:
    """How a source is read.

    speed: event time against the clock on the wall: 1.0 is real time, None as fast as possible.  idle_after_s: after so
    long without a row the stream's time goes on with the clock, None never.
    """

    speed: float | None = None
    idle_after_s: float | None = None


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
    pace: Pace

    @property
    def bytes_read(self) -> int:
        """Bytes of the file consumed so far."""

    def read(self) -> Iterator[Any]:
        """The rows as pyarrow.RecordBatch, in the file's order."""

    def close(self) -> None:
        """Give up the file. Closing twice is no error."""


class BaseSource:
    """What sources have from the beginning, bounded and live ones; see `Source`."""

    first_line: int | None = None
    pace = Pace()

    def __init__(self, path: str, schema: Schema) -> None:
        self.path = path
        self.schema = schema
        self.rejected = RejectedRows()


@dataclass(frozen=True)
class Heartbeat:
    """Said by a source between its rows: nothing at or before the instant comes any more."""

    ts: int


@runtime_checkable
class GoesOn(Protocol):
    """A source, bounded or live, that another process can go on with. Of a bounded one that is none, the rows that have
    been read are read again, and passed over.

    position: of the block that the last rows are of, as JSON; None: nobody can be asked for it again.  rejected_before:
    rows that could not be read before that block.
    """

    rejected_before: int

    @property
    def position(self) -> Any:
        """Where the block begins."""

    def go_on(self, position: Any) -> str:
        """Before anything is read: begin at a position; what is to be told of it, or "". Error where the source is not
        the same. With the position come `rows` and `bad`: how many of its block were pushed, and could not be read;
        and `held`, which gives the rows that a relation has.
        """


@dataclass(frozen=True)
class ReadUntil:
    """How far a source has been read, so that another process can go on there.

    at: where a block begins, as JSON (`GoesOn`); None: the source says no positions, and counts from its
    beginning.  rows: of it that have been pushed.  bad: of it that cannot be read.  rejected: of the whole source.
    """

    at: Any = None
    rows: int = 0
    bad: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class FileColumn:
    """A column to read: its position and name in the file, and the name it has in the batch."""

    position: int
    name: str
    batch_name: str


def choose_columns(
    path: str, names: Sequence[str], schema: Schema, relation: bool, otherwise: str = ""
) -> list[FileColumn]:
    """Where the schema's columns stand in the file, by name without case and outer spaces; then ts and sign.

    A relation's file may have `ts` or `_ts`, `sign` or `_sign` beside the schema's columns: both or neither. Other
    columns are ignored. Error where a column is missing, or ambiguous.  otherwise: what may be behind a missing one.
    """
    positions: dict[str, int] = {}
    twice = set()
    for i, name in enumerate(names):
        key = name.strip().lower()
        if key in positions:
            twice.add(key)
        positions.setdefault(key, i)
    chosen = []
    for field in schema:
        key = field.name.strip().lower()
        if key in twice:
            raise Error(f'{path}: two columns are named "{field.name}"')
        if key not in positions:
            near = [] if otherwise else difflib.get_close_matches(key, positions, 1)
            has = ", ".join(names[:30]) + (", .." if len(names) > 30 else "")
            hint = f'did you mean "{names[positions[near[0]]]}"?' if near else f"the file has: {has}{otherwise}"
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
