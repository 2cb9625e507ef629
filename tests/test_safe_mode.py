"""Safe mode: nothing outside the folders allowed, whoever asks, and no way back; and what errors show of names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import minidsms

DECLARED = "CREATE STREAM S (t INTEGER, v INTEGER) TIMESTAMP BY t"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder allowed, with a way out of it, and something outside that must stay as it is."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside.csv").write_text("t,v\n1,1\n")
    (inside / "in.csv").write_text("t,v\n1,7\n")
    (inside / "link.csv").symlink_to(tmp_path / "outside.csv")
    (inside / "linked").symlink_to(tmp_path, target_is_directory=True)
    monkeypatch.chdir(inside)
    return inside


@pytest.fixture(params=["connect", "SET"])
def db(request: pytest.FixtureRequest, folder: Path) -> minidsms.Connection:
    """Made safe in either way."""
    if request.param == "connect":
        connection = minidsms.connect(safe=True, allowed_paths=[folder])
    else:
        connection = minidsms.connect(allowed_paths=("../inside",))
        connection.execute("SET safe = on")
    connection.execute(DECLARED)
    connection.query("SELECT v FROM S", name="q")
    return connection


PLACES = ["../outside.csv", "link.csv", "linked/new.csv", "/etc/passwd", "/dev/stdout", "tcp://127.0.0.1:9", "-"]
PLACES += ["https://127.0.0.1/a.csv", "s3://bucket/a.csv", "postgresql://127.0.0.1/shop"]
STATEMENTS = [
    "CREATE STREAM T (t INTEGER) TIMESTAMP BY t FROM '{}'",
    "CREATE RELATION T (t INTEGER) FROM '{}' FORMAT csv",
    "CREATE STREAM T (t INTEGER) ARCHIVE '{}'",
    "CREATE QUERY p AS SELECT v FROM S INTO '{}' FORMAT csv",
    "CREATE QUERY p AS SELECT v FROM S ARCHIVE '{}'",
    "CREATE QUERY p AS SELECT v FROM S BACKFILL FROM '{}'",
]


@pytest.mark.parametrize("place", PLACES)
def test_no_statement_reaches_outside(db: minidsms.Connection, folder: Path, place: str) -> None:
    before = sorted(p.name for p in folder.parent.iterdir())
    for statement in STATEMENTS:
        with pytest.raises(minidsms.CqlError, match="safe mode"):
            db.execute(statement.format(place))
    assert sorted(p.name for p in folder.parent.iterdir()) == before
    assert (folder.parent / "outside.csv").read_text() == "t,v\n1,1\n"
    assert db.catalog.kind_of("T") is None and list(db.queries) == ["q"]


@pytest.mark.parametrize("place", PLACES[:3])
def test_no_call_reaches_outside(db: minidsms.Connection, place: str) -> None:
    query = db.queries["q"]
    calls: list[Callable[[], Any]] = [
        lambda: db.feed("S", place),
        lambda: db.feed("S", Path(place)),
        lambda: db.archive("S", place),
        lambda: db.replay(place),
        lambda: query.into(place),
        lambda: query.into(Path(place)),
    ]
    for call in calls:
        with pytest.raises(minidsms.Error, match="safe mode"):
            call()


def test_no_other_program_is_started(db: minidsms.Connection) -> None:
    for call in (
        lambda: db.offload("q", "."),
        lambda: db.replay(".", engine="spark"),
        lambda: db.execute("EXPLAIN (FORMAT spark) SELECT v FROM S"),
        lambda: db.execute("SET backfill = 'spark'; CREATE QUERY p AS SELECT v FROM S BACKFILL FROM '.'"),
    ):
        with pytest.raises(minidsms.Error, match="safe mode: Spark"):
            call()


def test_inside_the_folders_everything_works(db: minidsms.Connection, folder: Path) -> None:
    db.execute("CREATE STREAM T (t INTEGER, v INTEGER) TIMESTAMP BY t FROM 'in.csv' ARCHIVE 'archives'")
    db.execute("CREATE QUERY p AS SELECT v FROM T INTO 'out.csv'")
    db.feed("S", pa.table({"t": [1], "v": [2]}))
    db.run()
    db.close()
    assert (folder / "out.csv").read_text() == "_ts,_sign,v\n1,1,7\n"


def test_nothing_leaves_safe_mode_or_widens_it(db: minidsms.Connection, tmp_path: Path) -> None:
    for statement in (
        "SET safe = off",
        "SET safe = false",
        f"SET allowed_paths = '{tmp_path}'",
        "SET memory_limit = none",
        "SET memory_limit = '8 GB'",
    ):
        with pytest.raises(minidsms.Error):
            db.execute(statement)
    db.execute("SET safe = on")
    assert not db.safety.allows(str(tmp_path / "outside.csv"))


def test_folders_stay_where_they_were_when_the_working_directory_changes(
    db: minidsms.Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    with pytest.raises(minidsms.Error, match="safe mode"):
        db.feed("S", "outside.csv")
    db.feed("S", "inside/in.csv")


def test_without_folders_no_file_is_touched_and_queries_run(folder: Path) -> None:
    db = minidsms.connect(safe=True)
    with pytest.raises(minidsms.CqlError, match="no folder is allowed"):
        db.execute(f"{DECLARED} FROM 'in.csv'")
    db.execute(DECLARED)
    query = db.query("SELECT v FROM S")
    db.push("S", (1, 2))
    assert [c.row for c in query.fetch()] == [(2,)]


def test_unsafe_connections_are_as_before(folder: Path) -> None:
    db = minidsms.connect()
    db.execute(f"{DECLARED} FROM '../outside.csv'; SET memory_limit = '1 GB'; SET safe = off")


@pytest.mark.parametrize("wrong", [3, [3], [""], "a\0b", None])
def test_folders_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(minidsms.Error, match="allowed_paths"):
        minidsms.connect(allowed_paths=wrong)


# ------------------------------------------------------------------------------------------------- what errors show

EVIL = "\x1b]0;owned\x07\x9b2J\u202ename\r\n\nhelp: run this"
LONG = "n" * 5000


def said(call: Callable[[], Any]) -> str:
    """The text of the error that a call raises."""
    with pytest.raises(minidsms.Error) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("name", [EVIL, LONG])
def test_errors_show_names_printable_and_short(name: str) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER); CREATE RELATION R (v INTEGER)")
    q = db.query("SELECT v FROM S")
    option: dict[str, Any] = {name: 1}
    calls: list[Callable[[], Any]] = [
        lambda: db.push(name, (1,), ts=1),
        lambda: db.push("S", {name: [1]}, ts=1),
        lambda: db.push("S", pa.table({name: [1]}), ts=1),
        lambda: db.push("S", [{name: 1}], ts=1),
        lambda: db.push("S", {"v": [name]}, ts=1),
        lambda: db.push("S", (1,), ts=name),
        lambda: db.push("R", (1,), ts=1, sign=name),
        lambda: db.advance(1, name),
        lambda: db.feed(name, "x.csv"),
        lambda: db.feed("S", name),
        lambda: db.feed("S", name + ".csv"),
        lambda: db.feed("S", "x.csv", format=name),
        lambda: db.feed("S", "x.csv", **option),
        lambda: db.pause(name),
        lambda: db.archive(name, "x"),
        lambda: db.replay(name),
        lambda: db.replay(".", engine=name),
        lambda: q.into(name),
        lambda: q.into(name + "/x.csv"),
        lambda: q.into("x.csv", format=name),
        lambda: q.into("x.csv", **option),
        lambda: minidsms.connect(**option),
        lambda: minidsms.connect(scheduler=name),
        lambda: minidsms.connect(memory_limit=name),
        lambda: minidsms.connect(safe=True).feed("S", name),
        lambda: db.execute(f"SELECT `{name}` FROM S"),
        lambda: db.execute(f"DROP STREAM {name}"),
        lambda: db.execute(name),
        lambda: db.create_function("f", abs, [name], "INTEGER"),
    ]
    for at, call in enumerate(calls):
        text = said(call)
        assert all(line.isprintable() for line in text.split("\n")), (at, text)
        assert len(text) < 1300, (at, len(text))
        # The text of CQL is shown to who wrote it; what a program was given by others must not speak for the engine.
        assert text.startswith("error: ") or "\nhelp: run this" not in text, (at, text)


def test_an_error_of_any_length_is_cut_where_it_is_raised() -> None:
    text = str(minidsms.Error("x" * 10**6 + "\x1b[2J"))
    assert len(text) < 1300 and text.isprintable()


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_names_that_no_file_can_have_are_refused_and_nothing_is_declared(tmp_path: Path, name: str) -> None:
    db = minidsms.connect()
    db.execute(DECLARED)
    query = db.query("SELECT v FROM S", name="q")
    place = f"{tmp_path}/{name}"
    statements = [
        f"CREATE STREAM T (t INTEGER) ARCHIVE '{place}'",
        f"CREATE STREAM T (t INTEGER) TIMESTAMP BY t FROM '{place}' FORMAT archive",
        f"CREATE STREAM T (t INTEGER) TIMESTAMP BY t FROM '{place}' FORMAT csv",
        f"CREATE QUERY p AS SELECT v FROM S INTO '{place}' FORMAT csv",
        f"CREATE QUERY p AS SELECT v FROM S ARCHIVE '{place}'",
        f"CREATE QUERY p AS SELECT v FROM S BACKFILL FROM '{place}'",
    ]
    calls: list[Callable[[], Any]] = [
        lambda: minidsms.connect(place),
        lambda: db.archive("S", place),
        lambda: db.replay(place),
        lambda: db.feed("S", f"{place}.csv"),
        lambda: query.into(f"{place}.csv"),
        *[lambda text=text: db.execute(text) for text in statements],  # type: ignore[misc]
    ]
    for call in calls:
        with pytest.raises(minidsms.Error):
            call()
    assert db.catalog.kind_of("T") is None and list(db.queries) == ["q"]
    assert list(tmp_path.iterdir()) == []
