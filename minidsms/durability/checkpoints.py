"""Checkpoints of a connection, made beside it: when one is due, how it catches up, and how it takes the log's place.

A checkpoint is made of the log up to an entry; what has come meanwhile is added to it, and then it is the log. The
connection's calls wait where the entry is chosen and where the last entries are added.

Invariant: a log that has not been named by `minidsms.json` is nobody's to rely on; the one that is named is whole.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import ClosedError, Error, in_words
from minidsms.durability.checkpoint import write_checkpoint
from minidsms.durability.folder import CHECKPOINT, FIRST_LOG
from minidsms.durability.log import Log
from minidsms.durability.moment import Moment
from minidsms.durability.segments import Found, entries
from minidsms.process.threads import begun, end_at_exit

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection

SHARE = 30
"""By interval, checkpoints take at most one in so many seconds."""
_FEW_ENTRIES = 10
"""About so many are added while calls wait."""
_MOST_ROUNDS = 50
"""So often what has come meanwhile is added beside them."""


class Checkpoints:
    """Makes them, one at a time."""

    def __init__(self, db: DurableConnection) -> None:
        self._db = db
        self._interval_s: float | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False

    def make(self) -> None:
        """Make one now. Error where that cannot be; then nothing has changed."""
        db, owned = self._db, self._db.owned
        place = os.path.join(db.folder, CHECKPOINT)
        started_s = time.monotonic()
        log: Log | None = None
        moment: Moment | None = None
        with db.copying:
            try:
                with db.settled() as until:
                    moment, source = Moment(db), db.log_folder
                    db.dictionary.keeps_all = True  # its codes stand in what is written meanwhile
                owned.lock.check()
                owned.tidy()
                db.flush()  # what it leaves out is in the archives
                if db.archives.lost:
                    raise Error(f"no checkpoint was made: {next(iter(db.archives.lost.values()))}")
                settings = owned.metadata.settings
                whole, last, linked = write_checkpoint(place, settings, source, until, moment, self._go_on)
                log = Log(os.path.join(place, FIRST_LOG), "os", owned.lock)
                for _ in range(_MOST_ROUNDS):
                    first, last = last.number, _add(log, source, last, db.entries, self._go_on)
                    log.sync()
                    if last.number - first <= _FEW_ENTRIES:
                        break
                log.rotate()
                before = {"log": os.path.basename(source), "entries": last.number + 1, "begin": log.next}
                with db.settled() as end:
                    _add(log, source, last, end, self._go_on)
                    log.sync()
                    nbytes = sum(os.path.getsize(each.path) for each in os.scandir(log.folder))
                    took_s = time.monotonic() - started_s
                    told = [f"{name} ({reason})" for name, reason in sorted(whole.items())]
                    made = {"at_s": time.time(), "took_s": round(took_s, 3), "nbytes": nbytes, "entries": log.next}
                    made["written"] = nbytes - linked
                    left = db.switch_to(log, {**made, "whole": told}, before)
                left.retire()
                owned.lock.check()
                owned.tidy()
            except (Exception, KeyboardInterrupt) as error:
                if log is not None and log is not db.log:
                    log.abandon()
                with contextlib.suppress(Error):
                    owned.lock.check()  # else another connection may be making one there
                    shutil.rmtree(place, ignore_errors=True)
                if isinstance(error, OSError):
                    raise Error(f"no checkpoint was made in {db.folder!r}: {error.strerror or error}") from None
                raise
            finally:
                db.dictionary.keeps_all = False
                if moment is not None:
                    moment.close()

    def _go_on(self) -> None:
        if self._is_over:
            raise ClosedError("no checkpoint was made: the connection is being closed")

    # ------------------------------------------------------------------------------------------------ by interval

    def every(self, interval_s: float | None) -> None:
        """Make one after so many seconds in which something came, from now on; None: only when asked to."""
        if interval_s is not None and self._thread is None and not self._is_over:
            self._thread = begun(self._run, "minidsms-checkpoints")
            end_at_exit(self)
        with self._changed:
            self._interval_s = interval_s
            self._changed.notify_all()

    def _run(self) -> None:
        made_s, least_s, entries_before = time.monotonic(), 0.0, self._db.entries
        while True:
            with self._changed:
                interval_s, wait_s = self._interval_s, None
                if interval_s is not None:
                    wait_s = max(0.0, made_s + max(interval_s, least_s) - time.monotonic())
                if self._changed.wait_for(partial(self._is_told, interval_s), wait_s):
                    if self._is_over:
                        return
                    continue
            made_s = time.monotonic()
            if self._db.entries != entries_before:
                try:
                    self.make()
                except BaseException as error:  # a function of the program may raise SystemExit, too
                    if not self._is_over:
                        told = in_words(error)
                        self._db.warnings.append(f"no checkpoint was made: {told}")
                entries_before = self._db.entries
                least_s = SHARE * (time.monotonic() - made_s)

    def _is_told(self, interval_s: float | None) -> bool:
        return self._is_over or self._interval_s != interval_s

    def close(self) -> None:
        """Let nothing more be made. Closing twice is no error."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        is_waited_for = threading.current_thread() is self._thread or self._db.is_calling
        if self._thread is not None and not is_waited_for:
            self._thread.join()
        self._thread = None

    def abandon(self) -> None:
        """In a child of fork() the thread is not there."""
        self._is_over, self._thread, self._changed = True, None, threading.Condition()

    def table(self) -> tuple[tuple[Any, ...], ...]:
        """The rows of SHOW CHECKPOINTS."""
        rows = []
        for each in self._db.owned.metadata.checkpoints:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(each["at_s"]))
            sizes = each["nbytes"], each.get("written", each["nbytes"])
            rows.append((each["log"], at, each["took_s"], each["entries"], *sizes, ", ".join(each["whole"])))
        return tuple(rows)


COLUMNS = ("log", "made (UTC)", "seconds", "entries", "bytes", "written", "queries that keep their whole past")
"""Of SHOW CHECKPOINTS."""


def _add(log: Log, source: str, last: Found, end: int, go_on: Callable[[], None]) -> Found:
    """Add the entries behind one of another log up to a number, whose numbers do not matter; the last one."""
    for found in entries(source, end, last) if last.number + 1 < end else ():
        go_on()
        log.append(found.payload)
        last = found
    return last
