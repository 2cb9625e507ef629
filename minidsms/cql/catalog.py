"""What a connection has declared: streams, relations, views and user functions, by case-insensitive name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minidsms.elements import Schema, Type


@dataclass(frozen=True)
class SourceDef:
    """FROM 'path' [FORMAT f] [WITH (..)] of a declaration; format None is told by the file's name.

    options: values by lower-case name; lengths of time in seconds (float).  is_generator: path names a
    generator, and args are its arguments: positional ones, then (name, value) pairs.
    """

    path: str
    format: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    is_generator: bool = False
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class StreamDef:
    """CREATE STREAM. slack in ticks; timestamp_by is a column position or None. is_system: the engine writes it."""

    name: str
    schema: Schema
    timestamp_by: int | None = None
    slack: int = 0
    late_drop: bool = False
    key: tuple[int, ...] = ()
    source: SourceDef | None = None
    is_system: bool = False


@dataclass(frozen=True)
class RelationDef:
    """CREATE RELATION."""

    name: str
    schema: Schema
    key: tuple[int, ...] = ()
    source: SourceDef | None = None


@dataclass(frozen=True)
class ViewDef:
    """CREATE VIEW: a definition, kept as the text and tree it was written in.

    query: a `syntax.Query`.  columns: the names given, or ().  types: the types a STREAM script's `vtable` gives, or
    ().
    """

    name: str
    query: Any
    text: str
    columns: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()


@dataclass(frozen=True)
class FunctionDef:
    """A scalar user function. vectorized: it takes and returns numpy arrays. fixed: it must stay where it was
    written.
    """

    name: str
    function: Callable[..., Any]
    arg_types: tuple[Type, ...]
    type: Type
    vectorized: bool = False
    fixed: bool = False


@dataclass(frozen=True)
class AggregateDef:
    """A user aggregate: `factory()` makes a state with add(*values), remove(*values) and result()."""

    name: str
    factory: Callable[[], Any]
    arg_types: tuple[Type, ...]
    type: Type


@dataclass
class Catalog:
    """The declarations of one connection. Keys are lower-case names; streams, relations and views share one name space.

    tick_ns: nanoseconds in one tick.  rstream_ticks: `SET rstream = 'ticks'`.  bag_set_operations: UNION and EXCEPT
    keep duplicates (STREAM scripts).  limits: how many "inputs" and "literals" a query may have.
    """

    tick_ns: int = 1_000_000
    streams: dict[str, StreamDef] = field(default_factory=dict)
    relations: dict[str, RelationDef] = field(default_factory=dict)
    views: dict[str, ViewDef] = field(default_factory=dict)
    functions: dict[str, FunctionDef] = field(default_factory=dict)
    aggregates: dict[str, AggregateDef] = field(default_factory=dict)
    rstream_ticks: bool = False
    bag_set_operations: bool = False
    limits: dict[str, int | None] = field(default_factory=dict)

    def kind_of(self, name: str) -> str | None:
        """ "stream", "relation", "view", or None where nothing bears the name."""
        key = name.lower()
        for kind, table in (("stream", self.streams), ("relation", self.relations), ("view", self.views)):
            if key in table:
                return kind
        return None

    def names(self) -> list[str]:
        """Everything a FROM may name, as declared."""
        streams = [s.name for s in self.streams.values() if not s.is_system]
        return [*streams, *[d.name for table in (self.relations, self.views) for d in table.values()]]

    def system_names(self) -> list[str]:
        """The streams that the engine writes."""
        return [s.name for s in self.streams.values() if s.is_system]
