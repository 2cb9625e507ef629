"""Every operation of the engine on files, sockets and clocks fails, in turn: see `tests.long.fault_cases`."""

from __future__ import annotations

import pytest

from tests.long.fault_cases import CASES, run_all, run_case
from tests.long.faults import Faults, injected

STRIDES = {
    "a topic written": 8,
    "a topic read": 8,
    "a compaction": 5,
    "a clock": 3,
    "an archive": 3,
    "a folder": 67,
    "a replay": 3,
}
"""A broker takes its time, and these run often; `make soak` leaves none out."""
LASTING = {"a csv file": 2, "an appended file": 2, "an archive": 2, "rolling files": 2, "lines served": 1}
"""Where what fails goes on failing, too, by stride; `make soak` lets it for all."""


@pytest.mark.parametrize("name", CASES)
def test_an_operation_that_fails_is_an_error_and_harms_nothing_else(name: str) -> None:
    runs = run_all(name, stride=STRIDES.get(name, 1))
    assert runs > 2, "nothing failed"


@pytest.mark.parametrize("name", LASTING)
def test_what_goes_on_failing_is_an_error_and_harms_nothing_else(name: str) -> None:
    run_all(name, lasting=True, stride=LASTING[name])


def test_the_layer_tells_what_failed_and_is_gone_afterwards() -> None:
    failed = run_case("an appended file", 3, lasting=True).failed
    assert len(failed) > 1
    before = open
    with injected(Faults(1)):
        assert open is not before
        open(__file__, "rb").close()  # not asked for by the engine
    assert open is before
