"""Feeds that the page runs: files and generators read into streams, one thread for all, each at its own speed.

Invariant: one thread takes the steps; a feed that is paused takes none, and goes on where it was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import Error, in_words
from minidsms.process.threads import begin
from minidsms.shell.feed import Feed, open_feed

if TYPE_CHECKING:
    from minidsms.connection import Connection

_IDLE_S = 0.2


@dataclass
class _Running:
    """A feed and what the page knows it by."""

    number: int
    feed: Feed
    is_paused: bool = False
    error: str = ""


class Feeding:
    """changed: called when a feed has begun or ended."""

    def __init__(self, db: Connection) -> None:
        self.changed: Callable[[], None] = lambda: None
        self._db = db
        self._feeds: list[_Running] = []
        self._last = 0
        self._beginning = threading.RLock()
        self._wake = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="minidsms-web-feeds", daemon=True)

    def start(self) -> None:
        """Begin to take steps."""
        begin(self._thread)

    def stop(self) -> None:
        """Leave what has not been read. Stopping twice is no error."""
        self._is_over = True
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=2)
        for running in self._feeds:
            running.feed.stop()

    # ------------------------------------------------------------------------------------------------ what is asked

    def feed_file(self, name: str, path: str, format: str | None, speed: float | None) -> None:
        """Read a file into a stream or relation. speed: event time against the clock, None: as fast as possible."""
        self._db.safety.check_source(path)
        self._begin(open_feed(self._db, [(name, path, format)], speed, time.monotonic))

    def feed_declared(self, speed: float | None) -> None:
        """Read the sources that streams and relations were declared FROM."""
        with self._beginning:
            driver = self._db.source_driver
            if driver is None or driver.has_ended:
                raise Error("no stream has a source that is to be read: CREATE STREAM .. FROM .., or name a file")
            if any(running.feed.drives(driver) and not running.feed.has_ended for running in self._feeds):
                raise Error("the sources are being read already")
            names = [target.definition.name for _, target in self._db.reading.sources]
            self._begin(Feed(self._db, driver, names, speed))

    def _begin(self, feed: Feed) -> None:
        with self._beginning:
            self._last += 1
            self._feeds = [*(each for each in self._feeds if not each.feed.has_ended), _Running(self._last, feed)]
        if self._is_over:  # since it was asked for
            feed.stop()
            raise Error("the page has ended")
        self._wake.set()

    def control(self, number: int, action: str, speed: float | None = None) -> None:
        """pause, resume, stop a feed, or change its speed."""
        running = next((each for each in self._feeds if each.number == number), None)
        if running is None:
            raise Error("this feed has ended")
        if action == "stop":
            running.feed.stop()
        elif action in ("pause", "resume"):
            running.is_paused = action == "pause"
            running.feed.change_speed(running.feed.speed)
        elif action == "speed":
            running.feed.change_speed(speed)
        else:
            raise Error(f"a feed can be paused, resumed, stopped, and change its speed, not {action!r}")
        self._wake.set()

    def told(self) -> list[dict[str, Any]]:
        """What the page shows of each."""
        driver = self._db.source_driver
        declared = [target.definition.name for _, target in self._db.reading.sources]
        return [
            {
                "number": each.number,
                "names": declared
                if (is_declared := driver is not None and each.feed.drives(driver))
                else each.feed.names,
                "is_declared": is_declared,
                "speed": each.feed.speed,
                "fraction": round(each.feed.fraction, 3) if each.feed.is_bounded else None,
                "rows": each.feed.rows,
                "state": "ended" if each.feed.has_ended else "paused" if each.is_paused else "running",
                "error": each.error,
            }
            for each in self._feeds
        ]

    # ------------------------------------------------------------------------------------------------------- steps

    def _run(self) -> None:
        while not self._is_over:
            rest = self._step()
            if rest:
                self._wake.wait(rest)
                self._wake.clear()

    def _step(self) -> float:
        """One step of every feed; seconds until the next is due."""
        rests = [_IDLE_S]
        for running in list(self._feeds):
            if running.is_paused or running.feed.has_ended or self._is_over:
                continue
            try:
                rest = running.feed.step()
            except BaseException as error:  # a function of the program may raise SystemExit, too
                running.error = in_words(error)
                rest = None
            if rest is None:
                running.feed.stop()
                self.changed()
            else:
                rests.append(rest)
        return min(rests)
