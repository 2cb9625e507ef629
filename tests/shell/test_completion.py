"""Completion: what is offered where, from the grammar and the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from minidsms.aggregates import AGGREGATES
from minidsms.cql.functions import CALLED
from minidsms.shell.command_completion import complete_command
from minidsms.shell.completion import complete
from minidsms.shell.names import Names
from tests.shell.sessions import DECLARATIONS, session_of


@pytest.fixture(scope="module")
def names() -> Names:
    session, _ = session_of(
        f"{DECLARATIONS} CREATE VIEW Fast AS SELECT car, speed * 2 AS twice FROM Pos [RANGE 9];"
        "CREATE QUERY slow AS SELECT car FROM Pos;"
    )
    return Names(session.db)


def offered(names: Names, before: str, after: str = "", is_asked: bool = False) -> list[str]:
    return [c.text for c in complete(before, after, names, lambda path: True, is_asked)]


def test_behind_an_opened_bracket_stand_the_windows(names: Names) -> None:
    found = offered(names, "SELECT * FROM Pos [")
    assert "RANGE 30 SECONDS]" in found and "PARTITION BY " in found and "NOW]" in found
    assert offered(names, "SELECT * FROM Pos [ro") == ["rows 100]"]


def test_behind_select_stand_the_columns_of_the_tables_that_from_names(names: Names) -> None:
    assert offered(names, "SELECT ", " FROM Roads")[:2] == ["road", "speed_limit"]
    assert "speed_limit" not in offered(names, "SELECT ", " FROM Pos")


def test_behind_select_stand_all_columns_while_there_is_no_from(names: Names) -> None:
    assert {"car", "speed_limit", "twice"} <= set(offered(names, "SELECT "))


def test_columns_of_an_alias_stand_behind_its_dot(names: Names) -> None:
    assert offered(names, "SELECT P.", " FROM Pos [NOW] AS P") == ["at", "car", "road", "speed"]
    assert offered(names, "SELECT * FROM Fast F WHERE F.") == ["car", "twice"]


def test_tables_stand_behind_from_and_join(names: Names) -> None:
    for before in ("SELECT * FROM ", "SELECT * FROM Pos [NOW] JOIN ", "SELECT * FROM Pos, "):
        assert offered(names, before, is_asked=True)[:3] == ["Pos", "Roads", "Fast"]


def test_changes_of_rows_have_what_they_may_change_and_its_columns(names: Names) -> None:
    assert offered(names, "UPDATE ") == offered(names, "DELETE FROM ") == ["Roads"]
    assert offered(names, "INSERT INTO ") == ["Pos", "Roads"]
    assert offered(names, "UPDATE Roads SET ") == ["road", "speed_limit"]
    assert offered(names, "UPDATE Roads SET road = 'x', s") == ["speed_limit"]
    assert offered(names, "UPDATE Roads r SET speed_limit = sp")[:1] == ["speed_limit"]
    assert "speed_limit" in offered(names, "UPDATE Roads SET speed_limit = 1 WHERE ")
    assert offered(names, "UPDATE Roads AS r SET speed_limit = r.") == ["road", "speed_limit"]
    assert offered(names, "DELETE FROM Roads WHERE s")[:1] == ["speed_limit"]


def test_keywords_are_those_the_grammar_allows_next(names: Names) -> None:
    assert offered(names, "SELECT car F") == ["FROM"]
    assert offered(names, "SELECT car FROM Pos G") == ["GROUP BY"]
    assert offered(names, "SELECT car FROM Pos GROUP BY car H") == ["HAVING"]
    assert offered(names, "SELECT car W") == []
    assert "INTO" in offered(names, "CREATE QUERY x AS SELECT car FROM Pos I")
    assert "INTO" not in offered(names, "SELECT car FROM Pos I")


def test_keywords_come_in_the_letters_in_which_they_were_begun(names: Names) -> None:
    assert offered(names, "sel") == ["select"]
    assert offered(names, "SEL") == ["SELECT"]


def test_units_follow_numbers(names: Names) -> None:
    assert offered(names, "SELECT * FROM Pos [RANGE 30 s") == ["seconds", "slide"]


def test_functions_are_offered_once_something_is_typed(names: Names) -> None:
    assert "avg(" in offered(names, "SELECT a", " FROM Pos")
    assert not any(text.startswith("in(") for text in offered(names, "SELECT i", " FROM Pos"))


def test_declarations_have_types_clauses_and_their_own_columns(names: Names) -> None:
    assert offered(names, "CREATE STREAM X (a I") == ["INTEGER", "INTERVAL"]
    assert offered(names, "CREATE STREAM X (a INTEGER) T") == ["TIMESTAMP BY"]
    assert offered(names, "CREATE STREAM X (a INTEGER, b TEXT) TIMESTAMP BY ") == ["a", "b"]


def test_settings_their_values_and_names_of_what_is_there(names: Names) -> None:
    assert offered(names, "SET sch") == ["scheduler"]
    assert "chain" in offered(names, "SET scheduler = ")
    assert offered(names, "DROP QUERY ") == ["slow", "IF"]
    assert offered(names, "DROP RELATION ") == ["Roads", "IF"]
    assert offered(names, "EXPLAIN s") == ["slow", "select"]
    assert "SETTINGS" in offered(names, "SHOW ")
    assert offered(names, "SHOW CONS") == ["CONSTRAINTS"]


def test_nothing_is_offered_unasked_where_much_may_follow(names: Names) -> None:
    assert offered(names, "SELECT car FROM Pos ") == []
    assert "WHERE" in offered(names, "SELECT car FROM Pos ", is_asked=True)


def test_files_stand_in_the_quotes_of_from_and_into(
    names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cars.csv").touch()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    assert offered(names, "CREATE STREAM X (a INTEGER) FROM '") == ["data/", "cars.csv'"]
    assert offered(names, "CREATE QUERY x AS SELECT car FROM Pos INTO 'c") == ["cars.csv'"]
    assert offered(names, "SELECT car FROM Pos WHERE road = 'c") == []
    assert [c.text for c in complete("CREATE STREAM X (a INTEGER) FROM '", "", names, lambda path: False)] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (".fe", [".feed"]),
        (".feed ", ["Pos", "Roads"]),
        (".feed Pos ", ["FROM"]),
        (".feed Pos FROM 'x.csv' ", ["SPEED", "FORMAT"]),
        (".feed Pos FROM 'x.csv', ", ["Pos", "Roads"]),
        (".watch ", ["slow"]),
        (".watch slow t", ["table", "top"]),
        (".mode c", ["changelog", "count", "csv"]),
        (".help win", ["windows"]),
        (".set scheduler c", ["chain"]),
        (".nothing ", []),
    ],
)
def test_commands_say_what_may_stand_behind_them(names: Names, line: str, expected: list[str]) -> None:
    assert [c.text for c in complete_command(line, names, lambda path: True)] == expected


def test_every_function_and_aggregate_is_offered_by_its_first_letters(names: Names) -> None:
    known = {*CALLED, *AGGREGATES}
    for begun in {name[:2] for name in known}:
        found = {text.lower().split("(")[0] for text in offered(names, f"SELECT {begun}", " FROM Pos [NOW]")}
        assert {name for name in known if name.startswith(begun)} <= found
