"""The command line of `minidsms offload`. Nothing heavy is imported here."""

from __future__ import annotations

from typing import Any


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
    offload.add_argument("--rows", type=int, default=100, metavar="N", help="most rows shown (default 100)")
    offload.add_argument("--master", metavar="URL", help="where Spark runs (default: all cores of this machine)")
    offload.add_argument("--by", choices=("frames", "engines"), help="how (default: what is faster)")
    offload.add_argument("--explain", action="store_true", help="only show how it would be carried out")
