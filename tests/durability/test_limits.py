"""Limits in a connection with a folder: what they refused never came, and a query that one made fail failed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms import Change, MemoryLimitError, QueryError
from minidsms.durability.connection import DurableConnection
from minidsms.durability.entry import decoded
from minidsms.durability.segments import entries
from minidsms.limits.admission import Admission
from minidsms.limits.allowance import NO_MEMORY, Allowance
from minidsms.past.past import Past
from minidsms.testing.generators import random_company
from minidsms.testing.grammar import Options
from tests.every_operator import wrapped_turns
from tests.long.crash_cases import calls_of
from tests.long.crashes import end_process


def opened(tmp_path: Path, **options: Any) -> DurableConnection:
    db = minidsms.connect(tmp_path / "db", **options)
    assert isinstance(db, DurableConnection)
    return db


def state(db: minidsms.Connection) -> dict[str, Any]:
    """Of every query: where it failed and what it has answered."""
    return {
        name: (query.failure, query.results, query.closed_until, Counter(map(repr, answers(db, name))))
        for name, query in db.queries.items()
    }


def answers(db: minidsms.Connection, name: str) -> list[Change]:
    """Those that a query has given before it failed."""
    with db.lock:
        query = db.queries[name]
        return sorted((c for batch in query.waiting_batches() for c in query.codec.changes(batch)), key=repr)


JOIN = "SELECT A.v, B.v AS w FROM S [RANGE 1 HOUR] AS A, S [RANGE 1 HOUR] AS B WHERE A.v % 2 = B.v % 2"


def declare(db: minidsms.Connection) -> None:
    db.execute("CREATE STREAM S (v INTEGER); CREATE STREAM T (v INTEGER)")
    db.query("SELECT v, COUNT(*) FROM S [RANGE 10] GROUP BY v", "counts")
    db.query("SELECT v FROM S WHERE v > 2", "filtered")


@pytest.mark.parametrize("with_checkpoint", [False, True])
@pytest.mark.parametrize("memory_limit", ["1 MB"])
def test_a_query_that_asked_for_too_much_fails_there_again(
    tmp_path: Path, memory_limit: str, with_checkpoint: bool
) -> None:
    db = opened(tmp_path, memory_limit=memory_limit)
    declare(db)
    db.query(JOIN, "pairs")
    for i in range(6):
        db.push("S", {"v": range(i, i + 20)}, ts=[i] * 20)
    db.push("S", {"v": range(2000)}, ts=[6] * 2000)
    db.push("S", (1,), ts=7)
    assert db.queries["pairs"].failure is not None and db.queries["counts"].failure is None
    failure, given = db.queries["pairs"].failure, answers(db, "pairs")
    counts = answers(db, "counts")
    assert given and failure[0] == 6
    for _ in range(3):
        if with_checkpoint:
            db.checkpoint()
        end_process(db)
        db = opened(tmp_path)
        assert db.queries["pairs"].failure == failure and db.queries["counts"].failure is None
        assert answers(db, "pairs") == given and answers(db, "counts") == counts
        assert db.settings["memory_limit"] == 1 << 20 and db.memory.limit == 1 << 20
    with pytest.raises(QueryError):
        for _ in range(2):
            db.queries["pairs"].fetch()
    with pytest.raises(MemoryLimitError):
        db.push("S", {"v": range(200_000)}, ts=[8] * 200_000)
    position = db.position("S")
    end_process(db)
    with opened(tmp_path) as db:
        assert db.position("S") == position == 2121
        if with_checkpoint:
            assert "pairs" not in db.execute("SHOW CHECKPOINTS").rows[-1][-1]


def test_what_a_timeout_ended_is_not_carried_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(tmp_path, statement_timeout="1 SECOND")
    declare(db)
    db.query(JOIN, "pairs")
    db.push("S", {"v": range(100)}, ts=range(100))
    clock = iter(range(0, 10**9, 2))
    with monkeypatch.context() as patch:
        patch.setattr("minidsms.limits.allowance.monotonic", lambda: next(clock))
        db.push("S", {"v": range(300)}, ts=[100] * 150 + [101] * 150)
        db.push("T", {"v": range(3)}, ts=range(3))
    failures = {name: query.failure for name, query in db.queries.items()}
    assert failures["pairs"] is not None
    given = {name: answers(db, name) for name in db.queries}
    for _ in range(2):
        end_process(db)
        db = opened(tmp_path)
        assert {name: query.failure for name, query in db.queries.items()} == failures
        assert {name: answers(db, name) for name in db.queries} == given
        db.checkpoint()
    db.close()


@pytest.mark.parametrize(
    "query", ["SELECT v FROM S WHERE v > 2", "SELECT v FROM S [RANGE 3]", "SELECT COUNT(*) FROM S"]
)
def test_answers_beyond_answer_limit_make_a_query_fail_once_and_for_all(tmp_path: Path, query: str) -> None:
    db = opened(tmp_path)
    declare(db)
    db.query(query, "q")
    db.execute("SET answer_limit = 10")
    for i in range(4):
        db.push("S", [(3 + i,), (4 + i,)], ts=[i, i])
    first = len(db.queries["q"].fetch())
    end_process(db)
    db = opened(tmp_path)
    for i in range(4, 20):
        db.push("S", [(3 + i,), (4 + i,)], ts=[i, i])
    failure, given, results = db.queries["q"].failure, answers(db, "q"), db.queries["q"].results
    assert failure is not None and 7 <= len(given) <= 10 and results == first + len(given)
    for _ in range(3):
        end_process(db)
        db = opened(tmp_path)
        assert db.queries["q"].failure == failure and answers(db, "q") == given
        assert db.queries["q"].results == results
        db.checkpoint()
    db.close()


def test_acknowledged_answers_do_not_count_for_answer_limit() -> None:
    with minidsms.connect(answer_limit=4) as db:
        declare(db)
        for i in range(10):
            db.push("S", [(5,), (6,)], ts=[i, i])
            db.queries["filtered"].fetch(ack=2 * i)
        assert db.queries["filtered"].failure is None


def test_a_query_with_a_limit_of_its_own_fails_alone_again(tmp_path: Path) -> None:
    db = opened(tmp_path)
    declare(db)
    db.query(JOIN, "pairs")
    db.execute("ALTER QUERY pairs SET memory_limit = '1 MB'")
    for i in range(6):
        db.push("S", {"v": range(i, i + 20)}, ts=[i] * 20)
    db.push("S", {"v": range(2000)}, ts=[6] * 2000)
    db.advance(6)
    failure, given = db.queries["pairs"].failure, answers(db, "pairs")
    assert failure is not None
    for _ in range(3):
        end_process(db)
        db = opened(tmp_path)
        assert db.queries["pairs"].failure == failure and answers(db, "pairs") == given
        db.checkpoint()
    db.close()


def test_an_operator_is_not_limited_while_the_log_is_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = opened(tmp_path, memory_limit="100 MB", statement_timeout="1 HOUR", answer_limit=10**6)
    declare(db)
    db.push("S", {"v": range(100)}, ts=range(100))
    end_process(db)
    taken: list[int] = []
    monkeypatch.setattr(Allowance, "take", lambda self, nbytes: taken.append(nbytes))
    with opened(tmp_path) as db:
        assert not taken and not db.allowance.is_open


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(n, marks=pytest.mark.long) for n in range(5, 60))])
def test_whatever_time_runs_out_for_is_the_same_when_the_folder_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Random queries; whenever the clock is looked at, a call may have taken too long."""
    rng = Random(seed)
    calls = calls_of(random_company(seed, Options()), {}, {}, {})
    share = rng.choice((0.0, 0.01, 0.1, 0.5))
    db = opened(tmp_path, statement_timeout="1 SECOND", answer_limit=rng.choice((5, 30, 10**6)))
    for call in calls:
        with monkeypatch.context() as patch:
            patch.setattr("minidsms.limits.allowance.monotonic", lambda: 2e9 if rng.random() < share else 0.0)
            try:
                call.make(db)
            except minidsms.CqlError:
                db.close()
                return  # no query of this language
        if rng.random() < 0.2:
            before = state(db)
            if rng.random() < 0.5:
                db.checkpoint()
            end_process(db)
            db = opened(tmp_path)
            assert state(db) == before, f"seed {seed}"
    db.close()


def test_a_query_with_history_has_no_answer_beyond_answer_limit(tmp_path: Path) -> None:
    """Nor silently fewer: at the first instant that does not fit whole it ends."""
    db = opened(tmp_path, answer_limit=5)
    db.execute("CREATE STREAM S (v INTEGER)")
    windows = db.query("SELECT v FROM S [RANGE 10] WHERE v >= 0", "windows")
    for i in range(3):
        db.push("S", [(3 * i + j,) for j in range(3)], ts=[i] * 3)
        windows.fetch()
    for name, select in (("stream", "ISTREAM(v)"), ("relation", "v")):
        db.execute(f"CREATE QUERY {name} AS SELECT {select} FROM S [RANGE 10] WITH HISTORY")
    assert db.queries["relation"].failure is not None  # six rows at the last closed instant
    for i in range(3, 6):
        db.push("S", [(i,)] * 3, ts=[i] * 3)
        windows.fetch()
    found = state(db)
    for name, (ts, waiting) in {"relation": (1, 0), "stream": (3, 3)}.items():
        failure, results, closed_until, _ = found[name]
        assert failure is not None and (failure[0], results, closed_until) == (ts, waiting, ts - 1)
    for _ in range(2):
        end_process(db)
        db = opened(tmp_path)
        assert state(db) == found
        db.checkpoint()
    db.close()


def kinds(db: DurableConnection) -> list[str]:
    assert db.log is not None
    return [str(decoded(found.payload, "")[0]["kind"]) for found in entries(db.log.folder)]


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_statement_that_failed_behind_a_failure_was_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_checkpoint: bool
) -> None:
    """Its entry has another one behind it, and so is not removed but undone."""
    db = opened(tmp_path, memory_limit="1 GB")
    declare(db)
    db.push("S", [(v,) for v in range(6)], ts=range(6))

    def interrupted(self: Past) -> None:
        raise KeyboardInterrupt

    def taking(self: Allowance, nbytes: int) -> None:
        raise minidsms.MemoryLimitError("so much is not allowed")

    with monkeypatch.context() as patch:
        patch.setattr(Past, "begin", interrupted)
        patch.setattr(Allowance, "take", taking)
        db.allowance.left = 0  # nothing may be taken unasked
        with pytest.raises(KeyboardInterrupt):
            db.execute("CREATE QUERY late AS SELECT v FROM S [RANGE 10] WITH HISTORY")
    assert kinds(db)[-3:] == ["statement", "failed", "undone"]
    assert set(db.queries) == {"counts", "filtered"}
    if with_checkpoint:
        db.checkpoint()
        assert "undone" not in kinds(db)
    db.push("S", (7,), ts=7)
    before = state(db)
    for _ in range(2):
        end_process(db)
        db = opened(tmp_path)
        assert state(db) == before and db.position("S") == 7
    db.execute("CREATE QUERY late AS SELECT v FROM S [RANGE 10] WITH HISTORY")
    assert len(db.queries["late"].snapshot()) == 6
    db.close()


@pytest.mark.parametrize("when", [1, 3, 5])
def test_queries_that_the_system_had_no_memory_for_fail_there_again(tmp_path: Path, when: int) -> None:
    db = opened(tmp_path)
    declare(db)
    db.query("SELECT COUNT(*) FROM T", "others")
    for i in range(4):
        db.push("S", [(3 + i,), (4,)], ts=[i, i])
    turns = iter(range(100))

    def failing(turn: Callable[..., Any]) -> Callable[..., Any]:
        def taken(*given: Any) -> Any:
            if next(turns) == when:
                raise MemoryError
            return turn(*given)

        return taken

    with wrapped_turns(failing):
        db.push("S", [(5,), (6,)], ts=[4, 4])
        db.push("S", [(5,), (6,)], ts=[5, 5])
    db.push("T", (1,), ts=5)
    db.advance(9)
    before = state(db)
    reasons = [query.failure[1] for query in db.queries.values() if query.failure is not None]
    assert reasons and all(NO_MEMORY in reason for reason in reasons) and before["others"][0] is None
    for _ in range(3):
        end_process(db)
        db = opened(tmp_path)
        assert state(db) == before
        db.checkpoint()
    db.close()


def test_an_insert_that_is_refused_says_so_as_a_push_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(tmp_path, memory_limit="1 GB")
    declare(db)

    def admitting(self: Admission, stream: Any, n: int) -> None:
        raise MemoryLimitError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Admission, "admit", admitting)
        with pytest.raises(MemoryLimitError):
            db.execute("INSERT INTO S (ts, v) VALUES (1, 2)")
    assert db.position("S") == 0 and db.execute("INSERT INTO S (ts, v) VALUES (1, 2)") == 1
    db.close()
