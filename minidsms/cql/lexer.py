"""From a CQL text to the tokens of its statements; which words are keywords says `cql.keywords`.

Invariant: tokens carry their place in the whole text, whatever part of it is read; a statement is refused here, before
anything recurses over it, when it is too large or opens more than 200 parentheses. docs/semantics T1, "Statements".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lark import Token

from minidsms.cql.errors import CqlError
from minidsms.cql.foreign_windows import VIEW_OF_ESPER, esper_window
from minidsms.cql.keywords import find_keywords
from minidsms.cql.words import BEFORE_LISTS, RESERVED

MAX_NESTING = 200
"""How deep parentheses, expressions and queries may nest."""
MAX_STATEMENT_CHARACTERS = 1_000_000
"""How long one statement may be."""
MAX_TOKENS = 100_000
"""How many tokens one statement may have; a list of literals behind IN is one token."""
_SHORT_LIST = 32
"""Lists of fewer literals are read as any other expressions."""

_CLAUSES = frozenset({"SELECT", "FROM", "JOIN", "ON", "WHERE", "BY", "HAVING"})
_WORDS_BEFORE_LISTS = RESERVED - {"NULL", "TRUE", "FALSE", "END", "AS"} | {"ARRAY"}

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
    rf"""(?P<space>(?:\s+|--[^\n]*|\#(?!>>?[ ]?'\{{|(?<=[\w"`]\#){VIEW_OF_ESPER})[^\n]*
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
            find_keywords(statement.tokens)
            yield statement


def _read_statement(text: str, start: int, stop: int, text_quotes: str) -> tuple[Statement, int]:
    """The lexemes up to the next semicolon, words not yet told apart, and the place behind it.

    text_quotes: what encloses texts beside single quotes.
    """
    tokens: list[Token] = []
    clauses = _Clauses(tokens)
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
            if clauses.in_window or (tokens and tokens[-1].type == "WORD" and tokens[-1].upper() == "SLACK"):
                separated = _SEPARATED_NUMBER.match(text, start, stop)
                if separated is not None:
                    lexeme, end = separated.group().replace(",", ""), separated.end()
            _refuse_glued_word(text, start, end, stop)
        elif kind == "symbol":
            if lexeme == ":" and clauses.innermost not in ("index", "struct") and not _ends_parameters(tokens):
                raise _unreadable(text, start, stop)
            kind, lexeme, end = clauses.read_bracket(text, lexeme, end, stop)
            clauses.read_parenthesis(lexeme)
            if len(clauses.outer) > MAX_NESTING:
                raise _too_deep(text, (start, end))
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
            place = (int(tokens[-1].start_pos or 0), int(tokens[-1].end_pos or 0))
            hint = "write many alternatives as x IN (1, 2, ..), or push them into a relation and join it"
            raise CqlError(f"a statement has more than {MAX_TOKENS:,} words and symbols", text, place, hint=hint)
    return Statement(tokens, stop), stop


@dataclass
class _Clauses:
    """In which clause a statement's tokens stand, read one by one.

    in_from: FROM or JOIN is the last clause that has begun in the innermost parentheses.  selects: SELECT stands in
    these.  outer: the same two of those around them, and the number of the token that opened them.  keys: the place
    behind the parentheses of the last DISTINCT ON.  brackets: what those that are open enclose, "struct", or see
    `_bracket`.
    """

    tokens: list[Token]
    in_from: bool = False
    selects: bool = False
    outer: list[tuple[bool, bool, int]] = field(default_factory=list)
    keys: int = -1
    brackets: list[str] = field(default_factory=list)

    @property
    def innermost(self) -> str:
        """What the last bracket encloses that is open, or ""."""
        return self.brackets[-1] if self.brackets else ""

    @property
    def in_window(self) -> bool:
        """Between the brackets of a window."""
        return self.innermost == "symbol"

    def read_bracket(self, text: str, lexeme: str, end: int, stop: int) -> tuple[str, str, int]:
        """The kind, lexeme and end of a symbol, before it becomes a token."""
        if lexeme == "{":
            self.brackets.append("struct")
        elif lexeme == "}" and self.innermost == "struct":
            self.brackets.pop()
        elif lexeme == "[":
            opened = _bracket(text, end, stop, self)
            empty = _EMPTY.match(text, end, stop) if opened != "list" else None
            if empty is not None:
                return "brackets", "[]", empty.end()
            self.brackets.append(opened)
            return opened, lexeme, end
        elif lexeme == "]" and self.innermost not in ("", "struct"):
            return self.brackets.pop(), lexeme, end
        return "symbol", lexeme, end

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
        if not self.tokens or self.tokens[-1].type in BEFORE_LISTS or self.keys == len(self.tokens):
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


def _too_deep(text: str, place: tuple[int, int]) -> CqlError:
    hint = "give the inner queries names with CREATE VIEW"
    return CqlError(f"more than {MAX_NESTING} parentheses are open here", text, place, hint=hint)


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


_SIZES = frozenset({"b", "kb", "mb", "gb", "tb"})


def _refuse_glued_word(text: str, start: int, end: int, stop: int) -> None:
    """`10s` is neither a number nor a name."""
    glued = _WORD_CHARACTERS.match(text, end, stop)
    if glued is not None:
        number, word = text[start:end], glued.group()
        hint = f'a number and its unit stand apart: "{number} SECONDS"; a name does not begin with a digit'
        if number == "0" and word[0] in "xXbBoO":
            hint = "numbers are written in decimal"
        elif word.lower() in _SIZES:
            hint = f"a size is a text: '{number} {word.upper()}'"
        raise CqlError(
            f'"{number}{word}" is neither a number nor a name',
            text,
            (start, glued.end()),
            hint=hint,
        )


def _unreadable(text: str, start: int, stop: int) -> CqlError:
    """Why no token begins here."""
    character = text[start]
    span = (start, start + 1)
    if character in "'\"`":
        what = "a text" if character == "'" else "a name in quotes"
        hint = f"it ends with {character}; inside it is doubled"
        if character == "'":
            hint += "; a value of a program is a parameter: db.query(cql, params=[..])"
        return CqlError(f"{what} is not closed", text, span, hint=hint)
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
