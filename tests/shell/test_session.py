"""The session behind both shells: statements, commands, watches, feeds, without any terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minidsms.cql.errors import CqlError, Error
from minidsms.shell.commands import ALIASES, COMMANDS
from minidsms.shell.session import Quit
from tests.shell.sessions import CARS, DECLARATIONS, JOIN, ROADS, Clock, finish, session_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cars.csv").write_text(CARS)
    (tmp_path / "roads.csv").write_text(ROADS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FEED = ".feed Pos FROM 'cars.csv'"
SPEEDS = "SELECT car, speed FROM Pos;"
COUNTS = "SELECT road, COUNT(*) AS n FROM Pos [RANGE 30 SECONDS] GROUP BY road;"


# ------------------------------------------------------------------------------------------------ what is watched


def test_a_query_by_itself_is_watched_and_one_with_a_name_only_when_asked_for() -> None:
    session, screen = session_of(f"{DECLARATIONS}{SPEEDS} CREATE QUERY named AS SELECT car FROM Pos;{FEED}")
    finish(session)
    assert screen.take("result").splitlines() == [
        "q1: instant, sign, car, speed",
        "q1  2026-01-01 00:00:01  +    1     50",
        "q1  2026-01-01 00:00:02  +    2     70",
        "q1  2026-01-01 00:00:40  +    3     30",
    ]
    session.run_text(".watch named")
    session.watches.tell()
    assert screen.take("result").count("named  2026") == 3


def test_a_watch_begins_with_the_last_changes_nobody_has_seen() -> None:
    rows = "".join(f"{i},{i}\n" for i in range(100))
    Path("s.csv").write_text("t,a\n" + rows)
    text = (
        "CREATE STREAM S (t INTEGER, a INTEGER) TIMESTAMP BY t; CREATE QUERY q AS SELECT a FROM S;.feed S FROM 's.csv'"
    )
    session, screen = session_of(text.replace(";.", ";\n."))
    finish(session)
    session.run_text(".watch q")
    session.watches.tell()
    lines = screen.take("result").splitlines()
    assert lines[1] == "q  .. 80 more changes" and lines[2].split()[-1] == "80" and len(lines) == 22


def test_of_a_flood_the_first_and_the_last_changes_are_printed() -> None:
    Path("s.csv").write_text("t,a\n" + "".join(f"{i},{i}\n" for i in range(1000)))
    session, screen = session_of("CREATE STREAM S (t INTEGER, a INTEGER) TIMESTAMP BY t; SELECT a FROM S;\n.limit 4")
    session.run_text(".feed S FROM 's.csv'")
    finish(session)
    shown = [line.split()[-1] for line in screen.take("result").splitlines()]
    assert shown == ["0", "1", "changes", "998", "999"]


def test_unwatch_lets_the_query_run_on() -> None:
    session, screen = session_of(f"{DECLARATIONS}{SPEEDS}\n.unwatch q1\n{FEED}")
    finish(session)
    assert screen.take("result") == "" and session.db.queries["q1"].results == 3
    with pytest.raises(Error, match="nothing is watched"):
        session.run_text(".unwatch q1")


def test_a_dropped_query_is_watched_no_more() -> None:
    session, _ = session_of(f"{DECLARATIONS}{SPEEDS} DROP QUERY q1;")
    assert session.watches.names() == []


def test_what_goes_into_a_file_cannot_be_watched() -> None:
    session, _ = session_of(f"{DECLARATIONS} CREATE QUERY w AS SELECT car FROM Pos INTO 'w.csv';")
    with pytest.raises(Error, match=r"w\.csv"):
        session.run_text(".watch w")


def test_a_query_that_fails_says_so_once() -> None:
    session, screen = session_of(
        f"{DECLARATIONS} SELECT car / (car - 2) AS x, CAST(road AS INTEGER) AS y FROM Pos;{FEED}".replace(";.", ";\n.")
    )
    finish(session)
    finish(session)
    assert screen.take("error").count("query q1 stopped") == 1


# ---------------------------------------------------------------------------------------------------------- modes


def test_table_shows_the_relation_now_and_the_last_elements_of_a_stream() -> None:
    session, _ = session_of(f"{DECLARATIONS}.mode table\n{COUNTS}{SPEEDS}\n{FEED}")
    finish(session)
    relation, stream = session.watches.pictures(20)
    assert relation == ["q1 at 2026-01-01 00:00:40 (1 row)", "road  n", "----  -", "B7    1"]
    assert stream[0] == "q2 (3 elements)" and stream[-1] == "2026-01-01 00:00:40    3     30"


def test_a_picture_keeps_to_its_height() -> None:
    Path("s.csv").write_text("t,a\n" + "".join(f"{i},{i}\n" for i in range(100)))
    session, _ = session_of(
        "CREATE STREAM S (t INTEGER, a INTEGER) TIMESTAMP BY t;\n.mode table\nSELECT a FROM S [ROWS 50];\n"
        ".feed S FROM 's.csv'"
    )
    finish(session)
    (picture,) = session.watches.pictures(8)
    assert len(picture) == 8 and picture[-1] == ".. 46 more rows"


def test_top_shows_the_greatest_values_or_the_least_and_nulls_last() -> None:
    Path("s.csv").write_text("t,k,a\n1,x,3\n2,y,\n3,z,9\n4,w,5\n")
    session, _ = session_of(
        "CREATE STREAM S (t INTEGER, k TEXT, a INTEGER) TIMESTAMP BY t;\n.mode top 2 BY a\n"
        "SELECT k, a FROM S [ROWS 10]; SELECT k, a FROM S;\n.watch q2 top 3 BY a ASC\n.feed S FROM 's.csv'"
    )
    finish(session)
    greatest, least = session.watches.pictures(20)
    assert [line.split()[0] for line in greatest[3:]] == ["z", "w"]
    assert [line.split()[0] for line in least[3:]] == ["x", "w", "z"]


def test_top_refuses_a_column_that_is_not_there() -> None:
    session, _ = session_of(DECLARATIONS + COUNTS)
    with pytest.raises(Error, match='did you mean "road"'):
        session.run_text(".watch q1 top 3 BY roda")
    assert session.watches.names() == ["q1"]


def test_a_query_that_the_mode_does_not_fit_is_watched_as_a_changelog() -> None:
    session, screen = session_of(f"{DECLARATIONS}.mode top 3 BY n")
    session.run_text(SPEEDS)
    assert "mode changelog for q1" in screen.take("note") and session.watches.names() == ["q1"]


def test_count_counts_and_csv_and_jsonl_give_every_change() -> None:
    session, screen = session_of(
        f"{DECLARATIONS}{COUNTS}{COUNTS}{COUNTS}\n.watch q1 count\n.watch q2 csv\n.watch q3 jsonl\n{FEED}"
    )
    finish(session)
    assert session.watches.pictures(9) == [
        ["q1: 4 rows entered, 3 left, the last at 2026-01-01 00:00:40"],
    ]
    raw = screen.take("raw")
    assert raw.count(",A1,") == 6 and raw.startswith("_ts,_sign,road,n\n")
    assert [json.loads(line)["n"] for line in raw.splitlines() if line.startswith("{")] == [1, 1, 2, 2, 1, 1, 1]


def test_changing_the_mode_changes_what_is_watched_but_not_what_has_its_own() -> None:
    session, _ = session_of(f"{DECLARATIONS}{COUNTS}{COUNTS}\n.watch q2 count\n.mode table\n{FEED}")
    finish(session)
    pictures = session.watches.pictures(20)
    assert pictures[0][0].startswith("q1 at") and pictures[1][0].startswith("q2: ")


@pytest.mark.parametrize("wrong", [".mode tabel", ".mode top", ".mode top 3 BY", ".mode csv x", ".mode top 3 BY a UP"])
def test_a_wrong_mode_is_refused_with_a_way_out(wrong: str) -> None:
    session, _ = session_of()
    with pytest.raises(Error, match="help: "):
        session.run_text(wrong)


# ------------------------------------------------------------------------------------------------------- commands


def test_every_command_has_help_with_examples_and_every_example_names_its_command() -> None:
    for command in COMMANDS.values():
        assert command.usage.startswith(f".{command.name}") and command.summary and command.help
        assert all(example.startswith(f".{command.name}") for example in command.examples)
    assert set(ALIASES.values()) <= set(COMMANDS)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"quit", "demo"}))
def test_the_examples_of_the_help_run(command: str, folder: Path) -> None:
    (folder / "queries.cql").write_text(DECLARATIONS)
    text = f"{DECLARATIONS}.feed Roads FROM 'roads.csv'\n" + (
        "CREATE QUERY slow AS SELECT road, AVG(speed) AS mean FROM Pos [RANGE 30 SECONDS] GROUP BY road;"
    )
    session, screen = session_of(text)
    if command in ("read", "open"):
        session.run_text(".save session.cql")
        session.run_text(".open")
    if command == "advance":
        session.db.push("Pos", (0, 1, "A1", 50.0))
    if command == "mode":
        session.run_text(".watch slow")
    if command == "unwatch":
        session.run_text(".watch slow\n.unwatch slow\n.watch slow")
        examples = [".unwatch slow", ".unwatch"]
    else:
        examples = list(COMMANDS[command].examples)
    for example in examples:
        if example == ".feed":
            session.run_text("CREATE STREAM S (car INTEGER, at TIMESTAMP) TIMESTAMP BY at FROM 'cars.csv';")
        session.run_text(example)
        if command == "feed":
            session.stop_feeds()
            session.begin_anew()
            session.run_text(text)
    assert screen.take("error") == ""
    session.close()


def test_help_tells_each_command_and_topic() -> None:
    session, screen = session_of()
    session.run_text(".help")
    overview = screen.take("result")
    assert all(f".{name} " in overview for name in COMMANDS)
    for topic in ("start", "windows", "instants", "keys", "statements", "feed", ".mode"):
        session.run_text(f".help {topic}")
        assert len(screen.take("result")) > 100
    with pytest.raises(Error, match=r"did you mean \.help windows"):
        session.run_text(".help window")


def test_save_writes_a_script_that_declares_the_same(folder: Path) -> None:
    session, _ = session_of(
        f"{DECLARATIONS}{JOIN} CREATE VIEW V AS SELECT car FROM Pos; CREATE QUERY gone AS SELECT car FROM V;"
        "DROP QUERY gone; SET batch_size = 128;\n.save session.cql"
    )
    saved = (folder / "session.cql").read_text()
    assert "gone" not in saved and "CREATE QUERY q1 AS" in saved
    session.run_text(".open session.cql\n.save again.cql")
    assert (folder / "again.cql").read_text() == saved
    assert session.db.settings["batch_size"] == 128 and list(session.db.queries) == ["q1"]


def test_a_password_is_not_shown_and_stands_where_a_statement_is_kept(folder: Path) -> None:
    session, screen = session_of("CREATE STREAM S (v INTEGER) ARCHIVE 'memory://ann:secret@host/x';")
    session.run_text(".schema S\n.streams\n.save s.cql")
    said = screen.take("result", "note")
    assert "ARCHIVE 'memory://ann:***@host/x'" in said and "secret" not in said
    assert "ann:secret@host" in (folder / "s.cql").read_text()


def test_schema_of_a_file_is_a_declaration_that_reads_it(folder: Path) -> None:
    session, screen = session_of()
    session.run_text(".schema 'cars.csv'")
    declaration = screen.take("result")
    assert declaration.startswith("CREATE STREAM cars (at TIMESTAMP, car INTEGER, road TEXT, speed INTEGER)")
    session.run_text(f"{declaration} SELECT car FROM cars;\n.feed")
    finish(session)
    assert screen.take("result").count("+") == 3
    session.run_text(".schema roads.csv")
    assert screen.take("result").startswith("CREATE RELATION roads (road TEXT, speed_limit INTEGER)")
    (folder / "nothing.csv").write_text("")
    (folder / "array.json").write_text('[\n  {"a": 1},\n  {"a": 2}\n]\n')
    for path, told in (
        ("array.json", "jq -c"),
        ("nothing.csv", "cannot read"),
        ("missing.csv", "no file 'missing.csv'"),
    ):
        with pytest.raises(Error, match=told):
            session.run_text(f".schema '{path}'")


def test_a_select_without_from_declares_nothing(folder: Path) -> None:
    session, screen = session_of()
    session.run_text("SELECT 1 + 1;\n.schema")
    assert screen.take("result").endswith("  2\nnothing is declared; .help start shows how to begin\n")


def test_a_query_over_a_stream_that_had_rows_is_told_not_to_see_them(folder: Path) -> None:
    session, screen = session_of("CREATE STREAM S (v INTEGER);")
    session.run_text("INSERT INTO S VALUES (1);\nSELECT v + 1 FROM S [NOW];")
    assert screen.take("note") == "S has had rows: q1 sees those from now on; register it before .feed to see all"


def test_a_feed_that_ends_within_a_window_says_when_the_window_is_shown(folder: Path) -> None:
    session, screen = session_of(f"{DECLARATIONS}SELECT COUNT(*) FROM Pos [TUMBLE 1 MINUTE];\n{FEED}")
    finish(session)
    assert "q1 shows its last window at 2026-01-01 00:01:00: .advance 2026-01-01T00:01:00" in screen.take("note")
    session.run_text(".advance 2026-01-01T00:01:00")
    session.watches.tell()
    assert "2026-01-01 00:01:00  +         3" in screen.take("result")


def test_what_is_inserted_is_told_to_wait_once_and_advance_goes_on_from_a_relation(folder: Path) -> None:
    session, screen = session_of("CREATE RELATION R (v INTEGER);\nSELECT v FROM R;")
    session.run_text("INSERT INTO R VALUES (1);")
    assert screen.take("note") == "q1 waits until nothing more can come at this instant: .advance +1s says so"
    for instant in (".advance R +1s", ".advance +1s"):
        session.run_text(f"{instant}\nINSERT INTO R VALUES (2);")
        session.watches.tell()
        assert "+  " in screen.take("result")


def test_a_query_over_a_relation_that_has_rows_is_told_to_wait(folder: Path) -> None:
    session, screen = session_of("CREATE RELATION R (v INTEGER);\nCREATE RELATION Empty (v INTEGER);")
    session.run_text("INSERT INTO R VALUES (1);\n.advance +1s\nSELECT v FROM Empty;")
    assert not screen.take("note")
    session.run_text("SELECT v FROM R;")
    assert screen.take("note") == "q2 waits until nothing more can come at this instant: .advance +1s says so"
    session.run_text(".advance +1s")
    session.watches.tell()
    assert "+  1" in screen.take("result")


def test_output_takes_changes_and_tables_into_a_file(folder: Path) -> None:
    session, screen = session_of(f"{DECLARATIONS}{SPEEDS}\n.output out.txt\nSHOW RELATIONS;\n{FEED}")
    finish(session)
    session.run_text(".output")
    written = (folder / "out.txt").read_text()
    assert "Roads" in written and written.count("q1  2026") == 3 and screen.take("result") == ""
    with pytest.raises(Error, match="help: mkdir -p no/such/folder"):
        session.run_text(".output no/such/folder/x")


def test_read_names_the_line_and_refuses_to_read_itself(folder: Path) -> None:
    (folder / "a.cql").write_text("SHOW VIEWS;\n\nSELECT FROM x;\n")
    (folder / "loop.cql").write_text(".read loop.cql\n")
    session, _ = session_of()
    with pytest.raises(CqlError, match=r"3 \| SELECT FROM x"):
        session.run_text(".read a.cql")
    with pytest.raises(Error, match="reads itself"):
        session.run_text(".read loop.cql")
    with pytest.raises(Error, match="cannot read"):
        session.run_text(".read missing.cql")


def test_advance_moves_time_on_by_instants_and_by_lengths() -> None:
    session, _ = session_of(f"{DECLARATIONS}{COUNTS}\n{FEED}")
    finish(session)
    closed = session.db.queries["q1"].closed_until
    session.run_text(".advance Pos +29s")
    assert session.db.queries["q1"].closed_until == closed + 29_000
    session.run_text(".advance 2026-01-01T00:02:00")
    assert session.db.queries["q1"].snapshot() == []
    with pytest.raises(Error, match="no length of time"):
        session.run_text(".advance +soon")


def test_the_timer_tells_how_long_a_statement_took() -> None:
    session, screen = session_of("", clock=Clock())
    session.run_text(".timer on\nSHOW VIEWS;\n.timer off\nSHOW VIEWS;")
    assert screen.take("result").count("Run Time: 0 s") == 2


def test_set_shows_and_changes_settings() -> None:
    session, screen = session_of(".set batch_size 64\n.set memory_limit '500 MB'")
    session.run_text(".set batch_size\n.set memory_limit")
    shown = screen.take("result")
    assert " 64 " in shown and "524,288,000" in shown
    with pytest.raises(Error, match="unknown setting"):
        session.run_text(".set bath_size 3")


def test_the_demo_needs_no_files_and_answers_both_queries() -> None:
    session, _ = session_of(is_interactive=False)
    session.run_text(".demo")
    assert len(session.db.queries["roads"].snapshot()) == 4
    assert session.db.queries["fast"].results > 100 and session.db.stream_input("Pos").counters.accepted == 60_000


def test_the_demo_is_there_as_a_whole_or_not_at_all() -> None:
    session, _ = session_of("CREATE RELATION Roads (road TEXT);")
    with pytest.raises(Error, match=r"taken: Roads\n.*open begins anew"):
        session.run_text(".demo")
    assert not session.db.queries and session.db.catalog.kind_of("Pos") is None


def test_time_does_not_go_on_from_a_stream_that_has_been_read_to_its_end() -> None:
    session, _ = session_of("CREATE STREAM Pos (at TIMESTAMP, car INTEGER) TIMESTAMP BY at FROM 'cars.csv';\n.feed")
    finish(session)
    with pytest.raises(Error, match="Pos: read to the end"):
        session.run_text(".advance +5ms")


def test_quit_ends_the_session() -> None:
    session, _ = session_of()
    for line in (".quit", ".exit", ".q"):
        with pytest.raises(Quit):
            session.run_text(line)


def test_plans_of_what_runs_are_drawn_with_their_figures() -> None:
    session, screen = session_of(f"{DECLARATIONS}{COUNTS}\n{FEED}", is_interactive=True)
    finish(session)
    screen.said.clear()
    session.run_text(".plan q1 once")
    drawn = screen.take("result").splitlines()
    assert drawn[2].startswith("-") and drawn[3].startswith("Output") and "└─ Stream Pos" in drawn[-1]
    session.run_text(".stats q1")
    assert "Aggregate" in screen.take("result")


@pytest.mark.parametrize("topic", ["start", "windows", "instants", "keys", "statements", "limit"])
def test_help_is_broken_at_blanks_where_the_terminal_is_narrow(topic: str) -> None:
    session, screen = session_of("")
    session.run_text(f".help {topic}")
    whole = screen.take("result")
    screen.width = 60
    session.run_text(f".help {topic}")
    narrow = screen.take("result")
    assert narrow.split() == whole.split() and max(map(len, narrow.splitlines())) <= 60


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (".demo now", '"now" is unexpected: the command takes no argument'),
        (".timer on off", '"off" is unexpected: the command takes 1 argument'),
        (".mode top 5", "a top mode names a column"),
    ],
)
def test_a_command_says_what_it_takes(command: str, told: str) -> None:
    session, _ = session_of("")
    with pytest.raises(Error) as raised:
        session.run_text(command)
    assert told in str(raised.value)
