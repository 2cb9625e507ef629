"""What the log tells of a file, so that a reader need not open it: its rows, and between which values each column lies.

They come from the footer that the Parquet file has anyhow, when it is committed. Long texts are cut, outwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from minidsms.archive.storage import storage_of

_TEXT_LENGTH = 32
_GREATEST = "\U0010ffff"


@dataclass(frozen=True)
class Range:
    """Of a column in a file. low, high: no value lies below or above, None where nothing is known; both may be wider
    than the values are.
    """

    low: bool | int | float | str | None
    high: bool | int | float | str | None
    has_nulls: bool
    has_values: bool


@dataclass(frozen=True)
class Statistics:
    """Of a file. ranges: by the field's name; a column that is not there may hold anything."""

    rows: int
    ranges: Mapping[str, Range]

    def to_json(self) -> list[Any]:
        """As a manifest has them."""
        return [self.rows, {name: [r.low, r.high, r.has_nulls, r.has_values] for name, r in self.ranges.items()}]

    @classmethod
    def from_json(cls, data: Iterable[Any]) -> Statistics:
        """The inverse. Raises TypeError, ValueError and AttributeError for anything else."""
        rows, ranges = data
        read = {str(name): Range(*values) for name, values in ranges.items()}
        for known in read.values():
            if not all(bound is None or _is_bound(bound) for bound in (known.low, known.high)):
                raise ValueError("a bound of a column is no value")
        return cls(int(rows), read)


def _is_bound(value: object) -> bool:
    """Whether a column may have such a value: a number that is finite, or a text."""
    if isinstance(value, int | float):
        return math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**63
    return isinstance(value, str)


def statistics_of(path: str, fields: Iterable[str]) -> Statistics | None:
    """Of the flat columns among these fields, from the footer of a file; None where it cannot be read."""
    from pyarrow import parquet

    try:
        inside, system = storage_of(path).arrow(path)
        footer = parquet.read_metadata(inside, filesystem=system)
        wanted, found = set(fields), {}
        for i in range(footer.num_columns if footer.num_row_groups else 0):
            name = footer.schema.column(i).path
            if name in wanted:
                groups = [footer.row_group(g).column(i).statistics for g in range(footer.num_row_groups)]
                if all(s is not None and s.has_null_count for s in groups):
                    found[name] = _range(groups)
        return Statistics(footer.num_rows, {name: r for name, r in found.items() if r is not None})
    except (OSError, pa.ArrowException, ValueError, OverflowError):  # such as a date that Python has not
        return None


def _range(groups: Iterable[Any]) -> Range | None:
    """What the row groups of a column have together; None for types that are not compared by ranges."""
    with_values = [s for s in groups if s.num_values]
    has_nulls = any(s.null_count for s in groups)
    if not with_values:
        return Range(None, None, has_nulls, False)
    if not all(s.has_min_max for s in with_values):
        return Range(None, None, has_nulls, True)
    low, high = min(s.min for s in with_values), max(s.max for s in with_values)
    if not isinstance(low, bool | int | float | str):
        return None
    return Range(_bound(low, is_low=True), _bound(high, is_low=False), has_nulls, True)


def _bound(value: Any, is_low: bool) -> Any:
    """The value, or one that is shorter and further out; None where there is none."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, str) or len(value) <= _TEXT_LENGTH:
        return value
    cut = value[:_TEXT_LENGTH]
    if is_low:
        return cut
    return cut + _GREATEST if value <= cut + _GREATEST else None
