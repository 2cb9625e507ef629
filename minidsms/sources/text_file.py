"""A file of text as a bounded source: blocks of whole records to batches, made ahead where there are several.

Invariant: the batches, the rows that cannot be read and their order are the same with and without threads: blocks are
parsed one after the other until all is known that a block's meaning could depend on (the kind of its times, its names),
then side by side (`read_ahead`), and what could not be read is told when its block is handed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from minidsms.cql.errors import DataError, Error, shown
from minidsms.elements import Schema
from minidsms.sources.blocks import BLOCK_BYTES, LINES, Block, BlockReader, Marks, Reject, unmarked
from minidsms.sources.csv_form import USUAL, CsvForm
from minidsms.sources.csv_rows import CsvRows
from minidsms.sources.files import LOCAL, Files, open_file
from minidsms.sources.json_rows import ARRAY_HELP, JsonRows, line_of_array
from minidsms.sources.places import check_beginning, place_in
from minidsms.sources.read_ahead import ReadAhead
from minidsms.sources.source import BaseSource


class Rows(Protocol):
    """What makes batches of blocks."""

    @property
    def is_settled(self) -> bool:
        """What `parse` gives depends on its block alone from now on."""

    def parse(self, block: Block) -> tuple[Any, list[Reject]]:
        """(record batch, rows that cannot be read)."""

    @property
    def learned(self) -> Any:
        """What the blocks so far have told of the columns, as JSON."""

    def learn(self, learned: Any) -> None:
        """Go on with what another reader of the same rows has `learned`."""


class TextFile(BaseSource):
    """Base of the sources of text files; see `Source` and `GoesOn`. A subclass sets `_rows`."""

    _rows: Rows

    def __init__(self, path: str, schema: Schema, marks: Marks, block_bytes: int, files: Files = LOCAL) -> None:
        super().__init__(path, schema)
        self.position: Any = None
        self.rejected_before = 0
        self._file = open_file(path, files)
        self.bytes_total = self._file.size
        self._reader = BlockReader(path, self._file.data, marks, block_bytes)
        self._ahead: ReadAhead[Block, tuple[Block, Any, list[Reject]]] | None = None

    @property
    def bytes_read(self) -> int:
        return self._file.consumed()

    def go_on(self, position: Any) -> str:
        check_beginning(self.path, self._file, position)
        self._rows.learn(position["learned"])
        self._reader.go_on(position["byte"], position["line"])
        return ""

    def close(self) -> None:
        """Give up the file."""
        if self._ahead is not None:
            self._ahead.close()
        self._file.close()

    def read(self) -> Iterator[Any]:
        """The rows, a batch per block."""
        for block, batch, rejects in self._parsed():
            self.first_line = block.first_line
            self.position = place_in(self.path, self._file, block, self._rows.learned)
            self.rejected_before = self.rejected.count
            for each in rejects:
                self.rejected.add(*each)
            if batch.num_rows:
                yield batch
        self.close()

    def _parsed(self) -> Iterator[tuple[Block, Any, list[Reject]]]:
        blocks = self._reader.blocks()
        for block in blocks:
            yield self._parse(block)
            if self._rows.is_settled and self._file.raw.tell() < self.bytes_total:
                break
        else:
            return
        self._ahead = ReadAhead(blocks, self._parse)
        yield from self._ahead

    def _parse(self, block: Block) -> tuple[Block, Any, list[Reject]]:
        return block, *self._rows.parse(unmarked(block))


class CsvSource(TextFile):
    """Rows of a CSV file, or (types_line) of a STREAM data file."""

    def __init__(
        self,
        path: str,
        schema: Schema,
        relation: bool = False,
        types_line: bool = False,
        block_bytes: int = BLOCK_BYTES,
        form: CsvForm = USUAL,
        files: Files = LOCAL,
    ) -> None:
        super().__init__(path, schema, LINES if types_line else form.marks, block_bytes, files)
        rows = CsvRows(path, schema, self.rejected, types_line, form)
        try:
            if form.header:
                rows.take_header(self._reader.header(), relation)
            else:
                rows.take_order(False)
        except Error:
            self.close()
            raise
        self._rows = rows


class JsonSource(TextFile):
    """Rows of a JSON lines file."""

    def __init__(
        self,
        path: str,
        schema: Schema,
        relation: bool = False,
        block_bytes: int = BLOCK_BYTES,
        files: Files = LOCAL,
    ) -> None:
        super().__init__(path, schema, LINES, block_bytes, files)
        self._rows = JsonRows(path, schema, self.rejected, relation)

    def _parse(self, block: Block) -> tuple[Block, Any, list[Reject]]:
        line = None if block.start else line_of_array(block.data)
        if line is not None:
            place = f"{shown(self.path)}, line {line}"
            raise DataError(f"no row can be read: {place}: a JSON array begins\nhelp: {ARRAY_HELP}")
        return super()._parse(block)
