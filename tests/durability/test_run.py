"""`minidsms run FILE --db FOLDER` goes on where it was, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minidsms
from minidsms.shell.main import main

DECLARED = "CREATE STREAM S (k INTEGER, at INTEGER) TIMESTAMP BY at FROM 'in.csv';\n"
QUERY = "CREATE QUERY q AS SELECT k, at FROM S WHERE k = 1 INTO 'out.csv';\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("k,at\n" + "".join(f"{i % 3},{i}\n" for i in range(100)))
    Path("job.cql").write_text(DECLARED + QUERY)
    return tmp_path


def run(*options: str) -> int:
    return main(["run", "job.cql", "--db", "db", *options])


def test_a_run_goes_on_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--until", "40") == 0
    told = capsys.readouterr()
    assert "goes on" not in told.err and not Path("out.csv").exists()
    assert run() == 0
    told = capsys.readouterr()
    assert f"{Path('db').resolve()}: goes on, S at element 41" in told.err
    rows = [line.split(",")[2:] for line in Path("out.csv").read_text().splitlines()[1:]]
    assert rows == [["1", str(at)] for at in range(1, 100, 3)]
    before = Path("out.csv").read_text()
    assert run() == 0
    assert "S at element 100" in capsys.readouterr().err and Path("out.csv").read_text() == before


def test_answers_that_no_into_takes_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("job.cql").write_text(DECLARED + "SELECT at FROM S WHERE k = 1;\nSHOW QUERIES;\n")
    seen = []
    for options in (("--until", "40"), ("--until", "70"), (), ()):
        assert run(*options, "--format", "csv", "--quiet") == 0
        seen.append(capsys.readouterr().out)
    assert all("SELECT at FROM S" in each for each in seen)
    shown = "".join(seen).splitlines()
    rows = [line for line in shown if line.replace(",", "").isdigit()]
    assert rows == [f"{at},1,{at}" for at in range(1, 100, 3)]


def test_statements_may_be_added_and_not_changed(capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("job.cql").read_text()
    assert run("--until", "40") == 0
    Path("job.cql").write_text(text + "CREATE QUERY late AS SELECT COUNT(*) FROM S INTO 'late.csv';\n")
    assert run("--until", "50") == 0
    Path("job.cql").write_text(text)
    assert run() == 1
    assert "was made with more statements than this file has" in capsys.readouterr().err
    Path("job.cql").write_text(text.replace("k = 1", "k = 2") + "SHOW SINKS;")
    assert run() == 1
    assert "was made with another statement here" in capsys.readouterr().err
    assert run("-o", "x.csv") == 1
    assert "-o does not go with --db" in capsys.readouterr().err


def test_an_insert_of_the_file_is_carried_out_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that changes nothing, behind which the row it was to put there is replaced."""
    Path("job.cql").write_text(
        DECLARED
        + "CREATE RELATION R (k INTEGER, n TEXT) KEY (k); INSERT INTO R VALUES (1, 'a'), (0, 'b');\n"
        + "INSERT OR REPLACE INTO R VALUES (1, 'a'); INSERT OR REPLACE INTO R VALUES (1, 'c');\n"
        + "DELETE FROM R WHERE n = 'a'; UPDATE R SET n = n || '!' WHERE k = 0;\n"
        + "CREATE QUERY q AS SELECT at, n FROM S [NOW], R WHERE S.k = R.k INTO 'out.csv'; VALUES (1, 2);\n"
    )
    for options in (("--until", "40"), ("--until", "70"), ()):
        assert run(*options) == 0
        with minidsms.connect("db") as db:
            assert db.position("R") == 6
            db.checkpoint()
    assert "R at element 6" in capsys.readouterr().err
    rows = {tuple(line.split(",")[2:]) for line in Path("out.csv").read_text().splitlines()[1:]}
    assert rows == {(str(at), ("b!", "c")[at % 3]) for at in range(100) if at % 3 < 2}
    text = Path("job.cql").read_text()
    Path("job.cql").write_text(text + "INSERT INTO S VALUES (1)")
    assert run() == 1 and "a row has 1 value, not 2" in capsys.readouterr().err


def test_only_a_stream_without_an_element_is_said_to_stay_empty(capsys: pytest.CaptureFixture[str]) -> None:
    Path("job.cql").write_text(
        "CREATE STREAM S (k INTEGER, at INTEGER) TIMESTAMP BY at; CREATE STREAM T (k INTEGER);"
        "CREATE QUERY q AS SELECT k FROM S INTO 'out.csv'; INSERT INTO S VALUES (1, 5)"
    )
    assert run() == 0
    told = capsys.readouterr().err
    assert "nothing feeds T: it stays empty" in told and "nothing feeds S" not in told


def test_a_run_that_is_killed_stopped_or_interrupted_goes_on(place: Path) -> None:
    """Its file holds every answer once."""
    followed = DECLARED.replace("'in.csv'", "'in.csv' WITH (follow = true, poll = 0.01 SECONDS)")
    Path("job.cql").write_text(followed + QUERY.replace("FROM S", "FROM S [NOW]"))
    for i, which in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGKILL)):
        with open("in.csv", "a") as file:
            file.write("".join(f"1,{at}\n" for at in range(100 + 10 * i, 110 + 10 * i)))
        command = [sys.executable, "-m", "minidsms", "run", "job.cql", "--db", "db"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 240
        kept = Path(".out.csv.kept")
        while not (kept.exists() and f",{108 + 10 * i}\n" in kept.read_text()) and time.monotonic() < end:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(which)
        told = process.communicate(timeout=240)[1]
        assert ("goes on, S at element" in told) == (i > 0), told
        if which != signal.SIGKILL:
            assert process.returncode == 0 and f"stopped, S at element {110 + 10 * i}" in told
    with minidsms.connect("db") as db:
        db.execute("DROP QUERY q")
    lines = [line.split(",") for line in Path("out.csv").read_text().splitlines()[1:]]
    came = [int(line[3]) for line in lines if line[1] == "1"]
    assert came == [*range(1, 100, 3), *range(100, 139)]


def test_a_run_that_is_ended_before_it_reads_says_so() -> None:
    os.mkfifo("slow.cql")
    command = [sys.executable, "-m", "minidsms", "run", "slow.cql", "--db", "db"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with open("slow.cql", "w") as slow:  # returns when the run has opened it
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=240)[1] == "db: interrupted; run it again, and it goes on where it was\n"
        assert process.returncode == 130
        slow.flush()
