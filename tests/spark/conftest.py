"""One small Spark session for all tests that want one: they stand in the group `spark`, which one worker runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minidsms.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """Two cores, and few tasks: the tests' data is tiny, and a task costs milliseconds."""
    few = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2", "spark.driver.memory": "1g"}
    return session("local[2]", few)
