"""The command `minidsms`: run files of CQL or STREAM scripts, explain queries, look after archives.

Exit codes: 0 done, 1 an error in what was read or asked (shown on the standard error), 2 a wrong command line, 130
interrupted. Nothing heavy is imported before the command line is known to be right.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from minidsms.shell.archive_arguments import add_archive

_EPILOG = """examples:
  minidsms run queries.cql                run a file of statements and show the answers
  minidsms run script.txt --stats         run a script of the STREAM prototype, then show figures
  minidsms run q.cql -o out.parquet       write the answers to a file
  minidsms explain "SELECT .." --file declarations.cql
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if sys.stdout is None:
        # Started with the standard output closed: there is nowhere to show anything.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 open as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What the terminal's encoding lacks is written out rather than refused.
            stream.reconfigure(errors="backslashreplace")
    try:
        parser = _parser()
        options = parser.parse_args(arguments)
        if options.command is None:
            parser.print_help()
            return 0
        return _command(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has seen enough; Python must not complain about it once more at exit.
        _give_up_stdout()
        return 1
    except OSError as error:
        # A full disk behind the standard output, for example; files named in a job raise errors of their own.
        _give_up_stdout()
        print(f"error: the standard output cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1


def _give_up_stdout() -> None:
    """What is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(options: argparse.Namespace) -> int:
    from minidsms.cql.errors import Error
    from minidsms.shell.showing import harmless

    try:
        if options.command == "run":
            from minidsms.shell.run import run

            return run(options)
        if options.command == "archive":
            from minidsms.shell.archive_command import archive

            return archive(options)
        from minidsms.shell.explain import explain

        return explain(options)
    except Error as error:
        text = str(error)
        print(harmless(text if text.startswith("error:") else f"error: {text}"), file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="minidsms",
        description="Continuous queries in CQL over data streams, answered exactly at every instant.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    units = ("ns", "us", "ms", "s", "m", "h", "d")

    run = commands.add_parser("run", help="run a CQL file or a STREAM script to the end of its sources")
    run.add_argument("file", metavar="FILE", help='statements of CQL, or a STREAM script; "-" is the standard input')
    run.add_argument("-o", "--output", metavar="PATH", help="write the answers to a file, or to a folder if several")
    run.add_argument("--format", choices=("table", "csv", "json", "stream"), help="of answers shown (default: table)")
    run.add_argument("--until", metavar="TS", help="stop after this instant: ticks, or an ISO time")
    run.add_argument("--rows", type=_count, default=100, metavar="N", help="most rows of a table; 0: all (default 100)")
    run.add_argument("--stats", action="store_true", help="show what every operator did, on the standard error")
    run.add_argument("--quiet", action="store_true", help="no progress, no notes on what was written")
    run.add_argument("--time-unit", choices=units, help="length of a tick of a CQL file (default: ms)")

    explain = commands.add_parser("explain", help="show how a query is understood and carried out")
    explain.add_argument("query", metavar="CQL", help="a query")
    explain.add_argument("--file", metavar="PATH", help="CQL file or STREAM script with what the query names")
    explain.add_argument("--rules", action="store_true", help="show the plan after each rewrite rule")
    explain.add_argument("--time-unit", choices=units, help="length of a tick (default: ms)")
    add_archive(commands)
    return parser


class _Version(argparse.Action):
    """Reads the version when it is asked for: importing the package takes longer than saying no."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from minidsms import __version__

        print(f"minidsms {__version__}")
        parser.exit()


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows")
    return number


if __name__ == "__main__":
    sys.exit(main())
