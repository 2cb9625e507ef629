"""The command line: what is printed, where, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from minidsms.connection import Connection
from minidsms.shell.main import main
from minidsms.shell.showing import harmless

QUERIES = """
CREATE STREAM S (t INTEGER, a INTEGER, d TEXT) TIMESTAMP BY t FROM 'S.csv';
SELECT a, COUNT(*) FROM S [ROWS 2] GROUP BY a;
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "S.csv").write_text("t,a,d\n1,1,x\n2,1,\x1b[31m\n3,2,z\n")
    (tmp_path / "q.cql").write_text(QUERIES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_help_names_the_commands_and_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "usage: minidsms" in out and ".help start" in out and "explain" in out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("minidsms ")


@pytest.mark.parametrize("arguments", ["run", "fly", "run q.cql --rows -1", "run q.cql --format x"])
def test_a_wrong_command_line_ends_with_2(arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2


def test_an_unnamed_query_is_printed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "q.cql"]) == 0
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert [*lines[:3], *sorted(lines[3:])] == [
        "q1: SELECT a, COUNT(*) FROM S [ROWS 2] GROUP BY a  (6 rows)",
        "_ts     a  COUNT(*)",
        "---  -  -  --------",
        "  1  +  1         1",
        "  2  +  1         2",
        "  2  -  1         1",
        "  3  +  1         1",
        "  3  +  2         1",
        "  3  -  1         2",
    ]


def test_a_table_shows_the_first_and_the_last_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "S.csv").write_text("t,a,d\n" + "".join(f"{i},{i},x\n" for i in range(10_000)))
    (folder / "q.cql").write_text(QUERIES.split(";")[0] + "; SELECT a FROM S;")
    assert main(["run", "q.cql", "--rows", "5"]) == 0
    shown = [line.split()[-1] for line in capsys.readouterr().out.rstrip().splitlines()]
    assert shown[3:] == ["0", "1", "more", "9997", "9998", "9999"]


def test_a_table_shows_signs_where_a_row_that_is_left_out_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "q.cql", "--rows", "2"]) == 0
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert lines[1].split() == ["_ts", "a", "COUNT(*)"]
    assert lines[3].split() == ["1", "+", "1", "1"] and lines[4].split() == ["..", "4", "more"]


def test_check_says_which_folders_it_looks_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder)]) == 1
    assert "name the folder of one, in which minidsms.json stands" in capsys.readouterr().err


def test_csv_of_several_queries_comes_one_after_the_other(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "q.cql").write_text(QUERIES.split(";")[0] + "; SELECT a FROM S; SELECT a + 1 AS b FROM S;")
    assert main(["run", "q.cql", "--format", "csv"]) == 0
    out = capfdbinary.readouterr().out
    assert out == b"_ts,_sign,a\n1,1,1\n2,1,1\n3,1,2\n\n_ts,_sign,b\n1,1,2\n2,1,2\n3,1,3\n"


def test_json_goes_to_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "q.cql", "--format", "json", "--until", "1"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"_ts": 1, "_sign": 1, "a": 1, "COUNT(*)": 1}
    ]


def test_control_characters_of_data_do_not_reach_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.cql").write_text(QUERIES.split(";")[0] + "; SELECT d FROM S;")
    assert main(["run", "q.cql"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b[31m" in out


def test_harmless_text_keeps_what_can_be_read() -> None:
    assert harmless("ü\n\x9b\u202e\x07") == "ü\n\\x9b\\u202e\\x07"


def test_answers_are_written_to_the_file_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "q.cql", "-o", "out.csv"]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "q1: 6 rows written to out.csv" in err
    assert len((folder / "out.csv").read_text().splitlines()) == 7


def test_several_queries_need_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.cql").write_text(QUERIES + "SELECT d FROM S;")
    assert main(["run", "q.cql", "-o", "out.csv"]) == 1
    assert "name a folder" in capsys.readouterr().err
    assert main(["run", "q.cql", "-o", "out", "--quiet"]) == 0
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["q1.csv", "q2.csv"]


def test_an_error_in_the_text_has_a_caret_and_ends_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.cql").write_text("SELECT x FROM Nothing")
    assert main(["run", "q.cql"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and "^^^^^^^" in err


def test_a_query_that_fails_keeps_its_answers_and_ends_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.cql").write_text(QUERIES.split(";")[0] + "; SELECT a + 9223372036854775806 AS x FROM S;")
    assert main(["run", "q.cql", "-o", "out.csv"]) == 1
    assert "stopped at instant 3" in capsys.readouterr().err
    assert (folder / "out.csv").read_text() == "_ts,_sign,x\n1,1,9223372036854775807\n2,1,9223372036854775807\n"


def test_data_that_cannot_be_taken_leaves_no_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "S.csv").write_text("t,a,d\n2,1,x\n1,1,y\n")
    assert main(["run", "q.cql", "-o", "out.csv"]) == 1
    assert "S.csv" in capsys.readouterr().err
    assert not (folder / "out.csv").exists()
    assert not [path for path in folder.iterdir() if path.name.endswith(".part")]


def test_rows_that_cannot_be_read_are_told_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "S.csv").write_text("t,a,d\n1,one,x\n2,1,y\n")
    assert main(["run", "q.cql"]) == 0
    assert "S: 1 row left out" in capsys.readouterr().err


def test_a_late_row_that_is_left_out_is_counted_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "S.csv").write_text("t,a,d\n5,1,x\n1,1,y\n6,1,z\n")
    (folder / "q.cql").write_text(QUERIES.replace("BY t ", "BY t LATE DROP "))
    assert main(["run", "q.cql"]) == 0
    assert "S: 1 row left out" in capsys.readouterr().err


def test_stats_tell_what_every_operator_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "q.cql", "--stats"]) == 0
    err = capsys.readouterr().err
    assert "3 elements read" in err and "Aggregate" in err


def test_explain_takes_a_file_of_statements_or_a_script_and_shows_each_query(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = "CREATE STREAM S (at TIMESTAMP, a INTEGER) TIMESTAMP BY at FROM 'none.csv';"
    (folder / "q.cql").write_text(f"{declared} SELECT a FROM S; CREATE QUERY n AS SELECT COUNT(*) FROM S [ROWS 3]")
    assert main(["explain", "q.cql"]) == 0
    out = capsys.readouterr().out
    assert out.count("Physical plan") == 2 and "SELECT ISTREAM(a)" in out and "RowsWindow" in out
    (folder / "s.txt").write_text(
        "table : register stream S (A integer);\nsource : none.dat\nquery : SELECT A FROM S;\n"
    )
    assert main(["explain", "s.txt"]) == 0 and "SELECT ISTREAM(A)" in capsys.readouterr().out
    (folder / "q.cql").write_text(declared)
    assert main(["explain", "q.cql"]) == 1 and "'q.cql' has no query" in capsys.readouterr().err


def test_explain_shows_the_plan_without_opening_sources(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "S.csv").unlink()
    assert main(["explain", "SELECT a FROM S WHERE a = 1", "--file", "q.cql"]) == 0
    out = capsys.readouterr().out
    assert "SELECT ISTREAM(a)" in out and "Physical plan" in out


def test_until_takes_an_iso_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "S.csv").write_text("t,a,d\n2020-01-01T00:00:00,1,x\n2020-01-02T00:00:00,2,y\n")
    (folder / "q.cql").write_text(QUERIES.replace("t INTEGER", "t TIMESTAMP").split(";")[0] + "; SELECT a FROM S;")
    assert main(["run", "q.cql", "--format", "csv", "--until", "2020-01-01T12:00:00"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["2020-01-01 00:00:00.000Z,1,1"]
    assert main(["run", "q.cql", "--until", "soon"]) == 1
    assert "--until" in capsys.readouterr().err


def test_an_interrupted_run_leaves_no_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(connection: Connection, until: int | None = None) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Connection, "run_some", interrupt)
    assert main(["run", "q.cql", "-o", "out.csv"]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["S.csv", "q.cql"]


def test_no_data_is_read_before_every_query_is_registered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.cql").write_text(QUERIES + "CREATE QUERY z AS SELECT d FROM S INTO 'z.csv'; SELECT nothing FROM S;")
    assert main(["run", "q.cql", "-o", "out.csv"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and 'unknown column "nothing"' in err
    assert sorted(path.name for path in folder.iterdir()) == ["S.csv", "q.cql"]


def test_an_empty_file_does_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.cql").write_text("-- nothing\n")
    assert main(["run", "q.cql"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_standard_output_that_cannot_be_written_is_an_error_not_a_traceback(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    command = [sys.executable, "-m", "minidsms", "run", "q.cql"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=folder, timeout=240)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr and "cannot be written" in ended.stderr
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, cwd=folder, timeout=240
    )
    assert closed.returncode == 0 and closed.stderr == ""


def test_a_file_in_the_place_of_a_command_is_told_how_it_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["q.cql"])
    assert ended.value.code == 2 and "minidsms run q.cql" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["offload", "no.cql", "data"], ["ingest", "a.csv", "data", "--stream", "no.cql"]])
def test_a_file_of_statements_that_is_not_there_is_no_statement(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 1
    assert "cannot read 'no.cql': No such file" in capsys.readouterr().err
