"""ASOF JOIN against rows found one by one, and against the definition, however pushes are cut (docs/semantics R11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

import pytest

import minidsms
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

DECLARED = ("CREATE STREAM S (k INTEGER, v INTEGER)", "CREATE STREAM T (k INTEGER, w INTEGER)")
END = 40
Elements: TypeAlias = list[tuple[int, tuple[Any, ...]]]


def elements(rng: Random, n: int) -> Elements:
    """In the order of their instants; keys are few, and some of them NULL."""
    instants = sorted(rng.randrange(30) for _ in range(n))
    return [(ts, (rng.choice((1, 2, 3, None)), i)) for i, ts in enumerate(instants)]


def found(left: Elements, right: Elements, keeps_all: bool) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Each of the left elements with the last of the right ones of its key up to its instant."""
    for ts, (k, v) in left:
        last = [w for at, (key, w) in right if key == k is not None and at <= ts][-1:]
        if last or keeps_all:
            yield ts, (k, v, last[0] if last else None)


@pytest.mark.parametrize("rows_per_push", [1, 2, 7, None])
@pytest.mark.parametrize("kind", ["ASOF JOIN", "ASOF LEFT JOIN"])
@pytest.mark.parametrize("length", [None, 4])
def test_each_element_has_the_last_row_that_had_come(kind: str, length: int | None, rows_per_push: int | None) -> None:
    for seed in range(5):
        rng = Random(seed)
        left, right = elements(rng, 25), elements(rng, 25)
        window = "" if length is None else f" [RANGE {length}]"
        query = f"SELECT S.k, v, w FROM S{window} {kind} T ON S.k = T.k AND S.ts >= T.ts"
        pushes = [Push(name, tuple((ts, 1, row) for ts, row in rows)) for name, rows in (("S", left), ("T", right))]
        case = Case(DECLARED, query, (*pushes, Advance(END)))
        expected: Counter[tuple[int, int, tuple[Any, ...]]] = Counter()
        for ts, row in found(left, right, "LEFT" in kind):
            expected[ts, 1, row] += 1
            if length is not None:
                expected[ts + length, -1, row] += 1
        defined = run_definition(case)
        assert Counter(defined.changes) == expected
        assert check(case, rows_per_push, defined) == "agreed"


@pytest.mark.parametrize("rows_per_push", [1, 2, 7, None])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT S.k, v, w FROM S ASOF JOIN (SELECT w, k, ts FROM T WHERE w % 2 = 0) AS t ON S.k = t.k AND S.ts >= t.ts",
        "SELECT s.k, v, w FROM (SELECT DISTINCT ts, k, v FROM S) [RANGE 3] AS s ASOF JOIN T USING (k, ts)",
        "SELECT j.k, j.w, t.w FROM (SELECT S.ts, S.k, w FROM S ASOF LEFT JOIN T ON S.k = T.k AND S.ts >= T.ts) "
        "AS j ASOF JOIN T AS t ON j.k = t.k AND j.ts >= t.ts",
        "SELECT k, LAG(w) OVER (PARTITION BY k ORDER BY at) FROM (SELECT ISTREAM(ts AS at, w, k) FROM T [RANGE 3])",
        "SELECT s.k, LAG(w) OVER (PARTITION BY s.k ORDER BY s.ts), SUM(w) OVER (ORDER BY s.ts RANGE 3 PRECEDING) "
        "FROM S AS s ASOF LEFT JOIN T AS t ON s.k = t.k AND s.ts >= t.ts",
    ],
)
def test_instants_are_known_through_streams_that_have_rows_as_they_come(query: str, rows_per_push: int | None) -> None:
    rng = Random(query)
    pushes = [Push(name, tuple((ts, 1, row) for ts, row in elements(rng, 25))) for name in "ST"]
    case = Case(DECLARED, query, (*pushes, Advance(END)))
    assert run_definition(case).changes
    assert check(case, rows_per_push) == "agreed"


@pytest.mark.parametrize(
    ("source", "is_known"),
    [
        ("ISTREAM(v, ts) FROM S WHERE v > 1", True),
        ("ISTREAM(v, ts) FROM S [ROWS 3]", True),
        ("RSTREAM(v, a.ts) FROM S [NOW] AS a, T", True),
        ("ISTREAM(v, ts) FROM S [RANGE 3 SLIDE 2]", False),
        ("ISTREAM(v, ts) FROM S [SESSION 3]", False),
        ("ISTREAM(v, a.ts) FROM S AS a, T", False),
        ("ISTREAM(a.v, b.ts) FROM S [NOW] AS a, S AS b", False),
        ("ISTREAM(v, ts) FROM S WHERE k IN (SELECT k FROM T)", False),
        ("ISTREAM(v, ts, (SELECT COUNT(*) FROM T) AS n) FROM S", False),
        ("ISTREAM(v, ts + 1 AS ts) FROM S", False),
        ("RSTREAM(v, ts) FROM S [RANGE 3]", False),
        ("DSTREAM(v, ts) FROM S [NOW]", False),
    ],
)
def test_what_is_not_known_to_be_an_instant_is_none(source: str, is_known: bool) -> None:
    with minidsms.connect() as db:
        for declared in DECLARED:
            db.execute(declared)
        query = db.query(f"SELECT LAG(v) OVER (ORDER BY ts) FROM (SELECT {source})")
        assert (query.kind == "stream") == is_known
