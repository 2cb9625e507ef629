"""Feeding files: as fast as they can, in event time, several side by side, and what is left when it ends."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from minidsms.activity import Activity, Rates, measure
from minidsms.cql.errors import Error
from minidsms.shell.session import Session
from minidsms.shell.toolbar import feed_bar, fitted
from tests.shell.sessions import Clock, finish, session_of

STREAMS = """
CREATE STREAM A (t INTEGER, v INTEGER) TIMESTAMP BY t;
CREATE STREAM B (t INTEGER, v INTEGER) TIMESTAMP BY t;
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.csv").write_text("t,v\n" + "".join(f"{i * 1000},{i}\n" for i in range(10)))
    (tmp_path / "b.csv").write_text("t,v\n" + "".join(f"{i * 1000 + 500},{i}\n" for i in range(10)))
    (tmp_path / "later.csv").write_text("t,v\n20000,20\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def accepted(session: Session, name: str) -> int:
    return session.db.stream_input(name).counters.accepted


def test_when_a_file_has_been_read_its_last_instant_is_answered_and_another_may_follow() -> None:
    session, screen = session_of(f"{STREAMS} SELECT SUM(v) AS s FROM A [ROWS 1];\n.feed A FROM 'a.csv'")
    finish(session)
    assert session.db.queries["q1"].snapshot() == [(9,)]
    session.run_text(".feed A FROM 'later.csv'")
    finish(session)
    assert session.db.queries["q1"].snapshot() == [(20,)]
    session.run_text(".feed A FROM 'a.csv'")
    finish(session)
    assert "late" in screen.take("error")


def test_at_a_speed_rows_come_when_they_are_due_and_time_goes_on_without_rows() -> None:
    clock = Clock()
    session, _ = session_of(f"{STREAMS} SELECT COUNT(*) AS n FROM A [RANGE 200];", clock=clock)
    session.run_text(".feed A FROM 'a.csv' SPEED 2")
    session.step_feeds()
    assert accepted(session, "A") == 1
    clock.now += 0.2
    assert session.step_feeds() > 0
    assert session.db.queries["q1"].closed_until == 400 and session.db.queries["q1"].snapshot() == [(0,)]
    clock.now += 1.0
    while session.step_feeds() == 0.0:
        pass
    assert accepted(session, "A") == 3
    clock.now += 60.0
    finish(session)
    assert accepted(session, "A") == 10 and session.feeds == []


def test_several_files_are_read_side_by_side_in_the_order_of_their_instants() -> None:
    session, screen = session_of(
        f"{STREAMS} SELECT RSTREAM(A.v AS x, B.v AS y) FROM A [ROWS 1], B [NOW];\n"
        ".feed A FROM 'a.csv', B FROM 'b.csv' FORMAT csv"
    )
    finish(session)
    assert [line.split()[-2:] for line in screen.take("result").splitlines()[1:]] == [[str(i)] * 2 for i in range(10)]


def test_declared_sources_are_read_by_feed_alone_and_end() -> None:
    session, screen = session_of("CREATE STREAM A (t INTEGER, v INTEGER) TIMESTAMP BY t FROM 'a.csv'; SELECT v FROM A;")
    assert accepted(session, "A") == 0
    session.run_text(".feed")
    finish(session)
    assert accepted(session, "A") == 10 and "fed 10 rows into A" in screen.take("note")
    with pytest.raises(
        Error, match="no stream or relation waits to be read: all declared FROM a source have been read"
    ):
        session.run_text(".feed")
    with pytest.raises(Error, match="help: declared without FROM"):
        session.run_text(".feed A FROM 'later.csv'")


def test_a_feed_can_be_stopped_and_the_rest_is_left_unread() -> None:
    session, _ = session_of(f"{STREAMS}.feed A FROM 'a.csv' SPEED 1", clock=Clock())
    session.step_feeds()
    session.run_text(".feed stop")
    finish(session)
    assert accepted(session, "A") == 1


def test_an_input_is_fed_by_one_feed_at_a_time() -> None:
    session, _ = session_of(f"{STREAMS}.feed A FROM 'a.csv' SPEED 1", clock=Clock())
    with pytest.raises(Error, match="A is being fed"):
        session.run_text(".feed A FROM 'later.csv'")


@pytest.mark.parametrize(
    "wrong",
    [
        ".feed A",
        ".feed A FROM",
        ".feed A FROM 'a.csv' SPEED 0",
        ".feed A FROM 'a.csv' SPEED fast",
        ".feed A FROM 'a.csv' and more",
        ".feed A FROM 'a.csv',",
        ".feed",
        ".feed Nothing FROM 'a.csv'",
        ".feed A FROM 'missing.csv'",
        ".feed A FROM 'a.csv",
    ],
)
def test_a_wrong_feed_is_refused_and_feeds_nothing(wrong: str) -> None:
    session, _ = session_of(STREAMS)
    with pytest.raises(Error):
        session.run_text(wrong)
    assert session.feeds == []


def test_rows_that_cannot_be_read_are_told_with_an_example(folder: Path) -> None:
    (folder / "bad.csv").write_text("t,v\n1,1\n2,two\n3,3\n")
    session, screen = session_of(f"{STREAMS}.feed A FROM 'bad.csv'")
    finish(session)
    assert "A: 1 row left out, for example" in screen.take("warning")
    assert accepted(session, "A") == 2


def test_of_several_rows_that_cannot_be_read_three_are_told(folder: Path) -> None:
    (folder / "bad.csv").write_text("t,v\n1,1\n2,two\n3,3\n4\nfive,5\n6,six\n")
    session, screen = session_of(f"{STREAMS}.feed A FROM 'bad.csv'")
    finish(session)
    told = screen.take("warning")
    assert "A: 4 rows left out, for example:\n" in told
    assert [place for place in range(2, 8) if f"line {place}: " in told] == [3, 5, 6]


# ------------------------------------------------------------------------------------------------------- activity


def test_rates_are_what_came_between_two_measurements() -> None:
    clock = Clock()
    session, _ = session_of(f"{STREAMS} SELECT v FROM A;", clock=clock)
    before = measure(session.db, clock)
    session.run_text(".feed A FROM 'a.csv'")
    finish(session)
    clock.now += 2.0
    rates = Rates.between(before, measure(session.db, clock))
    assert rates.inputs["a"] == 5.0 and rates.queries["q1"] == 5.0
    assert Rates.between(before, before) == Rates()


def test_lag_is_the_event_time_between_what_has_come_and_what_is_answered() -> None:
    session, _ = session_of(f"{STREAMS} SELECT A.v FROM A [NOW], B [NOW];\n.feed A FROM 'a.csv'")
    finish(session)
    session.db.push("B", (20_000, 1))
    activity = measure(session.db)
    assert activity.queries["q1"].closed_until == 9_000 and activity.lag == 11_000
    session.run_text("ALTER QUERY q1 PAUSE;")
    assert measure(session.db).queries["q1"].state == "paused"
    assert Activity(0.0).lag == 0


def test_a_feed_ends_with_its_stream() -> None:
    clock = Clock()
    session, screen = session_of(f"{STREAMS}\n.feed A FROM 'a.csv' SPEED 1", clock=clock)
    session.step_feeds()
    clock.now = 3.0
    session.step_feeds()
    session.run_text(f"DROP STREAM A; {STREAMS.splitlines()[1]}")
    assert [feed_bar(feed) for feed in session.feeds]
    screen.said.clear()
    session.step_feeds()
    assert not session.feeds and accepted(session, "A") == 0
    assert screen.take("error") == "error: A has been dropped; the rest of its source is left unread"


def test_a_feed_of_declared_sources_goes_on_with_a_stream_that_is_declared_anew() -> None:
    declared = [f"{line.removesuffix(';')} FROM '{line[14].lower()}.csv';" for line in STREAMS.split("\n") if line]
    clock = Clock()
    session, screen = session_of("\n".join([*declared, ".feed SPEED 1"]), clock=clock)
    session.step_feeds()
    session.run_text(f"DROP STREAM A;\n{declared[0]}")
    clock.now = 60.0
    finish(session)
    assert not screen.take("error")
    assert accepted(session, "A") == accepted(session, "B") == 10


def test_a_feed_goes_on_while_a_stream_is_being_dropped_with_its_source() -> None:
    session, _ = session_of("CREATE STREAM A (t INTEGER, v INTEGER) TIMESTAMP BY t FROM 'a.csv';\n.feed SPEED 1")
    (feed,), db = session.feeds, session.db
    failures = list[Error]()

    def step() -> None:
        try:
            feed.step()
        except Error as error:
            failures.append(error)

    stepping = threading.Thread(target=step)
    with db.lock:
        stream = db._streams.pop("a")  # as DROP does before the source goes
        stepping.start()
        stepping.join(0.1)
        db._streams["a"] = stream
    stepping.join()
    assert not failures and accepted(session, "A") == 1


@pytest.mark.parametrize("end", ["stop_feeds", "close"])
def test_a_feed_that_is_stopped_closes_what_it_reads(end: str) -> None:
    before = set(threading.enumerate())
    session, _ = session_of(f"{STREAMS}\n.feed A FROM 'tcp-listen://127.0.0.1:0'")
    session.step_feeds()
    (thread,) = set(threading.enumerate()) - before
    getattr(session, end)()
    thread.join(60)
    assert not thread.is_alive()
    session.close()


def test_a_feed_that_is_stopped_says_how_far_it_came() -> None:
    clock = Clock()
    session, _ = session_of(f"{STREAMS}\n.feed A FROM 'a.csv' SPEED 1", clock=clock)
    session.step_feeds()
    (feed,) = session.feeds
    reached = feed.fraction
    feed.stop()
    assert feed.fraction == reached
    session.close()


def test_what_is_at_work_has_room_below_the_prompt_before_hints_have() -> None:
    hint, work = ("hint", "h" * 70), ("problem", "at work for 2 s; Ctrl-C stops the feed")
    assert fitted([hint, work], 110) == [work]
    assert fitted([hint, work], 200) == [hint, work]
    assert fitted([hint], 40) == [hint]
