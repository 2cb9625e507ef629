"""The way out of common mistakes, as the words around the place give them away where a text is no CQL.

Most are what other systems call by other words, or put in other places.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass

from lark import Token

from minidsms.cql.foreign_joins import join_here
from minidsms.cql.foreign_names import A_FILE, FOREIGN_JOINS, foreign_hint
from minidsms.cql.foreign_statements import declaration_here
from minidsms.cql.foreign_windows import window_here
from minidsms.cql.words import MONTHS, RESERVED, SHOWN, STATEMENT_WORDS, UNITS

_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING")
_BEFORE_A_NAME = frozenset(
    {"AS", "FROM", "JOIN", "SELECT", "DISTINCT", "DOT", "COMMA", "BY", "STREAM", "VIEW", "RELATION"}
)
_IN_A_WINDOW = frozenset(
    {"IDENT", "NUMBER", "UNIT", "COMMA", "RANGE", "ROWS", "SLIDE", "TUMBLE", "HOP", "EVERY", "SESSION"}
)

_NO_TRANSACTIONS = "there are no transactions: a call of push() happens wholly or not at all"
_CHANGE = (
    "db.upsert('R', rows) and INSERT OR REPLACE INTO R VALUES (..) replace rows by their KEY; "
    "db.push('R', rows, sign=..) makes any change"
)
_ALL_ROWS = "DELETE FROM R takes out all rows"
_PATTERN = "write REGEXP_MATCHES(text, 'pattern'), or LIKE"
_KEPT = "CREATE VIEW names a query, CREATE QUERY keeps its answer up to date"
_BEHIND = "the window stands behind the stream: FROM S [TUMBLE 1 MINUTE]"
_SUFFIXES = ("CSV", "TSV", "TXT", "JSON", "JSONL", "PARQUET", "ARROW", "GZ", "ZST", "XLSX", "DB")
_ONE_CATALOG = "names of streams, relations and views stand alone, with nothing before them"
_ANSWERS = "an answer goes into a file by CREATE QUERY name AS SELECT .. INTO 'file'"
_FROM_PYTHON = (
    "functions come from Python: db.create_function(name, function, ['FLOAT'], 'FLOAT'), or name a query by CREATE VIEW"
)
_IN_UTC = "a TIMESTAMP is an instant, in UTC: write TIMESTAMP; t AT TIME ZONE 'Europe/Berlin' is the local time at t"
_NO_SAMPLES = "CQL has no samples: filter by a column, or bound the stream by a window"
_CUMULATED = (
    "windows do not grow in steps; a running aggregate begins anew every ten minutes by SUM(x) OVER (PARTITION BY "
    "TIME_BUCKET(INTERVAL '10 minutes', ts) ORDER BY ts)"
)
_PREPARED = "a query with parameters: db.query('SELECT .. WHERE v > ?', params=[..])"
_CONSTANTS = foreign_hint("values")
_NO_EXCLUSION = (
    "a frame holds all rows between its bounds; those before the row and behind it are two frames: ROWS BETWEEN 2 "
    "PRECEDING AND 1 PRECEDING, ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING; by GROUPS without equal keys"
)
_CHANGES = (
    "leave EMIT out: an answer is told by its changes, each as soon as its instant is over; ISTREAM(..) around the "
    "select list gives only what is new"
)
FOREIGN = {
    "EMIT": _CHANGES,
    **dict.fromkeys(("PRINT", "SUBSCRIBE", "TAIL"), "write SELECT * FROM name; its answer is read by fetch()"),
    "TERMINATE": "write DROP QUERY name, or ALTER QUERY name PAUSE",
    **dict.fromkeys(("EXTENDED", "FORMATTED"), "write DESCRIBE name"),
    **dict.fromkeys(("BEGIN", "COMMIT", "ROLLBACK"), _NO_TRANSACTIONS),
    **dict.fromkeys(("MERGE", "UPSERT"), _CHANGE),
    "TRUNCATE": _ALL_ROWS,
    **dict.fromkeys(("MATERIALIZED", "TEMP", "TEMPORARY"), _KEPT),
    "GLOB": _PATTERN,
    **dict.fromkeys(("ATTACH", "SOURCE", "COPY"), f"{A_FILE}; {_ANSWERS}"),
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
    "RETURNING": "write CAST(JSON_VALUE(j, '$.a') AS INTEGER)",
    "WITHIN": "join windows, S [RANGE 15 MINUTES] JOIN T [RANGE 15 MINUTES], or compare instants, as in a.ts < b.ts",
    "CONTAINS": "write LIST_CONTAINS(list, x), or CONTAINS(text, part)",
    "NOTNULL": "write IS NOT NULL",
    "ISNULL": "write IS NULL",
    "SAMPLE": _NO_SAMPLES,
    "SCHEMA": f"{_ONE_CATALOG}; a stream is declared by CREATE STREAM S (a INTEGER, b TEXT)",
    "CONTEXT": "rows are divided by a key by GROUP BY k, or by the window: S [PARTITION BY k ROWS 10]",
    "INDEX": "there are no indexes to create: joins and groups keep their own",
    "ORDER": "ORDER BY .. LIMIT n stands behind a SELECT and keeps the first n rows of its relation",
    "LIMIT": "LIMIT stands behind ORDER BY, which says which rows are the first; a stream is bounded by [ROWS 10]",
    "OFFSET": "OFFSET stands behind LIMIT: ORDER BY a LIMIT 10 OFFSET 5",
    "FETCH": "FETCH stands behind ORDER BY: ORDER BY a FETCH FIRST 5 ROWS ONLY, or LIMIT 5",
    "RECURSIVE": "CQL has no recursion: the tables of a WITH stand on those before them",
    "INSERT": "a statement: INSERT INTO S (a, b) VALUES (1, 2), or push() from Python",
    "UPDATE": "UPDATE R SET a = 1 WHERE k = 2 changes rows of a relation",
    "DELETE": "DELETE FROM R WHERE k = 2 takes rows out of a relation",
    "WINDOW": "the window stands behind the stream, for example FROM S [ROWS 10]",
    "TABLE": "declare a STREAM or a RELATION",
    "QUALIFY": "QUALIFY stands behind HAVING and before ORDER BY: QUALIFY ROW_NUMBER() OVER (..) <= 3",
    "REFERENCES": "a declaration has KEY (columns) behind its columns, and no foreign keys",
    "PRIMARY": "KEY (columns) stands behind the columns: CREATE STREAM S (a INTEGER) KEY (a)",
    "DEFAULT": "columns have no default values; what is not given is NULL",
    "VALUES": _CONSTANTS,
}
TAKEN_FOR_NAMES = {
    "TOP": "write SELECT .. ORDER BY .. LIMIT n",
    "TABLE": _BEHIND,
    "SETS": "the sets stand in parentheses: GROUPING SETS ((a, b), a, ())",
    "LATEST": "S [PARTITION BY k ROWS 1] holds the latest row of each k",
    "EMIT": _CHANGES,
    "TABLESAMPLE": _NO_SAMPLES,
    "MATCH_RECOGNIZE": "patterns of rows are joins of windows with conditions on their instants, as in a.ts < b.ts",
    "PIVOT": "write COUNT(*) FILTER (WHERE k = 'a') for each column",
    "UNPIVOT": "put a query for each column together with UNION ALL",
    "FOR": "a relation joined with S [NOW] is as it was at the instant of the row",
    "OVER": "behind OVER stands what the call sees: OVER (PARTITION BY k ORDER BY ts ROWS 10 PRECEDING)",
    "MINUS": "write EXCEPT",
    "KEEP": "write ARG_MAX(x, k), or ARG_MIN(x, k): the value of x where k is greatest, or least",
    "OUTPUT": (
        "leave OUTPUT out: an answer is told by its changes; one every ten seconds is that of S [TUMBLE 10 SECONDS], "
        "or of S [RANGE 1 MINUTE SLIDE 10 SECONDS]"
    ),
    "MOD": "write a % b",
    "DIV": "write a / b, which truncates integers",
    "INTO": _ANSWERS,
    "VALUES": _CONSTANTS,
    "WATERMARK": "how late rows may come is declared with the stream: CREATE STREAM .. SLACK 5 SECONDS",
    "STRAIGHT_JOIN": "write JOIN: plans order joins themselves",
    "SAMPLE": _NO_SAMPLES,
}
"""Words of other systems that read as names here; what follows them then is unexpected."""
_BY_KINDS = {
    ("EQUAL", "EQUAL"): 'equality is written "="',
    ("SLASH", "SLASH"): "a / b truncates integers",
    ("STAR", "STAR"): "powers are POWER(x, y)",
    ("LBRACE", "RBRACE"): "a STRUCT is {'a': 1}, a MAP is MAP {'a': 1}",
    ("STAR", "LIKE"): "write COLUMNS('^a|b$'), the columns of such names, or * EXCLUDE (a, b)",
    ("IDENT", "RBRACE"): "the value of a parameter is $name; a STRUCT is {'a': 1}",
    ("EQUAL", "PERCENT"): "the value of a parameter is ? or $name: db.query(cql, params=[..])",
    ("COMPARISON", "PERCENT"): "the value of a parameter is ? or $name: db.query(cql, params=[..])",
}
"""Terminals that follow each other."""
_BY_WORDS = {
    ("BY", "NAME"): "BY NAME stands behind UNION and UNION ALL; EXCEPT and INTERSECT compare columns by place",
    ("<=", ">"): "write a IS NOT DISTINCT FROM b",
    ("WITH", "TIME"): _IN_UTC,
    ("WITH", "LOCAL"): _IN_UTC,
    ("WITHOUT", "TIME"): _IN_UTC,
    ("FILTER", "("): "write FILTER (WHERE condition)",
    ("TIMESTAMP", "BY"): "TIMESTAMP BY stands with the declaration: CREATE STREAM S (.., ts TIMESTAMP) TIMESTAMP BY ts",
    ("TIMESTAMP", "("): "CURRENT_TIMESTAMP is the instant of a row; rows of S [TUMBLE 1 MINUTE] have window_end",
    ("BY", "ALL"): "name the columns, or their places: ORDER BY 1, 2",
    ("PLAN", "FOR"): "write EXPLAIN SELECT ..",
    ("TRUNCATE", "TABLE"): _ALL_ROWS,
}
"""Words that follow each other."""
_NO_QUERY = "INSERT writes its rows out: VALUES (..), (..); CREATE VIEW names what a query gives"
_SHOWN_BY = "DESCRIBE name tells the columns, .schema name in the shell the statement"
_FIRST_LEAVE = "a condition says which rows leave: WHERE k IN (SELECT k FROM .. ORDER BY v LIMIT 3)"
_IN_STATEMENTS = {
    ("INSERT", "SELECT"): _NO_QUERY,
    ("INSERT", "WITH"): _NO_QUERY,
    ("INSERT", "ON"): _CHANGE,
    ("UPDATE", "FROM"): "the values come from subqueries: SET a = (SELECT .. WHERE ..) WHERE EXISTS (SELECT ..)",
    ("DELETE", "ORDER"): _FIRST_LEAVE,
    ("DELETE", "LIMIT"): _FIRST_LEAVE,
    **dict.fromkeys(
        (("DELETE", "RETURNING"), ("UPDATE", "RETURNING"), ("INSERT", "RETURNING")),
        "a query tells every change: db.query('SELECT * FROM ..').fetch()",
    ),
    ("SHOW", ""): f"SHOW knows {', '.join(SHOWN).upper()}",
    ("SHOW", "TABLE"): _SHOWN_BY,
    ("SHOW", "FROM"): _SHOWN_BY,
    ("SHOW", "IN"): _SHOWN_BY,
    ("SHOW", "CREATE"): _SHOWN_BY,
    ("DROP", "TABLE"): "write DROP STREAM name, or DROP RELATION name",
    ("ALTER", "TABLE"): "write ALTER STREAM name",
    ("ALTER", "VIEW"): "CREATE OR REPLACE VIEW name AS SELECT .. gives it another query",
    ("ALTER", "RELATION"): "a relation keeps its columns: DROP RELATION name, and declare it again",
    ("SET", "TO"): "write SET name = value",
}
"""The first word of a statement, and one that cannot stand in it."""
_WINDOW_FORMS = (
    "a window is [RANGE 10 SECONDS SLIDE 2 SECONDS], [TUMBLE 1 MINUTE], [HOP 5 MINUTES EVERY 1 MINUTE], [ROWS 10], "
    "[PARTITION BY k ROWS 10], [SESSION 30 MINUTES PARTITION BY k] or [NOW]"
)
_LONG_UNITS = frozenset({"MONTH", "MONTHS", "YEAR", "YEARS"})
_UNITS = (*UNITS, *MONTHS)
_OF_NAMES = (
    *("write DROP", "write ALTER", "write SELECT * FROM name", "write DESCRIBE", "db.upsert", "DELETE", "UPDATE"),
    *("CREATE OR REPLACE VIEW name", "a relation keeps its columns"),
)
"""How hints begin in which a name may stand."""
_NO_NAMES = frozenset(
    {"TABLE", "QUERY", "IF", "EXISTS", "TO", "SET", "EXTENDED", "FORMATTED", "INTO", "IGNORE", "REPLACE", "INSERT"}
)
_PLAIN = re.compile(r"[^\W\d]\w*")
"""A name that stands bare."""
_NAME_ENDS = 8
"""Behind so many words CREATE OR REPLACE TEMP TABLE IF NOT EXISTS x has ended."""
_UNIT_HINT = (
    "units are NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS, WEEKS; a bare number is ticks"
)


@dataclass(frozen=True)
class Place:
    """Where a statement cannot go on. at: the number of the token that is unexpected, len(tokens) at the end.
    expected: the terminals that could stand there.
    """

    tokens: list[Token]
    at: int
    expected: Collection[str]

    @property
    def token(self) -> Token | None:
        """None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def word(self) -> str:
        """The token in capitals."""
        return "" if self.token is None else self.token.upper()

    @property
    def kind(self) -> str:
        """The token's terminal."""
        return "" if self.token is None else self.token.type

    @property
    def word_after(self) -> str:
        """The token behind it in capitals."""
        return self.tokens[self.at + 1].upper() if self.at + 1 < len(self.tokens) else ""

    def before(self, steps: int = 1) -> Token | None:
        """The token so many before."""
        return self.tokens[self.at - steps] if self.at >= steps else None

    def word_before(self, steps: int = 1) -> str:
        """The same in capitals."""
        token = self.before(steps)
        return "" if token is None else token.upper()

    def kind_before(self, steps: int = 1) -> str:
        """Its terminal."""
        token = self.before(steps)
        return "" if token is None else token.type

    def is_behind(self, *kinds: str) -> bool:
        """A token of one of these terminals stands somewhere before."""
        return any(token.type in kinds for token in self.tokens[: self.at])

    def has_words(self, *words: str) -> bool:
        """One of these words does."""
        return any(token.upper() in words for token in self.tokens[: self.at])

    @property
    def statement(self) -> str:
        """The terminal that the statement begins with."""
        return self.tokens[0].type

    @property
    def declares(self) -> bool:
        """The statement creates something."""
        return self.statement in ("CREATE", "REGISTER")


def way_out(place: Place, text: str) -> str:
    """Of the mistake that neighbouring words give away, or that is another system's word; "" where they give none."""
    window = _open_window(place)
    if window is not None:
        return _in_window(place, window)
    if meant := _with_rollup(place, text):
        return f"write {meant}"
    if place.statement == "INSERT" and place.word in ("SELECT", "WITH"):
        return f"{_NO_QUERY}: CREATE VIEW {_named(place)} AS {place.word} .."
    if place.declares and place.at <= _NAME_ENDS and (meant := declaration_here(place.tokens, text)):
        if re.search(r"\bFROM\s+(?:'|read_)", meant, re.IGNORECASE):
            return A_FILE
        return f"write {meant}" if " VIEW " not in meant else f"a query's answer is read by others as a view: {meant}"
    at = (place.token or place.tokens[-1]).start_pos or 0
    if meant := window_here(text, at):
        return f"the window stands behind the stream: {meant}"
    if meant := join_here(text, at):
        return meant
    for rules in (_by_what_came, _in_calls, _by_pairs, _at_windows, _at_names, _in_clauses, _in_statements):
        found = rules(place)
        if found:
            return _naming(found, place)
    for candidate in (place.token, place.before()):
        is_plain = candidate is not None and text[candidate.start_pos or 0] not in "'\"`"
        if candidate is not None and is_plain and candidate.type not in place.expected and candidate.upper() in FOREIGN:
            return _naming(FOREIGN[candidate.upper()], place)
    return ""


def _with_rollup(place: Place, text: str) -> str:
    """GROUP BY with the ROLLUP or CUBE that stands behind its keys by WITH; "" where none does."""
    with_at = place.at if place.word == "WITH" else place.at - 1
    words = [token.upper() for token in place.tokens[: with_at + 2]]
    if words[with_at:] not in (["WITH", "ROLLUP"], ["WITH", "CUBE"]) or "GROUP" not in words:
        return ""
    keys = place.tokens[len(words) - words[::-1].index("GROUP") + 1 : with_at]
    return f"GROUP BY {words[-1]} ({text[keys[0].start_pos : keys[-1].end_pos]})" if keys else ""


def _naming(hint: str, place: Place) -> str:
    """A hint that tells what to write of a name, or of a relation R, with the one that the statement names."""
    name = _named(place)
    if name == "name" or not hint.startswith(_OF_NAMES) or not (place.at <= 4 or place.statement == "INSERT"):
        return hint
    return re.sub(r"'R'|\bR\b|\bname\b", lambda found: repr(name.strip("`")) if found[0] == "'R'" else name, hint)


def _named(place: Place) -> str:
    """What the statement names, as it is written; "name" where it names nothing, or one thing in another."""
    tokens = place.tokens
    places = (i for i in range(1, len(tokens)) if tokens[i].type == "IDENT" and tokens[i].upper() not in _NO_NAMES)
    at = next(places, None)
    if at is None or (at + 1 < len(tokens) and tokens[at + 1].type == "DOT"):
        return "name"
    return _bare(str(tokens[at]))


def _bare(name: str) -> str:
    """A name as it is written: in backquotes where it cannot stand bare."""
    return name if _PLAIN.fullmatch(name) and name.upper() not in RESERVED else f"`{name}`"


def way_out_by_grammar(place: Place, text: str) -> str:
    """What the terminals tell that could stand there, where no word is misspelt."""
    token, expected, word, kind = place.token, place.expected, place.word, place.kind
    first = "" if token is None else text[token.start_pos or 0]
    if first == "[" and place.kind_before() in ("FROM", "JOIN"):
        return 'names stand bare, or in ".." or backquotes where they are no words'
    if kind == "LSQB":
        if any(t.type == "RSQB" for t in place.tokens[max(0, place.at - 3) : place.at]):
            return "a stream in FROM has one window; for a second one name the stream once more"
        return "a window stands behind a stream in FROM"
    if kind == "TEXT" and "IDENT" in expected:
        return "names stand bare or in double quotes: \"a name\"; '..' is a text"
    if first == '"' and "TEXT" in expected:
        return "a text stands in single quotes: '..'; double quotes enclose names"
    if place.kind_before() == "COMMA" and word in _CLAUSES and (place.is_behind("SELECT") or not place.declares):
        return f'there is a "," too many before {word}'
    if word in RESERVED and "IDENT" in expected and place.kind_before() in _BEFORE_A_NAME:
        return f"{word} is a reserved word; a column or stream of that name stands in backquotes: `{token}`"
    if kind == "CONCAT" or (kind in ("EQUAL", "COMPARISON") and "CONCAT" in map(place.kind_before, (2, 3, 4))):
        return "a disjunction is written OR; a || b puts texts together"
    if kind in ("EQUAL", "COMPARISON") and "PLUS" in expected:
        return "comparisons do not chain: write a < b AND b < c"
    if place.at == 0 and kind == "DOT":
        return "words that begin with a dot are commands of the shell: minidsms -c '.help'"
    if place.at == 1 and place.statement == "IDENT" and "UNION" in expected:
        if place.word_before() == "DESC":
            return f"write DESCRIBE {token or 'name'}"
        if token is None:
            return f"write SELECT * FROM {place.before()}; db.queries has the queries that run, by their names"
        return "a statement begins with SELECT, " + ", ".join(sorted(STATEMENT_WORDS))
    if word == "MATCH_CONDITION" or "MATCH_CONDITION" in expected:
        return (
            "ASOF JOIN takes ON s.k = t.k AND s.ts >= t.ts, USING (k, ts), or MATCH_CONDITION (s.ts >= t.ts) and then "
            "ON s.k = t.k"
        )
    if "ON" in expected and "USING" in expected:
        return "JOIN takes ON condition or USING (columns); a join without either is CROSS JOIN or a comma"
    if kind == place.kind_before() == "IDENT" and {"COMMA", "FROM"} <= set(expected):
        return "columns stand apart by commas; a name behind one is its alias"
    return _unclosed(place)


def _by_what_came(place: Place) -> str:
    """By what stands anywhere before."""
    tokens, at = place.tokens, place.at
    if place.is_behind("OVER") and place.word == "EXCLUDE":
        return _NO_EXCLUSION
    if place.is_behind("OVER") and ({"UNBOUNDED", "CURRENT", "PRECEDING"} & set(place.expected)):
        return "a frame is ROWS n PRECEDING, RANGE 10 SECONDS PRECEDING or ROWS BETWEEN n PRECEDING AND m FOLLOWING"
    if place.declares and (found := _in_declaration(place)):
        return found
    if place.word_before(2) == "ROW" and place.kind_before() == "LPAR" and place.has_words("VALUES"):
        return _CONSTANTS
    pairs = list(itertools.pairwise(tokens[:at]))
    for i, (a, b) in enumerate(pairs[1:], 1):
        if b.type == "LPAR" and a.type == pairs[i - 1][0].type == "IDENT" and a.upper() in TAKEN_FOR_NAMES:
            return TAKEN_FOR_NAMES[a.upper()]
    if any(a.type == "IDENT" and a.upper() == "VALUES" and b.type == "LPAR" for a, b in pairs):
        return _CONSTANTS
    return ""


def _in_declaration(place: Place) -> str:
    """Where something is declared."""
    word, last_kind, expected = place.word, place.kind_before(), place.expected
    if place.has_words("WATERMARK") or word == "WATERMARK":
        return TAKEN_FOR_NAMES["WATERMARK"]
    if place.word_before() == "KEY" and place.kind == "LPAR":
        return FOREIGN["PRIMARY"]
    if place.word_before() == "INTO" and place.kind == "IDENT":
        return "INTO 'file' writes the answer; others read it as a view: CREATE VIEW name AS SELECT .."
    if place.has_words("CHECK", "CONSTRAINT"):
        return "a declaration has no conditions on its rows: CREATE VIEW x AS SELECT .. WHERE .. keeps those that fit"
    if word == "AS" and "IDENT" in expected and last_kind == "IDENT":
        return "columns are computed by queries: a column is a name and a type"
    if word == "FROM" and expected == {"LPAR"}:
        return A_FILE
    if place.kind == "LPAR" and place.word_before() == "BY" and place.word_before(2) == "TIMESTAMP":
        return f"one column stands there without parentheses: TIMESTAMP BY {place.word_after.lower() or 'ts'}"
    if place.word_before() == "SLACK":
        return "a length of time is a bare number and a unit: SLACK 5 SECONDS"
    if place.word_before() == "LATE":
        return "LATE DROP leaves late rows out, SLACK 5 SECONDS waits for them; without either they are refused"
    if place.kind == "TEXT" and last_kind == "LPAR":
        return "options have bare names, as in WITH (header = FALSE); where the rows come from stands behind FROM"
    return ""


def _in_calls(place: Place) -> str:
    """Where something is called, or a list is selected."""
    word, kind, last, last_kind = place.word, place.kind, place.word_before(), place.kind_before()
    called = place.word_before(3) if place.kind_before(2) == "LPAR" else ""
    if place.has_words("CUMULATE"):
        return _CUMULATED
    if called == "SAFE_CAST":
        return "write TRY_CAST(x AS type)"
    if word in ("WITH", "WITHOUT") and place.word_after in ("TIME", "LOCAL"):
        return _IN_UTC
    if called in ("FLOOR", "CEIL", "CEILING") and word == "TO":
        unit = place.word_after or "HOUR"
        behind = "" if called == "FLOOR" else f", and add INTERVAL '1' {unit} for the end"
        return f"write DATE_TRUNC('{unit.lower()}', {place.before()}){behind}"
    if called in ("TUMBLE", "HOP", "SESSION") and place.kind_before(4) in ("FROM", "JOIN"):
        return _BEHIND
    if called in ("SUBSTRING", "TRIM", "OVERLAY", "POSITION"):
        form = "SUBSTRING(x, 1, 2)" if called == "SUBSTRING" else f"{called}(a, b)"
        return f"arguments stand apart by commas: {form}"
    starred = place.word_before(2) if last_kind == "STAR" else ""
    if starred == "IRSTREAM":
        return foreign_hint(starred)
    if ["SELECT", "STREAM"] in ([place.word_before(2), last], [place.word_before(3), place.word_before(2)]):
        return foreign_hint("STREAM")
    if {last, starred} & {"ISTREAM", "DSTREAM", "RSTREAM"} or kind == "STREAM_OPERATOR":
        operator = word if kind == "STREAM_OPERATOR" else starred or last
        return f"{operator} takes a select list or a query: SELECT {operator}(a, b) FROM .., or {operator} (SELECT ..)"
    if word == "AS" and "FROM" in place.expected and place.is_behind("STREAM_OPERATOR") and not place.is_behind("FROM"):
        return "names stand inside the parentheses: SELECT ISTREAM(a AS b) FROM .."
    if (word == "DISTINCT" and last_kind == "IDENT") or (kind == "STAR" and last == "DISTINCT"):
        return "DISTINCT stands inside the parentheses and before an expression: COUNT(DISTINCT x)"
    return ""


def _by_pairs(place: Place) -> str:
    """By two words or terminals that never stand together."""
    return (
        _BY_KINDS.get((place.kind_before(), place.kind), "")
        or _BY_WORDS.get((place.word_before(), place.word), "")
        or _IN_STATEMENTS.get((place.statement, place.word), "")
    )


def _at_windows(place: Place) -> str:
    """Where a window may stand without its brackets."""
    last, is_name = place.word_before(), place.kind_before() == "IDENT"
    begins = ("RANGE", "ROWS", "NOW", "PARTITION", "TUMBLE", "HOP", "SESSION")
    if is_name and last in begins and "LSQB" in place.expected:
        return "a window stands in brackets: S [RANGE 10 SECONDS], S [ROWS 10]"
    is_called = is_name and place.kind_before(2) == "LPAR" and place.kind_before(4) in _BEFORE_A_NAME
    if is_called and last in ("RANGE", "ROWS", "TUMBLE", "HOP", "SESSION"):
        stream = place.before(3)
        return f"a window stands in brackets: {stream} [RANGE 10 SECONDS], {stream} [ROWS 10]"
    return ""


def _at_names(place: Place) -> str:
    """Where a word was taken for a name."""
    tokens, at, kind, last, last_kind = place.tokens, place.at, place.kind, place.word_before(), place.kind_before()
    if kind == "DOT" and place.kind_before(2) in ("FROM", "JOIN"):
        return A_FILE if at + 1 < len(tokens) and tokens[at + 1].upper() in _SUFFIXES else _ONE_CATALOG
    if last == "REPLACE" and place.declares:
        word = place.word
        return f"OR REPLACE is for queries and views; DROP {word} IF EXISTS stands before CREATE {word}"
    if last == "TABLE" and at == 1:
        return "write SELECT * FROM name"
    if last == "TABLE" and place.statement == "DESCRIBE":
        return f"write DESCRIBE {place.token or 'name'}"
    if last_kind == "IDENT" and last in TAKEN_FOR_NAMES and place.token is not None:
        return TAKEN_FOR_NAMES[last]
    if last_kind == "LPAR" and place.kind_before(2) == "IDENT":
        return TAKEN_FOR_NAMES.get(place.word_before(2), "")
    return ""


def _in_clauses(place: Place) -> str:
    """In the clauses of a query."""
    token, word, kind, last, last_kind = place.token, place.word, place.kind, place.word_before(), place.kind_before()
    if last == "SIZE" and kind == "NUMBER":
        return _BEHIND
    if word == "WITH" and place.word_after == "TIES":
        return "write QUALIFY RANK() OVER (ORDER BY k DESC) <= 5, which keeps all rows that are equal in the keys"
    if kind == "COMMA" and place.is_behind("LIMIT"):
        return "write LIMIT n OFFSET m"
    if last_kind == "LPAR" and place.kind_before(2) == "ANY":
        return "write x IN (a, b), or LIST_CONTAINS(list, x)"
    if last == "FROM" and token is not None and kind == "TEXT" and set(token) & set("./*"):
        return A_FILE
    if word == "WHERE" and place.is_behind("GROUP", "HAVING"):
        return "WHERE stands before GROUP BY and HAVING"
    if word in ("LEFT", "RIGHT") and place.word_after in FOREIGN_JOINS:
        return FOREIGN_JOINS[place.word_after]
    if place.word_before(2) == "INTERVAL" and last_kind == "IDENT" and word.removesuffix("S").lower() in _UNITS:
        return f"write INTERVAL ({place.before()}) {word}"
    if last == "INTERVAL" and kind == "NUMBER":
        return f"{_UNIT_HINT}, and beside a TIMESTAMP or DATE MONTHS, QUARTERS and YEARS"
    if last_kind == "IS" and kind in ("NUMBER", "TEXT"):
        return "values are compared by =, or where NULL is equal to NULL by IS NOT DISTINCT FROM"
    if last_kind == "IN" and kind != "LPAR":
        return "the values stand in parentheses: x IN (1, 2)"
    return ""


def _in_statements(place: Place) -> str:
    """In declarations, and where a query reads nothing."""
    word, expected = place.word, place.expected
    if place.at == 0 and word == "ON":
        return "rows that look others up as they come are a join: SELECT RSTREAM(..) FROM S [NOW] JOIN W ON .."
    if place.declares and word in ("NOT", "NULL") and "RPAR" in expected:
        return "any column may be NULL: a column is a name and a type"
    if place.declares and place.kind_before() == "LPAR" and word in RESERVED and "IDENT" in expected:
        return f"{word} is a reserved word; a column of that name stands in backquotes: `{place.token}`"
    if place.declares and word == "INTO" and "AS" in expected:
        return _ANSWERS
    if place.statement == "UPDATE" and place.kind == "DOT" and place.expected == {"EQUAL"}:
        return f"a column is set by its name alone: SET {place.tokens[place.at + 1]} = .." if place.word_after else ""
    if place.statement == "ALTER" and place.kind_before(2) == "STREAM" and place.token is not None:
        return _other_columns(place)
    if place.statement == "DELETE" and place.word_before() == "USING":
        return "the other relation stands in the condition: WHERE k IN (SELECT k FROM ..)"
    if place.statement == "EXPLAIN" and place.word_before() in ("DELETE", "UPDATE", "INSERT"):
        return "EXPLAIN shows the plan of a query; which rows are meant shows SELECT * FROM .. WHERE .."
    if place.statement in ("DELETE", "UPDATE") and place.token is None:
        return FOREIGN[place.statement]
    if place.statement == "UPDATE" and place.kind == "LPAR" and place.is_behind("SET"):
        return "each column has its value: SET a = 1, b = 2"
    if "FROM" in expected and not place.is_behind("FROM"):
        if place.is_behind("SELECT") and word in ("WHERE", "GROUP", "HAVING", "QUALIFY"):
            return f"without FROM there is one row, and no {word}: SELECT x FROM (SELECT 1 AS x) AS one WHERE x > 0"
        if place.token is None:
            return "a query reads something: SELECT .. FROM a stream, relation or view; one row by itself is SELECT 1"
    return ""


def _other_columns(place: Place) -> str:
    """A view that shows a stream as ALTER STREAM would have changed it."""
    stream, words = _named(place), [_bare(str(token)) for token in place.tokens[place.at : place.at + 5]]
    word, column = place.word, next((w for w in words[1:] if w.upper() not in ("COLUMN", "IF", "EXISTS")), "a")
    if word == "RENAME" and place.word_after == "TO":
        return f"CREATE VIEW {words[2] if len(words) > 2 else 'T'} AS SELECT * FROM {stream} gives it a second name"
    changes = {
        "DROP": f"EXCLUDE ({column})",
        "RENAME": f"RENAME ({column} AS {words[-1]})",
        **dict.fromkeys(("ALTER", "MODIFY", "CHANGE"), f"REPLACE (CAST({column} AS ..) AS {column})"),
    }
    if word in changes:
        return (
            f"a stream keeps its columns, a view shows others: CREATE VIEW v AS SELECT * {changes[word]} FROM {stream}"
        )
    return f"a stream stays as it was declared: DROP STREAM {stream}, and declare it again" if word == "SET" else ""


def _open_window(place: Place) -> int | None:
    """Where the bracket opened that is still open at the token, or None."""
    for i in range(place.at - 1, max(-1, place.at - 200), -1):
        if place.tokens[i].type == "RSQB":
            return None
        if place.tokens[i].type == "LSQB":
            return i
    return None


def _in_window(place: Place, window: int) -> str:
    """Within the bracket that opened there."""
    tokens, token, expected, word, kind = place.tokens, place.token, place.expected, place.word, place.kind
    first = tokens[window + 1].type if window + 1 < len(tokens) else ""
    if tokens[window - 1].upper() == "PATTERN":
        return TAKEN_FOR_NAMES["MATCH_RECOGNIZE"]
    if kind == "UNIT" and first == "ROWS":
        return "ROWS counts rows; for a length of time write [RANGE 10 SECONDS]"
    if first == "HOP" and "EVERY" in expected:
        return "say how often it moves: [HOP 5 MINUTES EVERY 1 MINUTE]"
    if first == "TUMBLE" and kind in ("SLIDE", "EVERY"):
        return "windows that overlap are [HOP 5 MINUTES EVERY 1 MINUTE]"
    if first == "NUMBER":
        return "say what the number counts: [ROWS 10] or [RANGE 10 SECONDS]"
    if kind == "NUMBER" and place.kind_before() == "UNIT":
        return "a length of time is one number and one unit: [RANGE 90 MINUTES]"
    if first == "SESSION" and word in ("BY", "ON", ","):
        return "the keys stand behind PARTITION BY: [SESSION 30 MINUTES PARTITION BY k]"
    if word == "ON":
        return "windows go by the instants of rows, which are those of the column of TIMESTAMP BY"
    if word == "PRECEDING":
        return "a window reaches back by itself: [RANGE 10 SECONDS], [ROWS 10]"
    if word == "LATEST":
        return "[PARTITION BY k ROWS 1] holds the latest row of each k"
    if word in _LONG_UNITS:
        return f"there are no units longer than a week; {_UNIT_HINT}"
    if kind == "UNBOUNDED" and place.at == window + 1:
        return "write [RANGE UNBOUNDED] or [ROWS UNBOUNDED]"
    if kind == "PARTITION" and first != "SESSION":
        return "the keys stand first: [PARTITION BY k ROWS 10]"
    if first == "PARTITION" and "ROWS" in expected:
        return "say how many rows of each key: [PARTITION BY k ROWS 10]"
    if word == "INTERVAL" or kind == "TEXT":
        return "a length of time is a bare number and a unit: [RANGE 10 SECONDS]"
    if kind == "MINUS":
        return "the size of a window is positive"
    if kind == "IDENT" and "UNIT" in expected:
        near = difflib.get_close_matches(word[:40], ["SECONDS", "MINUTES", "MILLISECONDS", "HOURS", "DAYS", "WEEKS"], 1)
        return f"did you mean {near[0]}? {_UNIT_HINT}" if near else _UNIT_HINT
    if kind == "IDENT" and word in ("SECOND", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS"):
        return "the number stands before its unit: [RANGE 10 SECONDS]"
    is_over = token is None or word in RESERVED or kind not in _IN_A_WINDOW
    if "RSQB" in expected and is_over:
        return 'the window is not closed: "]" is missing'
    return _WINDOW_FORMS


def _unclosed(place: Place) -> str:
    """A parenthesis that is still open where ")" could stand."""
    if "RPAR" not in place.expected:
        return ""
    open_ = sum((t.type == "LPAR") - (t.type == "RPAR") for t in place.tokens[: place.at])
    return 'a "(" before is not closed' if open_ > 0 else ""
