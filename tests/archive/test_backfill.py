"""CREATE QUERY .. BACKFILL: the past from archives and the present, as if the query had been there all the time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.archive.backfill import Backfill
from minidsms.cql.errors import CqlError, Error
from minidsms.query import Query
from minidsms.testing.compare import difference_of, run_definition
from minidsms.testing.generators import random_case
from tests.archive.reading import elements
from tests.long.archived import answer_of, archive_feed, declare, feed


def _compare(tmp_path: Path, seeds: range) -> int:
    """Generated cases: part of the feed is in archives, the query is created, the rest comes live."""
    compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        case = random_case(seed)
        # What late rows meet at the seam is the stream's progress, which a new process sets anew.
        if case.registered or "SLACK" in str(case) or "LATE" in str(case):
            continue
        try:
            expected = run_definition(case)
        except CqlError:
            continue
        part = rng.randrange(len(case.feed))
        for is_new_process in (True, False):
            place = str(tmp_path / f"{seed}{is_new_process}")
            with minidsms.connect(batch_size=rng.choice((2, 65_536))) as db:
                if is_new_process:
                    archive_feed(case, case.feed[:part], place, rng.choice((4, 1000)), 100)
                    declare(db, case, None, 1)
                    if not Path(place).exists() or not any(Path(place).iterdir()):
                        continue
                    names = [i.definition.name for i in db.inputs if i.definition.name.startswith("Rel")]
                    if names:
                        db.replay(place, names=names)
                else:
                    declare(db, case, place, rng.choice((4, 1000)))
                    other = db.query("SELECT * FROM " + next(i.definition.name for i in db.inputs))
                    for step in case.feed[:part]:
                        feed(db, step)
                query = db.execute(f"CREATE QUERY late AS {case.query} BACKFILL FROM '{place}'")
                for step in case.feed[part:]:
                    feed(db, step)
                difference = difference_of(expected, answer_of(query))
                assert not difference, f"{difference}\narchived: {part} of the calls, {is_new_process=}\n{case}"
                if not is_new_process:
                    answer_of(other)
                compared += 1
    return compared


def test_a_backfilled_query_answers_as_if_it_had_always_been_there(tmp_path: Path) -> None:
    assert _compare(tmp_path, range(100, 130)) > 15


@pytest.mark.long
@pytest.mark.parametrize("start", range(2000, 3000, 100))
def test_a_backfilled_query_answers_so_in_a_thousand_cases(tmp_path: Path, start: int) -> None:
    _compare(tmp_path, range(start, start + 100))


DECLARE = "CREATE STREAM S (k INTEGER, t TEXT) SLACK 3"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """An archive of S with the instants 0 to 9, and of R."""
    with minidsms.connect() as db:
        db.execute(f"{DECLARE} ARCHIVE '{tmp_path}'; CREATE RELATION R (k INTEGER, n TEXT) ARCHIVE '{tmp_path}'")
        db.push("R", [(0, "a"), (1, "b")], ts=0)
        db.push("S", [(i % 2, f"t{i}") for i in range(10)], ts=[2, 0, 1, 3, 4, 7, 6, 5, 9, 8])
    return str(tmp_path)


def test_the_seam_has_no_gap_and_no_duplicate_even_where_rows_wait_for_slack(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"{DECLARE} ARCHIVE '{tmp_path}'")
        first = db.query("SELECT t FROM S")
        for i in (1, 2, 5, 3, 4, 9, 7, 8):
            db.push("S", (0, f"t{i}"), ts=i)
        late = db.execute(f"CREATE QUERY late AS SELECT t FROM S BACKFILL FROM '{tmp_path}'")
        for i in (6, 12, 11, 20):
            db.push("S", (0, f"t{i}"), ts=i)
        db.advance(30)
        assert late.fetch() == first.fetch()
        assert db.execute("SHOW QUERIES").rows[1][0] == "late"


def test_heartbeats_of_the_connection_do_not_pass_over_the_past_of_relations(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "db"):
        with minidsms.connect(folder) as db:
            db.execute("SET rstream = 'ticks'; CREATE RELATION R (k INTEGER)")
            db.archive("R", str(tmp_path / f"archive-{folder is None}"))
            db.push("R", [(1,), (1,), (2,)], ts=[2, 3, 6], sign=[1, -1, 1])
            db.advance(7)
            query = "RSTREAM (SELECT k FROM R)"
            late = db.execute(f"CREATE QUERY late AS {query} BACKFILL FROM '{tmp_path / f'archive-{folder is None}'}'")
            db.advance(8)
            assert [(change.ts, *change.row) for change in late.fetch()] == [(2, 1), (6, 2), (7, 2), (8, 2)]


def test_rows_that_wait_for_slack_may_be_such_as_the_query_passes_over(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"{DECLARE} ARCHIVE '{tmp_path}'")
        for i in (1, 2, 5, 3, 4, 9, 7, 8):
            db.push("S", (i % 2, f"t{i}"), ts=i)
        late = db.execute(f"CREATE QUERY late AS SELECT t FROM S WHERE k = 0 BACKFILL FROM '{tmp_path}'")
        db.advance(30)
        assert [change.row for change in late.fetch()] == [("t2",), ("t4",), ("t8",)]


def test_what_another_process_adds_meanwhile_is_not_half_seen(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Backfill.run

    def run_late(self: Backfill, query: Query) -> None:
        with minidsms.connect() as other:
            other.execute(f"{DECLARE} ARCHIVE '{folder}'")
            other.push("S", (0, "later"), ts=20)
        run(self, query)

    monkeypatch.setattr(Backfill, "run", run_late)
    with minidsms.connect() as db:
        db.execute(DECLARE)
        q = db.execute(f"CREATE QUERY q AS SELECT COUNT(*) FROM S BACKFILL FROM '{folder}'")
        db.push("S", (1, "not late"), ts=15)
        db.advance(15)
        assert q.snapshot() == [(11,)]


def test_behind_a_backfill_a_new_stream_goes_on_where_its_archive_ends(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        q = db.execute(f"CREATE QUERY q AS SELECT COUNT(*) FROM S BACKFILL FROM '{folder}'")
        with pytest.raises(Error, match="has passed 8"):
            db.push("S", (1, "late"), ts=8)
        db.push("S", (1, "same instant"), ts=9)
        db.advance(9)
        assert q.snapshot() == [(11,)]


def test_other_queries_do_not_see_the_past(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        other = db.query("SELECT t FROM S")
        q = db.execute(f"CREATE QUERY q AS SELECT t FROM S BACKFILL FROM '{folder}'")
        third = db.query("SELECT t FROM S")
        db.push("S", (1, "now"), ts=20)
        db.advance(20)
        assert [c.row for c in other.fetch()] == [c.row for c in third.fetch()] == [("now",)]
        assert len(q.fetch()) == 11


def test_a_relation_without_an_archive_holds_its_present_rows_all_the_time(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(f"{DECLARE}; CREATE RELATION Q (k INTEGER, n TEXT)")
        db.push("Q", (1, "one"), ts=0)
        q = db.execute(
            f"CREATE QUERY q AS SELECT ISTREAM(t, n) FROM S [NOW], Q WHERE S.k = Q.k BACKFILL FROM '{folder}'"
        )
        db.push("S", (1, "now"), ts=20)
        db.advance(20)
        assert len(q.fetch()) == 6


def test_answers_of_the_past_go_to_the_file_and_the_archive_too(folder: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.execute(
            f"CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM S [RANGE 2] GROUP BY k INTO '{out}' "
            f"ARCHIVE '{tmp_path / 'copy'}' BACKFILL FROM '{folder}'"
        )
        db.push("S", (1, "now"), ts=20)
        db.advance(20)
    written = [tuple(int(v) for v in line.split(",")) for line in out.read_text().splitlines()[1:]]
    assert written == elements(tmp_path / "copy", "q")
    assert len(written) > 6


def test_dropping_a_backfilled_query_frees_its_stores(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.execute(f"CREATE QUERY q AS SELECT t FROM S [RANGE 100] BACKFILL FROM '{folder}'")
        db.push("S", (1, "now"), ts=20)
        db.advance(20)
        store: Any = db.stream_input("S").store
        assert len(store.mirrors) == 1
        assert len(store.mirrors[0]) == 11
        db.execute("DROP QUERY q")
        db.push("S", (1, "now"), ts=21)
        db.advance(30)
        assert store.mirrors == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT t FROM Z", 'has no archive "Z"'),
        ("SELECT t FROM T", "the past would have a gap"),
        ("SELECT t FROM S, R WHERE S.k = R.k", r"replay\(.*names=\['R'\]\)"),
        ("SELECT property FROM SysStream", "has no past"),
    ],
)
def test_where_there_is_no_seam_the_query_is_refused(folder: str, query: str, reason: str) -> None:
    with minidsms.connect() as writer:
        writer.execute(f"CREATE STREAM T (t TEXT) ARCHIVE '{folder}'")
    with minidsms.connect() as db:
        db.execute(
            f"{DECLARE}; CREATE RELATION R (k INTEGER, n TEXT); CREATE STREAM T (t TEXT); CREATE STREAM Z (t TEXT)"
        )
        db.push("T", ("x",), ts=1)
        with pytest.raises(Error, match=reason):
            db.execute(f"CREATE QUERY q AS {query} BACKFILL FROM '{folder}'")
        assert db.queries == {}


@pytest.mark.parametrize("to", [0, 8])
def test_a_stream_that_lacks_the_end_of_its_archive_has_no_seam(folder: str, to: int) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (k INTEGER, t TEXT) ARCHIVE '{folder}'")
        db.replay(folder, to=to)
        with pytest.raises(Error, match="goes on behind what the stream has taken"):
            db.execute(f"CREATE QUERY q AS SELECT COUNT(*) FROM S BACKFILL FROM '{folder}'")
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (k INTEGER, t TEXT) ARCHIVE '{folder}'")
        db.replay(folder, to=9)
        q = db.execute(f"CREATE QUERY q AS SELECT COUNT(*) FROM S BACKFILL FROM '{folder}'")
        db.advance(9)
        assert q.snapshot() == [(10,)]


def test_a_backfill_that_is_refused_leaves_its_streams_as_they_were(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(f"{DECLARE}; CREATE RELATION R (k INTEGER, n TEXT)")
        with pytest.raises(Error, match="other rows"):
            db.execute(f"CREATE QUERY q AS SELECT t FROM S, R WHERE S.k = R.k BACKFILL FROM '{folder}'")
        assert db.push("S", (1, "not late"), ts=0) == 1


def test_behind_a_backfill_a_relation_goes_on_where_its_archive_ends(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (k INTEGER) ARCHIVE '{tmp_path}'")
        db.push("R", (1,), ts=5)
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (k INTEGER)")
        db.push("R", (1,), ts=0)
        q = db.execute(f"CREATE QUERY q AS SELECT k FROM R BACKFILL FROM '{tmp_path}'")
        with pytest.raises(Error, match="row 0: late: timestamp 4 is below 5"):
            db.push("R", (2,), ts=4)
        db.push("R", (2,), ts=5)
        db.advance(6)
        assert [(c.ts, c.sign, c.row) for c in q.fetch()] == [(5, 1, (1,)), (5, 1, (2,))]


def test_backfill_and_history_exclude_each_other(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        with pytest.raises(CqlError, match="leave one of them out"):
            db.execute(f"CREATE QUERY q AS SELECT t FROM S WITH HISTORY BACKFILL FROM '{folder}'")
