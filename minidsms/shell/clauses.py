"""Where in a statement the cursor stands, and which tables it names: from its tokens, as it is not finished yet."""

from __future__ import annotations

import re

from lark import Token

from minidsms.cql import lexer
from minidsms.cql.errors import CqlError

_QUOTED = re.compile(r"""--[^\n]*|\#[^\n]*|'[^']*'|"[^"]*"|`[^`]*`|(?P<begun>['"`])""")
_EXPRESSIONS = frozenset({"SELECT", "WHERE", "HAVING", "ON", "USING", "BY", "WHEN", "THEN", "ELSE", "CASE"})
_TABLES = frozenset({"FROM", "JOIN", "UNION", "EXCEPT", "INTERSECT"})


def begun_quote(text: str) -> int | None:
    """Where the quote begins that is not closed before the end, or None.

    >>> begun_quote("FROM 'a'"), begun_quote("FROM 'a")
    (None, 5)
    """
    for match in _QUOTED.finditer(text):
        if match["begun"] is not None:
            return match.start()
    return None


def clause_at(tokens: list[Token]) -> str:
    """What the end of the tokens is part of.

    COLUMNS (a declaration's), DECLARATION (its clauses), TABLES (where FROM's names stand), EXPRESSION, or "".
    """
    declares = len(tokens) > 1 and tokens[0].type in ("CREATE", "REGISTER") and tokens[1].type in ("STREAM", "RELATION")
    depth = 0
    for i in range(len(tokens) - 1, -1, -1):
        type_ = tokens[i].type
        if type_ == "RPAR" or type_ == "RSQB":
            depth += 1
        elif type_ == "LPAR" or type_ == "LSQB":
            depth -= 1
            if depth < 0:
                if declares:
                    return "DECLARATION" if i and tokens[i - 1].type == "KEY" else "COLUMNS"
                if type_ == "LSQB":
                    return "EXPRESSION"
                # Inside parentheses: what stands around them says what they are part of.
                depth = 0
        elif depth == 0 and not declares:
            if type_ in _EXPRESSIONS or (type_ == "SET" and tokens[0].type == "UPDATE"):
                return "EXPRESSION"
            if type_ in _TABLES:
                return "TABLES"
    return "DECLARATION" if declares else ""


def declared_columns(tokens: list[Token]) -> list[tuple[str, str]]:
    """(name, type) of the columns that a CREATE STREAM declares."""
    found = []
    for i, token in enumerate(tokens):
        if token.type == "RPAR":
            break
        if token.type == "IDENT" and i and tokens[i - 1].type in ("LPAR", "COMMA"):
            type_ = str(tokens[i + 1]) if i + 1 < len(tokens) else ""
            found.append((str(token), type_))
    return found


def tables_in(text: str) -> list[tuple[str, str]]:
    """(name in the query, table) of everything a text's FROM clauses and UPDATE name, each once, in order."""
    try:
        found = list(lexer.statements(text))
    except CqlError as error:
        # What stands before the place that cannot be read still counts.
        try:
            found = list(lexer.statements(text[: error.span[0]])) if error.span else []
        except CqlError:
            found = []
    tables: dict[str, tuple[str, str]] = {}
    for statement in found:
        tokens = statement.tokens
        for i, token in enumerate(tokens):
            if token.type == "IDENT" and i and _names_a_table(tokens, i):
                alias = _alias(tokens, i + 1) or str(token)
                tables.setdefault(alias.lower(), (alias, str(token)))
    return list(tables.values())


def _names_a_table(tokens: list[Token], i: int) -> bool:
    before = tokens[i - 1].type
    if before in ("FROM", "JOIN", "UPDATE"):
        return True
    return before in ("COMMA", "LPAR") and clause_at(tokens[:i]) == "TABLES"


def _alias(tokens: list[Token], i: int) -> str | None:
    """The alias behind a table, whose window begins at i."""

    def type_at(at: int) -> str:
        return str(tokens[at].type) if at < len(tokens) else ""

    if type_at(i) == "LSQB":
        while i < len(tokens) and tokens[i].type != "RSQB":
            i += 1
        i += 1
    if type_at(i) == "AS":
        i += 1
    return str(tokens[i]) if type_at(i) == "IDENT" else None
