"""What is replayed is answered as it was live, whatever is pushed down, and the live goes on behind it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.archive import replay_source
from minidsms.archive.replay import Options, Replay
from minidsms.cql.errors import CqlError, Error
from minidsms.testing.compare import difference_of, run_definition
from minidsms.testing.generators import random_case
from tests.archive.reading import elements
from tests.long.archived import archive_feed, run_replayed
from tests.seeds import seeds

DECLARE = "CREATE STREAM S (k INTEGER, t TEXT, f FLOAT, b BOOLEAN, at TIMESTAMP)"
ROWS = [(i % 5, "abc"[i % 3] if i % 7 else None, i / 2, i % 2 == 0, i * 1000) for i in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """An archive of S, a row per tick, in partitions of 10 ticks."""
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.archive("S", str(tmp_path), partition=10)
        for i in range(0, 40, 4):
            db.push("S", ROWS[i : i + 4], ts=list(range(i, i + 4)))
            db.flush()
    return str(tmp_path)


def test_a_replay_gives_the_defined_answer(tmp_path: Path) -> None:
    _compare(tmp_path, seeds(12))


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 2000, 100))
def test_a_replay_gives_the_defined_answer_in_a_thousand_cases(tmp_path: Path, start: int) -> None:
    _compare(tmp_path, range(start, start + 100))


def _compare(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        case = random_case(seed)
        if case.registered:
            continue
        try:
            expected = run_definition(case)
        except CqlError:
            continue
        place = str(tmp_path / str(seed))
        # Behind LATE DROP, rows are dropped or not by the heartbeats before them, which no archive has.
        parts = [len(case.feed) - 1]
        if "LATE DROP" not in str(case):
            parts.append(rng.randrange(len(case.feed)))
        for i, part in enumerate(parts):
            archive_feed(case, case.feed[:part], f"{place}{i}", rng.choice((4, 1000)), rng.choice((5, 100)))
            if not Path(f"{place}{i}").exists() or not any(Path(f"{place}{i}").iterdir()):
                continue
            for push_down, batch_size in ((True, 65_536), (False, 2)):
                actual = run_replayed(
                    case, f"{place}{i}", case.feed[part:], replay={"push_down": push_down}, batch_size=batch_size
                )
                difference = difference_of(expected, actual)
                assert not difference, f"{difference}\nreplayed: {part} of the calls, {push_down=}\n{case}"


def _replayed(folder: str, query: str, **options: Any) -> list[Any]:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        q = db.query(query)
        db.replay(folder, **options)
        db.advance(100)
        return [(c.ts, c.sign, *c.row) for c in q.fetch()]


def test_from_and_to_bound_what_is_replayed(folder: str) -> None:
    assert [ts for ts, *_ in _replayed(folder, "SELECT k FROM S", from_=8, to=21)] == list(range(8, 22))
    assert _replayed(folder, "SELECT k FROM S", from_=50) == []
    assert len(_replayed(folder, "SELECT k FROM S", names=["S", "s"])) == 40
    assert [ts for ts, *_ in _replayed(folder, "SELECT k FROM S", to="1970-01-01 00:00:00.003")] == [0, 1, 2, 3]


def test_a_relation_is_replayed_from_its_beginning(tmp_path: Path) -> None:
    declare = "CREATE STREAM S (k INTEGER); CREATE RELATION R (k INTEGER, n TEXT)"
    with minidsms.connect() as db:
        db.execute(declare)
        for name in "SR":
            db.archive(name, str(tmp_path))
        db.push("R", [(1, "a"), (2, "b"), (1, "a")], ts=[0, 5, 8], sign=[1, 1, -1])
        db.push("S", [(1,), (2,), (1,), (2,)], ts=[1, 4, 6, 9])
    with minidsms.connect() as db:
        db.execute(declare)
        q = db.query("SELECT ISTREAM(n) FROM S [NOW], R WHERE S.k = R.k")
        assert db.replay(str(tmp_path), from_=4) == 6
        db.advance(100)
        assert [(c.ts, *c.row) for c in q.fetch()] == [(6, "a"), (9, "b")]


QUERIES = [
    "SELECT ISTREAM(k) FROM S [NOW] WHERE t = 'a'",
    "SELECT k FROM S [RANGE 5] WHERE f >= 3.5 AND 10.0 > f AND NOT b",
    "SELECT k, t FROM S [RANGE 3] WHERE t IS NULL OR k IN (1, 3)",
    "SELECT t, COUNT(*) FROM S [RANGE 3] WHERE k <> 2 AND t IS NOT NULL GROUP BY t",
    "SELECT COUNT(*) FROM S [RANGE 3] WHERE t = 'none'",
    "SELECT k FROM S [ROWS 3] WHERE t = 'a'",
    "SELECT RSTREAM(k) FROM S [RANGE 6 SLIDE 4] WHERE t = 'a'",
    "SELECT ISTREAM(x.k, y.f) FROM S [RANGE 3] x, S [RANGE 2] y WHERE x.k = y.k AND x.t = 'a' AND y.t = 'b'",
    "SELECT k FROM S [NOW] WHERE at < TIMESTAMP '1970-01-01 00:00:11' AND NOT (k = 3)",
    "SELECT k FROM S [NOW] WHERE f = k",
    "SELECT t FROM S [RANGE 5] WHERE t > 'a' AND t LIKE '_'",
]


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_pushed_down_does_not_show(folder: str, query: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        q = db.query(query)
        db.push("S", ROWS, ts=list(range(40)))
        progress = q.closed_until
        db.advance(100)
        live = sorted(((c.ts, c.sign, *c.row) for c in q.fetch()), key=repr)
    for push_down in (True, False):
        assert sorted(_replayed(folder, query, push_down=push_down), key=repr) == live
    with minidsms.connect() as db:
        db.execute(DECLARE)
        q = db.query(query)
        db.replay(folder)
        assert q.closed_until == progress == 38


def test_rows_and_columns_that_no_query_needs_are_not_read(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[list[str], int]] = []
    real = replay_source.read_files

    def spying(archive: Any, files: Any, fields: Any, where: Any) -> Iterator[Any]:
        for table in real(archive, files, fields, where):
            read.append((list(fields), len(table)))
            yield table

    monkeypatch.setattr(replay_source, "read_files", spying)
    with minidsms.connect() as db:
        db.execute(DECLARE)
        first = db.query("SELECT ISTREAM(f) FROM S [NOW] WHERE k = 1 AND t = 'a'")
        second = db.query("SELECT t, COUNT(*) FROM S [RANGE 5] WHERE k = 2 GROUP BY t")
        assert db.replay(folder) == sum(n for _, n in read)
        wanted = [r for r in ROWS if (r[0] == 1 and r[1] == "a") or r[0] == 2]
        assert sum(n for _, n in read) == len(wanted) < 15
        assert all(fields == ["k", "t", "f"] for fields, _ in read)
        assert [c.row[0] for c in first.fetch()] == [r[2] for r in ROWS if r[0] == 1 and r[1] == "a"]
        assert second.fetch()


def test_a_stream_that_is_archived_again_is_read_whole(folder: str, tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.query("SELECT ISTREAM(f) FROM S [NOW] WHERE k = 1")
        db.archive("S", str(tmp_path / "copy"))
        db.replay(folder)
    assert elements(tmp_path / "copy", "S") == elements(folder, "S")


def test_an_archive_that_is_replayed_into_its_own_stream_is_not_written_again(folder: str) -> None:
    before = elements(folder, "S")
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.archive("S", folder)
        q = db.query("SELECT COUNT(*) FROM S")
        db.replay(folder)
        db.push("S", ROWS[0], ts=40)
        db.advance(40)
        assert q.snapshot() == [(41,)]
    assert elements(folder, "S") == [*before, (40, 1, *ROWS[0])]


def test_an_archive_is_the_streams_own_whatever_its_folder_is_called(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = elements(folder, "S")
    for called in (".", "./", "link", "S", f"../{tmp_path.name}", f"{folder}/", f"file:{folder}"):
        for archived, replayed in ((folder, called), (called, folder)):
            with minidsms.connect() as db:
                db.execute(DECLARE)
                if archived != "S":
                    db.archive("S", archived)
                    assert db.replay(replayed) == 40
            assert elements(folder, "S") == before
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.archive("S", folder)
        db.replay("link")
        late = db.execute("CREATE QUERY late AS SELECT COUNT(*) FROM S BACKFILL FROM 'link'")
        db.advance(100)
        assert late.snapshot() == [(40,)]


def test_a_relation_goes_on_with_its_archive_once_it_has_been_replayed(tmp_path: Path) -> None:
    for run in range(3):
        with minidsms.connect() as db:
            db.execute(f"CREATE RELATION R (v INTEGER) ARCHIVE '{tmp_path}'")
            if run:
                db.replay(str(tmp_path))
                db.push("R", (run - 1,), ts=run, sign=-1)
            db.push("R", (run,), ts=run)
    assert elements(tmp_path, "R") == [(0, 1, 0), (1, -1, 0), (1, 1, 1), (2, -1, 1), (2, 1, 2)]


@pytest.mark.parametrize("options", [{"stop": True}, {"fails": True}, {"as_of": 2}, {"to": 2}])
def test_a_relation_does_not_go_on_with_an_archive_of_which_it_lacks_changes(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (v INTEGER) ARCHIVE '{tmp_path}'")
        for i in range(4):
            db.push("R", (i,), ts=i)
            db.flush()
    before = elements(tmp_path, "R")

    def fail(fraction: float) -> None:
        raise ValueError("amid the replay")

    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (v INTEGER) ARCHIVE '{tmp_path}'")
        if "fails" in options:
            with pytest.raises(ValueError, match="amid the replay"):
                db.replay(str(tmp_path), progress=fail)
        elif "stop" in options:
            db.replay(str(tmp_path), stop=lambda: True)
        else:
            db.replay(str(tmp_path), **options)
        with pytest.raises(Error, match="holds the changes of an earlier run"):
            db.push("R", (9,), ts=9)
        if db.stream_input("R").counters.accepted:
            with pytest.raises(Error, match="it would have them twice"):
                db.replay(str(tmp_path))
        else:
            assert db.replay(str(tmp_path)) == 4
    assert elements(tmp_path, "R") == before


def test_a_stream_is_archived_again_behind_a_replay_whatever_its_folder_is_called_then(
    folder: str, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.archive("S", folder)
        db.replay(str(link), progress=lambda fraction: link.unlink(missing_ok=True) if fraction == 1.0 else None)
        db.push("S", ROWS[0], ts=40)
    assert len(elements(folder, "S")) == 41


def test_pushes_of_other_threads_wait_and_follow(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        q = db.query("SELECT k, f FROM S")
        started, pushed = threading.Event(), threading.Event()

        def live() -> None:
            started.wait()
            db.push("S", (7, None, -1.0, None, None), ts=40)
            pushed.set()

        thread = threading.Thread(target=live)
        thread.start()

        def tell(fraction: float) -> None:
            started.set()
            assert fraction == 1.0 or not pushed.wait(0.02)

        db.replay(folder, progress=tell)
        thread.join()
        db.advance(40)
        assert [c.row[1] for c in q.fetch()] == [*(r[2] for r in ROWS), -1.0]


def test_a_callback_cannot_push_into_what_is_being_replayed(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        seen: list[Exception] = []

        def push(change: Any) -> None:
            try:
                db.push("S", ROWS[0], ts=100)
            except Error as error:
                seen.append(error)

        db.query("SELECT k FROM S [NOW]").on_change(push)
        db.replay(folder)
        assert seen
        assert "push and advance when the replay has ended" in str(seen[0])


def test_a_query_registered_amid_a_replay_is_refused_or_sees_everything(folder: str) -> None:
    for push_down in (True, False):
        with minidsms.connect() as db:
            db.execute(DECLARE)
            db.query("SELECT k FROM S [NOW] WHERE k = 1")
            refused: list[str] = []

            def register(fraction: float, db: Any = db, refused: list[str] = refused) -> None:
                try:
                    db.query("SELECT t FROM S")
                except Error as error:
                    refused.append(str(error))

            db.replay(folder, push_down=push_down, progress=register)
            assert any("register the query before the replay" in r for r in refused) == push_down
            db.query("SELECT t FROM S")


def test_with_history_is_refused_where_the_history_is_incomplete(folder: str) -> None:
    for push_down in (True, False):
        with minidsms.connect() as db:
            db.execute(DECLARE)
            db.query("SELECT k FROM S [RANGE 5] WHERE k = 1")
            db.replay(folder, push_down=push_down)
            late = "CREATE QUERY late AS SELECT t FROM S [RANGE 5] WITH HISTORY"
            if push_down:
                with pytest.raises(Error, match="replay with push_down=False"):
                    db.execute(late)
            else:
                db.execute(late)
            db.push("S", ROWS[:6], ts=list(range(50, 56)))
            db.advance(60)
            db.execute(late.replace("late", "later"))


def _ten_rows_with_slack(folder: Path) -> str:
    """How the stream is declared that an archive holds."""
    declare = f"CREATE STREAM S (k INTEGER, t TEXT) SLACK 5 ARCHIVE '{folder}'"
    with minidsms.connect() as db:
        db.execute(declare)
        db.push("S", [(i, f"t{i}") for i in range(10)], ts=list(range(10)))
    return declare


@pytest.mark.parametrize("push_down", [True, False])
def test_what_waits_for_slack_behind_a_replay_is_incomplete_too(tmp_path: Path, push_down: bool) -> None:
    declare = _ten_rows_with_slack(tmp_path)
    with minidsms.connect() as db:
        db.execute(declare)
        db.query("SELECT k FROM S [RANGE 2]")
        db.replay(str(tmp_path), push_down=push_down)
        backfilled = f"CREATE QUERY q AS SELECT t FROM S [RANGE 10] BACKFILL FROM '{tmp_path}'"
        late = "CREATE QUERY late AS SELECT t FROM S [RANGE 10] WITH HISTORY"
        if push_down:
            with pytest.raises(Error, match="BACKFILL: S was replayed with only what"):
                db.execute(backfilled)
        else:
            db.execute(backfilled)
        db.push("S", (13, "t13"), ts=13)  # what the replay brought before is in no window any more
        if push_down:
            with pytest.raises(Error, match="WITH HISTORY: S was replayed with only what"):
                db.execute(late)
        else:
            db.execute(late)
        db.push("S", (30, "t30"), ts=30)
        db.advance(31)
        db.execute(late.replace("late", "later"))
        db.execute(backfilled.replace(" q ", " r "))
        texts = {
            name: [row[0] for row in query.snapshot()] for name, query in db.queries.items() if name in "q r later"
        }
        assert texts == {name: ["t30"] for name in texts}


def test_nothing_is_incomplete_behind_a_replay_that_left_nothing_out(tmp_path: Path) -> None:
    declare = _ten_rows_with_slack(tmp_path)
    with minidsms.connect() as db:
        db.execute(declare)
        db.query("SELECT * FROM S [RANGE 20]")
        db.replay(str(tmp_path))
        whole = [
            db.execute(f"CREATE QUERY a AS SELECT t FROM S [RANGE 20] BACKFILL FROM '{tmp_path}'"),
            db.execute("CREATE QUERY b AS SELECT t FROM S [RANGE 20] WITH HISTORY"),
        ]
        db.advance(10)
        assert [sorted(q.snapshot()) for q in whole] == [[(f"t{i}",) for i in range(10)]] * 2


@pytest.mark.parametrize("folder_of", ["archives", "others"])
def test_what_is_being_replayed_is_archived_before_or_behind_it(folder: str, tmp_path: Path, folder_of: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.query("SELECT k FROM S [NOW] WHERE k = 1")

        def archive(fraction: float) -> None:
            db.archive("S", folder if folder_of == "archives" else str(tmp_path / "others"))

        with pytest.raises(Error, match="S is being replayed"):
            db.replay(folder, progress=archive)
    assert len(elements(folder, "S")) == 40


class _Wall:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seen: list[tuple[float, int]] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_speed_lets_time_pass_so_many_times_faster(folder: str) -> None:
    wall = _Wall()
    with minidsms.connect() as db:
        db.execute(DECLARE)
        q = db.query("SELECT k FROM S")
        q.on_change(lambda change: wall.seen.append((wall.now, change.ts)))
        replay = Replay(db, folder, None, Options(speed=0.1), clock=wall.clock, sleep=wall.sleep)
        assert replay.run() == 40
        db.advance(100)
    # A tick of a millisecond takes 10 at a tenth of the speed.
    assert [ts for _, ts in wall.seen] == list(range(40))
    assert all(abs(now - ts * 0.01) <= 0.021 for now, ts in wall.seen)


@pytest.mark.parametrize("declared", ["", "FROM '{file}'"])
def test_a_block_that_is_larger_than_the_memory_limit_is_read_in_parts(tmp_path: Path, declared: str) -> None:
    n = 200_000
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (ts INTEGER, v INTEGER, t TEXT) TIMESTAMP BY ts")
        db.archive("S", str(tmp_path / "data"))
        db.push("S", {"ts": range(n), "v": range(n), "t": list(map(str, range(n)))})
    file = tmp_path / "s.csv"
    file.write_text("ts,v,t\n" + "".join(f"{i},{i},{i}\n" for i in range(n)))
    with minidsms.connect(memory_limit="1 MB") as db:
        db.execute("CREATE STREAM S (ts INTEGER, v INTEGER, t TEXT) TIMESTAMP BY ts " + declared.format(file=file))
        q = db.query("SELECT RSTREAM(SUM(v)) FROM S [TUMBLE 50000]")
        db.run() if declared else db.replay(str(tmp_path / "data"))
        sums = [change.row[0] for change in q.fetch()]
        assert sums[1:4] == [sum(range(t, t + 50_000)) for t in range(0, 150_000, 50_000)]


def test_a_replay_that_follows_reads_what_is_added(folder: str) -> None:
    with minidsms.connect() as db, minidsms.connect() as writer:
        writer.execute(DECLARE)
        writer.archive("S", folder)
        db.execute(DECLARE)
        q = db.query("SELECT f FROM S [RANGE 1000] WHERE k >= 0")
        rounds = 0

        def stop() -> bool:
            nonlocal rounds
            rounds += 1
            if rounds % 4 == 0 and rounds <= 20:
                ts = 40 + rounds
                writer.push("S", (1, "x", float(ts), None, None), ts=ts)
                writer.advance(ts)
                writer.flush()
            return rounds > 1000 or q.closed_until == 60

        replay = Replay(db, folder, None, Options(follow=True), stop=stop, sleep=lambda seconds: None)
        assert replay.run() == 45
        assert [c.row[0] for c in q.fetch()][40:] == [44.0, 48.0, 52.0, 56.0, 60.0]
        assert q.closed_until == 60


def test_a_replay_that_follows_passes_by_no_change_of_a_relation(tmp_path: Path) -> None:
    declare = "CREATE STREAM S (k INTEGER); CREATE RELATION R (k INTEGER, n TEXT)"
    with minidsms.connect(archive_rows=5, archive_interval="1 DAY") as writer, minidsms.connect() as db:
        for each in (writer, db):
            each.execute(declare)
        for name in "SR":
            writer.archive(name, str(tmp_path))
        writer.push("R", (1, "a"), ts=0)
        writer.flush()
        q = db.query("SELECT ISTREAM(n) FROM S [NOW], R WHERE S.k = R.k")
        rounds = 0

        def stop() -> bool:
            nonlocal rounds
            rounds += 1
            if rounds % 4 == 0 and rounds <= 20:
                # What comes of the stream is enough for a file, what comes of the relation is not.
                writer.push("R", (1, "b"), ts=10 * rounds)
                writer.push("S", {"k": [1] * 5}, ts=10 * rounds)
                writer.advance(10 * rounds)
                while writer.archiver is not None and writer.archiver.nbytes:
                    time.sleep(0.001)
            return rounds > 10_000 or q.closed_until >= 200

        Replay(db, str(tmp_path), None, Options(follow=True), stop=stop, sleep=lambda seconds: None).run()
        expected = [(10 * r, r // 4) for r in (4, 8, 12, 16, 20)]
        changes = q.fetch()
        assert [(ts, sum(c.row == ("b",) for c in changes if c.ts == ts) // 5) for ts, _ in expected] == expected


@pytest.mark.parametrize(
    ("declare", "options", "reason"),
    [
        ("CREATE STREAM T (k INTEGER)", {}, "no stream or relation is named like an archive"),
        ("CREATE STREAM S (k INTEGER, z TEXT)", {}, 'has no column "z"'),
        ("CREATE STREAM S (k FLOAT)", {}, "has k as INTEGER, S as FLOAT"),
        ("CREATE RELATION S (k INTEGER)", {}, "S is a relation, and its archive is one of a stream"),
        (DECLARE, {"names": ["T"]}, 'has no archive "t"'),
        (DECLARE, {"names": "S"}, r"a list of names, such as \['S'\]"),
        (DECLARE, {"names": [1]}, "not int"),
        (DECLARE, {"as_of": 1.5}, "as_of is the number of a commit, an ISO time or a datetime, not float"),
        (DECLARE, {"as_of": True}, "not bool"),
        (DECLARE, {"speed": 0}, "above 0"),
        (DECLARE, {"speed": float("inf")}, "above 0"),
        (DECLARE, {"engine": "dask"}, 'no replay engine "dask"'),
        (DECLARE, {"from_": "yesterday"}, "yesterday"),
    ],
)
def test_what_cannot_be_replayed_is_refused(folder: str, declare: str, options: dict[str, Any], reason: str) -> None:
    with minidsms.connect() as db:
        db.execute(declare)
        with pytest.raises(Error, match=reason):
            db.replay(folder, **options)
        assert db.replaying is None


def test_another_time_unit_is_refused(folder: str) -> None:
    with minidsms.connect(time_unit="s") as db:
        db.execute(DECLARE)
        with pytest.raises(Error, match=r"connect\(time_unit='ms'\)"):
            db.replay(folder)


def test_columns_may_stand_in_another_order_or_be_fewer(folder: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM s (T TEXT, K INTEGER)")
        q = db.query("SELECT t, k FROM S")
        db.replay(folder)
        db.advance(100)
        assert [c.row for c in q.fetch()] == [(r[1], r[0]) for r in ROWS]


def test_the_progress_rises_to_one(folder: str) -> None:
    told: list[float] = []
    tell: Callable[[float], None] = told.append
    with minidsms.connect() as db:
        db.execute(DECLARE)
        db.replay(folder, progress=tell)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_relations_keep_up_with_a_stream_of_which_nothing_is_needed(tmp_path: Path) -> None:
    text = "ISTREAM (SELECT S.v, R.a FROM S [RANGE 5], R WHERE S.v = R.v AND S.v > 100)"
    declared = "CREATE STREAM S (v INTEGER); CREATE RELATION R (v INTEGER, a INTEGER)"
    with minidsms.connect() as db:
        db.execute(declared)
        for name in "SR":
            db.archive(name, str(tmp_path))
        for ts in range(10):
            db.push("R", (ts, ts), ts=ts)
            db.push("S", (ts,), ts=ts)
            db.flush()  # R then is read in several blocks
    with minidsms.connect() as db:
        db.execute(declared)
        query = db.query(text)
        assert db.replay(str(tmp_path)) == 10
        db.push("R", (101, 7), ts=9)
        db.push("S", (101,), ts=9)
        db.advance(9)
        assert [tuple(c.row) for c in query.fetch()] == [(101, 7)]
