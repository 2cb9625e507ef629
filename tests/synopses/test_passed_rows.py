"""What is kept of rows that have passed comes back as it was."""

from __future__ import annotations

import pytest

from minidsms.aggregates.over import PEERS, OverCall, accumulator
from minidsms.elements import Type
from minidsms.synopses.passed_rows import Passed, PassedRows


@pytest.mark.parametrize("function", ["count", "sum", "avg", "min", "max", "first_value", "last_value", "nth_value"])
def test_partitions_come_back_as_they_were(function: str) -> None:
    kept = PassedRows()
    for key, value in ((("a", None), 2**70), ((3, 0.5), 0.1), ((True, ""), float("-inf"))):
        call = OverCall(function, Type.FLOAT, (), (), function, 0, PEERS, 2)
        passed = kept.partitions[key] = Passed(accumulator(call))
        passed.rows, passed.keys = 3, 2
        assert passed.aggregate is not None
        passed.aggregate.extend([value])
    kept.partitions[("none",)] = Passed(None)
    other = PassedRows()
    other.restore(kept.arrays())
    assert list(other.partitions) == list(kept.partitions)
    for key, passed in kept.partitions.items():
        mine = other.partitions[key]
        assert (mine.rows, mine.keys) == (passed.rows, passed.keys)
        if passed.aggregate is None or mine.aggregate is None:
            assert mine.aggregate is passed.aggregate
            continue
        for aggregate in (passed.aggregate, mine.aggregate):
            aggregate.extend([0.25])
        assert type(mine.aggregate) is type(passed.aggregate)
        assert mine.aggregate.result() == passed.aggregate.result()
