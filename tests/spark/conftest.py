"""One small Spark session for all tests that want one: one worker runs this folder (tests/conftest.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minidsms.spark.session import session
from tests.long.spark_answers import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One core and one task a stage: the tests' data is tiny, and a task costs milliseconds."""
    return session("local[1]", SMALL)
