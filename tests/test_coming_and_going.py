"""What has been opened and closed, registered and dropped leaves nothing behind, however often. `make slopes` does the
same for hours, and with figures of the whole process.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

import minidsms
from minidsms.past import past
from minidsms.plan import templates

TEXTS: dict[str, Callable[[int], str]] = {
    "one text": lambda i: "SELECT t, COUNT(*) FROM S [ROWS 3] WHERE a > 1 GROUP BY t",
    "other constants": lambda i: f"SELECT a FROM S WHERE a > {i}",
    "other names": lambda i: f"SELECT a AS c{i} FROM S WHERE a > 3",
    "joins": lambda i: f"SELECT ISTREAM(x.a) FROM S [ROWS 3] x, S [RANGE 4] y WHERE x.a = y.a AND x.a > {i}",
}


def blocks_per_call(call: Callable[[int], None], first: int, calls: int) -> float:
    """Blocks of memory that are still held when so many calls are over, the first ones apart: the least of three times,
    for a kernel that has been compiled meanwhile is loaded in one of them.
    """
    for i in range(first):
        call(i)
    held = []
    for start in range(first, first + 3 * calls, calls):
        gc.collect()
        before = sys.getallocatedblocks()
        for i in range(start, start + calls):
            call(i)
        gc.collect()
        held.append((sys.getallocatedblocks() - before) / calls)
    return min(held)


@pytest.mark.parametrize("name", TEXTS)
def test_a_query_that_is_dropped_leaves_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_REMEMBERED", 16)
    monkeypatch.setattr(past, "MOST_PICTURES", 16)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER, t TEXT)")
        kept = db.query("SELECT COUNT(*) FROM S [ROWS 10]")

        def register_and_drop(i: int) -> None:
            query = db.query(TEXTS[name](i))
            db.push("S", (i, "x"), ts=i)
            kept.fetch()
            query.close()

        assert blocks_per_call(register_and_drop, 40, 50) < 1.5


def test_a_connection_that_is_closed_leaves_nothing() -> None:
    def open_and_close(i: int) -> None:
        with minidsms.connect() as db:
            db.execute("CREATE STREAM S (a INTEGER, t TEXT)")
            query = db.query("SELECT t, COUNT(*) FROM S [ROWS 3] WHERE a > 1 GROUP BY t")
            db.push("S", [(i, f"x{i}"), (i + 1, "y")], ts=1)
            db.advance(2)
            query.fetch()

    assert blocks_per_call(open_and_close, 20, 50) < 1.5


def test_a_connection_with_folder_and_archives_is_let_go_once_it_is_closed(tmp_path: Path) -> None:
    db = minidsms.connect(str(tmp_path / "db"))
    db.execute("CREATE STREAM S (a INTEGER)")
    query = db.query("SELECT a FROM S WHERE a > 1", name="q")
    db.archive("S", str(tmp_path / "past"))
    db.archive("q", str(tmp_path / "past"))
    db.push("S", [(1,), (2,)], ts=1)
    db.close()
    gone = weakref.ref(db)
    del db, query
    with minidsms.connect() as another:  # the lock remembers the connection that had it last
        another.execute("CREATE STREAM S (a INTEGER)")
    gc.collect()
    assert gone() is None


def test_templates_are_kept_of_the_kinds_met_last_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_REMEMBERED", 3)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        shapes = [f"SELECT a AS c{i} FROM S WHERE a > {{}}" for i in range(5)]
        for shape in [*shapes, *shapes[2:], *shapes[2:4]]:
            db.query(shape.format(1)).close()
        found = [templates.kind_of(shape.format(7)) for shape in shapes]
        met = [kind is not None and db.templates.find(kind) is not None for kind in found[2:]]
    assert met == [True, True, True]
    assert templates.kind_of(f"SELECT a FROM S WHERE t = '{'x' * 5000}'") is None
