"""Joins keep fewer rows when memory gets short, and no answer shows it (docs/semantics T5)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.cql.errors import MemoryLimitError
from minidsms.limits import memory
from minidsms.streamon.k_mon import reoptimizer
from minidsms.testing.compare import check, run_definition
from minidsms.testing.generators import Case
from tests.long.k_mon_cases import random_tree_case

QUERY = "SELECT ISTREAM(P.n, P.x, F.y) FROM P [RANGE 100000], F [RANGE 100000] WHERE P.k = F.k"
FLOWS = "CREATE STREAM F (k INTEGER, y INTEGER) KEY (k)"
PACKETS = "CREATE STREAM P (n INTEGER, k INTEGER, x INTEGER) KEY (n)"


def joined(**settings: object) -> tuple[Connection, minidsms.Query]:
    db = minidsms.connect(**settings)
    db.execute(f"{PACKETS}; {FLOWS}")
    return db, db.query(QUERY, name="q")


def feed(db: Connection, pushes: int) -> None:
    """Flows, and with them packets, each of which joins one."""
    for n in range(0, 500 * pushes, 500):
        keys = list(range(n, n + 500))
        db.push("F", {"k": keys, "y": keys}, ts=keys)
        db.push("P", {"n": keys, "k": keys, "x": keys}, ts=keys)


def plan_of(query: minidsms.Query) -> str:
    return query.explain(analyze=True)


def over_streams(case: Case) -> Case:
    """The case with ranges for all windows and an ISTREAM of the same columns."""
    shown, joined = case.query.removeprefix("SELECT ").split(" FROM ", 1)
    shown = "S0.a, S0.b" if "COUNT" in shown else re.sub(r"^[A-Z]STREAM\((.*)\)$", r"\1", shown)
    joined = re.sub(r"\[[^]0-9]*([0-9]+)[^]]*\]", r"[RANGE \1]", joined).split(" GROUP")[0]
    return replace(case, query=f"SELECT ISTREAM({shown}) FROM {joined}")


@pytest.mark.parametrize("start", [0, 15])
def test_answers_do_not_show_when_a_join_begins_to_keep_fewer_rows(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "NEAR", 0.0)
    monkeypatch.setattr(memory, "_STATE_PER_INPUT", 1 << 40)  # memory is measured at every push
    monkeypatch.setattr(reoptimizer, "LEAST_SAVED", float("-inf"))
    reduced = 0

    class Counted(reoptimizer.ReductionReoptimizer):
        def adopt(self, plan: bool) -> None:
            nonlocal reduced
            reduced += 1

    monkeypatch.setattr("minidsms.streamon.k_mon.adaptive_reduction.ReductionReoptimizer", Counted)
    for seed in range(start, start + 15):
        case = over_streams(random_tree_case(seed, repeats=(0.0, 0.1, 1.0)[seed % 3]))
        expected = run_definition(case)
        for first in (1, 5, 12):
            monkeypatch.setattr(reoptimizer, "LEAST_ELEMENTS", first)
            options = {"batch_size": (1, 2, 7, 65_536)[seed % 4], "memory_limit": "1 GB"}
            assert check(case, None, expected, **options) == "agreed", (seed, first)
    assert reduced > 15


def test_a_join_that_would_have_been_refused_elements_runs_within_its_memory() -> None:
    plain, query = joined(state_reduction="off", memory_limit="4 MB")
    with pytest.raises(MemoryLimitError):
        feed(plain, 60)
    db, query = joined(memory_limit="4 MB")
    feed(db, 60)
    assert "KMonJoin P -> F" in plan_of(query) and db.nbytes < 4 << 20
    assert [c.row for c in query.fetch()] == [(n, n, n) for n in range(30_000 - 1)]
    assert [d.reason.split(":")[0] for d in db.streamon.plan_log] == ["memory is short"]


def test_while_memory_is_plentiful_all_rows_stay_and_explain_says_why() -> None:
    db, query = joined(memory_limit="1 GB")
    feed(db, 4)
    assert "state: all rows of the windows; memory is plentiful" in plan_of(query)
    unlimited, query = joined()
    feed(unlimited, 4)
    assert "state:" not in plan_of(query)


@pytest.mark.parametrize("settings", [{"state_reduction": "off"}, {"adaptive": "off"}])
def test_nothing_is_reduced_where_nobody_may(settings: dict[str, str]) -> None:
    db, query = joined(memory_limit="4 MB", **settings)
    with pytest.raises(MemoryLimitError):
        feed(db, 60)
    assert "MJoin" in plan_of(query)


def test_a_join_whose_rows_all_matter_is_left_as_it_is() -> None:
    db = minidsms.connect(memory_limit="1500 KB")
    db.execute("CREATE STREAM A (k INTEGER, x INTEGER); CREATE STREAM B (k INTEGER, y INTEGER)")
    query = db.query("SELECT ISTREAM(x, y) FROM A [RANGE 100000], B [RANGE 100000] WHERE A.k = B.k")
    for n in range(0, 14_000, 500):
        db.push("A", {"k": list(range(n, n + 500)), "x": [1] * 500}, ts=n)
        db.advance(n)
    assert "bytes would still matter" in plan_of(query)


def test_queries_registered_while_memory_is_short_begin_reduced() -> None:
    db, _ = joined(memory_limit="3 MB")
    db.push("P", {name: list(range(40_000)) for name in "nkx"}, ts=1)
    rows = "SELECT ISTREAM(P.n, F.y) FROM P [ROWS 100], F [ROWS 100] WHERE P.k = F.k"
    db.push("F", {"k": [1], "y": [1]}, ts=1)
    assert db.memory.is_short
    assert "KMonJoin" in db.query(rows).explain()


def test_copies_of_a_join_that_was_reduced_go_on_apart() -> None:
    db, query = joined(memory_limit="4 MB")
    other = db.query(QUERY, name="other")
    feed(db, 40)
    other.set("batch_size", 100)  # parts it
    assert all("KMonJoin" in plan_of(each) for each in (query, other))
    query.fetch(), other.fetch()
    db.push("F", (-1, -7), ts=50_000)
    db.push("P", (-1, -1, 0), ts=50_000)
    db.advance(50_000)
    assert [c.row for c in query.fetch()[-1:]] == [c.row for c in other.fetch()[-1:]] == [(-1, 0, -7)]
