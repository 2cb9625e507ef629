"""Files of JSON lines."""

from __future__ import annotations

from minidsms.elements import Schema
from minidsms.sources.blocks import BLOCK_BYTES, LINES
from minidsms.sources.files import LOCAL, Files
from minidsms.sources.json_rows import JsonRows
from minidsms.sources.text_file import TextFile


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
