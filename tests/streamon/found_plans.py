"""A program for processes of its own: streams for which adapting pays, and the plans that it finds, a line each.

Where times decide, it is so clear-cut that no noise of a clock changes it; else every step costs 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import minidsms

ROWS = 100_000
PART = 10_000


def filters() -> list[str]:
    """The order of three filters, written worst first."""
    rng = np.random.default_rng(0)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER, b INTEGER, c INTEGER)")
        query = db.query(
            "SELECT a FROM S WHERE (a * 3 + 1) % 1000 < 990 AND (b * 7 + 5) % 1000 < 600 AND (c * 11 + 2) % 1000 < 50"
        )
        columns = {name: rng.integers(0, 1000, ROWS) for name in "abc"}
        for start in range(0, ROWS, PART):
            part = {name: values[start : start + PART] for name, values in columns.items()}
            db.push("S", part, ts=np.arange(start, start + PART))
        first = query.decisions()[0].instant if query.decisions() else ROWS
        return [_plan(query, "filter ordering"), f"within 50,000: {first <= 50_000}"]


def orders() -> list[str]:
    """Each row of R meets ten of S and hardly one of T: T is to be asked first."""
    with minidsms.connect(caching="off", join_plan="mjoin", cost_model="fixed") as db:
        db.execute("CREATE STREAM R (a INTEGER, b INTEGER); CREATE STREAM S (a INTEGER); CREATE STREAM T (b INTEGER)")
        query = db.query("SELECT R.a FROM R [ROWS 500], S [ROWS 1000], T [ROWS 100] WHERE R.a = S.a AND R.b = T.b")
        for n in range(0, 10_000, 1000):
            ts = np.arange(n, n + 1000)
            db.push("R", {"a": ts % 100, "b": ts % 10_000}, ts=ts)
            db.push("S", {"a": ts % 100}, ts=ts)
            db.push("T", {"b": ts * 7 % 10_000}, ts=ts)
        return [_plan(query, "join ordering")]


def caches() -> list[str]:
    """The pair of S and R that each row of T meets is met ten times."""
    return [
        _plan(
            _pairs(
                "R [ROWS 100], S [ROWS 1000], T [ROWS 500]", caching="prefix", join_plan="mjoin", cost_model="fixed"
            ),
            "caching",
        )
    ]


def trees() -> list[str]:
    """And a tree that keeps such pairs is better than one that keeps those of S and T."""
    return [
        _plan(_pairs("T [ROWS 500], S [ROWS 1000], R [ROWS 100]", join_plan="xjoin", cost_model="fixed"), "join plan")
    ]


def _pairs(inputs: str, **options: str) -> minidsms.Query:
    """A join whose rows of T meet ten rows of S each, of which one joins a row of R."""
    db = minidsms.connect(filter_ordering="static", **options)
    db.execute("CREATE STREAM R (a INTEGER); CREATE STREAM S (a INTEGER, b INTEGER); CREATE STREAM T (b INTEGER)")
    query = db.query(f"SELECT R.a, T.b FROM {inputs} WHERE R.a = S.a AND S.b = T.b")
    for n in range(0, 20_000, 200):
        once, tenfold = np.arange(n, n + 200), np.arange(n, n + 200).repeat(10)
        db.push("R", {"a": 10 * once}, ts=once)
        db.push("S", {"a": 10 * tenfold + np.tile(np.arange(10), 200), "b": tenfold}, ts=tenfold)
        db.push("T", {"b": tenfold}, ts=tenfold)
        db.advance(n + 199)
    return query


def constraints() -> list[str]:
    """What k-Mon finds of a join, and the rows it keeps."""
    with minidsms.connect(state_reduction="k-mon") as db:
        db.execute("CREATE STREAM Bid (auction INTEGER, price INTEGER); CREATE STREAM Auction (id INTEGER)")
        db.query("SELECT ISTREAM(B.price) FROM Bid B [RANGE 1000], Auction A [RANGE 1000] WHERE B.auction = A.id")
        for n in range(0, 4000, 100):
            ids = list(range(n, n + 100))
            db.push("Auction", {"id": ids}, ts=ids)
            db.push("Bid", {"auction": ids, "price": ids}, ts=ids)
        return [str(row) for row in db.execute("SHOW CONSTRAINTS")]


def _plan(query: minidsms.Query, technique: str) -> str:
    plans = [d.new_plan for d in query.decisions() if d.technique == technique]
    return f"{technique}: {plans[-1] if plans else 'as written'}"


PROGRAMS: dict[str, Callable[[], list[str]]] = {
    each.__name__: each for each in (filters, orders, caches, trees, constraints)
}

if __name__ == "__main__":
    if "compiler" in sys.argv:
        import numba  # noqa: F401
    print("\n".join(PROGRAMS[sys.argv[1]]()))
