"""What declared keys do: a violation is reported with its rows, and where a join is not reduced EXPLAIN says why."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import minidsms
from minidsms.connection import Connection

JOIN = "SELECT ISTREAM(S.a, v, w) FROM S [RANGE 100], T [RANGE 100] WHERE S.a = T.a"


@pytest.fixture
def db() -> Iterator[Connection]:
    with minidsms.connect(state_reduction="k-mon") as connection:
        connection.execute("CREATE STREAM S (a INTEGER, v INTEGER)")
        connection.execute("CREATE STREAM T (a INTEGER, w TEXT) KEY (a)")
        connection.execute("CREATE RELATION R (a INTEGER) KEY (a)")
        connection.execute("CREATE RELATION Q (a INTEGER)")
        connection.execute("CREATE RELATION U (a INTEGER, x INTEGER) KEY (a)")
        yield connection


def violations(db: Connection) -> list[str]:
    return [warning for warning in db.warnings if "is violated" in warning]


def test_rows_that_violate_a_key_are_named_and_the_answer_is_that_of_the_join(db: Connection) -> None:
    q = db.query(JOIN)
    db.push("T", (1, "x"), ts=1)
    db.push("S", (1, 10), ts=2)
    db.push("T", (1, "y"), ts=3)
    db.push("S", (1, 20), ts=4)
    db.advance(10)
    assert [(change.ts, change.row) for change in sorted(q.fetch())] == [
        (2, (1, 10, "x")), (3, (1, 10, "y")), (4, (1, 20, "x")), (4, (1, 20, "y")),
    ]  # fmt: skip
    told = "KEY of T [RANGE 100] is violated: the rows (a 1; w 'x') at 1 and (a 1; w 'y') at 3 have the same"
    assert violations(db) == [f"{q.name}: {told}"]
    assert told in q.explain(analyze=True)
    assert [(d.query, d.reason) for d in db.streamon.plan_log] == [(q.name, told)]


def test_a_key_that_comes_again_after_its_first_row_has_left_is_seen(db: Connection) -> None:
    q = db.query("SELECT ISTREAM(S.a, v, w) FROM S [RANGE 100000], T [RANGE 2000] WHERE S.a = T.a")
    for n in range(3000):
        db.push("T", (n, "x"), ts=n)
        db.push("S", (n, 7), ts=n)
    db.push("T", (50, "again"), ts=4000)
    db.advance(4001)
    assert q.fetch()[3000:] == [(4000, 1, (50, 7, "again"))]
    told = "KEY of T [RANGE 2000] is violated: the row (a 50; w 'again') at 4000 has that of an earlier one"
    assert violations(db) == [f"{q.name}: {told}"]


def test_a_key_that_comes_again_when_nothing_rests_on_it_any_more_is_seen_by_who_watches_it(db: Connection) -> None:
    q = db.query("SELECT ISTREAM(S.a, v, w) FROM S [RANGE 10], T [RANGE 10] WHERE S.a = T.a")
    r = db.query("SELECT S.a, w FROM S [RANGE 9], T [RANGE 10] WHERE S.a = T.a")
    for n in range(2000):
        db.push("T", (n if n != 300 else 100, "x"), ts=n)
        db.push("S", (n, 7), ts=n)
    told = (
        "KEY of T [RANGE 10] is violated: a value of it has come a second time, after its first row had left the window"
    )
    assert sorted(violations(db)) == [f"{q.name}: {told}", f"{r.name}: {told}"]


def test_a_row_of_a_relation_may_be_updated_and_two_of_one_key_may_not_stand(db: Connection) -> None:
    q = db.query("SELECT ISTREAM(S.a, v, x) FROM S [RANGE 100], U WHERE S.a = U.a")
    db.push("U", (1, 5), ts=1)
    db.push("S", (1, 10), ts=2)
    db.push("U", [(1, 5), (1, 6)], ts=3, sign=[-1, 1])
    db.push("S", (1, 20), ts=4)
    db.advance(5)
    assert [(c.ts, c.row) for c in q.fetch()] == [(2, (1, 10, 5)), (3, (1, 10, 6)), (4, (1, 20, 6))]
    assert not violations(db)
    db.push("U", (1, 7), ts=6)
    db.advance(7)
    assert sorted(c.row for c in q.fetch()) == [(1, 10, 7), (1, 20, 7)]
    told = "KEY of U is violated: the rows (a 1; x 6) at 3 and (a 1; x 7) at 6 have the same"
    assert violations(db) == [f"{q.name}: {told}"]


def test_long_texts_of_rows_that_violate_a_key_are_cut(db: Connection) -> None:
    q = db.query(JOIN)
    for ts in (1, 3):
        db.push("T", (1, "x" * 100_000), ts=ts)
        db.push("S", (1, 10), ts=ts + 1)
    db.advance(10)
    assert len(q.fetch()) == 4
    (told,) = violations(db)
    assert "w 'xxx" in told and len(told) < 300


def test_trusted_keys_fail_the_query_that_they_mislead(db: Connection) -> None:
    db.execute("SET k_mon = trusting")
    q = db.query(JOIN)
    db.push("T", (1, "x"), ts=1)
    db.push("S", (1, 10), ts=2)
    db.push("T", (1, "y"), ts=3)
    db.advance(10)
    assert [change.row for change in q.fetch()] == [(1, 10, "x")]
    with pytest.raises(
        minidsms.QueryError, match=r"KEY of T \[RANGE 100\] is violated.*\(a 1; w 'x'\) at 1 and \(a 1; w 'y'\) at 3"
    ):
        q.fetch()


def test_a_row_that_went_still_counts_against_its_key(db: Connection) -> None:
    q = db.query(JOIN)
    for n in range(3000):
        db.push("T", (n, "x"), ts=n // 50)
        db.push("S", (n, 1), ts=n // 50)
    (join,) = (op for op in q.network.operators if op.name == "KMonJoin")
    assert join.describe().figures["spilled"] > 1000
    db.push("T", (2000, "again"), ts=60)
    db.advance(61)
    assert q.fetch()[3000:] == [(60, 1, (2000, 1, "again"))]
    assert len(violations(db)) == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT S.a FROM S [ROWS 10 SLIDE 5], T [RANGE 5] WHERE S.a = T.a",
            "S is a window that slides, of which no key",
        ),
        (
            "SELECT S.a FROM S [PARTITION BY v ROWS 1], T [RANGE 5] WHERE S.a = T.a",
            "S is a PARTITION BY window, of which",
        ),
        (
            "SELECT v FROM S [PARTITION BY v ROWS 1], R WHERE S.a = R.a",
            "R is a relation, and no other input is a window",
        ),
        ("SELECT S.a FROM S [RANGE 10], Q WHERE S.a = Q.a", "Q is a relation, of which no key lies"),
        (
            "SELECT v FROM S [RANGE 9], (SELECT w, MAX(a) AS a FROM T [RANGE 9] GROUP BY w) G WHERE S.a = G.a",
            "derived, of",
        ),
        ("SELECT S.a FROM S [RANGE 10], T [RANGE 5] WHERE S.a < T.a", "no equality connects"),
        ("SELECT S.a FROM S, T, T AS U WHERE S.a = T.a AND T.w = U.w AND S.v = U.a", "the joins form a cycle"),
    ],
)
def test_explain_says_why_a_join_is_not_reduced(db: Connection, query: str, reason: str) -> None:
    plan = db.query(query).explain()
    assert "KMonJoin" not in plan
    assert "Not reduced: " in plan
    assert reason in plan


@pytest.mark.parametrize("mode", ["off", "swj", "k-mon"])
def test_an_expression_that_fails_does_so_at_the_same_instant_whatever_is_kept(db: Connection, mode: str) -> None:
    db.execute(f"SET state_reduction = '{mode}'")
    q = db.query("SELECT P.a, w FROM (SELECT a, v + 1 AS x FROM S [RANGE 10]) P, T [RANGE 5] WHERE P.x = T.a")
    assert {"off": "MJoin", "swj": "SWJ", "k-mon": "KMonJoin"}[mode] in q.explain(), q.explain()
    db.push("T", (1, "x"), ts=1)
    db.push("S", [(1, 2), (1, 3), (2, 2**63 - 1)], ts=[2, 3, 4])
    db.advance(4)
    with pytest.raises(minidsms.QueryError, match="at instant 4: v"):
        q.fetch()


def test_explain_says_what_a_reduced_join_does_without(db: Connection) -> None:
    db.execute("CREATE STREAM V (a INTEGER, x INTEGER) KEY (a)")
    query = "SELECT ISTREAM(w, x) FROM S [RANGE 9], T [RANGE 9], V [RANGE 9] WHERE S.a = T.a AND S.v = V.a"
    plan = db.query(query).explain()
    assert "No orders that adapt: the join of S, T, V visits children first" in plan
    assert "No caches" not in plan
    assert "No join_plan" not in plan
    db.execute("SET caching = prefix; SET join_plan = xjoin")
    plan = db.query(query).explain()
    assert "No caches: the join of S, T, V" in plan
    assert "No join_plan: the join of S, T, V" in plan


@pytest.mark.parametrize(
    ("shown", "key", "is_told"),
    [("ISTREAM(O.id)", " KEY (id)", False), ("ISTREAM(O.id)", "", True), ("O.id", " KEY (id)", True)],
)
def test_explain_says_when_a_relation_lets_no_row_of_a_result_go(
    db: Connection, shown: str, key: str, is_told: bool
) -> None:
    db.execute(f"CREATE STREAM O (id INTEGER, article INTEGER){key}")
    db.execute("CREATE RELATION Articles (article INTEGER, price INTEGER) KEY (article)")
    plan = db.query(f"SELECT {shown} FROM O [RANGE 10000], Articles WHERE O.article = Articles.article").explain()
    note = "end when Articles changes: they could go if an ISTREAM showed the KEY of O"
    assert (note in plan) is is_told, plan


def test_a_key_that_nobody_declared_is_found_relied_on_and_given_up_when_it_breaks(db: Connection) -> None:
    db.execute("CREATE STREAM K (a INTEGER, x INTEGER)")
    q = db.query("SELECT ISTREAM(S.a, v, x) FROM S [RANGE 100000], K [RANGE 100000] WHERE S.a = K.a AND x % 2 = 0")
    n = 4000
    for first in range(0, n, 500):
        keys = list(range(first, first + 500))
        # Every key comes once in K, and twice in S; of those that are odd in K nothing comes.
        db.push("K", {"a": keys, "x": keys}, ts=[10 * k for k in keys])
        db.push("S", {"a": [k // 2 for k in keys], "v": keys}, ts=[10 * k + 1 for k in keys])
    found = {(row[0], row[2]): (row[4], row[6]) for row in db.execute("SHOW CONSTRAINTS")}
    assert found["k", "KEY"] == (0, 0)
    assert found["s", "KEY"][0] is None
    (join,) = (op for op in q.network.operators if op.name == "KMonJoin")
    assert join.describe().figures["spilled"] > 1000
    # One for which rows have waited in vain, and one that they have met.
    db.push("K", [(7, -2), (8, -4)], ts=10 * n)
    db.advance(10 * n + 1)
    answers = q.fetch()
    assert len(answers) == n // 2 + 4
    assert sorted(change.row for change in answers[-4:]) == [
        (7, 14, -2), (7, 15, -2), (8, 16, -4), (8, 17, -4),
    ]  # fmt: skip
    found = {(row[0], row[2]): (row[4], row[6]) for row in db.execute("SHOW CONSTRAINTS")}
    assert found["k", "KEY"] == (None, 1)
    assert not violations(db), "nobody said that it was a key"


@pytest.mark.parametrize("rows", [2**32, 2**32 + 1, 2**63 - 1])
def test_the_window_of_monitors_is_as_long_as_they_can_count_or_refused(db: Connection, rows: int) -> None:
    if rows > 2**32:
        with pytest.raises(minidsms.Error, match="from 1 to 4,294,967,296"):
            db.execute(f"SET k_mon_window = {rows}")
        return
    db.execute(f"SET k_mon_window = {rows}")
    q = db.query(JOIN)
    db.push("T", {"a": range(3000), "w": ["x"] * 3000}, ts=range(3000))
    db.push("S", {"a": range(3000), "v": range(3000)}, ts=range(3000))
    db.advance(3000)
    assert len(q.fetch()) == 3000


def test_parameters_of_monitors_are_settings(db: Connection) -> None:
    db.execute("SET k_mon_window = 50; SET k_mon_threshold = 0")
    db.execute("CREATE STREAM K (a INTEGER, x INTEGER)")
    db.query("SELECT ISTREAM(S.a, x) FROM S [RANGE 100000], K [RANGE 100000] WHERE S.a = K.a")
    db.push("K", {"a": list(range(100)), "x": [0] * 100}, ts=list(range(100)))
    db.advance(100)
    rows = [(*row[:5], *row[6:]) for row in db.execute("SHOW CONSTRAINTS")]
    assert ("k", "a", "KEY", None, 0, 0, "q1", 0) in rows


def test_a_composite_key_needs_all_its_columns(db: Connection) -> None:
    db.execute("CREATE STREAM K (a INTEGER, b INTEGER, x INTEGER) KEY (a, b)")
    assert "S -> K" in db.query("SELECT ISTREAM(x) FROM S [RANGE 9], K WHERE S.a = K.a AND S.v = K.b").explain()
    assert "S -- K" in db.query("SELECT ISTREAM(x) FROM S [RANGE 9], K WHERE S.a = K.a").explain()


def test_queries_that_part_go_on_alike(db: Connection) -> None:
    q, r = db.query(JOIN), db.query(JOIN)
    for n in range(200):
        db.push("T", (n, "x"), ts=n)
        db.push("S", (n, 1), ts=n)
        if n == 100:
            db.execute("SET sharing = off")
    db.advance(300)
    assert q.fetch() == r.fetch()
    assert q.network is not r.network


def test_queries_over_a_relation_that_part_go_on_alike(db: Connection) -> None:
    text = "SELECT ISTREAM(T.a, x) FROM T [RANGE 400], U WHERE T.a = U.a AND x > 0"
    q, r = db.query(text), db.query(text)
    for n in range(1500):
        db.push("U", [(n, n % 3)], ts=n)
        db.push("T", (n, "x"), ts=n)
        if n > 300 and n % 10 == 0:
            old = n - 300
            db.push("U", [(old, old % 3), (old, 5)], ts=n, sign=[-1, 1])
        if n == 1100:
            db.execute("SET sharing = off")
    db.advance(1500)
    answers = q.fetch()
    assert answers == r.fetch()
    assert q.network is not r.network
    assert len(answers) == 1000 + 119


def test_what_has_gone_leaves_no_files(db: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    q = db.query(JOIN)
    for n in range(5000):
        db.push("T", (n, "x"), ts=n // 100)
        db.push("S", (n, 1), ts=n // 100)
    (join,) = (op for op in q.network.operators if op.name == "KMonJoin")
    spill = join.reduction.spill  # type: ignore[attr-defined]
    assert spill.file_nbytes > 0
    assert not list(tmp_path.iterdir()), "files without a name go with the process, however it ends"
    q.close()
    assert spill.file_nbytes == 0


def test_constraints_are_not_used_while_plans_may_not_change(db: Connection) -> None:
    db.execute("SET k_mon = trusting")
    q = db.query(JOIN)
    (join,) = (op for op in q.network.operators if op.name == "KMonJoin")
    db.execute("SET adaptive = off")
    for n in range(3000):
        db.push("T", (n, "x"), ts=n // 50)
        db.push("S", (n, 1), ts=n // 50)
    assert join.describe().figures["spilled"] == 0
    db.execute("SET adaptive = on")
    for n in range(3000, 4000):
        db.push("T", (n, "x"), ts=n // 50)
        db.push("S", (n, 1), ts=n // 50)
    assert join.describe().figures["spilled"] > 1000


@pytest.mark.parametrize("show", ["P.t, F.t", "ISTREAM(P.t, F.t)"])
def test_texts_of_results_outlive_the_rows_that_made_them_and_sweeps_of_the_dictionary(show: str) -> None:
    answers = []
    for reduction in ("off", "k-mon"):
        with minidsms.connect(state_reduction=reduction) as db:
            db.execute("CREATE STREAM P (k INTEGER, t TEXT); CREATE STREAM F (k INTEGER, t TEXT) KEY (k)")
            query = db.query(f"SELECT {show} FROM P [RANGE 60] AS P, F [RANGE 80] AS F WHERE P.k = F.k")
            got = []
            for i in range(300):
                db.push("F", (i, f"flow {i}"), ts=2 * i)
                db.push("P", [(i - 3, f"packet {i}"), (i - i % 9, f"late {i}")], ts=2 * i)
                if i % 7 == 0:
                    db.memory.reclaim()
                    got += sorted(query.fetch())
            db.advance(1000)
            answers.append(got + sorted(query.fetch()))
            if reduction == "k-mon":
                assert "KMonJoin" in query.explain()
    assert answers[0] and answers[0] == answers[1]
