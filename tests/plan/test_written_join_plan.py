"""Join plans written out: how they are read, and what is said where they cannot be run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error
from minidsms.plan.written_join_plan import checked_plan, tree_over, written_tree

CHAIN = "SELECT * FROM R [RANGE 5], S [RANGE 5], T [ROWS 3] AS other WHERE R.a = S.a AND S.b = other.b"


def connected(**options: object) -> minidsms.Connection:
    db = minidsms.connect(**options)
    for name in "RST":
        db.execute(f"CREATE STREAM {name} (a INTEGER, b INTEGER)")
    db.execute("CREATE RELATION Rel (a INTEGER)")
    return db


def test_a_written_plan_is_a_tree_of_names() -> None:
    assert written_tree("((R, `my S`), input 3 , T#2)") == (("R", "my S"), "input 3", "T#2")
    assert tree_over("((t, r), S)", ["R", "S", "T"]) == ((2, 0), 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("left deep", "choose one of: mjoin, xjoin, auto; or write a plan out"),
        ("((R, S), T", "a closing parenthesis is missing at the end"),
        ("((R), S)", "the parentheses at character 2 join one input only"),
        ("(R S)", ", or ) should stand at character 4"),
        ("(R, , S)", "a name or ( should stand at character 5, not ,"),
        ("(R, S) T", "nothing may follow the last parenthesis, at character 8"),
        ("(", "a name or a parenthesis is missing at the end"),
        ("(" * 60, "more than 50 parentheses"),
    ],
)
def test_what_is_no_plan_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as error:
        checked_plan(text)
    assert reason in str(error.value)
    with connected() as db, pytest.raises(Error, match="is no value for"):
        db.execute(f"SET join_plan = '{text}'")


def test_the_place_of_an_error_in_a_plan_is_shown() -> None:
    def told(act: Callable[[], object]) -> str:
        with pytest.raises(CqlError) as error:
            act()
        return str(error.value)

    with connected() as db:
        assert told(lambda: db.execute("SET join_plan = '((R), S)'")).splitlines()[1:] == [
            "  1 | ((R), S)",
            "    |  ^^^",
        ]
        assert "  1 | (R, S) T\n    |        ^" in told(lambda: db.execute("SET join_plan = '(R, S) T'"))
    with connected(join_plan="((R, T), other)") as db:
        assert told(lambda: db.query(CHAIN)).splitlines() == [
            'error: join_plan names "T", which the join does not have',
            "  1 | ((R, T), other)",
            "    |      ^ this query joins: R, S, other",
            "help: write a plan over these, or SET join_plan = mjoin",
        ]
    with connected(join_plan="((R, other), (S, OTHER))") as db:
        assert "    |                  ^^^^^ this" in told(lambda: db.query(CHAIN))


@pytest.mark.parametrize(
    ("plan", "query", "reason"),
    [
        ("((R, S), T)", CHAIN, 'names "T", which the join does not have'),
        ("((R, S), S)", CHAIN, 'has "S" twice'),
        ("(R, S)", CHAIN, "lacks other"),
        ("((R, other), S)", CHAIN, "joins (R, other), which no equality of the query links"),
        ("xjoin", CHAIN.split(" WHERE")[0], "needs equalities that link all inputs"),
    ],
)
def test_a_plan_that_a_query_cannot_have_is_refused_with_a_way_out(plan: str, query: str, reason: str) -> None:
    with connected(join_plan=plan) as db:
        with pytest.raises(CqlError) as error:
            db.query(query)
        assert reason in str(error.value) and "SET join_plan = " in str(error.value)
        db.execute("SET join_plan = mjoin")
        db.query(query)


def test_queries_with_different_plans_run_apart_and_answer_alike() -> None:
    with connected() as db:
        queries = []
        for plan in ("mjoin", "'((R, S), other)'", "'(R, (other, S))'", "xjoin", "auto"):
            db.execute(f"SET join_plan = {plan}")
            queries.append(db.query(CHAIN))
        for t in range(30):
            for name in "RST":
                db.push(name, (t % 2, t % 3), ts=t)
        answers = [sorted(map(tuple, q.fetch()), key=repr) for q in queries]
        assert answers[0] and all(answer == answers[0] for answer in answers)
        assert "XJoin ((R, S), other) on R.a = S.a AND S.b = other.b" in queries[1].explain()
        assert "XJoin (R, (S, other)) on R.a = S.a AND S.b = other.b" in queries[2].explain()
        assert "- (R, S): " in queries[1].explain(analyze=True)


def test_results_are_kept_of_joins_with_relations_and_what_follows_from_equalities_is_a_link() -> None:
    query = "SELECT R.b, S.b FROM R [RANGE 5], S [RANGE 5], Rel WHERE R.a = S.a AND S.a = Rel.a"
    with connected(join_plan="((R, Rel), S)") as db:
        kept = db.query(query)
        db.execute("SET join_plan = mjoin")
        flat = db.query(query)
        for t in range(30):
            db.push("Rel", [(t % 3,), (t % 2,)], ts=t)
            for name in "RS":
                db.push(name, (t % 2, t % 3), ts=t)
            db.push("Rel", (t % 2,), ts=t + 1, sign=-1) if t % 3 else None
        assert sorted(map(tuple, kept.fetch()), key=repr) == sorted(map(tuple, flat.fetch()), key=repr) != []
        assert "XJoin ((R, Rel), S) on R.a = S.a = Rel.a" in kept.explain()


def test_queries_with_other_caching_run_apart_and_answer_alike() -> None:
    with connected(join_plan="mjoin") as db:
        queries = []
        for caching in ("off", "prefix", "global"):
            db.execute(f"SET caching = {caching}")
            queries.append(db.query(CHAIN))
        for t in range(30):
            for name in "RST":
                db.push(name, (t % 2, t % 3), ts=t)
        answers = [sorted(map(tuple, q.fetch()), key=repr) for q in queries]
        assert answers[0] and all(answer == answers[0] for answer in answers)
        joins = [op for q in queries for op in q.network.operators if op.name == "MJoin"]
        assert len(set(map(id, joins))) == 3


def test_explain_shows_the_plan_of_a_query_that_does_not_run() -> None:
    with connected(join_plan="((R, S), other)") as db:
        lines = [row[0] for row in db.execute(f"EXPLAIN {CHAIN}").rows]
        assert any("XJoin ((R, S), other) on" in line for line in lines)
