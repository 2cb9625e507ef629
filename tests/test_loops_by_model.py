"""Whoever asks a query for changes is given the next: loops, loops that are left or held, `fetch`, callbacks, sinks.

The model is a number: how many of the changes somebody has come to.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import minidsms

_SIZES = (1, 1, 2, 10, 700, 5000)


class World:
    """A query over a stream that numbers its elements, and the loops over it. end: how many there are.  at: how many
    have been come to.  held: loops that are neither left nor at their end, with the change that each is at.
    """

    def __init__(self, folder: Path | None, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.end = self.at = self.ts = self.crashes = 0
        self.held: list[list[Any]] = []
        self.open()
        self.db.execute(
            "CREATE STREAM S (k INTEGER, t TEXT); CREATE QUERY q AS SELECT ISTREAM(k, t) FROM S WHERE k >= 0"
        )

    def open(self) -> None:
        self.db = minidsms.connect() if self.folder is None else minidsms.connect(self.folder / "db", durability="os")

    @property
    def q(self) -> minidsms.Query:
        return self.db.queries["q"]

    def push(self) -> None:
        n = self.random.choice(_SIZES)
        self.ts += 1
        self.db.push("S", [(i, f"text {i}") for i in range(self.end, self.end + n)], ts=self.ts)
        self.end += n

    def check(self, changes: list[minidsms.Change]) -> None:
        """They are the next."""
        assert [change.row for change in changes] == [(i, f"text {i}") for i in range(self.at, self.at + len(changes))]
        self.at += len(changes)

    def loop(self) -> None:
        """A loop that is left, held, or goes to its end; some ask for more within it."""
        changes = iter(self.q)
        self.go_on([changes, None])

    def go_on(self, loop: list[Any] | None = None) -> None:
        """Let a new loop, or one that is held, take some."""
        if loop is None:
            if not self.held:
                return
            loop = self.held.pop(self.random.randrange(len(self.held)))
        for _ in range(self.random.choice(_SIZES)):
            change = next(loop[0], None)
            if change is None:
                assert self.at == self.end
                return
            self.check([change])
            loop[1] = self.at - 1
        if self.random.random() < 0.3:
            self.held.append(loop)
            if self.random.random() < 0.5:
                self.random.choice((self.loop, self.fetch, self.fetch_arrow, self.push, self.crash))()

    def drop(self) -> None:
        if self.held:
            self.held.pop(self.random.randrange(len(self.held)))

    def raise_within(self) -> None:
        with pytest.raises(ZeroDivisionError):
            for change in self.q:
                self.check([change])
                _ = 1 // (change.row.k % 7 and self.at < self.end)
            raise ZeroDivisionError

    def loop_async(self) -> None:
        n, ending = self.random.choice(_SIZES), self.random.choice(("break", "cancel"))

        async def follow() -> None:
            taken = 0
            async for change in self.q:
                self.check([change])
                taken += 1
                if taken == n and ending == "break":
                    return
                if taken == n:
                    await asyncio.sleep(60)

        async def run() -> None:
            task = asyncio.create_task(follow())
            while self.at < min(self.end, self.at + n) and not task.done():
                await asyncio.sleep(0)
                if ending == "cancel":
                    break
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if not task.cancelled():
                task.result()

        asyncio.run(run())

    def _be_at_nothing(self) -> None:
        """What has been fetched is taken for good, with what loops are at."""
        self.held = [[changes, None] for changes, _ in self.held]

    def fetch(self) -> None:
        changes = self.q.fetch()
        self.check(changes)
        assert self.at == self.end
        if changes:
            self._be_at_nothing()

    def fetch_arrow(self) -> None:
        found = self.q.fetch_arrow()
        assert found["k"].to_pylist() == list(range(self.at, self.end))
        assert found["t"].to_pylist() == [f"text {i}" for i in range(self.at, self.end)]
        if self.at < self.end:
            self._be_at_nothing()
        self.at = self.end

    def acknowledge(self) -> None:
        # Of a filter each answer may stand alone: what is not acknowledged goes on waiting.
        before, self.at = self.at, self.random.randint(self.at, self.end)
        assert [change.row.k for change in self.q.fetch(ack=self.at)] == list(range(self.at, self.end))
        if before < self.at:
            self._be_at_nothing()

    def look(self) -> None:
        n = self.random.choice(_SIZES)
        assert [c.row.k for c in self.q.newest(n)] == list(range(max(self.at, self.end - n), self.end))
        self.db.memory.reclaim()

    def crash(self) -> None:
        """What no loop has gone past is there when the folder is opened as it stands now."""
        if self.folder is None or self.crashes == 8:
            return
        self.crashes += 1
        if self.random.random() < 0.5:
            self.db.checkpoint()
        shutil.copytree(self.folder / "db", copy := self.folder / f"crashed {self.crashes}")
        with minidsms.connect(copy) as db:
            found = [change.row[0] for change in db.queries["q"].fetch()]
        first = min([self.at, *(at for _, at in self.held if at is not None)])
        assert found[len(found) - (self.end - first) :] == list(range(first, self.end))
        assert found == list(range(self.end - len(found), self.end))

    def reopen(self) -> None:
        """What loops have come to has been taken."""
        if self.folder is None:
            return
        if self.random.random() < 0.5:
            self.held.clear()
        self.db.close()
        self.held.clear()
        self.open()

    def end_by(self) -> None:
        """What waits goes where all goes from then on; loops are given nothing more."""
        told: list[int] = []
        if self.random.random() < 0.5:
            self.q.on_change(lambda change: told.append(change.row[0]))
            self.push()
        else:
            self.q.into(lambda table: told.extend(table["k"].to_pylist()))
        assert told == list(range(self.at, self.end))
        assert all(next(changes, None) is None for changes, _ in self.held) and list(self.q) == []
        self.db.close()


def _steps(world: World) -> Iterator[Callable[[], None]]:
    often = [world.push, world.loop, world.go_on]
    seldom = [world.drop, world.raise_within, world.loop_async, world.fetch, world.fetch_arrow]
    others = [world.acknowledge, world.look, world.crash, world.reopen]
    while True:
        yield world.random.choice([*often, *often, *often, *seldom, *others])


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_change_is_given_once_in_order_whoever_asks(tmp_path: Path, seed: int, kept: bool) -> None:
    world = World(tmp_path if kept else None, seed)
    for step in islice(_steps(world), 60 if kept else 150):
        step()
        q = world.q
        assert (q.results, q.position, q.is_waiting) == (world.end, world.at, world.at < world.end)
        assert q.stats()["waiting"] == world.end - world.at
        assert (world.end - world.at) * 24 <= q.nbytes
    world.end_by()
