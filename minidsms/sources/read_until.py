"""How far a source has been read, so that another process can go on there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ReadUntil:
    """at: where a block begins, as JSON (`source.GoesOn`); None: the source says no positions, and counts from its
    beginning.  rows: of it that have been pushed.  bad: of it that cannot be read.  rejected: of the whole source.
    """

    at: Any = None
    rows: int = 0
    bad: int = 0
    rejected: int = 0
