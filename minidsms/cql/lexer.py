"""From a CQL text to the tokens of its statements.

Few words are reserved. Most keywords are words like any other except where their neighbours make them one: a unit
follows a number, ROWS stands in a window's brackets, SLACK behind the columns of CREATE STREAM. The lexer decides that
by looking at the tokens around a word, so the grammar stays LALR and a column may be called day, rows or key.

Invariant: tokens carry their place in the whole text, whatever part of it is read; a statement is refused here, before
anything recurses over it, when it is too large or opens more than 200 parentheses. docs/semantics T1, "Statements".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lark import Token

from minidsms.cql.errors import CqlError
from minidsms.cql.foreign_windows import ESPER_VIEWS, esper_window

MAX_NESTING = 200
"""How deep parentheses, expressions and queries may nest."""
MAX_STATEMENT_CHARACTERS = 1_000_000
"""How long one statement may be."""
MAX_TOKENS = 100_000
"""How many tokens one statement may have; a list of literals behind IN is one token."""
_SHORT_LIST = 32
"""Lists of fewer literals are read as any other expressions."""

RESERVED = frozenset(
    {
        "SELECT",
        "DISTINCT",
        "FROM",
        "WHERE",
        "GROUP",
        "HAVING",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "ALL",
        "AND",
        "OR",
        "NOT",
    }
    | {
        "IN",
        "BETWEEN",
        "LIKE",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "AS",
        "ON",
        "JOIN",
    }
)
"""Words that are keywords everywhere; as a name they stand in backquotes."""

TAKE_A_LAMBDA = frozenset(
    f"{prefix}{word}" for prefix in ("", "LIST_", "ARRAY_") for word in ("TRANSFORM", "APPLY", "FILTER", "REDUCE")
)
"""The functions in whose arguments `x ->` begins a lambda; `x =>` does everywhere."""

STREAM_OPERATORS = frozenset({"ISTREAM", "DSTREAM", "RSTREAM"})

_BEFORE_PARENTHESIS = frozenset({"CAST", "TRY_CAST", "EXISTS", "USING"})
_BEFORE_TEXT = frozenset({"INTERVAL", "TIMESTAMP", "DATE", "TIME", "DECIMAL", "ESCAPE"})
_JOIN_WORDS = frozenset({"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER"})
_NATURAL_JOINS = _JOIN_WORDS - {"CROSS", "OUTER"} | {"JOIN"}

_ORDER_WORDS = frozenset(
    {"ORDER", "ASC", "DESC", "NULLS", "FIRST", "LAST", "WITHIN", "IGNORE", "RESPECT", "LIMIT", "OFFSET"}
    | {"FETCH", "NEXT", "ROW", "ROWS", "ONLY"}
)
_BEHIND_SORT_KEYS = frozenset(
    {"NULLS", "LIMIT", "ROWS", "RANGE", "FETCH", "OFFSET", "UNION", "EXCEPT", "INTERSECT"}
    | {"INTO", "WITH", "ARCHIVE", "BACKFILL"}
)
"""What may stand behind ASC and DESC."""
_JSON_KINDS = frozenset(("VALUE", "OBJECT", "ARRAY", "SCALAR"))
"""What `IS JSON` may ask for."""
_OVER_WORDS = frozenset({"OVER", "PARTITION", "ROWS", "RANGE", "UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "ROW"})
_BEGIN_CLAUSES = frozenset(
    {"ORDER", "QUALIFY", "WINDOW", "NATURAL", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "LIMIT"}
)
"""Words that are not reserved, and that an alias may stand before."""
_BEFORE_LISTS = frozenset({"LPAR", "COMMA", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "CONCAT", "EQUAL"}) | {
    *("COMPARISON", "LLIST", "LINDEX", "LBRACE", "COLON", "ASSIGN", "ARROW", "LAMBDA"),
}
_CLAUSES = frozenset({"SELECT", "FROM", "JOIN", "ON", "WHERE", "BY", "HAVING"})
_WORDS_BEFORE_LISTS = RESERVED - {"NULL", "TRUE", "FALSE", "END", "AS"} | {"ARRAY"}
_TIME_ZONE = ("AT", "TIME", "ZONE")
_ENDS_OF_VALUES = frozenset({"IDENT", "TEXT", "RPAR", "NOT", "END", "NULL", "RLIST", "RINDEX", "RBRACE"})
_ENDS_OF_FROM_ITEMS = (_ENDS_OF_VALUES - {"NOT"}) | {"RSQB", "NUMBER", "UNIT", "TRUE", "FALSE", "NUMBERS", "TEXTS"}
_BEFORE_A_QUERY = frozenset(
    {"LPAR", "RPAR", "AS", "UNION", "EXCEPT", "INTERSECT", "ALL", "DISTINCT", "EXPLAIN", "ANALYZE"}
)
_BEGINNINGS_OF_VALUES = frozenset({"CASE", "NULL", "NOT", "TRUE", "FALSE"})

QUOTED_WORDS = (
    RESERVED | STREAM_OPERATORS | _BEFORE_PARENTHESIS | _JOIN_WORDS | _BEGIN_CLAUSES | {"ANY", "SOME", "INTO", "WITH"}
)
"""Words the printer puts in backquotes wherever they are names."""

UNITS = ("nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week")
"""The units of time, smallest first."""
_UNIT_WORDS = frozenset(u.upper() for u in UNITS) | frozenset(u.upper() + "S" for u in UNITS)
MONTHS = {"month": 1, "quarter": 3, "year": 12}
"""How many months the units behind INTERVAL have whose length is the calendar's."""
_MONTH_WORDS = frozenset(u.upper() for u in MONTHS) | frozenset(u.upper() + "S" for u in MONTHS)
_PLAIN_NUMBER = re.compile(r"\s*[+-]?\s*[0-9.]+\s*")

STATEMENT_WORDS = frozenset(
    {"CREATE", "REGISTER", "DROP", "ALTER", "SHOW", "DESCRIBE", "EXPLAIN", "SET", "INSERT", "VALUES", "CHECKPOINT"}
)
"""Words that are keywords where a statement begins."""
KINDS = frozenset({"STREAM", "RELATION", "VIEW", "QUERY"})
_CONDITIONS = {"CREATE": ("IF", "NOT", "EXISTS"), "REGISTER": ("IF", "NOT", "EXISTS"), "DROP": ("IF", "EXISTS")}
"""What may stand between the kind and the name."""
_DECLARATION_WORDS = frozenset({"TIMESTAMP", "SLACK", "LATE", "DROP", "KEY", "GENERATOR", "FORMAT", "ARCHIVE", "WITH"})
_QUERY_WORDS = frozenset({"INTO", "WITH", "HISTORY", "ARCHIVE", "BACKFILL", "FORMAT"})

_EXPLAIN_WORDS = frozenset({"ANALYZE", "FORMAT", "RULES"})

_WINDOW_WORDS = frozenset(
    {"RANGE", "ROWS", "NOW", "UNBOUNDED", "SLIDE", "PARTITION", "BY", "TUMBLE", "HOP", "EVERY", "SESSION"}
)
"""Words that are keywords inside brackets."""

_SYMBOLS = {
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    "{": "LBRACE",
    "}": "RBRACE",
    ",": "COMMA",
    ".": "DOT",
    ";": "SEMICOLON",
    "*": "STAR",
    "+": "PLUS",
    "-": "MINUS",
    "/": "SLASH",
    "%": "PERCENT",
    "||": "CONCAT",
    "::": "COLONS",
    ":": "COLON",
    ":=": "ASSIGN",
    "=>": "LAMBDA",
    "->": "ARROW",
    "->>": "ARROW",
    "=": "EQUAL",
    "<>": "COMPARISON",
    "<": "COMPARISON",
    "<=": "COMPARISON",
    ">": "COMPARISON",
    ">=": "COMPARISON",
    "~": "MATCH",
    "~*": "MATCH",
    "!~": "MATCH",
    "!~*": "MATCH",
}

_LEXEME = re.compile(
    rf"""(?P<space>(?:\s+|--[^\n]*|\#(?!>>?[ ]?'\{{|(?<=\w\#)(?i:{ESPER_VIEWS})\b)[^\n]*
    |/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)+)
    |(?P<word>[^\W\d]\w*)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<text>'[^']*(?:''[^']*)*')
    |(?P<name>"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`)
    |(?P<symbol>\|\||::|:=|=>|->>?|<>|!=|!?~\*?|<=|>=|[-()\[\]{{}},.;:*+/%=<>])
    """,
    re.VERBOSE,
)
_LITERALS = re.compile(
    r"""\s*+\(\s*+(?:
    (?P<numbers>-?+[0-9]{1,18}+(?:\.[0-9]{1,18}+)?+(?:\s*+,\s*+-?+[0-9]{1,18}+(?:\.[0-9]{1,18}+)?+)*+)
    |(?P<texts>'[^']*+(?:''[^']*+)*+'(?:\s*+,\s*+'[^']*+(?:''[^']*+)*+')*+)
    )\s*+\)""",
    re.VERBOSE,
)
"""A whole list of literals in parentheses, of one kind. Possessive throughout: it is matched once, or not at all."""
_WINDOW = re.compile(r"\s*(?i:NOW\s*\]|(?:RANGE|ROWS|TUMBLE|SESSION|HOP|PARTITION)\s+(?:[\w.]|\$))")
"""What a window begins with."""
_EMPTY = re.compile(r"\s*\]")
"""The rest of the brackets behind the type of a list's elements."""
_SEPARATED_NUMBER = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,.])")
_JSON_PATH = re.compile(r"([^\W\d]\w*):((?!\s)[^\W\d][\w.:]*)")
"""`payload:user.name`, as Snowflake has it."""
_WORD_CHARACTERS = re.compile(r"\w+")


@dataclass
class Statement:
    """The tokens of one statement, without the semicolon, and the place where it ends."""

    tokens: list[Token] = field(default_factory=list)
    end: int = 0


def statements(text: str, start: int = 0, end: int | None = None, quotes_texts: bool = False) -> Iterator[Statement]:
    """The statements of text[start:end] that are not empty. quotes_texts: what stands in double quotes is a text.

    Raises CqlError for a character that begins no token, a text that does not end, a statement too large or too deep.
    """
    stop = len(text) if end is None else end
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CqlError("half a character of UTF-16 is no text", text, (error.start, error.start + 1)) from None
    while start < stop:
        statement, start = _read_statement(text, start, stop, '"' if quotes_texts else "")
        if statement.tokens:
            _find_keywords(statement.tokens)
            yield statement


def _read_statement(text: str, start: int, stop: int, text_quotes: str) -> tuple[Statement, int]:
    """The lexemes up to the next semicolon, words not yet told apart, and the place behind it.

    text_quotes: what encloses texts beside single quotes.
    """
    tokens: list[Token] = []
    clauses = _Clauses(tokens)
    in_window = False
    brackets: list[str] = []
    first = start
    while start < stop:
        match = _LEXEME.match(text, start, stop)
        if match is None:
            raise _unreadable(text, start, stop)
        kind, lexeme, end = str(match.lastgroup), match.group(), match.end()
        if kind == "name" and lexeme[0] in text_quotes:
            kind = "text"
        if kind == "space":
            first = end if not tokens else first
            start = end
            continue
        if end - first > MAX_STATEMENT_CHARACTERS:
            raise _too_long(text, first)
        if lexeme == ";":
            return Statement(tokens, start), end
        if kind == "number":
            if in_window or (tokens and tokens[-1].type == "WORD" and tokens[-1].upper() == "SLACK"):
                separated = _SEPARATED_NUMBER.match(text, start, stop)
                if separated is not None:
                    lexeme, end = separated.group().replace(",", ""), separated.end()
            _refuse_glued_word(text, start, end, stop)
        elif kind == "symbol":
            is_inside = bool(brackets) and brackets[-1] in ("index", "struct")
            if lexeme == ":" and not is_inside and not _ends_parameters(tokens):
                raise _unreadable(text, start, stop)
            if lexeme == "{":
                brackets.append("struct")
            elif lexeme == "}" and brackets and brackets[-1] == "struct":
                brackets.pop()
            if lexeme == "[":
                brackets.append(_bracket(text, end, stop, clauses))
                empty = _EMPTY.match(text, end, stop) if brackets[-1] != "list" else None
                if empty is not None:
                    brackets.pop()
                    kind, lexeme, end = "brackets", "[]", empty.end()
            if kind != "brackets" and lexeme in "[]" and brackets and brackets[-1] != "struct":
                kind = brackets[-1] if lexeme == "[" else brackets.pop()
            in_window = bool(brackets) and brackets[-1] == "symbol"
            clauses.read_parenthesis(lexeme)
            if len(clauses.outer) > MAX_NESTING:
                raise CqlError(
                    f"more than {MAX_NESTING} parentheses are open here",
                    text,
                    (start, end),
                    hint="give the inner queries names with CREATE VIEW",
                )
        if kind == "word" and lexeme.upper() in _CLAUSES:
            clauses.read_word(lexeme.upper())
        tokens.append(_token(text, kind, lexeme, start, end))
        start = end
        if kind == "word" and lexeme.upper() == "IN":
            listed = _literals(text, start, stop)
            if listed is not None:
                tokens.append(listed)
                start = int(listed.end_pos or 0)
                if start - first > MAX_STATEMENT_CHARACTERS:
                    raise _too_long(text, first)
        if len(tokens) > MAX_TOKENS:
            raise _too_many(text, tokens[-1])
    return Statement(tokens, stop), stop


@dataclass
class _Clauses:
    """In which clause a statement's tokens stand, read one by one.

    in_from: FROM or JOIN is the last clause that has begun in the innermost parentheses.  selects: SELECT stands in
    these.  outer: the same two of those around them, and the number of the token that opened them.  keys: the place
    behind the parentheses of the last DISTINCT ON.
    """

    tokens: list[Token]
    in_from: bool = False
    selects: bool = False
    outer: list[tuple[bool, bool, int]] = field(default_factory=list)
    keys: int = -1

    def read_parenthesis(self, lexeme: str) -> None:
        """Before it becomes a token."""
        before = self._word(1)
        if lexeme == "(":
            self.outer.append((self.in_from, self.selects, len(self.tokens)))
            # A function's arguments are no clause.
            self.in_from = self.in_from and before in ("", "FROM", "JOIN")
            self.selects = False
        elif lexeme == ")" and self.outer:
            self.in_from, self.selects, opened = self.outer.pop()
            if [token.upper() for token in self.tokens[max(0, opened - 2) : opened]] == ["DISTINCT", "ON"]:
                self.keys = len(self.tokens) + 1

    def read_word(self, word: str) -> None:
        """One of _CLAUSES, before it becomes a token. FROM is none in EXTRACT(.. FROM ..) and in IS DISTINCT FROM."""
        is_inside = word == "FROM" and bool(self.outer) and not self.selects
        if not is_inside and not (word == "FROM" and self._word(1) == "DISTINCT"):
            self.in_from = word in ("FROM", "JOIN")
        self.selects = self.selects or word == "SELECT"

    def begins_list(self) -> bool:
        """A bracket that comes next encloses a list, for no value stands before it."""
        if not self.tokens or self.tokens[-1].type in _BEFORE_LISTS or self.keys == len(self.tokens):
            return True
        word = self._word(1)
        return word in _WORDS_BEFORE_LISTS or (word == "BY" and self._word(2) in ("GROUP", "ORDER", "PARTITION"))

    def _word(self, back: int) -> str:
        """The token so many before, in upper case, if it is a word."""
        is_word = len(self.tokens) >= back and self.tokens[-back].type == "WORD"
        return self.tokens[-back].upper() if is_word else ""


def _bracket(text: str, start: int, stop: int, clauses: _Clauses) -> str:
    """What a bracket opens: "list" where no value stands before it, "index" behind one, else "symbol": a window."""
    if clauses.begins_list():
        return "list"
    return "symbol" if clauses.in_from or _WINDOW.match(text, start, stop) else "index"


def _ends_parameters(tokens: list[Token]) -> bool:
    """Whether the parameters of `lambda x, y: x + y` end here."""
    for i in range(len(tokens) - 1, -1, -2):
        if tokens[i].type not in ("WORD", "IDENT"):
            return False
        if i and tokens[i - 1].type == "WORD":
            return tokens[i - 1].upper() == "LAMBDA"
        if not i or tokens[i - 1].type != "COMMA":
            return False
    return False


def _literals(text: str, start: int, stop: int) -> Token | None:
    """A long list of literals in parentheses as one token, NUMBERS or TEXTS; None where no such list stands here."""
    match = _LITERALS.match(text, start, stop)
    if match is None or text.count(",", start, match.end()) < _SHORT_LIST - 1:
        return None
    kind = "NUMBERS" if match.group("numbers") is not None else "TEXTS"
    return Token(kind, match.group(match.lastgroup or 0), text.index("(", start), end_pos=match.end())


def _too_long(text: str, first: int) -> CqlError:
    return CqlError(f"a statement is longer than {MAX_STATEMENT_CHARACTERS:,} characters", text, (first, first + 1))


def _too_many(text: str, token: Token) -> CqlError:
    return CqlError(
        f"a statement has more than {MAX_TOKENS:,} words and symbols",
        text,
        (int(token.start_pos or 0), int(token.end_pos or 0)),
        hint="write many alternatives as x IN (1, 2, ..), or push them into a relation and join it",
    )


def _token(text: str, kind: str, lexeme: str, start: int, end: int) -> Token:
    if kind in ("list", "index"):
        side = "L" if lexeme == "[" else "R"
        return Token(f"{side}{kind.upper()}", lexeme, start, end_pos=end)
    if kind == "brackets":
        return Token("BRACKETS", lexeme, start, end_pos=end)
    if kind == "symbol":
        lexeme = "<>" if lexeme == "!=" else lexeme
        return Token(_SYMBOLS[lexeme], lexeme, start, end_pos=end)
    if kind == "text":
        quote = lexeme[0]
        return Token("TEXT", lexeme[1:-1].replace(quote + quote, quote), start, end_pos=end)
    if kind == "name":
        if len(lexeme) == 2:
            raise CqlError("a name in quotes is empty", text, (start, end))
        quote = lexeme[0]
        return Token("IDENT", lexeme[1:-1].replace(quote + quote, quote), start, end_pos=end)
    return Token("NUMBER" if kind == "number" else "WORD", lexeme, start, end_pos=end)


def _refuse_glued_word(text: str, start: int, end: int, stop: int) -> None:
    """`10s` is neither a number nor a name."""
    glued = _WORD_CHARACTERS.match(text, end, stop)
    if glued is not None:
        number, word = text[start:end], glued.group()
        raise CqlError(
            f'"{number}{word}" is neither a number nor a name',
            text,
            (start, glued.end()),
            hint=f'a number and its unit stand apart: "{number} SECONDS"; a name does not begin with a digit',
        )


def _unreadable(text: str, start: int, stop: int) -> CqlError:
    """Why no token begins here."""
    character = text[start]
    span = (start, start + 1)
    if character in "'\"`":
        what = "a text" if character == "'" else "a name in quotes"
        return CqlError(f"{what} is not closed", text, span, hint=f"it ends with {character}; inside it is doubled")
    hints = {
        "?": "give the values of parameters: db.query(cql, params=[..])",
        "#": "write j ->> '$.user.tags[0]'",
        "!": 'negation is NOT, inequality "<>" or "!="',
        "^": "powers are POWER(x, y)",
        "&": "a conjunction is written AND, that of bits BITAND(a, b)",
        "|": 'a disjunction is written OR, that of bits BITOR(a, b); "||" joins texts',
        "$": "the value of a parameter is ? or $name: db.query(cql, params=..); a name with $ stands in double quotes",
        "\\": "commands of the shell begin with a dot: .help",
        "@": "put a name with this character in double quotes",
        ":": "a parameter is written $name, a field STRUCT(a := 1), a lambda x -> x + 1; "
        "a STREAM script (`table :`, `query :`) runs with `minidsms run`",
    }
    hint = hints.get(character, "")
    if character in "#:" and (meant := esper_window(text, start)):
        return CqlError(f'unexpected character "{character}"', text, span, hint=f"write {meant}")
    path = _JSON_PATH.search(text, max(0, start - 100), start + 100) if character == ":" else None
    if path is not None and path.start(2) == start + 1:
        hint = f"write {path[1]} ->> '$.{path[2].replace(':', '.')}', a member of JSON as text"
    if text.startswith("@>", start):
        hint = "write LIST_HAS_ALL(list, [x, y])"
    if character in "\u2018\u2019\u201c\u201d\u00ab\u00bb\u00b4":
        hint = "texts stand in straight quotes"
    shown = f'"{character}"' if character.isprintable() else f"U+{ord(character):04X}"
    return CqlError(f"unexpected character {shown}", text, span, hint=hint)


# ------------------------------------------------------------------------------------------ which words are keywords


def _find_keywords(tokens: list[Token]) -> None:
    """Give every WORD its type: a keyword's own name, UNIT, or IDENT."""
    words = [str(t).upper() if t.type == "WORD" and t.isascii() else "" for t in tokens]
    context = _Context(tokens, words)
    for i, token in enumerate(tokens):
        if token.type == "WORD":
            token.type = context.classify(i)
        elif token.type == "COMPARISON" and token in ("<", ">"):
            context.find_angle(i)
        elif token.type == "ARROW" and context.begins_lambda(i):
            token.type = "LAMBDA"
        elif token.type == "LPAR":
            context.depth += 1
            context.opened.append(i)
            context.in_options = i > 0 and tokens[i - 1].type == "WITH"
            if i > 0 and (tokens[i - 1].type == "OVER" or context.defines_window(i)):
                context.frames.add(context.depth)
        elif token.type == "RPAR":
            context.begun = context.opened.pop() if context.opened else 0
            context.ordered.discard(context.depth)
            context.frames.discard(context.depth)
            context.depth -= 1
            context.in_options = False
        elif token.type == "LSQB":
            context.in_window = True
        elif token.type == "RSQB":
            context.in_window = False


class _Context:
    """Where in its statement a word stands. words: upper case, "" for what is no plain word."""

    def __init__(self, tokens: list[Token], words: list[str]) -> None:
        self.tokens = tokens
        self.words = words
        self.depth = 0
        self.in_window = False
        self.in_options = False
        self.ordered: set[int] = set()  # the depths of parentheses in which an ORDER BY has begun
        self.frames: set[int] = set()  # the depths of the parentheses behind OVER
        self.opened: list[int] = []  # the places of the parentheses that are open
        self.angles = 0  # how many `<` of types are open
        self.windows_at = -1  # in how many parentheses the last WINDOW stands
        self.begun = 0  # the place of the parenthesis that the last one closed
        self.kind_at = 3 if words[:3] == ["CREATE", "OR", "REPLACE"] else 1
        kind = self._word(self.kind_at)
        self.declares = words[0] in ("CREATE", "REGISTER") and kind in ("STREAM", "RELATION")
        self.adds = words[:2] == ["ALTER", "STREAM"] and self._word(3) == "ADD"
        self.creates_query = words[0] == "CREATE" and kind == "QUERY"
        condition = _CONDITIONS.get(words[0], ())
        is_conditional = tuple(words[self.kind_at + 1 : self.kind_at + 1 + len(condition)]) == condition
        self.name_at = self.kind_at + 1 + (len(condition) if is_conditional else 0)
        # `SET all = on`: nothing behind these words is a query, so nothing in it is reserved.
        self.is_plain = words[0] in ("SET", "SHOW", "DESCRIBE", "DROP", "ALTER") and self._type(1) == "WORD"

    def _type(self, i: int) -> str:
        return str(self.tokens[i].type) if 0 <= i < len(self.tokens) else ""

    def _word(self, i: int) -> str:
        return self.words[i] if 0 <= i < len(self.words) else ""

    def classify(self, i: int) -> str:
        word = self.words[i]
        if not word or self._type(i - 1) == "DOT":
            return "IDENT"
        if i == 0 and word in STATEMENT_WORDS:
            return word
        if self.is_plain:
            return self._in_plain_statement(i, word)
        if self.words[0] == "INSERT" and self.depth == 0:
            is_place = i < 4 and word in ("OR", "REPLACE", "INTO") and "INTO" not in self.words[1:i]
            return word if is_place or (word == "VALUES" and self._type(i + 1) == "LPAR") else "IDENT"
        if self.words[0] in ("CREATE", "REGISTER") and i < self.name_at and (i != self.kind_at or word in KINDS):
            return word
        if i == 1 and word == "ANALYZE" and self.words[0] == "EXPLAIN" and len(self.tokens) > 2:
            return word
        if word in _EXPLAIN_WORDS and self._is_explain_option(i):
            return word
        if self.in_window:
            return self._in_window(i, word)
        if self.in_options:
            return self._in_options(i, word)
        if self._is_unit(i, word):
            return "UNIT"
        if self.declares and self.depth == 0 and i > self.name_at and self._is_clause_of_declaration(i, word):
            return word
        if self.creates_query and self.depth == 0 and i > self.name_at and self._is_clause_of_query(i, word):
            return word
        return self._in_query(i, word)

    def find_angle(self, i: int) -> None:
        """`ARRAY<TEXT>`: a type's `<`, behind its name in a declaration or a CAST, and the `>` of one that is open."""
        token = self.tokens[i]
        if token == "<":
            is_type = self.angles > 0 or self.declares or self.adds or self._word(i - 2) == "AS"
            if is_type and self._word(i - 1) in ("ARRAY", "LIST", "STRUCT", "MAP"):
                token.type = "LANGLE"
                self.angles += 1
        elif self.angles:
            token.type = "RANGLE"
            self.angles -= 1

    def begins_lambda(self, i: int) -> bool:
        """Whether `->` at i follows the parameters of a lambda: behind a comma in the call of what takes one."""
        first = self.begun if self._type(i - 1) == "RPAR" else i - 1
        is_argument = self._type(first - 1) == "COMMA" and bool(self.opened)
        return is_argument and self.tokens[i] == "->" and self._word(self.opened[-1] - 1) in TAKE_A_LAMBDA

    def defines_window(self, i: int) -> bool:
        """Whether the parenthesis at i is that of `name AS (` behind WINDOW."""
        return self.depth - 1 == self.windows_at and self._type(i - 1) == "AS" and self._type(i - 2) == "IDENT"

    def _begins_value(self, i: int) -> bool:
        """Whether an expression may begin at i, and no clause does."""
        word = self._word(i)
        if not word:
            return self._type(i) in ("IDENT", "WORD", "NUMBER", "TEXT", "LPAR", "LLIST", "LBRACE", "MINUS")
        if self.creates_query and self._is_clause_of_query(i, word):
            return False
        return word in _BEGINNINGS_OF_VALUES or word not in RESERVED | _BEGIN_CLAUSES

    def _is_explain_option(self, i: int) -> bool:
        """In the parentheses behind EXPLAIN or EXPLAIN ANALYZE, where no query begins with such a word."""
        if self.words[0] != "EXPLAIN":
            return False
        start = 2 if self._type(1) == "ANALYZE" else 1
        inside = [self._type(k) for k in range(start, i)]
        if not inside or inside[0] != "LPAR" or inside[-1] not in ("LPAR", "COMMA") or "RPAR" in inside:
            return False
        # `(format UNION S)` is a query over a stream called format.
        return self._word(start + 2) not in ("UNION", "EXCEPT", "INTERSECT")

    def _begins_common_table(self, i: int) -> bool:
        """`WITH name AS (`, or where a query may begin `WITH name (columns)`."""
        if self._type(i + 1) not in ("WORD", "IDENT"):
            return False
        if self._word(i + 2) == "AS":
            return self._type(i + 3) == "LPAR"
        begins = self._type(i - 1) in ("", "LPAR", "RPAR", "AS", "EXPLAIN", "ANALYZE")
        return begins and (self._type(i + 2) == "LPAR" or self._word(i + 1) == "RECURSIVE")

    def _is_unit(self, i: int, word: str) -> bool:
        is_long = word in _MONTH_WORDS
        if word not in _UNIT_WORDS and not is_long:
            return False
        before, place = self._type(i - 1), self.begun - 1
        if before == "RPAR" and self._word(place) == "INTERVAL":
            self.tokens[place].type = "INTERVAL"
            return True
        if self._type(i - 2) == "INTERVAL":
            return before == "NUMBER" or bool(not is_long or _PLAIN_NUMBER.fullmatch(self.tokens[i - 1]))
        return before == "NUMBER" and not is_long

    def _in_window(self, i: int, word: str) -> str:
        """Inside brackets everything is a keyword but the keys of PARTITION BY."""
        before = self._type(i - 1)
        if before in ("BY", "COMMA"):
            return "IDENT"
        if word in _UNIT_WORDS and before == "NUMBER":
            return "UNIT"
        return word if word in _WINDOW_WORDS else "IDENT"

    def _in_options(self, i: int, word: str) -> str:
        """Inside WITH (..) a name may be any word."""
        before = self._type(i - 1)
        if word in _UNIT_WORDS and before == "NUMBER":
            return "UNIT"
        return word if before == "EQUAL" and word in ("TRUE", "FALSE") else "IDENT"

    def _in_plain_statement(self, i: int, word: str) -> str:
        first = self.words[0]
        if i == 1 and word in KINDS and first in ("DROP", "ALTER"):
            return word
        if first == "DROP" and 1 < i < self.name_at:
            return word
        if first == "ALTER" and i == 3 and word in ("SET", "PAUSE", "RESUME", "PIN", "UNPIN", "ADD"):
            return word
        if self.adds and i > 3 and self._is_before_new_column(i, word):
            return word
        if word == "PLAN" and self._type(i - 1) in ("PIN", "UNPIN"):
            return word
        if self._type(i - 1) == "EQUAL" and word in ("TRUE", "FALSE"):
            return word
        return "IDENT"

    def _is_before_new_column(self, i: int, word: str) -> bool:
        """COLUMN and IF NOT EXISTS, where a name and a type follow: a column may be called `column`."""
        begin = 5 if self._word(4) == "COLUMN" and self._type(6) else 4
        is_conditional = self.words[begin : begin + 3] == ["IF", "NOT", "EXISTS"]
        return i < begin or (is_conditional and i < begin + 3)

    def _is_clause_of_declaration(self, i: int, word: str) -> bool:
        before = self._type(i - 1)
        if word == "BY":
            return before == "TIMESTAMP"
        return word in _DECLARATION_WORDS and before not in ("BY", "FORMAT", "GENERATOR")

    def _is_clause_of_query(self, i: int, word: str) -> bool:
        """The clauses behind CREATE QUERY's query. INTO and WITH always are; the others need their sequel."""
        before, after = self._type(i - 1), self._type(i + 1)
        if word not in _QUERY_WORDS or before == "FORMAT":
            return False
        if word == "BACKFILL":
            return self._word(i + 1) == "FROM" and self._type(i + 2) == "TEXT"
        if word == "FORMAT":
            return before == "TEXT" and self._type(i - 2) == "INTO"
        if word == "HISTORY":
            return before == "WITH"
        return after == "TEXT" if word == "ARCHIVE" else True

    def _orders(self, i: int, word: str) -> bool:
        """Whether the word belongs to an ORDER BY, or to what stands behind an aggregate's parentheses."""
        before, after = self._type(i - 1), self._type(i + 1)
        match word:
            case "ORDER":
                if self._word(i + 1) != "BY":
                    return False
                self.ordered.add(self.depth)
                return True
            case "WITHIN":
                return before == "RPAR" and self._word(i + 1) == "GROUP" and self._type(i + 2) == "LPAR"
            case "IGNORE" | "RESPECT":
                return self._word(i + 1) == "NULLS" and (before == "RPAR" or self._type(i + 2) == "RPAR")
            case "FIRST" | "LAST":
                return before in ("NULLS", "FETCH")
            case "OFFSET":
                is_first = self._type(i - 2) == "LIMIT" or self._word(i + 3) == "FETCH" or self._word(i + 2) == "FETCH"
                return is_first and after == "NUMBER"
            case "FETCH":
                return self.depth in self.ordered and self._word(i + 1) in ("FIRST", "NEXT")
            case "NEXT":
                return before == "FETCH"
            case "ROW" | "ROWS":
                return before == "NUMBER" and self._type(i - 2) in ("FIRST", "NEXT", "OFFSET")
            case "ONLY":
                return before in ("ROW", "ROWS") and self._type(i - 3) in ("FIRST", "NEXT")
            case "NULLS" if before in ("IGNORE", "RESPECT"):
                return True
        if self.depth not in self.ordered or before in ("BY", "COMMA"):
            return False
        if word == "NULLS":
            return self._word(i + 1) in ("FIRST", "LAST")
        if word == "LIMIT":
            return True
        return after in ("COMMA", "RPAR", "") or self._word(i + 1) in _BEHIND_SORT_KEYS

    def _is_behind_call(self, i: int) -> bool:
        """Behind the parentheses of one, or what says there whether NULLs count."""
        before = self._type(i - 1)
        return before == "RPAR" or (before == "NULLS" and self._type(i - 2) in ("IGNORE", "RESPECT"))

    def _frames(self, i: int, word: str) -> bool:
        """Whether the word belongs to OVER: it, PARTITION BY, or what says of which rows an aggregate is."""
        before, after = self._type(i - 1), self._word(i + 1)
        match word:
            case "OVER":
                names = self._type(i + 1) == "WORD" and after not in RESERVED | _BEGIN_CLAUSES
                return self._is_behind_call(i) and (self._type(i + 1) in ("LPAR", "IDENT") or names)
            case "PARTITION":
                return before in ("LPAR", "IDENT") and after == "BY" and self.depth in self.frames
        if self.depth not in self.frames:
            return False
        match word:
            case "ROWS" | "RANGE":
                begins = before not in ("BY", "COMMA", "DOT") and before not in _BEFORE_LISTS - {"LPAR"}
                return begins and (
                    self._type(i + 1) == "NUMBER" or after in ("UNBOUNDED", "BETWEEN", "CURRENT", "INTERVAL")
                )
            case "UNBOUNDED":
                return after in ("PRECEDING", "FOLLOWING")
            case "PRECEDING" | "FOLLOWING":
                is_behind_text = before == "TEXT" and self._word(i - 2) == "INTERVAL"
                return is_behind_text or before in ("NUMBER", "UNBOUNDED", "UNIT")
            case "CURRENT":
                return after == "ROW"
        return word == "ROW" and before == "CURRENT"

    def _changes_star(self, i: int) -> bool:
        """Whether EXCLUDE or REPLACE at i stands behind the * of a select list."""
        end = i - 1
        if self._type(end) == "RPAR" and self._word(i) == "REPLACE" and self.begun > 0:
            end = self.begun - 2  # behind EXCLUDE (..)
        elif self._type(end - 1) == "EXCLUDE":
            end -= 2
        before = self._type(end - 1)
        is_first = before in ("SELECT", "DISTINCT", "ALL", "COMMA", "DOT", "LPAR")
        is_first |= before == "RPAR" and self._type(self.begun - 1) == "ON" and self._type(self.begun - 2) == "DISTINCT"
        is_change = self._type(i + 1) in ("LPAR", "WORD", "IDENT") and self._word(i + 1) not in RESERVED
        return self._type(end) == "STAR" and is_first and is_change

    def _in_query(self, i: int, word: str) -> str:
        before, after = self._type(i - 1), self._type(i + 1)
        if word in RESERVED or (word == "BY" and before in ("GROUP", "ORDER", "PARTITION")):
            return word
        if word in _OVER_WORDS and self._frames(i, word):
            return word
        if word == "JSON" and (before == "IS" or (before == "NOT" and self._type(i - 2) == "IS")):
            return word
        if word == "UNKNOWN" and (before == "IS" or (before == "NOT" and self._type(i - 2) == "IS")):
            return "NULL"
        if word == "PLACING" and self.depth and before in _ENDS_OF_VALUES and self._begins_value(i + 1):
            return word
        if word in _JSON_KINDS and before == "JSON":
            return "JSON_KIND"
        if word == "ARRAY":
            return word if after == "LLIST" else "IDENT"
        if word in ("EXCLUDE", "REPLACE"):
            return word if self._changes_star(i) else "IDENT"
        if word == "QUALIFY":
            ends = before in _ENDS_OF_FROM_ITEMS or (before == "ALL" and self._type(i - 2) == "BY")
            return word if ends and self._begins_value(i + 1) else "IDENT"
        if word == "WINDOW":
            is_clause = before in _ENDS_OF_FROM_ITEMS and self._word(i + 2) == "AS" and self._type(i + 3) == "LPAR"
            self.windows_at = self.depth if is_clause else self.windows_at
            return word if is_clause else "IDENT"
        if word == "LATERAL":
            return word if self._word(i + 1) == "UNNEST" else "IDENT"
        if word == "VALUES":
            return word if after == "LPAR" and before in _BEFORE_A_QUERY else "IDENT"
        if word in _ORDER_WORDS and self._orders(i, word):
            return word
        if word in STREAM_OPERATORS:
            return "STREAM_OPERATOR" if after == "LPAR" else "IDENT"
        if word in _BEFORE_PARENTHESIS:
            return word.removeprefix("TRY_") if after == "LPAR" else "IDENT"
        if word in _BEFORE_TEXT and not (word == "TIME" and self._word(i - 1) == "AT"):
            is_interval = word == "INTERVAL" and after == "NUMBER" and self._word(i + 2) in _UNIT_WORDS | _MONTH_WORDS
            return word if after == "TEXT" or is_interval else "IDENT"
        if word in ("ANY", "SOME"):
            return "ANY" if after == "LPAR" and before in ("EQUAL", "COMPARISON") else "IDENT"
        if word == "WITH":
            return word if self._begins_common_table(i) else "IDENT"
        if word == "NATURAL":
            is_join = before in _ENDS_OF_FROM_ITEMS and self._word(i + 1) in _NATURAL_JOINS
            return word if is_join else "IDENT"
        if word in _JOIN_WORDS:
            return word if self._word(i + 1) in ("JOIN", "OUTER") else "IDENT"
        if word == "FILTER":
            is_filter = self._is_behind_call(i) and after == "LPAR" and self._word(i + 2) == "WHERE"
            return word if is_filter else "IDENT"
        if word == "EXTRACT":
            return word if after == "LPAR" and self._word(i + 3) == "FROM" else "IDENT"
        if word == "FOR":
            return word if self.depth and before in _ENDS_OF_VALUES | {"NUMBER"} and after != "RPAR" else "IDENT"
        if word in ("ILIKE", "RLIKE", "REGEXP"):
            operand = i - 2 if before == "NOT" else i - 1
            begins = self._begins_value(i + 1) or (word == "ILIKE" and self._word(i + 1) in _BEGIN_CLAUSES)
            is_operator = self._type(operand) in _ENDS_OF_VALUES and begins
            return "IDENT" if not is_operator else word if word == "ILIKE" else "MATCH"
        if word == "LAMBDA":
            last = i + 1
            while self._type(last) in ("WORD", "IDENT") and self._type(last + 1) == "COMMA":
                last += 2
            is_parameter = self._type(last) in ("WORD", "IDENT")
            return "LAMBDA_OF" if is_parameter and self._type(last + 1) == "COLON" else "IDENT"
        if word == "SIMILAR":
            operand = i - 2 if before == "NOT" else i - 1
            return word if self._word(i + 1) == "TO" and self._type(operand) in _ENDS_OF_VALUES else "IDENT"
        if word == "TO":
            return word if before == "SIMILAR" else "IDENT"
        if word in _TIME_ZONE:
            place = i - _TIME_ZONE.index(word)
            follows = [self._word(place + k) for k in range(3)] == list(_TIME_ZONE) and self._type(place + 3) == "TEXT"
            return word if follows else "IDENT"
        return "IDENT"
