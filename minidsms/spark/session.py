"""The Spark session: started once for a process, and reused.

Invariants: what runs here binds to loopback only and shows no web page; workers use this interpreter; a session that
the program has already is taken as it is.  docs/spark.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMPILE_ALL = "-XX:-DontCompileHugeMethods"
LOOPBACK = "127.0.0.1"
STARTING = "starting Spark, a few seconds .."
NEEDED = {
    # What follows from filters is inferred anew at every node, in a time that doubles with each; over frames that are
    # shared it can even fail, with a key that a union's constraints do not find.
    "spark.sql.constraintPropagation.enabled": "false",
}
"""What queries need of a session, whoever has started it."""

_lock = threading.Lock()


def session(master: str | None = None, config: Mapping[str, str] | None = None) -> SparkSession:
    """The process's Spark session; the first call starts one, where the program has none yet.

    master: where Spark runs; None is `SPARK_MASTER` of the environment, or all cores of this machine.  config: Spark
    settings over ours; both count for the first call only.  Raises Error where pyspark or Java is missing.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Error("Spark is not installed; pip install 'minidsms[spark]' brings it") from None
    with _lock:
        # Of this thread, or else of whichever thread has started one.
        active = SparkSession.getActiveSession() or SparkSession._instantiatedSession
        if active is None or active.sparkContext._jsc is None:
            active = _start(master or os.environ.get("SPARK_MASTER") or "local[*]", config or {})
        return active


def prepared(spark: SparkSession) -> SparkSession:
    """A session over the same Spark whose settings are what queries need; itself where they are."""
    if all(spark.conf.get(name, None) == value for name, value in NEEDED.items()):
        return spark
    own = spark.newSession()
    for name, value in NEEDED.items():
        own.conf.set(name, value)
    return own


def settings(master: str) -> dict[str, str]:
    """The settings a session of ours starts with."""
    chosen = {
        "spark.master": master,
        "spark.app.name": "minidsms",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Else every column that is made asks Java several times where in the program that was.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Java leaves long methods uncompiled unless told; what Spark makes of wide sums is long, and half as fast then.
        "spark.driver.extraJavaOptions": _COMPILE_ALL,
        "spark.executor.extraJavaOptions": _COMPILE_ALL,
        "spark.sql.session.timeZone": "UTC",
        # A partition that turns out to hold most of the rows of a join is split; many small ones become few.
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.skewJoin.enabled": "true",
        **NEEDED,
    }
    if master.startswith("local"):
        chosen |= {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.memory": f"{_memory_mb()}m",
            "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
            "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "minidsms-spark-warehouse"),
        }
    return chosen


def _memory_mb() -> int:
    """Half of this machine's memory, between 1 and 16 GB: in local mode one Java machine does all the work."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (ValueError, OSError, AttributeError):  # no such figure on this system
        total = 4096
    return max(1024, min(total // 2, 16384))


def _start(master: str, config: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    chosen = settings(master) | dict(config)
    if chosen["spark.master"].startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
        os.environ["JAVA_HOME"] = java_home()
    conf = SparkConf().setAll(list(chosen.items()))
    with tempfile.TemporaryFile() as said, _starting_line():
        # What Java says while it starts is of interest only if it does not.
        try:
            gateway = launch_gateway(conf, {"stderr": said})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-3:]
            raise Error("Java did not start: " + " / ".join(last)) from None
        context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("ERROR")
        return SparkSession(context)


@contextmanager
def _starting_line() -> Iterator[None]:
    """A line that says what takes so long, on a terminal and as long as it takes."""
    if not sys.stderr.isatty():
        yield
        return
    sys.stderr.write(STARTING)
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r" + " " * len(STARTING) + "\r")
        sys.stderr.flush()
