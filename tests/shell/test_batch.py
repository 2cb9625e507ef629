"""The shell that nobody types into: -c, -f, a pipe; what goes to which output, and with which exit code."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import minidsms
from minidsms.shell.main import main
from tests.shell.sessions import CARS, DECLARATIONS, JOIN, ROADS

SOURCE = "CREATE STREAM S (t INTEGER, a INTEGER, d TEXT) TIMESTAMP BY t FROM 'S.csv';"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "S.csv").write_text("t,a,d\n1,1,x\n2,1,\x1b[31m\n3,2,z\n")
    (tmp_path / "cars.csv").write_text(CARS)
    (tmp_path / "roads.csv").write_text(ROADS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    return tmp_path


def test_statements_of_the_command_line_are_answered_as_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", SOURCE, "-c", "SELECT a, COUNT(*) AS n FROM S [ROWS 2] GROUP BY a"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[:2] == ["q1: instant, sign, a, n", "q1  1  +  1  1"]
    assert len(lines) == 7 and err == ""


def test_a_windowed_join_over_csv_files_needs_five_statements(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.cql").write_text(f"{DECLARATIONS}.feed Roads FROM 'roads.csv'\n{JOIN}.feed Pos FROM 'cars.csv'\n")
    assert main(["-f", "s.cql", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "_ts,_sign,road,reports,mean,speed_limit",
        "2026-01-01 00:00:01.000Z,1,A1,1,50,120",
        "2026-01-01 00:00:02.000Z,-1,A1,1,50,120",
        "2026-01-01 00:00:02.000Z,1,A1,2,60,120",
        "2026-01-01 00:00:31.000Z,-1,A1,2,60,120",
        "2026-01-01 00:00:31.000Z,1,A1,1,70,120",
        "2026-01-01 00:00:32.000Z,-1,A1,1,70,120",
        "2026-01-01 00:00:40.000Z,1,B7,1,30,70",
    ]


def test_json_lines_of_two_queries_stand_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "-c", f"{SOURCE} SELECT a FROM S; SELECT a + 1 AS b FROM S"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [next(iter(set(row) - {"_ts", "_sign"})) for row in rows] == ["a"] * 3 + ["b"] * 3


def test_csv_has_its_header_though_no_row_comes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--csv", "-c", f"{SOURCE} SELECT a FROM S WHERE a > 9"]) == 0
    assert capsys.readouterr().out == "_ts,_sign,a\n"


@pytest.mark.parametrize(
    ("mode", "last"),
    [("table", "2  1"), ("top 1 BY n", "1  1"), ("count", "q1: 4 rows entered, 2 left, the last at 3")],
)
def test_what_is_drawn_in_place_is_printed_once_at_the_end(
    mode: str, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--mode", mode, "-c", f"{SOURCE} SELECT a, COUNT(*) AS n FROM S [ROWS 2] GROUP BY a"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_statements_come_through_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{SOURCE}\nSHOW STREAMS;\n".encode())))
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("S ")


def test_the_first_error_ends_it_with_1_and_names_the_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.cql").write_text(f"{SOURCE}\n\nSELECT nothing FROM S;\nSHOW STREAMS;\n")
    assert main(["-f", "s.cql"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "3 | SELECT nothing FROM S" in err


@pytest.mark.parametrize("before", ["CREATE STREAM T (a INTEGER)", "SELECT a FROM S", "SELECT a FROM S WHERE a > a"])
def test_a_statement_before_a_command_needs_its_semicolon(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", f"{SOURCE}\n{before}\n.feed S\n"]) == 1
    assert capsys.readouterr().err.endswith('help: a ";" ends the statement before .feed\n')


def test_an_unknown_command_is_an_error_with_a_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", ".hlep"]) == 1
    assert capsys.readouterr().err == "error: unknown command .hlep\nhelp: did you mean .help?\n"


def test_a_query_that_fails_is_told_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--csv", "-c", f"{SOURCE} SELECT a + 9223372036854775806 AS x FROM S"]) == 1
    out, err = capsys.readouterr()
    assert out.count("\n") == 3 and "error: query q1 stopped at instant 3" in err


def test_an_error_leaves_no_file_and_success_says_what_was_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = f"{SOURCE} CREATE QUERY z AS SELECT a FROM S INTO 'z.csv';"
    assert main(["-c", into + "SELECT nothing FROM S"]) == 1
    assert not (folder / "z.csv").exists()
    assert main(["-c", into]) == 0
    assert "z: 3 rows written to z.csv" in capsys.readouterr().err
    assert (folder / "z.csv").read_text() == "_ts,_sign,a\n1,1,1\n2,1,1\n3,1,2\n"


def test_rows_that_cannot_be_read_and_streams_that_nothing_feeds_are_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "S.csv").write_text("t,a,d\n1,one,x\n2,1,y\n")
    assert main(["-c", f"{SOURCE} CREATE STREAM T (b INTEGER); SELECT a FROM S [NOW], T [NOW]"]) == 0
    err = capsys.readouterr().err
    assert "warning: S: 1 row left out" in err and "nothing feeds T" in err


def test_control_characters_of_data_do_not_reach_the_terminal_in_any_mode(capsys: pytest.CaptureFixture[str]) -> None:
    for mode in ("changelog", "table", "top 3 BY d"):
        assert main(["--mode", mode, "-c", f"{SOURCE} SELECT d FROM S"]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out and "\\x1b[31m" in out


def test_no_colour_goes_where_there_is_no_terminal_unless_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["-c", f"{SOURCE} SELECT a FROM S"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("MINIDSMS_COLOR", "always")
    assert main(["-c", f"{SOURCE} SELECT a FROM S"]) == 0
    assert "\x1b[32m+\x1b[0m" in capsys.readouterr().out


def test_a_pipe_closed_early_is_no_error(folder: Path) -> None:
    (folder / "S.csv").write_text("t,a,d\n" + "".join(f"{i},{i},x\n" for i in range(50_000)))
    command = [sys.executable, "-m", "minidsms", "--csv", "-c", f"{SOURCE} SELECT a FROM S"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "_ts,_sign,a\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(240) == 0


def test_quit_ends_the_input_but_not_what_was_registered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--csv", "-c", f"{SOURCE} SELECT a FROM S;", "-c", ".quit", "-c", "nonsense"]) == 0
    assert capsys.readouterr().out.count("\n") == 4


def test_safe_mode_belongs_to_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--safe", "run", "s.cql"])
    assert ended.value.code == 2


def test_without_an_input_or_with_options_that_do_not_fit_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main([]) == 1
    assert capsys.readouterr().err == "error: the standard input is closed\n"
    assert main(["--allow", "data", "-c", ""]) == 1
    assert "--allow goes with --safe" in capsys.readouterr().err
    assert main(["--mode", "tabel", "-c", ""]) == 1
    assert 'did you mean "table"' in capsys.readouterr().err


def test_an_interrupt_ends_it_with_130_and_leaves_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("minidsms.connection.Connection.drive", interrupt)
    assert main(["-c", f"{SOURCE} CREATE QUERY z AS SELECT a FROM S INTO 'z.csv'"]) == 130
    assert "interrupted" in capsys.readouterr().err and not (folder / "z.csv").exists()


def test_rows_are_inserted_and_constants_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    declared = "CREATE RELATION R (k INTEGER, day DATE) KEY (k)"
    rows = "INSERT INTO R VALUES (1, DATE '2026-01-01'), (2, NULL); INSERT OR REPLACE INTO R (k) VALUES (1)"
    commands = [f"{declared}; {rows}; VALUES (1, 'a'), (2, 'b')", "SELECT * FROM R", ".advance 5"]
    assert main(["--csv", *(word for command in commands for word in ("-c", command))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["column1,column2", "1,a", "2,b"]
    assert sorted(line.partition(",")[2] for line in lines[4:]) == ["1,1,", "1,2,"]


def test_nothing_comes_after_the_end_so_that_the_last_windows_and_instants_are_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    relation = "CREATE RELATION R (v INTEGER); SELECT v FROM R; INSERT INTO R VALUES (7);"
    counted = f"{DECLARATIONS}SELECT COUNT(*) FROM Pos [TUMBLE 1 MINUTE];"
    assert main(["--csv", "-c", counted, "-c", ".feed Pos FROM cars.csv", "-c", relation]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4:] == ["2026-01-01 00:01:00.000Z,1,3", "", "_ts,_sign,v", "0,1,7"]


def test_a_run_ends_relations_that_only_statements_have_changed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "r.cql").write_text(
        "CREATE RELATION R (v INTEGER); INSERT INTO R VALUES (7); CREATE QUERY q AS SELECT v FROM R"
    )
    assert main(["run", "r.cql"]) == 0
    assert "(1 row)" in capsys.readouterr().out


def test_a_table_in_csv_tells_null_from_the_empty_text(capsys: pytest.CaptureFixture[str]) -> None:
    values = "VALUES (1, NULL, '', TRUE, [1, NULL], STRUCT(a := 'x')), (2, 'a,b', ' ', FALSE, NULL, NULL)"
    assert main(["--csv", "-c", f"{values}; VALUES (NULL), ('')"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "column1,column2,column3,column4,column5,column6",
        '1,,"",true,"[1, null]","{""a"": ""x""}"',
        '2,"a,b"," ",false,,',
        "column1",
        "",
        '""',
    ]


def test_looking_into_a_folder_reads_no_source_and_leaves_answers_waiting(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with minidsms.connect("kept") as db:
        db.execute(f"{SOURCE} CREATE QUERY q AS SELECT a FROM S; CREATE STREAM T (b INTEGER)")
        db.execute("CREATE QUERY r AS SELECT b FROM T")
        db.push("T", [(7,)], ts=0)
        db.advance(0)
    looking = ("SHOW SOURCES", "DESCRIBE S", "EXPLAIN SELECT a FROM S", "SHOW QUERIES; SHOW STREAMS")
    for look in looking:
        assert main(["--db", "kept", "-c", look]) == 0
        out, err = capsys.readouterr()
        assert out and "instant, sign" not in out and err == ""
    assert main(["--db", "kept", "-c", looking[0], "-c", ".limit"]) == 0
    out, _ = capsys.readouterr()
    lines = [line.split() for line in out.splitlines() if "+" in line]
    assert sorted((line[0], line[-1]) for line in lines) == [("q", "1"), ("q", "1"), ("q", "2"), ("r", "7")]


def test_a_command_line_without_statements_reads_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with minidsms.connect("kept") as db:
        db.execute(f"{SOURCE} CREATE QUERY q AS SELECT a FROM S")
    assert main(["--db", "kept", "-c", ""]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "+" in line]
    assert [(line[0], line[-1]) for line in lines] == [("q", "1"), ("q", "1"), ("q", "2")]
