"""What a benchmark feeds: timestamped columns per stream, and how they reach a connection.

Invariant: a feed's ts are nondecreasing, and cutting it into parts never splits an instant, so that the parts may be
pushed one stream after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from minidsms import Connection

Int64Array = npt.NDArray[np.int64]
AnyColumn = npt.NDArray[np.generic] | pa.Array


@dataclass(frozen=True)
class Feed:
    """The elements of one input. sign: of the changes of a relation; None for a stream."""

    ts: Int64Array
    columns: Mapping[str, AnyColumn]
    sign: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def array(self, name: str) -> Int64Array:
        """A column of whole numbers without NULLs, as kernels take it."""
        column = self.columns[name]
        assert isinstance(column, np.ndarray)
        return np.ascontiguousarray(column, dtype=np.int64)

    def table(self) -> pa.Table:
        """The elements with their instants in column `ts` (and signs in `sign`)."""
        columns = {"ts": pa.array(self.ts), **{name: pa.array(column) for name, column in self.columns.items()}}
        if self.sign is not None:
            columns["sign"] = pa.array(self.sign)
        return pa.table(columns)


Feeds = Mapping[str, Feed]
"""Relations stand before the streams they meet: a change must come before its instant closes."""


def last_instant(feeds: Feeds) -> int:
    """The instant up to which answers are compared."""
    return max(int(feed.ts[-1]) for feed in feeds.values() if len(feed))


def parts(feeds: Feeds, size: int) -> Iterator[tuple[str, Feed]]:
    """The feeds in event-time order, about `size` elements of the longest at a time."""
    longest = max(feeds.values(), key=len)
    begun = dict.fromkeys(feeds, 0)
    for stop in range(size, len(longest) + size, size):
        is_last = stop >= len(longest)
        until = longest.ts[min(stop, len(longest)) - 1]
        for name, feed in feeds.items():
            lo = begun[name]
            hi = len(feed) if is_last else int(np.searchsorted(feed.ts, until, side="right"))
            begun[name] = hi
            if hi > lo:
                columns = {c: values[lo:hi] for c, values in feed.columns.items()}
                yield name, Feed(feed.ts[lo:hi], columns, None if feed.sign is None else feed.sign[lo:hi])


def push_all(db: Connection, pieces: list[tuple[str, Feed]], until: int) -> None:
    """Push prepared parts, and close the last instant."""
    for name, part in pieces:
        if part.sign is None:
            db.push(name, part.columns, ts=part.ts)
        else:
            db.push(name, part.columns, ts=part.ts, sign=part.sign)
    db.advance(until)
