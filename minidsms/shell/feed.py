"""Feeding: sources read into streams and relations, as fast as they can be, or in event time.

At SPEED x the instants of the data pass x times as fast as the clock: what is due is pushed, and time itself is told,
so that windows move though nothing comes. A feed works in small steps and can be left between any two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.elements import MAX_INSTANT

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.sources.driver import SourceDriver

_WAIT_S = 0.05
"""How long a paced feed rests when nothing is due."""


class Feed:
    """One run over some sources.

    driver: reads them.  names: the streams and relations fed.  inputs: these, also once they have been dropped.  speed:
    seconds of event time per second, None for as fast as possible.  is_stalled: what could come waits for a stream that
    is paused.
    """

    def __init__(
        self,
        db: Connection,
        driver: SourceDriver,
        names: Sequence[str],
        speed: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.names = list(names)
        self.inputs = {name: db.stream_input(name) for name in self.names}
        self.speed = speed
        self.has_ended = False
        self.is_stalled = False
        self._fraction = 0.0
        self._db = db
        self._driver = driver
        self._clock = clock
        self._started_s = clock()
        self._before = self._accepted()
        self._lost_before = {name: self._lost(name) for name in self.names}
        self._first: int | None = None
        self._first_s = self._started_s
        self._stopped_s: float | None = None

    @property
    def is_bounded(self) -> bool:
        """It is known how much there is."""
        return self._driver.is_bounded

    def drives(self, driver: SourceDriver) -> bool:
        """Whether this driver is the feed's."""
        return self._driver is driver

    @property
    def fraction(self) -> float:
        """How much has been read, 0 to 1."""
        return self._fraction if self.has_ended else self._driver.fraction

    @property
    def rows(self) -> int:
        """How many rows it has brought."""
        return self._accepted() - self._before

    @property
    def took_s(self) -> float:
        """Seconds since it began, or that it took."""
        return (self._clock() if self._stopped_s is None else self._stopped_s) - self._started_s

    def _accepted(self) -> int:
        return sum(each.counters.accepted for each in self.inputs.values())

    def _lost(self, name: str) -> int:
        return self.inputs[name].counters.rejected

    def lost(self, name: str) -> int:
        """How many rows of an input could not be taken, since the feed began."""
        return self._lost(name) - self._lost_before[name]

    def step(self) -> float | None:
        """Push what comes next. Seconds to rest before the next step, or None when all has been read.

        Errors of the data name the file and the line; the feed has ended then.
        """
        try:
            self._check()
            rest = self._go_on()
        except BaseException:
            self.stop()
            raise
        if rest is None:
            self.stop()
        return rest

    def _check(self) -> None:
        """Error where a stream or relation was dropped whose source did not go with it."""
        with self._db.lock:  # else one that is being dropped with its source may be found here
            there = set(self._db.inputs)
            dropped = [each for each in self._driver.inputs() if each not in there]
        if dropped:
            raise Error(f"{dropped[0].definition.name} has been dropped; the rest of its source is left unread")

    def _go_on(self) -> float | None:
        if self.speed is None:
            return self._push(None)
        if self._first is None:
            with self._db.lock:
                self._first = self._driver.next_instant()
            self._first_s = self._clock()
        if self._first is None:
            return self._push(None)
        passed_s = self._clock() - self._first_s
        passed = passed_s * self.speed * 1e9 / self._db.tick_ns
        return self._push(self._first + int(passed) if passed < MAX_INSTANT - self._first else None)

    def change_speed(self, speed: float | None) -> None:
        """Go on from here at another speed; time begins to pass with the next step."""
        self.speed = speed
        self._first = None

    def _push(self, until: int | None) -> float | None:
        if self._db.drive(self._driver, until, waits=False):
            return _WAIT_S if self._driver.is_waiting else 0.0
        if self._driver.has_ended:
            return None
        # Nothing is due yet; or, where everything is due, a stream has been paused.
        self.is_stalled = until is None
        return _WAIT_S

    def stop(self) -> None:
        """Leave the rest unread, and close what nobody else reads."""
        with self._db.lock:  # which a step holds
            if not self.has_ended:
                self._fraction, self.has_ended = self._driver.fraction, True
                self._stopped_s = self._clock()
                self._driver.leave()


def open_feed(
    db: Connection, files: Sequence[tuple[str, str, str | None]], speed: float | None, clock: Callable[[], float]
) -> Feed:
    """A feed of files. files: (stream or relation, path, format or None).

    Error where there is no such input, it has a source of its own, or the file does not fit.
    """
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.sources.opening import open_source
    from minidsms.sources.replay import Replay

    entries = []
    for name, path, format_ in files:
        target = db.stream_input(name)
        if target.ended and not isinstance(target, RelationInput):
            raise Error(
                f"{name} has ended: the source it was declared with has been read to its end\n"
                "help: declared without FROM, a stream can be fed one file after the other"
            )
        source = open_source(path, format_, target.schema, relation=isinstance(target, RelationInput))
        entries.append((source, target))
    return Feed(db, Replay(entries), [target.definition.name for _, target in entries], speed, clock)
