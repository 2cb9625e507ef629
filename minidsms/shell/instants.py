"""Instants and lengths of time as people read them: a calendar's time where the data has one, else ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from minidsms.elements import MAX_INSTANT, MIN_INSTANT

if TYPE_CHECKING:
    from minidsms.connection import Connection


class Instants:
    """Shows the instants of one connection.

    They are calendar times where some stream takes its timestamps from a TIMESTAMP column, or its source's rows are
    stamped with the clock; otherwise what was pushed are numbers, and numbers are shown.
    """

    def __init__(self, db: Connection) -> None:
        self._db = db
        self.tick_ns = db.tick_ns

    @property
    def are_calendar(self) -> bool:
        """Whether instants are shown as times in UTC."""
        streams = [s for s in list(self._db.catalog.streams.values()) if not s.is_system]
        return any(s.has_times or (s.timestamp_by is None and s.source is not None) for s in streams)

    def show(self, ts: int) -> str:
        """An instant."""
        return self.show_all((ts,))[0]

    def show_all(self, instants: Sequence[int]) -> list[str]:
        """Instants, one by one."""
        ends = {MIN_INSTANT: "the beginning", MAX_INSTANT: "the end"}
        write: Callable[[int], str] = self.timestamp if self.are_calendar else str
        return [ends.get(ts) or write(ts) for ts in instants]

    def timestamp(self, ticks: int) -> str:
        """A value of type TIMESTAMP."""
        from minidsms.shell.showing import show_instant

        return show_instant(ticks, self.tick_ns)

    def length(self, ticks: int) -> str:
        """A length of time.

        Whole ticks below a millisecond stay ticks' fractions of a second.
        """
        return duration(ticks * self.tick_ns / 1e9)


def duration(seconds: float) -> str:
    """A length of time in two units at most.

    >>> duration(0.0031), duration(75.0), duration(90000.0)
    ('3.1 ms', '1 m 15 s', '1 d 1 h')
    """
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us" if seconds else "0 s"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for name, size, below, smaller in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            more = whole % size // smaller
            return f"{whole // size} {name}" + (f" {more} {below}" if more else "")
    return f"{whole} s"


def number(value: float) -> str:
    """A rate or a count in at most five characters.

    >>> number(950), number(12_345), number(3_400_000)
    ('950', '12.3k', '3.4M')
    """
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= factor:
            return f"{value / (1e3 if suffix == 'k' else factor):.3g}{suffix}"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
