"""Finding rows that went, by their keys: tables in a file, and in memory a small Bloom filter for each generation.

A *generation* is what went one after the other; its filter is [bounds[g], bounds[g + 1]) of `bits`. Its entries, a key
and the number of the row that has it, stand in *runs*, tables of buckets: the entries where each bucket begins, keys
bucket by bucket, and their numbers. The youngest entries stand in `young`, in no order, and belong to the last
generation.

So a key that is in none costs a cache line for each generation, and one in forty a look into a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.k_mon_bloom import may_have, set_bits, spread
from minidsms.kernels.k_mon_keys import key_of
from minidsms.kernels.k_mon_reduction import MATCH, NEW, STANDS
from minidsms.machine_code import Int64s, Int64Table, Uint8s, Uint64s, helper, int64, kernel, uint64

GENERATION, AT, ENTRIES, BUCKETS, RUN_WORDS = range(5)
"""Of a run: whose it is, where it begins in the file (in words), its entries and buckets."""

MET = 32
"""In the mask of a row that has gone: bit n of the n-th way that was closed, bit MET + n where a row stood there."""


class Entries(NamedTuple):
    """Of rows that went: filters and where each begins, runs, the file's words, and young entries."""

    bits: Uint64s
    bounds: Int64s
    runs: Int64Table
    words: Int64s
    young: Int64Table


class Held(NamedTuple):
    """Rows of a stream, in these slots. messages: what they have by sides."""

    cells: Int64s
    base: int
    stride: int
    slots: Int64s
    messages: Uint8s


@helper(inline=True)
def _bucket(h: Any, buckets: int) -> Any:
    return int64((h & uint64(0xFFFFFFFF)) * uint64(buckets) >> uint64(32))


@kernel
def add_entries(bits: Uint64s, first: int, end: int, young: Int64Table, begin: int, stop: int) -> None:
    """Put the keys of the entries [begin, stop) into a filter."""
    for x in range(begin, stop):
        set_bits(bits, first, end, spread(young[0, x]))


@kernel
def make_table(entries: Int64Table, buckets: int, run: Int64s) -> None:
    """Write a run of these entries, (2, m), into `run`, (buckets + 1 + 2 m,)."""
    m = entries.shape[1]
    run[: buckets + 1] = 0
    for x in range(m):
        run[_bucket(spread(entries[0, x]), buckets)] += 1
    total = int64(0)
    for b in range(buckets):
        total += run[b]
        run[b] = total
    run[buckets] = total
    keys = buckets + 1
    for x in range(m - 1, -1, -1):
        b = _bucket(spread(entries[0, x]), buckets)
        run[b] -= 1
        run[keys + run[b]] = entries[0, x]
        run[keys + m + run[b]] = entries[1, x]


@kernel
def find_rows(entries: Entries, held: int, keys: Int64s, first: int, found: Int64s) -> int:
    """Write the numbers, from `first` on, of the rows that have one of these keys into `found`; returns how many there
    are, which may be more than fit.

    held: entries in `young`.  O(keys times generations).
    """
    bits, bounds, runs, words, young = entries
    count = int64(0)
    last = len(bounds) - 2
    for i in range(len(keys)):
        key = keys[i]
        h = spread(key)
        for g in range(last + 1):
            if may_have(bits, bounds[g], bounds[g + 1], h):
                for r in range(len(runs)):
                    if runs[r, GENERATION] == g:
                        at, m, buckets = runs[r, AT], runs[r, ENTRIES], runs[r, BUCKETS]
                        b = at + _bucket(h, buckets)
                        keys_at = at + buckets + 1
                        for x in range(words[b], words[b + 1]):
                            if words[keys_at + x] == key and words[keys_at + m + x] >= first:
                                if count < len(found):
                                    found[count] = words[keys_at + m + x]
                                count += 1
                if g == last:
                    for x in range(held):
                        if young[0, x] == key and young[1, x] >= first:
                            if count < len(found):
                                found[count] = young[1, x]
                            count += 1
    return count


@kernel
def gather_going(
    going: Held, first: Int64s, places: Int64s, bounds: Int64s, staying: Uint64s, staying_bounds: Int64s,
    rows: Int64Table, keys: Int64Table,
) -> None:  # fmt: skip
    """Write rows of a stream that go, each after its mask, into `rows`, and their keys by each way into `keys`.

    first: what the row in a slot has by its n-th side stands at first[n] + slot.
    places[bounds[n]:bounds[n + 1]]: the columns of the n-th way; there may be one more of them than sides, by which
    every row is found.  staying: filters of the keys that rows which stayed have by the n-th side.

    By each side by which no more is expected a row would be found in time; by all, where others may have gone beside
    it. But if there is one where nothing stands that joins it, that one is enough: until a row comes there it is part
    of no result, and then it asks for the others by all its sides.
    """
    cells, base, stride, slots, messages = going
    sides, ways = len(first), len(bounds) - 1
    for x in range(len(slots)):
        at = base + slots[x] * stride
        for w in range(stride):
            rows[x, 1 + w] = cells[at + w]
        mask = int64(0)
        # Beside a row that has stayed, though closed, others may have gone as complete: they do not stand there, and
        # are found by it alone.
        is_beside = False
        for n in range(ways):
            key = key_of(cells, at, places, bounds[n], bounds[n + 1])
            keys[n, x] = key
            if n < sides and staying_bounds[n] < staying_bounds[n + 1] and not is_beside:
                is_beside = may_have(staying, staying_bounds[n], staying_bounds[n + 1], spread(key))
        is_enough = is_beside
        for n in range(sides):
            has = int64(messages[first[n] + slots[x]])
            if has & STANDS:
                mask |= int64(1) << (MET + n)
            if not is_enough and has & (MATCH | STANDS) == 0:
                mask |= int64(1) << n
                is_enough = True
        for n in range(sides):
            has = int64(messages[first[n] + slots[x]])
            if is_beside or (not is_enough and has & (MATCH | NEW) != MATCH | NEW):
                mask |= int64(1) << n
        if ways > sides:
            mask |= int64(1) << sides
        rows[x, 0] = mask


@kernel
def gather_closed(held: Held, first: int, every: bool, places: Int64s, before: Uint64s, keys: Int64s) -> int:
    """Write the keys, by the columns at `places`, of the rows in these slots that were closed by a side into `keys`, or
    of every one; returns how many there are.

    messages[first + slot]: what the row has by the side.  before: the filter of those that were closed earlier.
    """
    cells, base, stride, slots, messages = held
    count = 0
    for x in range(len(slots)):
        key = key_of(cells, base + slots[x] * stride, places, 0, len(places))
        if (
            every
            or int64(messages[first + slots[x]]) & (MATCH | NEW) != MATCH | NEW
            or (len(before) > 0 and may_have(before, 0, len(before), spread(key)))
        ):
            keys[count] = key
            count += 1
    return count
