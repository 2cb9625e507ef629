"""`.schema`: the statements that declared what is there."""

from __future__ import annotations

import os

from minidsms.cql.errors import Error, one_line
from minidsms.cql.masking import masked
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session
from minidsms.shell.showing import harmless


def _schema(session: Session, arguments: Arguments) -> None:
    arguments.at_most(1)
    if arguments.words:
        name = arguments.words[0].text
        entry = None if arguments.words[0].is_quoted else session.log.named(name)
        if entry is None and (arguments.words[0].is_quoted or "." in name or os.sep in name):
            _of_file(session, os.path.expanduser(name))
            return
        if entry is None:
            known = ", ".join(e.name for e in session.log.entries if e.kind != "setting")
            raise Error(
                f'nothing is called "{name}"\nhelp: {f"there are: {known}" if known else "nothing is declared"}'
            )
        entries = [entry]
    else:
        entries = [e for e in session.log.entries if e.kind != "setting"]
    declared = "".join(f"{entry.text};\n" for entry in entries)
    session.results.write(harmless(masked(declared)) or "nothing is declared; .help start shows how to begin\n")


def _of_file(session: Session, path: str) -> None:
    from minidsms.shell.file_schema import first_file, proposal_for

    session.safety.check_path(path)
    session.safety.check_path(first_file(path))
    declaration, reasons = proposal_for(path)
    session.results.write(
        harmless(declaration) + ";\n" + "".join(f"-- {harmless(one_line(reason))}\n" for reason in reasons)
    )


SCHEMA = Command(
    "schema",
    ".schema [name | file | folder]",
    "the statement behind a name, or one that would fit a file",
    "Without a name, all of them. Of a file, or the first of a folder or a pattern, it prints a declaration to copy: "
    "columns with the types that nearly all values of its first rows have, how they are written, TIMESTAMP BY the "
    "column that looks like their instant, SLACK for rows out of order, and why. DESCRIBE name; lists the columns.",
    _schema,
    ("any",),
    (".schema Pos", ".schema cars.csv", ".schema"),
)
