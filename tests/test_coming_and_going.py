"""What has been opened and closed, registered and dropped leaves nothing behind, however often. `make slopes` does the
same for hours, and with figures of the whole process.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import minidsms
from minidsms.durability.connection import DurableConnection
from minidsms.operators.operator import Operator
from minidsms.past import past
from minidsms.plan import templates
from minidsms.streamon.loop import adaptations_of
from minidsms.synopses.stream_store import StreamStore

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


@contextlib.contextmanager
def no_search_for_garbage() -> Iterator[None]:
    """What only refers to itself stays, as it does for hours in a program that has much."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def there(kind: type) -> int:
    """How many objects of a class there are that have anything."""
    return sum(isinstance(each, kind) and bool(vars(each)) for each in gc.get_objects())


HOLDING = (
    "SELECT t, COUNT(*), MEDIAN(a) FROM S [RANGE 100] GROUP BY t",
    "SELECT t, SUM(a) FROM S WHERE a > 1 GROUP BY t",
    "SELECT DISTINCT a FROM S",
    "SELECT a FROM S EXCEPT SELECT a + 1 FROM S [ROWS 3]",
    "SELECT ISTREAM(x.a) FROM S [RANGE 50] x, S [RANGE 10] y, R z WHERE x.a = y.a AND y.t = z.t",
    "SELECT ISTREAM(x.a) FROM S [RANGE 50] x, S [RANGE 10] y WHERE x.a = y.a AND x.t = y.t",
    "SELECT x.a, y.t FROM S [ROWS 5] x LEFT JOIN R y ON x.a = y.a",
    "SELECT RSTREAM(x.a, y.t) FROM S [NOW] x LEFT JOIN R y ON x.a = y.a",
    "SELECT a FROM S [ROWS 9] x WHERE EXISTS (SELECT 1 FROM R y WHERE y.a = x.a)",
    "SELECT ISTREAM(a, AVG(a) OVER (PARTITION BY t ORDER BY ts ROWS 3 PRECEDING)) FROM S [NOW]",
    "SELECT t, MAX(a) FROM S [PARTITION BY t ROWS 2] GROUP BY t",
    "SELECT a FROM S [ROWS 20] ORDER BY a LIMIT 3",
    "SELECT RSTREAM(t, COUNT(*)) FROM S [RANGE 8 SLIDE 4] GROUP BY t",
)


@pytest.mark.parametrize("text", HOLDING)
@pytest.mark.parametrize("state_reduction", ["auto", "k-mon"])
def test_a_query_that_is_closed_holds_nothing_before_any_search_for_garbage(text: str, state_reduction: str) -> None:
    with minidsms.connect(state_reduction=state_reduction) as db, no_search_for_garbage():
        db.execute("CREATE STREAM S (a INTEGER, t TEXT); CREATE RELATION R (a INTEGER, t TEXT)")
        before = there(Operator)
        other = db.query(text)
        alone = there(Operator)
        query = db.query(text)
        for ts in range(4):
            db.push("R", [(i, f"x{i}") for i in range(ts)], ts=ts)
            db.push("S", [(i, f"x{i}") for i in range(5)], ts=ts)
        db.execute(f"ALTER QUERY {query.name} PAUSE")  # it goes on with operators of its own
        db.execute(f"ALTER QUERY {query.name} RESUME")
        db.push("S", [(i, f"x{i}") for i in range(5)], ts=4)
        query.close()
        assert there(Operator) == alone
        db.push("S", (1, "x1"), ts=5)
        db.advance(6)
        assert len(other.fetch())
        other.close()
        assert there(Operator) == before
        assert query.name not in db.queries and other.position >= 0


def test_a_query_that_has_failed_holds_what_explain_shows_until_it_is_closed() -> None:
    with minidsms.connect() as db, no_search_for_garbage():
        db.execute("CREATE STREAM S (a INTEGER)")
        before = there(Operator)
        query = db.query("SELECT SUM(a) FROM S [RANGE 5]")
        db.push("S", [(2**62,), (2**62,), (1,)], ts=[0, 1, 2])
        db.advance(3)
        assert query.failure is not None and "Aggregate" in query.explain(analyze=True)
        query.close()
        assert there(Operator) == before


@pytest.mark.parametrize("closed_first", [0, 1, 2])
def test_queries_that_have_failed_at_once_go_on_to_be_shown_when_one_is_closed(closed_first: int) -> None:
    with minidsms.connect() as db, no_search_for_garbage():
        db.execute("CREATE STREAM S (a INTEGER)")
        before = there(Operator)
        text = "SELECT SUM(a) AS s FROM S [RANGE 5]"
        queries = [db.query(text), db.query(text), db.query(f"SELECT s + 1 FROM ({text})")]
        db.push("S", [(2**62,), (2**62,), (1,)], ts=[0, 1, 2])
        db.advance(3)
        queries.pop(closed_first).close()
        for query in queries:
            assert query.failure is not None and "Aggregate" in query.explain(analyze=True)
            assert query.stats()["operators"] and query.nbytes >= 0
        for query in queries:
            query.close()
        assert there(Operator) == before


def test_a_query_that_has_failed_alone_is_shown_when_those_it_shared_with_are_closed() -> None:
    with minidsms.connect() as db, no_search_for_garbage():
        db.execute("CREATE STREAM S (a INTEGER)")
        before = there(Operator)
        counted = "(SELECT COUNT(*) AS n FROM S [ROWS 10])"
        failing, other = db.query(f"SELECT {2**63 - 2} + n FROM {counted}"), db.query(f"SELECT n FROM {counted}")
        db.push("S", [(1,), (2,), (3,)], ts=[1, 2, 3])
        db.advance(4)
        assert failing.failure is not None and other.failure is None
        other.pause()  # it goes on with copies, which nobody else shows
        other.close()
        assert "Aggregate" in failing.explain(analyze=True)
        failing.close()
        assert there(Operator) == before


@pytest.mark.parametrize("rows", [1, 5000])
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_function_may_close_a_query_amid_a_slice(rows: int, closed: int) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        queries: list[minidsms.Query] = []

        def closing(a: int) -> int:
            if a == 5 and queries[closed].state != "closed":
                queries[closed].close()
            return a

        db.create_function("closing", closing, ["INTEGER"], "INTEGER")
        text = "SELECT ISTREAM(closing(a)) FROM S [ROWS 3]"
        queries += [db.query(text), db.query("SELECT ISTREAM(a) FROM S [ROWS 2]"), db.query(text)]
        db.push("S", [(5,)] * rows, ts=1)
        db.push("S", (7,), ts=2)
        db.advance(3)
        left = [query for query in queries if query.state != "closed"]
        assert len(left) == 2
        assert all(query.fetch()[-1].row == (7,) for query in left)


def test_a_query_whose_close_was_interrupted_is_closed_and_may_be_asked_for_what_it_tells_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(operator: Operator) -> None:
        vars(operator).clear()
        raise KeyboardInterrupt

    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        query, other = (db.query("SELECT a FROM S [ROWS 3] WHERE a > 0") for _ in range(2))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Operator, "let_go", interrupted)
            query.close()
        assert query.state == "closed" and query.decisions() == [] and query.nbytes == 0
        db.push("S", (1,), ts=1)
        db.advance(2)
        assert len(other.fetch()) == 1


def test_a_query_that_is_closed_tells_the_decisions_of_its_plan_and_holds_no_rows_of_a_reduced_join() -> None:
    with minidsms.connect(state_reduction="auto", memory_limit="1GB") as db, no_search_for_garbage():
        db.execute("CREATE STREAM S (a INTEGER); CREATE STREAM T (a INTEGER)")
        before = there(Operator)
        query = db.query("SELECT ISTREAM(x.a) FROM S [RANGE 50] x, T [RANGE 50] y WHERE x.a = y.a")
        for ts in range(3):
            db.push("S", [(i,) for i in range(5)], ts=ts)
            db.push("T", [(i,) for i in range(5)], ts=ts)
        (place,) = (each for each in adaptations_of(query.network.working) if each.technique == "state reduction")
        place.pin(True)
        db.advance(5)
        decisions = query.decisions()
        assert decisions and "KMonJoin" in query.explain(analyze=True)
        query.close()
        assert query.decisions() == decisions
        assert there(Operator) == before


def test_a_connection_that_is_closed_holds_no_rows_though_the_program_keeps_it() -> None:
    with no_search_for_garbage():
        before = there(StreamStore)
        db = minidsms.connect()
        db.execute("CREATE STREAM S (a INTEGER); CREATE RELATION R (a INTEGER)")
        query = db.query("SELECT a FROM S [ROWS 100000]")
        db.push("S", [(i,) for i in range(50_000)], ts=1)
        db.push("R", [(i,) for i in range(500)], ts=1)
        db.close()
        left = [each for each in gc.get_objects() if isinstance(each, StreamStore)]
        assert len(left) <= before + 2 and query.state == "closed"
        assert sum(each.nbytes for each in left[before:]) < 100_000


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_checkpoint_leaves_neither_twins_nor_files_behind(tmp_path: Path) -> None:
    with minidsms.connect(str(tmp_path / "db")) as db, no_search_for_garbage():
        db.execute("CREATE STREAM S (a INTEGER, t TEXT); CREATE RELATION R (a INTEGER)")
        for text in ("SELECT t, COUNT(*) FROM S GROUP BY t", "SELECT a FROM S [RANGE 10]", "SELECT a FROM R"):
            db.query(text)
        before = there(DurableConnection), there(Operator)
        for ts in range(5):
            db.push("S", [(i, f"x{i}") for i in range(5)], ts=ts)
            db.push("R", (ts,), ts=ts)
            db.execute("CHECKPOINT")
        mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line]
        assert (there(DurableConnection), there(Operator)) == before
        assert not mapped


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
