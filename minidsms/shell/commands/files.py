"""`.output`, `.read`, `.save`, `.open`: files of results and of statements."""

from __future__ import annotations

import os

from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session
from minidsms.shell.showing import harmless


def _output(session: Session, arguments: Arguments) -> None:
    session.watches.tell()
    if not arguments.words:
        path = session.results.path
        session.results.redirect(None)
        session.screen.note(harmless(f"{path} is written" if path else "results come here"))
        return
    path = os.path.expanduser(arguments.one("a file").text)
    session.safety.check_path(path)
    session.results.redirect(path)
    session.screen.note(harmless(f"results go to {path}; .output brings them back"))


def _read(session: Session, arguments: Arguments) -> None:
    session.run_file(os.path.expanduser(arguments.one("a file").text))


def _save(session: Session, arguments: Arguments) -> None:
    path = os.path.expanduser(arguments.one("a file").text)
    session.safety.check_path(path)
    from minidsms.sinks.destination import Destination

    destination = Destination(path)
    try:
        destination.write(session.log.script().encode())
        destination.publish()
    except BaseException:
        destination.discard()
        raise
    count = len(session.log.entries)
    session.screen.note(harmless(f"{counted(count, 'statement')} written to {path}"))


def _open(session: Session, arguments: Arguments) -> None:
    arguments.at_most(1)
    path = os.path.expanduser(arguments.words[0].text) if arguments.words else None
    if path is not None:
        session.safety.check_path(path)
        if not os.path.isfile(path):
            raise Error(f"cannot read {path!r}: no such file")
    session.begin_anew()
    if path is not None:
        session.run_file(path)
    session.screen.note("an empty connection" if path is None else harmless(f"{path} has been run"))


OUTPUT = Command(
    "output",
    ".output [file]",
    "write results into a file instead of the screen",
    "Changes, csv and json lines, and tables of SHOW go into the file, which is emptied first. What is redrawn in "
    "place stays on the screen. Without a name, results come to the screen again. CREATE QUERY .. INTO 'file' writes "
    "the answers of one query, whatever is watched.",
    _output,
    ("file",),
    (".output changes.txt", ".output"),
)

READ = Command(
    "read",
    ".read file",
    "run the statements and commands of a file",
    "It ends at the first error.",
    _read,
    ("file",),
    (".read queries.cql",),
)

SAVE = Command(
    "save",
    ".save file",
    "write the session's statements as a script",
    "Declarations, queries and settings in their order; what has been dropped is left out. .open, .read and "
    "minidsms -f run it again. Data is not saved.",
    _save,
    ("file",),
    (".save session.cql",),
)

OPEN = Command(
    "open",
    ".open [file]",
    "close everything and begin anew, from a script if one is named",
    "All streams, queries and data of this session are gone; .save keeps the statements.",
    _open,
    ("file",),
    (".open", ".open session.cql"),
)
