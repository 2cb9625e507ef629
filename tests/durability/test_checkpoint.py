"""A checkpoint leaves out of the log what matters to no query any more, and nothing else."""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql import stand_ins
from minidsms.cql.errors import Error
from minidsms.durability import checkpoints, copying, kept_state, moment, owned_folder, repair
from minidsms.durability import folder as folder_module
from minidsms.durability.blocks import Content, Piece
from minidsms.durability.checking import check
from minidsms.durability.checkpoints import Checkpoints
from minidsms.durability.connection import DurableConnection
from minidsms.durability.entry import Fields, read
from minidsms.durability.segments import entries
from minidsms.operators.over import Over
from minidsms.plan.matching import ONE
from minidsms.plan.rules.pass_what_enters import _Streams
from minidsms.plan.unnesting import Builder, _Widened
from tests.refusing import refusing
from tests.waiting import soon


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "db")


def opened(folder: str) -> DurableConnection:
    db = minidsms.connect(folder)
    assert isinstance(db, DurableConnection)
    return db


def kinds(folder: str) -> list[str]:
    """What the log that counts holds."""
    metadata = folder_module.metadata_of(folder)
    assert metadata is not None
    return [read(found)[0]["kind"] for found in entries(os.path.join(folder, metadata.log))]


def elements(db: minidsms.Connection) -> int:
    """How many the log that counts holds."""
    assert isinstance(db, DurableConnection)
    found = 0
    for each in entries(db.log_folder):
        fields, rows = read(each)
        if fields["kind"] == "push":
            journal = db.stream_input(fields["to"]).journal
            assert journal is not None
            found += len(journal.batch(fields, rows.whole()))
    return found


def what_is_there(db: minidsms.Connection) -> dict[str, Any]:
    queries = {
        q.name: (q.results, q.position, q.closed_until, q.state, q.fetch(ack=q.position), q.kind)
        for q in db.queries.values()
    }
    positions = {
        each.definition.name: db.position(each.definition.name) for each in db.inputs if each.journal is not None
    }
    return {"queries": queries, "positions": positions, "settings": str(db.execute("SHOW settings"))}


def test_a_window_keeps_its_rows_and_the_rest_goes(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER, name TEXT)")
    counts = db.query("SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="counts")
    for i in range(200):
        db.push("S", (i % 3, f"name{i}"), ts=i)
    taken = counts.fetch(ack=0)
    counts.fetch(ack=sum(change.ts < 150 for change in taken))
    before = what_is_there(db)
    assert elements(db) == 200
    db.checkpoint()
    assert elements(db) < 20
    assert what_is_there(db) == before
    db.close()
    with opened(folder) as db:
        assert what_is_there(db) == before
        assert sorted(db.queries["counts"].snapshot()) == [(0, 4), (1, 3), (2, 3)]
        db.push("S", (0, None), ts=200)
        db.advance(300)
        assert sorted(db.queries["counts"].snapshot()) == []


@pytest.mark.parametrize(
    "query, reason",
    [
        ("SELECT S.k FROM S, S [RANGE 5] AS R WHERE S.k = R.k", "2-way Join"),
        ("SELECT ARRAY_AGG(k) FROM S", "Aggregate ARRAY_AGG"),
        ("SELECT k, STRING_AGG(CAST(k AS TEXT)) FROM S GROUP BY k", "Aggregate by column1: STRING_AGG"),
    ],
)
def test_what_needs_the_whole_past_keeps_it(folder: str, query: str, reason: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER)")
    db.query(query, name="q")
    for i in range(50):
        db.push("S", (i % 7,), ts=i)
    db.queries["q"].fetch()
    db.checkpoint()
    assert elements(db) == 50
    assert db.execute("SHOW CHECKPOINTS").rows[-1][-1].startswith(f"q ({reason}")
    db.push("S", (100,), ts=60)
    db.advance(60)
    before = what_is_there(db)
    db.close()
    with opened(folder) as db:
        assert what_is_there(db) == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM S [RANGE 10]",
        "SELECT COUNT(*), SUM(k) FROM S [RANGE 1]",
        "SELECT * FROM S [ROWS 3]",
        "SELECT k, COUNT(*) FROM S [ROWS 7] GROUP BY k",
        "SELECT ISTREAM(a.k, b.k) FROM S [ROWS 4] AS a, S [RANGE 6] AS b WHERE a.k = b.k",
        "SELECT a.k FROM S [ROWS 1] AS a, S [ROWS 5] AS b, S [RANGE 2] AS c WHERE a.k = b.k AND b.k = c.k",
    ],
)
def test_windows_by_rows_keep_these_rows(folder: str, query: str) -> None:
    db = opened(folder)
    with minidsms.connect() as other:
        for each in (db, other):
            each.execute("CREATE STREAM S (k INTEGER) SLACK 3")
            each.query(query, name="q")
        for i in range(150):
            for each in (db, other):
                each.push("S", (i % 7,), ts=i - 2 * (i % 2))
            if i % 40 == 20:
                db.checkpoint()
                assert elements(db) < 25
                db.close()
                db = opened(folder)
        for each in (db, other):
            each.advance(400)
        assert Counter(db.queries["q"].fetch()) == Counter(other.queries["q"].fetch())
        assert not db.execute("SHOW CHECKPOINTS").rows[-1][-1]
    db.close()


OVER_ALL = [
    "SELECT k, COUNT(*), SUM(v), SUM(k) FROM S GROUP BY k",
    "SELECT COUNT(*) FROM S WHERE v > 100",
    "SELECT DISTINCT name FROM S",
    "SELECT ISTREAM(k, MAX(v) AS m) FROM S WHERE v > 1 GROUP BY k HAVING MAX(v) > 3",
    "SELECT T.k, c FROM T [RANGE 5], (SELECT k, COUNT(*) AS c FROM S GROUP BY k) A WHERE T.k = A.k",
    "SELECT name, COUNT(DISTINCT k), AVG(v), MIN(name) FROM S GROUP BY name ORDER BY 2, 1 LIMIT 3",
    "SELECT FIRST(v), LAST(v), VARIANCE(v) FROM S",
    "SELECT k, MEDIAN(v), QUANTILE_CONT(k, 0.7), QUANTILE_DISC(name, 0.4), MEDIAN(DISTINCT v) FROM S GROUP BY k",
    "SELECT k, ARG_MAX(name, v), ARG_MIN(v, name), ARG_MAX(v, k) FROM S GROUP BY k",
    "SELECT name, CORR(v, k), REGR_INTERCEPT(k, v), VAR_POP(DISTINCT v), STDDEV_POP(k) FROM S GROUP BY name",
    "SELECT k, MODE(name), MODE() WITHIN GROUP (ORDER BY v DESC), MODE(k) FROM S GROUP BY k",
    "SELECT name, BIT_AND(k), BIT_OR(DISTINCT k), BIT_XOR(k), BIT_XOR(DISTINCT k) FROM S GROUP BY name",
    "SELECT COUNT(*) FROM (SELECT DISTINCT k FROM S)",
    "SELECT COUNT(*) FROM S [RANGE 3]",
    "SELECT k, LAG(name, 2) OVER (PARTITION BY k ORDER BY ts) AS l, AVG(v) OVER (ORDER BY ts ROWS 9 PRECEDING) AS m"
    ", LAG(v, 1, k) OVER (PARTITION BY name ORDER BY ts) AS d FROM S",
    "SELECT MIN(name) OVER (PARTITION BY name ORDER BY ts) AS l, RANK() OVER (ORDER BY ts, k) AS r FROM S",
    "SELECT NTH_VALUE(name, 3) OVER (PARTITION BY k ORDER BY ts) AS n, SUM(k) OVER (ORDER BY ts RANGE 5 PRECEDING) AS s"
    ", SUM(CAST(k AS DECIMAL(9, 1))) OVER (PARTITION BY name ORDER BY ts) AS d FROM S",
    "SELECT STDDEV(v) OVER (PARTITION BY k ORDER BY ts ROWS 9 PRECEDING) AS d, MODE(name) OVER (ORDER BY ts) AS m"
    ", COUNT(DISTINCT name) OVER (PARTITION BY k ORDER BY ts ROWS 4 PRECEDING) AS c FROM S",
    "SELECT LAST_VALUE(name) IGNORE NULLS OVER (PARTITION BY k ORDER BY ts) AS l"
    ", LAG(v) IGNORE NULLS OVER (ORDER BY ts) AS g"
    ", FIRST_VALUE(v IGNORE NULLS) OVER (ORDER BY ts ROWS 3 PRECEDING) AS f FROM S",
    "SELECT MEDIAN(v) OVER (ORDER BY ts RANGE 5 PRECEDING) AS m, VAR_POP(v) OVER (PARTITION BY name ORDER BY ts) AS d"
    ", BIT_XOR(k) OVER (PARTITION BY name ORDER BY ts ROWS 3 PRECEDING) AS b FROM S",
    *(
        f"SELECT ISTREAM(k, {call} OVER (PARTITION BY {by} ORDER BY ts {frame}) AS r) FROM S"
        for call, by, frame in (
            ("MAX(name)", "k", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING"),
            ("AVG(v)", "name", "RANGE BETWEEN UNBOUNDED PRECEDING AND 4 FOLLOWING"),
            ("NTH_VALUE(name, 3)", "name", "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING"),
            ("SUM(CAST(k AS DECIMAL(38, 18)))", "k", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING"),
            ("COUNT(name)", "k", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"),
            ("STDDEV(v)", "k", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"),
            ("MODE(name)", "name", "RANGE BETWEEN UNBOUNDED PRECEDING AND 4 FOLLOWING"),
            ("LAST_VALUE(name) IGNORE NULLS", "k", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
            ("STRING_AGG(name)", "k", "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING"),
        )
    ),
]


@pytest.mark.parametrize("way", ["the connection", "a child", "a child that is late", "a second engine"])
def test_of_aggregates_over_all_that_came_the_state_is_kept(
    folder: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside queries over windows of the same stream, which keep elements that are in that state already. way: by which
    the state is had.
    """
    monkeypatch.setattr(moment, "_COPIED_BYTES", 1 << 24 if way == "the connection" else 0)
    monkeypatch.setattr(copying, "_MOST_S", -1 if way == "a child that is late" else 600)
    monkeypatch.setattr(moment, "IS_POSSIBLE", copying.IS_POSSIBLE and way != "a second engine")
    rng = Random(5)
    db, other = opened(folder), minidsms.connect()
    for each in (db, other):
        each.execute("CREATE STREAM S (k INTEGER, v FLOAT, name TEXT) SLACK 2; CREATE STREAM T (k INTEGER)")
        for i, text in enumerate(OVER_ALL):
            each.query(text, name=f"q{i}")
    for ts in range(75):
        row = rng.randint(0, 9), rng.choice((1.5, 4.25, None, -3.1)), rng.choice(("a", "b", f"x{ts % 35}", None))
        for each in (db, other):
            each.push("S", row, ts=max(0, ts - ts % 3))
            each.push("T", (ts % 8,), ts=ts)
            if ts == 30:
                each.query(OVER_ALL[0], name="later")
        if ts % 35 == 32:
            db.checkpoint()
            assert elements(db) < 30 and not db.execute("SHOW CHECKPOINTS").rows[-1][-1]
            db.close()
            db = opened(folder)
    for each in (db, other):
        each.advance(400)
    for name in db.queries:
        assert Counter(map(str, db.queries[name].fetch())) == Counter(map(str, other.queries[name].fetch())), name
    db.close()
    other.close()


@pytest.mark.skipif(not copying.IS_POSSIBLE, reason="no child copies")
@pytest.mark.parametrize("is_failing", [False, True])
def test_state_that_a_child_copies_is_that_of_one_moment(
    folder: str, is_failing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is pushed while it copies is not in it; where it fails, the log is carried out again."""
    monkeypatch.setattr(moment, "_COPIED_BYTES", 0)
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER, name TEXT)")
    db.query("SELECT k, COUNT(*), MAX(name) FROM S GROUP BY k", name="q")
    db.push("S", {"k": np.arange(5000) % 700, "name": [f"n{i % 11}" for i in range(5000)]}, ts=np.arange(5000))
    finish = copying.Copying.finish
    found: list[bool] = []

    def finish_beside(self: copying.Copying, go_on: Callable[[], None]) -> bool:
        db.push("S", {"k": np.arange(2000) % 900, "name": ["z"] * 2000}, ts=np.arange(5000, 7000))
        found.append(finish(self, go_on))
        return found[-1]

    monkeypatch.setattr(copying.Copying, "finish", finish_beside)
    if is_failing:
        monkeypatch.setattr(copying, "_written", refusing(errno.ENOSPC))
    db.checkpoint()
    assert found == [not is_failing]
    assert kinds(folder).count("synopsis") == 1 and 2000 <= elements(db) < 2010
    db.advance(7000)
    before = what_is_there(db)
    expected = sorted(db.queries["q"].snapshot())
    db.close()
    assert os.listdir(folder) and not [name for name in os.listdir(folder) if name.startswith("tmp")]
    with opened(folder) as db:
        assert what_is_there(db) == before
        assert sorted(db.queries["q"].snapshot()) == expected
    assert len(expected) == 900 and expected[0] == (0, 11, "z")


def test_state_of_another_version_is_refused(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT SUM(k) FROM S")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.advance(2)
        db.checkpoint()
    with (
        monkeypatch.context() as patch,
        pytest.raises(Error, match=f"version {kept_state.VERSION} of kept state; this minidsms reads up to 1"),
    ):
        patch.setattr(kept_state, "VERSION", 1)
        minidsms.connect(folder)
    with opened(folder) as db:
        assert db.queries["q"].snapshot() == [(3,)]


def test_state_is_found_where_a_plan_had_more_operators(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = kept_state.KeptState.entries

    def of_version_6(state: kept_state.KeptState) -> Iterator[tuple[Fields, list[Piece]]]:
        for fields, pieces in written(state):
            yield {**fields, "version": 6, "operator": fields["operator"] + 1}, pieces

    with monkeypatch.context() as patch, opened(folder) as db:
        patch.setattr(kept_state.KeptState, "entries", of_version_6)
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT SUM(k) FROM S")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.advance(2)
        db.checkpoint()
    with opened(folder) as db:
        assert db.queries["q"].snapshot() == [(3,)]


def test_state_of_correlated_groups_that_had_a_constant_key_goes_on(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, group = kept_state.KeptState.entries, Builder._group

    def of_version_6(state: kept_state.KeptState) -> Iterator[tuple[Fields, list[Piece]]]:
        return (({**fields, "version": 6}, pieces) for fields, pieces in written(state))

    def by_one_more(builder: Builder, state: Any, right: Any, keys: Any, outers: Any, calls: Any) -> Any:
        return group(builder, state, right, [ONE, *keys], [ONE, *outers], calls)

    declaration = "CREATE STREAM S (k INTEGER, t TEXT, v INTEGER)"
    of = "FROM S [RANGE UNBOUNDED] AS b WHERE b.k = a.k"
    queries = {
        "q": f"SELECT RSTREAM(v) FROM S [NOW] AS a WHERE v >= (SELECT MAX(v) {of} AND b.t = a.t)"
        f" OR v >= (SELECT MAX(v) {of})",
        "r": f"SELECT RSTREAM(v, (SELECT COUNT(DISTINCT v) {of}) AS n, v IN (SELECT v - 1 {of}) AS i,"
        " (SELECT COUNT(*) FROM S [RANGE UNBOUNDED] AS b WHERE b.t = a.t) AS m) FROM S [NOW] AS a",
        "s": f"SELECT RSTREAM(v) FROM S [NOW] AS a WHERE v >= (SELECT MAX(v) {of})",
    }
    rng = Random(7)
    rows = [(rng.choice((1, 2, None)), rng.choice(("a", "b", None)), rng.randrange(9)) for _ in range(60)]

    def feed(db: minidsms.Connection, begin: int, end: int) -> None:
        db.push("S", rows[begin:end], ts=range(begin, end))
        db.advance(end - 1)

    with minidsms.connect() as db:
        db.execute(declaration)
        running = [db.query(query) for query in queries.values()]
        feed(db, 0, 30)
        assert all([query.fetch() for query in running])
        feed(db, 30, 60)
        expected = [query.fetch() for query in running]
    with monkeypatch.context() as patch, opened(folder) as db:
        patch.setattr(kept_state.KeptState, "entries", of_version_6)
        patch.setattr(Builder, "_group", by_one_more)
        db.execute(declaration)
        for name, query in queries.items():
            db.execute(f"CREATE QUERY {name} AS {query}")
        feed(db, 0, 30)
        assert all([db.queries[name].fetch() for name in queries])
        db.checkpoint()
    with opened(folder) as db:
        feed(db, 30, 60)
        assert [db.queries[name].fetch() for name in queries] == expected


def test_state_below_an_operand_that_can_fail_goes_on(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = kept_state.KeptState.entries

    def of_version_7(state: kept_state.KeptState) -> Iterator[tuple[Fields, list[Piece]]]:
        return (({**fields, "version": 7}, pieces) for fields, pieces in written(state))

    with monkeypatch.context() as patch, opened(folder) as db:
        patch.setattr(kept_state.KeptState, "entries", of_version_7)
        patch.setattr(_Widened, "tried", lambda widened, key: key)
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        db.execute("CREATE QUERY q AS SELECT (SELECT SUM(v) FROM S WHERE k = a.v + 1) AS s FROM S [ROWS 1] AS a")
        db.push("S", [(2, 5), (3, 1)], ts=0)
        db.advance(0)
        assert db.queries["q"].snapshot() == [(5,)]
        db.checkpoint()
    with opened(folder) as db:
        db.push("S", [(2, 2), (9, 1)], ts=1)
        db.advance(1)
        assert db.queries["q"].snapshot() == [(7,)]


def test_state_of_over_that_was_computed_in_python_is_refused() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT ISTREAM(SUM(k) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s) FROM S")
        place = next(i for i, each in enumerate(q.network.operators) if isinstance(each, Over))
        fields = {"version": 5, "operator": place, "is": "Over SUM(k)", "arrays": [("1.partitions", "|u1", (2,))]}
        with pytest.raises(kept_state.NoSuchOperator, match="keeps other state of 'Over SUM"):
            kept_state.resume(q, fields, Content(None, memoryview(b""), ""), "log")


def test_the_state_of_rows_that_were_joined_with_those_of_their_frames_is_read(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was that of ROW_NUMBER, which numbered them."""
    text = (
        "SELECT k, name, MEDIAN(k) OVER (PARTITION BY name ORDER BY k ROWS 2 PRECEDING) AS m"
        ", MODE(name) OVER (ORDER BY k RANGE 1 PRECEDING) AS o FROM S"
    )
    rows = [(i * 7 % 11, f"x{i % 3}" if i % 5 else None) for i in range(40)]
    other = minidsms.connect()
    with opened(folder) as db, monkeypatch.context() as patch:
        for each in (db, other):
            each.execute(f"CREATE STREAM S (k INTEGER, name TEXT); CREATE QUERY q AS {text}")
            each.push("S", rows[:30], ts=list(range(30)))
        patch.setattr(kept_state, "_named", lambda each: "Over row_number" if isinstance(each, Over) else "")
        db.checkpoint()
        assert elements(db) < 5 and not db.execute("SHOW CHECKPOINTS").rows[-1][-1]
    with opened(folder) as db:
        for each in (db, other):
            each.push("S", rows[30:], ts=list(range(30, 40)))
            each.advance(50)
        assert Counter(map(str, db.queries["q"].fetch())) == Counter(map(str, other.queries["q"].fetch()))
    other.close()


@pytest.mark.parametrize("call", ["SUM(v)", "SUM(DISTINCT v)"])
def test_what_is_left_of_a_frame_does_not_fail_where_the_frame_did_not(folder: str, call: str) -> None:
    """Rows of a stream are kept as far as later ones see them, and stand at the front of other frames then."""
    high = 2**62
    with opened(folder) as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        frame = "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"
        db.execute(f"CREATE QUERY q AS SELECT ISTREAM({call} OVER (ORDER BY ts {frame}) AS s) FROM S")
        db.push("S", [(-high,), (high,), (high + 1,), (-high - 2,)], ts=[0, 1, 2, 3])
        db.advance(3)
        db.checkpoint()
        db.queries["q"].fetch()
    with opened(folder) as db:
        db.push("S", (3,), ts=4)
        db.advance(4)
        assert sorted(row for _, _, row in db.queries["q"].fetch()) == [(2,), (high + 2,)]


def test_state_of_over_that_counted_equal_values_is_refused(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(stand_ins, "OF_DIFFERENT", ())
        with opened(folder) as db:
            db.execute("CREATE STREAM S (k INTEGER)")
            db.execute("CREATE QUERY q AS SELECT COUNT_DISTINCT(k) OVER (ORDER BY ts ROWS 2 PRECEDING) AS n FROM S")
            db.push("S", [(1,), (1,)], ts=[1, 2])
            db.advance(2)
            db.checkpoint()
    with pytest.raises(kept_state.NoSuchOperator, match="keeps other state of 'Over COUNT_DISTINCT"):
        minidsms.connect(folder)


@pytest.mark.parametrize(
    ("mean", "told"),
    [
        ("AVG(p) OVER (PARTITION BY k ORDER BY p ROWS 1 PRECEDING)", "keeps other state of 'Over AVG"),
        ("MEDIAN(p) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING)", "keeps other state of 'Over MEDIAN"),
        ("STDDEV(p) OVER (PARTITION BY k ORDER BY ts)", "keeps other state of 'Over STDDEV"),
        ("AVG(p)", "has no operator 'Aggregate by"),
    ],
)
def test_state_of_means_that_took_decimals_for_floats_is_refused(
    folder: str, monkeypatch: pytest.MonkeyPatch, mean: str, told: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(stand_ins, "COMPUTED_DIGITS", 0)
        patch.setattr(kept_state, "VERSION", 9)
        with opened(folder) as db:
            db.execute("CREATE STREAM S (k INTEGER, p DECIMAL(5, 2))")
            db.execute(f"CREATE QUERY q AS SELECT k, {mean} AS m FROM S{'' if 'OVER' in mean else ' GROUP BY k'}")
            db.push("S", [(1, "1.25"), (1, "-2.05"), (2, "0.10")], ts=1)
            db.advance(1)
            db.checkpoint()
    with pytest.raises(kept_state.NoSuchOperator, match=told):
        minidsms.connect(folder)


@pytest.mark.parametrize("has_twin", [False, True])
def test_state_from_before_there_were_lookup_joins_finds_its_operator(
    folder: str, monkeypatch: pytest.MonkeyPatch, has_twin: bool
) -> None:
    """Where two are called alike nothing says which of them it is: the error tells the way out."""
    twin = " LEFT JOIN U [PARTITION BY k ROWS 1] AS n ON n.k = S.k" if has_twin else ""
    query = f"SELECT RSTREAM(S.k, m.v) FROM S [NOW] LEFT JOIN T [PARTITION BY k ROWS 1] AS m ON m.k = S.k{twin}"
    with monkeypatch.context() as patch:
        patch.setattr(_Streams, "_looked_up", lambda self, join: None)
        patch.setattr(kept_state, "VERSION", 4)
        with opened(folder) as db:
            db.execute("CREATE STREAM S (k INTEGER); CREATE STREAM T (k INTEGER, v INTEGER)")
            db.execute(f"CREATE STREAM U (k INTEGER, v INTEGER); CREATE QUERY q AS {query}")
            db.push("T", [(i % 3, i) for i in range(100)], ts=list(range(100)))
            db.push("U", (2, 0), ts=100)
            db.push("S", (2,), ts=100)
            db.advance(150)
            db.checkpoint()
    assert kinds(folder).count("synopsis") == 1 + has_twin
    if has_twin:
        with pytest.raises(Error, match=r"q has no operator (.|\n)*help: open the folder with the minidsms that wrote"):
            minidsms.connect(folder)
        return
    with opened(folder) as db:
        assert any(op.name == "LeftLookupJoin" for op in db.queries["q"].network.operators)
        db.push("S", [(0,), (2,)], ts=151)
        db.advance(152)
        assert [change.row for change in db.queries["q"].fetch()][-2:] == [(0, 99), (2, 98)]


@pytest.mark.parametrize("slack", ["", " SLACK 2"])
def test_nothing_is_answered_twice_where_time_went_on_without_an_element(folder: str, slack: str) -> None:
    """The state is of an instant at which none came, and none comes before the answers that follow."""
    texts = [*OVER_ALL[:4], "SELECT k, v, COUNT(*) FROM S GROUP BY ROLLUP(k, v)"]
    db, other = opened(folder), minidsms.connect()
    for each in (db, other):
        each.execute(f"CREATE STREAM S (k INTEGER, v FLOAT, name TEXT){slack}")
        for i, text in enumerate(texts):
            each.query(text, name=f"q{i}")
        each.push("S", [(i % 3, i / 2, f"x{i % 2}") for i in range(9)], ts=list(range(9)))
        each.push("S", (1, 2.0, "y"), ts=12)
    db.checkpoint()
    assert elements(db) < 5 and not db.execute("SHOW CHECKPOINTS").rows[-1][-1]
    db.close()
    db = opened(folder)
    for each in (db, other):
        each.push("S", (1, 2.5, "z"), ts=20)
        each.advance(30)
    for name in db.queries:
        assert Counter(db.queries[name].fetch()) == Counter(other.queries[name].fetch()), name
    db.close()
    other.close()


def test_a_query_that_keeps_its_past_takes_no_state_of_another(folder: str) -> None:
    """They share an aggregate, which the one has to be given elements."""
    text = "(k, COUNT(*) AS n) FROM S GROUP BY k"
    with opened(folder) as db, minidsms.connect() as other:
        for each in (db, other):
            each.execute("CREATE STREAM S (k INTEGER)")
            each.query(f"SELECT RSTREAM{text}", name="past")
            each.query(f"SELECT ISTREAM{text}", name="state")
            each.push("S", [(i % 3,) for i in range(9)], ts=list(range(9)))
        db.checkpoint()
        db.close()
        again = opened(folder)
        for each in (again, other):
            each.push("S", (1,), ts=20)
            each.advance(30)
        for name in ("past", "state"):
            assert Counter(again.queries[name].fetch()) == Counter(other.queries[name].fetch()), name
        again.close()


def test_structures_and_nan_are_kept_in_state(folder: str) -> None:
    """A row of a STRUCT is a dict, and NaN is not equal to itself."""
    with opened(folder) as db:
        db.execute("CREATE STREAM S (s STRUCT(a INTEGER, b TEXT), l INTEGER[], v FLOAT)")
        db.query("SELECT s, l, v, COUNT(*) FROM S GROUP BY s, l, v", name="q")
        rows = [({"a": 1, "b": None}, [1, None], float("nan")), (None, [], -0.0), (None, [], 0.0)]
        db.push("S", rows, ts=[1, 1, 2])
        db.advance(2)
        before = sorted(map(repr, db.queries["q"].snapshot()))
        db.checkpoint()
        assert elements(db) < len(rows) and not db.execute("SHOW CHECKPOINTS").rows[-1][-1]
    with opened(folder) as db:
        assert sorted(map(repr, db.queries["q"].snapshot())) == before and len(before) == 2


def test_changes_of_a_relation_that_cancel_go(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER); CREATE RELATION R (k INTEGER, v TEXT)")
    db.query("SELECT ISTREAM(S.k, v) FROM S [RANGE 5], R WHERE S.k = R.k", name="j")
    db.push("R", [(1, "stays"), (1, "stays")], ts=0)
    for i in range(1, 20):
        db.push("R", (1, f"v{i}"), ts=i)
        db.push("S", (1,), ts=i)
        db.push("R", (1, f"v{i}"), ts=i + 1, sign=-1)
    before = what_is_there(db)
    db.checkpoint()
    assert elements(db) < 30
    db.close()
    with opened(folder) as db:
        assert what_is_there(db) == before
        with pytest.raises(Error, match="late"):
            db.push("R", (1, "x"), ts=19)
        db.push("S", (1,), ts=25)
        db.advance(25)
        assert [c.row for c in db.queries["j"].fetch() if c.ts == 25] == [(1, "stays"), (1, "stays")]


def test_what_is_gone_leaves_no_trace(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM T (a TEXT); CREATE VIEW V AS SELECT a FROM T")
    db.execute("CREATE QUERY q AS SELECT a FROM V")
    db.push("T", ("x",), ts=5)
    db.advance(7, "T")
    db.execute("ALTER QUERY q SET batch_size = 3; DROP QUERY q; DROP VIEW V; DROP STREAM T")
    db.execute("CREATE STREAM T (a INTEGER, b INTEGER)")
    db.push("T", (1, 2), ts=1)
    db.query("SELECT b FROM T [RANGE 5]", name="q")
    db.checkpoint()
    assert kinds(folder).count("statement") == 1
    before = what_is_there(db)
    db.close()
    with opened(folder) as db:
        assert what_is_there(db) == before


def test_of_settings_what_is_in_force_stays(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY each AS SELECT RSTREAM(k) FROM S [RANGE 100]")
    for i in range(30):
        db.push("S", (i,), ts=i)
        db.set("quantum", i + 1)
        db.execute(f"SET Batch_Size = {i + 1}; ALTER QUERY each SET queue_size = {i + 1}")
        db.queries["each"].set("Batch_Size", "default" if i == 29 else i + 1)
        if i == 9:
            db.execute("SET rstream = ticks; CREATE QUERY ticks AS SELECT RSTREAM(k) FROM S [RANGE 2]")
            db.execute("SET rstream = events")
    db.advance(40)
    before = what_is_there(db), [str(q.settings) for q in db.queries.values()]
    assert before[1] == ["queue_size = 30", ""]
    for _ in range(2):
        db.checkpoint()
        found = kinds(folder)
        # Five settings before the second query, one of which is the connection's for it alone, and five at the end.
        assert found.count("setting") == 2 and found.count("call") == 2
        assert found.count("statement") == 3 + 3 + 3
        db.close()
        db = opened(folder)
        assert (what_is_there(db), [str(q.settings) for q in db.queries.values()]) == before
    db.push("S", (50,), ts=50)
    db.advance(53)
    assert [c.ts for c in db.queries["ticks"].fetch() if c.ts > 40] == [50, 51]
    assert {c.ts for c in db.queries["each"].fetch() if c.ts > 40} == {50}


def test_a_view_stays_as_long_as_a_query_names_it(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM T (a TEXT); CREATE VIEW V AS SELECT a FROM T; CREATE VIEW W AS SELECT a FROM T")
    db.execute("CREATE VIEW X AS SELECT a FROM V; CREATE QUERY q AS SELECT a FROM X")
    db.execute("DROP VIEW X; DROP VIEW V; DROP VIEW W")
    db.checkpoint()
    assert kinds(folder).count("statement") == 6
    db.close()
    with opened(folder) as db:
        assert list(db.queries) == ["q"]
        assert not db.catalog.views


def test_checkpoints_of_checkpoints(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER) SLACK 2 LATE DROP")
    db.query("SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="q")
    for i in range(60):
        db.push("S", [(i,), (i,)], ts=[i, i - i % 5])
        if i % 7 == 0:
            db.checkpoint()
        if i % 20 == 0:
            before = what_is_there(db)
            db.close()
            db = opened(folder)
            assert what_is_there(db) == before
            assert db.stream_input("S").counters.accepted + db.stream_input("S").counters.late_dropped == 2 * i + 2
    assert elements(db) < 50
    db.close()


def test_a_query_that_does_not_come_out_the_same_keeps_its_past(folder: str) -> None:
    """The row that is gone when the checkpoint begins would have kept the division from failing."""
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER); CREATE STREAM T (k INTEGER)")
    share = "(SELECT COUNT(*) FROM S [RANGE 100] AS s) / (SELECT COUNT(*) FROM S [RANGE 20] AS r)"
    text = f"SELECT {share} AS x FROM T [RANGE 3]"
    db.query(text, name="q")
    for i in range(0, 300, 10):
        db.push("S", (i,), ts=i)
        db.push("T", (i,), ts=i + 1)
    assert db.queries["q"].failure is None
    db.checkpoint()
    before = what_is_there(db)
    db.close()
    with opened(folder) as db:
        assert what_is_there(db) == before


_MEMORY = {"is_free": True}
"""What `needing` finds."""


def needing(k: int) -> int:
    if not _MEMORY["is_free"]:
        raise MemoryError("no room")
    return k


def test_a_checkpoint_tells_why_a_query_fails_where_it_is_proved(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.create_function("needing", needing, ["INTEGER"], "INTEGER")
        q = db.query("SELECT needing(k) AS k FROM S [RANGE 10]", name="q")
        db.push("S", [(1,), (2,)], ts=5)
        db.advance(7)
        before = what_is_there(db)
        monkeypatch.setitem(_MEMORY, "is_free", False)
        with pytest.raises(Error, match=r"query q does not come out of it as it is: .*MemoryError: no room"):
            db.checkpoint()
        monkeypatch.undo()
        assert q.failure is None and what_is_there(db) == before
        db.checkpoint()


def test_texts_in_state_stay_where_a_checkpoint_is_begun_again(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One query keeps texts in its state, and another one does not come out as it is at first."""
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER, name TEXT); CREATE STREAM T (k INTEGER)")
        newest = db.query("SELECT k, name FROM S [PARTITION BY k ROWS 1]", name="newest")
        db.query("SELECT k FROM T [RANGE 5]", name="other")
        db.push("S", [(k, f"n{k}") for k in range(50)], ts=1)
        db.push("T", (1,), ts=8)
        db.advance(9)
        newest.fetch()
        is_like, told = moment.QueryMoment.is_like, []

        def is_like_at_second(self: moment.QueryMoment, query: minidsms.Query) -> bool:
            told.append(self.name)
            return is_like(self, query) and told != ["newest", "other"]

        monkeypatch.setattr(moment.QueryMoment, "is_like", is_like_at_second)
        db.checkpoint()
        assert told == ["newest", "other"] * 2 and "synopsis" in kinds(folder)
    with opened(folder) as db:
        db.push("S", [(k, "later") for k in range(50)], ts=10)
        db.advance(10)
        left = {change.row for change in db.queries["newest"].fetch() if change.sign < 0}
        assert left == {(k, f"n{k}") for k in range(50)}


@pytest.mark.parametrize("name", ["replace", "fsync", "open", "write"])
def test_a_checkpoint_that_fails_changes_nothing(folder: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER)")
    db.query("SELECT COUNT(*) FROM S [RANGE 10]", name="q")
    for i in range(30):
        db.push("S", (i,), ts=i)
    before = what_is_there(db)
    real: Callable[..., Any] = getattr(os, name)

    def failing(*arguments: Any, **options: Any) -> Any:
        place = arguments[0] if isinstance(arguments[0], str) else os.readlink(f"/proc/self/fd/{arguments[0]}")
        if os.path.join(folder, folder_module.CHECKPOINT) in place:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **options)

    monkeypatch.setattr(os, name, failing)
    with pytest.raises(Error, match="No space left"):
        db.checkpoint()
    monkeypatch.undo()
    assert what_is_there(db) == before
    db.push("S", (1,), ts=40)
    assert db.position("S") == 31
    db.close()
    with opened(folder) as db:
        assert db.position("S") == 31
        db.checkpoint()
        assert sorted(os.listdir(folder)) == ["lock", "log-1", "log-2", "minidsms.json"]


@pytest.mark.parametrize("at", [5, 60, -3])
def test_of_a_damaged_checkpoint_the_log_it_was_made_of_is_taken(folder: str, at: int) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER, t TEXT); CREATE QUERY q AS SELECT t, COUNT(*) FROM S GROUP BY t")
        for i in range(20):
            db.push("S", (i, f"t{i % 3}"), ts=i)
        db.checkpoint()
        db.push("S", (1, "t0"), ts=30)
        db.advance(30)
        db.queries["q"].fetch(ack=5)
        before = what_is_there(db)
    path = os.path.join(folder, "log-2", "0" * 20 + ".log")
    data = bytearray(Path(path).read_bytes())
    data[at] ^= 4
    Path(path).write_bytes(data)
    with pytest.raises(Error, match="log-2"):
        check(folder)
    with opened(folder) as db:
        assert what_is_there(db) == before
        (warning,) = db.warnings
        assert path in warning and "nothing is lost" in warning
        db.push("S", (1, "t1"), ts=40)
        db.checkpoint()
        before = what_is_there(db)
    with opened(folder) as db:
        assert not db.warnings and what_is_there(db) == before


def test_a_folder_is_repaired_where_a_process_ended_amid_that(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.push("S", (1,), ts=1)
        db.checkpoint()
    path = Path(folder, "log-2", "0" * 20 + ".log")
    path.write_bytes(path.read_bytes()[:100])

    with monkeypatch.context() as patched:
        patched.setattr(repair, "save", refusing(errno.ENOSPC))
        with pytest.raises(Error, match="cannot be written: No space left"):
            opened(folder)
    with opened(folder) as db:
        assert "nothing is lost" in db.warnings[0] and db.position("S") == 1


def test_where_both_logs_are_damaged_the_folder_is_not_opened_with_less(folder: str) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.push("S", (1,), ts=1)
        db.checkpoint()
    for name in ("log-1", "log-2"):
        path = Path(folder, name, "0" * 20 + ".log")
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(Error, match=r"(?s)log-2.*log-1"):
        opened(folder)


def test_what_could_not_be_named_is_made_again(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        monkeypatch.setattr(owned_folder, "save", refusing(errno.ENOSPC))
        with pytest.raises(Error, match="No space left"):
            db.checkpoint()
        monkeypatch.undo()
        db.checkpoint()
        db.push("S", (1,), ts=1)
    with opened(folder) as db:
        assert db.position("S") == 1 and len(db.execute("SHOW CHECKPOINTS")) == 1


def test_a_callback_may_close_a_connection_that_makes_checkpoints(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER); SET checkpoint_interval = '1 MILLISECOND'")
    q = db.query("SELECT k FROM S", name="q")

    def close(change: Any) -> None:
        time.sleep(0.05)
        db.close()

    q.on_change(close)
    db.push("S", (1,), ts=1)
    soon(lambda: db.is_closed)  # the thread that makes checkpoints may have been the one that told
    with opened(folder) as db:
        assert db.position("S") == 1


def test_what_a_process_left_of_a_checkpoint_is_removed(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER)")
    db.close()
    for name in ("checkpoint", "log-7"):
        os.mkdir(os.path.join(folder, name))
    with opened(folder) as db:
        assert "s" in db.catalog.streams
        assert sorted(os.listdir(folder)) == ["lock", "log-1", "minidsms.json"]


def test_a_row_that_was_late_by_a_heartbeat_is_not_the_greatest(folder: str) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER) SLACK 5 LATE DROP")
        db.query("SELECT k FROM S [RANGE 3]", name="q")
        db.push("S", (1,), ts=1)
        db.advance(20)
        db.push("S", (2,), ts=15)
        db.checkpoint()
        assert db.stream_input("S").greatest_ts == 1


def test_changes_that_stay_come_before_later_ones_that_cancelled(folder: str) -> None:
    with opened(folder) as db:
        db.execute("CREATE RELATION R (k INTEGER)")
        db.query("SELECT k FROM R", name="q")
        db.push("R", [(1,), (2,), (2,)], ts=[3, 40, 41], sign=[1, 1, -1])
        db.push("R", [(5,)], ts=50)
        db.checkpoint()
        assert kinds(folder).count("passed") == 1
        assert sorted(db.queries["q"].snapshot()) == [(1,)]


def test_the_statement_makes_one_and_show_tells_of_it(folder: str) -> None:
    with opened(folder) as db:
        assert not len(db.execute("SHOW CHECKPOINTS"))
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY short AS SELECT COUNT(*) FROM S [RANGE 3] GROUP BY k")
        for i in range(50):
            db.push("S", (1,), ts=i)
        db.execute("CREATE QUERY long AS SELECT ARRAY_AGG(k) FROM S; CHECKPOINT; SET batch_size = 9")
        assert elements(db) == 50
        db.execute("DROP QUERY long")
        db.execute("checkpoint")
        assert elements(db) < 10
        shown = db.execute("SHOW CHECKPOINTS")
        assert [(row[0], row[-1]) for row in shown] == [("log-2", "long (Aggregate ARRAY_AGG(k))"), ("log-3", "")]
    with opened(folder) as db:
        assert db.execute("SHOW CHECKPOINTS").rows == shown.rows and db.settings["batch_size"] == 9
    with minidsms.connect() as db:
        for text in ("CHECKPOINT", "SHOW CHECKPOINTS"):
            with pytest.raises(Error, match="without a folder keeps nothing"):
                db.execute(text)


def test_calls_go_on_while_a_checkpoint_is_made(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they bring is in it."""
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.query("SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="counts")
        for i in range(100):
            db.push("S", (i % 3,), ts=i)
        n = 0

        def push_more() -> None:
            nonlocal n
            if n < 400:
                db.push("S", (n % 5,), ts=100 + n)
                n += 1
            if n == 200:
                db.query("SELECT SUM(k) FROM S [RANGE 7]", name="sums")
                n += 1
            if n % 50 == 0:
                db.queries["counts"].fetch()

        monkeypatch.setattr(db.checkpoints, "_go_on", push_more)
        db.checkpoint()
        assert n == 400 and elements(db) < 420
        before = what_is_there(db)
    with opened(folder) as db:
        assert what_is_there(db) == before and db.position("S") == 499


def test_texts_that_leave_while_a_checkpoint_is_made_are_in_it(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER, name TEXT)")
        newest = db.query("SELECT k, name FROM S [PARTITION BY k ROWS 1]", name="newest")
        db.push("S", [(k, f"n{k}") for k in range(50)], ts=1)
        db.advance(9)
        newest.fetch()
        n = 10

        def push_more() -> None:
            nonlocal n
            if n < 40:
                n += 1
                db.push("S", [(k, "later") for k in range(n)], ts=n)
                db.advance(n)

        monkeypatch.setattr(db.checkpoints, "_go_on", push_more)
        db.checkpoint()
        assert n == 40 and "synopsis" in kinds(folder)
        expected = newest.fetch(ack=newest.position)
    with opened(folder) as db:
        assert db.queries["newest"].fetch() == expected


def test_what_an_interrupted_fetch_takes_back_hides_no_later_entry(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes out of the call, and takes back its entry, after a checkpoint has seen it."""
    undone = []

    def fetch_as(*args: Any) -> Any:
        made = write_checkpoint(*args)
        undone.append(db.journal.note_taken(db.queries["q"], 2))
        return made

    def take_back_and_push(*args: Any) -> Any:
        last = add(*args)
        if undone:
            undone.pop()()
            db.push("S", (3,), ts=3)
        return last

    write_checkpoint, add = checkpoints.write_checkpoint, checkpoints._add
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S [NOW]")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.advance(2)
        with monkeypatch.context() as patch:
            patch.setattr(checkpoints, "write_checkpoint", fetch_as)
            patch.setattr(checkpoints, "_add", take_back_and_push)
            db.checkpoint()
        assert not undone
    with opened(folder) as db:
        db.advance(3)
        assert [change.row for change in db.queries["q"].fetch()] == [(1,), (2,), (3,)]


def test_checkpoints_are_made_by_interval(folder: str) -> None:
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER); SET checkpoint_interval = '10 MILLISECONDS'")
        db.query("SELECT COUNT(*) FROM S [RANGE 10]", name="counts")
        made = 0
        for i in range(3000):
            db.push("S", (i,), ts=i)
            made = len(db.execute("SHOW CHECKPOINTS"))
            if made >= 2:
                break
            time.sleep(0.01)
        assert made >= 2 and not db.warnings
        db.execute("SET checkpoint_interval = none")
        before = what_is_there(db)
    with opened(folder) as db:
        assert what_is_there(db) == before


@pytest.mark.parametrize("failure", [MemoryError, SystemExit])
def test_checkpoints_by_interval_go_on_after_one_that_failed(
    folder: str, failure: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Checkpoints.make

    def fail(checkpoints: Checkpoints) -> None:
        monkeypatch.setattr(Checkpoints, "make", make)
        raise failure("nothing is left")

    with opened(folder) as db:
        monkeypatch.setattr("minidsms.durability.checkpoints.SHARE", 0)
        monkeypatch.setattr(Checkpoints, "make", fail)
        db.execute("CREATE STREAM S (k INTEGER); SET checkpoint_interval = '1 MILLISECOND'")
        until = time.monotonic() + 60
        for ts in count():
            db.push("S", (ts,), ts=ts)
            if len(db.execute("SHOW CHECKPOINTS")):
                break
            assert time.monotonic() < until
            time.sleep(0.01)
        assert db.warnings == [f"no checkpoint was made: {failure.__name__}: nothing is left"]


def test_a_connection_that_is_closed_leaves_no_half_checkpoint(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER)")
    db.push("S", [(1,), (2,)], ts=[1, 2])
    db.checkpoints.close()
    with pytest.raises(Error, match="is being closed"):
        db.checkpoint()
    assert sorted(os.listdir(folder)) == ["lock", "log-1", "minidsms.json"]
    db.close()


def test_pushes_of_few_elements_are_one_in_a_checkpoint(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE STREAM S (k INTEGER); CREATE STREAM T (k INTEGER); CREATE RELATION R (k INTEGER)")
    q = db.query("SELECT S.k, COUNT(*) FROM S [RANGE 1000], T [RANGE 1000] WHERE S.k = T.k GROUP BY S.k")
    for i in range(100):
        db.push("S", (i % 5,), ts=i)
        db.push("T", [(i % 7,)], ts=[i])
        db.advance(i)
        if i == 50:
            db.push("R", (1,), ts=i)
    db.execute("ALTER STREAM S ADD COLUMN t TEXT")
    db.push("S", (1, "x"), ts=100)
    before = what_is_there(db)
    db.checkpoint()
    assert kinds(folder).count("push") == 6 and elements(db) == 202  # each stream before the relation and behind it
    db.close()
    with opened(folder) as db:
        assert what_is_there(db) == before
        assert sorted(db.queries[q.name].snapshot()) == sorted(
            (k, sum(i % 5 == k for i in range(100)) * sum(i % 7 == k for i in range(100))) for k in range(5)
        )


@pytest.mark.parametrize("then", ["nothing", "process", "a push"])
def test_a_checkpoint_leaves_what_waits_for_a_paused_query_waiting(folder: str, then: str) -> None:
    """Elements of another stream that are left out, and entries that process all, come before or behind the pause."""
    with opened(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE STREAM T (k INTEGER); CREATE QUERY q AS SELECT k FROM S")
        db.push("S", (1,), ts=22, block=False)
        db.push("T", [(1,), (2,)], ts=[31, 32])
        if then == "process":
            db.process()
        db.execute("ALTER QUERY q PAUSE")
        if then == "a push":
            db.push("S", (2,), ts=33)
        before = db.queries["q"].results
        db.checkpoint()
    with opened(folder) as db:
        query = db.queries["q"]
        assert query.results == before == (then == "process")
        db.execute("ALTER QUERY q RESUME")
        db.advance(40)
        assert [change.row for change in query.fetch()] == ([(1,), (2,)] if then == "a push" else [(1,)])


@pytest.mark.parametrize("slack", ["", " SLACK 9"])
def test_a_checkpoint_leaves_out_an_element_of_the_first_instant(folder: str, slack: str) -> None:
    first = 1 - 2**62
    db = opened(folder)
    db.execute(f"CREATE STREAM S (a INTEGER){slack}")
    db.query("SELECT a FROM S [NOW]", "q")
    db.push("S", (1,), ts=first)
    db.advance(first + 5)
    db.checkpoint()
    db.close()
    db = opened(folder)
    assert [(c.ts, c.sign) for c in db.queries["q"].fetch()] == [(first, 1), (first + 1, -1)]
    assert db.position("S") == 1
    db.close()
