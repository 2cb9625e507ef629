"""`.quit`"""

from __future__ import annotations

from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Quit, Session


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
