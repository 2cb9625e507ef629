"""The shell as a person drives it, through a pseudo-terminal: keys go in, and what matters is what stands there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import termios
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from minidsms.shell.help_topics import TOPICS
from tests.shell.sessions import CARS, DECLARATIONS, ROADS

pytest.importorskip("pyte")
pytest.importorskip("pty")

from tests.shell.terminal import RIGHT, UP, Terminal

TRAFFIC = "at,car,road,speed\n" + "".join(
    f"2026-01-01 00:{i // 60:02d}:{i % 60:02d},{i % 5},A1,{40 + i % 7}\n" for i in range(3600)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shell")
    (folder / "cars.csv").write_text(CARS)
    (folder / "roads.csv").write_text(ROADS)
    (folder / "traffic.csv").write_text(TRAFFIC)
    (folder / "evil.csv").write_text("t,a\n1,\x1b[2J\x1b]0;gone\x07<b>\n")
    (folder / "long.cql").write_text("SHOW SETTINGS;\n" * 20_000)
    return folder


@pytest.fixture(scope="module")
def shell(folder: Path) -> Iterator[Terminal]:
    """A shell that several tests use one after the other."""
    with begun(folder) as terminal:
        yield terminal


@pytest.fixture
def terminal(shell: Terminal) -> Terminal:
    """The same, with nothing declared, typed, watched or on the screen."""
    shell.resize(30, 110)
    shell.send("\x03" * 4)
    shell.line(".mode changelog")
    shell.line(".open")
    shell.wait("an empty connection")
    shell.send("\x0c")
    shell.wait(lambda: "an empty connection" not in shell.text and shell.prompt == "cql>")
    shell.screen.history.top.clear()
    return shell


@pytest.fixture
def declared(terminal: Terminal) -> Terminal:
    """The same, with the declarations of the tests."""
    for statement in DECLARATIONS.strip().split("\n"):
        terminal.line(statement)
    terminal.line(".feed Roads FROM 'roads.csv'")
    terminal.wait("fed 2 rows into Roads")
    return terminal


def begun(folder: Path, *arguments: str, **variables: str) -> Terminal:
    """A shell that has loaded its engine."""
    terminal = Terminal(folder, *arguments, **variables)
    terminal.wait(".help start: the first five minutes")
    return terminal


def latest(terminal: Terminal) -> str:
    """The instant of the last change on the screen."""
    return max((line[4:23] for line in terminal.lines if line.startswith("q1  2026")), default="")


def test_it_greets_and_leaves(folder: Path) -> None:
    with begun(folder) as terminal:
        assert ".help start" in terminal.lines[1] and terminal.prompt == "cql>"
        terminal.line(".quit")
        assert terminal.wait_end() == 0
    with begun(folder) as terminal:
        terminal.send("\x04")
        assert terminal.wait_end() == 0


def test_what_help_start_says_makes_a_windowed_join_over_csv_files(terminal: Terminal) -> None:
    terminal.resize(60, 110)
    terminal.line(".help start")
    terminal.wait("No file at hand?")
    for line in TOPICS["start"][1].split("\n"):
        if line.startswith("     "):
            terminal.line(line.strip())
    terminal.wait("q1 at 2026-01-01 00:00:40")
    terminal.wait("B7          1    30           70")


def test_enter_runs_what_is_complete_and_else_begins_a_line(declared: Terminal) -> None:
    declared.line("SELECT car")
    declared.wait("...")
    declared.line("FROM Pos;")
    declared.wait("q1: instant, sign, car")


def test_an_error_shows_the_place_and_the_shell_goes_on(declared: Terminal) -> None:
    declared.line("SELECT caar FROM Pos;")
    declared.wait('did you mean "car"?')
    declared.wait("^^^^")
    declared.line("DESCRIBE Roads;")
    declared.wait("speed_limit  FLOAT")


def test_windows_are_offered_behind_the_bracket_and_taken_with_tab(declared: Terminal) -> None:
    declared.send("SELECT car FROM Pos [")
    declared.wait("the last 30 seconds")
    declared.wait("PARTITION BY")
    declared.send("no\t")
    declared.wait("cql> SELECT car FROM Pos [now]")
    declared.send(";\r")
    declared.wait("q1: instant, sign, car")


def test_columns_are_offered_behind_select(declared: Terminal) -> None:
    declared.send("SELECT sp")
    declared.wait("Pos FLOAT")
    declared.wait("speed_limit")


def test_results_come_above_the_prompt_while_something_is_typed(declared: Terminal) -> None:
    declared.line("SELECT car, speed FROM Pos;")
    declared.line(".feed Pos FROM 'traffic.csv' SPEED 20")
    declared.wait(lambda: latest(declared) >= "2026-01-01 00:00:03")
    declared.send("SELECT half a stat")
    declared.wait(lambda: latest(declared) >= "2026-01-01 00:00:30")
    declared.wait(lambda: declared.prompt == "cql> SELECT half a stat")
    declared.send("ement")
    declared.wait(lambda: latest(declared) >= "2026-01-01 00:01:00")
    declared.wait(lambda: declared.prompt == "cql> SELECT half a statement")
    above = declared.lines[: declared.lines.index(declared.prompt)]
    assert any(line.startswith("q1  2026-01-01 00:") for line in above)


def test_ctrl_c_stops_the_watch_then_clears_the_line_then_stops_the_feed_but_never_the_shell(
    declared: Terminal,
) -> None:
    declared.line("SELECT car, speed FROM Pos;")
    declared.line(".feed Pos FROM 'traffic.csv' SPEED 5")
    declared.wait(lambda: latest(declared) >= "2026-01-01 00:00:01")
    declared.send("half")
    declared.wait("cql> half")
    declared.send("\x03")
    declared.wait("no longer watched: q1")
    declared.wait(lambda: declared.prompt == "cql> half")
    declared.send("\x03")
    declared.wait(lambda: declared.prompt == "cql>")
    declared.wait(lambda: "%" in declared.lines[-1])
    declared.send("\x03")
    declared.wait("the rest is left unread")
    declared.line(".queries")
    declared.wait("running")


def test_a_table_is_redrawn_in_place(declared: Terminal) -> None:
    declared.line(".mode table")
    declared.line("SELECT road, COUNT(*) AS n FROM Pos [RANGE 1 MINUTE] GROUP BY road;")
    declared.line(".feed Pos FROM 'traffic.csv' SPEED 40")
    declared.wait("A1    60")

    def headings() -> list[str]:  # of tables with rows: one without may be drawn while the line before is just ending
        return [line for line in declared.everything.split("\n") if re.match(r"q1 at .* \([1-9]", line)]

    first = headings()
    declared.wait(lambda: len(headings()) == 1 and headings() != first)  # what is read may end in the midst of drawing


def test_the_toolbar_tells_rates_lag_and_the_feed(declared: Terminal) -> None:
    declared.line("CREATE QUERY all_cars AS SELECT car FROM Pos;")
    declared.line(".feed Pos FROM 'traffic.csv' SPEED 3")
    declared.wait(lambda: re.search(r"in [1-9][0-9.]*/s.* lag .* 3x", declared.lines[-1]) is not None)


def test_it_follows_the_size_of_the_terminal(declared: Terminal) -> None:
    declared.line(".mode table")
    declared.line("SELECT car, road, speed, speed * 2 AS twice FROM Pos;")
    declared.line(".feed Pos FROM 'cars.csv'")
    declared.wait("2026-01-01 00:00:40")
    for rows, columns in ((12, 50), (40, 140), (24, 80)):
        declared.resize(rows, columns)
        declared.send("x")
        declared.wait(lambda: declared.prompt.startswith("cql> x"))
        assert all(len(line) <= columns for line in declared.lines)
        declared.send("\x7f")
    declared.send("\x03")
    declared.wait("no longer watched")


def test_history_comes_back_and_is_searched_also_by_the_next_shell(folder: Path) -> None:
    with begun(folder) as terminal:
        terminal.line("SHOW SETTINGS;")
        terminal.wait("seed of everything random")
        terminal.line("SHOW VIEWS;")
        terminal.wait("view  query")
        terminal.send(UP + UP)
        terminal.wait("cql> SHOW SETTINGS;")
        terminal.line("\x03.feed S FROM 'smb://ann:secret@host'")
        terminal.wait("error: ")
        terminal.send(UP)  # it comes back as it was written
        terminal.wait(lambda: terminal.prompt.endswith("secret@host'"))
        terminal.line("\x03.quit")
        assert terminal.wait_end() == 0
    with begun(folder) as terminal:
        terminal.send("\x12settin")
        terminal.wait("SHOW SETTINGS;")
        terminal.send("\r")
        terminal.wait(
            lambda: terminal.prompt.endswith("SHOW SETTINGS;") or "seed of everything random" in terminal.text
        )
    kept = folder / ".local/state/minidsms/history"
    assert "SHOW VIEWS;" in kept.read_text() and "smb" not in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_suggestions_from_the_history_are_taken_with_the_right_arrow(terminal: Terminal) -> None:
    terminal.line("SHOW SETTINGS;")
    terminal.wait("seed of everything random")
    terminal.wait(lambda: terminal.prompt == "cql>")
    for _ in range(10):
        # A suggestion is looked for when a key is pressed; the history may not hold the line yet: then type again.
        terminal.send("\x15SHOW SE")
        with contextlib.suppress(AssertionError):
            terminal.wait(lambda: terminal.prompt == "cql> SHOW SETTINGS;", 5.0)
            break
    terminal.wait(lambda: terminal.prompt == "cql> SHOW SETTINGS;", 1.0)
    # What is answered scrolls the line away: it is looked at before it is sent.
    terminal.send(RIGHT + " -- again")
    terminal.wait(lambda: terminal.prompt == "cql> SHOW SETTINGS; -- again")


def test_vi_keys_edit_as_vi_does(folder: Path) -> None:
    with begun(folder, MINIDSMS_KEYS="vi") as terminal:
        terminal.send("SHOW SETTINGSS;")
        terminal.wait("SETTINGSS;")
        terminal.send("\x1b")
        terminal.send("hx")
        terminal.wait(lambda: terminal.prompt == "cql> SHOW SETTINGS;")
        terminal.send("\r")
        terminal.wait("seed of everything random")


def test_what_is_typed_is_coloured_by_the_grammar(terminal: Terminal) -> None:
    terminal.send("SELECT range FROM S [RANGE 5]")
    terminal.wait("[RANGE 5]")
    row = terminal.lines.index(terminal.prompt)

    def is_bold(word: str) -> bool:
        return bool(terminal.screen.buffer[row][terminal.prompt.find(word)].bold)

    terminal.wait(lambda: is_bold("SELECT") and is_bold("RANGE") and not is_bold("range"))


def test_the_plan_is_drawn_live_until_ctrl_c(declared: Terminal) -> None:
    declared.line("CREATE QUERY n AS SELECT COUNT(*) FROM Pos [RANGE 1 MINUTE];")
    declared.line(".plan n")
    declared.wait("Aggregate")
    declared.line(".feed Pos FROM 'traffic.csv'")
    declared.wait("3,600")
    declared.send("\x03")
    declared.wait(lambda: declared.text.count("Aggregate") == 1 and declared.prompt == "cql>")


def test_data_cannot_drive_the_terminal(terminal: Terminal) -> None:
    terminal.line("CREATE STREAM S (t INTEGER, a TEXT) TIMESTAMP BY t;")
    terminal.line("SELECT a FROM S;")
    for mode in ("changelog", "table", "csv"):
        terminal.line(f".mode {mode}")
    terminal.line(".feed S FROM 'evil.csv'")
    terminal.wait("\\x1b[2J\\x1b]0;gone\\x07<b>")
    assert "TIMESTAMP BY t;" in terminal.text and terminal.screen.title != "gone"


def test_a_signal_while_a_statement_runs_ends_the_statement_alone(terminal: Terminal) -> None:
    terminal.line(".read long.cql")
    terminal.wait("seed of everything random")
    terminal.send("\x03")
    terminal.wait("interrupted")
    terminal.line("SHOW VIEWS;")
    terminal.wait("view  query")


_TRIES = 20
"""Of a step that takes long, where those before it may."""
_LONG = (
    "SELECT COUNT(*) FROM Pos [RANGE 1 HOUR] a, Pos [RANGE 1 HOUR] b, Pos [RANGE 1 HOUR] c "
    "WHERE a.speed < b.speed AND b.speed < c.speed;"
)


def test_a_statement_that_goes_on_is_told_how_it_ends(terminal: Terminal) -> None:
    terminal.line("SELECT 1 + 2 AS three")
    terminal.wait("; ends the statement, Ctrl-C drops it")
    terminal.line(";")
    terminal.wait(lambda: terminal.text.count("three") > 1 and "ends the statement" not in terminal.text)


def test_a_step_that_takes_long_is_told_and_ctrl_c_ends_its_query(declared: Terminal) -> None:
    declared.line(_LONG)
    declared.wait("instant, sign")
    feeds = 0
    while "the query at work is told to end" not in declared.everything:
        # A step before the long one may take long, too: then the feed ends behind that, and the query reads another.
        declared.line(".feed Pos FROM 'traffic.csv'")
        feeds += 1
        assert feeds < _TRIES, "no feed reaches the step that takes long"
        has_ended = partial(_has_ended, declared, feeds)
        for told in ("at work for", "Ctrl-C stops the feed", "Ctrl-C ends the query"):
            declared.wait(partial(_is_told_or, declared, told, has_ended))
            declared.send("\x03")
        declared.wait(has_ended)
    declared.line("SHOW VIEWS;")
    declared.wait("view  query")


def _has_ended(terminal: Terminal, feeds: int) -> bool:
    """So many feeds have been stopped."""
    return terminal.everything.count("the rest is left unread") == feeds


def _is_told_or(terminal: Terminal, told: str, or_: Callable[[], bool]) -> bool:
    return told in terminal.text or or_()


def test_a_shell_that_is_left_amid_such_a_step_waits_until_ctrl_c_ends_it(folder: Path) -> None:
    has_told = False
    for _ in range(_TRIES):
        with begun(folder) as terminal:
            terminal.line(DECLARATIONS.strip().replace("\n", " "))
            terminal.line(_LONG)
            terminal.wait("instant, sign")
            terminal.line(".feed Pos FROM 'traffic.csv'")
            terminal.wait("at work for")
            terminal.line(".quit")
            # A step before the long one may take long, too: then the shell ends behind that, and nothing is to be told.
            terminal.wait(lambda: "Ctrl-C ends its query" in terminal.text or terminal.has_ended)
            has_told = not terminal.has_ended
            terminal.send("\x03")
            assert terminal.wait_end() == 0
        if has_told:
            break
    assert has_told


def test_a_shell_whose_step_writes_to_a_pipe_that_nobody_reads_is_left_by_ctrl_c(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    room = fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
    (folder / "many.csv").write_text("ts,v\n" + "".join(f"{i},{i}\n" for i in range(50_000)))
    with begun(folder) as terminal:
        terminal.line("CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts;")
        terminal.line("CREATE QUERY q AS SELECT v FROM S INTO 'pipe' FORMAT csv;")
        terminal.line(".feed S FROM 'many.csv'")
        terminal.wait(lambda: _waiting(reader) > room - 4096)  # it is full, but for the end of a page
        terminal.line(".quit")
        terminal.wait("Ctrl-C ends its query")
        terminal.send("\x03")
        terminal.wait("Ctrl-C leaves it")
        terminal.send("\x03")
        assert terminal.wait_end() == 130
    os.close(reader)


def _waiting(pipe: int) -> int:
    """How many bytes wait in a pipe."""
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))
    return int(count)


def test_a_low_terminal_keeps_the_prompt_and_one_that_cannot_draw_answers_too(declared: Terminal, folder: Path) -> None:
    declared.line(".mode table")
    declared.line("SELECT car FROM Pos;")
    declared.resize(6, 60)
    declared.line(".feed Pos FROM 'cars.csv'")
    declared.wait("fed 3 rows into Pos")
    declared.send("typed")
    declared.wait(lambda: declared.prompt == "cql> typed")
    with Terminal(folder, TERM="dumb") as plain:
        plain.wait("cql>")
        plain.line("SHOW VIEWS;")
        plain.wait("view  query")
