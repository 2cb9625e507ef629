"""UNNEST in FROM (docs/semantics R8); generated queries compare it with the definition."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

import minidsms
from minidsms.operators import unnest
from minidsms.testing.compare import check
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration

LISTS = ("STRING_SPLIT(s.t, '')", "[s.k, NULL, s.v]", "[s.x]", "[s.v > 1, NULL]", "[CURRENT_TIMESTAMP, NULL]")


@pytest.mark.parametrize("listed", LISTS)
@pytest.mark.parametrize("form", [", {}", " CROSS JOIN {}", " LEFT JOIN {} ON TRUE", " JOIN {} ON e IS NOT NULL"])
def test_elements_of_every_type_are_those_of_the_rows_present(
    monkeypatch: pytest.MonkeyPatch, listed: str, form: str
) -> None:
    rng = random.Random(listed + form)
    for window, few in product(("[RANGE 3]", "[ROWS 2]"), (0, unnest.FEW)):
        monkeypatch.setattr(unnest, "FEW", few)
        query = f"SELECT e, s.v FROM Sa {window} AS s{form.format(f'UNNEST({listed}) AS u(e)')} WHERE s.k <> 1"
        case = Case((declaration("Sa"),), query, random_feed(rng, ["Sa"], 14))
        check(case, batch_size=rng.choice((1, 2, 7, 1000)))


ALONE = [
    "SELECT i, s.v FROM GENERATE_SERIES(0, 2) AS i, Sa [RANGE 3] AS s WHERE s.k = i",
    "SELECT i, COUNT(s.v) AS n FROM Sa [RANGE 3] AS s RIGHT JOIN RANGE(3) AS i ON s.k = i GROUP BY i",
    "SELECT * FROM Sa [ROWS 2] AS s FULL JOIN UNNEST([0, 1, NULL]) AS u (k) USING (k)",
    "SELECT s.k, i FROM Sa [RANGE 3] AS s LEFT JOIN UNNEST([1, 2]) WITH ORDINALITY AS u (e, i) ON e = s.k",
    "SELECT k, (SELECT SUM(e * n) FROM UNNEST([5, 7]) WITH ORDINALITY AS u (e, n) WHERE e > s.k) FROM Sa [ROWS 2] AS s",
    "SELECT e, n, v FROM Sa [RANGE 3] AS s, UNNEST([s.k, NULL, v]) WITH ORDINALITY AS u (e, n) WHERE n <> 3 OR e > 1",
    "SELECT e, ordinality FROM Sa [ROWS 3] AS s LEFT JOIN UNNEST(RANGE(s.k)) WITH ORDINALITY AS e ON TRUE",
    "SELECT s.k, e FROM Sa [ROWS 3] AS s, RANGE(s.k, 4, 2) AS e",
    "SELECT i FROM RANGE(4) AS i UNION ALL SELECT k FROM Sa [RANGE 2]",
    "SELECT COUNT(*) FROM Sa [RANGE 2] WHERE k IN (SELECT i FROM GENERATE_SERIES(1, 2) AS i)",
]


@pytest.mark.parametrize("query", ALONE)
@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
def test_a_list_stands_alone_in_every_join_and_its_elements_have_places(query: str, batch_size: int) -> None:
    feed = random_feed(random.Random(query), ["Sa"], 20, may_be_extreme=False)
    assert check(Case((declaration("Sa"),), query, feed), batch_size=batch_size) == "agreed"


def test_long_lists_come_in_bounded_batches() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (n INTEGER)")
        query = db.query("SELECT COUNT(*), SUM(e) FROM S [NOW], UNNEST(GENERATE_SERIES(1, n)) AS e")
        db.push("S", [(200_000,), (0,), (70_000,), (3,)], ts=1)
        db.advance(1)
        sums = sum(n * (n + 1) // 2 for n in (200_000, 70_000, 3))
        assert query.snapshot() == [(270_003, sums)]


def test_a_list_that_fails_ends_the_query_at_its_instant() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (n INTEGER)")
        query = db.query("SELECT ISTREAM(e) FROM S [NOW], UNNEST(GENERATE_SERIES(1, n * 4611686018427387904)) AS e")
        db.push("S", [(0,), (2,)], ts=[1, 2])
        db.advance(2)
        with pytest.raises(minidsms.QueryError, match=r"at instant 2: .*overflow"):
            query.fetch()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("S [NOW], UNNEST([v]) WITH ORDINALITY AS e(a, b, c)", "UNNEST gives two columns, not 3"),
        ("S [NOW], UNNEST([v], [1]) AS e", "UNNEST takes one list"),
        ("S [NOW] RIGHT JOIN GENERATE_SERIES(1, v) AS e ON e = v", "UNNEST is not joined so"),
        ("S (x, y)", "FROM S AS s (x, y)"),
        ("S [NOW], UNNEST(t) AS e", "UNNEST takes a list, not TEXT"),
        ("S [NOW], UNNEST([v]) AS e(a, b)", "UNNEST gives one column, not 2"),
        ("S [NOW] FULL JOIN UNNEST([v]) AS e ON TRUE", "UNNEST is not joined so"),
        ("S [NOW] LEFT JOIN UNNEST([v]) AS e ON e = 1", "UNNEST is not joined so"),
        ("S [NOW], SERIES(v) AS e", "SERIES is no relation with arguments"),
        ("S [NOW], UNNEST([w]) AS e", 'unknown column "w"'),
        ("UNNEST([v]) AS e, S [NOW]", "nothing stands before it in FROM"),
        ("S [NOW], UNNEST([v]) AS S", '"S" stands twice in FROM'),
    ],
)
def test_what_cannot_be_unnested_is_told(source: str, told: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, t TEXT)")
        with pytest.raises(minidsms.CqlError, match=re.escape(told)):
            db.query(f"SELECT * FROM {source}")


@pytest.mark.parametrize(
    ("items", "same"),
    [
        ("k, UNNEST([v, k, NULL]) + 1 AS e", "k, e + 1 AS e"),
        ("CAST(EXPLODE([v, k, NULL]) AS TEXT) || 'x' AS e, *", "CAST(e AS TEXT) || 'x' AS e, s.*"),
        ("DISTINCT UNNEST([v, k, NULL]) % 2 AS e", "DISTINCT e % 2 AS e"),
        ("[k, UNNEST([v, k, NULL])] AS e", "[k, e] AS e"),
        ("UNNEST([v, k, NULL]) AS e, COLUMNS(*)", "e, s.*"),
        ("UNNEST([v, k, NULL]) AS e, COLUMNS('k|u') + e", "e, s.k + e AS k"),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
def test_an_element_in_the_select_list_is_that_of_the_last_item_of_from(items: str, same: str, batch_size: int) -> None:
    texts = (
        f"SELECT {items} FROM Sa [RANGE 3] AS s WHERE k <> 1",
        f"SELECT {same} FROM Sa [RANGE 3] AS s, UNNEST([v, k, NULL]) AS u (e) WHERE k <> 1",
    )
    feed = random_feed(random.Random(items), ["Sa"], 14)
    for text in texts:
        check(Case((declaration("Sa"),), text, feed), batch_size=batch_size)
    with minidsms.connect() as db:
        db.execute(declaration("Sa"))
        queries = [db.query(text) for text in texts]
        db.push("Sa", [(k, v, None, "a") for k, v in product((0, 1, 2), (5, None))], ts=[1, 1, 2, 3, 3, 4])
        db.advance(9)
        assert queries[0].fetch() == queries[1].fetch() != []
