"""Answers to changes take what they save, and a little more."""

from __future__ import annotations

import re

import numpy as np

import minidsms
from minidsms.streamon.pipelined_filters.answers import ANSWERS_NS, ANSWERS_SHARE, Answers

PHASE = 250_000


def _answered(saving: float, took_ns: int, ns_per_tuple: float, phases: int) -> int:
    """How many of so many changes are answered."""
    answers, answered = Answers(), 0
    for k in range(1, phases + 1):
        answers.changed(k * PHASE)
        if answers.pay(int(k * PHASE * ns_per_tuple), k * PHASE):
            answered += 1
            answers.begin()
            answers.profiled(took_ns, lambda: saving, k * PHASE)
    return answered


def test_answers_that_save_more_than_they_take_are_all_given() -> None:
    assert _answered(saving=10.0, took_ns=1_000_000, ns_per_tuple=20.0, phases=100) == 100


def test_answers_that_save_nothing_take_their_share_of_the_time() -> None:
    took_ns, phases, ns_per_tuple = 500_000, 100, 3.0
    answered = _answered(0.0, took_ns, ns_per_tuple, phases)
    allowed = ANSWERS_NS + ANSWERS_SHARE * phases * PHASE * ns_per_tuple
    assert 1 < answered <= 1 + allowed / took_ns


def test_what_an_answer_saves_ends_with_the_next_change() -> None:
    answers = Answers()
    answers.begin()
    answers.profiled(1000, lambda: 5.0, 100)
    assert answers.saved_ns(300) == 1000
    answers.changed(300)
    assert answers.saved_ns(900) == 1000


def test_a_profile_that_answers_no_change_is_no_answer() -> None:
    answers = Answers()
    answers.profiled(10**9, lambda: 5.0, 100)
    assert (answers.spent_ns, answers.saved_ns(200)) == (0, 0)


def test_a_decision_tells_the_tuple_from_which_on_a_drop_rate_is_another() -> None:
    n, change = 60_000, 40_000
    rng = np.random.default_rng(0)
    late = np.arange(n) >= change
    columns = {
        "a": (rng.random(n) < np.where(late, 0.1, 0.9)).astype(np.int64),
        "b": (rng.random(n) < np.where(late, 0.9, 0.1)).astype(np.int64),
    }
    with minidsms.connect(cost_model="fixed", profile_rate=0.1, change_detection="cusum") as db:
        db.execute("CREATE STREAM S (a INTEGER, b INTEGER)")
        query = db.query("SELECT a FROM S WHERE b = 0 AND a = 0")
        for start in range(0, n, 500):
            db.push("S", {c: v[start : start + 500] for c, v in columns.items()}, ts=np.arange(start, start + 500))
        db.advance(n)
        told = query.decisions()[-1].statistics["changed"]
    since = re.fullmatch(r"d\(\d\|\d\) [\d.?]+ -> [\d.?]+ since ([\d,]+)", told)
    assert since is not None, told
    assert abs(int(since[1].replace(",", "")) - change) <= 2_000
