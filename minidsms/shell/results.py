"""Where results go: to the screen, or to the file that `.output` names; and how a table of a statement is shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from minidsms.cql.errors import Error
from minidsms.shell.harmless import harmless
from minidsms.shell.modes.mode import ModeSpec
from minidsms.shell.screen import Screen, cut_to
from minidsms.shell.showing import cell, layout
from minidsms.shell.styles import plain
from minidsms.sinks.csv_format import field
from minidsms.sinks.destination import cannot_write

if TYPE_CHECKING:
    from minidsms.answers.table import Table


class Results:
    """See the module. path: the file that takes results, or None for the screen."""

    def __init__(self, screen: Screen) -> None:
        self.path: str | None = None
        self._screen = screen
        self._file: TextIO | None = None

    def redirect(self, path: str | None) -> None:
        """Write into a file from now on, which is emptied; None: to the screen again.

        Error where the file cannot be written.
        """
        previous, self._file, self.path = self._file, None, None
        try:
            if previous is not None:
                previous.close()
            if path is not None:
                self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 open until the next call
                self.path = path
        except (OSError, ValueError) as error:
            raise cannot_write(str(path or getattr(previous, "name", "")), error) from None

    def write(self, text: str) -> None:
        """Text for people, with its newlines; harmless already."""
        if self._file is None:
            self._screen.write(text)
        else:
            self._to_file(plain(text))

    def raw(self, text: str) -> None:
        """Lines of data for other programs."""
        if self._file is None:
            self._screen.raw(text)
        else:
            self._to_file(text)

    def lines(self, lines: Sequence[str]) -> None:
        """Lines of a table, cut where they are wider than the screen."""
        width = None if self._file is not None else self._screen.width
        shown = lines if width is None else [cut_to(line, width) for line in lines]
        self.write("".join(line + "\n" for line in shown))

    def complain(self, text: str) -> None:
        """An error, which never goes to the file."""
        self._screen.error(text)

    def _to_file(self, text: str) -> None:
        assert self._file is not None
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            path, self._file, self.path = self.path, None, None
            raise Error(f"cannot write {path!r}: {error.strerror}\nhelp: results go to the screen again") from None

    def table(self, table: Table, mode: ModeSpec) -> None:
        """The rows that a statement or command gives."""
        if mode.name == "csv":
            self.raw("".join(",".join(map(_field, row)) + "\n" for row in (table.columns, *table.rows)))
        elif mode.name == "jsonl":
            lines = [json.dumps(dict(zip(table.columns, row)), ensure_ascii=False, default=str) for row in table.rows]
            self.raw("".join(line + "\n" for line in lines))
        elif table.columns == ("plan",):
            self.write(harmless("".join(f"{line}\n" for (line,) in table.rows)))
        else:
            right = [
                all(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in table.rows)
                for i in range(len(table.columns))
            ]
            columns = list(zip(table.columns, right))
            self.lines(layout("", columns, [[_shown(v) for v in row] for row in table.rows]).rstrip("\n").split("\n"))


def _field(value: object) -> str:
    """A value in CSV, as answers have it: NULL is nothing, the empty text is in quotes."""
    if value is None:
        return ""
    if isinstance(value, bool | list | tuple | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return field(str(value))


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else cell(value)
