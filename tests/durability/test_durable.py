"""What a connection with a folder keeps, and what it refuses to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import minidsms
from minidsms import Change
from minidsms.cql.errors import ClosedError, CqlError, DataError, Error
from minidsms.inputs.stream_input import StreamInput
from minidsms.operators.operator import Operator
from minidsms.testing.user_definitions import Panic, Span, leaving, panicking, tag


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "db")


def opened(folder: str, **options: Any) -> minidsms.Connection:
    """A new folder with a stream and a query over it."""
    db = minidsms.connect(folder, **options)
    db.execute("CREATE STREAM S (k INTEGER, name TEXT)")
    db.query("SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="counts")
    return db


def test_state_and_answers_come_back(folder: str) -> None:
    db = opened(folder)
    db.push("S", [(1, "a"), (1, None), (2, "ü")], ts=[0, 1, 2])
    db.close()
    with minidsms.connect(folder) as db:
        counts = db.queries["counts"]
        assert counts.fetch() == [Change(0, 1, (1, 1)), Change(1, -1, (1, 1)), Change(1, 1, (1, 2))]
        db.push("S", (1, "b"), ts=3)
        db.advance(3)
        assert counts.fetch() == [Change(2, 1, (2, 1)), Change(3, -1, (1, 2)), Change(3, 1, (1, 3))]


def test_what_is_there_or_gone_already_costs_the_log_nothing(folder: str) -> None:
    db = opened(folder)
    db.execute("CREATE RELATION R (k INTEGER); CREATE VIEW V AS SELECT k FROM S")
    assert db.log is not None
    before = db.log.next
    again = (
        "CREATE STREAM IF NOT EXISTS S (k INTEGER, name TEXT)",
        "CREATE RELATION IF NOT EXISTS R (k INTEGER)",
        "CREATE VIEW IF NOT EXISTS V AS SELECT k FROM S",
        "CREATE QUERY IF NOT EXISTS counts AS SELECT k FROM S",
        "DROP QUERY IF EXISTS none; DROP STREAM IF EXISTS none",
    )
    for text in again:
        db.execute(text)
    assert db.log.next == before
    assert db.execute(again[3]) is db.queries["counts"]
    db.execute("DROP QUERY IF EXISTS counts; CREATE QUERY IF NOT EXISTS counts AS SELECT name FROM S")
    assert db.log.next > before
    db.close()
    with minidsms.connect(folder) as db:
        assert db.queries["counts"].text == "SELECT name FROM S"


def test_what_was_fetched_is_not_given_again(folder: str) -> None:
    db = opened(folder)
    db.push("S", [(1, "a"), (2, "a")], ts=[0, 5])
    assert len(db.queries["counts"].fetch()) == 1
    db.close()
    with minidsms.connect(folder) as db:
        assert db.queries["counts"].position == 1
        assert db.queries["counts"].fetch() == []


def test_fetch_with_a_position_gives_again_what_was_not_acknowledged(folder: str) -> None:
    db = opened(folder)
    db.push("S", [(1, "a"), (2, "a"), (3, "a")], ts=[0, 1, 2])
    db.advance(2)
    given = db.queries["counts"].fetch(ack=0)
    assert len(given) == 3
    assert db.queries["counts"].fetch(ack=2) == given[2:]
    db.close()
    with minidsms.connect(folder) as db:
        counts = db.queries["counts"]
        assert counts.fetch(ack=2) == given[2:]
        assert counts.fetch_arrow(ack=3).num_rows == 0
        with pytest.raises(Error, match="from 3 to 3, not 2"):
            counts.fetch(ack=2)


def test_an_acknowledgement_is_of_whole_instants(folder: str) -> None:
    with opened(folder) as db:
        db.push("S", [(1, "a"), (2, "a")], ts=[0, 0])
        db.advance(0)
        with pytest.raises(Error, match="ack 1 stands within the instant 0"):
            db.queries["counts"].fetch(ack=1)


def test_position_counts_what_was_pushed(folder: str) -> None:
    db = minidsms.connect(folder)
    db.execute("CREATE STREAM S (k INTEGER) LATE DROP; CREATE RELATION R (k INTEGER)")
    db.push("S", [(1,), (2,), (3,)], ts=[5, 1, 6])  # one is late, and was pushed all the same
    db.push("S", (4,), ts=2)
    db.push("R", pa.table({"k": [1, 2]}), ts=9)
    with pytest.raises(DataError):
        db.push("R", (7,), ts=9, sign=-1)
    with pytest.raises(DataError):
        db.push("S", ("x",), ts=9)
    assert (db.position("S"), db.position("r")) == (4, 2)
    db.close()
    with minidsms.connect(folder) as db:
        assert (db.position("S"), db.position("r")) == (4, 2)
        assert db.stream_input("S").counters.late_dropped == 2


def test_a_connection_in_memory_has_no_position() -> None:
    with minidsms.connect() as db:
        for call in (lambda: db.position("S"), db.checkpoint, lambda: db.backup("x")):
            with pytest.raises(Error, match="keeps nothing"):
                call()


def test_every_statement_and_call_comes_back(folder: str) -> None:
    db = opened(folder, seed=7)
    db.create_function("tag", tag, ["TEXT", "INTEGER"], "TEXT")
    db.create_aggregate("span", Span, ["INTEGER"], "INTEGER")
    db.execute("CREATE VIEW V AS SELECT tag(name, k) AS t FROM S [RANGE 3]")
    db.execute("SET batch_size = 100; SET quantum = 100")
    db.query("SELECT * FROM V", name="tagged")
    unnamed = db.query("SELECT SPAN(k) FROM S [RANGE 3]")
    db.execute("CREATE STREAM T (a FLOAT, b BOOLEAN, c TIMESTAMP, d INTERVAL); DROP STREAM T")
    db.query("SELECT k FROM S", name="dropped").close()
    db.queries["tagged"].set("batch_size", 7)
    db.queries["tagged"].pause()
    with pytest.raises(CqlError):
        db.execute("CREATE QUERY wrong AS SELECT nothing FROM S")
    shown = {name: str(db.execute(f"SHOW {name}")) for name in ("streams", "views", "queries", "settings", "functions")}
    db.close()
    with minidsms.connect(folder) as db:
        for name, text in shown.items():
            assert str(db.execute(f"SHOW {name}")) == text
        assert unnamed.name in db.queries
        assert db.queries["tagged"].state == "paused"
        db.push("S", [(1, "a"), (3, "b")], ts=[0, 1])
        db.advance(1)
        db.queries["tagged"].resume()
        assert [c.row for c in db.queries["tagged"].fetch()] == [("a1",), ("b3",)]


def test_settings_may_change_between_stop_and_start(folder: str) -> None:
    opened(folder, scheduler="fifo").close()
    with minidsms.connect(folder, scheduler="greedy") as db:
        assert db.settings["scheduler"] == "greedy"
    with minidsms.connect(folder) as db:
        assert db.settings["scheduler"] == "greedy"
    with pytest.raises(Error, match=r"time_unit = 'ms' in the folder .*, and stays so"):
        minidsms.connect(folder, time_unit="s")


@pytest.mark.parametrize("reopen", [lambda db: None, lambda db: db.checkpoint()])
def test_settings_that_set_changes_are_kept_as_those_of_statements(
    folder: str, reopen: Callable[[minidsms.Connection], None]
) -> None:
    with minidsms.connect(folder) as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        db.set("rstream", "ticks")
        db.set("memory_limit", "1 GB")
        db.query("RSTREAM (SELECT v FROM S [RANGE 3])", "q")
        db.set("rstream", "events")
        db.push("S", (1,), ts=1)
        reopen(db)
    with minidsms.connect(folder) as db:
        assert (db.settings["rstream"], db.settings["memory_limit"]) == ("events", 2**30)
        db.advance(4)
        assert [change.ts for change in db.queries["q"].fetch()] == [1, 2, 3]


def test_elements_that_are_left_come_back_unprocessed(folder: str) -> None:
    db = opened(folder)
    db.push("S", [(1, "a"), (2, "b")], ts=[0, 1], block=False)
    assert db.queries["counts"].results == 0
    db.close()
    with minidsms.connect(folder) as db:
        assert db.queries["counts"].results == 0
        db.process()
        assert db.queries["counts"].results == 1


def test_a_folder_is_open_once(folder: str) -> None:
    db = opened(folder)
    with pytest.raises(Error, match=f"open already, in process {os.getpid()}"):
        minidsms.connect(folder)
    db.close()
    db.close()
    minidsms.connect(folder).close()


def test_another_process_is_told_who_has_the_folder(folder: str) -> None:
    with opened(folder):
        code = f"import minidsms; minidsms.connect({folder!r})"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert f"open already, in process {os.getpid()}" in ran.stderr


def test_a_folder_of_something_else_is_left_alone(folder: str) -> None:
    os.mkdir(folder)
    Path(folder, "letters").write_text("dear")
    with pytest.raises(Error, match="not a connection"):
        minidsms.connect(folder)
    assert os.listdir(folder) == ["letters"]
    with pytest.raises(Error, match=r"is a file.*\nhelp: db.feed"):
        minidsms.connect(f"{folder}/letters")
    memory = minidsms.connect()
    memory.execute("CREATE STREAM S (a INTEGER)")
    memory.archive("S", f"{folder}/old")
    memory.close()
    with pytest.raises(Error, match=r"holds archives.*\nhelp: db.replay"):
        minidsms.connect(f"{folder}/old")


def in_a_function() -> Callable[[int], int]:
    return lambda k: k


@pytest.mark.parametrize(
    "call",
    [
        lambda db: db.execute("SET backfill = 'spark'; CREATE QUERY q AS SELECT k FROM S BACKFILL FROM 'x'"),
        lambda db: db.execute("SET load_shedding = 'drop oldest'"),
        lambda db: db.execute("SET k_mon = lossy"),
        lambda db: db.create_function("f", in_a_function(), ["INTEGER"], "INTEGER"),
    ],
)
def test_what_is_not_kept_is_refused_and_changes_nothing(folder: str, call: Callable[[Any], object]) -> None:
    db = opened(folder)
    with pytest.raises(Error, match=r"does not keep|cannot be found again") as refused:
        call(db)
    assert "help: " not in str(refused.value).split("\n  1 | ")[0] or "  1 | " not in str(refused.value)
    db.push("S", (1, "a"), ts=0)
    assert list(db.queries) == ["counts"]
    db.close()
    with minidsms.connect(folder) as db:
        assert list(db.queries) == ["counts"]
        assert list(db.catalog.functions) == []


def test_a_function_may_stand_in_a_module_whose_name_is_no_identifier(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Own:\n    @staticmethod\n    def twice(k):\n        return 2 * k\n"
    (tmp_path / "01-functions.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    db = opened(folder)
    db.create_function("twice", import_module("01-functions").Own.twice, ["INTEGER"], "INTEGER")
    db.query("SELECT RSTREAM(twice(k)) FROM S [NOW]", name="doubled")
    db.close()
    with minidsms.connect(folder) as db:
        db.push("S", (3, "a"), ts=0)
        db.advance(0)
        assert db.queries["doubled"].fetch() == [Change(0, 1, (6,))]


def test_a_function_that_is_gone_is_named(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(folder)
    db.create_function("tag", tag, ["TEXT", "INTEGER"], "TEXT")
    db.close()
    monkeypatch.delattr("minidsms.testing.user_definitions.tag")
    with pytest.raises(Error, match=r"tag is not there any more(.|\n)*user_definitions:tag be importable"):
        minidsms.connect(folder)
    monkeypatch.undo()
    with minidsms.connect(folder) as db:
        assert list(db.catalog.functions) == ["tag"]


def test_a_function_keeps_its_name_in_its_folder_when_that_is_built_in(folder: str) -> None:
    db = opened(folder)
    with pytest.raises(Error, match="built-in"):
        db.create_function("concat", tag, ["TEXT", "INTEGER"], "TEXT")
    # As a folder of a version in which the name was free.
    with (
        db.lock,
        db.journal.entry(
            "function",
            name="concat",
            place=f"{tag.__module__}:tag",
            arg_types=["TEXT", "INTEGER"],
            type="TEXT",
            vectorized=False,
            fixed=False,
        ),
    ):
        pass
    db.close()
    with minidsms.connect(folder) as db:
        q = db.query("SELECT RSTREAM(concat(name, k)) FROM S [NOW]")
        db.push("S", (1, "a"), ts=0)
        db.advance(0)
        assert [change.row for change in q.fetch()] == [("a1",)]


def test_after_an_interrupt_the_folder_has_what_was_pushed(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(folder)

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(db, "_process", interrupt)
    with pytest.raises(KeyboardInterrupt):
        db.push("S", (1, "a"), ts=0)
    monkeypatch.undo()
    for call in (lambda: db.push("S", (2, "a"), ts=1), lambda: db.advance(3), lambda: db.execute("SHOW streams")):
        with pytest.raises(Error, match="open the folder again"):
            call()
    db.close()
    with minidsms.connect(folder) as db:
        assert db.position("S") == 1
        db.advance(0)
        assert db.queries["counts"].fetch() == [Change(0, 1, (1, 1))]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ImportError, OSError, SystemError])
def test_queries_go_on_behind_what_the_process_has_raised_amid_a_step(
    error: type[BaseException], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = opened(folder)
    process = Operator.process

    def raising(self: Operator, *arguments: Any) -> Any:
        raise error

    for operator in {type(op) for op in db.queries["counts"].network.operators}:
        if operator.process is not process:
            monkeypatch.setattr(operator, "process", raising)
    with pytest.raises(error):
        db.push("S", (1, "a"), ts=0)
        db.advance(0)
    monkeypatch.undo()
    assert db.queries["counts"].failure is not None
    with pytest.raises(Error, match="open the folder again"):
        db.push("S", (2, "a"), ts=1)
    db.close()
    with minidsms.connect(folder) as db:
        assert db.position("S") == 1 and db.queries["counts"].failure is None
        db.advance(0)
        assert db.queries["counts"].fetch() == [Change(0, 1, (1, 1))]


def test_a_query_fails_whose_function_raises_what_is_no_exception(folder: str) -> None:
    db = opened(folder)
    db.create_function("panicking", panicking, ["INTEGER"], "INTEGER")
    db.query("SELECT panicking(k) FROM S", "panics")
    with pytest.raises(Panic):
        db.push("S", (1, "a"), ts=0)
        db.advance(0)
    db.close()
    with minidsms.connect(folder) as db:
        failure = db.queries["panics"].failure
        assert failure is not None and "Panic" in failure[1] and db.position("S") == 1


def test_a_query_fails_whose_function_exits_and_no_other(folder: str) -> None:
    db = opened(folder)
    db.create_function("leaving", leaving, ["INTEGER"], "INTEGER")
    db.query("SELECT leaving(k) FROM S", "leaves")
    db.push("S", (1, "a"), ts=0)
    db.advance(0)
    assert db.queries["leaves"].failure is not None
    db.close()
    with minidsms.connect(folder) as db:
        failure = db.queries["leaves"].failure
        assert failure is not None and "SystemExit: 3" in failure[1]
        assert db.queries["counts"].fetch() == [Change(0, 1, (1, 1))]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_leaves_the_folder_to_its_parent(folder: str) -> None:
    db = opened(folder)
    child = os.fork()
    if child == 0:
        try:
            db.push("S", (1, "a"), ts=0)
        except ClosedError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    db.push("S", (2, "b"), ts=1)
    with pytest.raises(Error, match="open already"):
        minidsms.connect(folder)
    db.close()
    with minidsms.connect(folder) as db:
        assert db.position("S") == 1


def test_nothing_else_is_put_into_a_folder(folder: str, tmp_path: Path) -> None:
    """What a connection does not know there it may remove."""
    with opened(folder) as db, minidsms.connect(tmp_path / "other") as other:
        other.execute("CREATE STREAM S (k INTEGER)")
        (tmp_path / "link").symlink_to(folder)
        for place in (f"{folder}/log-7", f"{folder}/checkpoint/in", str(tmp_path / "link" / "log-7")):
            for call in (
                lambda place=place: minidsms.connect(place),
                lambda place=place: other.backup(place),
                lambda place=place: db.archive("S", place),
                lambda place=place: other.execute(f"CREATE QUERY q AS SELECT k FROM S INTO '{place}.csv'"),
            ):
                with pytest.raises(Error, match=r"lies in .* the folder of a connection"):
                    call()
        assert not other.queries
    with minidsms.connect(folder) as db:
        assert not db.warnings


def test_a_folder_is_named_by_bytes_too(folder: str) -> None:
    opened(os.fsencode(folder)).close()  # type: ignore[arg-type]
    with minidsms.connect(folder) as db:
        assert list(db.queries) == ["counts"]


def test_single_rows_are_carried_out_again_as_they_were_pushed(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without arrays, which take twice as long."""
    rows = [(1, -0.5, True, "a\0ü", 7), (None, None, None, None, None), (-(2**63), 1e300, False, "", 0)]
    with minidsms.connect(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER, x FLOAT, b BOOLEAN, t TEXT, at TIMESTAMP) LATE DROP")
        db.query("SELECT ISTREAM(*) FROM S [NOW]", name="q")
        for ts, row in enumerate(rows):
            db.push("S", row, ts=ts)
        db.push("S", rows[0], ts=0)
        db.push("S", rows[0], ts=9, block=False)
    monkeypatch.delattr(StreamInput, "_instants")
    with minidsms.connect(folder) as db:
        assert (db.position("S"), db.stream_input("S").counters.late_dropped) == (5, 1)
        db.advance(9)
        assert [change.row for change in db.queries["q"].fetch()] == [*rows, rows[0]]


def test_a_query_that_two_threads_close_at_once_is_closed_once(folder: str) -> None:
    db = opened(folder)
    closing = [threading.Thread(target=db.queries["counts"].close) for _ in range(2)]
    with db.lock:
        for each in closing:
            each.start()
            each.join(0.1)  # it waits for the lock
    for each in closing:
        each.join()
    db.close()
    with minidsms.connect(folder) as db:
        assert not db.queries


def test_a_page_ends_before_the_lock_is_taken_that_its_threads_may_wait_for(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    db = opened(folder)
    shown = db.ui()
    stop = shown.stop
    held: list[bool] = []

    def stopping() -> None:
        held.append(db.lock.inner._is_owned())  # type: ignore[attr-defined]
        stop()

    monkeypatch.setattr(shown, "stop", stopping)
    db.close()
    assert held[0] is False and shown.is_over


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)"])
def test_a_program_that_ends_without_closing_says_nothing(folder: str, end: str) -> None:
    program = f"import minidsms\ndb = minidsms.connect({folder!r})\ndb.execute('CREATE STREAM S (v INTEGER)')\n{end}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not ended.stderr
