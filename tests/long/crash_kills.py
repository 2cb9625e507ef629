"""Random queries over a durable connection in processes that are killed, again and again.

As `crash_cases`, but the processes are real ones, which SIGKILL ends wherever they are; the client keeps its answers in
a database of its own, in one transaction with their position.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import tempfile
import time
import traceback
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import NoReturn

from minidsms.connection import Connection
from minidsms.durability.connection import DurableConnection
from tests.long.crash_cases import Client, Kept, Scene, copied_by_children, in_blocks, marking, without_crash
from tests.long.crash_limits import Limits
from tests.long.crash_receivers import Receiver, Told

MOST_KILLS = 40
"""Of one case."""
_TABLES = """
CREATE TABLE IF NOT EXISTS answers (query, ts, sign, line); CREATE TABLE IF NOT EXISTS ends (query, ts);
CREATE TABLE IF NOT EXISTS told (query, number, ts, sign, line); CREATE TABLE IF NOT EXISTS limits (said)
"""


class Keeping(Client):
    """A client that keeps its answers, and what it is told, in a file of SQLite. receivers: of this process's parent,
    which goes on receiving lines.
    """

    def __init__(self, scene: Scene, file: str, receivers: Mapping[str, Receiver]) -> None:
        calls, rng = scene.calls("found", receivers), Random()
        super().__init__(calls, scene.names, scene.folder + "/db", scene.durability, False, rng, receivers)
        self._file = sqlite3.connect(file)
        self._file.execute("PRAGMA synchronous = OFF")  # the process ends, not the machine
        self._file.executescript(_TABLES)
        if scene.limits is not None:
            take_limits(self._file, scene.limits)
            self.limit(scene.limits)
        self._limits_said = ""
        for name, receiver in receivers.items():
            if receiver.lines is None:
                receiver.told, receiver.keep = told_in(self._file, name), partial(self._keep_told, name)
        self._returned = os.open(file + ".returned", os.O_RDWR | os.O_CREAT)
        self.kept = kept_in(self._file, scene)
        self._counts = {name: len(one.changes) for name, one in self.kept.items()}

    @property
    def returned(self) -> int:
        """Calls that have returned, in this process or one before it."""
        return int.from_bytes(os.pread(self._returned, 8, 0), "little")

    @returned.setter
    def returned(self, n: int) -> None:
        if hasattr(self, "_returned"):
            os.pwrite(self._returned, n.to_bytes(8, "little"), 0)

    def _keep_told(self, name: str, number: int, told: Told) -> None:
        with self._file:
            self._file.execute("DELETE FROM told WHERE query = ? AND number >= ?", (name, number))
            self._file.execute("INSERT INTO told VALUES (?, ?, ?, ?, ?)", (name, number, *told))

    def _is_made(self, db: DurableConnection, i: int) -> bool:
        is_made = super()._is_made(db, i)
        if self.limits is not None and (said := self.limits.said()) != self._limits_said:
            with self._file:
                self._file.execute("DELETE FROM limits")
                self._file.execute("INSERT INTO limits VALUES (?)", (said,))
            self._limits_said = said
        return is_made

    def take(self, db: Connection) -> None:
        """Keep what is new, in one transaction."""
        super().take(db)
        with self._file:
            for name, one in self.kept.items():
                new = [(name, ts, sign, repr(row)) for ts, sign, row in one.changes[self._counts[name] :]]
                self._file.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", new)
                self._counts[name] += len(new)
                if one.failed_at is not None:
                    self._file.execute("INSERT INTO ends VALUES (?, ?)", (name, one.failed_at))


def kept_in(file: sqlite3.Connection, scene: Scene) -> dict[str, Kept]:
    """What a client has kept; rows as they are shown."""
    kept = {name: Kept() for name in scene.names}
    for name, ts, sign, line in file.execute("SELECT * FROM answers ORDER BY rowid"):
        kept[name].changes.append((ts, sign, line))
    for name, ts in file.execute("SELECT * FROM ends"):
        kept[name].failed_at = ts
    return kept


def told_in(file: sqlite3.Connection, name: str) -> list[Told]:
    """What a client has kept of what it was told."""
    return list(file.execute("SELECT ts, sign, line FROM told WHERE query = ? ORDER BY number", (name,)))


def take_limits(file: sqlite3.Connection, limits: Limits) -> None:
    """Take what a client has noted of limits that have struck."""
    for (said,) in file.execute("SELECT said FROM limits"):
        limits.take(said)


def check_kills(seed: int) -> int:
    """Run the case of a seed in processes that are killed; how many were. AssertionError where an answer differs."""
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        scene = Scene(seed, folder)
        receivers, theirs = scene.receivers(), scene.receivers()
        for receiver in (*receivers.values(), *theirs.values()):
            ending.callback(receiver.end)
        if Random(f"limits {seed}").random() < 0.3:
            scene.limit(rng)
        begun_s = time.monotonic()
        if not scene.is_valid():
            return 0
        run_s = time.monotonic() - begun_s
        for kills in range(MOST_KILLS + 1):
            wait_s = 600.0 if kills == MOST_KILLS else rng.uniform(0, run_s * rng.choice((0.2, 1, 3)))
            is_done = _is_done(scene, folder + "/client", wait_s, receivers)
            for receiver in receivers.values():
                receiver.settle()
            if is_done:
                break
        file = sqlite3.connect(folder + "/client")
        ours = kept_in(file, scene)
        for name, receiver in receivers.items():
            if receiver.lines is None:
                receiver.told = told_in(file, name)
        if scene.limits is not None:
            take_limits(file, scene.limits)
        file.close()
        expected = without_crash(scene.not_refused(theirs), scene.names, theirs)
        for one in expected.values():
            one.changes = [(ts, sign, repr(row)) for ts, sign, row in one.changes]
        for receiver in theirs.values():
            receiver.settle()
        if scene.limits is not None:
            scene.compare_limited(ours, expected, (receivers, theirs))
        else:
            scene.compare(ours, expected)
            scene.compare_told(receivers, theirs)
    return kills


def _is_done(scene: Scene, file: str, wait_s: float, receivers: Mapping[str, Receiver]) -> bool:
    """Let a process go on with the case, and kill it after so many seconds, unless it has ended before."""
    process = os.fork()
    if process == 0:
        _go_on(scene, file, receivers)
    end_s = time.monotonic() + wait_s
    while time.monotonic() < end_s:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            assert status == 0, f"{scene.story}: the process that went on has failed"
            return True
        time.sleep(min(0.001, wait_s))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return False


def _go_on(scene: Scene, file: str, receivers: Mapping[str, Receiver]) -> NoReturn:
    """In a process of its own."""
    status = 1
    try:
        rng = Random()
        with marking(0.01), in_blocks(rng.random() < 0.5), copied_by_children(rng.random() < 0.3):
            client = Keeping(scene, file, receivers)
            while not client.go_on():
                pass
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
