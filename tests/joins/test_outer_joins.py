"""Outer joins by equalities alone, which one operator runs: over windows, relations and queries, bags of equal rows."""

from __future__ import annotations

from random import Random

import pytest

import minidsms
from minidsms.joins import answer
from minidsms.testing.compare import check, difference_of, run_definition, run_together
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case
from minidsms.testing.grammar import RELATIONS, STREAMS
from tests.seeds import seeds

SIDES = (
    ("Sa {}", "Sa", ("k", "v", "t"), "x"),
    ("Sb {}", "Sb", ("k", "v", "t"), "t"),
    ("Rel", "Rel", ("k", "a", "t"), "a"),
    ("(SELECT k, MAX(v) AS v, t FROM Sb {} GROUP BY k, t)", "Sb", ("k", "v", "t"), "v"),
    ("(SELECT S1.k, S1.v, S2.t FROM Sa {} AS S1, Sb [ROWS 4] AS S2 WHERE S1.k = S2.k)", "Sa Sb", ("k", "v", "t"), "v"),
)
"""What stands in FROM, what it reads, its keys, and a column that is none."""
RANGES = ("[RANGE 3]", "[NOW]", "[RANGE 9]", "[RANGE UNBOUNDED]")
WINDOWS = (*RANGES, "[ROWS 3]", "[PARTITION BY k ROWS 2]", "[RANGE 6 SLIDE 2]")


def random_case(seed: int) -> Case:
    """Two sides of any kind, or (every second seed) streams with ranges."""
    rng = Random(seed)
    sides = SIDES[:2] if seed % 2 else SIDES
    left, right = rng.choice(sides), rng.choice(sides)
    windows = RANGES if seed % 2 else WINDOWS
    texts = [side[0].format(rng.choice(windows)) for side in (left, right)]
    kind = rng.choice(("LEFT", "LEFT", "RIGHT", "FULL"))
    keys = [0] if seed % 3 else rng.sample(range(3), 2)
    on = [f"A.{left[2][i]} = B.{right[2][i]}" for i in keys]
    on += [f"B.{right[3]} IS NOT NULL"] if rng.random() < 0.1 else []
    columns = f"A.k, A.{left[3]} AS l, B.{right[3]} AS r"
    select = rng.choice((columns, columns, f"B.{right[3]} AS r", f"A.k, COUNT(B.{right[2][1]}) AS n, COUNT(*) AS m"))
    rest = " GROUP BY A.k" if "COUNT" in select else ""
    where = rng.choice(("", "", "", " WHERE B.k IS NULL", " WHERE A.k > 0"))
    query = f"{select} FROM {texts[0]} AS A {kind} JOIN {texts[1]} AS B ON {' AND '.join(on)}{where}{rest}"
    query = rng.choice((f"SELECT {query}", f"SELECT {query}", f"ISTREAM (SELECT {query})", f"RSTREAM (SELECT {query})"))
    names = sorted({*left[1].split(), *right[1].split()})
    declared = tuple(
        f"CREATE {'RELATION' if name in RELATIONS else 'STREAM'} {name} "
        f"({', '.join(f'{c} {t.name}' for c, t in {**STREAMS, **RELATIONS}[name])})"
        for name in names
    )
    return Case(declared, query, random_feed(rng, names, 40, may_be_extreme=False))


BATCHES = (1, 2, 7, 65_536)
MANY = [pytest.param(first, marks=pytest.mark.long) for first in range(40, 400, 20)]


@pytest.mark.parametrize("first", [0, 20, *MANY])
def test_the_answer_is_that_of_the_definition(first: int) -> None:
    """Of the batch sizes each case takes two, one of them with plans that are switched."""
    for seed in seeds(first, first + 20):
        case = random_case(seed)
        expected = run_definition(case)
        scheduler = ("round_robin", "fifo", "greedy", "chain")[seed // 2 % 4]
        options = {"scheduler": scheduler, "queue_size": (1, 5, 65_536)[seed % 3]}
        at = seed + seed // 4
        assert check(case, None, expected, batch_size=BATCHES[at % 4], **options) == "agreed", case
        (forced,) = run_together([case], {}, forced_every=3, batch_size=BATCHES[(at + 2) % 4], **options)
        assert not difference_of(expected, forced), case


def test_tuples_that_do_not_fit_are_put_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel stops at every row, and after every slot that it inspects."""
    monkeypatch.setattr(answer, "_FIRST_TUPLES", 1)
    monkeypatch.setattr(answer, "_TUPLES", 1)
    monkeypatch.setattr(answer, "MOST_INSPECTED", 1)
    for seed in range(40):
        case = random_case(seed)
        assert check(case, None, run_definition(case)) == "agreed", case


def test_a_key_that_is_lost_and_found_at_one_instant_changes_nothing() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM L (k INTEGER); CREATE STREAM R (k INTEGER, v INTEGER)")
        query = db.query("SELECT L.k, R.v FROM L [RANGE 100] LEFT JOIN R [RANGE 2] ON L.k = R.k")
        db.push("L", [(1,), (1,)], ts=[1, 1])
        db.push("R", [(1, 5), (1, 6), (1, 5)], ts=[2, 4, 6])
        db.advance(7)
        changes = [(c.ts, c.sign, c.row) for c in query.fetch()]
    pads, fives, sixes = ([(1, v)] * 2 for v in (None, 5, 6))
    came = [(1, 1, pads), (2, -1, pads), (2, 1, fives), (4, -1, fives), (4, 1, sixes), (6, -1, sixes), (6, 1, fives)]
    assert changes == [(ts, sign, row) for ts, sign, rows in came for row in rows]
