"""Answers that somebody has taken: the log says so, and they do not come again when the folder is opened."""

from __future__ import annotations

from collections.abc import Callable

from minidsms.durability.entry import taken
from minidsms.durability.kept_files import KeptFiles
from minidsms.durability.log_writer import LogWriter
from minidsms.engine.running_query import RunningQuery


class Acknowledgements:
    """By query, the position before which the log says that answers have been taken."""

    def __init__(self, writer: LogWriter, files: KeptFiles) -> None:
        self._writer, self._files = writer, files
        self._noted: dict[str, int] = {}

    def are_due(self, query: RunningQuery, until: int) -> bool:
        """Whether the log does not say it yet. Of a file its marks do."""
        return self._writer.log is not None and self._noted.get(query.name, 0) < until and query not in self._files

    def note(self, query: RunningQuery, until: int) -> Callable[[], None]:
        """Answers before this position have been taken. What takes that back, as in `Database.note_taken`."""
        writer, log, before = self._writer, self._writer.log, self._noted.get(query.name, 0)
        assert log is not None
        log.commit()  # an answer that somebody has seen does not go back on what it was made of
        number = log.next
        if not writer.is_amid:
            log.append(taken(query.name, until), is_awaited=False)
        self._noted[query.name] = until

        def unnote() -> None:
            if log is writer.log and log.next == number + 1 and not writer.is_amid:
                log.retract(number)
                self._noted[query.name] = before

        return unnote

    def forget(self, query: RunningQuery) -> None:
        """A query has ended."""
        self._noted.pop(query.name, None)
