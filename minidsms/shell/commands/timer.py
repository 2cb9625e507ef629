"""`.timer`"""

from __future__ import annotations

from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session


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
