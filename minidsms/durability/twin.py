"""A connection that a log leads to, beside the one that writes it: to be made a checkpoint of, or compared with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidsms.connection import Connection
from minidsms.cql.errors import Error
from minidsms.durability.connection import DurableConnection
from minidsms.durability.recovery import replay


class Twin(DurableConnection):
    """It writes no file and reads no source: those are the other's.

    settings: those the folder was made with.  until: the number of the first entry that is left out.  go_on: called
    between entries; it may raise.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        log_folder: str,
        until: int | None = None,
        go_on: Callable[[], None] | None = None,
    ) -> None:
        self._begin(log_folder)
        self.archives.are_written = False
        Connection.__init__(self, **settings)
        if replay(self, log_folder, until, go_on) is not None:
            raise Error(f"{log_folder!r}: its last entry cannot be carried out again")
        self.files.is_reading = False

    def close(self) -> None:
        """Forget it, and everything it has: its parts refer to it, and would else stay until a search for garbage."""
        super().close()
        vars(self).clear()

    def _end(self) -> None:
        """Write nothing."""
        self.journal.is_ending = True
        Connection._end(self)

    def _let_go(self) -> None:
        """Nothing: the folder's lock and the log are the running connection's."""
