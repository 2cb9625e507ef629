"""`.timer`, `.ui` and `.quit`: the shell itself."""

from __future__ import annotations

from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Quit, Session


def _timer(session: Session, arguments: Arguments) -> None:
    session.timer = arguments.switch(session.timer)
    session.screen.note(f"the timer is {'on' if session.timer else 'off'}")


TIMER = Command(
    "timer",
    ".timer [on|off]",
    "tell how long each statement takes",
    "Without a word behind it, it switches to the other.",
    _timer,
    ("ON", "OFF"),
    (".timer on",),
)


def _ui(session: Session, arguments: Arguments) -> None:
    arguments.none()
    session.screen.note(session.db.ui(open_browser=session.is_interactive).url)


UI = Command(
    "ui",
    ".ui",
    "plans, decisions and answers in a browser",
    "Opens a page on this machine that shows the connection as it runs, and prints its URL, which carries a token. It "
    "needs the extra minidsms[web], and ends with the connection.",
    _ui,
    (),
    (),
)


def _quit(session: Session, arguments: Arguments) -> None:
    arguments.none()
    raise Quit


QUIT = Command(
    "quit",
    ".quit",
    "leave the shell",
    "Queries end; files that queries write stand in their places. Ctrl-D at an empty line does the same.",
    _quit,
)
