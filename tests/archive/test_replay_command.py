"""`minidsms replay`, and archives as sources of declarations."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error
from minidsms.shell.main import main
from tests.archive.reading import elements

DAY = 86_400_000


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Archives of a stream and a relation, over three days."""
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v FLOAT); CREATE RELATION R (k INTEGER, n TEXT)")
        for name in "SR":
            db.archive(name, str(tmp_path / "data"))
        db.push("R", [(0, "even"), (1, "odd")], ts=0)
        db.push("S", [(i % 2, i / 2) for i in range(6)], ts=[i * DAY // 2 for i in range(6)])
    return str(tmp_path / "data")


def test_a_query_is_answered_over_archives(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT ISTREAM(n, v) FROM S [NOW], R WHERE S.k = R.k"
    assert main(["replay", folder, "-q", query, "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "_ts,_sign,n,v"
    assert lines[1:] == [f"{i * DAY // 2},1,{('even', 'odd')[i % 2]},{i / 2:g}" for i in range(6)]


def test_a_file_may_declare_and_ask_and_ends_bound_it(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "q.cql"
    file.write_text("CREATE STREAM S (v FLOAT);\nSELECT v FROM S WHERE v > 0.4")
    arguments = ["replay", folder, "-f", str(file), "--from", "1970-01-02", "--to", str(2 * DAY), "--stats"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert [line.split()[-1] for line in out.rstrip().splitlines()[3:]] == ["1", "1.5", "2"]
    assert "elements read" in err


def test_answers_may_be_written(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.csv"
    assert main(["replay", folder, "-q", "SELECT COUNT(*) FROM S", "-o", str(out)]) == 0
    assert out.read_text().splitlines()[-1] == f"{5 * DAY // 2},1,6"
    assert "written to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 1, "there is nothing to ask"),
        (["-q", "SELECT z FROM S"], 1, 'unknown column "z"'),
        (["-q", "SELECT v FROM S", "--from", "soon"], 1, "--from"),
        (["-q", "SELECT v FROM S", "--speed", "-1"], 2, "no speed"),
    ],
)
def test_what_cannot_be_done_is_said(
    folder: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    try:
        ended = main(["replay", folder, *arguments])
    except SystemExit as exit_:
        ended = exit_.code  # type: ignore[assignment]
    assert ended == code
    assert said in capsys.readouterr().err


def test_a_stream_may_be_read_from_an_archive(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v FLOAT, k INTEGER) FROM '{folder}' FORMAT archive")
        db.execute(f"CREATE RELATION R (n TEXT, k INTEGER) FROM '{folder}' FORMAT ARCHIVE")
        q = db.query("SELECT ISTREAM(n, v) FROM S [NOW], R WHERE S.k = R.k")
        db.run()
        assert [(c.ts, c.row) for c in q.fetch()] == [(i * DAY // 2, (("even", "odd")[i % 2], i / 2)) for i in range(6)]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE STREAM T (v FLOAT) FROM '{}' FORMAT archive", 'has no archive "T"'),
        ("CREATE STREAM S (v INTEGER) FROM '{}' FORMAT archive", "has v as FLOAT, S as INTEGER"),
        ("CREATE RELATION S (v FLOAT) FROM '{}' FORMAT archive", "one of a stream"),
        ("CREATE STREAM S (v FLOAT) FROM '{}/nowhere' FORMAT archive", "cannot read the folder"),
    ],
)
def test_what_is_no_such_archive_is_refused_with_its_place(folder: str, statement: str, reason: str) -> None:
    with minidsms.connect() as db:
        with pytest.raises(CqlError, match=reason) as caught:
            db.execute(statement.format(folder))
        assert caught.value.position is not None


def test_what_is_read_from_an_archive_is_not_written_there_again(folder: str) -> None:
    before = elements(folder, "S")
    declare = f"CREATE STREAM S (k INTEGER, v FLOAT) FROM '{folder}' FORMAT archive"
    with minidsms.connect() as db:
        with pytest.raises(Error, match="what is there would be written again"):
            db.execute(f"{declare} ARCHIVE '{folder}/../{os.path.basename(folder)}'")
        db.execute(f"{declare} ARCHIVE '{folder}/others'")
        db.run()
    assert elements(f"{folder}/others", "S") == elements(folder, "S") == before


def test_a_number_of_a_commit_needs_one_archive(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = ["-q", "SELECT COUNT(*) FROM S [RANGE UNBOUNDED]", "--format", "csv", "--as-of", "1"]
    assert main(["replay", folder, *query]) == 1
    assert f"'{folder}/R'" in capsys.readouterr().err
    assert main(["replay", f"{folder}/S", *query]) == 0
