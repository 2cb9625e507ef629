"""Whatever is typed, the shell answers with a result or with an Error, and completion with candidates."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidsms.cql.errors import Error
from minidsms.shell.command_completion import complete_command
from minidsms.shell.commands import ALIASES, COMMANDS
from minidsms.shell.completion import complete
from minidsms.shell.names import Names
from minidsms.shell.session import Quit
from tests.shell.sessions import CARS, DECLARATIONS, finish, session_of

WORDS = (
    *("Pos", "Roads", "slow", "q1", "FROM", "'cars.csv'", "'", '"x"', ",", "SPEED", "60", "0", "-1", "+5s", "+", "BY"),
    *(
        "mean",
        "top",
        "table",
        "count",
        "csv",
        "changelog",
        "ASC",
        "on",
        "off",
        "once",
        "ANALYZE",
        "SELECT",
        "batch_size",
    ),
    *("=", "1e9", "99999999999999999999", "2026-01-01T00:00:00", "FORMAT", "json", "stop", ";", "\0", "\x1b[31m", "ü"),
    *("out.txt", ".", "..", "session.cql", "CREATE", "STREAM", "(", ")", "[", "]", "RANGE", "windows", "--", "`"),
)
LINES = st.tuples(
    st.sampled_from([*COMMANDS, *ALIASES, "", "nothing"]), st.lists(st.sampled_from(WORDS), max_size=6)
).map(lambda line: f".{line[0]} {' '.join(line[1])}")


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("typed")
    (folder / "cars.csv").write_text(CARS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


@settings(max_examples=60)
@given(st.lists(LINES, max_size=8))
def test_commands_raise_nothing_but_errors(lines: list[str]) -> None:
    session, screen = session_of(f"{DECLARATIONS} CREATE QUERY slow AS SELECT car, speed FROM Pos [ROWS 2];")
    for line in lines:
        if line.startswith((".demo", ".limit 99999")):
            continue
        with contextlib.suppress(Error, Quit):
            session.run_text(line)
        session.stop_feeds()
        with contextlib.suppress(Error):
            finish(session)
            session.watches.pictures(10)
    assert all("\x1b" not in text for _, text in screen.said)
    session.close()


@pytest.fixture(scope="module")
def names() -> Names:
    session, _ = session_of(f"{DECLARATIONS} CREATE QUERY slow AS SELECT car FROM Pos;")
    return Names(session.db)


@settings(max_examples=200)
@given(typed=st.lists(st.sampled_from(WORDS), max_size=10).map(" ".join), cut=st.integers(0, 30))
def test_completion_of_anything_is_no_error(names: Names, typed: str, cut: int) -> None:
    for before in (typed[: len(typed) - cut], f"SELECT {typed}", f"CREATE STREAM {typed}"):
        for candidate in complete(before, typed[-cut:], names, lambda path: True, is_asked=True):
            assert candidate.length <= len(before)
    for command in COMMANDS:
        complete_command(f".{command} {typed}", names, lambda path: True)
