"""Small catalogs and the shapes of bound queries, for the tests of the binder."""

from __future__ import annotations

import pytest

from minidsms.cql import bound
from minidsms.cql.binder import Bound, bind, view_def
from minidsms.cql.catalog import Catalog, FunctionDef, RelationDef, StreamDef
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse, parse_query
from minidsms.cql.syntax import CreateView
from minidsms.elements import Schema, Type

I, F, B, X, T, V = Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TEXT, Type.TIMESTAMP, Type.INTERVAL


def small_catalog() -> Catalog:
    """Streams S, S1, S2, S3, P, E (every type) and a relation R."""
    catalog = Catalog()
    for name, columns in {
        "S": [("a", I), ("b", I), ("c", I)],
        "S1": [("a", I), ("b", I)],
        "S2": [("a", I), ("c", I)],
        "S3": [("a", I), ("d", I)],
        "P": [("car", I), ("speed", F), ("road", X)],
        "E": [("i", I), ("f", F), ("o", B), ("x", X), ("t", T), ("v", V)],
    }.items():
        catalog.streams[name.lower()] = StreamDef(name, Schema.of(*columns))
    catalog.relations["r"] = RelationDef("R", Schema.of(("a", I), ("name", X)))
    catalog.functions["twice"] = FunctionDef("twice", lambda x: 2 * x, (F,), F, fixed=True)
    return catalog


def bind_text(text: str, catalog: Catalog | None = None) -> Bound:
    """A query over the small catalog."""
    return bind(parse_query(text), small_catalog() if catalog is None else catalog, text)


def error(text: str) -> str:
    """Why a query over the small catalog is refused."""
    with pytest.raises(CqlError) as caught:
        bind_text(text)
    return str(caught.value)


def with_view(catalog: Catalog, text: str) -> Catalog:
    """The catalog with one more view."""
    (statement,) = parse(text)
    assert isinstance(statement, CreateView)
    catalog.views[statement.name.lower()] = view_def(statement, catalog, text)
    return catalog


def shape(node: bound.Node) -> str:
    """The kinds of nodes, from the outside in: `Project(Filter(Window(S)))`."""
    if isinstance(node, bound.Declared):
        return node.name
    name = type(node).__name__
    match node:
        case bound.RelationToStream(op=op):
            name = op.value
        case bound.SetOperation(op=op, all=every):
            name = op.value + (" ALL" if every else "")
        case bound.Join(join=kind):
            name = f"{kind.value} Join"
    return f"{name}({', '.join(shape(child) for child in node.inputs)})"


def find(node: bound.Node, kind: type[bound.Node]) -> bound.Node:
    """The first node of the kind, from the outside in."""
    pending = [node]
    while pending:
        n = pending.pop(0)
        if isinstance(n, kind):
            return n
        pending.extend(n.inputs)
    raise AssertionError(f"no {kind.__name__} in {shape(node)}")


def write(expr: bound.Expr) -> str:
    """An expression with its positions: `(#0 + 1)`; casts show their type."""
    match expr:
        case bound.ColumnRef(index=index):
            return f"#{index}"
        case bound.OuterRef(index=index, level=level):
            return f"outer{level}#{index}"
        case bound.Literal(value=value):
            return repr(value)
        case bound.Cast(type=type_, arg=arg):
            return f"{write(arg)}::{type_}"
        case bound.Call(function=f, args=(a, b)) if not f[0].isalpha() or f in ("and", "or"):
            return f"({write(a)} {f} {write(b)})"
        case bound.Call(function=f, args=args) | bound.UserCall(function=f, args=args):
            return f"{f}({', '.join(map(write, args))})"
        case bound.Case(whens=whens, otherwise=otherwise):
            return "case(" + ", ".join(f"{write(w)}: {write(t)}" for w, t in whens) + f", {write(otherwise)})"
        case bound.InQuery(args=args):
            return f"in({', '.join(map(write, args))}; query)"
        case bound.Quantified(op=op, quantifier=q, arg=arg):
            return f"({write(arg)} {op} {q} query)"
        case bound.ScalarQuery():
            return "(query)"
        case _:
            return type(expr).__name__.lower()


def column(expression: str, catalog: Catalog | None = None) -> bound.Expr:
    """An expression over the stream E."""
    project = find(bind_text(f"SELECT {expression} AS r FROM E [NOW]", catalog).node, bound.Project)
    assert isinstance(project, bound.Project)
    return project.exprs[0]


def condition(text: str) -> bound.Expr:
    """The condition of the outermost Filter of a query."""
    node = find(bind_text(text).node, bound.Filter)
    assert isinstance(node, bound.Filter)
    return node.condition
