"""Kernels of screens: rows against the boxes of many filters, row by row. Lee and Lee 2012, sections 3 and 5.1.

A column's values are divided into regions, numbered over all columns of a screen; the first of a column is NULL. A
region has a bitmap of the filters that it cannot refute (qrb). A row's bitmap (GRB) begins with that of its first
column and loses, column by column, what their regions refute; the row is dropped as soon as nothing is left. Which
column comes next says the arrow of the region, if it has one and its column has not been looked at (GEB), else the
first in the order that has not.

    asc.columns   (p,) per column: how regions are found (`ScreenedColumn`), and where
    asc.direct    regions of consecutive values (DIRECT), counted from the column's first region
    asc.edges     ascending cuts (SEARCHED): a value behind c of them is in region 1 + c
    asc.bits      (regions, words) uint64

Invariant: found pairs (row, filter) are in ascending row; what is found does not depend on order and arrows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.machine_code import (
    BoolTable,
    Int32s,
    Int32Table,
    Int64s,
    Int64Table,
    Record,
    Rows,
    Uint64s,
    Uint64Table,
    helper,
    int64,
    kernel,
    uint64,
)

DIRECT, SEARCHED, GIVEN = range(3)
"""How regions of a column are found."""
BLOCK = 4
"""Words of bitmaps that home lists look at together."""
CHUNK = 1024
"""Rows that home lists look at together."""
STEP = 64
"""Of these, how many at a time meet a block of bitmaps before those left are compared."""
FETCHED = 32
"""Rows from which on a block is brought into the cache as a whole."""
LINE = 8
"""Words of a line of the cache."""


class ScreenedColumn(Record):
    """How regions of a column are found: DIRECT, by a table at `place` of the value less `least`, up to `span`;
    SEARCHED, among `count` cuts at `place`; GIVEN, the value is the region. region: the first of its regions.
    """

    kind: int
    least: int
    span: int
    place: int
    count: int
    region: int


class ScreenState(Record):
    """row: the next row; of home lists the first of the chunk.  found: pairs.  micro: arrows of regions followed.
    home, of_home, turn: the next home, its next block, whose turn it is there.  words: of bitmaps looked at.
    """

    row: int
    found: int
    micro: int
    home: int
    of_home: int
    turn: int
    words: int


class AnswerSlot(Record):
    """The number of the last portion, all rows that were given, and who reads them."""

    last: int
    total: int
    readers: int


class Tables(NamedTuple):
    """By which regions are found (see above)."""

    columns: Rows[ScreenedColumn]
    direct: Int32s
    edges: Int64s


class Asc(NamedTuple):
    """Tables and bitmaps."""

    columns: Rows[ScreenedColumn]
    direct: Int32s
    edges: Int64s
    bits: Uint64Table


class Looks(NamedTuple):
    """order: of the columns.  arrows: by region, -1 for none."""

    order: Int64s
    arrows: Int32s


class LookedAt(NamedTuple):
    """alive: GRB.  looked_by: GEB, as the row that looked at each column last.  filters: of each bit.  counts: by
    column how often it was looked at, and how many rows it dropped.
    """

    alive: Uint64s
    looked_by: Int64s
    filters: Int32s
    counts: Int64Table


class Pairs(NamedTuple):
    """Found so far, and room."""

    rows: Int32s
    filters: Int32s


class Lists(NamedTuple):
    """See `screens.homes`."""

    homes: Int64Table
    blocks: Int64Table
    packed: Uint64s
    bits: Uint64s
    tests: Int32Table
    starts: Int32s
    asked: Int32Table


class Meeting(NamedTuple):
    """turns: the rows that meet a block.  left: words of bitmaps in which filters are left.  whose: row and word."""

    turns: Int32s
    left: Uint64s
    whose: Int64s


@helper(inline=True)
def _lowest(word: Any) -> Any:
    """The number of the lowest bit set: how many stand below it, counted without a branch."""
    below = (word & (~word + uint64(1))) - uint64(1)
    below = below - ((below >> uint64(1)) & uint64(0x5555555555555555))
    below = (below & uint64(0x3333333333333333)) + ((below >> uint64(2)) & uint64(0x3333333333333333))
    below = (below + (below >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return int64((below * uint64(0x0101010101010101)) >> uint64(56))


@helper
def region_of(columns: Any, direct: Any, edges: Any, c: Any, value: Any) -> Any:
    """The region of a value that is not NULL, counted from the column's first."""
    if columns[c].kind == DIRECT:
        at = value - columns[c].least
        if value < columns[c].least:
            at = 0
        elif value - columns[c].span > columns[c].least:
            at = columns[c].span
        return int64(direct[columns[c].place + at])
    if columns[c].kind == GIVEN:
        return value
    place = columns[c].place
    low = 0
    n = columns[c].count
    while n > 1:
        half = n >> 1
        low += half * int64(edges[place + low + half - 1] <= value)
        n -= half
    return 1 + low + int64(edges[place + low] <= value)


@kernel
def screen_rows(
    keys: Int64Table, present: BoolTable, asc: Asc, sequence: Looks, scratch: LookedAt, found: Pairs, state: ScreenState
) -> None:
    """Go on from state.row until all rows are done, or `found` has no room for what one more may bring.

    keys, present: (p, n) values and whether they are there.
    """
    columns, direct, edges, bits = asc
    order, arrows = sequence
    alive, looked_by, filters, counts = scratch
    rows, members = found
    words = len(alive)
    k = state.found
    row = state.row
    n = keys.shape[1]
    micro = 0
    while row < n and k + len(filters) <= len(rows):
        c = order[0]
        at = 0
        is_first = True
        while True:
            region = columns[c].region
            if present[c, row]:
                region += region_of(columns, direct, edges, c, keys[c, row])
            counts[0, c] += 1
            looked_by[c] = row
            left = uint64(0)
            if is_first:
                for w in range(words):
                    alive[w] = bits[region, w]
                    left |= alive[w]
                is_first = False
            else:
                for w in range(words):
                    alive[w] &= bits[region, w]
                    left |= alive[w]
            if left == uint64(0):
                counts[1, c] += 1
                break
            following = arrows[region]
            if following >= 0 and looked_by[following] != row:
                c = int64(following)
                micro += 1
                continue
            while at < len(order) and looked_by[order[at]] == row:
                at += 1
            if at == len(order):
                break
            c = order[at]
        if left != uint64(0):
            for w in range(words):
                word = alive[w]
                while word != uint64(0):
                    rows[k] = row
                    filter_ = filters[(w << 6) + _lowest(word)]
                    members[k] = filter_
                    k += filter_ >= 0
                    word &= word - uint64(1)
        row += 1
    state.row = row
    state.found = k
    state.micro += micro


@helper
def _is_in(asked: Any, first: Any, end: Any, regions: Any, row: Any) -> Any:
    """1 if a row lies in a box that asks what stands in these lines, else 0; no branch depends on it."""
    inside = int64(1)
    i = int64(first)
    while i < end:
        region = regions[row, asked[i, 0]]
        low = i
        n = int64(asked[i, 3])
        i += n
        while n > 1:
            half = n >> 1
            low += half * int64(asked[low + half, 1] <= region)
            n -= half
        inside &= int64(region >= asked[low, 1]) & int64(region <= asked[low, 2])
    return inside


@helper
def _admitted(regions: Any, home: Any, rows: Any, span: Any, turns: Any) -> Any:
    """How many of the rows from rows[0] to rows[1] have a region of the home in a span, (first, regions); they stand in
    `turns`, ascending. No branch depends on it.
    """
    n = 0
    for row in range(rows[0], rows[1]):
        turns[uint64(n)] = row
        n += int64(uint64(regions[uint64(row), uint64(home)] - span[0]) < uint64(span[1]))
    return n


@helper
def _fetch(words: Any, first: Any, end: Any) -> Any:
    """Bring words into the cache one after the other, sooner than rows ask for them here and there; 0, which the
    compiler cannot know.
    """
    seen = uint64(0)
    for i in range(first, end, LINE):
        seen |= uint64(words[uint64(i)])
    return int64(seen == ~uint64(0) >> uint64(1))


@helper
def _fetch_rows(table: Any, first: Any, end: Any) -> Any:
    """The same of rows of small numbers >= 0, two of which may share a line."""
    seen = int64(0)
    for i in range(first, end, 2):
        for j in range(0, table.shape[1], LINE):
            seen |= int64(table[uint64(i), uint64(j)])
    return int64(seen == int64(-1))


@helper(inline=True)
def _meet(regions: Any, groups: Any, lists: Any, scratch: Any, span: Any, block: Any) -> Any:
    """How many words have filters left that the groups of all columns admit, of the rows of a span of turns in a block,
    (home, its first word, that of its groups); they stand in `left` and `whose`.
    """
    _, _, packed, bits, _, _, _ = lists
    turns, left, whose = scratch
    home, at, group = block
    n = 0
    for t in range(span[0], span[1]):
        row = int64(turns[uint64(t)])
        line = at + BLOCK * int64(regions[uint64(row), uint64(home)])
        w0 = packed[uint64(line)]
        w1 = packed[uint64(line + 1)]
        w2 = packed[uint64(line + 2)]
        w3 = packed[uint64(line + 3)]
        for c in range(regions.shape[1]):
            if c != home:
                line = group + groups[uint64(row), uint64(c)]
                w0 &= bits[uint64(line)]
                w1 &= bits[uint64(line + 1)]
                w2 &= bits[uint64(line + 2)]
                w3 &= bits[uint64(line + 3)]
        row *= BLOCK
        left[uint64(n)] = w0
        whose[uint64(n)] = row
        n += int64(w0 != uint64(0))
        left[uint64(n)] = w1
        whose[uint64(n)] = row + 1
        n += int64(w1 != uint64(0))
        left[uint64(n)] = w2
        whose[uint64(n)] = row + 2
        n += int64(w2 != uint64(0))
        left[uint64(n)] = w3
        whose[uint64(n)] = row + 3
        n += int64(w3 != uint64(0))
    return n


@helper(inline=True)
def _compare(regions: Any, lists: Any, filters: Any, scratch: Any, words: Any, found: Any, k: Any) -> Any:
    """Write the pairs whose row lies in the filter's box behind k others; how many there are. words: how many have
    filters left, and the first bit of their block.
    """
    _, _, _, _, tests, starts, asked = lists
    _, left, whose = scratch
    rows, members = found
    n, bit = words
    for i in range(n):
        word = left[uint64(i)]
        row = whose[uint64(i)] // BLOCK
        of_word = bit + 64 * (whose[uint64(i)] % BLOCK)
        while word != uint64(0):
            asks = uint64(of_word + _lowest(word))
            filter_ = filters[asks]
            rows[uint64(k)] = row
            members[uint64(k)] = filter_
            inside = int64(filter_ >= 0)
            for j in range(0, tests.shape[1], 3):
                region = regions[uint64(row), uint64(tests[asks, uint64(j)])]
                inside &= int64(region >= tests[asks, uint64(j + 1)])
                inside &= int64(region <= tests[asks, uint64(j + 2)])
            if starts[asks] < starts[asks + uint64(1)]:
                inside &= _is_in(asked, starts[asks], starts[asks + uint64(1)], regions, row)
            k += inside
            word &= word - uint64(1)
    return k


@kernel
def screen_homes(
    regions: Int32Table,
    groups: Int32Table,
    lists: Lists,
    filters: Int32s,
    scratch: Meeting,
    found: Pairs,
    state: ScreenState,
) -> None:
    """Go on from `state` until all rows are done, or `found` has no room for what STEP more may bring.

    CHUNK rows after CHUNK rows, home by home, and there block by block of bitmaps: the rows whose region admits some of
    a block's filters meet it one after the other, so that all they look at stays in the first-level cache. Whoever all
    columns' groups admit is compared.

    regions, groups: (n, p) of the rows, groups by their first word in a block.  filters: of each bit.  found: those of
    each filter in ascending row.
    """
    homes, blocks, packed, bits, tests, _, _ = lists
    turns, _, _ = scratch
    rows, _ = found
    first, home, block, turn, k = state.row, state.home, state.of_home, state.turn, state.found
    looked = 0
    while first < len(regions):
        end = min(first + CHUNK, len(regions))
        while home < regions.shape[1]:
            while block < homes[home, 1]:
                number = homes[home, 0] + block
                span = blocks[number, 0], (blocks[number + 1, 1] - blocks[number, 1]) // BLOCK
                last = _admitted(regions, home, (first, end), span, turns)
                bit = number * (64 * BLOCK)
                group = number * homes[home, 2]
                at = blocks[number, 1] - blocks[number, 0] * BLOCK
                if last - turn >= FETCHED:
                    looked += _fetch(packed, blocks[number, 1], blocks[number + 1, 1])
                    looked += _fetch(bits, group, group + homes[home, 2])
                    looked += _fetch_rows(tests, bit, bit + 64 * BLOCK)
                while turn < last:
                    stop = min(turn + STEP, last)
                    if k + (stop - turn) * (64 * BLOCK) > len(rows):
                        state.row, state.home, state.of_home, state.turn, state.found = first, home, block, turn, k
                        state.words += looked
                        return
                    n = _meet(regions, groups, lists, scratch, (turn, stop), (home, at, group))
                    looked += BLOCK * (stop - turn)
                    k = _compare(regions, lists, filters, scratch, (n, bit), found, k)
                    turn = stop
                block += 1
                turn = 0
            block = 0
            home += 1
        home = 0
        first = end
    state.row, state.found = first, k
    state.words += looked


@kernel
def regions_of(keys: Int64Table, present: BoolTable, tables: Tables, out: Int32Table) -> None:
    """out[c, i]: the region of row i in column c, numbered over all columns."""
    columns, direct, edges = tables
    for c in range(len(keys)):
        for i in range(keys.shape[1]):
            region = columns[c].region
            if present[c, i]:
                region += region_of(columns, direct, edges, c, keys[c, i])
            out[c, i] = region


@kernel
def turn_to_rows(regions: Int32Table, groups: Int32Table, by_row: Int32Table, groups_by_row: Int32Table) -> None:
    """The regions of rows, (p, n) -> (n, p), and by row the first words of their groups in a block of bitmaps.

    groups: (p, 3) of a column its first group, the shift that makes a region's number that of its group, and its first
    region.
    """
    for c in range(len(regions)):
        for i in range(regions.shape[1]):
            region = regions[c, i]
            by_row[i, c] = region
            groups_by_row[i, c] = BLOCK * (groups[c, 0] + ((region - groups[c, 2]) >> groups[c, 1]))


@kernel
def by_member(rows: Int32s, members: Int32s, n: int, counts: Int64s, given: Int64Table, out: Int32s) -> int:
    """A stable counting sort of n pairs by member: how many have rows. given: (3, one more than these), who they are,
    in the order in which they come first, where in `out` their rows begin, and how many they have.

    counts: by member, zeros before and after.  O(n), however many members there are.
    """
    found = 0
    for i in range(n):
        member = uint64(members[uint64(i)])
        given[0, uint64(found)] = member
        found += int64(counts[member] == 0)
        counts[member] += 1
    total = 0
    for g in range(found):
        member = uint64(given[0, uint64(g)])
        given[1, uint64(g)] = total
        given[2, uint64(g)] = counts[member]
        total += counts[member]
        counts[member] = given[1, uint64(g)]
    for i in range(n):
        member = uint64(members[uint64(i)])
        out[uint64(counts[member])] = rows[uint64(i)]
        counts[member] += 1
    for g in range(found):
        counts[uint64(given[0, uint64(g)])] = 0
    return found


@kernel
def keep_rows(parts: Int32s, numbers: Int32s, rows: Int64s) -> int:
    """The rows that stand in parts, ascending, and how many they are; in parts they are numbered among these then.

    numbers: by row, zeros before.
    """
    for i in range(len(parts)):
        numbers[uint64(parts[uint64(i)])] = 1
    kept = 0
    for row in range(len(numbers)):
        is_kept = int64(numbers[row])
        numbers[row] = kept
        rows[kept] = row
        kept += is_kept
    for i in range(len(parts)):
        parts[uint64(i)] = numbers[uint64(parts[uint64(i)])]
    return kept


@kernel
def add_portions(
    firsts: Int64s, counts: Int64s, slots: Int64s, of_slot: Rows[AnswerSlot], portions: Int64Table, number: int
) -> int:
    """Write portions, numbered from `number` on, a different slot each; the rows that readers of the slots now have.

    portions: (n, 4), see `screens.answers`.
    """
    due = 0
    for i in range(len(slots)):
        slot = slots[i]
        portions[i, 0] = of_slot[slot].last
        portions[i, 1] = firsts[i]
        portions[i, 2] = counts[i]
        portions[i, 3] = slot
        of_slot[slot].last = number + i
        of_slot[slot].total += counts[i]
        due += counts[i] * of_slot[slot].readers
    return due


@kernel
def set_bits(bits: Uint64Table, filters: Int64s, first: Int64s, last: Int64s) -> None:
    """Set the bit of filters[i] in the regions from first[i] to last[i]."""
    for i in range(len(filters)):
        w = filters[i] >> 6
        bit = uint64(1) << uint64(filters[i] & 63)
        for region in range(first[i], last[i] + 1):
            bits[region, w] |= bit


@kernel
def span_blocks(spans: Int64Table, filters: Int64s, first: Int64s, last: Int64s) -> None:
    """Widen spans[block], the first and last region that admit one of its filters, by those of filters[i]."""
    for i in range(len(filters)):
        block = filters[i] // (64 * BLOCK)
        spans[block, 0] = min(spans[block, 0], first[i])
        spans[block, 1] = max(spans[block, 1], last[i])


@kernel
def set_packed(blocks: Int64Table, packed: Uint64s, filters: Int64s, first: Int64s, last: Int64s) -> None:
    """As `set_bits`, where the words of a block's region blocks[block, 0] stand from blocks[block, 1] on."""
    for i in range(len(filters)):
        block = filters[i] // (64 * BLOCK)
        w = blocks[block, 1] + ((filters[i] >> 6) & (BLOCK - 1))
        bit = uint64(1) << uint64(filters[i] & 63)
        for region in range(first[i], last[i] + 1):
            packed[w + BLOCK * (region - blocks[block, 0])] |= bit
