"""Queues hold their bounds to the element and to the byte; answers do not depend on them. docs/semantics T5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.elements import Batch, Column, Field, Schema, Type
from minidsms.operators import operator
from minidsms.queues import Queue
from minidsms.scheduler import SCHEDULERS
from minidsms.testing.compare import check
from minidsms.testing.generators import random_case
from tests.seeds import seeds


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The most elements and bytes any queue has held."""
    seen = {"elements": 0, "bytes": 0}
    put = Queue.put

    def watched(queue: Queue, batch: Any) -> None:
        put(queue, batch)
        seen["elements"] = max(seen["elements"], queue.size)
        seen["bytes"] = max(seen["bytes"], queue.nbytes)

    monkeypatch.setattr(Queue, "put", watched)
    return seen


def run(**options: Any) -> list[minidsms.Change]:
    """A chain of operators over 500 instants of one element, in one push."""
    with minidsms.connect(**options) as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        q = db.query("SELECT ISTREAM(k, SUM(v)) FROM S [RANGE 20] WHERE v > 3 GROUP BY k")
        db.push("S", {"k": [i % 3 for i in range(500)], "v": range(500)}, ts=range(500))
        return sorted(q.fetch(), key=repr)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("bound", [4, 5, 64])
def test_a_queue_never_holds_an_element_more_than_its_bound(bound: int, scheduler: str, most: dict[str, int]) -> None:
    answer = run(queue_size=bound, scheduler=scheduler)
    assert most["elements"] == bound
    assert answer == run()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("bound", [200, 4096])
def test_a_queue_never_holds_a_byte_more_than_its_bound(bound: int, scheduler: str, most: dict[str, int]) -> None:
    answer = run(queue_bytes=bound, scheduler=scheduler)
    assert bound - 40 < most["bytes"] <= bound
    assert answer == run()


def test_an_instant_larger_than_the_bound_passes_whole(most: dict[str, int]) -> None:
    with minidsms.connect(queue_size=10) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT k FROM S [RANGE 5]")
        db.push("S", {"k": range(100)}, ts=[i // 50 for i in range(100)])
        db.advance(100)
        assert len(q.fetch()) == 200
    assert most["elements"] == 50


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("is_ended", [True, False])
def test_a_join_does_not_wait_for_a_reader_that_has_failed(
    is_ended: bool, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    put = operator.Operator._put_fitting

    def watched(op: operator.Operator, batch: Batch) -> Batch:
        made.append(len(batch))
        return put(op, batch)

    monkeypatch.setattr(operator.Operator, "_put_fitting", watched)
    with minidsms.connect(queue_size=10, scheduler=scheduler) as db:

        def fail(v: int) -> int:
            if is_ended:
                db.allowance.expire()  # as the second of two interrupts
                return v
            raise ValueError("no")

        db.create_function("fail", fail, ["INTEGER"], "INTEGER")
        db.execute("CREATE STREAM S (v INTEGER); CREATE STREAM T (w INTEGER)")
        q = db.query("SELECT SUM(fail(v + w)) FROM S [RANGE 1000], T [RANGE 1000]")
        db.push("T", {"w": range(300)}, ts=range(300))
        db.push("S", {"v": range(300)}, ts=range(300))
        db.advance(400)
        with pytest.raises(minidsms.QueryError, match="was stopped: interrupted" if is_ended else "ValueError: no"):
            while True:
                q.fetch()
    assert len(made) < 200  # that of the windows; not one more for each of the 300 instants


@pytest.mark.parametrize("queue_bytes", [1, 60])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_answer_does_not_depend_on_the_bytes_a_queue_may_hold(scheduler: str, queue_bytes: int) -> None:
    for seed in seeds(83_000, 83_006):
        check(random_case(seed), batch_size=1 + seed % 3, queue_bytes=queue_bytes, scheduler=scheduler)


def test_nothing_is_left_in_a_queue_and_its_bytes_come_back() -> None:
    with minidsms.connect(queue_size=3) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT k, COUNT(*) FROM S [ROWS 3] GROUP BY k")
        db.push("S", {"k": [i % 4 for i in range(50)]}, ts=range(50))
        queues = [queue for op in q.network.operators for queue in op.inputs]
        assert all(queue.size == 0 and queue.nbytes == 0 and not queue.is_full for queue in queues)
        assert all(0 < queue.peak <= 4 for queue in queues)


def test_large_batches_that_wait_are_taken_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(Schema((Field("v", Type.INTEGER),)), 100)
    for ts in ([1, 2, 3], [4, 4, 6]):
        queue.put(Batch(np.array(ts, np.int64), None, [Column(np.array(ts, np.int64))]))
    assert [queue.end_of_first(until) for until in (2, 3, 9)] == [2, 3, 3]
    first = queue.take(3)
    assert first is not None and first.ts.tolist() == [1, 2, 3] and queue.end_of_first(9) == 9

    expected = [run(scheduler=scheduler) for scheduler in SCHEDULERS]
    monkeypatch.setattr(operator, "LARGE", 0)
    assert [run(scheduler=scheduler, queue_size=7) for scheduler in SCHEDULERS] == expected
