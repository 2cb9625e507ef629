"""The order in which the present rows of ORDER BY .. LIMIT are shown.  docs/semantics R6."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from minidsms.aggregates.aggregate import SortKey
from minidsms.cql import bound

Order: TypeAlias = tuple[tuple[int, SortKey], ...]
"""By which columns of an answer, and how."""


def order_of(node: bound.Node) -> Order:
    """That of the outermost ORDER BY of a query; () where it has none, or the answer does not show one of its keys."""
    top, places = node, dict(enumerate(range(len(node.schema))))
    if isinstance(node, bound.Project):
        top = node.input
        places = {expr.index: i for i, expr in enumerate(node.exprs) if isinstance(expr, bound.ColumnRef)}
    if not isinstance(top, bound.Top) or any(i not in places for i, _ in top.order):
        return ()
    return tuple((places[i], key) for i, key in top.order)


def sorted_places(rows: Sequence[Sequence[Any]], order: Order) -> list[int]:
    """Where the rows stand, from the first in the order on; those equal in all keys by value, NULL first.

    >>> sorted_places([("a", 1), ("b", None), ("c", 2)], ((1, SortKey(descending=True)),))
    [2, 0, 1]
    """
    places = sorted(range(len(rows)), key=lambda place: [_value(value) for value in rows[place]])
    for i, key in reversed(order):
        nulls = [place for place in places if rows[place][i] is None]
        values = [place for place in places if rows[place][i] is not None]
        values.sort(key=lambda place: rows[place][i], reverse=key.descending)
        places = nulls + values if key.nulls_first else values + nulls
    return places


def _value(value: Any) -> tuple[bool, Any]:
    """NULL first, and what is nested as CAST to TEXT writes it (R4)."""
    if value is None:
        return False, 0
    return True, _in_json(value) if isinstance(value, list | dict) else value


def _part(value: Any) -> str:
    return format(value, "f") if isinstance(value, Decimal) else str(value)


_in_json = json.JSONEncoder(ensure_ascii=False, default=_part).encode
