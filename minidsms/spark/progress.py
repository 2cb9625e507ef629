"""What Spark calls the jobs of this thread, and how far it is with them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from minidsms.process.threads import begun
from minidsms.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_S = 0.3
_DESCRIPTION = "spark.job.description"


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """While the context lasts, Spark's page and history call the jobs of this thread so."""
    if is_remote(spark):
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, f"minidsms: {what}")
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


@contextmanager
def watched(spark: SparkSession, tell: Callable[[float], Any] | None) -> Iterator[None]:
    """While the context lasts, tell the fraction of the tasks that are done, of all stages that have begun.

    Over Spark Connect nothing is told.
    """
    if tell is None or is_remote(spark):
        yield
        return
    has_ended = threading.Event()
    watching = begun(partial(_watch, spark, tell, has_ended), "minidsms progress")
    try:
        yield
    finally:
        has_ended.set()
        watching.join()
    tell(1.0)


def _watch(spark: SparkSession, tell: Callable[[float], Any], has_ended: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    stages: dict[int, tuple[int, int]] = {}
    while not has_ended.wait(_LOOK_S):
        # Stages that are active no more have done all their tasks.
        stages = {number: (tasks, tasks) for number, (tasks, _) in stages.items()}
        for number in tracker.getActiveStageIds():
            info = tracker.getStageInfo(number)
            if info is not None:
                stages[number] = (info.numTasks, info.numCompletedTasks)
        if stages:
            tell(sum(done for _, done in stages.values()) / max(sum(tasks for tasks, _ in stages.values()), 1))
