"""What holds of a bound query as a whole: can it only grow, does its stream keep an order (docs/semantics D2, D3, T3).

Invariant: `is_monotonic` is a proof. False means "not proved", and the defaults then ask the author.
"""

from __future__ import annotations

from minidsms.cql import bound
from minidsms.cql.bound import JoinKind, SetKind, StreamKind, WindowKind


def is_monotonic(node: bound.Node) -> bool:
    """Whether the relation can be shown never to lose a row. A stream, which only grows, is monotonic.

    A relation is monotonic when every step from its windows on is, so the steps are looked at in any order.
    """
    pending, seen = [node], {id(node)}
    while pending:
        n = pending.pop()
        if n.kind == "stream":
            continue
        further = _grows_with(n)
        if further is None:
            return False
        for m in further:
            if id(m) not in seen:
                seen.add(id(m))
                pending.append(m)
    return True


def _grows_with(node: bound.Node) -> tuple[bound.Node, ...] | None:
    """The relations that must be monotonic for this one to be; None where nothing helps."""
    match node:
        case bound.Window(spec=spec):
            return () if spec.kind is WindowKind.UNBOUNDED else None
        case bound.Filter(condition=condition):
            queries = _positive_subqueries(condition)
            return None if queries is None else (*node.inputs, *queries)
        case bound.Project(exprs=exprs):
            return None if any(_has_subquery(e) for e in exprs) else node.inputs
        case bound.Join(join=JoinKind.INNER, condition=condition):
            queries = () if condition is None else _positive_subqueries(condition)
            return None if queries is None else (*node.inputs, *queries)
        case bound.Aggregate(aggregates=(), is_global=False):
            return node.inputs
        case bound.Distinct() | bound.Unnest() | bound.Constant():
            return node.inputs
        case bound.Over(in_order=True, call=call) if not call.looks_ahead:
            return node.inputs
        case bound.SetOperation(op=SetKind.UNION | SetKind.INTERSECT):
            return node.inputs
        case _:
            return None


def _has_subquery(expr: bound.Expr) -> bool:
    return bool(bound.subqueries(expr))


def _positive_subqueries(condition: bound.Expr) -> tuple[bound.Node, ...] | None:
    """The subqueries that turn conjuncts TRUE, never away from TRUE, as they grow; None when others occur."""
    conjuncts = condition.args if isinstance(condition, bound.Call) and condition.function == "and" else (condition,)
    found: list[bound.Node] = []
    for conjunct in conjuncts:
        match conjunct:
            case bound.Exists(query=query):
                found.append(query)
            case bound.InQuery(args=args, query=query) if not any(_has_subquery(a) for a in args):
                found.append(query)
            case bound.Quantified(quantifier="any", arg=arg, query=query) if not _has_subquery(arg):
                found.append(query)
            case _:
                if _has_subquery(conjunct):
                    return None
    return tuple(found)


def keeps_order(op: StreamKind, node: bound.Node) -> bool:
    """Whether a derived stream keeps the arrival order of the one stream it filters and projects (T3)."""
    while isinstance(node, bound.ByRow):
        if any(_has_subquery(e) for e in node.expressions):
            return False
        node = node.inputs[0]
    if not isinstance(node, bound.Window):
        return False
    if op is StreamKind.ISTREAM:
        return node.spec.kind is WindowKind.UNBOUNDED
    return op is StreamKind.RSTREAM and node.spec.is_now


def to_stream(op: StreamKind, node: bound.Node, ticks: bool) -> bound.RelationToStream:
    """ISTREAM, DSTREAM or RSTREAM of a relation."""
    speaks_at_ticks = ticks and op is StreamKind.RSTREAM
    return bound.RelationToStream(node.schema, op, node, bound.changing(node), speaks_at_ticks, keeps_order(op, node))


def event_windows(node: bound.Node) -> tuple[bound.Node, ...]:
    """The windows whose first arrival starts a global aggregate of the node; its base relations when it has none."""
    found = bound.changing(node)
    return tuple(n for n in found if isinstance(n, bound.Window)) or found
