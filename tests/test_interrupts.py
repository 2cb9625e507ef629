"""An interrupt while a query is started, dropped or closed leaves the connection whole: nothing is half registered, no
store is held by a query that is gone, and everything can be dropped and made anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import minidsms
from minidsms import connection, engine, groups

FUNCTIONS = {"start", "forget", "remove", "_drop", "_leave", "_end", "_forget", "add", "_add", "_use"}
FILES = {connection.__file__, engine.__file__, groups.__file__}
"""Where queries are wired to the engine and taken from it: the lines that are interrupted."""


class Interrupt(KeyboardInterrupt):
    """The one that is injected."""


def interrupted_at(line: int, call: Callable[[], object]) -> bool:
    """Make the call, interrupted before the given one of the lines above; whether there were so many."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        if event == "call":
            code = frame.f_code
            return trace if code.co_filename in FILES and code.co_name in FUNCTIONS else None
        if event == "line":
            lines += 1
            if lines == line:
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupt:
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
def test_an_interrupt_at_any_line_that_wires_a_query_leaves_the_connection_whole(
    call: Callable[[minidsms.Connection], object],
) -> None:
    line = 1
    while True:
        db = running()
        was_there = interrupted_at(line, lambda db=db: call(db))  # type: ignore[misc]
        check_whole(db)
        if not was_there:
            break
        line += 1
    assert line > 10


def test_a_connection_whose_close_is_interrupted_can_be_closed() -> None:
    for line in range(1, 40, 3):
        db = running()
        interrupted_at(line, db.close)
        db.close()
        with pytest.raises(minidsms.Error, match="closed"):
            db.push("S", (1,), ts=1)
