"""`.schema`: the statements that declared what is there."""

from __future__ import annotations

from minidsms.cql.errors import Error
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session
from minidsms.shell.showing import harmless


def _schema(session: Session, arguments: Arguments) -> None:
    arguments.at_most(1)
    if arguments.words:
        name = arguments.words[0].text
        entry = session.log.named(name)
        if entry is None:
            known = ", ".join(e.name for e in session.log.entries if e.kind != "setting")
            raise Error(
                f'nothing is called "{name}"\nhelp: {f"there are: {known}" if known else "nothing is declared"}'
            )
        entries = [entry]
    else:
        entries = [e for e in session.log.entries if e.kind != "setting"]
    session.results.write(harmless("".join(f"{entry.text};\n" for entry in entries)))


SCHEMA = Command(
    "schema",
    ".schema [name]",
    "the statement behind a name, or all of them",
    "DESCRIBE name; lists only the columns.",
    _schema,
    ("any",),
    (".schema Pos", ".schema"),
)
