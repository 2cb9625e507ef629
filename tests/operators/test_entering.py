"""Entering: what comes into a window, as a stream; of one that slides, at multiples of L."""

from __future__ import annotations

from minidsms.elements import Schema, Type
from minidsms.operators.entering import Entering
from tests.operators.harness import feed, queue

S = Schema.of(("a", Type.INTEGER))


def test_rows_that_leave_are_passed_over() -> None:
    changes = [(5, 1, (1,)), (5, 1, (1,)), (10, -1, (1,)), (10, -1, (1,)), (10, 1, (2,)), (15, -1, (2,))]
    for cuts in ((), (5,), (5, 10, 12)):
        assert feed(Entering(queue(S)), [changes], cuts) == {5: {(1,): 2}, 10: {(2,): 1}}
