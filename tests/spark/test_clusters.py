"""On masters with workers of their own: queries are answered there, and workers without minidsms are told."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import minidsms
from minidsms.spark import java
from minidsms.spark.session import LOOPBACK
from minidsms.spark.workers import check_workers, missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import minidsms
from minidsms.spark import run
from minidsms.spark.session import session

spark = session(config={"spark.sql.shuffle.partitions": "2"})
print("master", spark.sparkContext.master)
query = "SELECT k, COUNT(*) AS n FROM S [RANGE 10] GROUP BY k"
for by in ("frames", "engines"):
    try:
        print(by, sorted(map(tuple, run(query, sys.argv[2], by=by).collect())))
    except minidsms.Error as error:
        print(by, "refused:", *str(error).splitlines())
"""


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A folder of an archive, and what the live engine has answered over it, as the program prints it."""
    folder = str(tmp_path_factory.mktemp("cluster"))
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{folder}'")
        query = db.query("SELECT k, COUNT(*) AS n FROM S [RANGE 10] GROUP BY k")
        db.push("S", [(i % 3,) for i in range(40)], ts=list(range(0, 80, 2)))
        db.advance(78)
        return folder, str(sorted((c.ts, c.sign, *c.row) for c in query.fetch()))


def _submitted(folder: str, program: Path, master: str, python: str = sys.executable) -> str:
    """What the program says, given to `spark-submit`; PYTHONPATH stays at home, so workers have what is installed."""
    program.write_text(_PROGRAM)
    submit = [f"{_home()}/bin/spark-submit", "--master", master, "--executor-memory", "512m", "--driver-memory", "512m"]
    for name in ("driver", "executor"):
        submit += ["--conf", f"spark.{name}.extraJavaOptions={_LIGHT}"]
    submit += ["--conf", f"spark.driver.bindAddress={LOOPBACK}", "--conf", f"spark.driver.host={LOOPBACK}"]
    environment = _environment() | {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [*submit, str(program), str(Path(__file__).parents[2]), folder],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=500,
    )
    assert "master" in done.stdout, done.stderr[-3000:]
    return done.stdout


def _environment() -> dict[str, str]:
    left_out = ("PYSPARK_GATEWAY_PORT", "PYTHONPATH", "PYSPARK_SUBMIT_ARGS")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"JAVA_HOME": java.java_home(), "SPARK_LOCAL_IP": LOOPBACK, "SPARK_PUBLIC_DNS": LOOPBACK}


def _home() -> str:
    from pyspark.find_spark_home import _find_spark_home

    return str(_find_spark_home())


@contextlib.contextmanager
def _standalone() -> Iterator[str]:
    """The address of a master with a worker of two cores."""
    classes, started = "org.apache.spark.deploy", []
    daemon = [f"{_home()}/bin/spark-class"]
    environment = _environment() | {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": _LIGHT}

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([*daemon, *arguments], stderr=subprocess.PIPE, text=True, env=environment)
        started.append(process)
        return process

    try:
        master = start(f"{classes}.master.Master", "--host", LOOPBACK, "--port", "0", "--webui-port", "0")
        assert master.stderr is not None
        address = next(found[0] for line in master.stderr if (found := re.search(r"spark://[\d.]+:\d+", line)))
        worker = ["--host", LOOPBACK, "--cores", "2", "--memory", "1g", "--webui-port", "0", address]
        start(f"{classes}.worker.Worker", *worker)
        yield address
    finally:
        for process in started:
            process.kill()
            process.communicate()


@pytest.mark.long
def test_a_local_cluster_answers_both_ways(archived: tuple[str, str], tmp_path: Path) -> None:
    folder, answer = archived
    told = _submitted(folder, tmp_path / "program.py", "local-cluster[2,1,1024]")
    assert told.splitlines() == ["master local-cluster[2,1,1024]", f"frames {answer}", f"engines {answer}"]


@pytest.mark.long
def test_a_standalone_master_with_a_worker_answers_both_ways(archived: tuple[str, str], tmp_path: Path) -> None:
    folder, answer = archived
    with _standalone() as master:
        told = _submitted(folder, tmp_path / "program.py", master)
    assert told.splitlines() == [f"master {master}", f"frames {answer}", f"engines {answer}"]


@pytest.mark.long
def test_workers_without_minidsms_answer_by_frames_and_engines_are_refused(
    archived: tuple[str, str], tmp_path: Path
) -> None:
    folder, answer = archived
    venv.create(tmp_path / "bare", symlinks=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    _, frames, engines = _submitted(folder, tmp_path / "program.py", "local-cluster[1,1,1024]", python).splitlines()
    assert frames == f"frames {answer}"
    assert engines.startswith("engines refused: Spark's workers have no minidsms (No module named 'minidsms')")
    assert "send it along" in engines


def test_what_workers_lack_is_told_in_words(spark: SparkSession) -> None:
    check_workers(spark)  # here they have what this process has
    here = f"minidsms {minidsms.__version__}"
    assert missing([here, here]) is None
    assert missing([here, "minidsms 0.0.9"]) == f"Spark's workers have minidsms 0.0.9, and this process {here}"
