"""What is kept of rows that have passed comes back as it was."""

from __future__ import annotations

import pytest

from minidsms.aggregates.over import PEERS, OverCall, accumulator
from minidsms.elements import Type
from minidsms.synopses.passed_rows import PassedRows


@pytest.mark.parametrize("function", ["count", "sum", "avg", "min", "max", "first_value", "last_value", "nth_value"])
def test_partitions_come_back_as_they_were(function: str) -> None:
    kept = PassedRows()
    for key, value in ((("a", None), 2**70), ((3, 0.5), 0.1), ((True, ""), float("-inf"))):
        call = OverCall(function, Type.FLOAT, (), (), function, 0, PEERS, 2)
        passed = kept.partitions[key] = accumulator(call)
        passed.extend([value])
    other = PassedRows()
    other.restore(kept.arrays())
    assert list(other.partitions) == list(kept.partitions)
    for key, passed in kept.partitions.items():
        mine = other.partitions[key]
        for aggregate in (passed, mine):
            aggregate.extend([0.25])
        assert type(mine) is type(passed)
        assert mine.result() == passed.result()
