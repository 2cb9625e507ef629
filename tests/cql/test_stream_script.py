"""The scripts of the STREAM prototype, entry by entry."""

from __future__ import annotations

import pytest

from minidsms.cql import syntax as s
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse, parse_query
from minidsms.cql.stream_script import ScriptEntry, is_stream_script, parse_script
from minidsms.elements import Type

SCRIPT = """
# Two inputs

table : register stream S (A integer, B float,
                           C byte, D char(4));
source : data/S.dat

table: register relation R (A integer);
source: 'data/R with blanks.dat'

vquery : select A from S [Rows 5]
         where D = "a;b";   # up to here
vtable : register stream V (X integer);

Query : Istream(
  select * from V [Range 10]);
dest : out/q1
query : R except S;
"""


def test_a_script_gives_its_entries_in_order() -> None:
    entries = parse_script(SCRIPT)
    stream, relation = parse("CREATE STREAM S (A INTEGER, B FLOAT, C BYTE, D CHAR(4)); CREATE RELATION R (A INTEGER)")
    view = s.CreateView("V", parse_query("SELECT A FROM S [ROWS 5] WHERE D = 'a;b'"), ("X",), (Type.INTEGER,))
    assert isinstance(stream, s.CreateStream) and isinstance(relation, s.CreateRelation)
    assert entries == [
        ScriptEntry(stream, "data/S.dat", "stream"),
        ScriptEntry(relation, "data/R with blanks.dat", "relation"),
        ScriptEntry(view, None, "stream"),
        ScriptEntry(s.QueryStatement(parse_query("ISTREAM (SELECT * FROM V [RANGE 10])")), "out/q1"),
        ScriptEntry(s.QueryStatement(parse_query("R EXCEPT S"))),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SCRIPT, True),
        ("table:register stream S (A integer);", True),
        ("# about\n  QUERY : select * from S;", True),
        ("SELECT a FROM S", False),
        ("-- table : x\nCREATE STREAM S (a INTEGER)", False),
        ("# table : x", False),
        ("", False),
    ],
)
def test_a_script_is_told_from_cql_by_its_first_line(text: str, expected: bool) -> None:
    assert is_stream_script(text) is expected


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("source : x\n", "directly behind its table", (1, 1)),
        ("table : register stream S (A integer);\ndest : x", "directly behind its query", (2, 1)),
        ("query : select * from S;\n\nvtable : register stream V (A integer);", "directly behind its vquery", (3, 1)),
        ("vquery : select * from S;\nquery : select * from V;", "needs its vtable", (1, 1)),
        ("table : register stream S (A integer)\nsource : x", "does not end", (1, 38)),
        ("query : select * from S; select * from T;", "one statement", (1, 26)),
        ("query : register stream S (A integer);", "takes a query", (1, 9)),
        ("table : select * from S;", "declares a stream or a relation", (1, 9)),
        ("table : ;", "nothing stands behind table", (1, 1)),
        ("table : register stream S (A integer);\nsource :\n", "names no file", (2, 1)),
        ("query : select * from S;\ndest : x\nselect * from T;", "only the next entry", (3, 1)),
        ("# a script\nhello\nquery : select * from S;", "begins with table, source", (2, 1)),
        ("query : select *\n  form S;", 'unexpected "form"', (2, 3)),
    ],
)
def test_an_error_has_its_place_in_the_script(text: str, reason: str, position: tuple[int, int]) -> None:
    with pytest.raises(CqlError) as caught:
        parse_script(text)
    assert reason in caught.value.reason
    assert caught.value.position == position


def test_an_empty_script_has_no_entries() -> None:
    assert parse_script("# nothing\n\n") == []
