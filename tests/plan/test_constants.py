"""Queries that differ in constants only: they run as one, and answer as each alone."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms import Change
from minidsms.operators import constants
from minidsms.operators.operator import Operator
from minidsms.query import Query
from minidsms.testing.compare import check_together
from minidsms.testing.generators import Case, declaration, random_feed
from tests.seeds import seeds

SHAPES = (
    "SELECT COUNT(*) AS n FROM Sa [RANGE 4] WHERE {}",
    "SELECT ISTREAM(COUNT(*) AS n, MAX(v) AS m, AVG(x), COUNT(DISTINCT t) AS d) FROM Sa [RANGE 5 SLIDE 2] WHERE {}",
    "SELECT DSTREAM(k, COUNT(*) AS n, MIN(t) AS m) FROM Sa [NOW] WHERE {} GROUP BY k",
    "SELECT t, k, AVG(x) AS a FROM Sa WHERE {} GROUP BY t, k HAVING COUNT(*) > 1",
    "SELECT k, x FROM Sa [RANGE 3] WHERE {}",
    "SELECT DISTINCT k FROM Sa [RANGE 3] WHERE {}",
    "SELECT ISTREAM(a.v, b.v AS w) FROM Sa [RANGE 3] AS a, Sb [RANGE 4] AS b WHERE a.k = b.k AND {}",
    "SELECT b.k, COUNT(*) AS n FROM Sa [RANGE 3] AS a, Sb [RANGE 2] AS b WHERE a.k = b.k AND {} GROUP BY b.k",
    "SELECT COUNT(*) AS n FROM Sa [RANGE 3] AS a, Sb [RANGE 2] AS b WHERE a.k < b.k AND {}",
    "SELECT a.v, r.k AS w FROM Sa [RANGE 3] AS a, Rel AS r WHERE a.k = r.k AND {}",
    "WITH W AS (SELECT k, v FROM Sa [RANGE 3] WHERE {}) SELECT a.v, b.v AS w FROM W AS a, W AS b WHERE a.k = b.k",
    "WITH W AS (SELECT k, COUNT(*) AS n FROM Sa [RANGE 3] WHERE {} GROUP BY k), M AS (SELECT * FROM W WHERE n > 0)"
    " SELECT a.n, b.n AS m FROM M AS a, W AS b WHERE a.k < b.k",
    "SELECT a.k, a.v, b.t FROM Sa [RANGE 3] AS a LEFT JOIN Sb [RANGE 5] AS b ON a.k = b.k WHERE {}",
    "SELECT a.k, b.t FROM Sa [RANGE 3] AS a LEFT JOIN Rel AS b ON a.k = b.k WHERE {}",
    "WITH W AS (SELECT k, v FROM Sa [RANGE 3] WHERE {}) SELECT k FROM W UNION SELECT v FROM W",
    "WITH W AS (SELECT k, v FROM Sa [RANGE 3] WHERE {}) SELECT k FROM W EXCEPT ALL SELECT v FROM W",
    "WITH W AS (SELECT k, v FROM Sa [RANGE 3] WHERE {}) SELECT k FROM W UNION ALL SELECT v FROM W",
)
CONDITIONS = [
    *(f"{{}}v = {c}" for c in range(5)),
    *(f"{{}}k {op} {c}" for op in ("<", ">=", "<>") for c in (1, 2)),
    "{}x > 1.0 AND {}v > 0",
    "{}t IS NULL",
    "{}t < 'c' AND {}k IN (1, 3)",
    "{}v = 2",
]


def company(seed: int, shape: str, queries: int = 12) -> list[Case]:
    rng = Random(seed)
    names = ["Sa", "Sb", "Rel"]
    feed = random_feed(rng, names, 16, may_be_extreme=False)
    alias = "a." if " AS a" in shape.split("WHERE")[0].split("FROM")[1] else ""
    asked = [c.replace("{}", alias) for c in rng.choices(CONDITIONS, k=queries)]
    moments = [0, 0, 0, rng.randrange(len(feed)), rng.randrange(len(feed))]
    return [Case(tuple(map(declaration, names)), shape.format(c), feed, rng.choice(moments)) for c in asked]


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_queries_that_differ_in_a_filter_answer_as_defined(number: int) -> None:
    others = ({}, {"queue_size": 1, "scheduler": "chain"}, {"switch_seed": number}, {"adaptive": "off"})
    options = {"batch_size": (1, 2, 7, 1000)[number % 4], **others[number // 4 % 4]}
    assert check_together(company(number % 2, SHAPES[number]), {8: 3, 11: 6}, **options) == "agreed"


def connected(**options: Any) -> minidsms.Connection:
    db = minidsms.connect(**options)
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER, x FLOAT); CREATE STREAM R (k INTEGER, w INTEGER)")
    return db


def operators(queries: list[Query], name: str) -> set[Operator]:
    return {op for query in queries for op in query.network.operators if op.name == name}


COUNTED = "SELECT COUNT(*) FROM S [RANGE 60] WHERE k = {}"
JOINED = "SELECT ISTREAM(S.v, R.w) FROM S [RANGE 9], R [RANGE 9] WHERE S.k = R.k AND S.v > {}"


def test_a_thousand_counts_are_one_grouped_state_and_a_thousand_joins_are_one() -> None:
    db = connected()
    counts, joins = [[db.query(text.format(i)) for i in range(40)] for text in (COUNTED, JOINED)]
    db.push("S", [(i, i, 0.5) for i in range(40)], ts=1)
    db.push("R", [(i, i) for i in range(40)], ts=1)
    db.advance(1)
    assert len(operators(counts, "Aggregate")) == 8 and len(operators(counts[7:], "Aggregate")) == 1
    assert len(operators(joins[7:], "MJoin")) == 1
    assert all(query.network.output is None for query in counts[7:] + joins[7:]), "they are folded"
    assert [query.snapshot() for query in counts] == [[(1,)]] * 40
    assert [len(query.fetch()) for query in joins] == list(range(39, -1, -1))
    shown = counts[20].explain(analyze=True)
    assert "Constants of 33 queries, by k" in shown and "here it is k = 20" in shown and "Select query = 13" in shown


def test_a_late_query_begins_empty_in_a_state_that_runs() -> None:
    db = connected()
    early = [db.query(COUNTED.format(i)) for i in range(10)]
    db.push("S", [(9, 1, 0.5)] * 3, ts=1)
    late = db.query(COUNTED.format(9))
    db.push("S", [(9, 1, 0.5)], ts=2)
    db.push("S", [(0, 1, 0.5)], ts=3)
    later = db.query(COUNTED.format(9))
    assert len(operators([early[9], late, later], "Aggregate")) == 1
    db.advance(4)
    assert [query.snapshot() for query in (early[9], late, later)] == [[(4,)], [(1,)], []]
    assert "Began after instant 2, from empty" in later.explain()


def test_equal_queries_that_begin_together_are_counted_once() -> None:
    db = connected()
    queries = [db.query(COUNTED.format(i)) for i in range(8)] + [db.query(COUNTED.format(7)) for _ in range(5)]
    db.push("S", [(7, 1, 0.5)], ts=1)
    db.advance(1)
    (joined,) = operators(queries, "Constants")
    assert joined.counters.elements_out == 1
    assert [query.snapshot() for query in queries[7:]] == [[(1,)]] * 6
    for query in queries[7:-1]:
        query.close()
    db.push("S", [(7, 1, 0.5)], ts=2)
    db.advance(2)
    assert queries[-1].snapshot() == [(2,)]


def test_state_of_queries_that_have_gone_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "_WORN", 8)
    db = connected()
    text = "SELECT COUNT(*) FROM S WHERE k = {}"
    kept = [db.query(text.format(i)) for i in range(9)]
    for i in range(60):
        query = db.query(text.format(i))
        db.push("S", [(i, 1, 0.5), (8, 1, 0.5)], ts=i)
        db.advance(i)
        query.close()
    (group,) = {query.network.group for query in kept}
    assert group is not None
    last = db.query(text.format(0))
    db.push("S", [(0, 1, 0.5)], ts=300)
    db.advance(300)
    groups = {op.describe().figures["groups"] for op in operators([last], "Aggregate")}
    assert max(groups) < 40 and last.snapshot() == [(1,)] and kept[8].snapshot() == [(61,)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(v) FROM S [RANGE 9] WHERE k = {}",
        "SELECT v + 1 FROM S [RANGE 9] WHERE k = {}",
        "SELECT COUNT(*) FROM S [ROWS 9] WHERE k = {}",
        "SELECT RSTREAM(COUNT(*)) FROM S [RANGE 9] WHERE k = {}",
        "SELECT LAST(v) FROM S [RANGE 9] WHERE k = {}",
        "SELECT S.k FROM R [RANGE 9] LEFT JOIN S [RANGE 9] ON S.k = R.k AND S.v = {}",
    ],
)
def test_what_does_not_keep_queries_apart_runs_for_each(text: str) -> None:
    db = connected()
    queries = [db.query(text.format(i)) for i in range(10)]
    assert not operators(queries, "Constants")


def test_a_sum_that_fails_ends_only_its_own_query() -> None:
    db = connected()
    queries = [db.query(f"SELECT SUM(v) FROM S [RANGE 9] WHERE k = {i}") for i in range(10)]
    db.push("S", [(9, 2**62, 0.5), (9, 2**62, 0.5), (8, 5, 0.5)], ts=1)
    db.advance(1)
    assert [query.failure is None for query in queries] == [True] * 9 + [False]
    assert queries[8].snapshot() == [(5,)]


def netted(query: Query) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for change in query.fetch():
        found[change.ts, change.row] += change.sign
    return Counter({key: n for key, n in found.items() if n})


@pytest.mark.parametrize("seed", seeds(3))
def test_families_whose_queries_come_and_go_answer_as_with_sharing_off(seed: int) -> None:
    rng = Random(seed)
    both = [connected(), connected(sharing="off", screening="off")]
    shapes = [
        COUNTED,
        JOINED,
        "SELECT k, AVG(x), MAX(v) FROM S [RANGE 4] WHERE v <> {} GROUP BY k",
        "SELECT k FROM S [RANGE 3] WHERE v > {}",
    ]
    chosen = rng.sample(shapes, 2)
    running: dict[int, list[Query]] = {}
    now = 0
    for step in range(50):
        some = running[rng.choice(sorted(running))] if running else []
        match rng.randrange(12):
            case 0:
                running = {n: queries for n, queries in running.items() if queries is not some}
                for query in some:
                    query.close()
            case 1:
                for query in some:
                    query.pause()
            case 2:
                for queries in running.values():
                    for query in queries:
                        query.resume()
            case 3:
                for query in some:
                    query.set("batch_size", 3)
            case 4:
                both[0].execute(f"SET sharing = {rng.choice(['on', 'on', 'off'])}")
            case 5:
                both[0].execute(f"SET screening = {rng.choice(['auto', 'hybrid', 'off'])}")
            case 6 | 7 | 8:
                for _ in range(rng.choice([1, 10])):
                    text = rng.choice(chosen).format(rng.randrange(8))
                    running[1000 * step + len(running)] = [each.query(text) for each in both]
            case _:
                now += rng.choice([0, 1, 3])
                rows = [(rng.randrange(8), rng.randrange(8), rng.randrange(4) / 2) for _ in range(rng.choice([1, 9]))]
                for each in both:
                    each.push("S", rows, ts=now)
                    each.push("R", [row[:2] for row in rows[:3]], ts=now)
                    if step % 3:
                        each.advance(now)
                now += bool(step % 3)
        if rng.random() < 0.3:
            for queries in running.values():
                assert netted(queries[0]) == netted(queries[1]), queries[0].text
    for each in both:
        each.advance(now + 20)
    for queries in running.values():
        for query in queries:
            query.resume()
        assert netted(queries[0]) == netted(queries[1]), queries[0].text
        if queries[0].kind == "relation":
            assert Counter(queries[0].snapshot()) == Counter(queries[1].snapshot())


@pytest.mark.parametrize("top", ["SELECT DISTINCT k FROM S", "SELECT k, COUNT(*) AS n FROM S"])
def test_a_late_query_that_finds_a_window_but_not_what_stands_above_it_runs_beside_the_family(top: str) -> None:
    group_by = " GROUP BY k" if "COUNT" in top else ""
    with connected() as db:
        text = f"{top} [RANGE 4] WHERE v = {{}}{group_by}"
        early = [db.query(text.format(v)) for v in range(12)]
        db.push("S", [(1, v, 1.0) for v in range(12)], ts=1)
        db.advance(1)
        running = early[-1].network.group.running
        for operator in operators(early, "DuplicateEliminate") | operators(early, "Aggregate"):
            running.remove(operator)
        late = db.query(text.format(11))
        db.push("S", (2, 11, 1.0), ts=2)
        db.advance(9)
        rest = (1,) if group_by else ()
        assert late.fetch() == [Change(2, 1, (2, *rest)), Change(6, -1, (2, *rest))]
