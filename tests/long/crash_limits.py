"""Limits that strike at random while a client makes its calls: memory, time, answers that wait, and no memory at all.

What is refused never came; the oracle, which knows no limits, leaves it out. A query that a limit made fail has given
what the oracle gives before that instant, and of the instant nothing, but for queries that answer at instants still
open: a part of it. However often the folder is opened, it has failed there.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

from minidsms.connection import Connection
from minidsms.cql.errors import MemoryLimitError
from minidsms.durability.connection import DurableConnection
from minidsms.limits.admission import Admission
from minidsms.limits.allowance import Allowance
from tests.every_operator import wrapped_turns

SETTINGS = {"memory_limit": "1 GB", "statement_timeout": "1 SECOND"}
"""Limits that nothing reaches but what is made to."""


@dataclass
class Limits:
    """Of one client. share: how often a limit strikes where one is asked for.  answer_limit: the setting.

    refused: the calls that were.  failed: by query, at which instant, as far as it is known.  open: queries that answer
    at instants still open.
    """

    share: float
    answer_limit: int
    refused: set[int] = field(default_factory=set)
    failed: dict[str, int] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    strikes: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """Of the connection."""
        return {**SETTINGS, "answer_limit": self.answer_limit}

    def said(self) -> str:
        """What is noted, as a text."""
        return json.dumps([sorted(self.refused), self.failed, sorted(self.open)])

    def take(self, said: str) -> None:
        """Take what another process has noted."""
        refused, self.failed, opened = json.loads(said)
        self.refused, self.open = set(refused), set(opened)

    @contextlib.contextmanager
    def striking(self, rng: Random) -> Iterator[None]:
        """Limits strike now and then."""
        take, admit = Allowance.take, Admission.admit

        def strikes() -> bool:
            is_due = rng.random() < self.share
            self.strikes += is_due
            return is_due

        def taking(self: Allowance, nbytes: int) -> None:
            if strikes():
                raise MemoryLimitError("so much is not allowed")
            take(self, nbytes)

        def admitting(self: Admission, stream: Any, n: int) -> None:
            if strikes():
                raise MemoryLimitError("no room")
            admit(self, stream, n)

        def failing(turn: Callable[..., Any]) -> Callable[..., Any]:
            def taken(*given: Any) -> Any:
                if rng.random() < share / 10:
                    raise MemoryError
                return turn(*given)

            return taken

        share = self.share
        with (
            mock.patch("minidsms.limits.allowance.monotonic", lambda: 2e9 if strikes() else 0.0),
            mock.patch.object(Allowance, "take", taking),
            mock.patch.object(Admission, "admit", admitting),
            wrapped_turns(failing),
        ):
            yield

    def note(self, db: Connection) -> None:
        """Note which queries have failed. AssertionError where one that had failed has not, or at another instant."""
        for name, query in db.queries.items():
            if query.network.is_immediate:
                self.open.add(name)
            found = None if query.failure is None else query.failure[0]
            known = self.failed.get(name, found)
            assert known == found, f"{name} has failed at {found}, and had at {known}"
            if found is not None:
                self.failed[name] = found

    def check(self, name: str, *answers: Sequence[tuple[int, str]], story: str) -> None:
        """AssertionError where a query has given other answers than the oracle before its failure.

        answers: of both, with their instants.
        """
        failed_at = self.failed.get(name)
        ours, theirs = map(Counter, answers)
        if failed_at is not None:
            theirs = Counter({each: n for each, n in theirs.items() if each[0] <= failed_at})
            at = Counter({each: n for each, n in theirs.items() if each[0] == failed_at})
            if name in self.open:
                at -= ours  # it may lack some
            theirs -= at
        assert ours == theirs, f"{story}: {name}, failed at {failed_at}, differs"


def is_astray(db: DurableConnection) -> bool:
    """It takes nothing more until the folder is opened again."""
    return db.journal.is_astray
