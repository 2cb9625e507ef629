"""Lines of one connection or growing file as typed batches and heartbeats.

A record is a line: CSV, with or without a first line of names, or a JSON object. The line `_heartbeat,ts`, or the
object {"_heartbeat": ts}, is no row: it promises that nothing at or before ts follows (docs/semantics T4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.inputs.rejected import RejectedRows
from minidsms.sources.blocks import BYTE_ORDER_MARK, LINES, Block, unmarked
from minidsms.sources.csv_form import CsvForm
from minidsms.sources.csv_rows import CsvRows
from minidsms.sources.json_rows import JsonRows
from minidsms.sources.line_cutter import lines_apart
from minidsms.sources.source import Heartbeat

LINE_FORMATS = ("csv", "json")

_HEARTBEAT_CSV = rb"^_heartbeat%b[ \t]*(-?[0-9]{1,19})[ \t]*\r?\n"
_HEARTBEAT_JSON = re.compile(
    rb'^[ \t]*\{[ \t]*"_heartbeat"[ \t]*:[ \t]*(-?[0-9]{1,19})[ \t]*\}[ \t]*\r?\n', re.MULTILINE
)


class LineRows:
    """Reads the blocks of one origin, in order.

    path: as errors name the origin.  form: of CSV, None: JSON.  is_lenient: an origin whose header does not fit is
    counted as one malformed line and otherwise ignored, instead of being an Error.
    """

    def __init__(
        self,
        path: str,
        schema: Schema,
        rejected: RejectedRows,
        relation: bool,
        form: CsvForm | None,
        is_lenient: bool = False,
    ) -> None:
        self._csv = None if form is None else CsvRows(path, schema, rejected, form=form)
        self._marks = LINES if form is None else form.marks
        self._heartbeat = _HEARTBEAT_JSON
        if form is not None:
            self._heartbeat = re.compile(_HEARTBEAT_CSV % re.escape(self._marks.delimiter), re.MULTILINE)
        self._json = JsonRows(path, schema, rejected, relation)
        self._relation = relation
        self._needs_header = form is not None and form.header
        self._is_lenient = is_lenient
        self._is_ignored = False
        if self._csv is not None and not self._needs_header:
            self._csv.take_order(relation)

    def take_header(self, line: bytes) -> None:
        """Learn the columns from the first line. Error where one is missing."""
        assert self._csv is not None
        self._needs_header = False
        self._csv.take_header(line.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n"), self._relation)

    @property
    def learned(self) -> Any:
        return (self._json if self._csv is None else self._csv).learned

    def learn(self, learned: Any) -> None:
        """Go on with what another reader of the same origin has `learned`."""
        (self._json if self._csv is None else self._csv).learn(learned)

    def read(self, block: Block) -> list[Any]:
        """The block's rows as record batches, and its heartbeats between them."""
        if self._is_ignored:
            return []
        if self._needs_header:
            end = block.data.find(b"\n") + 1
            try:
                self.take_header(block.data[:end])
            except Error as error:
                if not self._is_lenient:
                    raise
                self._is_ignored = True
                assert self._csv is not None
                reason = str(error).split("\n")[0]
                self._csv.rejected.add(block.data[:end][:1000].decode("utf-8", "replace"), reason)
                return []
            block = Block(block.data[end:], block.first_line + 1)
        else:
            block = unmarked(block)
        found: list[Any] = []
        for part in self._parts(block):
            if isinstance(part, Heartbeat):
                found.append(part)
            elif self._csv is None:
                found.append(self._json.read(part))
            else:
                found += [self._csv.read(lines) for lines in lines_apart(part, self._marks)]
        return [item for item in found if isinstance(item, Heartbeat) or item.num_rows]

    def _parts(self, block: Block) -> Iterator[Block | Heartbeat]:
        """The block without the lines of heartbeats, in order."""
        if b"_heartbeat" not in block.data or block.is_broken:
            if block.data:
                yield block
            return
        start, line = 0, block.first_line
        for match in self._heartbeat.finditer(block.data):
            if match.start() > start:
                yield Block(block.data[start : match.start()], line)
            yield Heartbeat(int(match.group(1)))
            line += block.data.count(b"\n", start, match.end())
            start = match.end()
        if start < len(block.data):
            yield Block(block.data[start:], line)
