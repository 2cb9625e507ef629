"""The shell over a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from minidsms.shell.main import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    return tmp_path


def shell(*inputs: str) -> int:
    return main(["--db", "cars", "--csv", *[word for each in inputs for word in ("-c", each)]])


def test_the_shell_goes_on_with_what_the_folder_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell("CREATE STREAM Pos (car INTEGER)", "CREATE QUERY seen AS SELECT car FROM Pos") == 0
    from minidsms import connect

    with connect("cars") as db:
        db.push("Pos", [(1,), (2,)], ts=[1, 2])
    capsys.readouterr()
    assert shell(".queries") == 0
    out = capsys.readouterr().out
    assert "1,1,1" in out and "2,1,2" in out
    assert shell(".queries") == 0
    assert "1,1,1" not in capsys.readouterr().out


def test_what_the_folder_cannot_keep_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create = "SET backfill = 'spark'; CREATE QUERY q AS SELECT car FROM Pos BACKFILL FROM 'x'"
    assert shell("CREATE STREAM Pos (car INTEGER)", create) == 1
    assert "does not keep what spark computes" in capsys.readouterr().err
    assert shell(".open") == 1
    assert "is not empty" in capsys.readouterr().err
    from minidsms import connect

    with connect("cars") as db:
        assert db.position("Pos") == 0


def test_what_feed_has_pushed_is_kept(folder: Path) -> None:
    (folder / "cars.csv").write_text("car,at\n1,1\n2,2\n")
    assert shell("CREATE STREAM Pos (car INTEGER, at INTEGER) TIMESTAMP BY at", ".feed Pos FROM 'cars.csv'") == 0
    from minidsms import connect

    with connect("cars") as db:
        assert db.position("Pos") == 2 and db.stream_input("Pos").greatest_ts == 2


def test_safe_mode_is_that_of_the_process(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--db", "cars", "--safe", "-c", "CREATE STREAM Pos (car INTEGER); SET batch_size = 7"]) == 0
    assert main(["--db", "cars", "--safe", "--allow", "x", "-c", "SHOW SETTINGS", "--csv"]) == 0
    assert "safe,on" in capsys.readouterr().out
    assert main(["--db", "cars", "-c", "SHOW SETTINGS", "--csv"]) == 0
    out = capsys.readouterr().out
    assert "safe,off" in out and "batch_size,7" in out
