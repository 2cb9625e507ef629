"""Bound expressions as readable text: for error messages, EXPLAIN and tests.

Invariant: parentheses stand where, and only where, the text would otherwise group differently under CQL's precedence.
"""

from __future__ import annotations

from decimal import Decimal

from minidsms.aggregates.aggregate import SortKey
from minidsms.cql import scalar
from minidsms.values.coded import as_text

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _PREFIX, _ATOM = range(1, 9)

_LEVEL = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "is distinct from", "like", "in", "is null"), _COMPARISON),
    **dict.fromkeys(("+", "-", "||"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
    "not": _NOT,
    "neg": _PREFIX,
}


def print_expression(expr: scalar.Expr) -> str:
    """The expression in CQL's spelling; columns by name, or as $0, $1 .. where they have none.

    >>> from minidsms.elements import Type
    >>> a = scalar.ColumnRef(Type.INTEGER, 0, "a")
    >>> one = scalar.Literal(Type.INTEGER, 1)
    >>> print_expression(scalar.Call(Type.INTEGER, "*", (scalar.Call(Type.INTEGER, "+", (a, one)), a)))
    '(a + 1) * a'
    """
    return _print(expr)[0]


def print_aggregate(call: scalar.AggregateCall) -> str:
    """`SUM(DISTINCT v)`, `COUNT(*)`, `STRING_AGG(t, '-' ORDER BY v DESC)`."""
    inside = "*" if call.arg is None and not call.has_objects else _list(call.args)
    inside = inside if call.arg is None else print_expression(call.arg)
    behind = " IGNORE NULLS" if call.ignores_nulls else ""
    if call.settings is not None:
        values, sorted_by = call.args[: call.settings.values], call.args[call.settings.values :]
        keys = call.settings.keys
        inside = ", ".join([*map(print_expression, values), *(_literal(p)[0] for p in call.settings.parameters)])
        by = [f"{print_expression(e)}{_direction(k)}" for e, k in zip(sorted_by or values, keys)]
        inside += f" ORDER BY {', '.join(by)}" if by else ""
    return f"{call.function.upper()}({'DISTINCT ' if call.distinct else ''}{inside}){behind}"


def _direction(key: SortKey) -> str:
    return f"{' DESC' if key.descending else ''}{' NULLS FIRST' if key.nulls_first else ''}"


def _print(expr: scalar.Expr) -> tuple[str, int]:
    """(text, how tightly it binds)."""
    match expr:
        case scalar.ColumnRef(name=name, index=index) | scalar.OuterRef(name=name, index=index):
            return name or f"${index}", _ATOM
        case scalar.Parameter(name=name, slot=slot):
            return name or f"${slot}", _ATOM
        case scalar.Lambda(names=names, body=body):
            return f"({', '.join(names)}) => {print_expression(body)}", _OR
        case scalar.Literal(type=type_, value=int() | Decimal() as value) if not type_.is_basic:
            return f"{type_.kind} '{as_text(value, type_)}'", _ATOM
        case scalar.Literal(value=value):
            return _literal(value)
        case scalar.LiteralList(values=values):
            return ", ".join(_literal(v)[0] for v in values), _ATOM
        case scalar.Call():
            return _call(expr)
        case scalar.UserCall(function=function, args=args):
            return f"{function}({_list(args)})", _ATOM
        case scalar.Case(whens=whens, otherwise=otherwise):
            parts = [f"WHEN {print_expression(c)} THEN {print_expression(b)}" for c, b in whens]
            return f"CASE {' '.join(parts)} ELSE {print_expression(otherwise)} END", _ATOM
        case scalar.Cast(arg=arg, type=type_, or_null=or_null):
            return f"{'TRY_' if or_null else ''}CAST({print_expression(arg)} AS {type_})", _ATOM
        case scalar.Exists():
            return "EXISTS (..)", _ATOM
        case scalar.InQuery(args=(arg,)):
            return f"{_inside(arg, _SUM)} IN (..)", _COMPARISON
        case scalar.InQuery(args=args):
            return f"({_list(args)}) IN (..)", _COMPARISON
        case scalar.Quantified(op=op, quantifier=quantifier, arg=arg):
            return f"{_inside(arg, _SUM)} {op} {quantifier.upper()} (..)", _COMPARISON
        case scalar.ScalarQuery():
            return "(..)", _ATOM
    raise AssertionError(f"no spelling for {type(expr).__name__}")


def _literal(value: object) -> tuple[str, int]:
    if value is None:
        return "NULL", _ATOM
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE"), _ATOM
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'", _ATOM
    if isinstance(value, int | float | Decimal):
        # It binds as a sign does: the negation of a negative number needs parentheses, or `--` would start a comment.
        return str(value), _PREFIX if value < 0 else _ATOM
    raise AssertionError(f"no literal {value!r}")


def _call(expr: scalar.Call) -> tuple[str, int]:
    name, args = expr.function, expr.args
    if name == "single":
        return f"({print_expression(args[1])})", _ATOM  # the planner names its column after the subquery
    if name == "struct_extract" and isinstance(args[1], scalar.Literal):
        return f"{_inside(args[0], _ATOM)}.{args[0].type.fields[int(args[1].value or 0)][0]}", _ATOM
    if name == "struct":
        pairs = zip(expr.type.fields, args)
        return f"STRUCT({', '.join(f'{n} := {print_expression(a)}' for (n, _), a in pairs)})", _ATOM
    level = _LEVEL.get(name)
    if level is None:
        return f"{name.upper()}({_list(args)})", _ATOM
    match name:
        case "not":
            return _negated(args[0])
        case "neg":
            return f"-{_inside(args[0], _ATOM)}", _PREFIX
        case "is null":
            return f"{_inside(args[0], _SUM)} IS NULL", _COMPARISON
        case "in":
            return f"{_inside(args[0], _SUM)} IN ({_list(args[1:])})", _COMPARISON
        case "like":
            escape = f" ESCAPE {_inside(args[2], _SUM)}" if len(args) == 3 else ""
            return f"{_inside(args[0], _SUM)} LIKE {_inside(args[1], _SUM)}{escape}", _COMPARISON
        case "and" | "or":
            return f" {name.upper()} ".join(_inside(a, level + 1) for a in args), level
    left, right = args
    # Comparisons do not chain, the other operators group to the left.
    lowest_left = level + 1 if level == _COMPARISON else level
    return f"{_inside(left, lowest_left)} {name.upper()} {_inside(right, level + 1)}", level


def _negated(arg: scalar.Expr) -> tuple[str, int]:
    if isinstance(arg, scalar.Call):
        if arg.function == "is null":
            return f"{_inside(arg.args[0], _SUM)} IS NOT NULL", _COMPARISON
        if arg.function in ("in", "like", "is distinct from"):
            word = {"in": " IN ", "like": " LIKE ", "is distinct from": " IS DISTINCT FROM "}[arg.function]
            negated = {"in": " NOT IN ", "like": " NOT LIKE ", "is distinct from": " IS NOT DISTINCT FROM "}
            left = _inside(arg.args[0], _SUM)
            rest = _call(arg)[0][len(left) + len(word) :]
            return f"{left}{negated[arg.function]}{rest}", _COMPARISON
    return f"NOT {_inside(arg, _NOT)}", _NOT


def _inside(expr: scalar.Expr, lowest: int) -> str:
    text, level = _print(expr)
    return text if level >= lowest else f"({text})"


def _list(exprs: tuple[scalar.Expr, ...]) -> str:
    return ", ".join(print_expression(e) for e in exprs)
