"""Lengths of time with months, which have as many days as the calendar gives them (docs/semantics R4).

An INTERVAL is a number of ticks. A sum of lengths in which there are months is therefore no value: it stands beside the
instant that it moves, which `expression_binder` binds to TIMESTAMPADD.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from minidsms.cql import syntax
from minidsms.cql.words import MONTHS
from minidsms.cql.written_out import read_expression, with_arguments

_BUCKET = """
    TIMESTAMPADD(MONTH, n * CAST(FLOOR(DATE_DIFF('month', TIMESTAMP '2000-01-01', t) * 1.0 / n) AS INTEGER),
    TIMESTAMP '2000-01-01')
"""
"""DuckDB and PostgreSQL count buckets of months from this origin."""


@dataclass(frozen=True)
class PartOfLength:
    """One part of a sum. months: how many, with its sign, where its unit has some; None for one of fixed length, which
    is expr, of that sign.  factors: what it is multiplied with.
    """

    expr: syntax.Expr
    sign: int
    months: Fraction | None = None
    factors: tuple[syntax.Expr, ...] = ()

    @property
    def is_months(self) -> bool:
        """It is a written number of months."""
        return self.months is not None and not self.factors

    @property
    def span(self) -> syntax.Span:
        """Where it stands."""
        return self.expr.span


def parts_of_length(expr: syntax.Expr, sign: int = 1) -> Sequence[PartOfLength]:
    """The parts of a sum of INTERVALs that are written, perhaps multiplied; () where anything else is in it."""
    match expr:
        case syntax.Interval(duration=syntax.Duration(number=number, unit=unit)):
            months = sign * Fraction(number) * MONTHS[unit] if unit in MONTHS else None
            return (PartOfLength(expr, sign, months),)
        case syntax.Unary(op="-", operand=operand):
            return parts_of_length(operand, -sign)
        case syntax.Binary(op="+" | "-" as op, left=left, right=right):
            first, second = parts_of_length(left, sign), parts_of_length(right, -sign if op == "-" else sign)
            return (*first, *second) if first and second else ()
        case (
            syntax.Binary(op="*", left=syntax.Interval() as interval, right=factor)
            | syntax.Binary(op="*", left=factor, right=syntax.Interval() as interval)
        ):
            (part,) = parts_of_length(interval, sign)
            return (PartOfLength(expr, sign, part.months, (factor,)),)
        case _:
            return ()


def bucket_of_months(months: int, call: syntax.Call) -> syntax.Expr:
    """TIME_BUCKET(INTERVAL '2' MONTH, t)."""
    arguments = {"n": syntax.Literal(months, span=call.span), "t": call.args[1]}
    return with_arguments(read_expression(_BUCKET), arguments, call.span)
