"""Expressions that read no row, as the values of one column: of VALUES, SELECT without FROM, INSERT."""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.cql import bound
from minidsms.cql.errors import CqlError
from minidsms.elements import Column, Type
from minidsms.expressions.compiler import Context, Evaluator, no_columns
from minidsms.expressions.failures import explain_failure

_READ_AS_THEY_ARE = (Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TEXT)


def constant_column(exprs: Sequence[bound.Expr], type_: Type, context: Context, text: str = "") -> Column:
    """The values of the expressions, which are of one type. Raises CqlError where one fails; text: what they are of."""
    literals = [expr.value for expr in exprs if isinstance(expr, bound.Literal)]
    if len(literals) == len(exprs) and type_ in _READ_AS_THEY_ARE:
        return context.dictionary.column(literals, type_)
    values = []
    for expr in exprs:
        value = Evaluator(expr, context)(no_columns, 1)
        if value.failed is not None and value.failed[0]:
            culprit, reason = explain_failure(expr, context, no_columns, 0)
            raise CqlError(f"{culprit}: {reason}", text, expr.span if text else None)
        values.append(value.column())
    return Column.concat(values)
