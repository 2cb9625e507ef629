"""From a CQL text to its syntax tree.

`grammar.lark` says what CQL looks like; `tables` keeps the parser that follows from it.

Invariant: whatever the text, the outcome is a tree or a CqlError that shows the place.  docs/semantics "Statements".
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lark import Lark, Token, UnexpectedToken

from minidsms.cql import lexer, syntax, tables
from minidsms.cql.errors import CqlError
from minidsms.cql.tree_builder import TreeBuilder, check_tree
from minidsms.cql.words import STATEMENT_WORDS
from minidsms.elements import Type
from minidsms.process.forking import keep_whole


class _Grammar:
    """The parser and the builder its callbacks belong to; loaded on first use, one parse at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        keep_whole(self.lock)
        self.builder = TreeBuilder()
        self.lark: Lark | None = None

    def loaded(self) -> Lark:
        """The tables; call it under the lock."""
        if self.lark is None:
            self.lark = tables.load(self.builder)
        return self.lark

    def parse(self, statement: lexer.Statement, text: str, start: str) -> Any:
        with self.lock:
            lark = self.loaded()
            self.builder.text = text
            try:
                return lark.parse(statement.tokens, start)
            except UnexpectedToken as error:
                from minidsms.cql.syntax_errors import syntax_error

                raise syntax_error(lark, start, statement, text, error) from None
            finally:
                self.builder.text = ""

    def following(self, tokens: list[Token]) -> frozenset[str]:
        from minidsms.cql.syntax_errors import accepted

        with self.lock:
            return accepted(self.loaded(), "statement", tokens)


_GRAMMAR = _Grammar()
_MOST_REMEMBERED = 32
_LONGEST_REMEMBERED = 4096
"""Characters of a text whose tree is kept: it is frozen, and connections of one program often run the same texts."""
_STATEMENTS = "db.execute(cql) runs statements of all kinds"


def following(tokens: list[Token]) -> frozenset[str]:
    """The grammar's terminals that may follow the tokens a statement begins with; none where they are in no order.

    >>> sorted(following(next(lexer.statements("DROP")).tokens))
    ['QUERY', 'RELATION', 'STREAM', 'VIEW']
    """
    return _GRAMMAR.following(tokens)


def parse(text: str) -> list[syntax.Statement]:
    """The statements of a text, which stand apart by semicolons.

    Raises CqlError for anything else, at the first statement that is none.

    >>> [type(s).__name__ for s in parse("CREATE STREAM S (a INTEGER); SELECT a FROM S;")]
    ['CreateStream', 'QueryStatement']
    """
    return list(_parsed(text) if len(text) <= _LONGEST_REMEMBERED else parse_region(text, 0, len(text)))


@lru_cache(_MOST_REMEMBERED)
def _parsed(text: str) -> tuple[syntax.Statement, ...]:
    return tuple(parse_region(text, 0, len(text)))


def parse_region(text: str, start: int, end: int, quotes_texts: bool = False) -> Iterator[syntax.Statement]:
    """The statements of text[start:end]; spans and errors speak of the whole text.  quotes_texts: as in `lexer`."""
    for tokens in lexer.statements(text, start, end, quotes_texts):
        statement: syntax.Statement = _GRAMMAR.parse(tokens, text, "statement")
        check_tree(statement, text)
        yield statement


def parse_query(text: str) -> syntax.Query:
    """The one query of a text, with or without a semicolon at its end.

    >>> parse_query("SELECT a FROM S [ROWS 10]").sources[0].window
    RowsWindow(rows=10, slide=None)
    """
    return _query(text) if len(text) > _LONGEST_REMEMBERED else _parsed_query(text)


@lru_cache(_MOST_REMEMBERED)
def _parsed_query(text: str) -> syntax.Query:
    return _query(text)


def _query(text: str) -> syntax.Query:
    found = list(lexer.statements(text))
    if not found:
        raise CqlError("there is no query here", text, (0, len(text)))
    if len(found) > 1:
        first = found[1].tokens[0]
        raise CqlError(
            "one query was expected, here a second statement begins",
            text,
            (int(first.start_pos or 0), first.end_pos or 0),
            hint=_STATEMENTS,
        )
    first = found[0].tokens[0]
    if first.type in STATEMENT_WORDS - {"VALUES"}:
        place = (int(first.start_pos or 0), first.end_pos or 0)
        raise CqlError(f"a query was expected, not {first.upper()}", text, place, hint=_STATEMENTS)
    query: syntax.Query = _GRAMMAR.parse(found[0], text, "query")
    check_tree(query, text)
    return query


def parse_type(text: str) -> Type:
    """The type a text names, as in a declaration.

    >>> parse_type("varchar(20)")
    TEXT
    """
    found = list(lexer.statements(text))
    if len(found) != 1:
        raise CqlError("one type was expected", text, (0, len(text)))
    type_: Type = _GRAMMAR.parse(found[0], text, "type")
    return type_
