"""Sources of a connection with a folder go on where they were, however often the process ends."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

import minidsms
from minidsms.connection import Connection
from minidsms.cql.errors import Error
from minidsms.durability.connection import DurableConnection
from tests.long.crash_sources import small_blocks

ROWS = 400


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with small_blocks(256, 23):
        yield tmp_path


def end(db: Connection) -> None:
    """The process is killed."""
    assert isinstance(db, DurableConnection) and db.log is not None
    for close in db.reading.closers:
        close()
    db.log.stop()
    db.abandon()


def table(rows: int = ROWS) -> pa.Table:
    rng = Random(7)
    return pa.table(
        {
            "at": pa.array(range(rows)),
            "k": pa.array([rng.randrange(5) for _ in range(rows)]),
            "name": pa.array([f'a "b"\n{i}' if i % 17 == 0 else f"n{i % 3}" for i in range(rows)]),
        }
    )


def as_csv(path: str) -> None:
    lines = ["k,name,at"]
    for i, (at, k, name) in enumerate(zip(*table().to_pydict().values())):
        quoted = name.replace('"', '""')
        lines.append(f'{k},"{quoted}",{at}')
        if i % 31 == 0:
            lines.append("no,row")
    text = ("\n".join(lines) + "\n").encode()
    Path(path).write_bytes(gzip.compress(text) if path.endswith(".gz") else text)


def as_json(path: str) -> None:
    import json

    rows = [json.dumps(row) for row in table().to_pylist()]
    Path(path).write_text("".join(row + "\n" + "{bad\n" * (i % 29 == 0) for i, row in enumerate(rows)))


def as_parquet(path: str) -> None:
    parquet.write_table(table(), path, row_group_size=50)


def as_arrow(path: str) -> None:
    with ipc.new_file(path, table().schema) as file:
        file.write_table(table(), max_chunksize=40)


FILES: dict[str, Callable[[str], None]] = {
    "in.csv": as_csv,
    "in.csv.gz": as_csv,
    "in.jsonl": as_json,
    "in.parquet": as_parquet,
    "in.arrow": as_arrow,
}
QUERY = "SELECT name, COUNT(*) FROM S [RANGE 9] GROUP BY name"


def declare(db: Connection, source: str) -> None:
    if "s" not in db.catalog.streams:
        db.execute(f"CREATE STREAM S (k INTEGER, name TEXT, at INTEGER) TIMESTAMP BY at FROM '{source}'")
    if "q" not in db.queries:
        db.query(QUERY, "q")


def take(db: Connection, kept: list[Any]) -> None:
    kept += db.queries["q"].fetch(ack=len(kept))


@pytest.mark.parametrize("path", FILES)
def test_a_file_that_is_read_goes_on_behind_the_last_block_that_was_pushed(path: str) -> None:
    FILES[path](path)
    expected: list[Any] = []
    with minidsms.connect() as db:
        declare(db, path)
        db.run()
        take(db, expected)
        rejected = db.stream_input("S").counters.rejected
    rng, found, ended, blocks_read = Random(path), list[Any](), False, 0
    while not ended:
        db = minidsms.connect("db", durability="os")
        declare(db, path)
        for _ in range(rng.randrange(1, 8)):
            ended = not db.run_some(rng.choice((None, None, 37 * blocks_read)))
            blocks_read += 1
            if ended:
                db.run()
            take(db, found)
        if rng.random() < 0.4:
            db.checkpoint()
        assert not db.warnings
        end(db)
    assert blocks_read > 10
    with minidsms.connect("db") as db:
        db.run()
        take(db, found)
        assert db.stream_input("S").counters.rejected == rejected
        assert db.position("S") == ROWS
    assert Counter(found) == Counter(expected)


def test_a_file_is_read_from_the_byte_that_the_log_names(monkeypatch: pytest.MonkeyPatch) -> None:
    as_csv("in.csv")
    with minidsms.connect("db") as db:
        declare(db, "in.csv")
        for _ in range(5):
            db.run_some()
        known = db.position("S")
    with minidsms.connect("db") as db:
        (source, _), *_ = db.reading.sources
        assert source.bytes_read > 1000
        db.run()
        assert db.position("S") == ROWS > known


@pytest.mark.parametrize("path", ["in.csv", "in.parquet"])
def test_another_file_under_the_name_is_not_gone_on_with(path: str) -> None:
    FILES[path](path)
    with minidsms.connect("db") as db:
        declare(db, path)
        for _ in range(3):
            db.run_some()
        known = db.position("S")
    os.rename(path, "aside")
    for is_there in (False, True):
        if is_there and path == "in.csv":
            Path(path).write_text("k,name,at\n" + "1,other,5\n" * ROWS)
        elif is_there:
            parquet.write_table(table(9), path)
        with minidsms.connect("db") as db:
            assert "the source of S cannot be gone on with" in db.warnings[0]
            for _ in range(2):
                with pytest.raises(Error):
                    db.run()
            assert db.position("S") == known and not db.stream_input("S").ended
    os.replace("aside", path)
    with minidsms.connect("db") as db:
        db.run()
        assert db.position("S") == ROWS


def test_a_file_that_has_been_read_need_not_be_there_any_more() -> None:
    as_csv("in.csv")
    with minidsms.connect("db") as db:
        declare(db, "in.csv")
        db.run()
        expected = db.stream_input("S").counters
    os.unlink("in.csv")
    for _ in range(2):
        with minidsms.connect("db") as db:
            db.run()
            assert not db.warnings and db.stream_input("S").ended
            assert vars(db.stream_input("S").counters) == vars(expected)
            db.checkpoint()


def test_feed_is_kept_and_opened_again_from_elsewhere(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    as_csv("in.csv")
    with minidsms.connect("db") as db:
        db.execute("CREATE STREAM S (k INTEGER, name TEXT, at INTEGER) TIMESTAMP BY at")
        db.feed("S", "in.csv", "csv")
        db.run_some()
        with pytest.raises(Error, match="is no path or address"):
            db.feed("S", table())
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    with minidsms.connect(place / "db") as db:
        db.run()
        assert db.position("S") == ROWS


def test_a_relation_s_file_and_a_stream_s_are_read_on_in_the_order_of_time() -> None:
    changes = "".join(f"{t},{'+-'[t % 2]},{t // 2 % 5},{t // 2}\n" for t in range(300))
    Path("r.csv").write_text("ts,sign,k,v\n" + changes)
    as_csv("in.csv")
    query = "SELECT S.at, R.v FROM S [NOW], R WHERE S.k = R.k"

    def declared(db: Connection) -> None:
        if "q" not in db.queries:
            if "r" not in db.catalog.relations:
                db.execute("CREATE STREAM S (k INTEGER, name TEXT, at INTEGER) TIMESTAMP BY at FROM 'in.csv'")
                db.execute("CREATE RELATION R (k INTEGER, v INTEGER) FROM 'r.csv'")
            db.query(query, "q")

    expected: list[Any] = []
    found: list[Any] = []
    with minidsms.connect() as db:
        declared(db)
        db.run()
        take(db, expected)
    went_on = True
    while went_on:
        db = minidsms.connect("db", durability="os")
        declared(db)
        for _ in range(4):
            went_on = db.run_some()
        take(db, found)
        end(db)
    assert len(expected) > 50 and Counter(found) == Counter(expected)


def lines_of(n: int, first: int = 0) -> str:
    return "".join(f'{{"k": {i % 3}, "name": "n{i}", "at": {i}}}\n' for i in range(first, n))


@pytest.mark.parametrize("is_new", [False, True])
def test_a_growing_file_that_is_truncated_before_it_is_read_again_is_read_from_its_start(is_new: bool) -> None:
    Path("log.jsonl").write_text(lines_of(50) + "nothing\n")
    with minidsms.connect("db") as db:
        declare(db, "log.jsonl' WITH (follow = true, stop_after = 0 SECONDS, poll = 0 SECONDS) --")
        db.query("SELECT at FROM S [NOW]", "all")
        while db.position("S") < 50:
            db.run_some()
    with minidsms.connect("db") as db:
        if is_new:
            os.unlink("log.jsonl")
        Path("log.jsonl").write_text("neither\n" + lines_of(70, 60))
        db.run()
        seen = [change.row[0] for change in db.queries["all"].fetch() if change.sign > 0]
        assert seen == [*range(50), *range(60, 70)]
        assert "from its start" in str(db.execute("SHOW SOURCES")) or "at its start" in str(db.execute("SHOW SOURCES"))
        assert db.stream_input("S").counters.rejected == 2


def test_a_rotated_file_whose_last_line_lacks_its_end_is_known_again() -> None:
    Path("log.jsonl").write_text(lines_of(5))
    with minidsms.connect("db") as db:
        declare(db, "log.jsonl' WITH (follow = true, poll = 0 SECONDS) --")
        db.query("SELECT at FROM S [NOW]", "all")
        while db.position("S") < 5:
            db.run_some()
        with open("log.jsonl", "a") as file:
            file.write(lines_of(6, 5).rstrip())
        os.rename("log.jsonl", "log.jsonl.1")
        Path("log.jsonl").write_text("")
        while db.position("S") < 6:
            db.run_some()
    Path("log.jsonl").write_text(lines_of(9, 6))
    with minidsms.connect("db") as db:
        assert not db.warnings
        while db.position("S") < 9:
            db.run_some()
        db.advance(20)
        assert [change.row[0] for change in db.queries["all"].fetch() if change.sign > 0] == list(range(9))


@pytest.mark.parametrize("change", ["grown", "rotated", "replaced", "truncated"])
def test_a_growing_file_goes_on_behind_the_lines_that_were_pushed(change: str) -> None:
    Path("log.jsonl").write_text(lines_of(50))
    source = "log.jsonl' WITH (follow = true, stop_after = 0 SECONDS, poll = 0 SECONDS) --"
    with minidsms.connect("db") as db:
        declare(db, source)
        db.query("SELECT at FROM S [NOW]", "all")
        while db.position("S") < 50:
            db.run_some()
    if change in ("grown", "rotated"):
        with open("log.jsonl", "a") as file:
            file.write(lines_of(60, 50))
    if change == "rotated":
        os.rename("log.jsonl", "log.jsonl.1")
    if change == "replaced":
        os.rename("log.jsonl", "../gone")
    if change != "grown":
        Path("log.jsonl").write_text(lines_of(70, 60))
    with minidsms.connect("db") as db:
        db.run()
        seen = [change.row[0] for change in db.queries["all"].fetch() if change.sign > 0]
        first = {"grown": 60, "rotated": 70}.get(change)
        assert seen == (list(range(first)) if first else [*range(50), *range(60, 70)])
        assert bool(db.warnings) == (first is None)


def test_a_pipe_is_told_that_it_cannot_go_on() -> None:
    os.mkfifo("pipe")
    with minidsms.connect("db") as db:
        declare(db, "pipe")
        assert not db.warnings
    with minidsms.connect("db") as db:
        assert db.warnings == ["pipe cannot be asked again for what was sent to S before"]


def test_a_query_s_file_takes_its_place_once_when_the_sources_have_ended() -> None:
    as_csv("in.csv")
    db = minidsms.connect("db")
    db.execute("CREATE STREAM S (k INTEGER, name TEXT, at INTEGER) TIMESTAMP BY at FROM 'in.csv'")
    db.execute("CREATE QUERY q AS SELECT at FROM S [NOW] WHERE k = 1 INTO 'out.csv'")
    for _ in range(6):
        db.run_some()
    end(db)
    assert not os.path.exists("out.csv")
    with minidsms.connect("db") as db:
        db.run()
        written = Path("out.csv").read_text()
    wanted = [at for at, k in zip(*table().select(["at", "k"]).to_pydict().values()) if k == 1]
    assert [int(line.split(",")[2]) for line in written.splitlines()[1:] if line.split(",")[1] == "1"] == wanted
    for _ in range(2):
        with minidsms.connect("db") as db:
            db.run()
            assert not db.queries["q"].fetch() and not db.warnings
            db.checkpoint()
    assert Path("out.csv").read_text() == written


def test_what_a_generator_makes_is_made_again_and_passed_over() -> None:
    text = "CREATE STREAM Bid (auction INTEGER, price INTEGER, at TIMESTAMP) TIMESTAMP BY at"
    with minidsms.connect() as db:
        db.execute(f"{text} FROM GENERATOR nexmark('bid', events = 300)")
        q = db.query("SELECT COUNT(*), SUM(price) FROM Bid [ROWS 50]")
        db.run()
        expected = Counter(q.fetch())
    with minidsms.connect("db") as db:
        db.execute(f"{text} FROM GENERATOR nexmark('bid', events = 300)")
        db.query("SELECT COUNT(*), SUM(price) FROM Bid [ROWS 50]", "q")
        db.run(until=next(iter(sorted(c.ts for c in expected)[len(expected) // 2 :])))
    with minidsms.connect("db") as db:
        db.run()
        assert Counter(db.queries["q"].fetch()) == expected


def test_a_checkpoint_counts_late_rows_among_the_rejected(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("v,at\n0,1\n1,5\n2,3\n3,2\nx,6\n4,7\n")
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(f"CREATE STREAM S (v INTEGER, at INTEGER) TIMESTAMP BY at LATE DROP FROM '{path}'")
        db.query("SELECT v FROM S [RANGE 3]", "q")
        db.run()
        counted = vars(db.stream_input("S").counters).copy()
        assert (counted["late_dropped"], counted["rejected"]) == (2, 3)
    for _ in range(3):
        with minidsms.connect(tmp_path / "db") as db:
            assert vars(db.stream_input("S").counters) == counted
            db.checkpoint()
