"""Expressions that no Spark column means exactly: the engine's own evaluator computes them, over batches in Arrow.

Such are user functions, CASTs between TEXT and FLOAT or TIMESTAMP, ROUND to a varying number of places. Where the
function is not a user's own, Python sees columns, never rows. docs/semantics R4.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.cql.catalog import FunctionDef
from minidsms.cql.errors import Error
from minidsms.elements import Column as EngineColumn
from minidsms.elements import Type
from minidsms.plan.logical import columns_used, substitute
from minidsms.spark.computed import Computed, spark_type
from minidsms.spark.reading import spark_type_of
from minidsms.values.arrow_types import array_of_words, stored_type, word_type, words_of_array
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from pyspark.sql import Column


def are_possible() -> bool:
    """Whether this Spark takes functions of Arrow arrays (since 4.1)."""
    return hasattr(F, "arrow_udf")


def in_batches(expr: bound.Expr, tick_ns: int, functions: Mapping[str, FunctionDef]) -> Computed:
    """The expression, evaluated by the engine over batches of the columns it reads."""
    used, evaluate = over_used(expr, tick_ns, functions)
    returned = f"value {spark_type(expr.type)}, reason string"

    def over_arrays(*arrays: pa.Array) -> pa.Array:
        return evaluate(arrays)

    function = F.arrow_udf(over_arrays, returned)  # type: ignore[attr-defined]
    columns: list[Column] = [F.col(f"c{i}") for i in used] or [F.lit(0)]
    result = function(*columns)
    return Computed(result["value"], result["reason"])


def over_used(expr: bound.Expr, tick_ns: int, functions: Mapping[str, FunctionDef]) -> tuple[list[int], Batches]:
    """The columns that an expression reads, and the expression over these alone (over any one where it reads none)."""
    used = sorted(columns_used(expr))
    refs = {e.index: e for e in bound.walk(expr) if isinstance(e, bound.ColumnRef)}
    places: list[bound.Expr] = [bound.Literal(Type.NULL, None)] * (used[-1] + 1 if used else 0)
    for place, index in enumerate(used):
        places[index] = dataclasses.replace(refs[index], index=place)
    return used, Batches(substitute(expr, places), [refs[i].type for i in used], tick_ns, dict(functions))


class Batches:
    """An expression over Arrow arrays. arg_types: of the columns it reads, in order."""

    def __init__(
        self, expr: bound.Expr, arg_types: list[Type], tick_ns: int, functions: dict[str, FunctionDef]
    ) -> None:
        self.expr = expr
        self.arg_types = arg_types
        self.tick_ns = tick_ns
        self.functions = functions

    def __call__(self, arrays: tuple[pa.Array, ...]) -> pa.Array:
        """A struct of the value and the reason of its failure per row."""
        from minidsms.expressions import Context, Evaluator, explain_failure

        # A dictionary of its own for every batch: texts of batches before are not kept.
        dictionary = TextDictionary()
        context = Context(dictionary, self.tick_ns, self.functions)
        n = len(arrays[0])
        columns = [_engine_column(a, t, dictionary) for a, t in zip(arrays, self.arg_types)]
        value = Evaluator(self.expr, context)(columns.__getitem__, n)
        reasons: list[str | None] = [None] * n
        if value.failed is not None:
            for row in np.flatnonzero(value.failed).tolist():
                reasons[row] = ": ".join(explain_failure(self.expr, context, columns.__getitem__, row))
        values = _arrow_array(value.column(), self.expr.type, dictionary)
        return pa.StructArray.from_arrays([values, pa.array(reasons, pa.string())], names=["value", "reason"])


def _engine_column(array: pa.Array, type_: Type, dictionary: TextDictionary) -> EngineColumn:
    if type_.is_coded:
        return dictionary.encode(array) if type_.kind != "DECIMAL" else dictionary.encode_as(array.to_pylist(), type_)
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    filled = array if valid is None else array.fill_null(False if type_ is Type.BOOLEAN else 0)
    return EngineColumn(filled.to_numpy(zero_copy_only=False).astype(type_.dtype, copy=True), valid)


def _arrow_array(column: EngineColumn, type_: Type, dictionary: TextDictionary) -> Any:
    if type_.is_coded:
        return dictionary.decode_arrow(column).cast(pa.string())
    mask = None if column.valid is None else ~column.valid
    return pa.array(column.values, word_type(type_), mask=mask)


# ---------------------------------------------------------------------------------------- columns of archives


def words(column: Column, type_: Type) -> Column:
    """A column of an archive in the form of frames."""
    if type_ is Type.DATE:
        return F.unix_date(column).cast("bigint")
    return _converted(column, lambda array: words_of_array(array, type_), "string") if _is_written(type_) else column


def stored(column: Column, type_: Type) -> Column:
    """The inverse of `words`."""
    if type_ is Type.DATE:
        return F.date_from_unix_date(column.cast("int"))
    wanted = stored_type(type_)
    if not _is_written(type_):
        return column
    return _converted(column, lambda array: array_of_words(array, type_, wanted), spark_type_of(wanted))


def read_values(column: Column, type_: Type, tick_ns: int) -> Column:
    """A raw column as an archive has it, of a type that is not basic; NULL where a value cannot be read."""
    return _converted(column, lambda array: _read(array, type_, tick_ns), spark_type_of(stored_type(type_)))


def written_texts(lines: Column, names: Sequence[str]) -> Column:
    """Of lines of JSON, the objects, arrays and numbers by name, in lower case, as they are written.

    NULL where there is none, and empty where it, or the line, is no JSON.
    """
    return _converted(
        lines,
        lambda array: pa.array([_written(each, names) for each in array.to_pylist()], pa.list_(pa.string())),
        "array<string>",
    )


def _written(line: str | None, names: Sequence[str]) -> list[str | None]:
    from minidsms.functions.documents import is_json
    from minidsms.sources.json_members import members

    try:
        found = {name.lower(): text for name, text in members(line or "").items()}
    except (ValueError, RecursionError):
        return [""] * len(names)
    texts = [text if (text := found.get(name)) is not None and text[0] in "[{-0123456789" else None for name in names]
    return [text if text is None or is_json(text) else "" for text in texts]


def _read(array: pa.Array, type_: Type, tick_ns: int) -> pa.Array:
    from minidsms.inputs.values import ValueRefused, value_reader

    reader = value_reader(type_, tick_ns)

    def word(value: Any) -> Any:
        with contextlib.suppress(ValueRefused):
            return reader(value)
        return None

    return array_of_words(pa.array(map(word, array.to_pylist()), word_type(type_)), type_, stored_type(type_))


def _is_written(type_: Type) -> bool:
    """Frames have its values as the dictionary's texts."""
    return type_.is_coded and type_ is not Type.TEXT


def _converted(column: Column, convert: Callable[[Any], Any], returned: str) -> Column:
    if not are_possible():
        raise Error("lists, structs, maps and DECIMAL need Spark 4.1 or newer")

    def over_array(array: pa.Array) -> pa.Array:
        return convert(array)

    return F.arrow_udf(over_array, returned)(column)  # type: ignore[attr-defined,no-any-return]
