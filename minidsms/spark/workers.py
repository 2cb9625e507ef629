"""Whether Spark's workers have minidsms: asked once of each application, before engines are sent there.

On the machine itself they have what this process has. On a cluster they have what was installed, or sent along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from minidsms import __version__
from minidsms.cql.errors import Error
from minidsms.spark.session import is_remote, tasks_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_HINT = "install it there, or send it along (docs/spark.md, On a cluster), or run the query by DataFrame operations"
_asked: set[str] = set()
"""Applications of Spark whose workers have it."""


def check_workers(spark: SparkSession) -> None:
    """Error where engines are to run in tasks, and the workers have no minidsms, or another version."""
    remote = is_remote(spark)
    application = str(spark.conf.get("spark.app.id", "") if remote else spark.sparkContext.applicationId)
    if _is_here(spark) or application in _asked:
        return
    tasks = tasks_of(spark)
    if remote:
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(_versions(_version()), "version string").collect()
        found = [version for (version,) in rows]
    else:  # what tells of workers without Arrow, too
        context = spark.sparkContext
        found = context.parallelize(range(tasks), tasks).map(_version()).collect()
    told = missing(found)
    if told is not None:
        raise Error(f"{told}\nhelp: {_HINT}")
    _asked.add(application)


def _is_here(spark: SparkSession) -> bool:
    """Whether workers are this machine's, with what this process has."""
    if is_remote(spark):
        return False
    master = str(spark.sparkContext.master)
    return master.startswith("local") and not master.startswith("local-cluster")


def _version() -> Callable[[int], str]:
    """What a task does: it must not need minidsms to be unpickled, so it is no function of this module's own."""

    def version(_: int) -> str:
        try:
            from minidsms import __version__ as there
        except ImportError as error:
            return f"no minidsms ({error})"
        return f"minidsms {there}"

    return version


def _versions(version: Callable[[int], str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The same over rows."""

    def versions(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            yield pyarrow.record_batch([[version(i) for i in range(len(batch))]], ["version"])

    return versions


def missing(found: Iterable[str]) -> str | None:
    """What is wrong with what workers have, in words; None where nothing is."""
    for there in sorted(set(found)):
        if there != f"minidsms {__version__}":
            return f"Spark's workers have {there}, and this process minidsms {__version__}"
    return None
