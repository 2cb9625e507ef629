"""The types of columns, as docs/semantics R4 names them, and the array that holds each.

Invariant: there is one object for each type, so types are compared with `is`; `str` of one is its name in CQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar
from weakref import WeakValueDictionary

import numpy as np

Fields = tuple[tuple[str, "Type"], ...]

MOST_DIGITS = 38
"""Of a DECIMAL."""
COMPUTED_DIGITS = 18
"""DECIMALs of no more have codes that are computed, and ordered as they are."""
TRUE_WORDS = "true", "t", "yes", "y", "1"
FALSE_WORDS = "false", "f", "no", "n", "0"
"""What texts spell a BOOLEAN, in any case."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Type:
    """A type. `kind` is its name without what stands in parentheses; LIST, STRUCT and MAP are nested.

    element: the type of a list's elements, else None.  fields: name and type of each field of a STRUCT; of a MAP those
    of `key` and `value`.  digits, scale: of a DECIMAL, all its digits and those behind the point.  is_nested: its
    values hold others, and have no order.  is_coded: they are codes of the dictionary, which has them as
    `minidsms.values.coded` writes them.

    INTEGER, TIMESTAMP, INTERVAL (ticks), DATE (days since 1970), TIME (microseconds of the day) and what the
    connection's dictionary codes (TEXT, DECIMAL and nested types) are int64 arrays, FLOAT is float64, BOOLEAN is bool.
    NULL is the type of the bare literal; a column of it is int64 zeros, never valid.
    """

    __slots__ = (
        "__weakref__", "digits", "dtype", "element", "fields", "is_coded", "is_nested", "kind", "name", "scale",
    )  # fmt: skip

    INTEGER: ClassVar[Type]
    FLOAT: ClassVar[Type]
    BOOLEAN: ClassVar[Type]
    TEXT: ClassVar[Type]
    TIMESTAMP: ClassVar[Type]
    INTERVAL: ClassVar[Type]
    DATE: ClassVar[Type]
    TIME: ClassVar[Type]
    NULL: ClassVar[Type]
    SCALARS: ClassVar[tuple[Type, ...]]
    """The types that are named by a word."""
    _known: ClassVar[WeakValueDictionary[str, Type]] = WeakValueDictionary()

    kind: str
    name: str
    element: Type | None
    fields: Fields
    digits: int
    scale: int
    dtype: np.dtype[np.generic]
    is_nested: bool
    is_coded: bool

    @classmethod
    def _of(
        cls, kind: str, name: str, element: Type | None = None, fields: Fields = (), digits: int = 0, scale: int = 0
    ) -> Type:
        found = cls._known.get(name)
        if found is None:
            found = cls()
            found.kind, found.name, found.element, found.fields = kind, name, element, fields
            found.digits, found.scale = digits, scale
            found.is_nested = element is not None or bool(fields)
            found.is_coded = found.is_nested or kind in ("TEXT", "DECIMAL")
            found.dtype = np.dtype({"FLOAT": np.float64, "BOOLEAN": np.bool_}.get(kind, np.int64))
            found = cls._known.setdefault(name, found)
        return found

    @classmethod
    def struct(cls, fields: Sequence[tuple[str, Type]]) -> Type:
        """STRUCT of these fields, in this order."""
        inside = ", ".join(f"{_quoted(name)} {type_}" for name, type_ in fields)
        return cls._of("STRUCT", f"STRUCT({inside})", fields=tuple(fields))

    @classmethod
    def map(cls, key: Type, value: Type) -> Type:
        """MAP from keys to values."""
        return cls._of("MAP", f"MAP({key}, {value})", fields=(("key", key), ("value", value)))

    @classmethod
    def decimal(cls, digits: int, scale: int) -> Type:
        """DECIMAL of at most so many digits (1 to 38), `scale` of them behind the point."""
        assert 0 <= scale <= digits <= MOST_DIGITS and digits >= 1
        return cls._of("DECIMAL", f"DECIMAL({digits}, {scale})", digits=digits, scale=scale)

    @property
    def list_type(self) -> Type:
        """The type of lists of these."""
        return Type._of("LIST", f"{self}[]", self)

    @property
    def is_ranked(self) -> bool:
        """It has an order, which is that of its texts in the dictionary, not of their codes. Those of DECIMALs of at
        most 18 digits are computed, in their order (`minidsms.values.coded`).
        """
        return self is Type.TEXT or (self.kind == "DECIMAL" and self.digits > COMPUTED_DIGITS)

    @property
    def is_basic(self) -> bool:
        """One of the types that archives and Spark know."""
        return self.kind in ("INTEGER", "FLOAT", "BOOLEAN", "TEXT", "TIMESTAMP", "INTERVAL", "NULL")

    @property
    def depth(self) -> int:
        """How many types stand in each other."""
        return 1 + max((t.depth for t in (self.element, *(t for _, t in self.fields)) if t is not None), default=0)

    def __reduce__(self) -> tuple[Callable[..., Type], tuple[object, ...]]:
        return Type._of, (self.kind, self.name, self.element, self.fields, self.digits, self.scale)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


def known_type(type_: Type) -> Type:
    """The type of a column of such values: where all are a bare NULL, INTEGER."""
    return Type.INTEGER if type_ is Type.NULL else type_


def _quoted(name: str) -> str:
    from minidsms.cql.words import RESERVED

    if _PLAIN_NAME.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TEXT, Type.TIMESTAMP, Type.INTERVAL, Type.DATE, Type.TIME, Type.NULL = (
    Type._of(word, word)
    for word in ("INTEGER", "FLOAT", "BOOLEAN", "TEXT", "TIMESTAMP", "INTERVAL", "DATE", "TIME", "NULL")
)
Type.SCALARS = (
    Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TEXT, Type.TIMESTAMP, Type.INTERVAL, Type.DATE, Type.TIME,
)  # fmt: skip
