"""What goes on while the user types: feeds go in, answers come out, figures are taken.

One thread does all of it, in small steps. Whoever types a statement has the session to himself meanwhile: the worker
stands back as soon as it has finished its step.

Invariant: session and connection are touched by one thread at a time, the one that holds the turn.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from minidsms.activity import Activity, Rates, measure
from minidsms.cql.errors import Error
from minidsms.shell.harmless import error_line
from minidsms.shell.session import Session
from minidsms.shell.toolbar import LONG_S, toolbar_parts

BEAT_S = 0.1
"""How often answers are printed and pictures drawn, at most."""
_MEASURE_S = 0.5
_IDLE_S = 0.5
"""How often to look where nothing is fed; what is typed wakes the worker."""
_LEAST_LINES = 4
"""Of a picture; where a terminal has less room, none is drawn."""
_SHARE = 0.2
"""Of the time, that drawing pictures may take."""


class Turn:
    """Who may touch the session. The foreground, one thread, goes first."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_wanted = False

    @contextlib.contextmanager
    def foreground(self, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Take the turn as soon as the present step is done. waits: called where that takes long.

        An interrupt may come out of any line of it: whoever catches one calls `let_go`.
        """
        try:
            self._is_wanted = True
            if not self._lock.acquire(timeout=LONG_S):
                waits()
                self._lock.acquire()
            yield
        finally:
            self.let_go()

    def let_go(self) -> None:
        """The foreground wants the turn no more, and gives it back where it has it."""
        while self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock.release()
        self._is_wanted = False

    @contextlib.contextmanager
    def background(self) -> Iterator[None]:
        """Take the turn when nobody else wants it."""
        while self._is_wanted:
            time.sleep(0.001)
        with self._lock:
            yield


class Worker(threading.Thread):
    """See the module.

    changed: called when there is something new to draw: pictures, or toolbar (see `toolbar.py`).  height: gives the
    lines that pictures may take.
    """

    def __init__(self, session: Session, turn: Turn, changed: Callable[[], None], height: Callable[[], int]) -> None:
        super().__init__(name="minidsms-shell-worker", daemon=True)
        self.pictures: list[list[str]] = []
        self.toolbar: list[tuple[str, str]] = []
        self._activity = Activity(session.clock())
        self._rates = Rates()
        self._drawn: tuple[list[tuple[str, str]], list[list[str]]] = ([], [])
        self._session = session
        self._turn = turn
        self._changed = changed
        self._height = height
        self._requests: deque[Callable[[Session], None]] = deque()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._is_over = False
        self._began_s: float | None = None
        self._beat_at = 0.0
        self._draw_at = 0.0

    def ask(self, request: Callable[[Session], None]) -> None:
        """Have something done to the session at the next step."""
        self._requests.append(request)
        self._wake.set()

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    @property
    def at_work_s(self) -> float:
        """How long the present step has taken; 0 between two."""
        began_s = self._began_s
        return 0.0 if began_s is None else time.monotonic() - began_s

    @property
    def is_behind(self) -> bool:
        """What it was asked waits for the present step."""
        return bool(self._requests)

    def end(self, patience_s: float | None = None) -> bool:
        """Stop after the present step, and wait for it; whether it has ended by then."""
        self._is_over = True
        self._wake.set()
        # Not by `join`: an interrupt of it takes the thread for one that has ended.
        return self.ident is None or self._ended.wait(patience_s)  # without an ident loading has failed before it began

    def run(self) -> None:
        """Take steps until the end."""
        try:
            while not self._is_over:
                self._wake.clear()
                with self._turn.background():
                    self._began_s = time.monotonic()
                    rest = self._step()
                    self._began_s = None
                if rest > 0:
                    self._wake.wait(rest)
        finally:
            self._ended.set()

    def _step(self) -> float:
        """Seconds until the next step."""
        session = self._session
        try:
            while self._requests:
                self._requests.popleft()(session)
                self._beat_at = self._draw_at = 0.0
            rest = session.step_feeds() if session.feeds else _IDLE_S
        except Error as error:
            session.screen.error(error_line(error))
            rest = 0.0
        except BaseException as error:  # a function of the program may raise SystemExit, too
            session.stop_feeds()
            session.screen.error(error_line(error))
            rest = 0.0
        now = session.clock()
        if now >= self._beat_at:
            self._beat_at = now + BEAT_S
            try:
                self._beat()
            except BaseException as error:  # a callback, too
                session.screen.error(error_line(error))
        return min(rest, max(0.0, self._beat_at - session.clock())) if session.feeds else rest

    def _beat(self) -> None:
        """Print, draw, measure."""
        session = self._session
        try:
            session.watches.forget_closed()  # by the page, for example
            session.watches.tell()
            self._draw()
        except Error as error:
            session.screen.error(error_line(error))
        now = session.clock()
        if now - self._activity.at_s >= _MEASURE_S:
            if session.db.system_streams.is_read:
                # What the engine tells of itself is told though nothing else happens.
                session.db.process()
            activity = measure(session.db, session.clock)
            self._rates = Rates.between(self._activity, activity)
            self._activity = activity
        toolbar = toolbar_parts(session, self._activity, self._rates)
        if (toolbar, self.pictures) != self._drawn:
            self.toolbar = toolbar
            self._drawn = (toolbar, self.pictures)
            self._changed()

    def _draw(self) -> None:
        """Draw pictures, unless drawing takes too much of the time."""
        session = self._session
        started = session.clock()
        if started < self._draw_at:
            return
        count = session.watches.drawn() + (session.plan_shown is not None)
        height = self._height() // max(1, count)
        if height < _LEAST_LINES:
            self.pictures = []
            return
        pictures = session.watches.pictures(height)
        if session.plan_shown is not None:
            query, drawing = session.plan_shown
            if session.db.queries.get(query.name.lower()) is query:
                pictures.append(drawing.draw()[:height])
            else:
                session.plan_shown = None
        self.pictures = pictures
        self._draw_at = started + (session.clock() - started) / _SHARE
