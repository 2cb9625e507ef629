"""Which words of a statement are keywords.

Few words are reserved. Most keywords are words like any other except where their neighbours make them one: a unit
follows a number, ROWS stands in a window's brackets, SLACK behind the columns of CREATE STREAM. So the grammar stays
LALR, and a column may be called day, rows or key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from lark import Token

from minidsms.cql.words import (
    BEFORE_LISTS,
    BEFORE_PARENTHESIS,
    BEGIN_CLAUSES,
    CAST_TEXTS,
    JOIN_WORDS,
    KINDS,
    MAKE_ROWS,
    MONTH_WORDS,
    RESERVED,
    STATEMENT_WORDS,
    STREAM_OPERATORS,
    TAKE_A_LAMBDA,
    UNIT_WORDS,
)

_NATURAL_JOINS = JOIN_WORDS - {"CROSS", "OUTER"} | {"JOIN"}
_ORDER_WORDS = frozenset(
    {"ORDER", "ASC", "DESC", "NULLS", "FIRST", "LAST", "WITHIN", "IGNORE", "RESPECT", "LIMIT", "OFFSET"}
    | {"FETCH", "NEXT", "ROW", "ROWS", "ONLY"}
)
_BEHIND_SORT_KEYS = frozenset(
    {"NULLS", "LIMIT", "ROWS", "RANGE", "GROUPS", "FETCH", "OFFSET", "UNION", "EXCEPT", "INTERSECT"}
    | {"INTO", "WITH", "ARCHIVE", "BACKFILL"}
)
"""What may stand behind ASC and DESC."""
_OVER_WORDS = frozenset(
    {"OVER", "PARTITION", "ROWS", "RANGE", "GROUPS", "UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "ROW"}
)
_TIME_ZONE = ("AT", "TIME", "ZONE")
_ENDS_OF_VALUES = frozenset({"IDENT", "TEXT", "RPAR", "NOT", "END", "NULL", "RLIST", "RINDEX", "RBRACE"})
_ENDS_OF_FROM_ITEMS = (_ENDS_OF_VALUES - {"NOT"}) | {"RSQB", "NUMBER", "UNIT", "TRUE", "FALSE", "NUMBERS", "TEXTS"}
_BEFORE_A_QUERY = frozenset(
    {"LPAR", "RPAR", "AS", "UNION", "EXCEPT", "INTERSECT", "ALL", "DISTINCT", "EXPLAIN", "ANALYZE"}
)
_SET_OPERATORS = frozenset({"UNION", "EXCEPT", "INTERSECT"})
_BEGINNINGS_OF_QUERIES = frozenset({"SELECT", "FROM", "VALUES", "WITH"}) | STREAM_OPERATORS
_BEGINNINGS_OF_VALUES = frozenset({"CASE", "NULL", "NOT", "TRUE", "FALSE"})
_PLAIN_NUMBER = re.compile(r"\s*[+-]?\s*[0-9.]+\s*")
_CONDITIONS = {"CREATE": ("IF", "NOT", "EXISTS"), "REGISTER": ("IF", "NOT", "EXISTS"), "DROP": ("IF", "EXISTS")}
"""What may stand between the kind and the name."""
_DECLARATION_WORDS = frozenset({"TIMESTAMP", "SLACK", "LATE", "DROP", "KEY", "GENERATOR", "FORMAT", "ARCHIVE", "WITH"})
_QUERY_WORDS = frozenset({"INTO", "WITH", "HISTORY", "ARCHIVE", "BACKFILL", "FORMAT"})
_EXPLAIN_WORDS = frozenset({"ANALYZE", "FORMAT", "RULES"})
_WINDOW_WORDS = frozenset(
    {"RANGE", "ROWS", "NOW", "UNBOUNDED", "SLIDE", "PARTITION", "BY", "TUMBLE", "HOP", "EVERY", "SESSION"}
)
"""Words that are keywords inside brackets."""


def find_keywords(tokens: list[Token]) -> None:
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
        self.set_at = self.words.index("SET", 2) if words[0] == "UPDATE" and "SET" in words[2:5] else 0
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
        if self.words[0] == "UPDATE" and i < self.set_at + 1:
            return word if i == self.set_at or word == "AS" else "IDENT"
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
        return word in _BEGINNINGS_OF_VALUES or word not in RESERVED | BEGIN_CLAUSES

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

    def _is_unit(self, i: int, word: str) -> bool:
        is_long = word in MONTH_WORDS
        if word not in UNIT_WORDS and not is_long:
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
        if word in UNIT_WORDS and before == "NUMBER":
            return "UNIT"
        return word if word in _WINDOW_WORDS else "IDENT"

    def _in_options(self, i: int, word: str) -> str:
        """Inside WITH (..) a name may be any word."""
        before = self._type(i - 1)
        if word in UNIT_WORDS and before == "NUMBER":
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
        if word not in _QUERY_WORDS or before == "FORMAT" or self._counts_elements(i):
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
                names = self._type(i + 1) == "WORD" and after not in RESERVED | BEGIN_CLAUSES
                return self._is_behind_call(i) and (self._type(i + 1) in ("LPAR", "IDENT") or names)
            case "PARTITION":
                return before in ("LPAR", "IDENT") and after == "BY" and self.depth in self.frames
        if self.depth not in self.frames:
            return False
        match word:
            case "ROWS" | "RANGE" | "GROUPS":
                begins = before not in ("BY", "COMMA", "DOT") and before not in BEFORE_LISTS - {"LPAR"}
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

    # ------------------------------------------------------------------------------------------------ in a query

    def _in_query(self, i: int, word: str) -> str:
        if word in RESERVED or (word == "BY" and self._is_by(i)):
            return word
        if word in _OVER_WORDS and self._frames(i, word):
            return word
        if word in _ORDER_WORDS and self._orders(i, word):
            return word
        role = _ROLES.get(word)
        found = False if role is None else role(self, i, word)
        return found if isinstance(found, str) else word if found else "IDENT"

    def _is_by(self, i: int) -> bool:
        """`GROUP BY`, `UNION BY NAME`, `UNION ALL BY NAME`."""
        before = self._type(i - 2 if self._type(i - 1) in ("ALL", "DISTINCT") else i - 1)
        return self._type(i - 1) in ("GROUP", "ORDER", "PARTITION") or (
            before == "UNION" and self._word(i + 1) == "NAME"
        )

    def _behind_is(self, i: int, word: str) -> bool | str:
        """`x IS JSON`, `x IS NOT UNKNOWN`; `JSON '{}'`."""
        before = self._type(i - 1)
        is_asked = before == "IS" or (before == "NOT" and self._type(i - 2) == "IS")
        if not is_asked:
            return self._type_name(i, word)
        return "NULL" if word == "UNKNOWN" else True

    def _json_kind(self, i: int, word: str) -> bool | str:
        """What `IS JSON` may ask for; `ARRAY [1, 2]`, `ARRAY (SELECT`."""
        if self._type(i - 1) == "JSON":
            return "JSON_KIND"
        first = i + 1
        while self._type(first) == "LPAR":
            first += 1
        is_of_query = first > i + 1 and self._word(first) in STREAM_OPERATORS | {"SELECT", "WITH", "VALUES"}
        return word == "ARRAY" and (self._type(i + 1) == "LLIST" or is_of_query)

    def _placing(self, i: int, word: str) -> bool:
        """`OVERLAY(t PLACING u FROM 3)`."""
        return self.depth > 0 and self._type(i - 1) in _ENDS_OF_VALUES and self._begins_value(i + 1)

    def _changes_star(self, i: int, word: str) -> bool:
        """EXCLUDE, REPLACE or RENAME behind the * of a select list, in this order."""
        end = i - 1
        if self._type(end) == "RPAR" and word != "EXCLUDE" and self.begun > 0:
            if word == "RENAME" and self._type(self.begun - 1) == "REPLACE":
                return True
            end = self.begun - 2  # behind EXCLUDE (..)
        elif self._type(end - 1) == "EXCLUDE":
            end -= 2
        before = self._type(end - 1)
        is_first = before in ("SELECT", "DISTINCT", "ALL", "COMMA", "DOT", "LPAR")
        is_first |= before == "RPAR" and self._type(self.begun - 1) == "ON" and self._type(self.begun - 2) == "DISTINCT"
        is_change = self._type(i + 1) in ("LPAR", "WORD", "IDENT") and self._word(i + 1) not in RESERVED
        return self._type(end) == "STAR" and is_first and is_change

    def _qualify(self, i: int, word: str) -> bool:
        before = self._type(i - 1)
        ends = before in _ENDS_OF_FROM_ITEMS or (before == "ALL" and self._type(i - 2) == "BY")
        return ends and self._begins_value(i + 1)

    def _window(self, i: int, word: str) -> bool:
        """`WINDOW name AS (`."""
        is_named = self._word(i + 2) == "AS" and self._type(i + 3) == "LPAR"
        is_clause = is_named and self._type(i - 1) in _ENDS_OF_FROM_ITEMS
        self.windows_at = self.depth if is_clause else self.windows_at
        return is_clause

    def _lateral(self, i: int, word: str) -> bool:
        before, begun = i - 1, i + 1
        while self._type(before) == "LPAR":
            before -= 1
        while self._type(begun) == "LPAR":
            begun += 1
        # Behind a comma it may be a function, or WITH may give its name to a query, whose columns are in parentheses.
        is_query = self._word(begun) in _BEGINNINGS_OF_QUERIES or self._word(begun + 1) in _SET_OPERATORS
        behind = self._type(before) in ("JOIN", "FROM") or (is_query and self._type(before) == "COMMA")
        before_query = begun > i + 1 and behind
        return before_query or (self._word(i + 1) in MAKE_ROWS and self._type(i + 2) == "LPAR")

    def _values(self, i: int, word: str) -> bool:
        is_by_name = self._type(i - 2) == "BY" and self._is_by(i - 2)
        return self._type(i + 1) == "LPAR" and (is_by_name or self._type(i - 1) in _BEFORE_A_QUERY)

    def _stream_operator(self, i: int, word: str) -> bool | str:
        return self._type(i + 1) == "LPAR" and "STREAM_OPERATOR"

    def _before_parenthesis(self, i: int, word: str) -> bool | str:
        return self._type(i + 1) == "LPAR" and word.removeprefix("TRY_")

    def _before_text(self, i: int, word: str) -> bool:
        """`DATE '2013-05-31'`, `INTERVAL 3 MONTHS`."""
        is_interval = word == "INTERVAL" and self._type(i + 1) == "NUMBER"
        return self._type(i + 1) == "TEXT" or (is_interval and self._word(i + 2) in UNIT_WORDS | MONTH_WORDS)

    def _type_name(self, i: int, word: str) -> bool | str:
        """`INTEGER '5'`."""
        return self._type(i + 1) == "TEXT" and word in CAST_TEXTS and "TYPE_NAME"

    def _quantifier(self, i: int, word: str) -> bool | str:
        return self._type(i + 1) == "LPAR" and self._type(i - 1) in ("EQUAL", "COMPARISON") and "ANY"

    def _with(self, i: int, word: str) -> bool | str:
        """`WITH name AS (`, or where a query may begin `WITH name (columns)`; `UNNEST(l) WITH ORDINALITY`."""
        if self._counts_elements(i):
            return "WITH_ORDINALITY"
        if self._type(i + 1) not in ("WORD", "IDENT"):
            return False
        if self._word(i + 2) == "AS":
            return self._type(i + 3) == "LPAR"
        begins = self._type(i - 1) in ("", "LPAR", "RPAR", "AS", "EXPLAIN", "ANALYZE")
        return begins and (self._type(i + 2) == "LPAR" or self._word(i + 1) == "RECURSIVE")

    def _counts_elements(self, i: int) -> bool:
        return self._type(i - 1) == "RPAR" and self._word(i + 1) == "ORDINALITY"

    def _natural(self, i: int, word: str) -> bool:
        return self._type(i - 1) in _ENDS_OF_FROM_ITEMS and self._word(i + 1) in _NATURAL_JOINS

    def _join(self, i: int, word: str) -> bool:
        before_as_of = word in ("INNER", "LEFT", "OUTER") and self.words[i + 1 : i + 3] == ["ASOF", "JOIN"]
        before_half = word == "LEFT" and self._word(i + 1) in ("SEMI", "ANTI") and self._word(i + 2) == "JOIN"
        return self._word(i + 1) in ("JOIN", "OUTER") or before_as_of or before_half

    def _half(self, i: int, word: str) -> bool:
        """`S AS a SEMI JOIN T`, `S AS a LEFT ANTI JOIN T`."""
        is_behind = self._type(i - 1) in _ENDS_OF_FROM_ITEMS or self._type(i - 1) == "LEFT"
        return is_behind and self._word(i + 1) == "JOIN"

    def _as_of(self, i: int, word: str) -> bool:
        """`S AS a ASOF LEFT JOIN T`, `S AS a LEFT ASOF JOIN T`."""
        behind_item = self._type(i - 1) in _ENDS_OF_FROM_ITEMS and self._word(i + 1) in ("JOIN", "INNER", "LEFT")
        return behind_item or (self._type(i - 1) in JOIN_WORDS and self._word(i + 1) == "JOIN")

    def _matched(self, i: int, word: str) -> bool:
        return self._type(i - 1) in _ENDS_OF_FROM_ITEMS and self._type(i + 1) == "LPAR"

    def _filter(self, i: int, word: str) -> bool:
        return self._is_behind_call(i) and self._type(i + 1) == "LPAR" and self._word(i + 2) == "WHERE"

    def _extract(self, i: int, word: str) -> bool:
        return self._type(i + 1) == "LPAR" and self._word(i + 3) == "FROM"

    def _for(self, i: int, word: str) -> bool:
        """`SUBSTRING(t FROM 2 FOR 3)`."""
        is_behind_value = self._type(i - 1) in _ENDS_OF_VALUES | {"NUMBER"}
        return self.depth > 0 and is_behind_value and self._type(i + 1) != "RPAR"

    def _match(self, i: int, word: str) -> bool | str:
        begins = self._begins_value(i + 1) or (word == "ILIKE" and self._word(i + 1) in BEGIN_CLAUSES)
        return self._stands_between(i) and begins and (word if word == "ILIKE" else "MATCH")

    def _similar(self, i: int, word: str) -> bool:
        return self._word(i + 1) == "TO" and self._stands_between(i)

    def _symmetric(self, i: int, word: str) -> bool:
        """`BETWEEN SYMMETRIC -1 AND n`; the binder refuses what may be a column before a sign."""
        if self._type(i - 1) != "BETWEEN" or self.words[i + 1 : i + 4] == list(_TIME_ZONE):
            return False
        return self._type(i + 1) == "PLUS" or self._begins_value(i + 1)

    def _to(self, i: int, word: str) -> bool:
        return self._type(i - 1) == "SIMILAR"

    def _stands_between(self, i: int) -> bool:
        """A value, and perhaps NOT, stands before an operator."""
        return self._type(i - 2 if self._type(i - 1) == "NOT" else i - 1) in _ENDS_OF_VALUES

    def _lambda(self, i: int, word: str) -> bool | str:
        """`lambda x, y: x + y`."""
        last = i + 1
        while self._type(last) in ("WORD", "IDENT") and self._type(last + 1) == "COMMA":
            last += 2
        is_parameter = self._type(last) in ("WORD", "IDENT")
        return is_parameter and self._type(last + 1) == "COLON" and "LAMBDA_OF"

    def _time_zone(self, i: int, word: str) -> bool:
        """`t AT TIME ZONE 'UTC'`."""
        if word == "TIME" and self._word(i - 1) != "AT":
            return self._before_text(i, word)
        first = i - _TIME_ZONE.index(word)
        is_whole = [self._word(first + k) for k in range(3)] == list(_TIME_ZONE)
        return is_whole and self._type(first + 3) == "TEXT"


_Role: TypeAlias = Callable[[_Context, int, str], "bool | str"]
"""Whether a word is a keyword where it stands, or which one."""

_ROLES: dict[str, _Role] = {
    word: role
    for words, role in (
        (CAST_TEXTS, _Context._type_name),
        (("JSON", "UNKNOWN"), _Context._behind_is),
        (("VALUE", "OBJECT", "ARRAY", "SCALAR"), _Context._json_kind),
        (("PLACING",), _Context._placing),
        (("EXCLUDE", "REPLACE", "RENAME"), _Context._changes_star),
        (("QUALIFY",), _Context._qualify),
        (("WINDOW",), _Context._window),
        (("LATERAL",), _Context._lateral),
        (("VALUES",), _Context._values),
        (STREAM_OPERATORS, _Context._stream_operator),
        (BEFORE_PARENTHESIS, _Context._before_parenthesis),
        (("INTERVAL", "TIMESTAMP", "DATE", "DECIMAL", "ESCAPE"), _Context._before_text),
        (_TIME_ZONE, _Context._time_zone),
        (("ANY", "SOME"), _Context._quantifier),
        (("WITH",), _Context._with),
        (("NATURAL",), _Context._natural),
        (("ASOF",), _Context._as_of),
        (("SEMI", "ANTI"), _Context._half),
        (("MATCH_CONDITION",), _Context._matched),
        (JOIN_WORDS, _Context._join),
        (("FILTER",), _Context._filter),
        (("EXTRACT",), _Context._extract),
        (("FOR",), _Context._for),
        (("ILIKE", "RLIKE", "REGEXP"), _Context._match),
        (("SIMILAR",), _Context._similar),
        (("TO",), _Context._to),
        (("SYMMETRIC",), _Context._symmetric),
        (("LAMBDA",), _Context._lambda),
    )
    for word in words
}
"""What makes keywords of the words that are not reserved."""
