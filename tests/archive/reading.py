"""What the tests want to know of an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minidsms.archive import files
from minidsms.archive.format import find


def elements(folder: Path | str, name: str) -> list[tuple[Any, ...]]:
    """The elements of an archive in their order: (ts, sign, values..)."""
    return [(row["_ts"], row["_sign"], *list(row.values())[3:]) for row in rows(folder, name)]


def rows(folder: Path | str, name: str) -> list[dict[str, Any]]:
    """The elements of an archive in their order, as dicts."""
    return [row for table in files.read(find(str(folder), name)) for row in table.to_pylist()]
