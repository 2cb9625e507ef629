"""Where the time of archives is cut into slices that engines in tasks answer apart, each from files it reads itself.

A slice holds about as many bytes as the others, not as many instants: archives have gaps of years. It is at least
twice as long as what its engine reads before it, so that nothing is read much more than once. Every engine takes all
changes of relations up to the end of its slice; where those are many, the slices are few.
docs/spark.md; `partitioning` says how far an answer reaches back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.archive.conditions import needed_by
from minidsms.archive.format import Archive, ArchiveFile
from minidsms.archive.lost_files import telling_lost
from minidsms.archive.storage import storage_of
from minidsms.cql.bound import Node

SLICE_BYTES = 24 << 20
"""Bytes of the files of a slice, about: a few seconds of an engine's time."""

LEAST_BYTES = 2 << 20
_ROW_BYTES = 16
"""Of a row in files of which the log tells nothing, about."""


@dataclass(frozen=True)
class Extent:
    """How much there is to read: files of streams and of relations, and the bytes of each that must be read."""

    streams: tuple[tuple[ArchiveFile, int], ...]
    relations: tuple[tuple[ArchiveFile, int], ...]

    @property
    def rows(self) -> int:
        """About how many must be read."""
        read = [(f.statistics, size) for f, size in (*self.streams, *self.relations) if size]
        return sum(size // _ROW_BYTES if known is None else known.rows for known, size in read)

    @classmethod
    def of(cls, archives: Sequence[Archive], until: int | None = None, root: Node | None = None) -> Extent:
        """Of these archives, up to an instant. root: a plan; what it does not need has no bytes."""
        found: dict[str, list[tuple[ArchiveFile, int]]] = {"stream": [], "relation": []}
        for archive in archives:
            files = archive.files(None, until)
            read = [f.path for f in (files if root is None else needed_by(archive, root, until))]
            with telling_lost(archive, read):
                known = dict(zip(read, storage_of(archive.folder).sizes(read)))
            sizes = [known.get(f.path, 0) for f in files]
            found[archive.metadata.kind] += zip(files, sizes)
        return cls(tuple(found["stream"]), tuple(found["relation"]))

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last instant of any element; the last lies before the first where there is none."""
        files = [f for f, _ in (*self.streams, *self.relations)]
        first = min((f.first_ts for f in files), default=0)
        return first, max((f.last_ts for f in files), default=first - 1)

    @property
    def nbytes(self) -> int:
        """Of streams."""
        return sum(size for _, size in self.streams)

    @property
    def of_relations(self) -> int:
        """Bytes of relations."""
        return sum(size for _, size in self.relations)


def slices(extent: Extent, lookback: int, tasks: int, first: int, until: int) -> list[tuple[int, int]]:
    """The slices of [first, until], both ends of each included, in order; none of an empty history.

    tasks: how many run at a time.
    """
    if until < first:
        return []
    wanted = max(-(-extent.nbytes // SLICE_BYTES), min(2 * tasks, extent.nbytes // LEAST_BYTES))
    if extent.of_relations:
        wanted = min(wanted, max(extent.nbytes, LEAST_BYTES) // extent.of_relations)
    begins = [first]
    for border in _quantiles(extent.streams, wanted):
        if border - begins[-1] >= 2 * lookback and until - border >= lookback:
            begins.append(border)
    return list(zip(begins, [*(b - 1 for b in begins[1:]), until]))


def _quantiles(files: Sequence[tuple[ArchiveFile, int]], parts: int) -> list[int]:
    """The instants that part the bytes of files into so many equal parts, each file's spread evenly over its time."""
    if parts < 2 or not files:
        return []
    first = min(f.first_ts for f, _ in files)
    begin = np.array([f.first_ts - first for f, _ in files], np.int64)
    end = np.array([f.last_ts + 1 - first for f, _ in files], np.int64)
    density = np.array([size for _, size in files]) / (end - begin)
    at, place = np.unique(np.concatenate((begin, end)), return_inverse=True)
    change = np.bincount(place, np.concatenate((density, -density)))
    bytes_so_far = np.concatenate(([0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(at))))
    borders = np.interp(np.arange(1, parts) * (bytes_so_far[-1] / parts), bytes_so_far, at.astype(np.float64))
    return [first + int(b) for b in borders]


def read_twice(found: Sequence[tuple[int, int]], extent: Extent, lookback: int) -> float:
    """How many times more is read than there is, because every slice but the first begins so long before."""
    first = min((f.first_ts for f, _ in extent.streams), default=0)
    data = max(max((f.last_ts for f, _ in extent.streams), default=0) - first, 1)
    return 1 + max(len(found) - 1, 0) * min(lookback, data) / data
