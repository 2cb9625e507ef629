"""The names of a connection, for completion: what is declared, with its columns, functions, settings.

Everything is read without the engine's lock, from dictionaries that other threads may change: a name may come or go
between two looks, and nothing waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.settings import SETTINGS

if TYPE_CHECKING:
    from minidsms.connection import Connection


class Names:
    """See the module."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def tables(self) -> list[tuple[str, str]]:
        """(name, kind) of what FROM may name."""
        catalog = self._db.catalog
        streams = list(catalog.streams.values())
        found = [(stream.name, "stream") for stream in streams if not stream.is_system]
        found += [(relation.name, "relation") for relation in list(catalog.relations.values())]
        found += [(view.name, "view") for view in list(catalog.views.values())]
        return [*found, *((stream.name, "system stream") for stream in streams if stream.is_system)]

    def inputs(self) -> list[tuple[str, str]]:
        """(name, kind) of what takes data."""
        return [(name, kind) for name, kind in self.tables() if kind in ("stream", "relation")]

    def relations(self) -> list[tuple[str, str]]:
        """(name, kind) of what UPDATE and DELETE may name."""
        return [(name, kind) for name, kind in self.tables() if kind == "relation"]

    def queries(self) -> list[tuple[str, str]]:
        """(name, kind) of the running queries."""
        return [(query.name, query.kind) for query in list(self._db.queries.values())]

    def columns(self, table: str) -> Schema | None:
        """The columns of what FROM may name; None where nothing bears the name."""
        catalog = self._db.catalog
        key = table.lower()
        declared = catalog.streams.get(key) or catalog.relations.get(key)
        if declared is not None:
            return declared.schema
        if key not in catalog.views:
            return None
        from minidsms.cql.binder import bind
        from minidsms.cql.parser import parse_query

        try:
            return bind(parse_query(f"SELECT * FROM `{key.replace('`', '``')}`"), catalog, "").node.schema
        except Error:
            return None

    def functions(self) -> list[tuple[str, str]]:
        """(name, what it is) of functions and aggregates."""
        from minidsms.aggregates import AGGREGATES
        from minidsms.cql.functions import CALLED

        catalog = self._db.catalog
        named = {name.upper(): "function" for name in CALLED} | {name.upper(): "aggregate" for name in AGGREGATES}
        own = [(f.name, "your function") for f in list(catalog.functions.values())]
        own += [(a.name, "your aggregate") for a in list(catalog.aggregates.values())]
        return [*own, *sorted(named.items())]

    def settings(self) -> list[tuple[str, str]]:
        """(name, meaning)."""
        return [(setting.name, setting.meaning) for setting in SETTINGS.values()]

    def values_of(self, setting: str) -> list[str]:
        """The words a setting may be set to, where it is a choice of words."""
        known = SETTINGS.get(setting.lower())
        if known is None:
            return []
        try:
            known.check("\0")
        except ValueError as error:
            _, found, words = str(error).partition("choose one of: ")
            if found:
                return words.partition(";")[0].split(", ")
        return []
