"""What the examples have in common: the rows of generators as plain Python, and the comparison with a recomputation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from minidsms import Query
from minidsms.cql.parser import parse_type
from minidsms.elements import Schema
from minidsms.generators import generator_named, open_generator


def generated(name: str, stream: str, **arguments: Any) -> list[Any]:
    """The rows that FROM GENERATOR name('stream', ..) gives, as named tuples; `at` in milliseconds."""
    columns = generator_named(name).streams[stream][0]
    schema = Schema.of(*((column, parse_type(type_)) for column, type_ in columns.items()))
    row = NamedTuple("row", [(column, Any) for column in columns])  # type: ignore[misc]
    source = open_generator(name, (stream, *arguments.items()), schema, 1_000_000)
    return [row(**values) for batch in source.read() for values in batch.to_pylist()]


def value_at(changes: Sequence[Any], ts: int) -> Any:
    """The one value of a relation of one row at an instant, from its changes."""
    value = None
    for change in changes:
        if change.ts > ts:
            break
        if change.sign > 0:
            value = change.row[0]
    return value


def netted(query: Query) -> dict[int, Counter[Any]]:
    """What has changed at each instant, numbers to six places."""
    found: dict[int, Counter[Any]] = {}
    for ts, sign, row in query.fetch():
        found.setdefault(ts, Counter())[tuple(round(v, 6) if isinstance(v, float) else v for v in row)] += sign
    return found


def agree(what: str, got: Any, expected: Any) -> int:
    """Say whether an answer is the recomputed one; the exit code."""
    if got == expected:
        print(f"checked: {what} is what a plain recomputation gives")
        return 0
    print(f"WRONG: {what}\n  got      {str(got)[:400]}\n  expected {str(expected)[:400]}")
    return 1
