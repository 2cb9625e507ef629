"""A few elements as text, value by value: a call of Arrow costs more than Python takes for all of them.

Invariant: every text is the one that Arrow writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Schema, Type
from minidsms.sinks.instant_texts import instant_text, time_text
from minidsms.values.coded import as_text

FEW = 16
"""Elements that are written so."""

Write = Callable[[Any], str]


class FewRows:
    """Elements of a schema without nested types.

    text: writes a TEXT.  quote: stands around instants, dates and times.  infinity: of a FLOAT.  null: for NULL.
    """

    def __init__(
        self, schema: Schema, codec: ResultCodec, text: Write, quote: str = "", infinity: str = "inf", null: str = ""
    ) -> None:
        self._codec = codec
        self._null = null
        instants = Type.TIMESTAMP if codec.has_times else Type.INTEGER
        self._types = (instants, Type.INTEGER, *schema.types)
        self._writers = [_writer(t, codec.unit, text, quote, infinity) for t in self._types]

    def decode(self, batch: Batch) -> list[list[Any]] | None:
        """The values of each column, instants and signs first; None where there are many."""
        return self._codec.values(batch) if len(batch) <= FEW else None

    def rows(self, columns: list[list[Any]]) -> list[tuple[str, ...]]:
        """The texts of each element."""
        null = self._null
        return list(
            zip(
                *(
                    [null if value is None else write(value) for value in values]
                    for write, values in zip(self._writers, columns)
                )
            )
        )


def few_rows(
    schema: Schema, codec: ResultCodec, text: Write, quote: str = "", infinity: str = "inf", null: str = ""
) -> FewRows | None:
    """What writes elements so; None where values are nested."""
    if any(t.is_nested for t in schema.types):
        return None
    return FewRows(schema, codec, text, quote, infinity, null)


def _writer(type_: Type, unit: str | None, text: Write, quote: str, infinity: str) -> Write:
    match type_.kind:
        case "TEXT":
            return text
        case "FLOAT":
            return lambda value: _float(value, infinity)
        case "BOOLEAN":
            return lambda value: "true" if value else "false"
        case "DECIMAL":
            return str
        case "TIMESTAMP" if unit is not None:
            return lambda ticks: f"{quote}{instant_text(ticks, unit)}{quote}"
        case "DATE":
            return lambda day: f"{quote}{as_text(day, Type.DATE)}{quote}"
        case "TIME":
            return lambda value: f"{quote}{time_text(value, 1_000_000, 6)}{quote}"
    return str


def _float(value: float, infinity: str) -> str:
    if 1e-4 <= abs(value) < 1e10 or value == 0.0:  # beyond, both write exponents, of other forms
        return repr(value).removesuffix(".0")
    if math.isinf(value):
        return infinity if value > 0 else f"-{infinity}"
    return str(pc.cast(pa.scalar(value, pa.float64()), pa.string()))
