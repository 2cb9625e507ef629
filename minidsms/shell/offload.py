"""`minidsms offload CQL FOLDER`: the answer of a query over archives, from Spark, shown or written to files."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error, QueryError
from minidsms.shell.harmless import harmless
from minidsms.shell.progress import progress_bar
from minidsms.shell.reading import read_commit, read_instant, text_or_file
from minidsms.shell.showing import cell, print_table

if TYPE_CHECKING:
    from pyspark.sql import Row


def offload(options: argparse.Namespace) -> int:
    """Carry the command out. Raises Error."""
    from minidsms.spark.progress import described, watched
    from minidsms.spark.reading import reading
    from minidsms.spark.running import measured, prepare
    from minidsms.spark.session import session

    text = text_or_file(options.query)
    if options.output is not None and os.path.exists(options.output):
        raise Error(f"{options.output!r} exists already; name a new folder")
    spark = session(options.master, leaves_classes=options.analyze or not options.explain)
    if options.analyze:
        with progress_bar(not options.quiet, "measuring") as tell, watched(spark, tell):
            measured(text, options.folder, spark)
    ready = prepare(text, options.folder, spark=spark, by=options.by, as_of=read_commit(options.as_of))
    if options.explain:
        print(harmless(ready.text()))
        return 0
    unit = ready.catalog.tick_ns
    at = None if options.at is None else [read_instant(ts, unit, "--at") for ts in options.at]
    until = None if options.until is None else read_instant(options.until, unit)
    with (
        _query_errors(),
        reading(ready.archives),
        progress_bar(not options.quiet, "answering") as tell,
        described(ready.spark, f"offload to {options.output or 'the screen'}"),
        watched(ready.spark, tell),
    ):
        frame = ready.frame(at, until, times=options.times)
        if options.output is None:
            found = frame.orderBy("_ts").limit(options.rows + 1).collect()
        else:
            frame.write.format(options.format or "parquet").save(options.output)
    if options.output is None:
        _show(frame.dtypes, found, options.rows)
    else:
        print(f"the answer is in {harmless(options.output)}", file=sys.stderr)
    return 0


@contextmanager
def _query_errors() -> Iterator[None]:
    """What Spark raises, as an Error of a line: the query's failure where it is one."""
    from pyspark.errors import PySparkException

    from minidsms.spark.offload import FAILED_AT

    try:
        yield
    except PySparkException as error:
        told = re.search(rf"{FAILED_AT}(-?\d+): (.*)", str(error))
        if told is not None:
            raise QueryError(told[2], int(told[1])) from None
        raise Error(f"Spark failed: {str(error).splitlines()[0]}") from None


def _show(dtypes: Sequence[tuple[str, str]], found: Sequence[Row], rows: int) -> None:
    """The first rows, under the names of columns."""
    columns = [(cell(name), kind not in ("string", "boolean")) for name, kind in dtypes]
    shown = [[cell(v) for v in row] for row in found[:rows]]
    print_table("", columns, shown, sys.stdout)
    if len(found) > rows:
        print(f"and more; --rows N shows more than {rows}", file=sys.stderr)
