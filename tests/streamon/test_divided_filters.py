"""Filters whose rows several threads divide among them give what one thread gives."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from math import log2
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.process.side_by_side import FIRST_TRIES, TRIED_AFTER, TRIED_EVERY, Dividing, side_by_side
from minidsms.streamon.pipelined_filters import executor
from minidsms.testing.switching import forced_switching

CONDITIONS = (
    "a % 3 = 0",
    "a % 2 = 0 AND b < 700 AND a + b > 10 AND v > 0.2",
    "GREATEST_DIVISOR(a, b) = 1 AND v < 0.9 AND t IN ('x', 'y') AND b IS NOT NULL",
    "100000 / a > 3 AND (b = 5 OR NOT v > 0.5)",
    "a * 6190182574399849 > 0 AND b > 100",
    "CASE WHEN a > 700 THEN COALESCE(b, a) * 1.5 ELSE -a * v END > 100 AND GREATEST(a, b) < 1400",
    "a < 0",
)


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """However few rows there are, they are divided; gives into how many parts each time."""
    parts: list[int] = []

    def noting(work: Any, count: int) -> Any:
        parts.append(count)
        return side_by_side(work, count)

    monkeypatch.setattr(executor, "LEAST_ROWS", 1)
    monkeypatch.setattr(executor, "side_by_side", noting)
    return parts


def answer(condition: str, n: int = 2500, every: int = 0, **options: Any) -> tuple[Any, ...]:
    """The rows, why the query failed, and what EXPLAIN ANALYZE tells of the filters.  every: tuples between forced
    changes of the order, 0 for none.
    """
    rng = np.random.default_rng(3)
    b: list[int | None] = rng.integers(0, 1000, n).tolist()
    b[::7] = [None] * len(b[::7])
    rows = list(
        zip(rng.integers(0, 1500, n).tolist(), b, rng.random(n).tolist(), rng.choice(["x", "y", "z"], n).tolist())
    )
    with minidsms.connect(cost_model="fixed", **options) as db:
        db.execute("CREATE STREAM S (a INTEGER, b INTEGER, v FLOAT, t TEXT)")
        db.create_function("GREATEST_DIVISOR", np.gcd, ["INTEGER", "INTEGER"], "INTEGER", vectorized=True)
        q = db.query(f"SELECT a, b, v, t FROM S WHERE {condition}")
        with forced_switching(db, every) if every else nullcontext():
            db.push("S", rows, ts=(np.arange(n) // 3).tolist())
        db.advance(n)
        (select,) = [op for op in q.network.operators if op.name == "Select"] or [None]
        return q.fetch(), str(q.network.failure), select and select.describe().parts


@pytest.mark.parametrize("condition", CONDITIONS)
def test_any_number_of_threads_gives_the_same_rows_failures_and_counts(condition: str, divided: list[int]) -> None:
    expected = answer(condition, threads=1)
    assert not divided
    for threads in (2, 3):
        assert answer(condition, threads=threads) == expected
        assert threads in divided
    few = answer(condition, 200, threads=1)
    for batch_size in (1, 2, 7):
        assert answer(condition, 200, threads=3, batch_size=batch_size)[:2] == few[:2]


def test_orders_change_between_divided_chunks(divided: list[int]) -> None:
    expected = answer(CONDITIONS[1], threads=1)
    assert answer(CONDITIONS[1], every=100, threads=3)[0] == expected[0]
    assert 3 in divided


@pytest.mark.parametrize(
    "condition", ["t < 'y' AND a > 3", "PLAIN(a) > 3", "STARTS_WITH(t, 'x')", "d + 1 > 3 AND d < 9999"]
)
def test_texts_and_functions_of_the_application_are_asked_by_one_thread(condition: str, divided: list[int]) -> None:
    asking = set()

    def plain(a: Any) -> Any:
        asking.add(threading.get_ident())
        return a

    with minidsms.connect(threads=3, cost_model="fixed") as db:
        db.execute("CREATE STREAM S (a INTEGER, t TEXT, d DECIMAL)")
        db.create_function("PLAIN", plain, ["INTEGER"], "INTEGER", vectorized=True)
        q = db.query(f"SELECT a FROM S WHERE {condition}")
        decimals = [Decimal(i) for i in range(1000)]
        db.push("S", {"a": np.arange(1000), "t": ["x"] * 1000, "d": decimals}, ts=np.arange(1000))
        db.advance(1000)
        assert q.fetch() and not divided and asking <= {threading.get_ident()}


def test_an_error_in_a_part_comes_out_when_nothing_is_under_way() -> None:
    ended = []

    def work(part: int) -> int:
        if part == 2:
            raise ValueError("part 2")
        ended.append(part)
        return part

    with pytest.raises(ValueError, match="part 2"):
        side_by_side(work, 4)
    assert {0, 1} <= set(ended) <= {0, 1, 3}  # what nobody has begun by then is not begun
    assert side_by_side(lambda part: part * part, 5) == [0, 1, 4, 9, 16]


def test_an_error_of_the_caller_comes_out_when_the_part_of_another_thread_has_ended() -> None:
    begun, ended = threading.Event(), []

    def work(part: int) -> None:
        if part:
            begun.set()
            time.sleep(0.05)
            ended.append(part)
        else:
            begun.wait()
            raise ValueError("part 0")

    with pytest.raises(ValueError, match="part 0"):
        side_by_side(work, 2)
    assert ended == [1]


def test_a_child_of_fork_divides_by_threads_of_its_own() -> None:
    assert side_by_side(lambda part: part, 2) == [0, 1]
    child = os.fork()
    if child == 0:
        os._exit(0 if side_by_side(lambda part: part, 3) == [0, 1, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_interpreter_ends_while_threads_wait_for_parts() -> None:
    program = "from minidsms.process.side_by_side import side_by_side; print(side_by_side(lambda part: part, 4))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[0, 1, 2, 3]\n", "")


def chosen_by(took: Callable[[int, bool], float], turns: int) -> list[bool]:
    """Whether pieces are divided, of which the i-th takes so long, divided or not."""
    dividing, chosen = Dividing(), []
    for turn in range(turns):
        chosen.append(dividing.pays())
        dividing.took(chosen[-1], took(turn, chosen[-1]))
    return chosen


def test_dividing_goes_on_while_it_pays_and_is_tried_again() -> None:
    chosen = chosen_by(lambda turn, divides: 10.0 if divides == (turn >= 200) else 20.0, 400)
    assert sum(chosen[:200]) <= FIRST_TRIES + log2(TRIED_EVERY / TRIED_AFTER) + 200 / TRIED_EVERY
    assert sum(chosen[200 + TRIED_EVERY :]) >= 200 - TRIED_EVERY - 3 - 200 / TRIED_EVERY


def test_a_processor_that_was_taken_at_first_is_found_free_soon() -> None:
    chosen = chosen_by(lambda turn, divides: (60.0 if turn < 6 else 10.0) if divides else 20.0, 40)
    assert chosen[3:6] == [False] * 3
    assert sum(chosen[10:]) >= 27


def test_threads_that_have_to_be_started_do_not_speak_against_dividing() -> None:
    chosen = chosen_by(lambda turn, divides: 500.0 if not turn else 10.0 if divides else 20.0, 7)
    assert chosen == [True, False, *[True] * 5]


def test_threads_are_a_number_or_auto() -> None:
    with minidsms.connect() as db:
        db.execute("SET threads = 3")
        db.execute("SET threads = auto")
        for wrong in ("0", "'many'", "1000000"):
            with pytest.raises(minidsms.Error, match="threads"):
                db.execute(f"SET threads = {wrong}")
