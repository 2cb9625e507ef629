"""Random typed expressions and rows: small pools of values near every edge; collisions and overflows are common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from minidsms.cql.bound import Call, Case, Cast, ColumnRef, Expr, Literal
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.values.dictionary import TextDictionary

INTEGER, FLOAT, BOOLEAN, TEXT, TIMESTAMP = Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TEXT, Type.TIMESTAMP
EDGE = 2**63

SCHEMA = Schema.of(
    ("i", INTEGER),
    ("j", INTEGER),
    ("f", FLOAT),
    ("g", FLOAT),
    ("b", BOOLEAN),
    ("t", TEXT),
    ("u", TEXT),
    ("at", TIMESTAMP),
)

integers = st.one_of(
    st.integers(-4, 4),
    st.sampled_from([EDGE - 1, EDGE - 2, -EDGE, 1 - EDGE, 2**62, -(2**62), 3037000500, 10**18, 5 * 10**18]),
    st.integers(-EDGE, EDGE - 1),
)
floats = st.one_of(
    st.sampled_from(
        [0.0, 0.5, -0.5, 1.0, -2.5, 1e308, -1e308, float("inf"), float("-inf"), 5e-324, 2.0**63, -(2.0**63)]
    ),
    st.integers(-40, 40).map(lambda n: n / 4 + 0.0),
)
texts = st.sampled_from(
    ["", "a", "ab", "A", " b ", "%", "a_b", "é", "\U0001f600", "12", "-7.5", "x" * 20, "9999999999999999999"]
)
instants = st.one_of(integers, st.integers(-(10**13), 10**13))
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    INTEGER: integers,
    FLOAT: floats,
    BOOLEAN: st.booleans(),
    TEXT: texts,
    TIMESTAMP: instants,
}


def rows(most: int = 12) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows of SCHEMA, about one value in six NULL."""
    cells = [st.one_of(*([VALUES[f.type]] * 5), st.none()) for f in SCHEMA]
    return st.lists(st.tuples(*cells), max_size=most)


def batch_of(table: Sequence[tuple[Any, ...]], dictionary: TextDictionary, schema: Schema = SCHEMA) -> Batch:
    """The rows as a batch, all at instant 0."""
    columns = []
    for i, field in enumerate(schema):
        items = [row[i] for row in table]
        if field.type is TEXT:
            columns.append(dictionary.encode(items))
            continue
        valid = np.array([item is not None for item in items], np.bool_)
        values = np.array([0 if item is None else item for item in items], field.type.dtype)
        columns.append(Column(values, None if valid.all() else valid))
    return Batch(np.zeros(len(table), np.int64), None, columns)


def column(name: str) -> ColumnRef:
    """A column of SCHEMA by name."""
    index = SCHEMA.names.index(name)
    return ColumnRef(SCHEMA[index].type, index, name)


def literal(value: Any, type_: Type | None = None) -> Literal:
    """A constant; its type is told by the value."""
    told = {bool: BOOLEAN, int: INTEGER, float: FLOAT, str: TEXT}
    return Literal(type_ or told[type(value)], value)


def call(type_: Type, function: str, *args: Expr) -> Call:
    return Call(type_, function, args)


_COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "is distinct from"])


@cache
def expressions(type_: Type, depth: int) -> st.SearchStrategy[Expr]:
    """Expressions of the type, at most that deep; made once, for that takes longer than drawing from them."""
    columns = [ColumnRef(f.type, i, f.name) for i, f in enumerate(SCHEMA) if f.type is type_]
    leaves = st.one_of(
        st.sampled_from(columns),
        st.one_of(VALUES[type_], st.none()).map(lambda v: Literal(type_, v)),
    )
    if depth == 0:
        return leaves
    inner: Callable[[Type], st.SearchStrategy[Expr]] = lambda t: st.deferred(lambda: expressions(t, depth - 1))  # noqa: E731
    return st.one_of(leaves, _choices(type_, inner), _of_type(type_, inner), _of_type(type_, inner))


def _calls(type_: Type, names: Sequence[str], *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.tuples(st.sampled_from(list(names)), *args).map(lambda t: Call(type_, t[0], tuple(t[1:])))


def _casts(type_: Type, *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.tuples(st.one_of(*args), st.booleans()).map(lambda t: Cast(type_, *t))


def _choices(type_: Type, inner: Callable[[Type], st.SearchStrategy[Expr]]) -> st.SearchStrategy[Expr]:
    """CASE and its relatives, which exist for every type."""
    one = inner(type_)
    case = st.tuples(st.lists(st.tuples(inner(BOOLEAN), one), min_size=1, max_size=3), one)
    some = st.lists(one, min_size=1, max_size=3)
    return st.one_of(
        case.map(lambda c: Case(type_, tuple(c[0]), c[1])),
        st.tuples(st.sampled_from(["coalesce", "least", "greatest"]), some).map(
            lambda c: Call(type_, c[0], tuple(c[1]))
        ),
        _calls(type_, ["nullif"], one, one),
    )


def _of_type(type_: Type, inner: Callable[[Type], st.SearchStrategy[Expr]]) -> st.SearchStrategy[Expr]:
    i, f, t, at = inner(INTEGER), inner(FLOAT), inner(TEXT), inner(TIMESTAMP)
    places = st.integers(-21, 5).map(lambda n: Literal(INTEGER, n))
    match type_:
        case Type.INTEGER:
            parts = ["year", "month", "day", "hour", "minute", "second", "dayofweek"]
            return st.one_of(
                _calls(INTEGER, "+-*/%", i, i),
                _calls(INTEGER, ["neg", "abs", "sign", "floor", "round"], i),
                _calls(INTEGER, ["round"], i, places),
                _calls(INTEGER, ["length"], t),
                _calls(INTEGER, parts, at),
                _casts(INTEGER, f, inner(BOOLEAN), t),
            )
        case Type.FLOAT:
            return st.one_of(
                _calls(FLOAT, "+-*/%", f, f),
                _calls(FLOAT, ["neg", "abs", "sign", "floor", "ceil", "round", "sqrt", "exp", "ln", "log10"], f),
                _calls(FLOAT, ["power"], f, f),
                _casts(FLOAT, i, inner(BOOLEAN), t),
            )
        case Type.TEXT:
            return st.one_of(
                _calls(TEXT, ["||"], t, t),
                _calls(TEXT, ["upper", "lower", "trim", "ltrim", "rtrim"], t),
                _calls(TEXT, ["replace"], t, t, t),
                _calls(TEXT, ["substring"], t, i),
                _calls(TEXT, ["substring"], t, i, i),
                _casts(TEXT, i, f, inner(BOOLEAN), at),
            )
        case Type.TIMESTAMP:
            return st.one_of(
                _calls(TIMESTAMP, "+-", at, i.map(lambda e: Cast(Type.INTERVAL, e))),
                i.map(lambda e: Cast(TIMESTAMP, e)),
            )
    compared = st.sampled_from([INTEGER, FLOAT, TEXT, BOOLEAN]).flatmap(
        lambda k: st.tuples(_COMPARISONS, inner(k), inner(k)).map(lambda c: Call(BOOLEAN, c[0], (c[1], c[2])))
    )
    listed = st.sampled_from([INTEGER, FLOAT, TEXT]).flatmap(
        lambda k: st.lists(inner(k), min_size=2, max_size=6).map(lambda items: Call(BOOLEAN, "in", tuple(items)))
    )
    b = inner(BOOLEAN)
    return st.one_of(
        compared,
        listed,
        st.tuples(st.sampled_from(["and", "or"]), st.lists(b, min_size=2, max_size=3)).map(
            lambda c: Call(BOOLEAN, c[0], tuple(c[1]))
        ),
        _calls(BOOLEAN, ["not"], b),
        _casts(BOOLEAN, i, f, t, st.sampled_from(["yes", " F", "2"]).map(lambda word: Literal(TEXT, word))),
        _calls(BOOLEAN, ["is null"], st.one_of(i, f, t, b)),
        _calls(BOOLEAN, ["like", "starts_with"], t, t),
    )
