"""Expressions that no Spark column means exactly: the engine's own evaluator computes them, over batches in Arrow.

Such are user functions, CASTs between TEXT and FLOAT or TIMESTAMP, ROUND to a varying number of places. Where the
function is not a user's own, Python sees columns, never rows. docs/semantics R4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.cql.catalog import FunctionDef
from minidsms.dictionary import TextDictionary
from minidsms.elements import Column as EngineColumn
from minidsms.elements import Type
from minidsms.plan.logical import columns_used, substitute
from minidsms.spark.computed import Computed, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

ARROW_TYPES = {Type.FLOAT: pa.float64(), Type.BOOLEAN: pa.bool_(), Type.TEXT: pa.string()}


def are_possible() -> bool:
    """Whether this Spark takes functions of Arrow arrays (since 4.1)."""
    return hasattr(F, "arrow_udf")


def in_batches(expr: bound.Expr, tick_ns: int, functions: Mapping[str, FunctionDef]) -> Computed:
    """The expression, evaluated by the engine over batches of the columns it reads."""
    used = sorted(columns_used(expr))
    refs = {e.index: e for e in bound.walk(expr) if isinstance(e, bound.ColumnRef)}
    places: list[bound.Expr] = [bound.Literal(Type.NULL, None)] * (used[-1] + 1 if used else 0)
    for place, index in enumerate(used):
        places[index] = dataclasses.replace(refs[index], index=place)
    moved = substitute(expr, places)
    evaluate = Batches(moved, [refs[i].type for i in used], tick_ns, dict(functions))
    returned = f"value {spark_type(expr.type)}, reason string"

    def over_arrays(*arrays: pa.Array) -> pa.Array:
        return evaluate(arrays)

    function = F.arrow_udf(over_arrays, returned)  # type: ignore[attr-defined]
    columns: list[Column] = [F.col(f"c{i}") for i in used] or [F.lit(0)]
    result = function(*columns)
    return Computed(result["value"], result["reason"])


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
        from minidsms.expressions import Context, compile_expression, explain_failure

        # A dictionary of its own for every batch: texts of batches before are not kept.
        dictionary = TextDictionary()
        context = Context(dictionary, self.tick_ns, self.functions)
        n = len(arrays[0])
        columns = [_engine_column(a, t, dictionary) for a, t in zip(arrays, self.arg_types)]
        value = compile_expression(self.expr, context)(columns.__getitem__, n)
        reasons: list[str | None] = [None] * n
        if value.failed is not None:
            for row in np.flatnonzero(value.failed).tolist():
                reasons[row] = ": ".join(explain_failure(self.expr, context, columns.__getitem__, row))
        values = _arrow_array(value.column(), self.expr.type, dictionary)
        return pa.StructArray.from_arrays([values, pa.array(reasons, pa.string())], names=["value", "reason"])


def _engine_column(array: pa.Array, type_: Type, dictionary: TextDictionary) -> EngineColumn:
    if type_ is Type.TEXT:
        return dictionary.encode(array)
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    filled = array if valid is None else array.fill_null(False if type_ is Type.BOOLEAN else 0)
    return EngineColumn(filled.to_numpy(zero_copy_only=False).astype(type_.dtype, copy=True), valid)


def _arrow_array(column: EngineColumn, type_: Type, dictionary: TextDictionary) -> Any:
    if type_ is Type.TEXT:
        return dictionary.decode_arrow(column).cast(pa.string())
    mask = None if column.valid is None else ~column.valid
    return pa.array(column.values, ARROW_TYPES.get(type_, pa.int64()), mask=mask)
