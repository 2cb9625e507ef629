"""What to say about a text that is no CQL: what stands there, what could, and the way out (`ways_out`).

The grammar knows terminals; people know words. This is where one becomes the other.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection

from lark import Lark, Token, UnexpectedToken

from minidsms.cql.errors import CqlError
from minidsms.cql.lexer import Statement
from minidsms.cql.ways_out import Place, way_out, way_out_by_grammar
from minidsms.cql.words import STATEMENT_WORDS, STREAM_OPERATORS

_SHOWN = {
    "LPAR": '"("',
    "RPAR": '")"',
    "LSQB": 'a window "[..]"',
    "RSQB": '"]"',
    "RBRACE": '"}"',
    "COLON": '":"',
    "COMMA": '","',
    "DOT": '"."',
    "STAR": '"*"',
    "EQUAL": '"="',
    "IDENT": "a name",
    "NUMBER": "a number",
    "TEXT": "a text in quotes",
    "UNIT": "a unit such as SECONDS",
    "STREAM_OPERATOR": "ISTREAM(..)",
    "$END": "the end",
}
_OPERATORS = frozenset(
    {"PLUS", "MINUS", "SLASH", "PERCENT", "CONCAT", "STAR", "EQUAL", "COMPARISON", "MATCH", "COLONS", "ARROW", "AT"}
)
_PREDICATES = frozenset({"IS", "IN", "LIKE", "ILIKE", "BETWEEN", "AND", "OR", "NOT", "SIMILAR"})
_BEGIN_EXPRESSION = frozenset(
    {"NUMBER", "TEXT", "CASE", "CAST", "EXISTS", "EXTRACT", "NULL", "IDENT", "LPAR", "INTERVAL"}
)
_ONLY_IN_EXPRESSIONS = _BEGIN_EXPRESSION | {
    "TRUE",
    "FALSE",
    "TIMESTAMP",
    "DATE",
    "TIME",
    "DECIMAL",
    "NOT",
    "MINUS",
    "PLUS",
}
_UNTOLD = frozenset(
    {"LLIST", "RLIST", "LINDEX", "RINDEX", "LBRACE", "LAMBDA_OF", "ARRAY", "LATERAL", "EXCLUDE", "REPLACE", "RENAME"}
    | {"WITH_ORDINALITY", "TYPE_NAME", "BRACKETS", "LANGLE", "RANGLE", "ASSIGN", "LAMBDA", "JSON_KIND"}
)
_JOINS = frozenset({"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "JOIN"})

_ORDER = (
    "WHERE",
    "GROUP",
    "HAVING",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "JOIN",
    "FROM",
    "AND",
    "OR",
    "IS",
    "IN",
    "LIKE",
    "ILIKE",
    "BETWEEN",
)
"""Words in the order a query has them; all others follow by the alphabet."""

_MAX_REPLAYED = 5000
"""Up to how many tokens are read again to learn what could have stood in a place; behind them the error says less."""


def syntax_error(lark: Lark, start: str, statement: Statement, text: str, error: UnexpectedToken) -> CqlError:
    """The error for the statement's first token that cannot stand where it does; '$END': the text stops too soon."""
    tokens, token = statement.tokens, error.token
    is_end = token.type == "$END"
    at = len(tokens) if is_end else next(i for i, t in enumerate(tokens) if t is token)
    expected = (
        frozenset(error.expected) - {"NUMBERS", "TEXTS"} if at > _MAX_REPLAYED else accepted(lark, start, tokens[:at])
    )
    words = describe(expected)
    if at == 1 and tokens[0].type == "IDENT" and tokens[0].upper() not in STREAM_OPERATORS:
        # A name alone might be one side of UNION; people who begin with another word mean a statement.
        span = (int(tokens[0].start_pos or 0), int(tokens[0].end_pos or 0))
        reason = f"no statement begins with {_quoted(text, tokens[0])}"
        words = describe(accepted(lark, start, []) - {"IDENT", "LPAR"})
    elif is_end:
        end = tokens[-1].end_pos or 0
        span = (end, end + 1)
        reason = f"the statement ends too early, after {_quoted(text, tokens[-1])}"
    else:
        span = (int(token.start_pos or 0), int(token.end_pos or 0))
        reason = f"unexpected {_quoted(text, token)}"
        if at > 0:
            reason += f" after {_quoted(text, tokens[at - 1])}"
    place = Place(tokens, at, expected)
    hint = way_out(place, text)
    if not hint:
        meant = _misspelt(lark, start, tokens, at, expected, text)
        hint = f"did you mean {meant}?" if meant else way_out_by_grammar(place, text)
    return CqlError(reason, text, span, f"expected {words}" if words else "", hint)


def accepted(lark: Lark, start: str, tokens: list[Token]) -> frozenset[str]:
    """The terminals that may follow these tokens, which are themselves in order."""
    parser = lark.parse_interactive(start=start)
    # Nothing is built here: without callbacks the parser only moves through its states.
    state = parser.parser_state
    state.parse_conf.callbacks = {}
    try:
        for token in tokens:
            state.feed_token(token)
    except UnexpectedToken:
        return frozenset()
    # A whole list is a token too, which to a person is a parenthesis.
    return frozenset(parser.accepts()) - {"NUMBERS", "TEXTS"}  # type: ignore[no-untyped-call]


def describe(expected: Collection[str]) -> str:
    """Terminals as a person would say them: kinds of things first, then words, at most eight."""
    left = set(expected)
    parts: list[str] = []
    if left >= _BEGIN_EXPRESSION:
        parts.append("an expression")
        left -= _ONLY_IN_EXPRESSIONS
        if "SELECT" in left:
            parts.append("a query")
            left -= {"SELECT", "STREAM_OPERATOR"}
    if len(left & _OPERATORS) > 4:
        parts.append("an operator")
        left -= _OPERATORS | _PREDICATES
    if "SELECT" in left and left & STATEMENT_WORDS:
        parts.append("a query (SELECT ..)")
        left -= {"SELECT", "STREAM_OPERATOR", "LPAR", "IDENT"}
    if "JOIN" in left:
        left -= _JOINS - {"JOIN"}
    if "AS" in left and "IDENT" in left:
        parts.append("an alias")
        left -= {"AS", "IDENT"}
    left -= _UNTOLD
    names = sorted(t for t in left if t in _SHOWN and t != "$END")
    words = [t for t in _ORDER if t in left] + sorted(t for t in left if t not in _SHOWN and t not in _ORDER)
    parts += [_SHOWN[t] for t in names] + words
    if "$END" in left:
        parts.append("the end")
    if len(parts) > 8:
        parts = [*parts[:8], ".."]
    return " or ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def _quoted(text: str, token: Token) -> str:
    """A token as it stands in the text, shortened."""
    source = text[token.start_pos : token.end_pos]
    if len(source) > 30:
        source = source[:27] + ".."
    return source if source[:1] in "'\"`" else f'"{source}"'


def _misspelt(lark: Lark, start: str, tokens: list[Token], at: int, expected: Collection[str], text: str) -> str:
    """The keyword that the unexpected word, or the name before it (`FROM S WHER a > 3`), was probably meant to be."""
    for i in (at, at - 1):
        if (
            not 0 <= i < min(len(tokens), _MAX_REPLAYED)
            or tokens[i].type not in ("IDENT", "UNIT")
            or text[tokens[i].start_pos or 0] in '"`'
        ):
            continue
        possible = expected if i == at else accepted(lark, start, tokens[:i])
        words = [t for t in possible if t.isalpha() and t not in _SHOWN]
        near = difflib.get_close_matches(tokens[i].upper()[:40], words, 1, 0.7)
        if near and near[0] != tokens[i].upper():
            return f"{near[0]} BY" if near[0] in ("GROUP", "PARTITION") else near[0]
    return ""
