"""What to say about a text that is no CQL: what stands there, what could, and which common mistake it looks like.

The grammar knows terminals; people know words. This is where one becomes the other.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection

from lark import Lark, Token, UnexpectedToken

from minidsms.cql.errors import CqlError
from minidsms.cql.foreign_names import FOREIGN_JOINS, foreign_hint
from minidsms.cql.lexer import RESERVED, STATEMENT_WORDS, Statement

_SHOWN = {
    "LPAR": '"("',
    "RPAR": '")"',
    "LSQB": 'a window "[..]"',
    "RSQB": '"]"',
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
    {"PLUS", "MINUS", "SLASH", "PERCENT", "CONCAT", "STAR", "EQUAL", "COMPARISON", "COLONS", "ARROW", "AT"}
)
_PREDICATES = frozenset({"IS", "IN", "LIKE", "ILIKE", "BETWEEN", "AND", "OR", "NOT"})
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
_JOINS = frozenset({"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "JOIN"})

_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING")
_BEFORE_A_NAME = frozenset(
    {"AS", "FROM", "JOIN", "SELECT", "DISTINCT", "DOT", "COMMA", "BY", "STREAM", "VIEW", "RELATION"}
)
_IN_A_WINDOW = frozenset(
    {"IDENT", "NUMBER", "UNIT", "COMMA", "RANGE", "ROWS", "SLIDE", "TUMBLE", "HOP", "EVERY", "SESSION"}
)
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

_NO_TRANSACTIONS = "there are no transactions: a call of push() happens wholly or not at all"
_CHANGE = "INSERT OR REPLACE INTO R replaces rows by their KEY; push(relation, rows, sign=..) makes any change"
_PATTERN = "write REGEXP_MATCHES(text, 'pattern'), or LIKE"
_KEPT = "CREATE VIEW names a query, CREATE QUERY keeps its answer up to date"
_BEHIND = "the window stands behind the stream: FROM S [TUMBLE 1 MINUTE]"
_INPUTS = "declare what is read: CREATE STREAM S (..) FROM 'file'; the shell proposes it: .schema file"
_SUFFIXES = ("CSV", "TSV", "TXT", "JSON", "JSONL", "PARQUET", "ARROW", "GZ", "ZST", "XLSX", "DB")
_ONE_CATALOG = "names of streams, relations and views stand alone, with nothing before them"
_ANSWERS = "an answer goes into a file by CREATE QUERY name AS SELECT .. INTO 'file'"
_FROM_PYTHON = (
    "functions come from Python: db.create_function(name, function, ['FLOAT'], 'FLOAT'), or name a query by CREATE VIEW"
)
_NO_SAMPLES = "CQL has no samples: filter by a column, or bound the stream by a window"
_PREPARED = "a query with parameters: db.query('SELECT .. WHERE v > ?', params=[..])"
_CONSTANTS = foreign_hint("values")
_SERIES = "a list becomes rows by UNNEST: FROM (SELECT 1) AS one, UNNEST(GENERATE_SERIES(1, 5)) AS i"
_FOREIGN = {
    **dict.fromkeys(("BEGIN", "COMMIT", "ROLLBACK"), _NO_TRANSACTIONS),
    **dict.fromkeys(("MERGE", "TRUNCATE", "UPSERT"), _CHANGE),
    **dict.fromkeys(("MATERIALIZED", "TEMP", "TEMPORARY"), _KEPT),
    **dict.fromkeys(("SIMILAR", "RLIKE", "REGEXP", "GLOB"), _PATTERN),
    **dict.fromkeys(("ATTACH", "SOURCE", "COPY"), f"{_INPUTS}; {_ANSWERS}"),
    **dict.fromkeys(("FUNCTION", "MACRO", "PROCEDURE"), _FROM_PYTHON),
    **dict.fromkeys(("PREPARE", "EXECUTE", "DEALLOCATE"), _PREPARED),
    **dict.fromkeys(("IGNORE", "CONFLICT"), _CHANGE),
    **FOREIGN_JOINS,
    "SINK": _ANSWERS,
    "PRAGMA": "SHOW SETTINGS lists what can be set, DESCRIBE name tells the columns",
    "USE": "a connection has one catalog: minidsms.connect(folder) opens another one",
    **dict.fromkeys(("INSTALL", "LOAD"), "there are no extensions: pip install brings what a source needs"),
    **dict.fromkeys(("VACUUM", "OPTIMIZE"), "what windows no longer hold is let go by itself"),
    "ANALYZE": "statistics are gathered while queries run; EXPLAIN ANALYZE name shows those of a query",
    **dict.fromkeys(("GRANT", "REVOKE"), "there are no users: minidsms.connect(safe=True) bounds what a text may do"),
    "CALL": "a function stands in a select list",
    "SUMMARIZE": "aggregates summarize: SELECT COUNT(*), MIN(v), MAX(v), AVG(v) FROM S",
    **dict.fromkeys(
        ("HELP", "LIST", "EXIT", "QUIT", "FEED", "WATCH", "READ"),
        "commands of the shell begin with a dot: .help, .streams, .feed, .quit",
    ),
    "NOTNULL": "write IS NOT NULL",
    "ISNULL": "write IS NULL",
    "SYMMETRIC": "BETWEEN has the least value first",
    "SAMPLE": _NO_SAMPLES,
    "INDEX": "there are no indexes to create: joins and groups keep their own",
    "ORDER": "ORDER BY .. LIMIT n stands behind a SELECT and keeps the first n rows of its relation",
    "LIMIT": "LIMIT stands behind ORDER BY, which says which rows are the first; a stream is bounded by [ROWS 10]",
    "OFFSET": "OFFSET stands behind LIMIT: ORDER BY a LIMIT 10 OFFSET 5",
    "FETCH": "FETCH stands behind ORDER BY: ORDER BY a FETCH FIRST 5 ROWS ONLY, or LIMIT 5",
    "RECURSIVE": "CQL has no recursion: the tables of a WITH stand on those before them",
    "INSERT": "a statement: INSERT INTO S (a, b) VALUES (1, 2), or push() from Python",
    "UPDATE": _CHANGE,
    "DELETE": "a relation loses rows by push(relation, rows, sign=-1)",
    "WINDOW": "the window stands behind the stream, for example FROM S [ROWS 10]",
    "TABLE": "declare a STREAM or a RELATION",
    "DESC": "write DESCRIBE name",
    "QUALIFY": "QUALIFY stands behind HAVING and before ORDER BY: QUALIFY ROW_NUMBER() OVER (..) <= 3",
    "REFERENCES": "a declaration has KEY (columns) behind its columns, and no foreign keys",
    "PRIMARY": "KEY (columns) stands behind the columns: CREATE STREAM S (a INTEGER) KEY (a)",
    "DEFAULT": "columns have no default values; what is not given is NULL",
    "VALUES": _CONSTANTS,
}
_TAKEN_FOR_NAMES = {
    "TOP": "write SELECT .. ORDER BY .. LIMIT n",
    "TABLE": _BEHIND,
    "SETS": "the sets stand in parentheses: GROUPING SETS ((a, b), a, ())",
    "EMIT": "ISTREAM(..) gives what is new; the answer of a query that is a relation are its changes",
    "LATERAL": "a subquery may use the row around it in its own WHERE: IN, EXISTS or (SELECT ..) as a value",
    "TABLESAMPLE": _NO_SAMPLES,
    "MATCH_RECOGNIZE": "patterns of rows are joins of windows with conditions on their instants, as in a.ts < b.ts",
    "PIVOT": "write COUNT(*) FILTER (WHERE k = 'a') for each column",
    "UNPIVOT": "put a query for each column together with UNION ALL",
    "FOR": "a relation joined with S [NOW] is as it was at the instant of the row",
    "OVER": "behind OVER stands what the call sees: OVER (PARTITION BY k ORDER BY ts ROWS 10 PRECEDING)",
    "MINUS": "write EXCEPT",
    "MOD": "write a % b",
    "DIV": "write a / b, which truncates integers",
    "INTO": _ANSWERS,
    "VALUES": _CONSTANTS,
    "WATERMARK": "how late rows may come is declared with the stream: CREATE STREAM .. SLACK 5 SECONDS",
    "STRAIGHT_JOIN": "write JOIN: plans order joins themselves",
}
"""Words of other systems that read as names here; what follows them then is unexpected."""
_MAX_REPLAYED = 5000
"""Up to how many tokens are read again to learn what could have stood in a place; behind them the error says less."""
_WINDOW_FORMS = (
    "a window is [RANGE 10 SECONDS SLIDE 2 SECONDS], [TUMBLE 1 MINUTE], [HOP 5 MINUTES EVERY 1 MINUTE], [ROWS 10], "
    "[PARTITION BY k ROWS 10], [SESSION 30 MINUTES PARTITION BY k] or [NOW]"
)
_LONG_UNITS = frozenset({"WEEK", "WEEKS", "MONTH", "MONTHS", "YEAR", "YEARS"})
_UNIT_HINT = "units are NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS; a bare number is ticks"


def syntax_error(lark: Lark, start: str, statement: Statement, text: str, error: UnexpectedToken) -> CqlError:
    """The error for the statement's first token that cannot stand where it does; '$END': the text stops too soon."""
    tokens, token = statement.tokens, error.token
    is_end = token.type == "$END"
    at = len(tokens) if is_end else next(i for i, t in enumerate(tokens) if t is token)
    expected = (
        frozenset(error.expected) - {"NUMBERS", "TEXTS"} if at > _MAX_REPLAYED else accepted(lark, start, tokens[:at])
    )
    if is_end:
        end = tokens[-1].end_pos or 0
        span = (end, end + 1)
        reason = f"the statement ends too early, after {_quoted(text, tokens[-1])}"
    else:
        span = (int(token.start_pos or 0), int(token.end_pos or 0))
        reason = f"unexpected {_quoted(text, token)}"
        if at > 0:
            reason += f" after {_quoted(text, tokens[at - 1])}"
    hint = _hint(lark, start, tokens, at, expected, text)
    words = describe(expected)
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
    left -= {"LLIST", "RLIST", "LINDEX", "RINDEX", "ARRAY", "LATERAL", "EXCLUDE", "REPLACE"}
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


def _hint(lark: Lark, start: str, tokens: list[Token], at: int, expected: Collection[str], text: str) -> str:
    """The common mistake this looks like, and the way out; "" when it looks like none."""
    token = tokens[at] if at < len(tokens) else None
    before = tokens[at - 1] if at > 0 else None
    word = "" if token is None else token.upper()
    window = _open_window(tokens, at)
    if window is not None:
        return _window_hint(tokens, at, window, expected)
    special = _special(tokens, at, expected)
    if special:
        return special
    for candidate in (token, before):
        is_plain = candidate is not None and text[candidate.start_pos or 0] not in "'\"`"
        if candidate is not None and is_plain and candidate.type not in expected and candidate.upper() in _FOREIGN:
            return _FOREIGN[candidate.upper()]
    misspelt = _misspelt(lark, start, tokens, at, expected, text)
    if misspelt:
        return f"did you mean {misspelt}?"
    if token is not None and token.type == "LSQB":
        if any(t.type == "RSQB" for t in tokens[max(0, at - 3) : at]):
            return "a stream in FROM has one window; for a second one name the stream once more"
        return "a window stands behind a stream in FROM"
    if token is not None and token.type == "TEXT" and "IDENT" in expected:
        return "names stand bare or in double quotes: \"a name\"; '..' is a text"
    if token is not None and text[token.start_pos or 0] == '"' and "TEXT" in expected:
        return "a text stands in single quotes: '..'; double quotes enclose names"
    if token is not None and before is not None and before.type == "COMMA" and word in _CLAUSES:
        return f'there is a "," too many before {word}'
    if word in RESERVED and "IDENT" in expected and before is not None and before.type in _BEFORE_A_NAME:
        return f"{word} is a reserved word; a column or stream of that name stands in backquotes: `{token}`"
    if token is not None and token.type in ("EQUAL", "COMPARISON") and "PLUS" in expected:
        return "comparisons do not chain: write a < b AND b < c"
    if at == 1 and tokens[0].type == "IDENT" and "UNION" in expected:
        return "a statement begins with SELECT, " + ", ".join(sorted(STATEMENT_WORDS))
    if "ON" in expected and "USING" in expected:
        return "JOIN takes ON condition or USING (columns); a join without either is CROSS JOIN or a comma"
    return _unclosed(tokens[:at], expected)


def _in_declaration(tokens: list[Token], at: int, expected: Collection[str]) -> str:
    """The way out of mistakes that are made where something is declared."""
    token = tokens[at] if at < len(tokens) else None
    before = tokens[at - 1] if at > 0 else None
    word, last_kind = "" if token is None else token.upper(), "" if before is None else before.type
    if any(t.upper() == "WATERMARK" for t in tokens[:at]):
        return _TAKEN_FOR_NAMES["WATERMARK"]
    if any(t.upper() in ("CHECK", "CONSTRAINT") for t in tokens[:at]):
        return "a declaration has no conditions on its rows: CREATE VIEW x AS SELECT .. WHERE .. keeps those that fit"
    if word == "AS" and "IDENT" in expected and last_kind == "IDENT":
        return "columns are computed by queries: a column is a name and a type"
    if word == "AS" and "LPAR" in expected and at == 3:
        return f"a query's answer is read by others as a view: CREATE VIEW {before} AS SELECT .."
    if before is not None and before.upper() == "LATE":
        return "LATE DROP leaves late rows out, SLACK 5 SECONDS waits for them; without either they are refused"
    if token is not None and token.type == "TEXT" and last_kind == "LPAR":
        return "options have bare names, as in WITH (header = FALSE); where the rows come from stands behind FROM"
    return ""


def _special(tokens: list[Token], at: int, expected: Collection[str]) -> str:
    """The way out of mistakes that two neighbours give away."""
    token = tokens[at] if at < len(tokens) else None
    before = tokens[at - 1] if at > 0 else None
    word, last = "" if token is None else token.upper(), "" if before is None else before.upper()
    kind, last_kind = "" if token is None else token.type, "" if before is None else before.type
    if any(t.type == "OVER" for t in tokens[:at]) and ({"UNBOUNDED", "CURRENT", "PRECEDING"} & set(expected)):
        return "a frame is ROWS n PRECEDING, RANGE 10 SECONDS PRECEDING or ROWS BETWEEN n PRECEDING AND m FOLLOWING"
    declares = tokens[0].type in ("CREATE", "REGISTER")
    if declares and (way_out := _in_declaration(tokens, at, expected)):
        return way_out
    if last == "ROW" and kind == "LPAR" and any(t.upper() == "VALUES" for t in tokens[:at]):
        return _CONSTANTS
    series = [b for a, b in itertools.pairwise(tokens[:at]) if a.type in ("FROM", "JOIN") and b.type == "IDENT"]
    if any(name.upper() in ("GENERATE_SERIES", "RANGE") for name in series):
        return _SERIES
    names = itertools.pairwise(tokens[:at])
    if any(a.type == "IDENT" and a.upper() == "VALUES" and b.type == "LPAR" for a, b in names):
        return _CONSTANTS
    called = "" if at < 3 or tokens[at - 2].type != "LPAR" else tokens[at - 3].upper()
    if called == "SAFE_CAST":
        return "write TRY_CAST(x AS type)"
    if called in ("SUBSTRING", "TRIM", "OVERLAY", "POSITION"):
        return (
            f"arguments stand apart by commas: {'SUBSTRING(x, 1, 2)' if called == 'SUBSTRING' else f'{called}(a, b)'}"
        )
    if tokens[0].type == "INSERT" and word in ("SELECT", "WITH"):
        return "INSERT writes its rows out: VALUES (..), (..); CREATE VIEW names what a query gives"
    if kind == "EQUAL" and last_kind == "EQUAL":
        return 'equality is written "="'
    starred = tokens[at - 2].upper() if last_kind == "STAR" and at > 1 else ""
    if {last, starred} & {"ISTREAM", "DSTREAM", "RSTREAM"} or kind == "STREAM_OPERATOR":
        operator = word if kind == "STREAM_OPERATOR" else starred or last
        return f"{operator} takes a select list or a query: SELECT {operator}(a, b) FROM .., or {operator} (SELECT ..)"
    if (word == "DISTINCT" and last_kind == "IDENT") or (kind == "STAR" and last == "DISTINCT"):
        return "DISTINCT stands inside the parentheses and before an expression: COUNT(DISTINCT x)"
    if (
        last in ("RANGE", "ROWS", "NOW", "PARTITION", "TUMBLE", "HOP", "SESSION")
        and last_kind == "IDENT"
        and "LSQB" in expected
    ):
        return "a window stands in brackets: S [RANGE 10 SECONDS], S [ROWS 10]"
    is_called = at > 3 and last_kind == "IDENT" and tokens[at - 2].type == "LPAR"
    if is_called and last in ("RANGE", "ROWS", "TUMBLE", "HOP", "SESSION") and tokens[at - 4].type in _BEFORE_A_NAME:
        return f"a window stands in brackets: {tokens[at - 3]} [RANGE 10 SECONDS], {tokens[at - 3]} [ROWS 10]"
    if kind == "DOT" and at >= 2 and tokens[at - 2].type in ("FROM", "JOIN"):
        return _INPUTS if at + 1 < len(tokens) and tokens[at + 1].upper() in _SUFFIXES else _ONE_CATALOG
    if last == "REPLACE" and declares:
        return f"OR REPLACE is for queries and views; DROP {word} IF EXISTS stands before CREATE {word}"
    if last == "TABLE" and at == 1:
        return "write SELECT * FROM name"
    if last_kind == "IDENT" and last in _TAKEN_FOR_NAMES and token is not None:
        return _TAKEN_FOR_NAMES[last]
    behind = tokens[at - 2] if at > 1 else None
    if last_kind == "LPAR" and behind is not None and behind.type == "IDENT" and behind.upper() in _TAKEN_FOR_NAMES:
        return _TAKEN_FOR_NAMES[behind.upper()]
    if last_kind == "SLASH" and kind == "SLASH":
        return "a / b truncates integers"
    if kind == "COMMA" and any(t.type == "LIMIT" for t in tokens[:at]):
        return "write LIMIT n OFFSET m"
    if last == "BY" and word == "NAME":
        return "UNION puts columns together by their places: name them in the same order on both sides"
    if last_kind == "LPAR" and at > 1 and tokens[at - 2].type == "ANY":
        return "write x IN (a, b), or LIST_CONTAINS(list, x)"
    if last == "FROM" and token is not None and kind == "TEXT" and set(token) & set("./*"):
        return _INPUTS
    if tokens[0].type == "SHOW" and word in ("TABLE", "CREATE"):
        return "DESCRIBE name tells the columns, .schema name in the shell the statement"
    if tokens[0].type == "DROP" and word == "TABLE":
        return "write DROP STREAM name, or DROP RELATION name"
    if tokens[0].type == "INSERT" and word == "ON":
        return _CHANGE
    if last_kind == "STAR" and kind == "STAR":
        return "powers are POWER(x, y)"
    if last == "BY" and word == "ALL":
        return "name the columns, or their places: ORDER BY 1, 2"
    if last == "PLAN" and word == "FOR":
        return "write EXPLAIN SELECT .."
    if word == "WHERE" and any(t.type in ("GROUP", "HAVING") for t in tokens[:at]):
        return "WHERE stands before GROUP BY and HAVING"
    if "LIMIT" in expected and any(t.type == "ORDER" for t in tokens[:at]) and (token is None or kind == "RPAR"):
        return "a relation has no order: ORDER BY .. LIMIT n keeps its first n rows; sort what fetch() returns"
    if last_kind == "IN" and kind != "LPAR":
        return "the values stand in parentheses: x IN (1, 2)"
    if tokens[0].type in ("CREATE", "REGISTER") and word in ("NOT", "NULL") and "RPAR" in expected:
        return "any column may be NULL: a column is a name and a type"
    if tokens[0].type in ("CREATE", "REGISTER") and last_kind == "LPAR" and word in RESERVED and "IDENT" in expected:
        return f"{word} is a reserved word; a column of that name stands in backquotes: `{token}`"
    if token is None and "FROM" in expected and not any(t.type == "FROM" for t in tokens):
        return "a query reads something: SELECT .. FROM a stream, relation or view"
    return ""


def _open_window(tokens: list[Token], at: int) -> int | None:
    """Where the bracket opened that is still open at the token, or None."""
    for i in range(at - 1, max(-1, at - 200), -1):
        if tokens[i].type == "RSQB":
            return None
        if tokens[i].type == "LSQB":
            return i
    return None


def _window_hint(tokens: list[Token], at: int, window: int, expected: Collection[str]) -> str:
    token = tokens[at] if at < len(tokens) else None
    first = tokens[window + 1].type if window + 1 < len(tokens) else ""
    if token is not None and token.type == "UNIT" and first == "ROWS":
        return "ROWS counts rows; for a length of time write [RANGE 10 SECONDS]"
    if first == "HOP" and "EVERY" in expected:
        return "say how often it moves: [HOP 5 MINUTES EVERY 1 MINUTE]"
    if first == "TUMBLE" and token is not None and token.type in ("SLIDE", "EVERY"):
        return "windows that overlap are [HOP 5 MINUTES EVERY 1 MINUTE]"
    if first == "NUMBER":
        return "say what the number counts: [ROWS 10] or [RANGE 10 SECONDS]"
    if token is not None and token.upper() in _LONG_UNITS:
        return f"there are no units longer than a day; {_UNIT_HINT}"
    if token is not None and token.type == "UNBOUNDED" and at == window + 1:
        return "write [RANGE UNBOUNDED] or [ROWS UNBOUNDED]"
    if token is not None and token.type == "PARTITION" and first != "SESSION":
        return "the keys stand first: [PARTITION BY k ROWS 10]"
    if first == "PARTITION" and "ROWS" in expected:
        return "say how many rows of each key: [PARTITION BY k ROWS 10]"
    if token is not None and (token.upper() == "INTERVAL" or token.type == "TEXT"):
        return "a length of time is a bare number and a unit: [RANGE 10 SECONDS]"
    if token is not None and token.type == "MINUS":
        return "the size of a window is positive"
    if token is not None and token.type == "IDENT" and "UNIT" in expected:
        near = difflib.get_close_matches(token.upper()[:40], ["SECONDS", "MINUTES", "MILLISECONDS", "HOURS", "DAYS"], 1)
        return f"did you mean {near[0]}? {_UNIT_HINT}" if near else _UNIT_HINT
    if (
        token is not None
        and token.type == "IDENT"
        and token.lower() in ("second", "seconds", "minutes", "hours", "days")
    ):
        return "the number stands before its unit: [RANGE 10 SECONDS]"
    is_over = token is None or token.upper() in RESERVED or token.type not in _IN_A_WINDOW
    if "RSQB" in expected and is_over:
        return 'the window is not closed: "]" is missing'
    return _WINDOW_FORMS


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
        if near:
            return f"{near[0]} BY" if near[0] in ("GROUP", "PARTITION") else near[0]
    return ""


def _unclosed(tokens: list[Token], expected: Collection[str]) -> str:
    """A parenthesis that is still open where ")" could stand."""
    if "RPAR" not in expected:
        return ""
    return 'a "(" before is not closed' if sum((t.type == "LPAR") - (t.type == "RPAR") for t in tokens) > 0 else ""
