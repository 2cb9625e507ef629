"""CSV files, and the data files of the STREAM prototype, which are CSV with a line of types for a header."""

from __future__ import annotations

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.sources.blocks import BLOCK_BYTES, LINES
from minidsms.sources.csv_form import USUAL, CsvForm
from minidsms.sources.csv_rows import CsvRows
from minidsms.sources.files import LOCAL, Files
from minidsms.sources.text_file import TextFile


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
