"""Whatever the text, the parser gives a tree or a CqlError that can be shown."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse, parse_query
from minidsms.cql.printer import print_statement
from minidsms.cql.stream_script import is_stream_script, parse_script
from minidsms.cql.words import QUOTED_WORDS

VALID = [
    "SELECT DISTINCT a, S.b AS c, S.*, COUNT(*) FROM S [RANGE 10 DAYS SLIDE 2 DAYS] x, R WHERE a IN (1, 2) GROUP BY a",
    "ISTREAM (SELECT a FROM (S [PARTITION BY a ROWS 1 RANGE 5]) AS l JOIN T USING (a) LEFT JOIN U ON l.a = U.a)",
    "SELECT CASE WHEN a IS NOT NULL THEN -1.5 ELSE CAST(b AS CHAR(3)) END FROM S WHERE EXISTS (SELECT * FROM R [NOW])",
    "(SELECT a FROM S UNION ALL R) INTERSECT SELECT c FROM U HAVING a BETWEEN 1 AND 2 OR b LIKE 'x' ESCAPE '!'",
    "CREATE STREAM S (a INTEGER, b TEXT) TIMESTAMP BY a SLACK 10 DAYS LATE DROP KEY (a) FROM 'x' FORMAT csv ARCHIVE ''",
    "CREATE QUERY q AS SELECT a FROM S INTO 'x' FORMAT csv WITH HISTORY BACKFILL FROM 'y'; SET x = on; SHOW STREAMS",
    "SELECT a FROM S WHERE (a, b) NOT IN (SELECT * FROM R) AND a >= ALL (SELECT a FROM R) OR INTERVAL '1' DAY > a",
]
SCRIPT = """# a script
table : register stream S (A integer, B char(4));
source : s.dat
vquery : select A from S [Rows 5];
vtable : register relation V (A integer);
query : R union S;
dest : out
"""
WORDS = sorted(
    QUOTED_WORDS | {"a", "S", "ROWS", "RANGE", "NOW", "SLIDE", "PARTITION", "BY", "SECONDS", "SLACK", "CREATE"}
)
WORDS += [
    "SET",
    "SHOW",
    "DROP",
    "EXPLAIN",
    "STREAM",
    "QUERY",
    "VIEW",
    "INTERVAL",
    "1",
    "2.5",
    "10,000",
    "'x'",
    '"y"',
    "`z`",
]
WORDS += ["ORDER", "LIMIT", "UNBOUNDED", "FORMAT", "ESCAPE", "TIMESTAMP", "WITH", "HISTORY", "ALTER", "PIN"]
SYMBOLS = [*"()[],.;*+-/%=<>!|&:#'\"`{}\\\n\x00", "||", "<>", "==", "--", "<="]


def outcome_is_a_tree_or_a_cql_error(text: str) -> None:
    for read in (parse, parse_query, parse_script):
        try:
            read(text)
        except CqlError as error:
            assert str(error).startswith("error: ")
            assert error.position is not None or not text
    is_stream_script(text)


@given(st.text())
@settings(deadline=None)
def test_any_text_gives_a_tree_or_a_cql_error(text: str) -> None:
    outcome_is_a_tree_or_a_cql_error(text)


@given(st.lists(st.sampled_from(WORDS + SYMBOLS), max_size=40), st.sampled_from([" ", ""]))
@settings(max_examples=150, deadline=None)
def test_any_soup_of_tokens_gives_a_tree_or_a_cql_error(words: list[str], between: str) -> None:
    outcome_is_a_tree_or_a_cql_error(between.join(words))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid text with pieces taken out, doubled, replaced or swapped."""
    text = draw(st.sampled_from([*VALID, SCRIPT]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(st.sampled_from(["", text[start:stop] * 2, text[start:stop][::-1], *WORDS, *SYMBOLS]))
        text = text[:start] + piece + text[stop:]
    return text


@given(mutated())
@settings(max_examples=200, deadline=None)
def test_a_mutated_text_gives_a_tree_or_a_cql_error(text: str) -> None:
    outcome_is_a_tree_or_a_cql_error(text)


@given(mutated())
@settings(max_examples=100, deadline=None)
def test_what_is_read_can_be_printed_and_read_again(text: str) -> None:
    try:
        statements = parse(text)
    except CqlError:
        return
    again = parse(";\n".join(print_statement(s) for s in statements))
    assert repr(again) == repr(statements)
