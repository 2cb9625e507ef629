"""Every allocation of an array finds no memory, in turn: see `tests.long.allocation_cases`."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.elements import Column, Schema, Type
from minidsms.synopses.stream_store import StreamStore
from minidsms.values.dictionary import TextDictionary
from tests.long.allocation_cases import CASES, run_all
from tests.long.allocations import Allocations, failing

STRIDE = 151
STRIDES = {"join kept in a tree": 449, "outer join and subquery": 449}
"""Of those that allocate most; `make soak` leaves none out."""


@pytest.mark.parametrize("number", range(len(CASES)), ids=list(CASES))
def test_an_allocation_that_fails_changes_nothing_or_ends_the_queries_concerned(number: int) -> None:
    name = list(CASES)[number]
    stride = STRIDES.get(name, STRIDE)
    for lasting in (False, True):
        assert run_all(name, lasting, stride, 1 + (37 * number + 101 * lasting) % stride) > 1, "nothing failed"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, name FROM N WHERE k > 1",
        "SELECT DISTINCT name FROM N",
        "SELECT COUNT(*) FROM N",
        "SELECT R.k, N.name FROM R [RANGE 5], N WHERE R.k = N.k",
        "SELECT (SELECT MAX(k) FROM N) FROM R [RANGE 5]",
    ],
)
def test_a_query_that_finds_no_memory_as_it_begins_leaves_nothing_behind(text: str) -> None:
    for at in range(1, 1000):
        with minidsms.connect() as db:
            db.execute("CREATE STREAM R (k INTEGER); CREATE RELATION N (k INTEGER, name TEXT)")
            db.push("N", [(k, f"name {k % 3}") for k in range(9)], ts=0)
            with failing(Allocations(at)) as allocations, contextlib.suppress(MemoryError):
                db.query(text).close()
            assert not any(each.store.is_read for each in db.inputs), f"allocation {at}: {allocations.failed}"
        if not allocations.failed:
            break
    assert at > 1


def test_the_layer_fails_arrays_of_the_engine_only_and_is_gone_afterwards() -> None:
    store = StreamStore(Schema.of(("v", Type.INTEGER)))
    with failing(Allocations(1, lasting=True)) as allocations:
        np.zeros(10_000)
        with pytest.raises(MemoryError):
            store.reserve(10_000)
        assert allocations.failed
    store.reserve(10_000)


def test_a_store_that_cannot_grow_holds_what_it_held() -> None:
    store = StreamStore(Schema.of(("v", Type.INTEGER), ("w", Type.INTEGER)))

    def elements(start: int, n: int, has_null: bool) -> tuple[Any, list[Column]]:
        ts = np.arange(start, start + n)
        return ts, [Column(ts.copy()), Column(ts.copy(), ts % 2 == 0 if has_null else None)]

    reader = store.reader()
    store.append(*elements(0, 900, False))
    reader.lo = 800
    store.free()
    store.append(*elements(900, 900, False))  # it stands in two pieces of the ring
    for at in range(1, 50):
        with failing(Allocations(at)) as allocations:
            try:
                store.append(*elements(1800, 700, True))
            except MemoryError:
                assert (store.tail, store.head) == (800, 1800)
                assert store.ts(800, 1800).tolist() == list(range(800, 1800))
        if not allocations.failed:
            break
        assert store.gather(1, np.arange(800, 1800)).values.tolist() == list(range(800, 1800))
    assert at > 4
    assert store.ts(800, 2500).tolist() == list(range(800, 2500))


def test_what_a_push_leaves_outside_the_ring_stays_there_where_it_cannot_be_kept() -> None:
    store = StreamStore(Schema.of(("v", Type.INTEGER)))
    reader = store.reader()
    ts = np.arange(5000)
    store.append(ts, [Column(ts.copy())], passes=True)
    with failing(Allocations(1, lasting=True)), pytest.raises(MemoryError):
        store.keep()
    assert store.ts(0, 5000).tolist() == ts.tolist()
    store.keep()
    ts[:] = 7
    assert store.ts(reader.lo, 5000).tolist() == list(range(5000))


def test_a_push_in_parts_ends_the_queries_that_keep_what_does_not_fit() -> None:
    expected = None
    for at in range(0, 60):
        db = minidsms.connect(batch_size=1000)
        db.execute("CREATE STREAM S (v INTEGER)")
        kept = db.query("SELECT v FROM S [ROWS 2500]")
        with failing(Allocations(at, lasting=True)) as allocations:
            try:
                db.push("S", {"v": np.arange(5000)}, ts=np.arange(5000))
            except MemoryError:
                assert db.stream_input("S").counters.accepted == 0
                assert db.stream_input("S").greatest_ts is None
                continue
        assert db.stream_input("S").counters.accepted == 5000
        assert db.stream_input("S").greatest_ts == 4999
        got = [tuple(change) for change in kept.fetch()] if kept.is_waiting else []
        if expected is None:
            expected = got
        elif allocations.failed:
            assert kept.failure is not None
            assert got == expected[: len(got)]
        db.push("S", (7,), ts=6000)


def test_a_text_for_which_the_dictionary_has_no_room_is_not_there() -> None:
    class Full(dict[Any, int]):
        def __setitem__(self, key: Any, value: int) -> None:
            raise MemoryError

        def update(self, pairs: Any) -> None:
            self |= [next(iter(pairs))]
            raise MemoryError

    dictionary = TextDictionary()
    a = dictionary.code("a")
    whole, nbytes = dictionary._codes, dictionary.nbytes
    dictionary._codes = Full(whole)
    for texts in (["b"], [str(i) for i in range(100)]):
        with pytest.raises(MemoryError):
            dictionary.encode(texts)
    dictionary._codes = whole
    assert (len(dictionary), dictionary.nbytes, dictionary.text(a)) == (1, nbytes, "a")
    dictionary.sweep([])
    assert len(dictionary) == 0


@pytest.mark.parametrize("has_null", [False, True])
def test_what_room_was_made_for_is_appended_without_asking_for_memory(has_null: bool) -> None:
    store = StreamStore(Schema.of(("v", Type.INTEGER)))
    first, ts = np.arange(3), np.arange(3, 9)
    store.append(first, [Column(first, first > 0)])  # from now on it keeps which are NULL
    columns = [Column(ts, ts > 5 if has_null else None)]
    store.prepare(ts, columns)
    with failing(Allocations(1, lasting=True)):
        store.append(ts, columns)
    column = store.gather(0, np.arange(9))
    assert column.valid is not None
    assert column.valid.tolist() == [False, True, True] + [not has_null or t > 5 for t in ts.tolist()]
