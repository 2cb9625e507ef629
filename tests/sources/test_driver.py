"""The driver of sources: timestamp order across files, `until`, late and malformed rows, relations ahead of streams."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import minidsms
from minidsms.cql.catalog import RelationDef, StreamDef
from minidsms.cql.errors import DataError, LateElementError, MemoryLimitError
from minidsms.elements import MIN_INSTANT, Schema, Type
from minidsms.inputs import RelationInput, StreamInput
from minidsms.sources.driver import SourceDriver
from minidsms.sources.text_file import CsvSource
from minidsms.values.dictionary import TextDictionary

SCHEMA = Schema.of(("at", Type.INTEGER), ("v", Type.INTEGER))
KEYED = Schema.of(("k", Type.INTEGER))


def stream(**options: Any) -> StreamInput:
    return StreamInput(StreamDef("S", SCHEMA, timestamp_by=0, **options), TextDictionary(), 1_000_000)


def relation(closed: Callable[[], int] = lambda: MIN_INSTANT) -> RelationInput:
    return RelationInput(RelationDef("R", KEYED), TextDictionary(), 1_000_000, closed)


def stream_file(tmp_path: Path, name: str, instants: list[Any], block_bytes: int = 12) -> CsvSource:
    path = tmp_path / name
    path.write_text("at,v\n" + "".join(f"{ts},{i}\n" for i, ts in enumerate(instants)))
    return CsvSource(str(path), SCHEMA, block_bytes=block_bytes)


def relation_file(tmp_path: Path, text: str) -> CsvSource:
    path = tmp_path / "r.csv"
    path.write_text(text)
    return CsvSource(str(path), KEYED, relation=True, block_bytes=8)


def instants(target: StreamInput) -> list[int]:
    return target.store.arrays()[0].tolist()


def test_sources_are_read_to_their_end_and_their_inputs_finished(tmp_path: Path) -> None:
    a, b = stream(), stream()
    pushes: list[int] = []
    driver = SourceDriver(
        [(stream_file(tmp_path, "a", [1, 2, 3]), a), (stream_file(tmp_path, "b", [2, 2]), b)], lambda: pushes.append(1)
    )
    driver.run()
    assert instants(a) == [1, 2, 3] and instants(b) == [2, 2]
    assert a.ended and b.ended and driver.fraction == 1.0 and pushes
    assert not driver.step()


def test_the_source_with_the_least_progress_goes_next(tmp_path: Path) -> None:
    a, b = stream(), stream()
    files = [(stream_file(tmp_path, "a", list(range(100))), a), (stream_file(tmp_path, "b", list(range(0, 200, 2))), b)]
    driver = SourceDriver(files)
    while driver.step():
        if not a.ended and not b.ended and a.greatest_ts is not None and b.greatest_ts is not None:
            assert abs(a.greatest_ts - b.greatest_ts) <= 12


def test_until_stops_at_an_instant_and_the_rest_comes_later(tmp_path: Path) -> None:
    target = stream()
    driver = SourceDriver([(stream_file(tmp_path, "a", [1, 3, 3, 5, 9], 1000), target)])
    driver.run(until=3)
    assert instants(target) == [1, 3, 3] and target.progress == 3
    driver.run(until=7)
    assert instants(target) == [1, 3, 3, 5] and target.progress == 7
    driver.run()
    assert instants(target) == [1, 3, 3, 5, 9] and target.ended


def test_until_waits_for_rows_that_slack_still_admits(tmp_path: Path) -> None:
    target = stream(slack=5)
    driver = SourceDriver([(stream_file(tmp_path, "a", [1, 6, 3, 20, 4], 1000), target)])
    driver.run(until=3)
    assert [ts for ts in instants(target) if ts <= 3] == [1, 3] and target.progress == 3


def test_malformed_rows_and_rows_without_a_timestamp_are_on_the_inputs_account(tmp_path: Path) -> None:
    target = stream()
    SourceDriver([(stream_file(tmp_path, "a", [1, "x", 2, "", 3], 1000), target)]).run()
    assert instants(target) == [1, 2, 3]
    assert target.counters.rejected == len(target.rejected) == 2
    assert "line 3" in target.rejected[0][1] and "NULL" in target.rejected[1][1]


def test_a_late_row_stops_with_file_and_line_unless_late_rows_are_dropped(tmp_path: Path) -> None:
    driver = SourceDriver([(stream_file(tmp_path, "a", [5, 7, 6], 1000), stream())])
    for _ in range(2):
        with pytest.raises(LateElementError, match=r"a, about line 4: stream \w+: late by"):
            driver.run()
    target = stream(late_drop=True)
    SourceDriver([(stream_file(tmp_path, "a", [5, 7, 6], 1000), target)]).run()
    assert instants(target) == [5, 7] and target.counters.late_dropped == 1


def test_a_relation_without_instants_is_inserted_whole_before_everything(tmp_path: Path) -> None:
    a, r = stream(), relation()
    closed: list[int] = []
    files = [(stream_file(tmp_path, "a", [7, 8, 9]), a), (relation_file(tmp_path, "k\n" + "1\n" * 20), r)]
    SourceDriver(files, lambda: closed.append(len(a.store) if r.store.size < 20 else 0)).run()
    assert r.present().ts.tolist() == [7] * 20 and not any(closed) and r.ended


def test_a_relation_alone_is_inserted_at_zero(tmp_path: Path) -> None:
    r = relation()
    SourceDriver([(relation_file(tmp_path, "k\n1\n2\n"), r)]).run()
    assert r.present().ts.tolist() == [0, 0]


def test_changes_of_a_relation_are_made_before_the_streams_close_their_instants(tmp_path: Path) -> None:
    a = stream()
    r = relation(closed=lambda: a.progress)
    text = "ts,sign,k\n" + "".join(f"{ts},+,{ts}\n" for ts in range(0, 100, 3))
    SourceDriver([(stream_file(tmp_path, "a", list(range(100)), 100), a), (relation_file(tmp_path, text), r)]).run()
    assert r.present().ts.tolist() == list(range(0, 100, 3)) and a.ended


def test_until_leaves_changes_behind_it_though_slack_lets_rows_in(tmp_path: Path) -> None:
    a = stream(slack=4)
    r = relation(closed=lambda: a.progress)
    changes = relation_file(tmp_path, "ts,sign,k\n2,+,1\n7,+,2\n11,+,3\n")
    driver = SourceDriver([(stream_file(tmp_path, "a", [1, 9, 5, 12], 1000), a), (changes, r)])
    assert not all(driver.step(until=6) for _ in range(20))
    assert r.present().ts.tolist() == [2]
    driver.run()
    assert r.present().ts.tolist() == [2, 7, 11] and a.ended


def test_a_relation_that_finds_no_memory_ends_the_run_though_others_wait_for_it() -> None:
    rows = [
        pa.table({"k": range(i, i + 1000), "v": range(1000), "ts": range(i, i + 1000)}) for i in range(0, 40_000, 1000)
    ]
    with minidsms.connect(memory_limit="1 MB") as db:
        for name in RELATIONS:
            db.execute(f"CREATE RELATION {name} (k INTEGER, v INTEGER)")
            db.feed(name, rows)
        db.query(JOINED[0])
        giving_up = threading.Timer(20, db.stop)
        giving_up.start()
        with pytest.raises(MemoryLimitError):
            db.run()
        giving_up.cancel()


def _blocks(changes: list[list[tuple[int, int]]]) -> list[pa.Table]:
    """Of a relation, insertions of k at ts."""
    return [pa.table({"ts": [ts for ts, _ in block], "k": [k for _, k in block]}) for block in changes]


@pytest.mark.parametrize("step", [10, 100])
@pytest.mark.parametrize("first", [0, 50])
@pytest.mark.parametrize(
    "blocks",
    [
        ([[(0, 1)], [(500, 1)], [(500, 2)], [(501, 2)]], [[(0, 2)]]),
        ([[(0, 1)], [(44, 1)], [(44, 2)], [(501, 2)]], [[(0, 2), (44, 1)]]),
        ([[(0, 1), (44, 1)], [(44, 2)], [(501, 2)]], [[(0, 1), (44, 1)], [(500, 1), (501, 1)]]),
        ([[(0, 1), (501, 2)]], [[(0, 1)], [(500, 2)], [(500, 1)], [(501, 1)]]),
        ([[(0, 1), (501, 2)]], [[(500, 2)], [(500, 1), (1999, 2)], [(2500, 1)]]),
    ],
)
def test_changes_are_taken_when_the_stream_they_are_read_with_has_ended_before_others(
    step: int, first: int, blocks: tuple[list[list[tuple[int, int]]], ...]
) -> None:
    """A is the longer stream; B ends at 42."""
    queries = (
        "SELECT v, R.k FROM B, R WHERE v = R.k",
        "SELECT v, R.k FROM B [RANGE 30], R, R2 WHERE v = R.k AND v = R2.k",
        "SELECT COUNT(*) FROM B [RANGE 5]",
        "SELECT A.v, B.v FROM A [RANGE 3], B [RANGE 3] WHERE A.v = B.v",
    )
    answers = []
    for is_run in (True, False):
        with minidsms.connect() as db:
            db.execute("CREATE STREAM A (ts INTEGER, v INTEGER) TIMESTAMP BY ts; CREATE RELATION R (k INTEGER)")
            db.execute("CREATE STREAM B (ts INTEGER, v INTEGER) TIMESTAMP BY ts; CREATE RELATION R2 (k INTEGER)")
            running = [db.query(text) for text in queries]
            a, b = ([(ts, ts % 3) for ts in span] for span in (range(first, 2000), range(43)))
            if is_run:
                db.feed("A", [pa.table(dict(zip(("ts", "v"), zip(*a[i : i + step])))) for i in range(0, len(a), step)])
                db.feed("B", pa.table(dict(zip(("ts", "v"), zip(*b)))))
                for name, given in zip(("R", "R2"), blocks):
                    db.feed(name, _blocks(given))
                db.run()
            else:
                by_name = {"A": a, "B": b} | {
                    name: [change for block in given for change in block] for name, given in zip(("R", "R2"), blocks)
                }
                for ts in range(2501):
                    for name in ("R", "R2", "A", "B"):
                        for row in (row for row in by_name[name] if row[0] == ts):
                            db.push(name, row if name in "AB" else row[1:], ts=ts)
                db.advance(2501)
            answers.append([Counter((c.ts, c.sign, c.row) for c in query.fetch()) for query in running])
    ends = [max(42, blocks[0][-1][-1][0])] * 2 + [42, 1999]
    ends[1] = max(ends[0], blocks[1][-1][-1][0])
    assert answers[0] == [
        Counter({change: n for change, n in every.items() if change[0] <= end}) for every, end in zip(answers[1], ends)
    ]


def test_run_until_answers_an_instant_at_which_relations_alone_change() -> None:
    with minidsms.connect() as db:
        for name in RELATIONS:
            db.execute(f"CREATE RELATION {name} (k INTEGER, v INTEGER)")
            db.feed(name, pa.table({"ts": [0, 5, 10, 20], "k": [1, 2, 3, 4], "v": [0] * 4}))
        query = db.query(JOINED[0])
        db.run(until=10)
        assert [change.ts for change in query.fetch()] == [0, 5, 10]
        db.run()
        assert [change.ts for change in query.fetch()] == [20]


@pytest.mark.parametrize("is_read_before", [False, True])
def test_a_relation_may_be_fed_twice(is_read_before: bool) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (k INTEGER)")
        query = db.query("SELECT k FROM R")
        db.feed("R", _blocks([[(0, 1), (5, 2)]]))
        if is_read_before:
            db.run()
        db.feed("R", _blocks([[(7, 3), (9, 4)], [(9, 5), (12, 6)]]))
        db.run()
        assert [(change.ts, *change.row) for change in query.fetch()] == [
            *((0, 1), (5, 2), (7, 3)),
            *((9, 4), (9, 5), (12, 6)),
        ]


@pytest.mark.parametrize("slack", [0, 300])
def test_changes_that_find_no_memory_are_not_passed_by_the_stream_that_is_to_make_room(slack: int) -> None:
    ts = [t for t in range(100_000) for _ in range(2)][1:]
    sign = [1, *(1 - 2 * (i % 2) for i in range(1, len(ts)))]
    k = [(t if s == 1 else t - 1) % 7 for t, s in zip(ts, sign)]
    given = []
    for limit in ("1 GB", "4 MB", "1 MB"):
        with minidsms.connect(memory_limit=limit) as db:
            db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts SLACK {slack}")
            db.execute("CREATE RELATION R (k INTEGER)")
            db.feed("S", pa.table({"ts": range(0, 100_000, 20_000), "v": [0, 1, 2, 3, 4]}))
            changes = pa.table({"ts": ts, "sign": sign, "k": k})
            db.feed("R", [changes.slice(i, 1000) for i in range(0, len(ts), 1000)])
            query = db.query("SELECT COUNT(*) FROM S [RANGE 10], R WHERE v = R.k")
            if limit == "1 MB":
                with pytest.raises(MemoryLimitError):
                    db.run()
            else:
                db.run()
                given.append([(change.ts, change.sign, change.row) for change in query.fetch()])
    assert given[0] == given[1] != []


def test_no_stream_passes_a_file_without_instants_that_finds_no_memory() -> None:
    with minidsms.connect(memory_limit="1 MB") as db:
        db.execute("CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts; CREATE RELATION R (k INTEGER)")
        db.feed("S", pa.table({"ts": range(1000), "v": range(1000)}))
        db.feed("R", [pa.table({"k": range(i, i + 10_000)}) for i in range(0, 200_000, 10_000)])
        query = db.query("SELECT COUNT(*) FROM S [NOW], R WHERE v < R.k")
        with pytest.raises(MemoryLimitError):
            db.run()
        assert query.fetch() == []


def test_a_deletion_of_no_row_stops_with_the_file(tmp_path: Path) -> None:
    r = relation()
    with pytest.raises(DataError, match=r"r\.csv.*nothing to delete"):
        SourceDriver([(relation_file(tmp_path, "ts,sign,k\n1,-,5\n"), r)]).run()


RELATIONS = "A", "B"
JOINED = "SELECT A.k, B.v FROM A, B WHERE A.k = B.k", "SELECT A.k, B.v FROM A, B, S WHERE A.k = B.k AND S.k = A.k"


def _changes(rng: Random, name: str) -> list[tuple[int, tuple[int, int]]]:
    """Of a relation, in the order of time: many at an instant, and longer than the stream."""
    return sorted((rng.randrange(40), (rng.randrange(5), i)) for i in range(30 if name == "A" else 50))


@pytest.mark.parametrize("query", JOINED)
@pytest.mark.parametrize("until", [None, 7, 15])
@pytest.mark.parametrize("replayed", [False, True])
def test_relations_are_read_in_the_order_of_time_where_they_close_instants(
    tmp_path: Path, query: str, until: int | None, replayed: bool
) -> None:
    rng = Random(5)
    changes = {name: _changes(rng, name) for name in RELATIONS}
    elements = [(ts, (ts % 5,)) for ts in range(12)]
    declared = {name: f"CREATE RELATION {name} (k INTEGER, v INTEGER)" for name in RELATIONS}
    declared["S"] = "CREATE STREAM S (ts TIMESTAMP, k INTEGER) TIMESTAMP BY ts"
    with minidsms.connect() as db:
        db.execute("; ".join(declared.values()))
        for name in declared:
            db.archive(name, str(tmp_path / "archive"))
        pushed = db.query(query)
        for ts in range(40):
            for name in RELATIONS:
                rows = [row for at, row in changes[name] if at == ts]
                if rows:
                    db.push(name, rows, ts=ts)
            if ts < len(elements):
                db.push("S", (ts, *elements[ts][1]))
        db.advance(40)
        expected = Counter((c.ts, c.sign, c.row) for c in pushed.fetch())
    with minidsms.connect() as db:
        if replayed:
            db.execute("; ".join(declared.values()))
            query_again = db.query(query)
            db.replay(str(tmp_path / "archive"), to=until)
            db.advance(40 if until is None else until)
        else:
            for name in RELATIONS:
                rows = [{"k": k, "v": v, "ts": ts, "sign": 1} for ts, (k, v) in changes[name]]
                db.execute(declared[name])
                db.feed(name, [pa.Table.from_pylist(rows[i : i + 7]) for i in range(0, len(rows), 7)])
            (tmp_path / "S.csv").write_text("ts,k\n" + "".join(f"{ts},{k}\n" for ts, (k,) in elements))
            db.execute(f"{declared['S']} FROM '{tmp_path}/S.csv'")
            query_again = db.query(query)
            if until is not None:
                db.run(until)
            db.run()
        found = Counter((c.ts, c.sign, c.row) for c in query_again.fetch())
    last = 39 if not replayed or until is None else until
    assert found == Counter({change: n for change, n in expected.items() if change[0] <= last}) and found


def test_a_row_without_an_instant_is_kept_whatever_its_times_are() -> None:
    times = pa.array([[-(10**11)], [0]]).cast(pa.list_(pa.timestamp("s")))
    rows = pa.table({"ts": pa.array([None, 5], pa.int64()), "l": times, "t": times.flatten()})
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (ts INTEGER, l TIMESTAMP[], t TIMESTAMP) TIMESTAMP BY ts")
        db.feed("S", [rows])
        q = db.query("SELECT ISTREAM(l, t) FROM S [NOW]")
        db.run()
        assert [change.row for change in q.fetch()] == [([0], 0)]
        assert len(db.stream_input("S").rejected) == 1  # type: ignore[arg-type]
