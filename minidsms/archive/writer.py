"""The one writer of an archive: it holds the lock, and what it commits to the log counts.

Files come first, under their final names, and then the commit that names them. A writer that was killed in between has
left files that nothing names; the next writer removes them. Where a lock can be lost (`Storage.locks`), it makes a
commit before, so that whoever wrote these files can commit them no more. An archive without a log, as earlier versions
wrote them, gets one that begins with all its files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

from minidsms.archive import unlogged
from minidsms.archive.format import Archive, file_of, has_ranges, partition_folders, readable
from minidsms.archive.log import Commit, Origin, Snapshot, publish, read_snapshot
from minidsms.archive.statistics import statistics_of
from minidsms.archive.storage import InDoubtError, below, storage_of
from minidsms.cql.errors import Error


class Writer:
    """Held from construction to `release`. Error where another writer, here or in another process, holds the archive,
    and where it cannot be written.
    """

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._storage = storage_of(archive.folder)
        self._lost: str | None = None
        self._is_in_doubt = False
        self._lock = self._storage.lock(archive.folder)
        try:
            self.snapshot = self._begun()
            self._sweep()
        except OSError as error:
            self.release()
            raise Error(f"cannot write the archive {archive.folder!r}: {error.strerror or error}") from None
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def release(self) -> None:
        """Let another writer have it. Releasing twice is no error."""
        self._lock.release()

    def commit(
        self,
        what: str,
        added: Sequence[str] = (),
        removed: Sequence[str] = (),
        batch: str | None = None,
        origins: Sequence[Origin] = (),
        kept: Mapping[str, int] | None = None,
    ) -> None:
        """Let files be of the archive from now on, and others no more, in one step. added, removed: paths.  kept: as in
        `Commit`.

        Raises OSError; then nothing has changed. Error as `check`.
        """
        self.check()
        names = [tuple(below(self.archive.folder, path) for path in paths) for paths in (added, removed)]
        arrivals = max((file_of(path).last_arrival + 1 for path in added), default=0)
        fields = self.archive.metadata.fields
        found = {name: statistics_of(path, fields) for name, path in zip(names[0], added)}
        known = {name: statistics for name, statistics in found.items() if statistics is not None}
        change = Commit(what, names[0], names[1], arrivals, batch, tuple(origins), known, kept or {})
        try:
            self.snapshot = publish(self.archive.folder, self.snapshot, change)
        except FileExistsError:
            self._lost = "somebody else has written it since"
        except InDoubtError as error:
            self._lost, self._is_in_doubt = f"whether its last commit was made is not known ({str(error)[:200]})", True
        self._check_lost()

    def check(self) -> None:
        """Error where nothing can be committed any more, because the archive has been lost to somebody else."""
        if self._lost is None and not self._lock.is_held():
            self._lost = "its lock has been removed, or taken by somebody else"
        self._check_lost()

    def _check_lost(self) -> None:
        if self._lost is not None:
            raise Error(
                f"the archive {self.archive.folder!r} is no longer this connection's: {self._lost}\n"
                "help: begin again behind what it has: connect anew, and replay it"
            )

    def discard(self, paths: Sequence[str]) -> None:
        """Remove files that have not been committed, as far as they can be and that is certain."""
        for path in () if self._is_in_doubt else paths:
            with contextlib.suppress(OSError):
                self._storage.remove(path)

    def expire(self, kept: int) -> int:
        """Remove the files of a stream's archive whose elements are all more than `kept` ticks older than its greatest
        instant, in one commit; how many. A relation keeps its changes: its rows follow from them. Raises OSError, and
        then nothing has gone.
        """
        files = self.archive.files() if self.archive.metadata.kind == "stream" else []
        last = max((f.last_ts for f in files), default=0)
        old = [f.path for f in files if f.last_ts < last - kept]
        if old:
            self.commit("expire", removed=old)
            self.discard(old)
            for folder in {os.path.dirname(path) for path in old}:
                with contextlib.suppress(OSError):  # others of its files are kept
                    self._storage.remove_folder(folder)
        return len(old)

    def _begun(self) -> Snapshot:
        there = read_snapshot(self.archive.folder)
        if there is not None:
            return there
        unlogged.finish(self.archive)
        self.snapshot = Snapshot()
        self.commit("begin", [file.path for file in unlogged.files(self.archive)])
        return self.snapshot

    def _sweep(self) -> None:
        """Remove the files of commits that were not made."""
        left = [p for p in _data_files(self.archive) if below(self.archive.folder, p) not in self.snapshot.files]
        if left and not self._storage.locks:
            self.commit("begin")
        self.discard(left)


def _data_files(archive: Archive) -> Iterator[str]:
    """The files of an archive's partitions that bear names as writers give them."""
    for folder in partition_folders(archive.folder):
        with readable(folder):
            names = [entry.name for entry in storage_of(folder).entries(folder)]
        yield from (os.path.join(folder, name) for name in names if has_ranges(name))
