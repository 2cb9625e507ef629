"""What a file of answers holds, to be compared: which rows stand together in an instant is not for the order to say."""

from __future__ import annotations

import csv
from collections import Counter


def lines_of(path: str) -> tuple[list[int], Counter[tuple[str, ...]]]:
    """(the instants of a CSV file's rows in their order, the rows)."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
        file.seek(0)
        assert file.read().endswith("\n")
    return [int(row[0]) for row in rows[1:]], Counter(map(tuple, rows))
