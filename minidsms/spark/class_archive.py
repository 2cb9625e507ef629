"""Spark's classes as Java has them once they are loaded, kept in a file (application class data sharing, JEP 350).

A third of what Spark's start and a first query cost is Java reading and checking classes. The first program on a
terminal whose Java we start leaves an archive of those it has loaded, when it ends; Java maps it in later ones.
`python -m minidsms.spark.class_archive` makes one, as for an image of a container.

Invariant: only complete archives are handed to Java, which trusts the length of a file. It writes an archive's first
bytes last; and one that does not fit the classes that are there Java does without.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from pathlib import Path

_AGAIN_S = 3600
"""How long a program may take to leave an archive, before another is asked for it."""
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""Else Java tells on standard output which classes it does not archive."""


def archive_options(java_home: str, spark_home: str, leaves: bool) -> str:
    """The options by which Java takes the archive of Spark's classes, or else, if it may, leaves one at its end.

    leaves: Java then ends some 15 processor seconds after the program, and holds its output open so long.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    archive = Path(base) / "minidsms" / f"spark-{_version(java_home, spark_home)}.jsa"
    if not re.fullmatch(r"[\w./+-]+", str(archive)) or not Path(java_home, "lib/server/classes.jsa").exists():
        return ""  # what stands in the options is split at blanks and colons; and ours only adds to Java's own
    coming = archive.with_suffix(".coming")
    try:
        if archive.exists() or _is_adopted(coming, archive):
            return f"-XX:SharedArchiveFile={archive} {_QUIET}"
        if not leaves or (coming.exists() and time.time() - coming.stat().st_mtime < _AGAIN_S):
            return ""
        archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        coming.unlink(missing_ok=True)
        coming.touch(exist_ok=False)
    except OSError:  # nowhere to keep it, or another program is quicker
        return ""
    return f"-XX:ArchiveClassesAtExit={coming} {_QUIET}"


def _version(java_home: str, spark_home: str) -> str:
    """What an archive is good for: one Java and one Spark, where they are."""
    told = []
    for place in (os.path.join(java_home, "bin", "java"), os.path.join(spark_home, "jars")):
        there = os.path.realpath(place)
        told.append(f"{there} {os.stat(there).st_mtime_ns}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _is_adopted(coming: Path, archive: Path) -> bool:
    """Whether a complete archive was left, which is then the archive."""
    try:
        with coming.open("rb") as file:
            if not any(file.read(4)):
                return False
            os.fsync(file.fileno())
    except FileNotFoundError:
        return False
    coming.replace(archive)
    return True


def main() -> None:
    """Let Java leave an archive now, with what queries by DataFrame operations and by engines load."""
    from pyspark import SparkContext
    from pyspark.find_spark_home import _find_spark_home

    from minidsms.connection import connect
    from minidsms.spark import run
    from minidsms.spark.java import java_home
    from minidsms.spark.session import JAVA_OPTIONS, session, settings

    java = java_home()
    options = archive_options(java, _find_spark_home(), leaves=True)
    if "ArchiveClassesAtExit" not in options:
        print("there is one" if options else "there can be none, or one is coming")
        return
    print("starting Spark and running queries, so that Java loads what they need; half a minute", flush=True)
    spark = session("local[*]", {JAVA_OPTIONS: f"{settings('local[*]')[JAVA_OPTIONS]} {options}"})
    with tempfile.TemporaryDirectory() as folder:
        with connect() as db:
            db.execute(f"CREATE STREAM S (k INTEGER, v FLOAT) ARCHIVE '{folder}'")
            db.push("S", [(i % 10, i / 2) for i in range(1000)], ts=range(1000))
        for way in ("frames", "engines", "replay"):
            run("SELECT k, AVG(v), MAX(v) FROM S [RANGE 30] GROUP BY k", folder, spark=spark, by=way).count()
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.proc.stdin.close()
    gateway.proc.wait()
    print("done" if archive_options(java, _find_spark_home(), leaves=False) else "Java left none")


if __name__ == "__main__":
    main()
