"""Scripts of the original STREAM prototype: what is declared, where it comes from, what is asked, where it goes.

    table  : register stream S (A integer, B float, C byte, D char(4));
    source : data/S.dat
    vquery : select A from S [Rows 5];
    vtable : register relation V (A integer);
    query  : Istream(select * from V);
    dest   : out/q1.log

Invariant: entries come in the script's order; a `source` belongs to the `table` directly before it, a `dest` to the
`query`, a `vtable` to the `vquery`. Errors show the place in the script.  docs/semantics "Statements".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from minidsms.cql import syntax
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse_region

_HEADER = re.compile(r"^[ \t]*(table|source|query|dest|vquery|vtable)[ \t]*:", re.MULTILINE | re.IGNORECASE)
_BLANK_OR_COMMENT = re.compile(r"(?:\s+|(?:#|--)[^\n]*)*")


@dataclass(frozen=True)
class ScriptEntry:
    """A table, query or view of a script.

    statement: CreateStream or CreateRelation of a table; QueryStatement of a query; CreateView of a `vquery` with its
        `vtable`, which gives the view's name, column names and types.
    path: the table's source or the query's destination, as written; None where the script names none.
    kind: what the `vtable` declares a view to be, 'stream' or 'relation'; for a table what it is; for a query ''.
    """

    statement: syntax.CreateStream | syntax.CreateRelation | syntax.QueryStatement | syntax.CreateView
    path: str | None = None
    kind: str = ""


@dataclass(frozen=True)
class _Part:
    """One `word : body` of the script. header: the span of the word and its colon; start, end: that of the body."""

    word: str
    header: syntax.Span
    start: int
    end: int


def is_stream_script(text: str) -> bool:
    """Whether a text is a STREAM script rather than CQL: its first line that says anything begins with `table :` or so.

    >>> is_stream_script("# two tables\\ntable : register stream S (A integer);"), is_stream_script("SELECT a FROM S")
    (True, False)
    """
    return _HEADER.match(text, _line_start(text, _skip_blank(text, 0))) is not None


def parse_script(text: str) -> list[ScriptEntry]:
    """The entries of a script; raises CqlError where it is none."""
    parts = _parts(text)
    entries: list[ScriptEntry] = []
    i = 0
    while i < len(parts):
        part = parts[i]
        following = parts[i + 1] if i + 1 < len(parts) else None
        if part.word == "table":
            path = _path(text, following) if following is not None and following.word == "source" else None
            entries.append(_table(text, part, path))
            i += 1 if path is None else 2
        elif part.word == "query":
            path = _path(text, following) if following is not None and following.word == "dest" else None
            entries.append(ScriptEntry(_query(text, part), path))
            i += 1 if path is None else 2
        elif part.word == "vquery":
            if following is None or following.word != "vtable":
                hint = "for example: vtable : register stream V (A integer);"
                raise CqlError("a vquery needs its vtable directly behind it", text, part.header, hint=hint)
            entries.append(_view(text, part, following))
            i += 2
        else:
            owner = {"source": "table", "dest": "query", "vtable": "vquery"}[part.word]
            raise CqlError(f"{part.word} stands directly behind its {owner}", text, part.header)
    return entries


def _skip_blank(text: str, start: int) -> int:
    match = _BLANK_OR_COMMENT.match(text, start)
    return start if match is None else match.end()


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _parts(text: str) -> list[_Part]:
    headers = list(_HEADER.finditer(text))
    first = headers[0].start() if headers else len(text)
    begin = _skip_blank(text, 0)
    if begin < first:
        end = text.find("\n", begin)
        raise CqlError(
            "a line of a STREAM script begins with table, source, query, dest, vquery or vtable and a colon",
            text,
            (begin, end if end >= 0 else len(text)),
        )
    if not headers:
        return []
    ends = [*(h.start() for h in headers[1:]), len(text)]
    return [_Part(h[1].lower(), (h.start(1), h.end()), h.end(), end) for h, end in zip(headers, ends, strict=True)]


def _path(text: str, part: _Part) -> str:
    """The rest of the line; only comments may follow on further lines."""
    newline = text.find("\n", part.start, part.end)
    line_end = part.end if newline < 0 else newline
    path = text[part.start : line_end].strip().removesuffix(";").rstrip()
    if path[:1] in ("'", '"') and len(path) > 1 and path.endswith(path[0]):
        path = path[1:-1]
    if not path:
        raise CqlError(f"{part.word} names no file", text, part.header)
    rest = _skip_blank(text, line_end)
    if rest < part.end:
        raise CqlError(f"only the next entry may follow a {part.word}", text, (rest, rest + 1))
    return path


def _statement(text: str, part: _Part) -> syntax.Statement:
    """The one statement of a part's body, which a semicolon ends."""
    found = list(parse_region(text, part.start, part.end, quotes_texts=True))
    if not found:
        raise CqlError(f"nothing stands behind {part.word}", text, part.header)
    if len(found) > 1:
        raise CqlError(f"{part.word} takes one statement", text, found[1].span)
    end = found[0].span[1]
    if not text[_skip_blank(text, end) : part.end].startswith(";"):
        raise CqlError(f"the {part.word} does not end", text, (end, end + 1), hint='a ";" ends it')
    return found[0]


def _table(text: str, part: _Part, path: str | None) -> ScriptEntry:
    statement = _statement(text, part)
    if isinstance(statement, syntax.CreateStream):
        return ScriptEntry(statement, path, "stream")
    if isinstance(statement, syntax.CreateRelation):
        return ScriptEntry(statement, path, "relation")
    hint = "for example: table : register stream S (A integer);"
    raise CqlError(f"{part.word} declares a stream or a relation", text, statement.span, hint=hint)


def _query(text: str, part: _Part) -> syntax.QueryStatement:
    statement = _statement(text, part)
    if isinstance(statement, syntax.QueryStatement):
        return statement
    raise CqlError(f"{part.word} takes a query", text, statement.span)


def _view(text: str, query: _Part, table: _Part) -> ScriptEntry:
    statement = _query(text, query)
    declared = _table(text, table, None)
    declaration = declared.statement
    assert isinstance(declaration, syntax.CreateStream | syntax.CreateRelation)
    view = syntax.CreateView(
        declaration.name,
        statement.query,
        tuple(column.name for column in declaration.columns),
        tuple(column.type for column in declaration.columns),
        span=(query.header[0], declaration.span[1]),
        name_span=declaration.name_span,
    )
    return ScriptEntry(view, None, declared.kind)
