"""`Connection.query_each` runs one query per row of a table, and follows the table's changes: rules as data.

The template is CQL with `$column` where a value of the row is to stand. A row that comes registers a query, a row that
goes closes its query, and each query is one like any other: it has a name, a plan, and can be paused.

Invariant: after every call there is a query for every row of the table whose text could be registered, and for no
other row; of several rows of one key for the first that is there, and so of keys whose queries would have one name,
which has no case. A rule sees what is pushed after its row (docs/semantics T7). docs/sharing.md.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from minidsms.counted import counted
from minidsms.cql.errors import CqlError, Error, one_line, quoted
from minidsms.cql.parameters import Place, cut, literal, places
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_text
from minidsms.elements import Batch, Column, Int8Array, Int64Array, Schema, Type
from minidsms.expressions.timestamps import iso_of_ticks
from minidsms.process.collecting import Uncollected
from minidsms.process.interrupts import let_through
from minidsms.query import Change, Query
from minidsms.statements.arguments import name_of, text_of

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.engine.running_query import RunningQuery

Key = Any
"""The value of a KEY of one column, the values of one of several."""
Left = tuple[Key, list[Change], pa.Table]
"""What waited of a query whose row is gone, as `fetch` and as `fetch_arrow` give it."""
Taken = tuple[Key, Query, list[Batch]]


class QueryEach:
    """The queries of a table of rules. Made by `Connection.query_each`.

    name: of the queries, with the row's key behind it.  key: the places of the columns of the KEY.
    """

    def __init__(self, db: Connection, template: str, table: str, name: str | None, has_decimals: bool = True) -> None:
        """Raises Error, and then nothing has been registered.

        has_decimals: values of DECIMAL columns are written as such; in folders of before they were numbers.
        """
        definition = db.catalog.relations.get(name_of(table).lower())
        if definition is None:
            raise Error(f'query_each takes the name of a relation; there is no relation "{table}"')
        if not definition.key:
            raise Error(
                f"query_each delivers with the key of a row, and {one_line(definition.name)} has none\n"
                f"help: CREATE RELATION {one_line(definition.name)} (..) KEY (..)"
            )
        nested = [field for i, field in enumerate(definition.schema) if i in definition.key and field.type.is_nested]
        if nested:
            raise Error(f"query_each delivers with the key of a row, which {nested[0]} cannot be part of")
        self._db = db
        self._input = db.relation_input(definition.name)
        self._types = definition.schema.types
        self._has_decimals = has_decimals
        self._codec = db.codec(definition.schema)
        self.key = definition.key
        self._parts = _parts(text_of(template), definition.schema)
        self.name = name or definition.name
        self.template, self.table = text_of(template), definition.name
        self._queries: dict[Key, Query] = {}
        self._keys: WeakKeyDictionary[Query, Key] = WeakKeyDictionary()
        """Of the queries there are, and those that are gone and that somebody still holds."""
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        """Those present, by `folded` key: the first has the query."""
        self._left: list[Left] = []
        """What waited of queries whose rows are gone."""
        self._callbacks: list[Callable[..., Any]] = []
        self._waiting: deque[tuple[int, tuple[Any, ...]]] = deque()
        self.closed = False
        self._refused: dict[Key, str] = {}
        rows = self._codec.rows(self._input.present())
        if not rows:
            self._read()
        try:
            for row in rows:
                self._add(row)
                self._rows[folded(row, self.key)] = [row]
        except BaseException:
            self._drop_all()
            raise
        self._input.followers.append(self)

    def _read(self) -> None:
        """CqlError where the template is no query with whatever row."""
        try:
            parse_query(self._text(tuple(_example(type_, "1") for type_ in self._types)))
        except CqlError:
            # Only this is a text behind INTERVAL.
            parse_query(self._text(tuple(_example(type_, "1 DAY") for type_ in self._types)))

    # -------------------------------------------------------------------------------------------------- the table

    def add(self, instants: Int64Array, signs: Int8Array | None, columns: Sequence[Column]) -> None:
        """The table has changed, as its input tells; `follow` acts on it."""
        batch = Batch(instants, signs, columns)
        self._waiting += zip(batch.signs.tolist(), self._codec.rows(batch))

    def follow(self) -> None:
        """Register and close what the changes of the table ask for. The engine is at rest. Where a query cannot end, as
        its file cannot be written, the changes behind that wait for the next call.
        """
        tried: dict[Key, None] = {}
        while self._waiting:
            sign, row = self._waiting.popleft()
            place = folded(row, self.key)
            rows = self._rows.setdefault(place, [])
            had = rows[0] if rows else None
            rows.append(row) if sign > 0 else rows.remove(row)
            for each in (row, *rows):
                self._refused.pop(self._key_of(each), None)
            if not rows:
                del self._rows[place]
            try:
                if had is not None and (not rows or rows[0] != had):
                    self._drop(self._key_of(had))
            finally:
                if rows:
                    self._try(rows)
                    tried |= dict.fromkeys(map(self._key_of, rows))
        for key in tried:
            if key in self._refused:
                self._db.warnings.append(f"query_each: no query for {key!r}: {self._refused[key]}")

    def _try(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Register the query of the first of these rows, where there is none, and note what cannot be."""
        first = self._key_of(rows[0])
        try:
            if first not in self._queries:
                self._add(rows[0])
        except Error as error:
            self._refused[first] = str(error)
        for row in rows[1:]:
            self._refused[self._key_of(row)] = self._told_apart(first, row)

    def _told_apart(self, first: Key, row: tuple[Any, ...]) -> str:
        """Why a row has no query beside that of a key."""
        key = self._key_of(row)
        if key == first:
            return _TWICE.format(key)
        return f"its query would be {quoted(self._name_of(row))}, as that of {first!r}: names have no case"

    @property
    def failures(self) -> dict[Key, str]:
        """By key: why a row that came later has no query, and why a query has stopped."""
        with self._db.lock:
            stopped = {key: query.failure[1] for key, query in self._queries.items() if query.failure is not None}
            return {**stopped, **self._refused}

    @property
    def has_news(self) -> bool:
        """The table has changed."""
        return bool(self._waiting)

    def _key_of(self, row: tuple[Any, ...]) -> Key:
        values = tuple(row[i] for i in self.key)
        return values[0] if len(values) == 1 else values

    def _add(self, row: tuple[Any, ...]) -> None:
        key = self._key_of(row)
        others = self._rows.get(folded(row, self.key))
        if others and others[0] is not row:
            raise Error(f"no query for {key!r}: {self._told_apart(self._key_of(others[0]), row)}")
        query = self._db.query(self._text(row), self._name_of(row))
        self._queries[key] = query
        self._keys[query] = key

    def _name_of(self, row: tuple[Any, ...]) -> str:
        return "_".join([self.name, *(str(row[i]) for i in self.key)])

    def _text(self, row: tuple[Any, ...]) -> str:
        """The template with the values of a row."""
        written = [part if isinstance(part, str) else self._literal(row, *part) for part in self._parts]
        return "".join(written)

    def _literal(self, row: tuple[Any, ...], column: int, place: Place) -> str:
        value, type_ = row[column], self._types[column]
        if type_ is Type.TIMESTAMP and value is not None:
            text = iso_of_ticks(value, self._db.tick_ns)
            # Beyond the years of four digits nothing but ticks can be read.
            return (
                f"TIMESTAMP '{text}'"
                if text[:4].isdigit() and text[4] == "-"
                else f"CAST({literal(value)} AS TIMESTAMP)"
            )
        if type_ is Type.INTERVAL and value is not None:
            if place.is_count and not place.has_unit and value >= 0:
                return str(value)
            return f"CAST({literal(value)} AS INTERVAL)"
        if type_.kind == "DECIMAL" and value is not None and not self._has_decimals:
            return _number(value)
        if type_.is_nested and value is not None and not place.levels:
            # An empty list has no type as a literal, an instant in one is a number, and a dict has no literal.
            return f"CAST({print_text(json.dumps(value, default=str, ensure_ascii=False))} AS {type_})"
        return place.written(value)

    def _drop(self, key: Key) -> None:
        query = self._queries.pop(key, None)
        if query is None or query.state == "closed":
            return
        self._db.end_followed(query, partial(self._leave, key, query))
        query.close()

    def _leave(self, key: Key, query: RunningQuery, batches: Sequence[Batch]) -> None:
        """Let answers of a query whose row is gone wait to be fetched."""
        self._left.append((key, list(query.codec.changes(Batch.concat(batches))), query.codec.table(batches)))
        for fn in self._callbacks:
            self._db.news.note_other(fn)

    def _drop_all(self) -> None:
        for key in list(self._queries):
            self._drop(key)

    # ------------------------------------------------------------------------------------------------ the queries

    def __len__(self) -> int:
        return len(self._queries)

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._queries))

    def __getitem__(self, key: Key) -> Query:
        """The query of a row; KeyError where there is none."""
        return self._queries[key]

    @property
    def dropped(self) -> list[str]:
        """The names of queries that have been closed though their rows are there."""
        with self._db.lock:
            return [query.name for query in self._queries.values() if query.state == "closed"]

    @property
    def left(self) -> int:
        """Answers that wait of queries whose rows are gone."""
        return sum(len(changes) for _, changes, _ in self._left)

    def forget_left(self) -> None:
        """They have been fetched."""
        self._left = []

    def _take_left(self) -> list[Left]:
        """What waits of queries whose rows are gone; it waits no more."""
        found, self._left = self._left, []
        if found:
            self._db.journal.note_left_taken(self.name)
        return found

    def fetch(self) -> list[tuple[Key, Change]]:
        """(key, change) of all queries since the last fetch, query by query in the order of their rows; first of those
        whose rows are gone.
        """
        with self._db.lock, Uncollected():
            left, taken = self._take()
            found = [(key, change) for key, changes, _ in left for change in changes]
            for key, query, batches in taken:
                found += [(key, change) for batch in batches for change in query.codec.changes(batch)]
            self._note(left, taken)
            return found

    def fetch_arrow(self) -> pa.Table:
        """The same as a table: the columns of the key, then _ts, _sign and the query's."""
        with self._db.lock:
            left, taken = self._take()
            keys = [*(key for key, _, _ in left), *(key for key, _, _ in taken)]
            tables = [*(table for _, _, table in left), *(query.codec.table(batches) for _, query, batches in taken)]
            if not tables:
                tables = [query.codec.table(()) for query in self._queries.values()][:1]
                keys = [(None,) * len(self.key)] * len(tables)
            whole = self._with_keys(keys, tables)
            self._note(left, taken)
            return whole

    def _take(self) -> tuple[list[Left], list[Taken]]:
        """What waits of queries whose rows are gone, and of the others; it waits no more, or again, where an exception
        comes in place of it. The caller holds the lock.
        """
        left, self._left = self._left, []
        taken: list[Taken] = []

        def give_back() -> None:
            self._left = [*left, *self._left]
            for _, query, batches in taken:
                query.give_back(batches)

        self._db.lock.undo_on_error(give_back)
        for key, query in self._queries.items():
            if query.is_waiting:
                taken.append((key, query, query.taken_batches()))
        return left, taken

    def _note(self, left: list[Left], taken: list[Taken]) -> None:
        """What has been taken need not be kept."""
        let_through()  # only the last entry of a log can be taken back
        if left:
            self._db.journal.note_left_taken(self.name)
        for _, query, _ in taken:
            self._db.journal.note_taken(query, query.results)

    def _with_keys(self, keys: Sequence[Key], tables: Sequence[pa.Table]) -> pa.Table:
        """The tables, one behind the other, with the columns of their keys in front."""
        if not tables:
            return pa.table({})
        names = [self._codec.schema.names[i] for i in self.key]
        types = [self._codec.schema.types[i] for i in self.key]
        codec = self._codec.of(Schema.of(*zip(names, types)))
        placed = [key if len(names) > 1 else (key,) for key, table in zip(keys, tables) for _ in range(len(table))]
        whole = pa.concat_tables(tables, promote_options="permissive")
        for name, column in reversed(list(zip(names, codec.table_of_rows(placed).columns))):
            whole = whole.add_column(0, name if name not in whole.column_names else f"key_{name}", column)
        return whole

    def on_change(self, fn: Callable[[list[tuple[Key, Change]]], Any]) -> Callable[..., Any]:
        """Call fn once a step with (key, change) of all that is new, outside the engine's lock. Usable as a decorator.

        What it is told is not fetched again.
        """
        if not callable(fn):
            raise Error(f"on_change takes a function of a list, not {type(fn).__name__}")

        def told(news: list[tuple[Query, list[Change]]]) -> None:
            with self._db.lock:
                left = [(key, change) for key, changes, _ in self._take_left() for change in changes]
            fn([*left, *((self._keys[query], change) for query, changes in news for change in changes)])

        self._db.on_change(told, lambda query: query in self._keys)
        self._callbacks.append(told)
        return fn

    def close(self) -> None:
        """Close all queries, and follow the table no longer. Closing twice is no error."""
        with self._db.lock:
            if not self.closed:
                names = [query.name for query in self._queries.values() if query.state != "closed"]
                with self._db.journal.entry("rules ended", name=self.name, queries=names):
                    self._close()

    def _close(self) -> None:
        self.closed = True
        self._input.followers.remove(self)
        self._drop_all()
        for fn in self._callbacks:
            self._db.news.forget(fn)
        self._db.unfollow(self)

    def __repr__(self) -> str:
        return f"<{counted(len(self._queries), 'query', 'queries')}, one per row of {self.name}>"


_KEYWORD = re.compile(r"\bTIMESTAMP\s*$", re.IGNORECASE)


def folded(row: tuple[Any, ...], key: Sequence[int]) -> str:
    """What is behind the name of a row's query, by which queries are told apart."""
    return "_".join(str(row[i]) for i in key).lower()


_TWICE = "there are two rows of the key {!r}"


def _number(value: Decimal) -> str:
    """A Decimal as a FLOAT or an INTEGER, where it is one."""
    shown = format(value, "f")
    if "." not in shown and abs(value) >= 1 << 63:
        return literal(value)
    return f"({shown})" if value < 0 else shown


def _example(type_: Type, text: str) -> Any:
    """A value of a type; of TEXT, this one."""
    if type_.element is not None:
        return [_example(type_.element, text)]
    if type_.is_nested:
        return {}
    others = {"TEXT": text, "FLOAT": 1.0, "BOOLEAN": True, "DATE": datetime.date.min, "TIME": datetime.time.min}
    return others.get(type_.kind, 1)


def _parts(template: str, schema: Schema) -> list[str | tuple[int, Place]]:
    """The template cut at its parameters: texts, and columns of the table, each with its `Place`.

    TIMESTAMP before a column of instants is left out, as they are written with it.
    """
    columns = schema.names
    number = {column.lower(): i for i, column in enumerate(columns)}
    between, found = cut(template)
    parts: list[str | tuple[int, Place]] = [between[0]]
    for match, place, behind in zip(found, places(between), between[1:], strict=True):
        name = match.group("name")
        if name is None:
            raise Error("a template names columns of the table, as $column, and has no ?")
        column = number.get(name.lower())
        if column is None:
            raise Error(f"the template names ${name}; the table has: {', '.join(columns)}")
        if schema.types[column] is Type.TIMESTAMP:
            parts[-1] = _KEYWORD.sub("", str(parts[-1]))
        parts += [(column, place), behind]
    return parts
