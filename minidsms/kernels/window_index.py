"""Filling the slots of the windows that an n-way join probes: their numbers, the words of their keys, their marks.

How they stand in arrays says `kernels.join_layout`; how they come into buckets, `kernels.chains`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.kernels.chains import link_slot, link_slots
from minidsms.kernels.join_layout import InstantRun, JoinInput, JoinKey, Windows
from minidsms.kernels.links import UNLINKED, WAITING, has_link, set_link, set_upper_half, upper_half
from minidsms.kernels.mixing import bucket, mixed
from minidsms.machine_code import (
    Int8s,
    Int16s,
    Int64s,
    Int64Table,
    Rows,
    byte_at,
    helper,
    int16,
    int32,
    int64,
    kernel,
    uint64,
    word_at,
)


class Stored(NamedTuple):
    """Where the columns of a store stand (`kernels.addresses`), and the mask of its rows' numbers."""

    places: Int64Table
    mask: int


class KeysOfInput(NamedTuple):
    """Of an input the keys that are words of its rows. columns: (p, 2) keys, and the columns that they are.  figures:
    of the input.  nodes, keys: of all inputs.
    """

    columns: Int64Table
    figures: JoinInput
    nodes: Int64s
    keys: Rows[JoinKey]


@helper
def runs_taken(ts: Int64s, sign: Int8s, has_signs: bool, runs: Rows[InstantRun], figures: JoinInput) -> Any:
    """Count each instant's deletions and insertions into runs[figures.run:]; returns the most rows held after any.

    sign: read where has_signs; else all are insertions.  figures: of the input; `runs_end` is set.
    """
    n = len(ts)
    i = 0
    at = figures.run
    held = figures.hi - figures.lo
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
        runs[at].ts, runs[at].deletions, runs[at].insertions = instant, middle - first, i - middle
        at += 1
        held += i - middle - (middle - first)
        most = max(most, held)
    figures.runs_end = at
    return int64(most)


@helper
def words_taken(store: Stored, of: KeysOfInput, lo: int, hi: int) -> Any:
    """See `take_words`."""
    places, store_mask = store
    columns, figures, nodes, keys = of
    rows, mask = figures.nodes, figures.mask
    some_null = False
    for p in range(len(columns)):
        base, column = keys[columns[p, 0]].nodes, columns[p, 1]
        values, valid, is_word = places[column, VALUES], places[column, VALID], places[column, WIDTH] == 8
        if is_word and valid == 0:
            for slot in range(lo, hi):
                k = 2 * (slot & mask)
                nodes[uint64(base + k)] = word_at(values, upper_half(nodes, rows + k) & store_mask)
                set_link(nodes, base + k, WAITING)
            continue
        for slot in range(lo, hi):
            k = 2 * (slot & mask)
            at = upper_half(nodes, rows + k) & store_mask
            nodes[base + k] = word_at(values, at) if is_word else byte_at(values, at)
            is_null = valid != 0 and byte_at(valid, at) == 0
            set_link(nodes, base + k, UNLINKED if is_null else WAITING)
            some_null |= is_null
    return some_null


@helper
def are_words(store: Stored, of: KeysOfInput) -> Any:
    """The keys are words without NULLs, the first key of the input among them, so that `take_run` takes them."""
    columns, places = of.columns, store.places
    are = len(columns) > 0 and columns[0, 0] == of.figures.key
    for p in range(len(columns)):
        are &= places[columns[p, 1], VALID] == 0 and places[columns[p, 1], WIDTH] == 8
    return are


@helper
def take_run(store: Stored, of: KeysOfInput, slot: int, number: int, count: int) -> None:
    """Write so many rows with consecutive numbers into the slots from one on: numbers, and words of keys, which
    `are_words`. Stretches in which no ring begins anew are written by vectors, for nothing is read there again.
    """
    places, store_mask = store
    columns, figures, nodes, keys = of
    while count > 0:
        first, at = slot & figures.mask, number & store_mask
        n = min(count, figures.mask + 1 - first, store_mask + 1 - at)
        for p in range(len(columns)):
            k, values = uint64(keys[columns[p, 0]].nodes + 2 * first), places[columns[p, 1], VALUES]
            for i in range(uint64(n)):
                nodes[k + uint64(2) * i] = word_at(values, at + int64(i))
                # Of the first key alone the upper half is read.
                nodes[k + uint64(2) * i + uint64(1)] = ((number + int64(i)) << 32) | WAITING
        slot, number, count = slot + n, number + n, count - n


@kernel
def take_words(store: Stored, of: KeysOfInput, lo: int, hi: int) -> bool:
    """Copy the words of the slots [lo, hi) into the nodes of keys; returns whether one is NULL."""
    return bool(words_taken(store, of, lo, hi))


@kernel
def take_rows(
    ts: Int64s, sign: Int8s, has_signs: bool, seq: Int64s, store: Stored, of: KeysOfInput, runs: Rows[InstantRun]
) -> int:
    """Take in elements of an input whose rows leave in their order: see `runs_taken`, whose result is given; the
    insertions' numbers and words go into the slots from `hi` on.

    seq: of all elements, or of the insertions alone.
    """
    figures, nodes = of.figures, of.nodes
    most = runs_taken(ts, sign, has_signs, runs, figures)
    rows, mask, hi = figures.nodes, figures.mask, figures.hi
    is_of_all = len(seq) == len(ts)
    for i in range(len(ts)):
        if not has_signs or sign[i] > 0:
            set_upper_half(nodes, rows + 2 * (hi & mask), seq[i if is_of_all else hi - figures.hi])
            hi += 1
    if words_taken(store, of, figures.hi, hi):
        figures.has_nulls = 1
    return int64(most)


@kernel(
    "void(int64[::1], int64, int64[::1], int64, int64, int64, int64, int16[::1], int64, boolean)",
    "void(int8[::1], int64, int64[::1], int64, int64, int64, int64, int16[::1], int64, boolean)",
)
def take_marks(
    values: Int64s, store_mask: int, nodes: Int64s, rows: int, mask: int, lo: int, hi: int, marks: Int16s, base: int,
    is_first: bool,
) -> None:  # fmt: skip
    """Hash a column that the answer shows into the marks of the slots [lo, hi)."""
    for slot in range(lo, hi):
        k = slot & mask
        before = int64(1) if is_first else int64(marks[base + k])
        marks[base + k] = int16(mixed(before, values[upper_half(nodes, rows + 2 * k) & store_mask]))


@kernel
def link(windows: Windows, i: int, first: int) -> None:
    """Put the slots of input i from one on into its buckets. Those below `lo` have left: they are not written to."""
    inputs, keys, nodes, heads = windows.inputs, windows.keys, windows.nodes, windows.heads
    low, mask, has_nulls = max(first, inputs[i].lo), inputs[i].mask, inputs[i].has_nulls != 0
    for x in range(inputs[i].key, inputs[i].keys_end):
        base, buckets, shift = keys[x].nodes, keys[x].heads, keys[x].shift
        for slot in range(first, low if keys[x].is_linked != 0 else first):
            at = 2 * (slot & mask)
            linked = True
            if has_nulls:
                for y in range(inputs[i].key, inputs[i].keys_end):
                    linked &= has_link(nodes, keys[y].nodes + at)
            if linked:
                heads[uint64(buckets + bucket(nodes[uint64(base + at)], shift))] = int32(slot)
    link_slots(windows, i, low, inputs[i].hi)


@kernel
def relink_bag(windows: Windows, i: int, slots: Int64s) -> None:
    """Put slots of bag i at the head of its buckets; one of which any key is NULL stands in none."""
    for slot in slots:
        link_slot(windows, i, slot)
