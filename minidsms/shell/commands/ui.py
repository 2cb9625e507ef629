"""`.ui`: the page of this connection."""

from __future__ import annotations

from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session


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
