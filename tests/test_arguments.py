"""Arguments that make no sense are refused with an Error, whatever they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms import Connection, Error

CALLS: dict[str, Callable[[Any], object]] = {
    "a stream's name that is a number": lambda db: db.push(5, [(1,)], ts=1),
    "no stream's name": lambda db: db.push(None, [(1,)], ts=1),
    "a heartbeat of a number": lambda db: db.advance(1, 5),
    "no text": lambda db: db.execute(None),
    "bytes": lambda db: db.execute(b"SHOW STREAMS"),
    "a query that is a number": lambda db: db.query(5),
    "a query's name that is a number": lambda db: db.query("SELECT v FROM S", name=5),
    "an empty name": lambda db: db.query("SELECT v FROM S", name=""),
    "a function's name that is a number": lambda db: db.create_function(5, len, ["TEXT"], "INTEGER"),
    "a function that cannot be called": lambda db: db.create_function("f", 5, ["TEXT"], "INTEGER"),
    "a Python type": lambda db: db.create_function("f", len, [str], int),
    "no type": lambda db: db.create_function("f", len, ["TEXT"], None),
    "one type in place of a list": lambda db: db.create_function("f", len, "TEXT", "INTEGER"),
    "a folder that is a number": lambda db: minidsms.connect(5),
    "a port that is a text": lambda db: db.ui(port="8000"),
    "an input that is a number": lambda db: db.stream_input(5),
    "a source of a number": lambda db: db.feed(5, "x.csv"),
    "an archive of a number": lambda db: db.archive(5, "data"),
    "an archive in a number": lambda db: db.archive("S", 5),
    "partitions of a text": lambda db: db.archive("S", "data", partition="a"),
    "a replay of a number": lambda db: db.replay(5),
    "a replay at a text's speed": lambda db: db.replay("data", speed="fast"),
    "a backup into a number": lambda db: db.backup(5),
    "an answer into a number": lambda db: db.query("SELECT v FROM S").into(5),
    "a setting that is a number": lambda db: db.set(5, 1),
    "a query's setting that is a number": lambda db: db.query("SELECT v FROM S").set(5, 1),
    "a time that is a text": lambda db: db.time("5"),
    "no argument types": lambda db: db.create_function("f", len, None, "INTEGER"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("keeps", [False, True])
def test_a_call_with_a_senseless_argument_is_refused(
    call: Callable[[Any], object], keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with minidsms.connect(tmp_path / "kept") if keeps else minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        with pytest.raises(Error):
            call(db)
        assert db.push("S", (1,), ts=1) == 1


@pytest.mark.parametrize("keeps", [False, True])
def test_an_archive_is_named_by_a_path_object_too(keeps: bool, tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "kept") if keeps else minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        db.archive("S", tmp_path / "data")
        db.push("S", [(1,), (2,)], ts=[1, 2])
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        assert db.replay(tmp_path / "data") == 2


@pytest.mark.parametrize("values", [[1], (1,), {"v": 1}])
def test_values_in_the_place_of_a_name_are_told_where_they_stand(values: Any) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER)")
    with pytest.raises(Error, match=r"the query's name, not .*; for values write params="):
        db.query("SELECT v FROM S WHERE v > ?", values)


def test_what_other_systems_call_memory_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with minidsms.connect(":memory:") as db:
        db.execute("CREATE STREAM S (v INTEGER)")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("push", [{"ts": 1.5e9}, {"ts": [1.5e9]}])
def test_seconds_of_the_clock_are_told_how_to_become_an_instant(push: dict[str, Any]) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        with pytest.raises(Error, match=r"fromtimestamp\(seconds, datetime.UTC\)"):
            db.push("S", [(1,)], **push)


def test_a_clock_is_a_function() -> None:
    with pytest.raises(Error, match="clock"):
        Connection(clock=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("ts", [2**62, -(2**62), 2**63, -(2**70)])
def test_an_instant_out_of_range_is_refused_and_the_error_names_the_range(ts: int) -> None:
    """docs/semantics T1."""
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER); CREATE RELATION R (v INTEGER)")
    calls: list[Callable[[], object]] = [
        lambda: db.push("S", (1,), ts=ts),
        lambda: db.push("S", [(1,), (2,)], ts=[0, ts]),
        lambda: db.push("R", (1,), ts=ts),
        lambda: db.advance(ts),
        lambda: db.advance(ts, "S"),
    ]
    for call in calls:
        with pytest.raises(minidsms.DataError, match=r"-2\*\*62 < ts < 2\*\*62"):
            call()
    assert db.push("S", (1,), ts=-(2**62) + 2) == 1
    assert db.push("S", (1,), ts=2**62 - 1) == 1


def test_an_error_shows_a_name_of_several_lines_on_one() -> None:
    name = "two\nlines\x1b[2J"
    db = minidsms.connect()
    db.execute(f'CREATE STREAM "{name}" (v INTEGER); CREATE RELATION "{name}2" (v INTEGER)')
    db.query(f'SELECT v FROM "{name}"', name=name)
    calls: list[Callable[[], object]] = [
        lambda: db.push(name, (1,), sign=1),
        lambda: db.push(name, ("x",), ts=1),
        lambda: db.push(name, [(1,), (2,)], ts=[2, 1]),
        lambda: db.push(name + "2", (1,), block=False),
        lambda: db.push("another", (1,)),
        lambda: db.query(f'SELECT v FROM "{name}"', name=name),
        lambda: db.query_each(f'SELECT v FROM "{name}" WHERE v = $v', name + "2"),
        lambda: db.execute(f'DROP STREAM "{name}"'),
        lambda: db.execute(f'CREATE QUERY "{name}" AS SELECT v FROM "{name}"'),
        lambda: db.archive(name, "unused"),
    ]
    for call in calls:
        with pytest.raises(minidsms.Error) as raised:
            call()
        first = str(raised.value).split("\n")[0]
        assert "two\\nlines\\x1b[2" in first, first


@pytest.mark.parametrize(("given", "name"), [(float, "FLOAT"), (str, "TEXT"), (bytes, "INTEGER"), (None, "INTEGER")])
def test_a_type_of_python_is_told_by_its_name_here(given: Any, name: str) -> None:
    with minidsms.connect() as db, pytest.raises(Error, match=f"such as '{name}'"):
        db.create_function("f", len, ["TEXT"], given)
