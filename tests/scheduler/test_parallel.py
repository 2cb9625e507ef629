"""Operators side by side, in several threads, give what they give one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.engine import engine
from minidsms.process.side_by_side import side_by_side
from minidsms.scheduler.parallel import Parallel
from minidsms.scheduler.scheduler import DONE

AGGREGATES = (
    "SELECT a, COUNT(*), MAX(b), AVG(v) FROM S [RANGE 50] GROUP BY a",
    "SELECT t, MIN(b), COUNT(DISTINCT b), MAX(t) FROM S [RANGE 50] GROUP BY t",
    "SELECT b, SUM(a) FROM S [RANGE 90 SLIDE 10] GROUP BY b",
    "SELECT COUNT(*), SUM(b) FROM S [ROWS 100]",
)
OTHERS = (
    "SELECT DISTINCT a, t FROM S [RANGE 40]",
    "SELECT a, b FROM S [PARTITION BY a ROWS 3] WHERE b > 100",
    "SELECT ISTREAM(UPPER(t), a + 1) FROM S [RANGE 30] WHERE v > 0.3",
    "SELECT a FROM S [RANGE 30] EXCEPT SELECT b FROM S [RANGE 20]",
    "SELECT a, b FROM S WHERE a < 5",
)
JOINS = (
    "SELECT ISTREAM(S.b, R.b) FROM S [RANGE 20], R [RANGE 40] WHERE S.a = R.a",
    "SELECT R.b, COUNT(*) FROM S [RANGE 20], R [RANGE 20] WHERE S.a = R.a GROUP BY R.b",
    "SELECT S.b, R.b FROM S [RANGE 20] LEFT JOIN R [RANGE 10] ON S.a = R.a",
    "SELECT ISTREAM(S.a, R.a) FROM S [RANGE 5], R [RANGE 5], S [RANGE 9] AS Q WHERE S.a = R.a AND R.b = Q.b",
)
FAILING = (
    "SELECT a, SUM(b * 9000000000000000) FROM S [RANGE 500] GROUP BY a",
    "SELECT a, 100 / (a - 7) FROM S [RANGE 10]",
    "SELECT t, MAX(v) FROM S [RANGE 70] GROUP BY t",
)


@pytest.fixture
def run_in_parallel(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """However few elements there are; gives how many threads each time."""
    used: list[int] = []
    run = Parallel.run

    def noting(self: Parallel, operators: Sequence[Any], quantum: int, threads: int) -> None:
        used.append(threads)
        run(self, operators, quantum, threads)

    monkeypatch.setattr(engine, "WORTH_THREADS", 1)
    monkeypatch.setattr(Parallel, "run", noting)
    return used


def answers(queries: Sequence[str], n: int = 3000, push: int = 1000, **options: Any) -> list[Any]:
    """Of each query the changes, why it failed, and what EXPLAIN ANALYZE counts of its operators."""
    rng = np.random.default_rng(5)
    b: list[int | None] = rng.integers(0, 1000, n).tolist()
    b[::11] = [None] * len(b[::11])
    s = list(zip(rng.integers(0, 20, n).tolist(), b, rng.random(n).tolist(), rng.choice(["x", "yy", "z"], n).tolist()))
    ts = (np.arange(n) // 4).tolist()
    with minidsms.connect(compilation="off", **options) as db:
        db.execute("CREATE STREAM S (a INTEGER, b INTEGER, v FLOAT, t TEXT); CREATE STREAM R (a INTEGER, b INTEGER)")
        running = [db.query(query) for query in queries]
        for at in range(0, n, push):
            db.push("S", s[at : at + push], ts=ts[at : at + push])
            db.push("R", [(row[0], row[1]) for row in s[at : at + push : 3]], ts=ts[at : at + push : 3])
        db.advance(n)
        counted = [[(op["elements_in"], op["elements_out"]) for op in query.stats()["operators"]] for query in running]
        return [(query.fetch(), str(query.network.failure), each) for query, each in zip(running, counted)]


@pytest.mark.parametrize("queries", [AGGREGATES, OTHERS, JOINS, FAILING])
def test_any_number_of_threads_gives_the_same_answers_failures_and_counts(
    queries: Sequence[str], run_in_parallel: list[int]
) -> None:
    expected = answers(queries)
    assert not run_in_parallel
    for threads in (2, 3):
        assert answers(queries, threads=threads) == expected
        assert threads in run_in_parallel
    for options in ({"batch_size": 1}, {"batch_size": 2}, {"batch_size": 7, "queue_size": 5}, {"quantum": 3}):
        assert answers(queries, 120, push=40, threads=3, **options) == answers(queries, 120, push=40, **options)


def test_all_that_one_advance_brings_runs_at_once_and_again_and_again(run_in_parallel: list[int]) -> None:
    queries = (*AGGREGATES, *OTHERS, *JOINS)
    expected = answers(queries, push=3000)
    for _ in range(4):
        assert answers(queries, push=3000, threads=3) == expected
    assert run_in_parallel


@pytest.mark.parametrize(
    "options", [{"memory_limit": "1 GB"}, {"statement_timeout": "1 hour"}, {"cost_model": "fixed"}]
)
def test_where_the_order_decides_one_thread_runs_all(options: dict[str, Any], run_in_parallel: list[int]) -> None:
    assert answers(AGGREGATES, threads=3, **options) == answers(AGGREGATES, **options)
    assert not run_in_parallel


def test_functions_of_the_application_run_where_it_called(run_in_parallel: list[int]) -> None:
    asking = set()

    def plain(a: int) -> int:
        asking.add(threading.get_ident())
        return a

    with minidsms.connect(threads=3) as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        db.create_function("PLAIN", plain, ["INTEGER"], "INTEGER")
        queries = [db.query(f"SELECT PLAIN(a), COUNT(*) FROM S [RANGE {n}] GROUP BY PLAIN(a)") for n in (5, 6)]
        db.push("S", {"a": np.arange(500)}, ts=np.arange(500))
        db.advance(600)
        assert all(query.fetch() for query in queries) and run_in_parallel and asking == {threading.get_ident()}


class Step:
    """An operator as `Parallel` sees it. work: what a turn does."""

    is_self_contained = True

    def __init__(self, before: Sequence[Step], work: Callable[[], Any]) -> None:
        self.inputs = [object() for _ in before]
        self.outputs: list[object] = []
        for step, queue in zip(before, self.inputs):
            step.outputs.append(queue)
        self._work = work

    def take_turn(self, budget: int) -> int:
        """One turn is enough."""
        self._work()
        return DONE


def run(steps: Sequence[Any], threads: int = 3) -> None:
    """All of them."""
    parallel = Parallel()
    assert parallel.width(steps)
    parallel.run(steps, 1, threads)


def test_whoever_waits_for_others_runs_behind_them_and_two_run_at_once() -> None:
    done: list[str] = []
    both = threading.Barrier(2, timeout=30)
    first = Step((), lambda: done.append("first"))
    branches = [Step((first,), both.wait) for _ in range(2)]
    run([first, *branches, Step(branches, lambda: done.append("last"))])
    assert done == ["first", "last"]


def test_an_error_ends_the_turns_of_all_and_comes_out() -> None:
    def fail() -> None:
        raise ValueError("wrong")

    never = pytest.fail
    first = Step((), fail)
    with pytest.raises(ValueError, match="wrong"):
        run([first, Step((first,), lambda: never("it runs behind an error"))])


def test_what_a_part_divides_it_does_alone() -> None:
    def part(i: int) -> list[int]:
        return side_by_side(lambda j: threading.get_ident(), 3)

    assert all(len(set(each)) == 1 for each in side_by_side(part, 3))
