"""Elements of an answer as texts for the terminal. Every value passes `cell`: nothing in it can drive the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from minidsms.answers.rows import Row
from minidsms.counted import counted
from minidsms.elements import Schema, Type
from minidsms.shell.showing import cell, layout

if TYPE_CHECKING:
    from minidsms.answers.results import ResultCodec
    from minidsms.elements import Batch
    from minidsms.shell.instants import Instants

Element = tuple[int, int, Row]
"""(ts, sign, row)."""


def elements_of(batch: Batch, codec: ResultCodec) -> list[Element]:
    """The batch decoded."""
    return list(zip(batch.ts.tolist(), batch.signs.tolist(), codec.rows(batch)))


def cells_of(row: Sequence[Any], schema: Schema, instants: Instants) -> list[str]:
    """A row's values as texts of one line each."""
    return [
        instants.timestamp(value) if type_ is Type.TIMESTAMP and value is not None else cell(value)
        for value, type_ in zip(row, schema.types)
    ]


def is_number(type_: Type) -> bool:
    """Values of the type stand to the right."""
    return type_ in (Type.INTEGER, Type.FLOAT, Type.INTERVAL) or type_.kind == "DECIMAL"


def table_lines(
    title: str, rows: Iterable[Sequence[Any]], schema: Schema, instants: Instants, left_out: int = 0
) -> list[str]:
    """A table of rows with a title."""
    columns = [(f.name, is_number(f.type)) for f in schema]
    text = layout(title, columns, [cells_of(row, schema, instants) for row in rows])
    lines = text.rstrip("\n").split("\n")
    return [*lines, f".. {counted(left_out, 'more row')}"] if left_out else lines


def sort_key(row: Sequence[Any]) -> list[tuple[bool, Any]]:
    """An order of rows that stands still while others come and go; NULL first, lists by their texts."""
    return [
        (value is not None, 0 if value is None else str(value) if isinstance(value, list | dict) else value)
        for value in row
    ]
