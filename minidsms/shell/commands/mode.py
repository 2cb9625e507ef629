"""`.mode` and `.limit`: how answers are shown."""

from __future__ import annotations

from minidsms.answers.table import Table
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.modes.mode import MODES, read_mode
from minidsms.shell.session import Session


def _mode(session: Session, arguments: Arguments) -> None:
    if not arguments.words:
        rows = tuple(("*" if name == session.mode.name else "", name, said) for name, said in MODES.items())
        session.results.table(Table(("", "mode", "shows"), rows), session.mode)
        return
    spec = read_mode(arguments.words)
    session.mode = spec
    session.watches.change(spec, session.look())
    session.screen.note(f"mode {spec}")


def _limit(session: Session, arguments: Arguments) -> None:
    if arguments.words:
        word = arguments.one("a number").text
        if word.lower() in ("off", "all"):
            word = "0"
        if not word.isdigit():
            raise arguments.wrong(f'"{word}" is no number of rows')
        session.limit = int(word)
        session.watches.change(session.mode, session.look())
    session.screen.note(f"at most {session.limit:,} at once" if session.limit else "everything is shown")


MODE = Command(
    "mode",
    ".mode [changelog | table | top [N] BY column [ASC] | count | csv | jsonl]",
    "how answers are shown",
    "changelog prints every change: + a row enters, - a row leaves, with the instant. table shows what the relation "
    "holds now and redraws it in place; of a stream it shows the last elements. top shows the N rows with the greatest "
    "values of a column. count counts. csv and jsonl print lines for other programs. What is watched already changes "
    "too, except what was given a mode of its own with .watch. Tables of SHOW and the like are printed as csv and "
    "jsonl in those modes.",
    _mode,
    ("mode",),
    (".mode table", ".mode top 3 BY mean", ".mode"),
)

LIMIT = Command(
    "limit",
    ".limit [N]",
    "how many rows or changes are shown at once",
    "Of a table, so many rows; of a changelog, so many changes between two looks, the first and the last of them, and "
    "how many stood between. 0 shows everything. csv and jsonl leave nothing out.",
    _limit,
    (),
    (".limit 10", ".limit 0"),
)
