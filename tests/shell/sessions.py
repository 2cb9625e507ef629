"""Sessions of the shell without a terminal: everything it says is kept as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidsms.process.safety import Safety
from minidsms.shell.configuration import Configuration
from minidsms.shell.session import Session
from minidsms.shell.styles import Styles

CARS = """at,car,road,speed
2026-01-01 00:00:01,1,A1,50
2026-01-01 00:00:02,2,A1,70
2026-01-01 00:00:40,3,B7,30
"""
ROADS = "road,speed_limit\nA1,120\nB7,70\n"
DECLARATIONS = """
CREATE STREAM Pos (at TIMESTAMP, car INTEGER, road TEXT, speed FLOAT) TIMESTAMP BY at;
CREATE RELATION Roads (road TEXT, speed_limit FLOAT);
"""
JOIN = """SELECT road, COUNT(*) AS reports, AVG(speed) AS mean, MAX(speed_limit) AS speed_limit
FROM Pos [RANGE 30 SECONDS] JOIN Roads USING (road)
GROUP BY road;
"""


class KeptScreen:
    """A screen that keeps what is written: said has results, notes, warnings and errors in their order."""

    def __init__(self) -> None:
        self.styles = Styles(False)
        self.width: int | None = None
        self.said: list[tuple[str, str]] = []

    def write(self, text: str) -> None:
        self.said.append(("result", text))

    def raw(self, text: str) -> None:
        self.said.append(("raw", text))

    def note(self, text: str) -> None:
        self.said.append(("note", text))

    def warn(self, text: str) -> None:
        self.said.append(("warning", text))

    def error(self, text: str) -> None:
        self.said.append(("error", text))

    def flush(self) -> None:
        pass

    def take(self, *kinds: str) -> str:
        """What has been said of these kinds since the last call."""
        taken = "".join(text for kind, text in self.said if kind in kinds)
        self.said.clear()
        return taken


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def session_of(
    text: str = "",
    is_interactive: bool = True,
    safety: Safety | None = None,
    clock: Callable[[], float] | None = None,
    **configuration: Any,
) -> tuple[Session, KeptScreen]:
    """A session in which a text has been run, and its screen, on which nothing has been said since."""
    screen = KeptScreen()
    options = {"clock": clock} if clock is not None else {}
    session = Session(screen, Configuration(**configuration), safety or Safety(False), is_interactive, **options)
    session.run_text(text)
    screen.said.clear()
    return session, screen


def finish(session: Session) -> None:
    """Let the feeds run to their ends, and print what is watched."""
    session.finish_feeds()
    session.watches.tell()
