"""CSV files, and the data files of the STREAM prototype, which are CSV with a line of types for a header."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.inputs.rejected import RejectedRows
from minidsms.sources.blocks import BLOCK_BYTES, BlockReader, open_file
from minidsms.sources.csv_rows import CsvRows
from minidsms.sources.source import Pace


class CsvSource:
    """Rows of a CSV file, or (types_line) of a STREAM data file."""

    pace = Pace()

    def __init__(
        self,
        path: str,
        schema: Schema,
        relation: bool = False,
        types_line: bool = False,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.path = path
        self.schema = schema
        self.rejected = RejectedRows()
        self.first_line: int | None = None
        self._file, self._raw, self.bytes_total = open_file(path)
        self._reader = BlockReader(path, self._file, not types_line, block_bytes)
        self._rows = CsvRows(path, schema, self.rejected, types_line)
        try:
            self._rows.take_header(self._reader.header(), relation)
        except Error:
            self.close()
            raise

    @property
    def bytes_read(self) -> int:
        """Bytes of the file consumed so far."""
        return self.bytes_total if self._raw.closed else self._raw.tell()

    def close(self) -> None:
        """Give up the file."""
        self._file.close()
        self._raw.close()

    def read(self) -> Iterator[Any]:
        """The rows, a batch per block."""
        for block in self._reader.blocks():
            self.first_line = block.first_line
            batch = self._rows.read(block)
            if batch.num_rows:
                yield batch
        self.close()
