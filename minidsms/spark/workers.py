"""Whether Spark's workers have minidsms: asked once of each application, before engines are sent there.

On the machine itself they have what this process has. On a cluster they have what was installed, or sent along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from minidsms import __version__
from minidsms.cql.errors import Error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = "install it there, or send it along (docs/spark.md, On a cluster), or run the query by DataFrame operations"
_asked: set[str] = set()
"""Applications of Spark whose workers have it."""


def check_workers(spark: SparkSession) -> None:
    """Error where engines are to run in tasks, and the workers have no minidsms, or another version."""
    context = spark.sparkContext
    application = str(context.applicationId)
    master = str(context.master)
    is_here = master.startswith("local") and not master.startswith("local-cluster")
    if is_here or application in _asked:
        return
    tasks = context.defaultParallelism
    told = missing(context.parallelize(range(tasks), tasks).map(_version()).collect())
    if told is not None:
        raise Error(f"{told}\nhelp: {_HINT}")
    _asked.add(application)


def _version() -> Callable[[int], str]:
    """What a task does: it must not need minidsms to be unpickled, so it is no function of this module's own."""

    def version(_: int) -> str:
        try:
            from minidsms import __version__ as there
        except ImportError as error:
            return f"no minidsms ({error})"
        return f"minidsms {there}"

    return version


def missing(found: Iterable[str]) -> str | None:
    """What is wrong with what workers have, in words; None where nothing is."""
    for there in sorted(set(found)):
        if there != f"minidsms {__version__}":
            return f"Spark's workers have {there}, and this process minidsms {__version__}"
    return None
