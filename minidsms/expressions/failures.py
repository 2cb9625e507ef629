"""Which part of an expression failed on a row, and why: the text of a `QueryError` (docs/semantics R4).

Invariant: the part named is innermost: it failed although everything it read had a value. Evaluation follows CASE and
COALESCE the way the engine does; where several conjuncts failed, the first is named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.cql import bound
from minidsms.cql.scalar_text import print_expression
from minidsms.elements import Type
from minidsms.expressions import user
from minidsms.expressions.compiler import Context, compile_node
from minidsms.expressions.value import Columns, Frame, Value
from minidsms.functions import FAMILIES, LIBRARY
from minidsms.functions.documents import is_json
from minidsms.process.interrupts import let_handlers_exit
from minidsms.values.coded import as_text

_OF_JSON = frozenset(function.name for function in FAMILIES["JSON"])


def explain_failure(expr: bound.Expr, context: Context, columns: Columns, row: int) -> tuple[str, str]:
    """(the sub-expression that failed, the reason), for a row on which the expression failed.

    User functions are called again; one that no longer fails is blamed without its words.
    """
    with np.errstate(all="ignore"):
        frame = Frame(lambda index: columns(index).slice(row, row + 1), 1)
        culprit = _innermost(expr, context, frame)
        return print_expression(culprit), _reason(culprit, context, frame)


def _value(expr: bound.Expr, context: Context, frame: Frame) -> Value:
    return compile_node(expr, context)(frame)


def _has_failed(expr: bound.Expr, context: Context, frame: Frame) -> bool:
    failed = _value(expr, context, frame).failed
    return failed is not None and bool(failed[0])


def _innermost(expr: bound.Expr, context: Context, frame: Frame) -> bound.Expr:
    while True:
        inner = next((e for e in _evaluated(expr, context, frame) if _has_failed(e, context, frame)), None)
        if inner is None:
            return expr
        expr = inner


def _evaluated(expr: bound.Expr, context: Context, frame: Frame) -> Sequence[bound.Expr]:
    """The parts the expression evaluates on this row."""
    if not isinstance(expr, bound.Case):
        # COALESCE stops at its first failing argument, as `next` does; those before it were NULL. Of a lambda, the
        # elements are not known here.
        return [part for part in bound.children(expr) if not isinstance(part, bound.Lambda)]
    parts: list[bound.Expr] = []
    for condition, branch in expr.whens:
        parts.append(condition)
        test = _value(condition, context, frame)
        if test.failed is not None and test.failed[0]:
            return parts
        if test.values[0]:
            return [*parts, branch]
    return [*parts, expr.otherwise]


def _reason(expr: bound.Expr, context: Context, frame: Frame) -> str:
    match expr:
        case bound.UserCall():
            return _user_reason(expr, context, frame)
        case bound.Cast(type=target, arg=arg) if arg.type is Type.TEXT:
            text = context.dictionary.decode(_value(arg, context, frame).column())[0]
            return f"{short(text)} cannot be read as {target}"
        case bound.Cast(type=target, arg=arg):
            return f"{_shown(_value(arg, context, frame), arg.type, context)} is out of range for {target}"
        case bound.Call(function="single", args=(count, _)):
            return f"it gave {_value(count, context, frame).values[0].item()} rows; at most one is allowed"
        case bound.Call(args=(*_, bound.Lambda(body=body))):
            return f"{print_expression(body)} has no value for an element"
        case bound.Call(function=function, args=args):
            if function in _OF_JSON and args[0].type is Type.TEXT:
                document = context.dictionary.decode(_value(args[0], context, frame).column())[0]
                if document is not None and not is_json(document):
                    return (
                        f"{short(document)} is no JSON; WHERE {print_expression(args[0])} IS JSON leaves such texts out"
                    )
            shown = ", ".join(_shown(_value(a, context, frame), a.type, context) for a in args)
            return f"it has no value for {shown}" if function in LIBRARY else f"{expr.type} overflow for {shown}"
    return "it failed"


def _shown(value: Value, type_: Type, context: Context) -> str:
    """One operand, as messages show it."""
    if value.valid is not None and not value.valid[0]:
        return "NULL"
    item = context.dictionary.values(value.column(), type_)[0]
    if type_ is Type.TEXT:
        return short(item)
    return str(item)[:60] if type_.is_basic else as_text(item, type_)[:60]


def _user_reason(expr: bound.UserCall, context: Context, frame: Frame) -> str:
    definition = context.functions[expr.function.lower()]
    operands = []
    for arg, type_ in zip(expr.args, definition.arg_types):
        value = _value(arg, context, frame)
        if definition.vectorized:
            operands.append(user.array_of(value.values, type_, context.dictionary))
        else:
            operands += user.shown_values(value.column(), type_, context.dictionary)
    try:
        result = definition.function(*operands)
        if definition.vectorized:
            array = np.ma.asarray(result)
            if array.shape != (1,):
                return f"{definition.name} must give an array of as many rows as it got, not {type(result).__name__}"
            (result,) = array.tolist()
        user.python_result(definition, result, context.tick_ns)
    except (Exception, SystemExit) as error:
        let_handlers_exit(error)
        return str(error) if isinstance(error, user.WrongResult) else told(error)
    return "the function failed"


def short(text: str | None) -> str:
    """A TEXT as messages show it: quoted, and cut where it is long."""
    shown = text or ""
    return repr(shown if len(shown) <= 60 else shown[:57] + "...")


def told(error: BaseException) -> str:
    """An exception of a user's code in words; one that cannot even say what it is by its class."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
