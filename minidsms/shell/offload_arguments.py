"""The command lines of `minidsms offload` and `minidsms ingest`. Nothing heavy is imported here."""

from __future__ import annotations

from typing import Any

from minidsms.cql.words import TICK_NS


def add_offload(commands: Any) -> None:
    """The command's part of the command line."""
    meaning = "answer a query over archives with Spark"
    offload = commands.add_parser("offload", help=meaning, description=meaning)
    offload.add_argument("query", metavar="CQL", help="a query, or a file of one after the views it needs")
    offload.add_argument("folder", metavar="FOLDER", help="a folder of archives, named after streams and relations")
    offload.add_argument("-o", "--output", metavar="PATH", help="write the answer into a new folder of files")
    offload.add_argument("--format", choices=("parquet", "csv", "json"), help="of the files (default: parquet)")
    offload.add_argument("--at", metavar="TS", action="append", help="what the relation holds then; may be repeated")
    offload.add_argument("--until", metavar="TS", help="the last instant: ticks, or an ISO time (default: the data's)")
    offload.add_argument("--as-of", metavar="COMMIT", help="the archives as they were then: a number, or an ISO time")
    offload.add_argument("--times", action="store_true", help="times as timestamps, and _time beside _ts")
    offload.add_argument("--rows", type=int, default=100, metavar="N", help="most rows shown (default 100)")
    offload.add_argument("--master", metavar="URL", help="where Spark runs (default: all cores of this machine)")
    offload.add_argument("--quiet", action="store_true", help="no progress")
    offload.add_argument("--by", choices=("frames", "engines", "replay"), help="how (default: what costs least)")
    offload.add_argument("--explain", action="store_true", help="only show how it would be carried out")
    every = "with --explain: carry it out by every way, and let the archives remember what a row costs"
    offload.add_argument("--analyze", action="store_true", help=every)


def add_ingest(commands: Any) -> None:
    """The command's part of the command line."""
    meaning = "add raw data to the archive of a stream, with Spark"
    ingest = commands.add_parser("ingest", help=meaning, description=meaning)
    ingest.add_argument("sources", metavar="SOURCE", nargs="+", help="files, folders, patterns; or a table")
    ingest.add_argument("folder", metavar="FOLDER", help="a folder of archives")
    stream = "CREATE STREAM .. TIMESTAMP BY .., or a file of it"
    ingest.add_argument("--stream", metavar="CQL", required=True, help=stream)
    ingest.add_argument("--format", help="csv, json, parquet, table, jdbc .. (default: as the name tells)")
    only = "leave out rows that are equal in these columns (all, if none is named), also to those of the archive"
    ingest.add_argument("--distinct", metavar="COLUMN,..", nargs="?", const="", help=only)
    ingest.add_argument("--batch", metavar="NAME", help="leave everything out where a batch of this name is there")
    ingest.add_argument("--option", metavar="NAME=VALUE", action="append", default=[], help="of Spark's reader")
    ingest.add_argument("--time-unit", choices=TICK_NS, help="tick of a new archive")
    ingest.add_argument("--master", metavar="URL", help="where Spark runs (default: all cores of this machine)")
    ingest.add_argument("--quiet", action="store_true", help="no progress")
