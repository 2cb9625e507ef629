"""Answers as tables of Arrow, pandas and polars: those of queries, their snapshots, and what statements show."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minidsms.answers.rows import Row
from minidsms.cql.errors import Error
from minidsms.extras import check_installed, library

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


_ELSEWHERE = {
    **dict.fromkeys(
        ("fetchall", "fetchone", "fetchmany", "show", "collect"),
        "iterate over it; of a query, fetch() gives the changes since the last one, snapshot() the present rows",
    ),
    **dict.fromkeys(("fetchdf", "to_df", "to_pandas", "toPandas"), "df() gives a pandas DataFrame"),
    **dict.fromkeys(("to_arrow", "to_arrow_table", "fetch_arrow_table"), "arrow() gives a pyarrow table"),
    **dict.fromkeys(("subscribe", "listen", "on"), "on_change(fn) calls fn with every change of a query"),
    "to_polars": "pl() gives a polars DataFrame",
}
"""What other systems call it, and what to write here."""


class AsFrames(abc.ABC):
    """What is a table, and so a DataFrame of pandas or polars, which are not installed with minidsms."""

    __slots__ = ()

    @abc.abstractmethod
    def arrow(self) -> pa.Table:
        """As an Arrow table."""

    def df(self) -> pd.DataFrame:
        """`arrow` as a pandas DataFrame. Error where pandas is not installed, or has no such time in a STRUCT."""
        check_installed("pandas", "df()")
        frame: pd.DataFrame = self._converted(_pandas)
        return frame

    def pl(self) -> pl.DataFrame:
        """`arrow` as a polars DataFrame. Error where polars is not installed, or has no such time."""
        polars = library("polars", "pl()")
        frame: pl.DataFrame = self._converted(lambda table: polars.from_arrow(_without_seconds(table)))
        return frame

    if not TYPE_CHECKING:  # nobody is to think that every name is there

        def __getattr__(self, name: str) -> Any:
            hint = f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def _converted(self, convert: Callable[[pa.Table], Any]) -> Any:
        """What is made of `arrow`; where that fails, nothing has been taken."""
        return convert(self.arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """`arrow` for whatever reads Arrow's C stream: pyarrow, polars, DuckDB."""
        return self.arrow().__arrow_c_stream__(requested_schema)


def _pandas(table: pa.Table) -> pd.DataFrame:
    """In STRUCTs and MAPs times are those of Python, whose years are 1 to 9999."""
    try:
        return table.to_pandas()
    except (OverflowError, ValueError) as error:
        raise Error(f"a value is none that pandas can hold: {error}\nhelp: arrow() and pl() hold it") from None


def _without_seconds(table: pa.Table) -> pa.Table:
    """Times of whole seconds in milliseconds, as polars would make of them unchecked. Error where none is so far."""
    schema = pa.schema([field.with_type(_in_milliseconds(field.type)) for field in table.schema])
    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise Error(
            f"a time is out of the range of polars' milliseconds: {error}\nhelp: arrow() and df() hold it"
        ) from None


def _in_milliseconds(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_in_milliseconds(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _in_milliseconds(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_milliseconds(field.type)) for field in kind])
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    return pa.duration("ms") if pa.types.is_duration(kind) and kind.unit == "s" else kind


class Snapshot(list[Row], AsFrames):
    """The rows of a relation at an instant: a list, whose copies and pickles are plain ones."""

    __slots__ = ("_table_of",)

    def __init__(self, rows: Iterable[Row], table_of: Callable[[Sequence[Row]], pa.Table]) -> None:
        super().__init__(rows)
        self._table_of = table_of

    def arrow(self) -> pa.Table:
        """The rows, with the query's columns; TIMESTAMP and INTERVAL in the time unit."""
        return self._table_of(self)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return list, (list(self),)


def table_of_values(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows of values whose types nobody has declared: columns of several types become texts."""
    arrays = []
    for i in range(len(columns)):
        values = [row[i] for row in rows]
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            arrays.append(pa.array([None if value is None else str(value) for value in values]))
    return pa.Table.from_arrays(arrays, names=list(columns))
