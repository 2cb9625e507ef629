"""`minidsms ui [FILE]`: a connection of its own, with its page, until it is interrupted."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

from minidsms.cql.errors import Error
from minidsms.cql.words import TICK_NS


def add_ui(commands: Any) -> None:
    """Say how it is written."""
    ui = commands.add_parser("ui", help="show plans, decisions and answers in a browser, as they change")
    ui.add_argument("file", metavar="FILE", nargs="?", help="statements of CQL to begin with")
    ui.add_argument("--port", type=int, default=0, metavar="N", help="of this machine's loopback (default: a free one)")
    ui.add_argument("--no-browser", action="store_true", help="print the URL, and open no browser")
    ui.add_argument("--db", metavar="FOLDER", dest="folder", help="keep everything in this folder")
    ui.add_argument("--safe", action="store_true", dest="is_safe", help="no files but those allowed, no code; for good")
    ui.add_argument("--allow", action="append", metavar="FOLDER", dest="folders", help="with --safe: files may be here")
    ui.add_argument("--time-unit", choices=TICK_NS, help="length of a tick (default: ms)")


def ui(options: argparse.Namespace) -> int:
    """Serve until interrupted; the exit code."""
    from minidsms.connection import connect
    from minidsms.shell.reading import read_statements
    from minidsms.web.workbench import Workbench

    if options.folders and not options.is_safe:
        raise Error("--allow goes with --safe: without it files may be anywhere")
    given = {"time_unit": options.time_unit} if options.time_unit else {}
    with connect(options.folder, safe=options.is_safe, allowed_paths=tuple(options.folders or ()), **given) as db:
        if options.file is not None:
            error = Workbench(db).run(read_statements(options.file))["error"]
            if error is not None:
                raise Error(error["text"])
        print(db.ui(options.port, open_browser=not options.no_browser).url, flush=True)
        print("Ctrl-C ends it", file=sys.stderr)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0
