"""Where answers go: appended and rolling files, sockets, functions; what each says that it wrote."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import minidsms
from minidsms.cql.errors import CqlError, Error
from minidsms.elements import Schema, Type
from minidsms.sinks import packed_file
from minidsms.sinks.opening import open_sink
from minidsms.sinks.rolling_sink import RollingSink
from minidsms.sources.files import open_file
from minidsms.sources.opening import open_source
from tests.sources.test_live import port_of, soon


@pytest.fixture
def db() -> Any:
    with minidsms.connect() as connection:
        connection.execute("CREATE STREAM S (v INTEGER, name TEXT)")
        yield connection


def query(db: Any) -> Any:
    return db.query("SELECT RSTREAM(v, name) FROM S [NOW]")


def push(db: Any, *values: int) -> None:
    for v in values:
        db.push("S", (v, f"n{v}"), ts=v)
        db.advance(v)


def test_appended_lines_are_there_at_once_and_the_header_once(db: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    first = query(db)
    first.into(path, append=True)
    push(db, 1)
    assert path.read_text() == "_ts,_sign,v,name\n1,1,1,n1\n"
    first.close()
    query(db).into(path, append=True)
    push(db, 2)
    assert path.read_text() == "_ts,_sign,v,name\n1,1,1,n1\n2,1,2,n2\n"


def test_what_is_appended_can_be_followed(db: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "out.jsonl")
    query(db).into(path, append=True)
    other = minidsms.connect()
    other.execute(
        "CREATE STREAM T (_ts INTEGER, v INTEGER) TIMESTAMP BY _ts "
        f"FROM '{path}' WITH (follow = true, poll = 2 MILLISECONDS, stop_after = 1 SECOND)"
    )
    q = other.query("SELECT v FROM T")
    push(db, 1, 2, 3)
    other.run()
    assert [c.row for c in q.fetch()] == [(1,), (2,), (3,)]


def test_rolling_files_hold_every_element_once_however_it_came(db: Any, tmp_path: Path) -> None:
    (tmp_path / "p-2.parquet").write_bytes(b"here before")
    q = query(db)
    sink: Any = q.into(tmp_path / "p-{n}.parquet", roll_rows=3)
    push(db, 1, 2)
    db.push("S", [(v, "x") for v in range(3, 9)], ts=9)
    db.advance(9)
    assert not (tmp_path / "p-4.parquet").exists()
    q.close()
    names = ["p-1.parquet", "p-3.parquet", "p-4.parquet"]
    parts = [parquet.read_table(tmp_path / name).column("v").to_pylist() for name in names]
    assert parts == [[1, 2, 3], [4, 5, 6], [7, 8]]
    assert (tmp_path / "p-2.parquet").read_bytes() == b"here before"
    assert sink.rows == 8 and sink.bytes == sum((tmp_path / name).stat().st_size for name in names)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p-1.parquet", "p-2.parquet", "p-3.parquet", "p-4.parquet"]


def test_a_part_that_is_old_is_closed_when_rows_come(tmp_path: Path) -> None:
    now = [0.0]
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, name TEXT)")
        q = query(db)
        make = lambda path: open_sink(path, "csv")  # noqa: E731
        db.add_sink(q, RollingSink(str(tmp_path / "{n}.csv"), make, None, 60.0, lambda: now[0]))
        push(db, 1)
        now[0] = 59.0
        push(db, 2)
        assert not (tmp_path / "1.csv").exists()
        now[0] = 60.0
        push(db, 3)
        assert (tmp_path / "1.csv").read_text().count("\n") == 3
    assert (tmp_path / "2.csv").read_text().count("\n") == 2


def test_a_function_is_given_tables(db: Any) -> None:
    given: list[pa.Table] = []
    query(db).into(given.append)
    push(db, 1, 2)
    assert pa.concat_tables(given).to_pydict() == {"_ts": [1, 2], "_sign": [1, 1], "v": [1, 2], "name": ["n1", "n2"]}


def test_lines_reach_a_server(db: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        q = query(db)
        q.into(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        connected, _ = server.accept()
        push(db, 1, 2)
        q.close()
        lines = connected.makefile().read().splitlines()
        connected.close()
    assert [json.loads(line) for line in lines] == [{"_ts": v, "_sign": 1, "v": v, "name": f"n{v}"} for v in (1, 2)]
    assert q.written == {"to": q.written["to"], "state": "written", "rows": 2, "bytes": 76, "note": None}


def test_a_server_that_takes_nothing_is_given_up(db: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        q = query(db)
        q.into(f"tcp://127.0.0.1:{server.getsockname()[1]}", timeout=0.05)
        connected, _ = server.accept()
        with pytest.raises(Error, match=r"has taken nothing for 0\.05 seconds"):
            for ts in range(100):
                db.push("S", [(v, "x" * 50) for v in range(20_000)], ts=ts)
        assert q.sink is None and q.written["state"] == "given up"
        connected.close()


def test_every_client_hears_what_comes_after_it(db: Any) -> None:
    q = query(db)
    sink: Any = q.into("tcp-listen://127.0.0.1:0", format="csv", header=True)
    push(db, 1)
    with socket.create_connection(port_of(sink.path)) as early:
        soon(lambda: len(sink.notes) == 1)
        push(db, 2)
        with socket.create_connection(port_of(sink.path)) as late:
            soon(lambda: len(sink.notes) == 2)
            push(db, 3)
            q.close()
            assert early.makefile().read() == "_ts,_sign,v,name\n2,1,2,n2\n3,1,3,n3\n"
            assert late.makefile().read() == "_ts,_sign,v,name\n3,1,3,n3\n"


def test_a_client_that_does_not_keep_up_is_cut_off_and_the_others_are_not(db: Any) -> None:
    q = query(db)
    sink: Any = q.into("tcp-listen://127.0.0.1:0", client_bytes=1 << 20)
    received: list[str] = []
    with socket.create_connection(port_of(sink.path)) as slow, socket.create_connection(port_of(sink.path)) as quick:
        soon(lambda: len(sink.notes) == 2)
        reader = threading.Thread(target=lambda: received.extend(quick.makefile()))
        reader.start()
        rows = 0
        for ts in range(400):
            rows += db.push("S", [(v, "x" * 50) for v in range(1_000)], ts=ts)
            db.advance(ts)
            soon(lambda rows=rows: len(received) >= rows - 5_000)  # type: ignore[misc]
        q.close()
        reader.join(240)
        assert any("has been cut off" in note for note in sink.notes)
        assert len(received) == rows
        slow.close()


def test_closing_waits_idly_for_a_client_that_reads_nothing(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minidsms.sinks.tcp_output._LINGER_S", 1.0)
    q = query(db)
    sink: Any = q.into("tcp-listen://127.0.0.1:0")
    with socket.create_connection(port_of(sink.path)):
        soon(lambda: len(sink.notes) == 1)
        db.push("S", [(v, "x" * 1000) for v in range(12_000)], ts=0)
        db.advance(0)
        worked_s, began_s = time.process_time(), time.monotonic()
        q.close()
        assert time.process_time() - worked_s < 0.5 < time.monotonic() - began_s
    soon(lambda: not any(thread.name == f"minidsms {sink.path}" for thread in threading.enumerate()))


def test_two_queries_may_tell_the_same_server(db: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        queries = [query(db), query(db)]
        for q in queries:
            q.into(address)
        accepted = [server.accept()[0] for _ in queries]
        push(db, 1)
        for q, connected in zip(queries, accepted):
            q.close()
            assert json.loads(connected.makefile().read())["v"] == 1
            connected.close()


def test_one_engine_feeds_another_over_tcp(db: Any) -> None:
    q = query(db)
    sink: Any = q.into("tcp-listen://127.0.0.1:0")
    other = minidsms.connect()
    other.execute(
        "CREATE STREAM T (_ts INTEGER, v INTEGER, name TEXT) TIMESTAMP BY _ts "
        f"FROM '{sink.path.replace('tcp-listen', 'tcp')}' FORMAT json"
    )
    answer = other.query("SELECT name, v FROM T")
    soon(lambda: len(sink.notes) == 1)
    push(db, *range(1, 50))
    q.close()
    other.run()
    assert [c.row for c in answer.fetch()] == [(f"n{v}", v) for v in range(1, 50)]


def test_frames_of_every_kind_are_sources(db: Any) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"NAME": ["a", None], "v": [1, 2], "at": [5, 6], "more": [0, 0]}
    frames = (columns, pa.table(columns), pandas.DataFrame(columns), polars.DataFrame(columns))
    halves = (pa.table(columns).slice(i, 1) for i in range(2))
    for frame in (*frames, halves, pa.table(columns).to_batches()):
        other = minidsms.connect()
        other.execute("CREATE STREAM T (at INTEGER, v INTEGER, name TEXT) TIMESTAMP BY at")
        q = other.query("SELECT at, v, name FROM T")
        other.feed("T", frame)
        other.run()
        assert [c.row for c in q.fetch()] == [(5, 1, "a"), (6, 2, None)]


def test_a_frame_without_a_column_is_refused_when_it_is_given(db: Any) -> None:
    with pytest.raises(Error, match='no column "name"'):
        db.feed("S", pa.table({"v": [1]}))
    with pytest.raises(Error, match="a path, a table or an iterable"):
        db.feed("S", 5)
    with pytest.raises(Error, match="nothing says when"):
        db.feed("S", pa.table({"v": [1], "name": ["a"]}))
        db.run()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("'x.csv' WITH (apend = true)", 'did you mean "append"'),
        ("'x.parquet' WITH (append = true)", "takes lines"),
        ("'x.csv' WITH (roll_rows = 5)", "part-{n}.parquet"),
        ("'x-{n}.csv' WITH (roll_rows = 0)", "at least 1"),
        ("'tcp-listen://0.0.0.0:0'", "allow_remote"),
        ("'http://127.0.0.1:1'", "there is no sink"),
        ("'-' FORMAT arrow", "takes lines"),
        ("'x.thing'", "cannot be told"),
        ("'x.gz'", "cannot be told"),
        ("'x.parquet.gz'", "parquet compresses its columns itself"),
        ("'x.csv.gz' WITH (append = true)", "roll_rows"),
    ],
)
def test_a_wrong_option_of_into_is_shown_where_it_stands(db: Any, given: str, said: str) -> None:
    with pytest.raises(CqlError) as caught:
        db.execute(f"CREATE QUERY q AS SELECT v FROM S INTO {given}")
    assert said in str(caught.value) and "^^^" in str(caught.value)
    assert "q" not in db.queries


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst"])
@pytest.mark.parametrize("format", ["csv", "json"])
def test_answers_are_compressed_as_the_name_says(
    db: Any, tmp_path: Path, ending: str, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_file, "STRETCH", 100)
    place, names = tmp_path / f"x.{format}.{ending}", (f"x.{format}", f"X.{format}.{ending.upper()}")
    queries = [query(db) for _ in range(3)]
    for q, path in zip(queries, (place, *(tmp_path / name for name in names))):
        q.into(path)
    for v in range(40):
        push(db, v)
    assert not place.exists()
    for q in queries:
        db.execute(f"DROP QUERY {q.name}")
    with open_file(str(place)).data as file:
        assert file.read() == (tmp_path / names[0]).read_bytes()
    assert place.read_bytes() == (tmp_path / names[1]).read_bytes()
    assert len(os.listdir(tmp_path)) == 3


def test_answers_written_as_files_are_sources_again(db: Any, tmp_path: Path) -> None:
    q = query(db)
    q.into(tmp_path / "x.arrow")
    push(db, 1, 2)
    q.close()
    source: Any = open_source(str(tmp_path / "x.arrow"), None, Schema.of(("_ts", Type.INTEGER), ("v", Type.INTEGER)))
    assert [batch.to_pydict() for batch in source.read()] == [{"_ts": [1, 2], "v": [1, 2]}]


@pytest.mark.parametrize("is_kept", [False, True])
def test_answers_do_not_replace_the_file_that_an_input_is_read_from(tmp_path: Path, is_kept: bool) -> None:
    source, link = tmp_path / "in.csv", tmp_path / "link.csv"
    source.write_text("at,k\n1,2\n")
    link.symlink_to(source)
    with minidsms.connect(*[tmp_path / "db"] * is_kept) as db:
        db.execute(f"CREATE STREAM S (at TIMESTAMP, k INTEGER) TIMESTAMP BY at FROM '{source}'")
        for place in (source, link):
            with pytest.raises(Error, match=r"S is read from '.*', which the answers would replace"):
                db.execute(f"CREATE QUERY q AS SELECT k FROM S INTO '{place}'")
        with pytest.raises(Error, match="would replace"):
            db.query("SELECT k FROM S").into(source)
        db.run()
    assert source.read_text() == "at,k\n1,2\n"


@pytest.mark.parametrize("is_waiting", [False, True])
@pytest.mark.parametrize("closes", ["query", "connection", "another"])
def test_a_function_of_tables_may_close_what_it_is_told_of(db: Any, closes: str, is_waiting: bool) -> None:
    first, other = query(db), query(db)
    taken: list[int] = []

    def take(table: pa.Table) -> None:
        taken.append(len(table))
        {"query": first, "connection": db, "another": other}[closes].close()

    other.into(lambda table: None)
    if is_waiting:
        push(db, 1)
        push(db, 2)
    first.into(take)
    if not is_waiting:
        with contextlib.suppress(minidsms.ClosedError):
            push(db, 3)
    assert taken == [1] or (closes == "another" and is_waiting)
    if closes != "connection":
        push(db, 4)
        assert (first if closes == "query" else other).state == "closed"
