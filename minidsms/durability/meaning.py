"""What an entry of the log is about: a query, an input or a view, and whether it ends it; which setting it changes."""

from __future__ import annotations

from minidsms.cql import syntax
from minidsms.cql.parser import parse
from minidsms.durability.entry import Fields


def about(fields: Fields) -> tuple[tuple[str, str] | None, bool]:
    """((kind, name) of what an entry is about, whether it ends it), or (None, False)."""
    match fields:
        case {"kind": "query", "name": str(name)}:
            return ("query", name.lower()), False
        case {"kind": "written" | "taken" | "into" | "archive" | "failed", "query": str(name)}:
            return ("query", name.lower()), False
        case {"kind": "done", "query": str(name)}:
            return ("query", name.lower()), True
        case {"kind": "call", "query": str(name), "method": method}:
            return ("query", name.lower()), method == "close"
        case {"kind": "push" | "passed" | "replay" | "ended" | "source" | "feed" | "archive", "to": str(name)} | {
            "kind": "advance",
            "stream": str(name),
        }:
            return ("input", name.lower()), False
        case {"kind": "rules", "table": str(table), "name": name}:
            return ("rules", (name or table).lower()), False
        case {"kind": "rules ended", "name": str(name)}:
            return ("rules", name.lower()), True
        case {"kind": "statement", "cql": str(text)}:
            match parse(text):
                case [syntax.CreateQuery(name=name)] | [syntax.AlterQuery(name=name)]:
                    return ("query", name.lower()), False
                case [
                    syntax.CreateStream(name=name)
                    | syntax.CreateRelation(name=name)
                    | syntax.AlterStream(name=name)
                    | syntax.AddColumn(name=name)
                ]:
                    return ("input", name.lower()), False
                case [syntax.CreateView(name=name)]:
                    return ("view", name.lower()), False
                case [syntax.Drop(kind=kind, name=name)]:
                    return ("input" if kind in ("stream", "relation") else kind, name.lower()), True
    return None, False


def setting_of(fields: Fields) -> tuple[str, str] | None:
    """(query, name) of the setting that an entry changes, "" for the connection's; None of any other entry."""
    match fields:
        case {"kind": "setting", "name": str(name)}:
            return "", name.lower()
        case {"kind": "call", "query": str(query), "method": "set", "arguments": [str(name), _]}:
            return query.lower(), name.lower()
        case {"kind": "statement", "cql": str(text)}:
            match parse(text):
                case [syntax.SetSetting(name=name)]:
                    return "", name.lower()
                case [syntax.AlterQuery(name=query, action="set", setting=str(name))]:
                    return query.lower(), name.lower()
    return None
