"""Vectorised scalar expressions: what a `bound.Expr` computes, on columns."""

from minidsms.cql.scalar_text import print_expression
from minidsms.expressions.compiler import Context, Evaluator, compile_expression, constant_value, evaluate_columns
from minidsms.expressions.constant_column import constant_column
from minidsms.expressions.failures import explain_failure
from minidsms.expressions.predicate import Predicate, compile_predicate
from minidsms.expressions.value import Value

__all__ = [
    "Context",
    "Evaluator",
    "Predicate",
    "Value",
    "compile_expression",
    "compile_predicate",
    "constant_column",
    "constant_value",
    "evaluate_columns",
    "explain_failure",
    "print_expression",
]
