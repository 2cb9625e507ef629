"""SBR and Ticket: what they draw follows what execution counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import minidsms
from minidsms.expressions.routes import Order
from minidsms.streamon.contracts import DrawsOrders
from minidsms.streamon.filter_ordering.sbr import EXPLORING, Sbr
from minidsms.streamon.filter_ordering.ticket import Ticket


def driven(eddy: Sbr | Ticket, passes: tuple[float, ...], blocks: int) -> Counter[Order]:
    """The orders drawn for blocks of 1000 tuples, of which each filter passes its share."""
    drawn: Counter[Order] = Counter()
    for _ in range(blocks):
        order = eddy.draw()
        drawn[order] += 1
        reached = [1000]
        for number in order:
            reached.append(round(reached[-1] * passes[number]))
        eddy.count(order, reached)
    return drawn


def test_sbr_takes_what_passes_least_first_but_for_the_share_that_explores() -> None:
    drawn = driven(Sbr(3), (0.9, 0.1, 0.5), 2000)
    assert drawn[1, 2, 0] / 2000 == pytest.approx(1 - EXPLORING * 2 / 3, abs=0.02)
    assert {order[0] for order in drawn} == {0, 1, 2}


def test_sbr_counts_a_block_as_its_tuples_one_by_one() -> None:
    together, single = Sbr(2), Sbr(2)
    together.count((0, 1), (5, 0, 0))
    for _ in range(5):
        single.count((0, 1), (1, 0, 0))
    assert together.weights == pytest.approx(single.weights)
    assert single.weights == pytest.approx([0.5 * 0.95**5, 0.5])


def test_a_filter_that_keeps_tuples_wins_the_lottery_most_often() -> None:
    drawn = driven(Ticket(3), (0.9, 0.1, 0.5), 2000)
    first = Counter[int]()
    for order, times in drawn.items():
        first[order[0]] += times
    assert first[1] > first[2] > first[0] > 0


def test_eddies_draw_the_same_orders_from_the_same_seed() -> None:
    for kind in (Sbr, Ticket):
        assert isinstance(kind(3), DrawsOrders)
        assert driven(kind(4, seed=3), (0.5,) * 4, 50) == driven(kind(4, seed=3), (0.5,) * 4, 50)


@pytest.mark.parametrize("name", ["sbr", "ticket"])
@pytest.mark.parametrize("chunk", [7, 1500, 5000])
def test_an_eddy_gives_the_answer_of_the_order_written(name: str, chunk: int) -> None:
    rng = np.random.default_rng(0)
    columns = {c: rng.integers(0, 100, 5000) for c in "abc"}
    answers = []
    for options in ({"adaptive": "off"}, {"filter_ordering": name}):
        with minidsms.connect(cost_model="fixed", **options) as db:
            db.execute("CREATE STREAM S (a INTEGER, b INTEGER, c INTEGER)")
            query = db.query("SELECT a, b, c FROM S WHERE a < 90 AND b < 50 AND c < 10")
            for start in range(0, 5000, chunk):
                part = {k: v[start : start + chunk] for k, v in columns.items()}
                db.push("S", part, ts=np.arange(start, min(start + chunk, 5000)))
            answers.append(query.fetch())
            assert not query.decisions(), "draws are no decisions"
    assert answers[0] == answers[1] and len(answers[0]) > 100
