"""Data on a terminal: tables of rows, and text that cannot drive the terminal.

Invariant: whatever stands in the data, no control character, escape sequence or mark of writing direction reaches the
terminal; all are written out as \\x1b and the like.
"""

from __future__ import annotations

import datetime
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from minidsms.answers.results import ResultCodec
from minidsms.counted import counted
from minidsms.elements import Batch, Schema, Type
from minidsms.expressions.timestamps import iso_of_ticks
from minidsms.shell.harmless import harmless

WIDEST = 60
"""How many characters of a value are shown."""


def cell(value: Any, widest: int = WIDEST) -> str:
    """A value of a table: one line, NULL for None, cut where it is longer than `widest`."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    text = harmless(str(value)).replace("\n", "\\n")
    return text if len(text) <= widest else text[: widest - 2] + ".."


def in_order(row: Sequence[Any]) -> tuple[Any, ...]:
    """A key that sorts rows: numbers and texts in their order, NULL last, what has no order by its text."""
    return tuple((v is None, str(type(v)), str(v) if isinstance(v, list | dict) else v) for v in row)


def print_table(title: str, columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]], file: TextIO) -> None:
    """A table with a title, and an empty line behind it. columns: (name, whether its values stand to the right).

    rows: of the texts `cell` makes; a row of one text where there are more columns stands as it is.
    """
    file.write(layout(title, columns, list(rows)) + "\n")
    file.flush()


def layout(title: str, columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> str:
    """The same as text, every line ended."""
    names = [cell(name) for name, _ in columns]
    full = [row for row in rows if len(row) == len(columns)]
    widths = [max([_width(name), *(_width(row[i]) for row in full)]) for i, name in enumerate(names)]
    lines = [harmless(title)] if title else []
    lines += [_line(names, columns, widths), "  ".join("-" * w for w in widths)]
    lines += [_line(row, columns, widths) if len(row) == len(columns) else row[0] for row in rows]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _line(cells: Sequence[str], columns: Sequence[tuple[str, bool]], widths: Sequence[int]) -> str:
    parts = []
    for text, (_, right), width in zip(cells, columns, widths):
        blank = " " * (width - _width(text))
        parts.append(blank + text if right else text + blank)
    return "  ".join(parts)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


class TableSink:
    """Keeps the first and the last rows of an answer and prints them as a table when it is closed.

    most: how many rows to show; 0 shows all.  Memory is bounded by them.  TIMESTAMP columns are shown as times in UTC.
    """

    def __init__(self, title: str, most: int, tick_ns: int) -> None:
        self.path = "-"
        self.rows = 0
        self._title = title
        self._most = most
        self._tick_ns = tick_ns
        self._is_signed = False
        self._first: list[tuple[Any, ...]] = []
        self._last: deque[tuple[Any, ...]] = deque(maxlen=most - most // 2 if most else None)
        self._schema: Schema | None = None
        self._codec: ResultCodec | None = None

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Note the columns."""
        self._schema, self._codec = schema, codec

    def write(self, batch: Batch) -> None:
        """Keep what will be shown."""
        n = len(batch)
        self.rows += n
        self._is_signed |= bool((batch.signs < 0).any())  # of all rows: those left out may be the ones that leave
        half = self._most // 2
        taken = n if not self._most else min(n, half - len(self._first))
        if taken:
            self._first += self._elements(batch.slice(0, taken))
        if self._most and taken < n:
            self._last.extend(self._elements(batch.slice(max(taken, n - (self._most - half)), n)))

    def _elements(self, batch: Batch) -> list[tuple[Any, ...]]:
        assert self._codec is not None and self._schema is not None
        rows = self._codec.rows(batch)
        signs = batch.signs.tolist()
        return [(ts, sign, *row) for ts, sign, row in zip(batch.ts.tolist(), signs, rows)]

    def close(self) -> None:
        """Print the table."""
        if self._schema is None:
            return
        schema, self._schema = self._schema, None
        left_out = self.rows - len(self._first) - len(self._last)
        elements = [*self._first, *self._last]
        signed = self._is_signed
        assert self._codec is not None
        has_times = self._codec.has_times
        columns = [("_ts", not has_times), *([("", False)] if signed else [])]
        columns += [(f.name, f.type in (Type.INTEGER, Type.FLOAT, Type.INTERVAL)) for f in schema]
        times = [i for i, t in enumerate(schema.types) if t is Type.TIMESTAMP]
        texts = []
        for ts, sign, *row in elements:
            for i in times:
                row[i] = None if row[i] is None else show_instant(row[i], self._tick_ns)
            instant = show_instant(ts, self._tick_ns) if has_times else str(ts)
            texts.append([instant, *(["+" if sign > 0 else "-"] if signed else []), *map(cell, row)])
        if left_out:
            texts.insert(len(self._first), [f".. {left_out:,} more"])
        print_table(f"{self._title}  ({counted(self.rows, 'row')})", columns, texts, sys.stdout)

    def discard(self) -> None:
        """Print nothing."""
        self._schema = None
        self._first.clear()
        self._last.clear()


def show_instant(ticks: int, tick_ns: int) -> str:
    """A TIMESTAMP as ISO time in UTC.

    >>> show_instant(86_400_500, 1_000_000)
    '1970-01-02 00:00:00.500'
    """
    microseconds, rest = divmod(ticks * tick_ns, 1000)
    try:
        time = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return iso_of_ticks(ticks, tick_ns)
    if rest:
        return f"{time.isoformat(' ', 'microseconds')}{rest:03d}"
    return time.isoformat(" ", "seconds" if not time.microsecond else "auto").removesuffix("000")


class Spool:
    """Lines that wait for the standard output, as another query's go first: kept, and copied when it is closed."""

    def __init__(self, before: bytes) -> None:
        self._kept = tempfile.SpooledTemporaryFile(1 << 24)  # noqa: SIM115 closed with what holds it
        self._kept.write(before)

    def write(self, data: bytes) -> None:
        """Keep lines."""
        self._kept.write(data)

    def publish(self) -> None:
        """Print them."""
        output = StandardOutput("-")
        self._kept.seek(0)
        for line in self._kept:
            output.write(line)
        output.publish()
        self._kept.close()

    def discard(self) -> None:
        """Forget them."""
        self._kept.close()


class StandardOutput:
    """The standard output as a place for lines: as they are in a pipe, harmless on a terminal."""

    def __init__(self, path: str) -> None:
        self._file = sys.stdout
        self._is_terminal = sys.stdout.isatty()

    def write(self, data: bytes) -> None:
        """Write lines of UTF-8."""
        if self._is_terminal or not hasattr(self._file, "buffer"):
            self._file.write(harmless(data.decode()) if self._is_terminal else data.decode())
        else:
            self._file.flush()
            self._file.buffer.write(data)
            self._file.buffer.flush()  # whoever reads the pipe may wait for this line

    def publish(self) -> None:
        """Let it be seen."""
        self._file.flush()

    def discard(self) -> None:
        """What is written is written."""
        self._file.flush()


__all__ = ["Spool", "StandardOutput", "TableSink", "cell", "harmless", "layout", "print_table", "show_instant"]
