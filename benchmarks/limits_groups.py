"""Hand-written kernels for running aggregates over TEXT keys and over NULLs: what this machine could do, were the query
all it did.

Texts are coded by Arrow first, which is part of the time. The answer is netted per instant and written into memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from benchmarks.answers import as_answer
from benchmarks.feeds import Feeds, Int64Array

_RANGE = 10_000
Int8Array = npt.NDArray[np.int8]


def text_keys(feeds: Feeds, until: int) -> pa.Table:
    """COUNT and SUM of the last ten seconds by channel."""
    feed = feeds["bid"]
    channel: Any = feed.columns["channel"]
    coded = (channel.combine_chunks() if isinstance(channel, pa.ChunkedArray) else channel).dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    out, sign = count_and_sum(feed.ts, codes, len(coded.dictionary), feed.array("price"), until)
    shown = coded.dictionary.take(pa.array(out[1]))
    return pa.Table.from_arrays(
        [pa.array(out[0]), pa.array(sign), shown, pa.array(out[2]), pa.array(out[3])], names=list("tscnv")
    )


@njit(cache=True, nogil=True)
def count_and_sum(
    ts: Int64Array, key: Int64Array, keys: int, value: Int64Array, until: int
) -> tuple[Int64Array, Int8Array]:
    """A group is a row: rows, their sum, what of both is shown, stamp."""
    n = len(ts)
    out, out_sign = np.empty((4, 4 * n), np.int64), np.empty(4 * n, np.int8)
    groups = np.zeros((keys, 5), np.int64)
    touched = np.empty(2 * n, np.int64)
    i = d = k = stamp = 0
    while (i < n and ts[i] <= until) or (d < i and ts[d] + _RANGE <= until):
        now = ts[d] + _RANGE if d < i and (i == n or ts[d] + _RANGE <= ts[i]) else ts[i]
        stamp += 1
        m = 0
        while d < i and ts[d] + _RANGE == now:
            g = key[d]
            groups[g, 0] -= 1
            groups[g, 1] -= value[d]
            if groups[g, 4] != stamp:
                groups[g, 4] = stamp
                touched[m] = g
                m += 1
            d += 1
        while i < n and ts[i] == now:
            g = key[i]
            groups[g, 0] += 1
            groups[g, 1] += value[i]
            if groups[g, 4] != stamp:
                groups[g, 4] = stamp
                touched[m] = g
                m += 1
            i += 1
        for t in range(m):
            g = touched[t]
            if groups[g, 0] == groups[g, 2] and groups[g, 1] == groups[g, 3]:
                continue
            if groups[g, 2] > 0:
                out[0, k], out[1, k], out[2, k], out[3, k], out_sign[k] = now, g, groups[g, 2], groups[g, 3], -1
                k += 1
            if groups[g, 0] > 0:
                out[0, k], out[1, k], out[2, k], out[3, k], out_sign[k] = now, g, groups[g, 0], groups[g, 1], 1
                k += 1
            groups[g, 2], groups[g, 3] = groups[g, 0], groups[g, 1]
    return out[:, :k], out_sign[:k]


def nulls(feeds: Feeds, until: int) -> pa.Table:
    """COUNT(price) and MAX(price) of the last ten seconds by auction, where either may be NULL."""
    feed = feeds["bid"]
    auction, no_auction = _split(feed.columns["auction"])
    price, no_price = _split(feed.columns["price"])
    keys = int(auction.max()) + 1
    key = np.where(no_auction, keys, auction)
    out, sign = count_and_max_of_present(feed.ts, key, keys + 1, price, no_price, until)
    return as_answer(
        out[0],
        sign,
        pa.array(out[1], mask=out[1] == keys),
        out[2],
        pa.array(out[3], mask=out[2] == 0),
    )


def _split(column: Any) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Values, NULL as 0, and where NULL is."""
    return column.fill_null(0).to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False)


@njit(cache=True, nogil=True)
def count_and_max_of_present(
    ts: Int64Array, key: Int64Array, keys: int, value: Int64Array, is_null: npt.NDArray[np.bool_], until: int
) -> tuple[Int64Array, Int8Array]:
    """A group is a row: rows, values, front and back of its deque, stamp, then rows, values and top that are shown.

    links[i]: the elements before and after i in the deque of its group; -1 is nobody.
    """
    n = len(ts)
    out, out_sign = np.empty((4, 4 * n), np.int64), np.empty(4 * n, np.int8)
    groups = np.zeros((keys, 8), np.int64)
    groups[:, 2:4] = -1
    links = np.empty((n, 2), np.int64)
    touched = np.empty(2 * n, np.int64)
    i = d = k = stamp = 0
    while (i < n and ts[i] <= until) or (d < i and ts[d] + _RANGE <= until):
        now = ts[d] + _RANGE if d < i and (i == n or ts[d] + _RANGE <= ts[i]) else ts[i]
        stamp += 1
        m = 0
        while d < i and ts[d] + _RANGE == now:
            g = key[d]
            groups[g, 0] -= 1
            groups[g, 1] -= not is_null[d]
            if groups[g, 2] == d:
                groups[g, 2] = links[d, 1]
                if groups[g, 2] < 0:
                    groups[g, 3] = -1
                else:
                    links[groups[g, 2], 0] = -1
            if groups[g, 4] != stamp:
                groups[g, 4] = stamp
                touched[m] = g
                m += 1
            d += 1
        while i < n and ts[i] == now:
            g = key[i]
            groups[g, 0] += 1
            if not is_null[i]:
                groups[g, 1] += 1
                back = groups[g, 3]
                while back >= 0 and value[back] <= value[i]:
                    back = links[back, 0]
                links[i, 0], links[i, 1] = back, -1
                if back < 0:
                    groups[g, 2] = i
                else:
                    links[back, 1] = i
                groups[g, 3] = i
            if groups[g, 4] != stamp:
                groups[g, 4] = stamp
                touched[m] = g
                m += 1
            i += 1
        for t in range(m):
            g = touched[t]
            top = value[groups[g, 2]] if groups[g, 1] > 0 else 0
            was, now_shown = groups[g, 5] > 0, groups[g, 0] > 0
            same = groups[g, 6] == groups[g, 1] and groups[g, 7] == top
            if was == now_shown and (same or not was):
                groups[g, 5] = groups[g, 0]
                continue
            if was:
                out[0, k], out[1, k], out[2, k], out[3, k], out_sign[k] = now, g, groups[g, 6], groups[g, 7], -1
                k += 1
            if now_shown:
                out[0, k], out[1, k], out[2, k], out[3, k], out_sign[k] = now, g, groups[g, 1], top, 1
                k += 1
            groups[g, 5], groups[g, 6], groups[g, 7] = groups[g, 0], groups[g, 1], top
    return out[:, :k], out_sign[:k]
