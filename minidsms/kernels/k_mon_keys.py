"""The columns by which a row of a reduced join is found, as one word: the key, and the bucket that it leads to.

Invariant: rows that agree in the columns have one key; of one column the key is its word itself.
"""

from __future__ import annotations

from minidsms.kernels.mixing import mixed
from minidsms.machine_code import helper, kernel


@helper(inline=True)
def key_of(cells, at, places, begin, end):  # type: ignore[no-untyped-def]
    """The key of the row at `at` by the words at places[begin:end]."""
    h = cells[at + places[begin]]
    if end - begin > 1:
        h = mixed(0, h)  # lest words that are exchanged give the same
        for p in range(begin + 1, end):
            h = mixed(h, cells[at + places[p]])
    return h


@helper(inline=True)
def key_of_words(words, at, n):  # type: ignore[no-untyped-def]
    """The same of n words that stand side by side from `at` on."""
    h = words[at]
    if n > 1:
        h = mixed(0, h)
        for p in range(1, n):
            h = mixed(h, words[at + p])
    return h


@kernel("void(int64[::1], int64, int64, int64[::1], int64[::1])")
def keys_of_rows(cells, at, stride, places, keys):  # type: ignore[no-untyped-def]
    """Write the keys of rows that stand side by side, the first at `at`."""
    for i in range(len(keys)):
        keys[i] = key_of(cells, at + i * stride, places, 0, len(places))
