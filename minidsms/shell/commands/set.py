"""`.set`: settings of the engine."""

from __future__ import annotations

from minidsms.answers.table import Table
from minidsms.cql.errors import Error
from minidsms.cql.printer import print_name
from minidsms.settings import SETTINGS
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session


def _set(session: Session, arguments: Arguments) -> None:
    words = [word for word in arguments.words if not (word.text == "=" and not word.is_quoted)]
    if not words:
        table = session.db.execute("SHOW SETTINGS")
        session.results.table(table, session.mode)
        return
    name = words[0].text.lower()
    if len(words) > 2:
        raise arguments.wrong("a value with blanks stands in quotes")
    if len(words) == 1:
        setting = SETTINGS.get(name)
        if setting is None:
            raise Error(f'unknown setting "{words[0].text}"\nhelp: .set lists them all')
        value = session.db.settings[name]
        session.results.table(Table(("setting", "value", "meaning"), ((name, value, setting.meaning),)), session.mode)
        return
    word = words[1]
    literal = "'" + word.text.replace("'", "''") + "'" if word.is_quoted or not word.text.isdigit() else word.text
    session.execute(f"SET {print_name(name)} = {literal}")


SET = Command(
    "set",
    ".set [name [value]]",
    "show or change settings of the engine",
    "The same as SHOW SETTINGS; and SET name = value;",
    _set,
    ("setting",),
    (".set", ".set batch_size", ".set batch_size 1024", ".set memory_limit '500 MB'"),
)
