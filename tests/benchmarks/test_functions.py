"""The functions measured beside pyarrow's give what those give, and none that has an equivalent is left out."""

from __future__ import annotations

import pytest

from benchmarks import functions
from minidsms.functions import LIBRARY

WITHOUT_EQUIVALENT = {
    "width_bucket", "geo_distance", "factorial", "pi", "cot", "degrees", "radians", "cbrt", "gcd", "timestampdiff",
    "timestampadd", "microsecond", "epoch", "epoch_ms", "last_day", "to_timestamp",
}  # fmt: skip
"""pyarrow has no function for them, or, as for EPOCH_MS and EPOCH, reads the same bytes as another type."""


@pytest.mark.parametrize("null_share", [0.0, 0.1])
def test_functions_measured_beside_pyarrow_give_the_same(null_share: float) -> None:
    made = functions.columns(3_000, null_share)
    wrong = {name: functions.wrong(call, function, made) for name, (call, function) in functions.CALLS.items()}
    assert not {name: rows for name, rows in wrong.items() if rows}


def test_every_vectorised_function_is_measured_that_pyarrow_has() -> None:
    measured = {name.split()[0] for name in functions.CALLS}
    assert {n for n, f in LIBRARY.items() if f.of_arrays} - measured == WITHOUT_EQUIVALENT
