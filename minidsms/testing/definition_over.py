"""What a row gets from the rows beside it, by definition: every partition sorted anew, every frame looked at anew."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.over import OverCall
from minidsms.cql.catalog import AggregateDef
from minidsms.testing.definition_aggregates import OF_ROWS, decimal_sum, mean, stddev, total, variance
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


def over(
    rows: Sequence[Row], call: OverCall, known: dict[str, list[Row]], user: Mapping[str, AggregateDef]
) -> list[Row]:
    """Every row with what the call gives it behind it; an integer may be too great.

    known: what the call has given to partitions, by their rows as text, in which 1 and TRUE differ.  user: the
    aggregates of the user.
    """
    partitions: dict[Row, list[Row]] = {}
    for row in rows:
        partitions.setdefault(tuple(row[i] for i in call.partition), []).append(row)
    found: list[Row] = []
    for partition in partitions.values():
        told = repr(partition)
        if told not in known:
            known[told] = _over_partition(partition, call, user)
        found += known[told]
    return found


def _over_partition(partition: Sequence[Row], call: OverCall, user: Mapping[str, AggregateDef]) -> list[Row]:
    ordered = in_order(partition, call.order)
    peers: dict[Row, list[int]] = {}
    for i, row in enumerate(ordered):
        peers.setdefault(tuple(row[column] for column, _ in call.order), []).append(i)
    numbers = {key: n for n, key in enumerate(peers)}
    return [
        (*ordered[i], _result(ordered, i, range(places[0], places[0] + len(places)), numbers[key], call, user))
        for key, places in peers.items()
        for i in places
    ]


def _result(
    rows: Sequence[Row], place: int, peers: range, keys_before: int, call: OverCall, user: Mapping[str, AggregateDef]
) -> Any:
    """peers: the places of the rows with its keys.  keys_before: how many other keys stand before them."""
    match call.function:
        case "row_number":
            return place + 1
        case "rank":
            return peers.start + 1
        case "dense_rank":
            return keys_before + 1
        case "lag" | "lead":
            assert call.arg is not None and call.distance is not None
            other = place - call.distance if call.function == "lag" else place + call.distance
            if 0 <= other < len(rows):
                return rows[other][call.arg]
            return None if call.default is None else rows[place][call.default]
        case "ntile":
            assert call.distance is not None
            return _tile(place, len(rows), call.distance)
        case "percent_rank":
            return peers.start / (len(rows) - 1) if len(rows) > 1 else 0.0
        case "cume_dist":
            return peers.stop / len(rows)
    frame = [row for i, row in enumerate(rows) if _is_within(rows, place, i, call)]
    if call.arg is None:
        return len(frame)
    values = [row[call.arg] for row in frame]
    match call.function:
        case "first_value":
            return values[0] if values else None
        case "last_value":
            return values[-1] if values else None
        case "nth_value":
            assert call.distance is not None
            return values[call.distance - 1] if call.distance <= len(values) else None
    if call.settings is None or call.settings.passes_nulls:
        values = [value for value in values if value is not None]
    if call.user:
        return _of_user(user[call.function], _rows(call, values))
    return _aggregate(call, list(dict.fromkeys(values)) if call.distinct else values)


def _tile(place: int, rows: int, tiles: int) -> int:
    """Deal the rows out, one to each tile in turn: so many each holds, and in their order they are filled."""
    sizes = [len(range(tile, rows, tiles)) for tile in range(tiles)]
    return next(tile + 1 for tile in range(tiles) if place < sum(sizes[: tile + 1]))


def _is_within(rows: Sequence[Row], place: int, other: int, call: OverCall) -> bool:
    """Whether the frame of the row at a place holds another one."""
    start, end = call.frame.start, call.frame.end
    if not call.frame.by_value:
        return (start is None or other - place >= start) and (end is None or other - place <= end)
    behind_start = start is None or _compared(rows[other], rows[place], start, call) >= 0
    return behind_start and (end is None or _compared(rows[other], rows[place], end, call) <= 0)


def _compared(row: Row, other: Row, distance: int, call: OverCall) -> int:
    """Whether a row stands before the keys of another one and so much (-1), behind them (1) or with them (0)."""
    for column, key in call.order:
        value, bound = _number(row[column]), _number(other[column])
        if bound is not None and distance:
            bound += -distance if key.descending else distance
        if value is None or bound is None:
            if value is not bound:
                return -1 if (value is None) == key.nulls_first else 1
        elif value != bound:
            return -1 if (value < bound) != key.descending else 1
    return 0


def _number(value: Any) -> Any:
    """A date's day; any other value as it is."""
    return value.toordinal() if isinstance(value, datetime.date) else value


def _rows(call: OverCall, values: Sequence[Any]) -> list[Row]:
    """The arguments of the rows; several stand in a STRUCT, by name."""
    return [tuple(value for _, value in row) if call.values > 1 else (row,) for row in values]


def _of_user(aggregate: AggregateDef, rows: Sequence[Row]) -> Any:
    state = aggregate.factory()
    for row in rows:
        state.add(*row)
    return state.result() if rows else None


def _aggregate(call: OverCall, values: list[Any]) -> Any:
    function = call.function
    if function == "count":
        return len(values)
    if not values:
        return None
    if function in ("first", "last"):
        return values[0] if function == "first" else values[-1]
    if function in ("min", "max"):
        return min(values) if function == "min" else max(values)
    if function in ("variance", "stddev"):
        return variance(values) if function == "variance" else stddev(values)
    if call.settings is not None:
        return OF_ROWS[function](_rows(call, values), call.settings)
    if isinstance(values[0], Decimal) and function == "sum":
        return decimal_sum(values)
    return total(values) if function == "sum" else mean(values)
