"""What a row gets from the rows beside it, by definition: every partition sorted anew, every frame looked at anew."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.over import Frame, OverCall
from minidsms.testing.history import Row, value_order


def in_order(rows: Sequence[Row], order: Sequence[tuple[int, SortKey]]) -> list[Row]:
    """The rows by these columns; rows equal in them by value, NULL first."""
    ordered = sorted(rows, key=value_order)
    for column, key in reversed(order):
        nulls = [row for row in ordered if row[column] is None]
        others = [row for row in ordered if row[column] is not None]
        others.sort(key=operator.itemgetter(column), reverse=key.descending)
        ordered = nulls + others if key.nulls_first else others + nulls
    return ordered


def over(rows: Sequence[Row], call: OverCall) -> list[Row]:
    """Every row with what the call gives it behind it; an integer may be too great."""
    partitions: dict[Row, list[Row]] = {}
    for row in rows:
        partitions.setdefault(tuple(row[i] for i in call.partition), []).append(row)
    found = []
    for partition in partitions.values():
        ordered = in_order(partition, call.order)
        found += [(*row, _result(ordered, i, call)) for i, row in enumerate(ordered)]
    return found


def _result(rows: Sequence[Row], place: int, call: OverCall) -> Any:
    keys = [tuple(row[column] for column, _ in call.order) for row in rows]
    before = keys[: keys.index(keys[place])]
    match call.function:
        case "row_number":
            return place + 1
        case "rank":
            return len(before) + 1
        case "dense_rank":
            return len(set(before)) + 1
        case "lag" | "lead":
            assert call.arg is not None and call.distance is not None
            other = place - call.distance if call.function == "lag" else place + call.distance
            return rows[other][call.arg] if 0 <= other < len(rows) else None
    frame = list(rows)
    if call.frame is Frame.ROWS:
        frame = list(rows[0 if call.distance is None else max(0, place - call.distance) : place + 1])
    if call.frame is Frame.PEERS:
        frame = list(rows[: len(before) + keys.count(keys[place])])
    if call.arg is None:
        return len(frame)
    values = [row[call.arg] for row in frame if row[call.arg] is not None]
    return _aggregate(call.function, values)


def _aggregate(function: str, values: list[Any]) -> Any:
    if function == "count":
        return len(values)
    if not values:
        return None
    if function in ("min", "max"):
        return min(values) if function == "min" else max(values)
    is_exact = isinstance(values[0], int) or any(map(math.isinf, values))
    total = sum(values) if is_exact else math.fsum(values)
    return total if function == "sum" else total / len(values)
