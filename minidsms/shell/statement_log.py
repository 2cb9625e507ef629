"""The statements that made a session what it is, for `.save` and `.schema`.

Invariant: run in order on an empty connection they declare what is there now. What has been dropped is left out
together with its declaration.
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.cql import syntax


@dataclass(frozen=True)
class Entry:
    """A statement that has been carried out. kind: stream, relation, view, query or setting.  name: lower case."""

    kind: str
    name: str
    text: str


class StatementLog:
    """See the module."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def note(self, statement: syntax.Statement, query_name: str = "") -> None:
        """Note a statement that has been carried out. query_name: what a query without a name was called."""
        from minidsms.cql.printer import print_statement

        match statement:
            case syntax.Drop():
                self._forget(statement.kind, statement.name)
                return
            case syntax.CreateStream():
                kind, name = "stream", statement.name
            case syntax.CreateRelation():
                kind, name = "relation", statement.name
            case syntax.CreateView():
                kind, name = "view", statement.name
            case syntax.CreateQuery():
                kind, name = "query", statement.name
            case syntax.QueryStatement():
                kind, name = "query", query_name
                statement = syntax.CreateQuery(query_name, statement.query)
            case syntax.AlterQuery(action="set"):
                kind, name = "query", statement.name
            case syntax.SetSetting():
                kind, name = "setting", statement.name
                self._forget(kind, name)
            case _:
                return
        self.entries.append(Entry(kind, name.lower(), print_statement(statement)))

    def _forget(self, kind: str, name: str) -> None:
        self.entries = [e for e in self.entries if (e.kind, e.name) != (kind, name.lower())]

    def named(self, name: str) -> Entry | None:
        """What declared a stream, relation, view or query; None where nothing did here."""
        for entry in self.entries:
            if entry.name == name.lower() and entry.kind != "setting":
                return entry
        return None

    def script(self) -> str:
        """All of it as a script."""
        return "".join(f"{entry.text};\n" for entry in self.entries)
