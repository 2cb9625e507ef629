"""What an input did not take: late rows under LATE DROP, malformed rows of a source. Counted all, kept the newest.

Invariant: at most `limit` rows are kept, however many were refused (docs/semantics T6).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

KEPT_ROWS = 1000
"""How many rejected rows an input keeps for inspection."""
_MOST_EXAMPLES = 3


@dataclass
class InputCounters:
    """Rows an input has seen: taken, dropped for lateness, and not taken at all (late ones included). shed: elements
    that overload has cost one query or several (`minidsms.limits.admission`).
    """

    accepted: int = 0
    late_dropped: int = 0
    rejected: int = 0
    shed: int = 0


class RejectedRows:
    """The newest rejected rows and why: (row, reason), oldest first. Reads like a sequence; `count` has them all."""

    __slots__ = ("_rows", "count")

    limit: ClassVar[int] = KEPT_ROWS
    """How many rows are kept."""

    def __init__(self) -> None:
        self._rows: deque[tuple[Any, str]] = deque(maxlen=KEPT_ROWS)
        self.count = 0

    def add(self, row: Any, reason: str) -> None:
        """Keep one row."""
        self._rows.append((row, reason))
        self.count += 1

    def skip(self, n: int) -> None:
        """Count n rows that newer ones would push out at once."""
        self.count += n

    def examples(self) -> str:
        """Why the first of those kept were left out, a line each; the end of a sentence that says how many were."""
        reasons = [reason for _, reason in itertools.islice(self._rows, _MOST_EXAMPLES)]
        told = "\n  ".join(["", *reasons]) if len(reasons) > 1 else "".join(f" {reason}" for reason in reasons)
        return f", for example:{told}" if reasons else ""

    def __repr__(self) -> str:
        return repr(list(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, str]]:
        return iter(self._rows)

    def __getitem__(self, index: int) -> tuple[Any, str]:
        return self._rows[index]
