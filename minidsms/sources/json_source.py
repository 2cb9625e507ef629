"""Files of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minidsms.elements import Schema
from minidsms.inputs.rejected import RejectedRows
from minidsms.sources.blocks import BLOCK_BYTES, BlockReader, open_file
from minidsms.sources.json_rows import JsonRows
from minidsms.sources.source import Pace


class JsonSource:
    """Rows of a JSON lines file."""

    pace = Pace()

    def __init__(self, path: str, schema: Schema, relation: bool = False, block_bytes: int = BLOCK_BYTES) -> None:
        self.path = path
        self.schema = schema
        self.rejected = RejectedRows()
        self.first_line: int | None = None
        self._file, self._raw, self.bytes_total = open_file(path)
        self._reader = BlockReader(path, self._file, False, block_bytes)
        self._rows = JsonRows(path, schema, self.rejected, relation)

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
