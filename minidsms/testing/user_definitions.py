"""User functions and a user aggregate that generated queries call; the engine and the definition get the same ones."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from minidsms.cql.catalog import AggregateDef, FunctionDef
from minidsms.elements import Type


def twice_or_nothing(a: int | None) -> int | None:
    """NULL for 1, an error for 4, 0 for NULL."""
    if a == 4:
        raise ValueError("four")
    return 0 if a is None else None if a == 1 else 2 * a


def tag(text: str | None, number: int | None) -> str:
    """A text even of NULLs."""
    return f"{text or ''}{number if number is not None else '-'}"


class Panic(BaseException):
    """What an extension raises that is no Exception."""


def panicking(number: int) -> int:
    """Nothing but `Panic`."""
    raise Panic


def leaving(number: int) -> int:
    """Nothing: it ends the program."""
    sys.exit(3)


def halves(x: Any) -> Any:
    """Vectorized: half of each."""
    return x / 2


def both(a: Any, b: Any) -> Any:
    """Vectorized, of two integers: whether both are odd."""
    return (a % 2 == 1) & (b % 2 == 1)


class Span:
    """The distance between the greatest and the least."""

    def __init__(self) -> None:
        self.values: Counter[int] = Counter()

    def add(self, value: int) -> None:
        self.values[value] += 1

    def remove(self, value: int) -> None:
        self.values[value] -= 1
        self.values += Counter()

    def result(self) -> int:
        return max(self.values) - min(self.values)


class Products:
    """The sum of the products of two arguments."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, a: int, b: int) -> None:
        self.total += a * b

    def remove(self, a: int, b: int) -> None:
        self.total -= a * b

    def result(self) -> int:
        return self.total


USER_FUNCTIONS: dict[str, FunctionDef] = {
    definition.name: definition
    for definition in (
        FunctionDef("uf_twice", twice_or_nothing, (Type.INTEGER,), Type.INTEGER),
        FunctionDef("uf_tag", tag, (Type.TEXT, Type.INTEGER), Type.TEXT),
        FunctionDef("uf_half", halves, (Type.FLOAT,), Type.FLOAT, vectorized=True),
        FunctionDef("uf_odd", both, (Type.INTEGER, Type.INTEGER), Type.BOOLEAN, vectorized=True),
    )
}
USER_AGGREGATES: dict[str, AggregateDef] = {
    definition.name: definition
    for definition in (
        AggregateDef("ua_span", Span, (Type.INTEGER,), Type.INTEGER),
        AggregateDef("ua_products", Products, (Type.INTEGER, Type.INTEGER), Type.INTEGER),
    )
}


def create_all(connection: Any) -> None:
    """Register them with a connection."""
    for name in (*USER_FUNCTIONS, *USER_AGGREGATES):
        create(connection, name)


def create(connection: Any, name: str) -> None:
    """Register one of them with a connection."""
    if name in USER_FUNCTIONS:
        f = USER_FUNCTIONS[name]
        connection.create_function(f.name, f.function, list(f.arg_types), f.type, vectorized=f.vectorized)
    else:
        a = USER_AGGREGATES[name]
        connection.create_aggregate(a.name, a.factory, list(a.arg_types), a.type)
