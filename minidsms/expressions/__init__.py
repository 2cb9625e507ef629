"""Vectorised scalar expressions: what a `bound.Expr` computes, on columns."""

from minidsms.cql.scalar_text import print_expression
from minidsms.expressions.compiler import Context, Evaluator, Projection, constant_value
from minidsms.expressions.constant_column import constant_column
from minidsms.expressions.failures import explain_failure
from minidsms.expressions.predicate import Predicate, compile_predicate
from minidsms.expressions.value import Value

__all__ = [
    "Context",
    "Evaluator",
    "Predicate",
    "Projection",
    "Value",
    "compile_predicate",
    "constant_column",
    "constant_value",
    "explain_failure",
    "print_expression",
]
