"""Completion of CQL: what the grammar lets follow the tokens before the cursor, names by the clause they stand in.

Invariant: a keyword is offered only where a statement that continues with it can be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lark import Token

from minidsms.cql import lexer
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import following
from minidsms.cql.words import SHOWN, STATEMENT_WORDS, STREAM_OPERATORS, UNITS
from minidsms.shell.candidates import Candidate, files, matching, words
from minidsms.shell.clauses import begun_quote, clause_at, declared_columns, tables_in
from minidsms.shell.names import Names
from minidsms.values.types import Type

_PREFIX = re.compile(r"[^\W\d]\w*$")
_WINDOWS = (
    ("RANGE 30 SECONDS]", "the last 30 seconds"),
    ("RANGE 1 MINUTE SLIDE 10 SECONDS]", "looked at every 10 s"),
    ("TUMBLE 1 MINUTE]", "each minute"),
    ("HOP 5 MINUTES EVERY 1 MINUTE]", "five minutes, each minute"),
    ("ROWS 100]", "the last 100 rows"),
    ("PARTITION BY ", "the last rows of each key"),
    ("SESSION 30 MINUTES PARTITION BY ", "without such a pause"),
    ("NOW]", "the present instant"),
    ("RANGE UNBOUNDED]", "all rows so far"),
)
_WORDS = {
    "GROUP": "GROUP BY",
    "LATE": "LATE DROP",
    "PARTITION": "PARTITION BY",
    "INNER": "INNER JOIN",
    "LEFT": "LEFT JOIN",
    "RIGHT": "RIGHT JOIN",
    "FULL": "FULL JOIN",
    "CROSS": "CROSS JOIN",
    "BACKFILL": "BACKFILL FROM",
    "WITH": "WITH HISTORY",
}
_TYPES = tuple((str(t), "type") for t in Type.SCALARS) + tuple((t, "type") for t in ("DECIMAL(", "STRUCT(", "MAP("))
_SHOWN = tuple((what.upper(), "SHOW") for what in SHOWN)
_FORMATS = tuple((f, "format") for f in ("csv", "json", "parquet", "arrow", "stream"))
_UNITS = tuple((f"{unit.upper()}S", "unit") for unit in reversed(UNITS))
_OFFERED_AT_ONCE = frozenset(
    {"FROM", "JOIN", "BY", "SHOW", "DESCRIBE", "DROP", "SELECT", "LSQB", "DOT", "SET", "WHERE", "ON", "HAVING"}
    | {"EXPLAIN", "ALTER", "CREATE", "QUERY", "STREAM", "RELATION", "VIEW", "FORMAT"}
    | {"UPDATE", "INTO"}
)
"""Behind these something is offered though nothing has been typed yet."""


def complete(
    before: str, after: str, names: Names, allows: Callable[[str], bool], is_asked: bool = False
) -> list[Candidate]:
    """What may stand at the cursor of a statement.

    before: the statement up to the cursor.  after: the rest of it.  is_asked: the user wants to know, though he has
    typed nothing yet.  allows: whether a path may be looked at.
    """
    quote = begun_quote(before)
    if quote is not None:
        return _in_quotes(before, quote, allows)
    match = _PREFIX.search(before)
    prefix = match.group() if match else ""
    try:
        found = list(lexer.statements(before[: len(before) - len(prefix)]))
    except CqlError:
        return []
    tokens = found[-1].tokens if found else []
    if not prefix and not is_asked and not _is_offered_at_once(tokens):
        return []
    allowed = following(tokens)
    # A word where the cursor stands: what follows a dot would be taken for a name.
    whole = f"{before}{'' if prefix else '_'} {after}"
    offered = _names(tokens, allowed, prefix, whole, names)
    if tokens and tokens[-1].type == "LSQB":
        return matching(prefix, _small(_WINDOWS, prefix))
    if "UNIT" in allowed:
        offered += words(prefix, _UNITS)
    return offered + _keywords(tokens, allowed, prefix)


def _is_offered_at_once(tokens: list[Token]) -> bool:
    if not tokens:
        return False
    return tokens[-1].type in _OFFERED_AT_ONCE or (tokens[-1].type == "EQUAL" and tokens[0].type == "SET")


def _small(offered: tuple[tuple[str, str], ...], prefix: str) -> list[tuple[str, str]]:
    return [(text.lower() if prefix.islower() else text, meta) for text, meta in offered]


def _keywords(tokens: list[Token], allowed: frozenset[str], prefix: str) -> list[Candidate]:
    offered = []
    for terminal in sorted(allowed):
        if terminal == "STREAM_OPERATOR":
            offered += [(f"{word}(", "to a stream") for word in sorted(STREAM_OPERATORS)]
        elif terminal.isalpha() and terminal not in _NO_WORDS:
            word = _WORDS.get(terminal, terminal)
            if terminal == "TIMESTAMP" and clause_at(tokens) == "DECLARATION":
                word = "TIMESTAMP BY"
            offered.append((word, "statement" if not tokens and terminal in STATEMENT_WORDS else ""))
    return words(prefix, offered)


_NO_WORDS = frozenset({"IDENT", "NUMBER", "TEXT", "UNIT", "LPAR", "RPAR", "LSQB", "RSQB", "COMMA", "DOT", "STAR"}) | {
    "PLUS",
    "MINUS",
    "SLASH",
    "PERCENT",
    "CONCAT",
    "EQUAL",
    "COMPARISON",
}


def _in_quotes(before: str, start: int, allows: Callable[[str], bool]) -> list[Candidate]:
    """A file's name, where the text in quotes is one."""
    try:
        found = list(lexer.statements(before[:start]))
    except CqlError:
        return []
    tokens = found[-1].tokens if found else []
    is_path = bool(tokens) and tokens[-1].type in ("FROM", "INTO", "ARCHIVE") and "TEXT" in following(tokens)
    return files(before[start + 1 :], before[start], allows) if is_path else []


def _names(tokens: list[Token], allowed: frozenset[str], prefix: str, whole: str, names: Names) -> list[Candidate]:
    """Names that may stand here, by the clause."""
    if "IDENT" not in allowed or not tokens:
        return []
    last = tokens[-1].type
    first = tokens[0].type
    second = tokens[1].type if len(tokens) > 1 else ""
    match first:
        case "SHOW":
            return words(prefix, _SHOWN)
        case "DESCRIBE":
            return matching(prefix, [*names.tables(), *names.queries()], quotes=True)
        case "SET":
            if last == "EQUAL":
                return matching(prefix, [(word, "value") for word in names.values_of(str(tokens[1]))])
            return matching(prefix, names.settings())
        case "DROP" | "ALTER":
            if second == "QUERY" and len(tokens) == 2:
                return matching(prefix, names.queries(), quotes=True)
            if len(tokens) == 2:
                return matching(prefix, [n for n in names.tables() if n[1].upper() == second], quotes=True)
            if last == "SET":
                return matching(prefix, names.settings())
            return []
    if len(tokens) == 1 + (first == "DELETE") and first in ("UPDATE", "DELETE"):
        return matching(prefix, names.relations(), quotes=True)
    if first == "INSERT" and last == "INTO":
        return matching(prefix, names.inputs(), quotes=True)
    if first == "EXPLAIN" and last in ("EXPLAIN", "ANALYZE"):
        return matching(prefix, names.queries(), quotes=True)
    return _in_clause(tokens, allowed, prefix, whole, names)


def _in_clause(tokens: list[Token], allowed: frozenset[str], prefix: str, whole: str, names: Names) -> list[Candidate]:
    last = tokens[-1].type
    clause = clause_at(tokens)
    if last == "FORMAT":
        return matching(prefix, _FORMATS)
    if clause == "COLUMNS":
        return words(prefix, _TYPES) if last == "IDENT" else []
    if clause == "DECLARATION":
        return matching(prefix, declared_columns(tokens), quotes=True) if last in ("BY", "LPAR", "COMMA") else []
    if clause == "TABLES":
        expected = last in ("FROM", "JOIN", "COMMA", "LPAR", "UNION", "EXCEPT", "INTERSECT", "ALL")
        return matching(prefix, names.tables(), quotes=True) if expected else []
    if clause != "EXPRESSION" or not ("NUMBER" in allowed or last in ("DOT", "BY", "COMMA", "LPAR", "SET")):
        return []
    tables = tables_in(whole)
    if last == "DOT":
        return matching(prefix, _columns_of(str(tokens[-2]), tables, names), quotes=True)
    offered = matching(prefix, _columns(tables, names), quotes=True)
    if "NUMBER" in allowed:
        offered += matching(prefix, [(alias, "table") for alias, _ in tables], quotes=True) if prefix else []
        offered += words(prefix, [(f"{name}(", meta) for name, meta in names.functions()]) if prefix else []
    return offered


def _columns_of(alias: str, tables: list[tuple[str, str]], names: Names) -> list[tuple[str, str]]:
    for known, table in tables:
        if known.lower() == alias.lower():
            schema = names.columns(table)
            return [] if schema is None else [(f.name, f"{table} {f.type}") for f in schema]
    return []


def _columns(tables: list[tuple[str, str]], names: Names) -> list[tuple[str, str]]:
    """The columns in scope, those of several tables with the table's name; of everything where no table is named."""
    scope = [(alias, table, names.columns(table)) for alias, table in tables]
    if not any(schema is not None for _, _, schema in scope):
        scope = [(name, name, names.columns(name)) for name, _ in names.tables()]
        tables = []
    counts: dict[str, int] = {}
    for _, _, schema in scope:
        for name in () if schema is None else {n.lower() for n in schema.names}:
            counts[name] = counts.get(name, 0) + 1
    offered = []
    for alias, table, schema in scope:
        for f in schema or ():
            if counts[f.name.lower()] == 1 or not tables:
                offered.append((f.name, f"{table} {f.type}"))
            else:
                offered.append((f.name, f"{f.type}, ambiguous: {alias}.{f.name}"))
    return offered
