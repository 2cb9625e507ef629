"""Windows of few rows put them into stores of their own, and answer as before."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import minidsms
from minidsms.joins.join import Join
from minidsms.synopses import indexed_window
from minidsms.synopses.indexed_window import IndexedWindow
from minidsms.testing.compare import check
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration
from tests.seeds import seeds

QUERIES = (
    "SELECT a.v, b.t FROM Sa [RANGE 6] AS a JOIN Sb [RANGE UNBOUNDED] AS b ON a.k = b.k",
    "ISTREAM (SELECT a.v, b.t FROM Sa [RANGE 3] AS a JOIN Sb [RANGE 9] AS b ON a.k = b.k AND a.v < b.v)",
    "SELECT a.x, b.t, b.ts FROM Sa [ROWS 4] AS a LEFT JOIN Sb [RANGE 5] AS b ON a.k = b.k",
    "SELECT k, t FROM Sa [RANGE UNBOUNDED] WHERE k IN (SELECT k FROM Sb [RANGE 4])",
    "SELECT a.v, b.t, c.b FROM Sa [RANGE 5] AS a, Sb [RANGE 7] AS b, Sc [ROWS 3] AS c WHERE a.k = b.k AND b.k = c.k",
    "SELECT a.v, b.t FROM (SELECT k, v FROM Sa WHERE v > 1) [ROWS 3] AS a JOIN Sb [RANGE 8] AS b ON a.k = b.k",
    "SELECT FIRST(v), LAST(t), COUNT(*) FROM (SELECT v, t FROM Sb WHERE k > 1) [ROWS 3 SLIDE 2]",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", seeds(0, 6, 2))
def test_answers_are_the_defined_ones(monkeypatch: pytest.MonkeyPatch, query: str, seed: int) -> None:
    monkeypatch.setattr(indexed_window, "_LEAST_SPAN", 0)
    monkeypatch.setattr(indexed_window, "_FEW", seed % 3)
    names = [name for name in ("Sa", "Sb", "Sc") if name in query]
    case = Case(tuple(declaration(name) for name in names), query, random_feed(Random(seed), names, 20))
    for batch_size in (1, 2, 7, 1024):
        assert check(case, batch_size=batch_size, rows_per_push=1 + seed % 2) == "agreed"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.v, b.v FROM S [RANGE UNBOUNDED] AS a JOIN R [ROWS 10] AS b ON a.k = b.k WHERE a.k = 5",
        "SELECT k, v FROM S [RANGE UNBOUNDED] WHERE k = 5 AND v IN (SELECT k FROM R [ROWS 10])",
        "SELECT k, v FROM (SELECT k, v FROM S WHERE k = 5) [ROWS 1000]",
    ],
)
def test_a_window_of_few_rows_holds_no_stream_back(query: str) -> None:
    """One row in ten thousand passes."""
    with minidsms.connect() as db:
        db.execute("CREATE STREAM R (k INTEGER, v INTEGER); CREATE STREAM S (k INTEGER, v INTEGER)")
        asked = db.query(query)
        sizes = []
        for at in range(0, 400_000, 20_000):
            values = np.arange(at, at + 20_000)
            db.push("S", {"k": values % 10_000, "v": values}, ts=values)
            db.push("R", {"k": values[:1] + 5, "v": values[:1]}, ts=values[-1:])
            db.advance(int(values[-1]))
            asked.fetch()
            sizes.append(db.stream_input("S").store.nbytes)
        assert max(sizes[10:]) <= max(sizes[:4])


def test_what_waits_for_another_stream_is_not_held_back_by_a_window() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM R (k INTEGER); CREATE STREAM S (k INTEGER)")
        asked = db.query("SELECT ISTREAM(R.k) FROM R [RANGE 100], S [RANGE 100] WHERE R.k = S.k")
        (join,) = (each for each in asked.network.operators if isinstance(each, Join))
        for first in (0, 40_000, 80_000):
            instants = np.arange(first, first + 40_000)
            db.push("R", {"k": instants}, ts=instants)
            db.push("S", {"k": instants[:20_000]}, ts=instants[:20_000])
            assert len(asked.fetch()) in (20_000, 19_999)
            assert all(isinstance(window, IndexedWindow) and window.refers for window in join.index.windows)
