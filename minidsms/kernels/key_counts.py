"""Counting the rows that have each key, and telling which keys come and go: the right side of semi-joins.

Of each key, by its id in a table (`kernels.key_table`), one word: ROWS times how many rows have it, TOLD where its last
change told is that it came, STANDS where it stands at the instant at which the join is (`kernels.key_probing`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.key_table import Table, acquire
from minidsms.machine_code import Bools, Int8s, Int64s, Int64Table, helper, int64

STANDS, TOLD, ROWS = 1, 2, 4


class Counted(NamedTuple):
    """Rows of whole instants, (n,), and the words of their keys, (n, w)."""

    ts: Int64s
    sign: Int8s
    words: Int64Table


class Asking(NamedTuple):
    """Keys that ask for rows. ts: (n,).  words: (n, w) of their keys; of a semi-join by their ids.  keyed: (n,) whose
    key has no NULL, empty where all have none.
    """

    ts: Int64s
    words: Int64Table
    keyed: Bools


class Standing(NamedTuple):
    """The keys, and which of them change in the part of a slice that is joined.

    table, counts: of all that some row has before it or within it.  asking, sign, ids: room for as many changes as the
    part has rows; sign: what becomes of the rows of the join that have the key.  gone: room for the ids that no row has
    any more.  word: (1, w), for a key that is looked up.  anti: rows are put out whose key does not stand.
    """

    table: Table
    counts: Int64s
    asking: Asking
    sign: Int8s
    ids: Int64s
    gone: Int64s
    word: Int64Table
    anti: int


@helper
def count_keys(rows: Counted, keys: Standing) -> Any:
    """Count the rows of a part; (how many keys have changed, -1 where the table is too small, how many are gone).

    A key changes at most once an instant. Of an instant those come first whose rows of the join leave.
    """
    ts, sign, words = rows
    counts, ids, gone = keys.counts, keys.ids, keys.gone
    slots, held, links, meta = keys.table
    n = len(ts)
    if acquire(words, slots, held, links, meta, ids, 0, True) < n:
        return int64(-1), int64(0)
    i = found = n_gone = 0
    while i < n:
        now, first, named = ts[i], n_gone, n_gone
        # What may change waits behind the ids that are gone.
        while i < n and ts[i] == now:
            before = counts[ids[i]]
            after = before + ROWS * sign[i]
            counts[ids[i]] = after
            gone[named] = ids[i]
            named += int64(before < ROWS or after < ROWS)
            i += 1
        for becomes in (-1, 1):
            for k in range(first, named):
                e = gone[k]
                word = counts[e]
                if (word >= ROWS) != (word & TOLD != 0) and (word >= ROWS) == ((becomes > 0) != (keys.anti != 0)):
                    counts[e] = word ^ TOLD
                    # Not beyond the elements that are done, whose ids are needed no more.
                    keys.asking.ts[found], keys.sign[found], ids[found] = now, becomes, e
                    found += 1
        for k in range(first, named):
            gone[n_gone] = gone[k]
            n_gone += int64(counts[gone[k]] < ROWS)
    # A key that is gone may have come back at a later instant.
    m = 0
    for k in range(n_gone):
        gone[m] = gone[k]
        m += int64(counts[gone[k]] < ROWS)
    return int64(found), int64(m)
