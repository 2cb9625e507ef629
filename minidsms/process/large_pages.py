"""Memory for answers of many rows: blocks on large pages, which are used again once nobody holds what stands in them.

A small page that is touched for the first time costs as much as to join some of the rows that are written to it.
"""

from __future__ import annotations

import sys
import threading
from collections import deque

import numpy as np

from minidsms.elements import Int64Array
from minidsms.process.forking import keep_whole

BLOCK_WORDS = 1 << 19
"""Of a block: 4 MiB, for which numpy asks for large pages."""
_LARGE_PAGE = 1 << 21
_KEPT = 8
"""Blocks that the process keeps."""
_blocks: deque[Int64Array] = deque(maxlen=_KEPT)
_lock = threading.Lock()
keep_whole(_lock)


def words_on_large_pages(n: int) -> Int64Array:
    """So many words, not initialized, from the beginning of a large page on. Whoever holds a view of them holds all."""
    if n > BLOCK_WORDS:
        return _aligned(_room(n), n)
    with _lock:
        for i in range(len(_blocks)):
            # A view holds the array that owns the memory, and views of a view do, too.
            if _references(_blocks, i) == _AT_REST:
                return _aligned(_blocks[i], n)
        block = _room(BLOCK_WORDS)
        _blocks.append(block)
        return _aligned(block, n)


def _references(blocks: deque[Int64Array], i: int) -> int:
    return sys.getrefcount(blocks[i])


_AT_REST = _references(deque([np.empty(0, np.int64)]), 0)
"""References to a block that nobody holds; how the call itself counts differs between versions of Python."""


def _room(n: int) -> Int64Array:
    return np.empty(n + _LARGE_PAGE // 8, np.int64)  # what is not touched takes no memory


def _aligned(room: Int64Array, n: int) -> Int64Array:
    first = -room.ctypes.data % _LARGE_PAGE // 8
    return room[first : first + n]
