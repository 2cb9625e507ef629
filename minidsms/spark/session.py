"""The Spark session: started once for a process, and reused.

Invariants: this package is a guest, so what the program's session, `spark-submit`, `spark-defaults.conf` or the
environment say counts, and our settings are defaults; what we start on this machine binds to loopback only, shows no
web page, and its workers use this interpreter.  docs/spark.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.spark.class_archive import archive_options
from minidsms.spark.java import java_home

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_COMPILE_ALL = "-XX:-DontCompileHugeMethods"
_COMPILE_LATER = " ".join(
    f"-XX:Tier4{name}={value}"
    for name, value in {
        "InvocationThreshold": 500_000,
        "MinInvocationThreshold": 60_000,
        "CompileThreshold": 1_500_000,
        "BackEdgeThreshold": 4_000_000,
    }.items()
)
"""Java optimizes what has run a hundred times as often as by default: most of what it does so for in a short program
never pays, and took a third of a first query's processor time.
"""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOOPBACK = "127.0.0.1"
STARTING = "starting Spark, a few seconds .."
NEEDED = {
    # What follows from filters is inferred anew at every node, in a time that doubles with each; over frames that are
    # shared it can even fail, with a key that a union's constraints do not find.
    "spark.sql.constraintPropagation.enabled": "false",
}
"""What queries need of a session, whoever has started it."""

_lock = threading.Lock()


def session(
    master: str | None = None, config: Mapping[str, str] | None = None, leaves_classes: bool = True
) -> SparkSession:
    """The process's Spark session; the first call starts one, where the program has none yet.

    master: where Spark runs; None is what `spark-submit` and the like say, else `SPARK_MASTER` of the environment, else
    all cores of this machine.  config: Spark settings over all others.  leaves_classes: Java may leave an archive of
    its classes when it ends; not if it loads few, for there is one archive for all. All count for the first call only.
    Raises Error where Java is missing.
    """
    from pyspark.sql import SparkSession

    with _lock:
        if "SPARK_REMOTE" in os.environ:
            remote: SparkSession = SparkSession.builder.getOrCreate()
            return remote
        # Of this thread, or else of whichever thread has started one.
        active = SparkSession.getActiveSession() or SparkSession._instantiatedSession
        if active is None or active.sparkContext._jsc is None:
            active = _start(dict(config or {}) | ({"spark.master": master} if master else {}), leaves_classes)
        return active


def prepared(spark: SparkSession) -> SparkSession:
    """A session like this one whose settings are what queries need; itself where they are."""
    if all(spark.conf.get(name, None) == value for name, value in NEEDED.items()):
        return spark
    return with_settings(spark, NEEDED)


def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session like this one, with all that has been set and registered while it ran, and these settings."""
    own: SparkSession
    if is_remote(spark):
        own = spark.cloneSession()  # type: ignore[attr-defined]
    else:  # which a Python session has no name for
        own = type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in settings.items():
        own.conf.set(name, value)
    return own


def tasks_of(spark: SparkSession) -> int:
    """How many tasks run at a time, as far as Spark tells: over Spark Connect, into how many it cuts a range."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions as F

    return spark.range(4096).select(F.spark_partition_id()).distinct().count()


def current(spark: SparkSession) -> SparkSession:
    """The active session, in which Spark looks for formats and whether a name is taken; this one, where none is."""
    from pyspark.sql import SparkSession

    return spark if is_remote(spark) else SparkSession.getActiveSession() or spark


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Let a session be the active one for a while."""
    before = current(spark)
    activate(spark)
    try:
        yield
    finally:
        activate(before)


def activate(spark: SparkSession) -> None:
    """Let a session be the active one."""
    if current(spark) is not spark:
        spark.createDataFrame([], "nothing int")


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, whose driver is another process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def given() -> dict[str, str]:
    """The Spark settings that are there before Java starts: `spark-defaults.conf`, then `PYSPARK_SUBMIT_ARGS`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--conf", "-c", action="append", default=[])
    options = {"--master": "spark.master", "--name": "spark.app.name", "--driver-memory": "spark.driver.memory"}
    options["--driver-java-options"] = JAVA_OPTIONS
    for option, name in options.items():
        parser.add_argument(option, dest=name)
    parser.add_argument("--properties-file", default=_defaults_file())
    said, _ = parser.parse_known_args(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    found = _properties(said.properties_file)
    found |= dict(entry.split("=", 1) for entry in said.conf if "=" in entry)
    return found | {name: value for name in options.values() if (value := getattr(said, name)) is not None}


def _defaults_file() -> str:
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(_find_spark_home(), "conf")
    return os.path.join(folder, "spark-defaults.conf")


def _properties(path: str) -> dict[str, str]:
    """A file of Java properties, as Spark's are: a name, then blanks, = or :, then the value."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except OSError:
        return {}
    pairs = [re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def settings(master: str) -> dict[str, str]:
    """What a session of ours has where nobody says otherwise."""
    chosen = {
        "spark.master": master,
        "spark.app.name": "minidsms",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Else every column that is made asks Java several times where in the program that was.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Java leaves long methods uncompiled unless told; what Spark makes of wide sums is long, and half as fast then.
        JAVA_OPTIONS: _COMPILE_ALL,
        "spark.executor.extraJavaOptions": _COMPILE_ALL,
        "spark.sql.session.timeZone": "UTC",
        # A partition that turns out to hold most of the rows of a join is split; many small ones become few.
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.skewJoin.enabled": "true",
        **NEEDED,
    }
    if master.startswith("local"):
        # On two cores a query took no longer so, and a good half of the memory.
        collector = " -XX:+UseSerialGC" if (os.cpu_count() or 1) <= 2 else ""
        chosen |= {
            JAVA_OPTIONS: f"{_COMPILE_ALL} {_COMPILE_LATER}{collector}",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
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


def _start(config: Mapping[str, str], leaves_classes: bool) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if "PYSPARK_GATEWAY_PORT" in os.environ:  # `spark-submit` has started Java and this program
        SparkContext._ensure_initialized()
        conf = SparkConf()
        for name, value in config.items():
            conf.set(name, value)
        for name, value in settings(conf.get("spark.master", _master())).items():
            # By then it is too late for what concerns this machine's Java.
            if name in NEEDED or name.startswith(("spark.sql.", "spark.python.")):
                conf.setIfMissing(name, value)
        context = SparkContext(conf=conf)
    else:
        context = _started(config, leaves_classes and sys.stdout.isatty())
    return SparkSession(context)


def _master() -> str:
    return os.environ.get("SPARK_MASTER") or "local[*]"


def _started(config: Mapping[str, str], leaves_classes: bool) -> SparkContext:
    """Spark, with a Java of our own."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.java_gateway import launch_gateway

    there = given()
    master = config.get("spark.master") or there.get("spark.master") or _master()
    is_local = master.startswith("local")
    home, ours = java_home(), settings(master)
    if JAVA_OPTIONS not in there | dict(config):
        ours[JAVA_OPTIONS] += f" {archive_options(home, _find_spark_home(), leaves_classes)}"
    ours = {name: value for name, value in ours.items() if name not in there} | dict(config)
    os.environ.setdefault("PYSPARK_PYTHON", there.get("spark.pyspark.python", sys.executable))
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    os.environ["JAVA_HOME"] = home
    conf = SparkConf().setAll(list(ours.items()))
    with tempfile.TemporaryFile() as said, _starting_line():
        # What Java says while it starts is of interest only if it does not.
        try:
            gateway = launch_gateway(conf, {"stderr": said})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-3:]
            raise Error("Java did not start: " + " / ".join(last)) from None
        context = SparkContext(conf=conf, gateway=gateway)
        if is_local:
            context.setLogLevel("ERROR")
        return context


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
