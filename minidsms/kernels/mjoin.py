"""Joining n windows, instant by instant.

Every input is a ring of slots numbered by arrival, [lo, hi). A *key* is a column of an input that the condition speaks
of (or several columns' hash); `nodes` holds (tag, next) for each key and slot: the tag is the column's word, next the
older slot of its bucket. A probe walks a bucket from its newest slot and ends at the first below `lo`, so deletion is
lo += 1 and nothing else (docs/design, point 3). All inputs' nodes stand in one flat array, all bucket heads in
another.

An input whose rows leave in any order is a *bag*: its slots are used again, and `places` has the slots of a batch's
elements in their order (`kernels.bag_window`). A slot is linked and unlinked as its element is processed; `backs` has
for each key and slot the newer slot of the bucket, so that unlinking needs no walk. So everything in a bucket is there.

An element's *pipeline* visits the other inputs in a fixed order, depth first; each step probes one key with the tag of
a slot already chosen and compares further keys. So no intermediate result is ever kept (MJoin: Viglas, Naughton and
Burger 2003; Babu 2005, section 3.2). As soon as a slot is chosen, each step that asks for its keys looks for its first
match, in the order of the pipeline: without one the slot is dropped, and matches are gone through from there on
(drop probing and output generation: Babu 2005, section 5.2.2).

Where the consumer is ISTREAM, deletions matter only if they cancel an insertion of their instant (docs/semantics S1).
`marks` of a slot hash the row's columns that the answer shows; after the insertions of an instant only those deleted
slots are probed whose mark some inserted tuple has.
"""

from __future__ import annotations

from typing import Any

from minidsms.elements import Int8Array, Int16Array, Int32Array, Int64Array
from minidsms.kernels.mixing import bucket, mixed
from minidsms.machine_code import helper, int16, int32, int64, kernel, uint64

LO, HI, OLD_LO, OLD_HI, STOP, MASK, MARKS, RUN, RUNS_END, KEY, KEYS_END, HAS_NULLS, PROBE_LO, PROBE_HI = range(14)
"""Of an input: its slots now and before the instant, where its insertions of the instant stop, slot mask, where its
marks and instants begin, its runs, its keys, whether there may be NULL keys, and the slots that a pipeline may join
now."""
LENGTH, LEAVES, LINKED, SURVIVOR, SURVIVORS = range(14, 19)
"""Of an input that is a stream with a range: the range (NO_RANGE: none); when the row at LO leaves (MAX_INSTANT: never;
known between slices); up to where its slots are linked; and which of the elements that drop probing left comes next,
of how many."""
IS_BAG, INPUT_WORDS = range(19, 21)
"""Of an input: its rows leave in any order. Then LO, HI and the like are no slots, but positions in `places`."""

NO_RANGE = -1
"""The window is unbounded: as an unsigned number, the longest of ranges."""

NODES, HEADS, SHIFT, BACKS, IS_SHOWN, KEY_WORDS = range(6)
"""Of a key: where its nodes, bucket heads and, of a bag, backward links begin in the flat arrays; its bucket shift;
whether it is a column that the answer shows, or that is equal to one."""

TARGET, PROBED, FROM, FROM_KEY, CHECK, CHECKS_END, ASKED, STEP_WORDS = range(8)
"""Of a step: the input and its key that are probed, the input and its key that give the tag, its further checks, and
the position in the pipeline of the input that gives the tag: 0 is the arriving element, d + 1 what step d chose."""

TAG, FOLLOWING, CHOSEN, FOUND = range(4)
"""Rows of `walks`: of each step its tag, the slot to look at next, and the first that matches; of each input the slot
chosen."""

PHASE, INPUT, SLOT, DEPTH, INSTANT, FIRST, MIDDLE, LEAVING, SERIAL, DELETED, INSPECTED, STATUS = range(12)
"""Of the whole: where a call stopped; FIRST, MIDDLE: the open instant's first tuple and, where netted, its first
deletion; LEAVING: slots that leave at the instant; SERIAL: of the instant's stamps; DELETED: deletions in `out`."""
SIZE, NEEDED, PASSED, STATE_WORDS = range(12, 16)
"""Of a join of streams with ranges: elements of an input in a block, room that an instant needs, and rows that probes
of the block passed over because they come later."""

RUN_TS, RUN_DELETIONS, RUN_INSERTIONS, RUN_WORDS = range(4)
"""Of a run: an instant at which an input changes, and how many slots leave and enter."""

DONE, FULL, MISSING = 0, 1, 2
"""The runs are joined; `out` is full: call again; more slots leave than are held."""

_START, _DELETE, _INSERT, _CANCEL = 0, 1, 2, 3
"""Phases of an instant: its runs are taken; then deletions and insertions, or where netted insertions and those
deletions that may cancel one."""

UNLINKED = -2
"""As a node's next: the row has a NULL key and stands in no bucket. As a backward link: the slot stands in none."""

STAMPS = 1024
"""Places for marks, per input; a power of two."""

_NO_LIMIT = 2**62


@kernel("int64(int64[::1], int8[::1], boolean, int64[:, ::1], int64[::1])")
def take_runs(ts, sign, has_signs, runs, figures):  # type: ignore[no-untyped-def]
    """Count each instant's deletions and insertions into runs[figures[RUN]:]; returns the most rows held after any.

    sign: read where has_signs; else all are insertions.  figures: of the input; RUNS_END is set.
    """
    n = len(ts)
    i = 0
    at = figures[RUN]
    held = figures[HI] - figures[LO]
    most = held
    while i < n:
        instant = ts[i]
        first = i
        if has_signs:
            while i < n and ts[i] == instant and sign[i] < 0:
                i += 1
        middle = i
        while i < n and ts[i] == instant:
            i += 1
        runs[at, 0], runs[at, 1], runs[at, 2] = instant, middle - first, i - middle
        at += 1
        held += i - middle - (middle - first)
        most = max(most, held)
    figures[RUNS_END] = at
    return int64(most)


@kernel("int64(int64[::1], int8[::1], boolean, int32[::1], int64)")
def take_numbers(seq: Int64Array, sign: Int8Array, has_signs: bool, ring: Int32Array, hi: int) -> Any:
    """Write the insertions' numbers into the ring from slot hi on; returns the new hi."""
    mask = len(ring) - 1
    for i in range(len(seq)):
        if not has_signs or sign[i] > 0:
            ring[hi & mask] = int32(seq[i])
            hi += 1
    return int64(hi)


@kernel(
    "int64(int64[::1], boolean[::1], int64, int32[::1], int64, int64, int64[::1], int64)",
    "int64(int8[::1], boolean[::1], int64, int32[::1], int64, int64, int64[::1], int64)",
)
def take_key(  # type: ignore[no-untyped-def]
    values, valid, store_mask, ring, lo, hi, nodes, base
):
    """Copy the words of the slots [lo, hi) into a key's nodes; returns how many are NULL.

    values[number & store_mask] is a slot's word; valid alike, or empty where nothing is NULL.
    """
    mask = len(ring) - 1
    nulls = 0
    may_be_null = len(valid) > 0
    for slot in range(lo, hi):
        k = slot & mask
        at = ring[k] & store_mask
        nodes[base + 2 * k] = values[at]
        nodes[base + 2 * k + 1] = -1
        if may_be_null and not valid[at]:
            nodes[base + 2 * k + 1] = UNLINKED
            nulls += 1
    return int64(nulls)


@kernel("void(int64[::1], int64, int64[::1], int64, int64, int64, int64)")
def combine_keys(nodes, base, parts, mask, lo, hi, has_nulls):  # type: ignore[no-untyped-def]
    """Give a composite key the hash of its parts, whose nodes begin at `parts`; NULL where any part is."""
    for slot in range(lo, hi):
        k = 2 * (slot & mask)
        h = int64(1)
        following = int64(-1)
        for p in parts:
            h = mixed(h, nodes[p + k])
            if has_nulls != 0 and nodes[p + k + 1] == UNLINKED:
                following = int64(UNLINKED)
        nodes[base + k] = h
        nodes[base + k + 1] = following


@kernel(
    "void(int64[::1], int64, int32[::1], int64, int64, int16[::1], int64, boolean)",
    "void(int8[::1], int64, int32[::1], int64, int64, int16[::1], int64, boolean)",
)
def take_marks(values, store_mask, ring, lo, hi, marks, base, is_first):  # type: ignore[no-untyped-def]
    """Hash a column that the answer shows into the marks of the slots [lo, hi)."""
    mask = len(ring) - 1
    for slot in range(lo, hi):
        k = slot & mask
        before = int64(1) if is_first else int64(marks[base + k])
        marks[base + k] = int16(mixed(before, values[ring[k] & store_mask]))


@kernel("void(int64[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64)")
def relink(nodes, heads, inputs, keys, i):  # type: ignore[no-untyped-def]
    """Fill empty buckets of input i with its slots; one of which any key is NULL stands in none."""
    mask = inputs[i, MASK]
    for slot in range(inputs[i, LO], inputs[i, HI]):
        at = 2 * (slot & mask)
        linked = True
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            linked &= nodes[keys[x, NODES] + at + 1] != UNLINKED
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            k = keys[x, NODES] + at
            if linked:
                b = keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT])
                nodes[k + 1] = heads[b]
                heads[b] = slot
            else:
                nodes[k + 1] = UNLINKED


@kernel("void(int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64, int64[::1])")
def relink_bag(nodes, heads, backs, inputs, keys, i, slots):  # type: ignore[no-untyped-def]
    """Put slots of bag i at the head of its buckets; one of which any key is NULL stands in none."""
    for slot in slots:
        linked = True
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            linked &= nodes[keys[x, NODES] + 2 * slot + 1] != UNLINKED
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            k, back = keys[x, NODES] + 2 * slot, keys[x, BACKS]
            if linked:
                b = keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT])
                older = heads[b]
                if older >= 0:
                    backs[back + older] = slot
                nodes[k + 1], backs[back + slot], heads[b] = older, -1, slot
            else:
                nodes[k + 1], backs[back + slot] = UNLINKED, UNLINKED


@helper("void(int64[:, ::1], int8[::1], int64, int64, int64)")
def _deletions_first(out: Int64Array, sign: Int8Array, first: int, middle: int, end: int) -> None:
    """Swap [first, middle), insertions, with [middle, end), deletions, each in some order (rotation by reversals)."""
    for j in range(len(out)):
        row = out[j]
        for a, b in ((first, middle), (middle, end), (first, end)):
            x, y = a, b - 1
            while x < y:
                row[x], row[y] = row[y], row[x]
                x += 1
                y -= 1
    for p in range(first, end):
        sign[p] = -1 if p < first + end - middle else 1


@helper(inline=True)
def _next_instant(runs: Int64Array, inputs: Int64Array, state: Int64Array, netted: int) -> Any:
    """Take every input's run of the next instant; returns the phase it begins with, _START when there is none."""
    n = len(inputs)
    instant = int64(0)
    is_any = False
    for j in range(n):
        if inputs[j, RUN] < inputs[j, RUNS_END]:
            ts = runs[inputs[j, RUN], RUN_TS]
            if not is_any or ts < instant:
                instant = ts
                is_any = True
    if not is_any:
        return int64(_START)
    leaving = int64(0)
    for j in range(n):
        is_bag = inputs[j, IS_BAG] != 0
        lo, hi = inputs[j, LO], inputs[j, HI]
        if is_bag:
            lo = hi
            inputs[j, LO] = hi
        inputs[j, OLD_LO], inputs[j, OLD_HI], inputs[j, STOP] = lo, hi, hi
        at = inputs[j, RUN]
        if at < inputs[j, RUNS_END] and runs[at, RUN_TS] == instant:
            leave = runs[at, RUN_DELETIONS]
            leaving += leave
            if is_bag:
                hi += leave
                inputs[j, HI] = hi
            elif lo + leave > hi:
                state[STATUS] = MISSING
            inputs[j, LO] = lo + leave
            inputs[j, STOP] = hi + runs[at, RUN_INSERTIONS]
            inputs[j, RUN] = at + 1
            if netted != 0:
                lo += leave
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = 0 if is_bag else lo, _NO_LIMIT
    state[INSTANT] = instant
    state[LEAVING] = leaving
    return int64(_DELETE if netted == 0 and leaving > 0 else _INSERT)


@helper(inline=True)
def _link(  # type: ignore[no-untyped-def]
    inputs, keys, nodes, heads, backs, i, slot
):
    """Put a slot at the head of its buckets; False where a key is NULL, then it stands in none."""
    at = 2 * (slot & inputs[i, MASK])
    linked = True
    if inputs[i, HAS_NULLS] != 0:
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            linked &= nodes[keys[x, NODES] + at + 1] != UNLINKED
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        k = uint64(keys[x, NODES] + at)
        if linked:
            b = uint64(keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT]))
            if inputs[i, IS_BAG] != 0:
                if heads[b] >= 0:
                    backs[keys[x, BACKS] + heads[b]] = slot
                backs[keys[x, BACKS] + slot] = -1
            nodes[k + uint64(1)] = heads[b]
            heads[b] = slot
        else:
            nodes[k + uint64(1)] = UNLINKED
    return linked


@helper(inline=True)
def _unlink(  # type: ignore[no-untyped-def]
    inputs, keys, nodes, heads, backs, i, slot
):
    """Take a slot of bag i, which stands in its buckets, out of them."""
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        k, back = keys[x, NODES] + 2 * slot, keys[x, BACKS]
        newer, older = backs[back + slot], nodes[k + 1]
        if older >= 0:
            backs[back + older] = newer
        if newer >= 0:
            nodes[keys[x, NODES] + 2 * newer + 1] = older
        else:
            heads[keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT])] = older
        backs[back + slot] = UNLINKED


@helper(inline=True)
def _stamp(
    inputs: Int64Array, marks: Int16Array, stamps: Int64Array, state: Int64Array, out: Int64Array, found: int
) -> None:
    """Stamp the marks of the instant's insertions, and let pipelines join what was there before the instant."""
    state[SERIAL] += 1
    state[MIDDLE] = found
    for j in range(len(inputs)):
        start, mask = inputs[j, MARKS], inputs[j, MASK]
        for p in range(state[FIRST], found):
            stamps[j, marks[start + (out[j, p] & mask)] & (STAMPS - 1)] = state[SERIAL]
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = inputs[j, OLD_LO], inputs[j, OLD_HI]


@kernel(
    "int64(int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, :, ::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int16[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64, int64[:, ::1],"
    " int64[::1], int8[::1], int64)"
)
def mjoin(  # type: ignore[no-untyped-def]
    runs, inputs, keys, steps, checks, nodes, heads, places, backs, marks, stamps, walks, state, netted,
    out, out_ts, out_sign, found,
):  # fmt: skip
    """Join what is left of the runs; returns how many tuples stand in `out`, state[STATUS] how the call ended.

    steps: (n, n - 1, STEP_WORDS), the pipeline of each input.  checks: (c, 4): input, key, input, key that are equal.
    walks: (4, n), see TAG.
    netted: the consumer is ISTREAM, and no input is a bag; then the tuples of an instant stay in `out` until it is
    done: a caller that empties a full buffer leaves those from state[FIRST] on at its beginning.
    stamps: (n, STAMPS), where netted.
    out: (n, m) slots per input, with out_ts and out_sign: in ts order, deletions first; `found` are there already.
    O(elements + tuples + slots inspected).
    """
    n = len(inputs)
    last = n - 2
    limit = len(out_ts)
    phase, i, slot, depth = state[PHASE], state[INPUT], state[SLOT], state[DEPTH]
    inspected = 0
    own, is_chosen = int64(0), False
    state[STATUS] = DONE
    while True:
        # The pipeline of the element, as far as the buffer has room. `is_chosen`: a row has just been chosen, and the
        # steps that ask for its keys have not been.
        while depth >= 0 or is_chosen:
            if is_chosen:
                position = depth + 1
                for d in range(position, n - 1):
                    if steps[i, d, ASKED] != position:
                        continue
                    f, x = steps[i, d, FROM], steps[i, d, PROBED]
                    tag = nodes[keys[steps[i, d, FROM_KEY], NODES] + 2 * (walks[CHOSEN, f] & inputs[f, MASK])]
                    base, jmask = keys[x, NODES], inputs[steps[i, d, TARGET], MASK]
                    low, high = inputs[steps[i, d, TARGET], PROBE_LO], inputs[steps[i, d, TARGET], PROBE_HI]
                    s = heads[keys[x, HEADS] + bucket(tag, keys[x, SHIFT])]
                    while s >= low and (nodes[base + 2 * (s & jmask)] != tag or s >= high):
                        inspected += 1
                        s = nodes[base + 2 * (s & jmask) + 1]
                    if s < low:
                        is_chosen = False
                        break
                    walks[TAG, d], walks[FOUND, d] = tag, s
                if is_chosen:
                    depth = position
                    walks[FOLLOWING, depth] = walks[FOUND, depth]
                elif depth < 0:
                    break
            j, x = steps[i, depth, TARGET], steps[i, depth, PROBED]
            base, jmask = keys[x, NODES], inputs[j, MASK]
            low, high = inputs[j, PROBE_LO], inputs[j, PROBE_HI]
            tag, s = walks[TAG, depth], walks[FOLLOWING, depth]
            is_chosen = False
            while s >= low:
                k = base + 2 * (s & jmask)
                inspected += 1
                if nodes[k] == tag and s < high:
                    walks[CHOSEN, j] = s
                    equal = True
                    for c in range(steps[i, depth, CHECK], steps[i, depth, CHECKS_END]):
                        a, b = checks[c, 0], checks[c, 2]
                        at_a = keys[checks[c, 1], NODES] + 2 * (walks[CHOSEN, a] & inputs[a, MASK])
                        at_b = keys[checks[c, 3], NODES] + 2 * (walks[CHOSEN, b] & inputs[b, MASK])
                        equal &= nodes[at_a] == nodes[at_b]
                    if equal and depth < last:
                        is_chosen = True
                        s = nodes[k + 1]
                        break
                    if equal and phase == _CANCEL:
                        for m in range(n):
                            mark = marks[inputs[m, MARKS] + (walks[CHOSEN, m] & inputs[m, MASK])]
                            equal &= stamps[m, mark & (STAMPS - 1)] == state[SERIAL]
                    if equal:
                        if found == limit:
                            state[STATUS] = FULL
                            break
                        for m in range(n):
                            out[m, found] = walks[CHOSEN, m]
                        out_ts[found] = state[INSTANT]
                        out_sign[found] = 1 if phase == _INSERT else -1
                        found += 1
                s = nodes[k + 1]
            walks[FOLLOWING, depth] = s
            if state[STATUS] == FULL:
                break
            if not is_chosen:
                depth -= 1
        if state[STATUS] == FULL:
            break
        # The next element of the instant, or the next phase.
        begins = False
        if phase == _INSERT:
            while i < n and inputs[i, HI] >= inputs[i, STOP]:
                i += 1
            if i < n:
                slot = inputs[i, HI]
                inputs[i, HI] = slot + 1
                own = places[slot] if inputs[i, IS_BAG] != 0 else slot
                begins = _link(inputs, keys, nodes, heads, backs, i, own)
            elif netted != 0 and state[LEAVING] > 0 and found > state[FIRST]:
                _stamp(inputs, marks, stamps, state, out, found)
                phase, i, slot = int64(_CANCEL), int64(0), inputs[0, OLD_LO] - 1
            else:
                phase = int64(_START)
        elif phase != _START:
            slot += 1
            while i < n and slot >= inputs[i, LO]:
                if inputs[i, IS_BAG] == 0:
                    inputs[i, PROBE_LO] = inputs[i, LO]
                i += 1
                if i < n:
                    slot = inputs[i, OLD_LO]
            if i < n:
                own = places[slot] if inputs[i, IS_BAG] != 0 else slot
                at = own & inputs[i, MASK]
                begins = nodes[keys[inputs[i, KEY], NODES] + 2 * at + 1] != UNLINKED
                if begins and inputs[i, IS_BAG] != 0:
                    _unlink(inputs, keys, nodes, heads, backs, i, own)
                if phase == _CANCEL:
                    begins &= stamps[i, marks[inputs[i, MARKS] + at] & (STAMPS - 1)] == state[SERIAL]
            elif phase == _DELETE:
                phase, i = int64(_INSERT), int64(0)
            else:
                if found > state[MIDDLE]:
                    _deletions_first(out, out_sign, state[FIRST], state[MIDDLE], found)
                    state[DELETED] += found - state[MIDDLE]
                phase = int64(_START)
        if begins:
            walks[CHOSEN, i] = own
            is_chosen = True
        elif phase == _START:
            phase = _next_instant(runs, inputs, state, netted)
            if phase == _START or state[STATUS] == MISSING:
                break
            i, slot = int64(0), inputs[0, OLD_LO] - 1
            state[FIRST] = found
    state[PHASE], state[INPUT], state[SLOT], state[DEPTH] = phase, i, slot, depth
    state[INSPECTED] += inspected
    return found
