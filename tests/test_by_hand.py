"""Few elements pass from hand to hand: nobody can tell by answers, failures, counters or progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.errors import MemoryLimitError, TimeLimitError
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.engine.by_hand import ByHand
from minidsms.limits import memory
from minidsms.limits.allowance import Allowance
from minidsms.operators.operator import MOST_BY_HAND, Operator
from minidsms.queues import Queue
from minidsms.synopses import changed_rows

DECLARED = "CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM R (k INTEGER, w INTEGER);"
QUERIES = (
    "SELECT k, v FROM S WHERE v > 3",
    "SELECT k, COUNT(*), MAX(v) FROM S [RANGE 5] GROUP BY k",
    "SELECT ISTREAM(S.k, v, w) FROM S [RANGE 5], R [RANGE 7] WHERE S.k = R.k",
    "SELECT ISTREAM(a.v, b.v) FROM S [RANGE 5] AS a, S [RANGE 3] AS b WHERE a.k = b.k",
    "SELECT S.k, w FROM S [RANGE 5] LEFT JOIN R [ROWS 3] ON S.k = R.k",
    "SELECT RSTREAM(MIN(v)) FROM S [RANGE 3 SLIDE 2]",
    "SELECT k FROM S [RANGE 4] UNION ALL SELECT k FROM R [RANGE 2]",
)


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each slice that was to pass by hand has passed whole."""
    seen: list[bool] = []
    pass_on = ByHand.pass_on

    def noting(self: ByHand, until: int) -> bool:
        seen.append(pass_on(self, until))
        return seen[-1]

    monkeypatch.setattr(ByHand, "pass_on", noting)
    yield seen


def told(query: str, rows: int = 60, **options: Any) -> tuple[Any, ...]:
    """Answers, failure, and what each operator has counted and how far it is, of so many rows, two an instant."""
    with minidsms.connect(**options) as db:
        db.execute(DECLARED)
        q = db.query(query)
        for i in range(rows):
            db.push("S", (i % 4, i % 9), ts=i // 2)
            if i % 3 == 0:
                db.push("R", (i % 4, i), ts=i // 2)
            if i % 2:
                db.advance(i // 2)
        db.advance(rows)
        operators = [(o.name, o.counters.elements_in, o.counters.elements_out, o.progress) for o in q.network.operators]
        return [(c.ts, c.sign, c.row) for c in (q.fetch() if q.results else ())], q.failure, operators


@pytest.mark.parametrize("query", QUERIES)
def test_what_passes_by_hand_is_what_passes_in_queues(query: str, passed: list[bool]) -> None:
    by_hand = told(query)
    assert passed and all(passed)
    passed.clear()
    in_queues = told(query, queue_size=MOST_BY_HAND)
    assert not passed
    assert by_hand == in_queues


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("limit", [{"memory_limit": "1 GB"}, {"statement_timeout": "1 HOUR"}])
def test_a_limit_lets_slices_pass_by_hand(query: str, limit: dict[str, Any], passed: list[bool]) -> None:
    limited = told(query, **limit)
    assert passed and all(passed)
    assert limited == told(query)


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_claimed_by_hand_fails_where_it_would_in_queues(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time an operator claims bytes it may not have them, in turn; none may be taken unasked."""
    monkeypatch.setattr(memory, "_STATE_PER_INPUT", 2**62)
    take, failed = Allowance.take, 0
    left: Iterator[int] = iter(())

    def taking(self: Allowance, nbytes: int) -> None:
        if nbytes and next(left, None) == 0:
            raise MemoryLimitError("no more")
        take(self, nbytes)

    monkeypatch.setattr(Allowance, "take", taking)
    for before in range(0, 40, 3):
        left = reversed(range(before + 1))
        by_hand = told(query, memory_limit="1 GB")
        left = reversed(range(before + 1))
        assert by_hand[:2] == told(query, memory_limit="1 GB", queue_size=MOST_BY_HAND)[:2]
        failed += by_hand[1] is not None
    assert failed


@pytest.mark.parametrize("query", QUERIES[1:])  # the first answers in an instant that is still open
@pytest.mark.parametrize("options", [{}, {"queue_size": MOST_BY_HAND}])
def test_a_query_whose_time_is_up_has_all_answers_before_its_failure_and_no_others(
    query: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time somebody looks at the clock time is up, in turn."""
    whole, check_time = told(query)[0], Allowance.check_time
    left: Iterator[int] = iter(())

    def checking(self: Allowance) -> None:
        if next(left, None) == 0:
            raise TimeLimitError("no more")
        check_time(self)

    monkeypatch.setattr(Allowance, "check_time", checking)
    for before in range(0, 40, 3):
        left = reversed(range(before + 1))
        answers, failure, _ = told(query, statement_timeout="1 HOUR", **options)
        assert failure is not None
        assert answers == [change for change in whole if change[0] < failure[0]]


class _Refusing(Allowance):
    def take(self, nbytes: int) -> None:
        raise MemoryLimitError("no more")


@pytest.mark.parametrize("batches", [0, 3])
def test_what_is_put_out_is_claimed_before_more_is_made_and_nothing_is_claimed_for_nothing(batches: int) -> None:
    schema, made = Schema.of(("v", Type.INTEGER)), 0

    class Making(Operator):
        def process(self, given: Sequence[Batch | None], until: int) -> Iterator[Batch]:
            nonlocal made
            for _ in range(batches):
                made += 1
                rows = np.zeros(MOST_BY_HAND + 1, np.int64)
                yield Batch(rows, None, [Column(rows)])

    operator = Making([], schema)
    operator.allowance = _Refusing()
    operator.allowance.is_open = False
    operator.take_by_hand([], 1)
    assert made == min(batches, 1)
    assert (operator.failure is not None) == (batches > 0)


def test_a_query_that_fails_fails_where_it_would_have(passed: list[bool]) -> None:
    query = "SELECT k, SUM(v * 1152921504606846976) FROM S [RANGE 50] GROUP BY k"
    by_hand = told(query)
    assert by_hand[1] is not None and passed
    assert by_hand == told(query, queue_size=MOST_BY_HAND)


def test_no_memory_amidst_the_way_fails_the_query_behind_its_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from minidsms.operators.aggregate import Aggregate

    process, calls = Aggregate.process, iter(range(1000))

    def failing(self: Aggregate, *given: Any) -> Any:
        if next(calls) == 20:
            raise MemoryError
        return process(self, *given)

    monkeypatch.setattr(Aggregate, "process", failing)
    by_hand = told(QUERIES[1])
    calls = iter(range(1000))
    assert by_hand[1] is not None
    assert by_hand[:2] == told(QUERIES[1], queue_size=MOST_BY_HAND)[:2]


@pytest.mark.parametrize("window", ["ROWS 400", "RANGE 1000"])
def test_few_elements_that_become_many_stand_in_queues(window: str, passed: list[bool]) -> None:
    answers = []
    for options in ({}, {"queue_size": MOST_BY_HAND}):
        with minidsms.connect(**options) as db:
            db.execute(DECLARED)
            q = db.query(f"SELECT S.v, w FROM S [{window}], R [{window}] WHERE S.k = R.k")
            db.push("R", [(1, i) for i in range(2 * MOST_BY_HAND)], ts=1)
            for i in (2, 3):
                db.advance(i - 1)
                db.push("S", (1, i), ts=i)
            db.advance(3)
            answers.append(sorted((c.ts, c.sign, c.row) for c in q.fetch()))
    assert answers[0] == answers[1]
    assert len(answers[0]) >= 2 * MOST_BY_HAND and False in passed


def test_queues_hold_nothing_of_what_passes_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(self: Queue, batch: Any) -> Any:
        raise AssertionError("nothing is put into a queue")

    monkeypatch.setattr(Queue, "put", refusing)
    monkeypatch.setattr(Queue, "offer", refusing)
    assert told(QUERIES[1])[0]


@pytest.mark.parametrize("query", QUERIES)
def test_queues_are_told_how_far_operators_are_before_a_slice_passes_through_them(
    query: str, passed: list[bool]
) -> None:
    answers = []
    for options in ({}, {"queue_size": MOST_BY_HAND}):
        with minidsms.connect(quantum=MOST_BY_HAND, **options) as db:
            db.execute(DECLARED)
            q = db.query(query)
            for i in range(40):
                rows = 1 if i % 4 else MOST_BY_HAND + 50
                db.push("S" if i % 3 else "R", [(k % 5, k % 9) for k in range(rows)], ts=i)
                db.advance(i)
            db.push("S", [(1, 1)] * (MOST_BY_HAND + 50), ts=40)
            db.push("R", [(1, 2)] * (MOST_BY_HAND + 50), ts=40)
            db.advance(40)
            progress = [[o.progress, *(p.progress for p in o.inputs)] for o in q.network.operators]
            answers.append((sorted((c.ts, c.sign, c.row) for c in q.fetch()), progress))
    assert passed and answers[0] == answers[1]


PATHS = (
    ("SELECT k, v FROM S WHERE v > 3", True),
    ("SELECT k, COUNT(*), MAX(v) FROM S [RANGE 5] GROUP BY k", True),
    ("SELECT ISTREAM(k, COUNT(*)) FROM S [RANGE 6 SLIDE 3] WHERE v < 7 GROUP BY k", True),
    ("SELECT DISTINCT k FROM S [ROWS 90] WHERE v < 7", True),
    ("SELECT S.k, w FROM S [RANGE 5] LEFT JOIN R [ROWS 3] ON S.k = R.k", False),
    ("SELECT k FROM S [RANGE 4] UNION ALL SELECT v FROM S [RANGE 2]", False),
)


def told_of_many(query: str, at_an_instant: int, **options: Any) -> tuple[Any, ...]:
    """As `told`, of pushes of thousands of rows."""
    rows = 3 * MOST_BY_HAND * 7
    with minidsms.connect(**options) as db:
        db.execute(DECLARED)
        q = db.query(query)
        db.push("R", [(i % 5, i) for i in range(9)], ts=0)
        for start in range(0, 3 * rows, rows):
            ts = [i // at_an_instant for i in range(start, start + rows)]
            db.push("S", [(i % 7 % 4, i % 11) for i in range(start, start + rows)], ts=ts)
        db.advance(9 * rows)
        operators = [(o.name, o.counters.elements_in, o.counters.elements_out, o.progress) for o in q.network.operators]
        return sorted((c.ts, c.sign, c.row) for c in q.fetch()), q.failure, operators


@pytest.mark.parametrize("scheduler", ["chain", "greedy", "fifo", "round_robin"])
@pytest.mark.parametrize("query, is_path", PATHS)
def test_along_a_path_slices_of_any_size_pass_by_hand(
    query: str, is_path: bool, scheduler: str, passed: list[bool]
) -> None:
    by_hand = told_of_many(query, 40, scheduler=scheduler)
    assert (len(passed) >= 3 and all(passed)) if is_path else len(passed) < 3
    assert by_hand == told_of_many(query, 40, scheduler=scheduler, queue_size=MOST_BY_HAND)


@pytest.mark.parametrize("scheduler", ["chain", "round_robin"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT ISTREAM(S.k, v, w) FROM S [RANGE 5], R [RANGE 9] WHERE S.k = R.k",
        "SELECT S.k, v, w FROM S [RANGE 5] LEFT JOIN R [RANGE 9] ON S.k = R.k",
        "SELECT ISTREAM(S.k, v, w, x) FROM S [RANGE 5], R [RANGE 9], T [RANGE 7] WHERE S.k = R.k AND S.v = T.v",
    ],
)
def test_behind_a_join_s_sources_slices_of_any_size_pass_by_hand(
    query: str, scheduler: str, passed: list[bool]
) -> None:
    told, rows = [], 6 * MOST_BY_HAND
    for queue_size in (None, MOST_BY_HAND):
        with minidsms.connect(scheduler=scheduler, **({} if queue_size is None else {"queue_size": queue_size})) as db:
            db.execute(DECLARED + "CREATE STREAM T (v INTEGER, x INTEGER);")
            q = db.query(query)
            for start in range(0, 4 * rows, rows):
                ts = [i // 3 for i in range(start, start + rows)]
                db.push("S", [(i % 77, i % 11) for i in range(start, start + rows)], ts=ts)
                db.push("R", [(i % 91, i) for i in range(start, start + rows)], ts=ts)
                db.push("T", [(i % 13, i) for i in range(start, start + rows, 9)], ts=ts[::9])
            db.advance(4 * rows)
            operators = [
                (o.name, o.counters.elements_in, o.counters.elements_out, o.progress) for o in q.network.operators
            ]
            told.append((sorted((c.ts, c.sign, c.row) for c in q.fetch()), operators))
        if queue_size is None:
            assert sum(passed) >= 3  # others are put out in parts
    assert told[0] == told[1]


def test_what_is_put_out_in_parts_is_taken_by_the_last_operator_of_a_path(
    passed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = told_of_many(PATHS[1][0], 40)
    passed.clear()
    monkeypatch.setattr(changed_rows, "_WORTH_A_BLOCK", 1)
    monkeypatch.setattr(changed_rows, "BLOCK_WORDS", 1000)
    waited, offer = [], Queue.offer
    monkeypatch.setattr(Queue, "offer", lambda queue, batch: waited.append(len(batch)) or offer(queue, batch))
    assert told_of_many(PATHS[1][0], 40) == whole
    assert waited and len(passed) >= 3 and all(passed)


@pytest.mark.parametrize("n", [1, 400])
def test_what_goes_on_from_a_checkpoint_answers_before_the_last_operator_of_a_path(tmp_path: Path, n: int) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE QUERY q AS SELECT k, SUM(v) AS s FROM S GROUP BY k")
        db.push("S", (1, 5), ts=1)
        db.advance(1)
        db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        db.push("S", [(k, 2) for k in range(1, n + 1)], ts=2)
        db.advance(2)
        changes = db.queries["q"].fetch()
        assert sorted(c for c in changes if c.row.k == 1) == [(1, 1, (1, 5)), (2, -1, (1, 5)), (2, 1, (1, 7))]
        assert len(changes) == n + 2


def test_of_what_waits_a_slice_passes_and_an_instant_whole(passed: list[bool]) -> None:
    query, sizes = PATHS[1][0], {"batch_size": 500, "quantum": 1000}
    answers = told_of_many(query, 40)
    passed.clear()
    assert told_of_many(query, 40, **sizes)[:2] == answers[:2]
    assert sum(passed) > 20 and all(passed)
    passed.clear()
    told_of_many(query, 40, batch_size=2000, quantum=1000)  # less than a quantum is left at the end of a push
    assert len(passed) < 9
    assert told_of_many(query, 3000, **sizes)[:2] == told_of_many(query, 3000)[:2]


def test_what_a_quantum_is_may_change_between_slices(passed: list[bool]) -> None:
    answers = []
    for change in ("SET quantum = 65536", "SET quantum = 100"):
        with minidsms.connect() as db:
            db.execute(DECLARED)
            q = db.query(PATHS[1][0])
            for at in range(1, 9):
                if at == 3:
                    db.execute(change)
                db.push("S", [(i % 4, i % 11) for i in range(200 * at)], ts=at)
                db.advance(at)
            answers.append(sorted((c.ts, c.sign, c.row) for c in q.fetch()))
    assert answers[0] == answers[1] and all(passed)


@pytest.mark.parametrize("queue_size", [MOST_BY_HAND + 1, 1000])
def test_along_a_path_what_a_queue_has_no_room_for_stands_in_it(queue_size: int, passed: list[bool]) -> None:
    for query, is_path in PATHS:
        if is_path:
            roomy = told_of_many(query, 40, quantum=2000, batch_size=2000)
            passed.clear()
            assert told_of_many(query, 40, queue_size=queue_size, quantum=2000, batch_size=2000)[:2] == roomy[:2]
            assert False in passed
