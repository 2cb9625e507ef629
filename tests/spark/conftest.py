"""One small Spark session for all tests that want one: one worker runs this folder (tests/conftest.py)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from minidsms.spark.session import activate, session
from tests import sftp_server
from tests.long.spark_answers import SMALL
from tests.object_store import environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session", autouse=True)
def _object_store() -> Iterator[None]:
    """Spark's workers know from their start on where the tests' object store is, and trust their SSH server."""
    with patch.dict(os.environ, {**environment(), **sftp_server.environment()}):
        yield


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One core and one task a stage: the tests' data is tiny, and a task costs milliseconds."""
    return session("local[1]", SMALL)


@pytest.fixture(autouse=True)
def _active(request: pytest.FixtureRequest) -> None:
    """Whichever session another test has left active, this one is."""
    if "spark" in request.fixturenames:
        activate(request.getfixturevalue("spark"))
