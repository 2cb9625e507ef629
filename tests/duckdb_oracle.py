"""A second oracle: windows' contents computed apart from the definition, the SQL over them answered by DuckDB.

At an instant every window of the query becomes a table and the query is run without its windows. It covers what is SQL
in a query (docs/semantics R1, R2, R5); views, derived streams and failures are left to the definition.

Invariant: nothing of `minidsms.testing.definition` is used but the shape of a History.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import duckdb

from minidsms.cql import syntax
from minidsms.cql.printer import print_query
from minidsms.elements import Type
from minidsms.testing.grammar import RELATIONS, STREAMS
from minidsms.testing.history import Change, History, Row

OWN_TYPES = {"INTEGER": "BIGINT", "FLOAT": "DOUBLE", "TEXT": "VARCHAR", "BOOLEAN": "BOOLEAN"}
Contents = Callable[[History, int], list[Row]]


class DuckDbOracle:
    """One query over one history, answered by DuckDB at any instant."""

    def __init__(self, query: syntax.Query, history: History, database: duckdb.DuckDBPyConnection) -> None:
        self._history = history
        self._tables: dict[tuple[str, syntax.Window | None], str] = {}
        without_windows = self._translated(query)
        # CQL's types by the names DuckDB gives them; its INTEGER has 32 bits.
        text = print_query(without_windows)
        self.sql = re.sub(r"\bAS (INTEGER|FLOAT)\)", lambda m: f"AS {OWN_TYPES[m[1]]})", text)
        self._db = database
        self._db.execute("SET error_on_division_by_zero = false")
        for (name, _), table in self._tables.items():
            columns = ", ".join(f"{column} {OWN_TYPES[str(type_)]}" for column, type_ in _columns(name))
            self._db.execute(f"CREATE OR REPLACE TEMP TABLE {table} ({columns})")

    def begins(self) -> int | None:
        """The first instant at which every window and relation has seen an element; None if one never does.

        From here on SQL's one row for a query without GROUP BY is CQL's too (R3).
        """
        firsts = []
        for name, _ in self._tables:
            ts = [e[0] for e in (self._history.streams.get(name) or self._history.relations.get(name) or [])]
            if not ts:
                return None
            firsts.append(min(ts))
        return max(firsts, default=None)

    def relation_at(self, tau: int) -> list[Row]:
        """The query's relation at the instant."""
        for (name, window), table in self._tables.items():
            self._db.execute(f"DELETE FROM {table}")
            rows = _held(name, window, self._history, tau)
            if rows:
                marks = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
                self._db.execute(f"INSERT INTO {table} VALUES {marks}", [value for row in rows for value in row])
        return [tuple(row) for row in self._db.execute(self.sql).fetchall()]

    def _translated(self, node: Any) -> Any:
        """The tree with a table for each windowed stream and `divide` for the division of integers."""
        if isinstance(node, tuple):
            return tuple(self._translated(part) for part in node)
        if isinstance(node, syntax.TableRef):
            key = (node.name.lower(), node.window)
            table = self._tables.setdefault(key, f"w{len(self._tables)}")
            return replace(node, name=table, window=None, alias=node.alias or node.name)
        if not is_dataclass(node) or isinstance(node, type):
            return node
        parts = {f.name: self._translated(getattr(node, f.name)) for f in fields(node) if f.name != "span"}
        if isinstance(node, syntax.Binary) and node.op == "/":
            return syntax.Call("divide", (parts["left"], parts["right"]))
        if isinstance(node, syntax.Literal) and isinstance(node.value, float):
            return syntax.Cast(node, Type.FLOAT)  # DuckDB reads 1.5 as a decimal
        return replace(node, **parts)


def _columns(name: str) -> Sequence[tuple[str, Any]]:
    declared = {n.lower(): columns for n, columns in (*STREAMS.items(), *RELATIONS.items())}
    return declared[name]


# ---------------------------------------------------------------------------------- windows, by lists of their own


def _held(name: str, window: syntax.Window | None, history: History, tau: int) -> list[Row]:
    """What a relation, or a window over a stream, holds at the instant."""
    if name in {r.lower() for r in RELATIONS}:
        return _relation(history.relations.get(name, []), tau)
    arrived = [e for e in history.streams.get(name, []) if e[0] <= tau]
    match window:
        case None | syntax.UnboundedWindow():
            kept = arrived
        case syntax.NowWindow():
            kept = [e for e in arrived if e[0] == tau]
        case syntax.RangeWindow(range=length, slide=slide):
            end = tau - tau % int(slide.number) if slide else tau
            kept = list(_recent(arrived, int(length.number), end))
        case syntax.HopWindow(length=length, step=every):
            end = tau - tau % int((every or length).number)
            kept = [e for e in arrived if end - int(length.number) <= e[0] < end]
        case syntax.RowsWindow(rows=rows, slide=step):
            counted = arrived[: len(arrived) - len(arrived) % step] if step else arrived
            kept = counted[-rows:]
        case syntax.SessionWindow(gap=gap, keys=keys):
            places = [[column for column, _ in _columns(name)].index(k.name) for k in keys]
            kept = [e for e in arrived if _is_in_session(e, arrived, places, int(gap.number), tau)]
        case syntax.PartitionWindow(keys=keys, rows=rows, range=range_):
            names = [column for column, _ in _columns(name)]
            positions = [names.index(k.name) for k in keys]
            kept = []
            for i, element in enumerate(arrived):
                key = [element[1][p] for p in positions]
                newer = sum(1 for later in arrived[i + 1 :] if [later[1][p] for p in positions] == key)
                if newer < rows:
                    kept.append(element)
            if range_ is not None:
                kept = list(_recent(kept, int(range_.number), tau))
        case _:
            raise TypeError(f"no window: {window}")
    return [row for _, row in kept]


def _recent(elements: list[tuple[int, Row]], length: int, end: int) -> Iterator[tuple[int, Row]]:
    """A row of instant t is there from t until it leaves at t + length, seen at `end`."""
    for ts, row in elements:
        leaves = ts + (length or 1)
        if ts <= end < leaves:
            yield ts, row


def _is_in_session(
    element: tuple[int, Row], arrived: list[tuple[int, Row]], key: list[int], gap: int, tau: int
) -> bool:
    """From the element on up to now, those of its key never leave a gap."""
    own = [element[1][i] for i in key]
    later = [ts for ts, row in arrived if ts >= element[0] and [row[i] for i in key] == own]
    return all(b - a < gap for a, b in zip(later, [*later[1:], tau]))


def _relation(changes: list[Change], tau: int) -> list[Row]:
    rows: list[Row] = []
    for ts, sign, row in changes:
        if ts > tau:
            break
        if sign > 0:
            rows.append(row)
        else:
            rows.remove(row)
    return rows
