"""`minidsms ingest SOURCE.. FOLDER`: raw data into the archive of a stream, on Spark."""

from __future__ import annotations

import argparse
from functools import partial

from minidsms.cql.errors import Error
from minidsms.shell.harmless import harmless
from minidsms.shell.progress import progress_bar
from minidsms.shell.reading import text_or_file


def ingest(options: argparse.Namespace) -> int:
    """Carry the command out. Raises Error."""
    from minidsms.spark.ingest import FORMATS, ingest
    from minidsms.spark.session import session

    stream = text_or_file(options.stream)
    form = options.format or _told(options.sources[0])
    if form not in FORMATS and len(options.sources) > 1:
        raise Error(f"of {form} one source is taken at a time")
    given = [option.partition("=") for option in options.option]
    wrong = next((name for name, equals, _ in given if not equals), None)
    if wrong is not None:
        raise Error(f"--option {wrong}: write it as NAME=VALUE")
    with progress_bar(not options.quiet, "ingesting") as tell:
        done = ingest(
            options.sources if form in FORMATS else options.sources[0],
            options.folder,
            stream,
            form,
            distinct=options.distinct.split(",") if options.distinct else options.distinct is not None,
            time_unit=options.time_unit or "ms",
            options={name: value for name, _, value in given},
            spark=partial(session, options.master),
            batch=options.batch,
            progress=tell,
        )
    print(harmless(str(done)))
    return 0


def _told(source: str) -> str:
    """The format that the name of a file tells."""
    name = source.lower().removesuffix(".gz")
    for ending, form in ((".csv", "csv"), (".json", "json"), (".jsonl", "json"), (".parquet", "parquet")):
        if name.endswith(ending):
            return form
    raise Error(f"{source!r}: the format cannot be told by the name\nhelp: --format csv, json, parquet, table, jdbc ..")
