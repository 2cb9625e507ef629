"""The command `minidsms`: the shell; run files of CQL or STREAM scripts, explain queries, look after archives.

Exit codes: 0 done, 1 an error in what was read or asked (shown on the standard error), 2 a wrong command line, 130
interrupted. Nothing heavy is imported before the command line is known to be right.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from minidsms.cql.words import TICK_NS
from minidsms.shell.archive_arguments import add_archive, add_replay
from minidsms.shell.offload_arguments import add_ingest, add_offload
from minidsms.web.command import add_ui

_EPILOG = """examples:
  minidsms                                the shell; .help start shows how to begin
  minidsms -c "CREATE STREAM .. FROM 'a.csv'; SELECT .." --csv
  minidsms -f session.cql                 statements and commands of the shell from a file; or from a pipe
  minidsms run queries.cql                run a file of statements and show the answers
  minidsms run script.txt --stats         run a script of the STREAM prototype, then show figures
  minidsms run q.cql -o out.parquet       write the answers to a file
  minidsms run q.cql --db FOLDER          go on where the run before was, however it ended
  minidsms ui                             plans, decisions and answers in a browser
  minidsms explain "SELECT .." --file declarations.cql
"""

_MODULES = {
    "run": "shell.run",
    "explain": "shell.explain",
    "check": "shell.check_command",
    "archive": "shell.archive_command",
    "replay": "shell.replay_command",
    "offload": "shell.offload",
    "ingest": "shell.ingest_command",
    "ui": "web.command",
}
"""What carries out each command: a function of its name in a module that is loaded then."""


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
        given = sys.argv[1:] if arguments is None else arguments
        if given and os.path.isfile(given[0]):
            parser.error(f"{given[0]} is a file, not a command: minidsms run {given[0]}")
        options = parser.parse_args(given)
        for option, is_given, may_take in (
            ("--safe", options.safe, ()),
            ("--db FOLDER", options.db is not None, ("run",)),
        ):
            if is_given and options.command not in (None, *may_take):
                parser.error(f"{option} belongs to the shell, not to {options.command}: minidsms {option} .. -f FILE")
        return _command(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has seen enough: no error, and Python must not complain about it once more at exit.
        _give_up_stdout()
        return 0
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
    from minidsms.shell.harmless import error_line

    try:
        if options.command is None:
            from minidsms.shell.starting import start

            return start(options)
        if options.command == "run" and options.db is not None:
            return _run_in_folder(options)
        module = importlib.import_module(f"minidsms.{_MODULES[options.command]}")
        carry_out: Callable[[argparse.Namespace], int] = getattr(module, options.command)
        return carry_out(options)
    except Error as error:
        print(error_line(error), file=sys.stderr)
        return 1


def _run_in_folder(options: argparse.Namespace) -> int:
    """SIGTERM ends it as Ctrl-C does from the first moment on, not only once it reads."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from minidsms.shell.run import run

        return run(options)
    except KeyboardInterrupt:
        from minidsms.shell.harmless import harmless

        print(harmless(f"{options.db}: interrupted; run it again, and it goes on where it was"), file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="minidsms",
        description="Continuous queries in CQL over data streams, answered exactly at every instant.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    _add_shell_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser("run", help="run a CQL file or a STREAM script to the end of its sources")
    run.add_argument("file", metavar="FILE", help='statements of CQL, or a STREAM script; "-" is the standard input')
    run.add_argument("-o", "--output", metavar="PATH", help="write the answers to a file, or to a folder if several")
    run.add_argument("--format", choices=("table", "csv", "json", "stream"), help="of answers shown (default: table)")
    keep = "keep everything in this folder, and go on where a run that ended was"
    run.add_argument("--db", metavar="FOLDER", default=argparse.SUPPRESS, help=keep)
    run.add_argument("--until", metavar="TS", help="stop after this instant: ticks, or an ISO time")
    run.add_argument("--rows", type=_count, default=100, metavar="N", help="most rows of a table; 0: all (default 100)")
    run.add_argument("--stats", action="store_true", help="show what every operator did, on the standard error")
    run.add_argument("--quiet", action="store_true", help="no progress, no notes on what was written")
    run.add_argument("--time-unit", choices=TICK_NS, help="length of a tick of a CQL file (default: ms)")

    explain = commands.add_parser("explain", help="show how a query is understood and carried out")
    explain.add_argument("query", metavar="CQL", help="a query, or a file of statements")
    explain.add_argument("--file", metavar="PATH", help="CQL file or STREAM script with what the query names")
    explain.add_argument("--rules", action="store_true", help="show the plan after each rewrite rule")
    explain.add_argument("--time-unit", choices=TICK_NS, help="length of a tick (default: ms)")
    check = commands.add_parser("check", help="tell whether the folder of a durable connection is sound")
    check.add_argument("folder", metavar="FOLDER", help="as minidsms.connect(FOLDER) or --db FOLDER has made it")
    add_archive(commands)
    add_replay(commands)
    add_offload(commands)
    add_ingest(commands)
    add_ui(commands)
    return parser


def _add_shell_options(parser: argparse.ArgumentParser) -> None:
    shell = parser.add_argument_group("the shell")
    for option, metavar, said in (
        ("-c", "CQL", "run statements and commands and end; may be repeated"),
        ("-f", "FILE", 'the same from a file; "-" is the standard input'),
    ):
        shell.add_argument(option, metavar=metavar, help=said, dest="inputs", action=_Inputs, default=[])
    shell.add_argument("--csv", action="store_const", const="csv", dest="mode", help="show answers as csv")
    shell.add_argument("--json", action="store_const", const="jsonl", dest="mode", help="show answers as json lines")
    shell.add_argument("--mode", metavar="MODE", help='as .mode: changelog, table, "top 5 BY x", count, csv, jsonl')
    shell.add_argument("--db", metavar="FOLDER", help="keep everything in this folder, and go on with what it holds")
    shell.add_argument("--safe", action="store_true", help="no files but those allowed, no code; for good")
    shell.add_argument("--allow", action="append", metavar="FOLDER", help="with --safe: files may be in this folder")
    shell.add_argument("--config", metavar="PATH", help="the configuration file (~/.config/minidsms/config.toml)")
    shell.add_argument("--no-config", action="store_true", help="read no configuration file")
    shell.add_argument("--print-config", action="store_true", help="print a configuration with comments and end")
    shell.add_argument("--time-unit", choices=TICK_NS, dest="tick", help="length of a tick (default: ms)")


class _Inputs(argparse.Action):
    """Keeps -c and -f in their order."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, value: Any, option: str | None = None) -> None:
        namespace.inputs = [*namespace.inputs, ("text" if option == "-c" else "file", value)]


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
