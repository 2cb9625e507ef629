"""A table of values, as statements give that register nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from minidsms.answers.frames import AsFrames, table_of_values


@dataclass(frozen=True)
class Table(AsFrames):
    """The rows a SHOW, DESCRIBE or EXPLAIN gives, VALUES, and a query over rows written out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def arrow(self) -> pa.Table:
        """As an Arrow table."""
        return table_of_values(self.columns, self.rows)

    def _repr_html_(self) -> str:
        from minidsms.notebook.html import table_html

        return table_html(self.columns, self.rows, sys.maxsize)

    def __str__(self) -> str:
        cells = [self.columns, *[tuple("" if v is None else str(v) for v in row) for row in self.rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in cells)
