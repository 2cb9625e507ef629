"""What a connection has declared: streams, relations, views and user functions, by case-insensitive name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from minidsms.elements import Schema, Type

if TYPE_CHECKING:
    from minidsms.cql.views import BoundView


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

    @property
    def has_times(self) -> bool:
        """Its instants stand in a TIMESTAMP column; else they are numbers, of which nothing says what they count."""
        return self.timestamp_by is not None and self.schema.types[self.timestamp_by] is Type.TIMESTAMP


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


class BoundViews:
    """What declarations have bound, and of which declarations that holds."""

    def __init__(self) -> None:
        self._stamp: list[object] = []
        self._views: dict[str, BoundView] = {}

    def as_of(self, stamp: list[object], views: Mapping[str, ViewDef]) -> dict[str, BoundView]:
        """By name; none where one of these declarations is another, or a view is."""
        same = len(stamp) == len(self._stamp) and all(a is b or a == b for a, b in zip(stamp, self._stamp))
        if not same or any(views.get(key) is not known.view for key, known in self._views.items()):
            self._views = {}
        self._stamp = stamp
        return self._views


@dataclass
class Catalog:
    """The declarations of one connection. Keys are lower-case names; streams, relations and views share one name space.

    tick_ns: nanoseconds in one tick.  rstream_ticks: `SET rstream = 'ticks'`.  bag_set_operations: UNION and EXCEPT
    keep duplicates (STREAM scripts).  limits: how many "inputs" and "literals" a query may have.  queries: those that
    run; no FROM may name one.  is_of_archives: streams and relations are the archives of a folder.
    """

    tick_ns: int = 1_000_000
    streams: dict[str, StreamDef] = field(default_factory=dict)
    relations: dict[str, RelationDef] = field(default_factory=dict)
    views: dict[str, ViewDef] = field(default_factory=dict)
    functions: dict[str, FunctionDef] = field(default_factory=dict)
    aggregates: dict[str, AggregateDef] = field(default_factory=dict)
    rstream_ticks: bool = False
    bag_set_operations: bool = False
    is_of_archives: bool = False
    limits: dict[str, int | None] = field(default_factory=dict)
    queries: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    _bound: BoundViews = field(default_factory=BoundViews, compare=False, repr=False)

    def bound_views(self) -> dict[str, BoundView]:
        """The views that declarations have bound, as long as nothing has changed that they may stand on."""
        settings = self.rstream_ticks, self.bag_set_operations, self.tick_ns
        tables = (self.streams, self.relations, self.functions, self.aggregates)
        stamp: list[object] = [settings, *(declared for table in tables for declared in table.values())]
        return self._bound.as_of(stamp, self.views)

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
