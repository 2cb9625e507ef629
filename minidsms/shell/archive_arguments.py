"""The command lines of `minidsms archive` and `minidsms replay`. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
from typing import Any


def add_archive(commands: Any) -> None:
    """The command's part of the command line."""
    parser = commands.add_parser("archive", help="look at archives, compact them, verify them")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, meaning in (
        ("inspect", "show what the archives hold"),
        ("compact", "merge small files into large ones; nobody may write or read the archives meanwhile"),
        ("verify", "read everything and say what is wrong"),
        ("expire", "remove the files of streams that are older than what is to be kept"),
    ):
        sub = actions.add_parser(action, help=meaning, description=meaning)
        sub.add_argument("folder", metavar="FOLDER", help="an archive, or a folder of archives")
        if action == "inspect":
            sub.add_argument("--files", action="store_true", help="show every file too")
            sub.add_argument("--log", action="store_true", help="show the commits that are remembered too")
        if action == "expire":
            sub.add_argument("--keep", metavar="TIME", required=True, help="how much of a stream: '90 DAYS'")


def add_replay(commands: Any) -> None:
    """The command's part of the command line."""
    meaning = "replay archives through queries"
    parser = commands.add_parser("replay", help=meaning, description=meaning)
    parser.add_argument("folder", metavar="FOLDER", help="an archive, or a folder of archives")
    parser.add_argument("-q", "--query", metavar="CQL", action="append", default=[], help="a query; may be repeated")
    parser.add_argument("-f", "--file", metavar="FILE", help="a file of statements")
    parser.add_argument("--from", dest="from_", metavar="TS", help="begin at this instant: ticks, or an ISO time")
    parser.add_argument("--to", metavar="TS", help="end after this instant")
    parser.add_argument("--as-of", metavar="COMMIT", help="the archives as they were then: a number, or an ISO time")
    parser.add_argument("--speed", type=_speed, metavar="X", help="times real time (default: as fast as possible)")
    parser.add_argument("--engine", choices=("local", "spark"), default="local", help="what reads (default: local)")
    parser.add_argument("--follow", action="store_true", help="then go on with what is added, until interrupted")
    parser.add_argument("-o", "--output", metavar="PATH", help="write the answers to a file, or to a folder if several")
    parser.add_argument(
        "--format", choices=("table", "csv", "json", "stream"), help="of answers shown (default: table)"
    )
    parser.add_argument("--rows", type=int, default=100, metavar="N", help="most rows of a table; 0: all (default 100)")
    parser.add_argument("--stats", action="store_true", help="show what every operator did, on the standard error")
    parser.add_argument("--quiet", action="store_true", help="no progress, no notes on what was written")


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no speed: give a number above 0")
    return speed
