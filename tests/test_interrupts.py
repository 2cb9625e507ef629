"""Interrupts: a call has happened wholly or not at all, and nothing is half registered or held by what is gone.

SIGINT waits while a call is at work (`minidsms.process.interrupts`): a sample of the lines of all public calls is
interrupted here, `make interrupts` takes the others. A line may also fail for want of memory: where queries are wired
to the engine and taken from it, that leaves nothing behind either.
"""

from __future__ import annotations

import linecache
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import minidsms
from minidsms import connection
from minidsms.elements import Batch
from minidsms.engine import group, groups, network
from minidsms.process.interrupts import EngineLock
from tests.long.interrupted_calls import CASES, run_case

FUNCTIONS = {"start", "forget", "remove", "_drop", "_leave", "_end", "_forget", "add", "_add", "_use"}
FILES = {connection.__file__, group.__file__, groups.__file__, network.__file__}
"""Where queries are wired to the engine and taken from it: the lines that fail."""


@pytest.fixture(autouse=True)
def interrupts_raise() -> Iterator[None]:
    """Python's own handler, whatever other tests have installed: Spark's driver does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def failed_at(line: int, call: Callable[[], object]) -> bool:
    """Make the call, with an exception before the given one of the lines above; whether there were so many."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        if event == "call":
            code = frame.f_code
            return trace if code.co_filename in FILES and code.co_name in FUNCTIONS else None
        # At the line of a `with` its lock is let go, and at a `try` nothing happens: neither can fail.
        source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and not source.startswith(("with ", "try:")):
            lines += 1
            if lines == line:
                raise MemoryError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except MemoryError:
        pass
    finally:
        sys.settrace(before)
    return lines >= line


def running() -> minidsms.Connection:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER)")
    db.query("SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="counts")
    db.query("SELECT COUNT(*) FROM S [RANGE 10]", name="total")
    return db


def check_whole(db: minidsms.Connection) -> None:
    """Every query that is listed answers, and all can be dropped, and made anew."""
    db.push("S", [(1,), (2,)], ts=[1, 2])
    db.advance(2)
    for query in db.queries.values():
        assert query.state == "running"
        assert len(query.fetch()) == 2 if query.name == "counts" else query.fetch()
    for name in list(db.queries):
        db.execute(f"DROP QUERY {name}")
    assert db.groups.all == []
    assert db.stream_store("S")[0].is_read is False
    db.execute("DROP STREAM S; CREATE STREAM S (k INTEGER)")
    query = db.query("SELECT k FROM S", name="counts")
    db.push("S", (7,), ts=1)
    assert [change.row for change in query.fetch()] == [(7,)]


CALLS = {
    "query": lambda db: db.query("SELECT MAX(k) FROM S [RANGE 10]", name="greatest"),
    "a query that shares operators": lambda db: db.query(
        "SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="again"
    ),
    "DROP QUERY": lambda db: db.execute("DROP QUERY counts"),
    "Query.close": lambda db: db.queries["total"].close(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_failure_at_any_line_that_wires_a_query_leaves_the_connection_whole(
    call: Callable[[minidsms.Connection], object],
) -> None:
    line = 1
    while True:
        db = running()
        was_there = failed_at(line, lambda db=db: call(db))  # type: ignore[misc]
        check_whole(db)
        if not was_there:
            break
        line += 1
    assert line > 10


@pytest.mark.parametrize("name", CASES)
def test_a_call_that_is_interrupted_has_happened_wholly_or_not_at_all(name: str) -> None:
    _, raised = run_case(name, stride=300)
    assert raised > 0


@pytest.mark.parametrize("name", ["push to user functions", "push to callbacks", "run", "CREATE QUERY INTO", "close"])
def test_two_interrupts_at_once_leave_the_others_as_they_are(name: str) -> None:
    run_case(name, stride=300, times=2)


@pytest.mark.parametrize("name", ["push rows", "DROP QUERY of a file", "CHECKPOINT"])
def test_a_call_to_a_connection_with_a_folder_that_is_interrupted_has_happened_wholly_or_not_at_all(name: str) -> None:
    _, raised = run_case(name, stride=400, in_folder=True)
    assert raised > 0


def test_what_was_interrupted_has_not_happened_when_the_folder_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with minidsms.connect(tmp_path / "kept") as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        query = db.query("SELECT k FROM S", name="old")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.advance(2)
        with monkeypatch.context() as patch:
            patch.setattr(db, "_check", lambda: interrupts(1))
            with pytest.raises(KeyboardInterrupt):
                db.query("SELECT k FROM S", name="new")
            with pytest.raises(KeyboardInterrupt):
                query.fetch()
        assert list(db.queries) == ["old"]
    with minidsms.connect(tmp_path / "kept") as db:
        assert list(db.queries) == ["old"]
        assert [change.row for change in db.queries["old"].fetch()] == [(1,), (2,)]


def interrupts(n: int) -> None:
    for _ in range(n):
        signal.raise_signal(signal.SIGINT)


def test_a_long_fetch_is_interrupted_between_its_parts_and_gives_everything_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER)")
    query = db.query("SELECT k FROM S")
    db.push("S", {"k": range(200_000)}, ts=1)
    parts = []

    def decoded(batch: Batch) -> list[Any]:
        parts.append(len(batch))
        interrupts(1)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(query.codec, "changes", decoded)
        with pytest.raises(KeyboardInterrupt):
            query.fetch()
    assert len(parts) == 1 and parts[0] < 200_000
    assert [change.row[0] for change in query.fetch()] == list(range(200_000))


def test_an_interrupt_waits_for_the_end_of_a_push_and_the_queries_go_on() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER)")
    db.create_function("once", lambda k: interrupts(k == 1) or k, ["INTEGER"], "INTEGER")
    query = db.query("SELECT once(k) FROM S")
    with pytest.raises(KeyboardInterrupt):
        db.push("S", [(1,), (2,)], ts=[1, 2])
    db.push("S", (3,), ts=3)
    db.advance(3)
    assert [change.row for change in query.fetch()] == [(1,), (2,), (3,)]


def test_a_second_interrupt_leaves_a_function_of_the_program_and_its_queries_fail() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER); CREATE STREAM T (k INTEGER)")
    db.create_function("twice", lambda k: interrupts(2 * (k == 1)) or k, ["INTEGER"], "INTEGER")
    query, other = db.query("SELECT twice(k) FROM S"), db.query("SELECT k FROM T")
    with pytest.raises(KeyboardInterrupt):
        db.push("S", [(1,), (2,)], ts=[1, 2])
    assert query.state == "failed"
    assert "interrupted" in str(query.failure)
    db.push("T", (3,), ts=3)
    db.advance(3)
    assert [change.row for change in other.fetch()] == [(3,)]


def test_a_second_interrupt_ends_the_query_at_work_and_no_other() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER)")

    queries = [db.query(f"SELECT k, COUNT(*) FROM S [RANGE {n}] GROUP BY k") for n in (5, 6)]
    window = queries[0].network.operators[1]
    process = window.process
    window.process = lambda batches, until: interrupts(2) or process(batches, until)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        db.push("S", [(1,), (2,)], ts=[1, 2])
    assert sorted(query.state for query in queries) == ["failed", "running"]
    db.push("S", (3,), ts=3)
    db.advance(3)
    assert len(next(query for query in queries if query.state == "running").fetch()) == 3


def test_a_callback_is_interrupted_at_once_and_the_next_change_is_told_later() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER)")
    query, told = db.query("SELECT k FROM S"), []

    @query.on_change
    def tell(change: minidsms.Change) -> None:
        interrupts(change.row == (1,))
        told.append(change.row)

    with pytest.raises(KeyboardInterrupt):
        db.push("S", [(1,), (2,)], ts=[1, 2])
    assert told == []
    db.push("S", (3,), ts=3)
    db.advance(3)
    assert told == [(2,), (3,)]


def test_who_waits_for_the_lock_can_be_interrupted() -> None:
    lock, has_it, over = EngineLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            has_it.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    has_it.wait()
    main = threading.main_thread().ident
    assert main is not None
    interrupting = threading.Thread(target=lambda: (time.sleep(0.05), signal.pthread_kill(main, signal.SIGINT)))
    with pytest.raises(KeyboardInterrupt):
        interrupting.start()
        with lock:
            raise AssertionError("the lock is another's")
    interrupting.join()
    over.set()
    holder.join()
    with lock:
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_is_the_programs_and_gets_every_interrupt() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        lock, inner = EngineLock(), EngineLock()
        with lock:
            with inner:
                interrupts(1)
            interrupts(1)
            assert seen == []
        assert seen == [signal.SIGINT] * 2
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with lock:
            interrupts(1)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_connection_whose_close_has_failed_can_be_closed() -> None:
    for line in range(1, 40, 3):
        db = running()
        failed_at(line, db.close)
        db.close()
        with pytest.raises(minidsms.Error, match="closed"):
            db.push("S", (1,), ts=1)


class Alarm(Exception):
    """What the handler of another signal raises."""


def raised_at(step: int, call: Callable[..., object], *given: object) -> bool:
    """Make the call, with an exception before the given instruction of the lock's; whether there were so many."""
    steps, own = 0, EngineLock.__enter__.__code__.co_filename

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal steps
        if event == "call":
            frame.f_trace_opcodes = True
            return trace if frame.f_code.co_filename == own else None
        steps += event == "opcode"
        if steps == step and event == "opcode":
            steps += 1
            raise Alarm
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(*given)
    except Alarm:
        pass
    finally:
        sys.settrace(before)
    return steps > step


@pytest.mark.skipif(sys.version_info[:2] == (3, 13), reason="tells of no instructions once a tracer has raised")
def test_a_handler_that_raises_as_a_call_begins_or_ends_locks_nobody_out() -> None:
    mine = signal.getsignal(signal.SIGINT)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        q, step = db.query("SELECT v FROM S"), 1
        while raised_at(step, db.push, "S", (step,), step):
            db.push("S", (0,), ts=step)
            other = threading.Thread(target=db.advance, args=(step,))
            other.start()
            other.join(timeout=240)
            assert not other.is_alive()
            assert signal.getsignal(signal.SIGINT) is mine
            assert (0,) in [change.row for change in q.fetch()]
            step += 1
        assert step > 100


def test_an_interrupt_comes_to_the_program_after_a_handler_has_raised_in_a_call() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        step = 1
        while raised_at(step, db.push, "S", (step,), step):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            step += 1


def test_texts_that_a_fetch_has_taken_outlast_what_others_do_before_it_is_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT)")
        q = db.query("SELECT RSTREAM(t) FROM S [NOW]")
        db.push("S", [(f"text {i}",) for i in range(9)], ts=1)
        db.advance(2)

        def others() -> None:
            with db.lock:
                db.memory.reclaim()
            db.push("S", [(f"other {i}",) for i in range(9)], ts=3)

        def handler(*_: object) -> None:
            thread = threading.Thread(target=others)
            thread.start()
            thread.join()
            raise KeyboardInterrupt

        def changes(batch: Batch) -> Any:
            signal.raise_signal(signal.SIGINT)
            return type(q.codec).changes(q.codec, batch)

        signal.signal(signal.SIGINT, handler)
        with monkeypatch.context() as patched:
            patched.setattr(q.codec, "changes", changes)
            with pytest.raises(KeyboardInterrupt):
                q.fetch()
        assert [row for _, _, row in q.fetch()][:9] == [(f"text {i}",) for i in range(9)]
        db.memory.reclaim()
        assert not db.lock.undoable
