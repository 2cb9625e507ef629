"""Copies of running operators: what is one in the original is one in the copy, and nothing else is."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from minidsms.aggregates.sorting import Few
from minidsms.cql.bound import Call, ColumnRef, Literal
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.expressions import Context
from minidsms.expressions.filters import Filter
from minidsms.expressions.value import Frame
from minidsms.operators.operator import Operator
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.copying import CannotCopy, copied
from minidsms.queues import Queue
from minidsms.synopses.stream_store import StreamStore
from minidsms.synopses.stub import NO_INSTANTS, Stub
from minidsms.synopses.window_index import WindowIndex
from minidsms.values.dictionary import TextDictionary

SCHEMA = Schema.of(("v", Type.INTEGER))


class Keeper(Operator):
    """Holds whatever it is given."""

    def __init__(self, input_: Queue, **held: Any) -> None:
        super().__init__([input_], input_.schema)
        self.__dict__.update(held)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        return ()


Keeper.__module__ = "minidsms.operators.keeper"  # as if it were the engine's


def store_of(n: int) -> StreamStore:
    store = StreamStore(SCHEMA)
    append(store, n)
    return store


def append(store: StreamStore, n: int) -> None:
    first = store.head
    values = np.arange(first, first + n, dtype=np.int64)
    store.append(values, [Column(values, values % 3 != 0)])


def plan_with(store: StreamStore, **held: Any) -> tuple[StreamSource, Keeper]:
    source = StreamSource("S", store, NO_INSTANTS)
    queue = Queue(SCHEMA, 10)
    queue.producer = source
    source.outputs.append(queue)
    return source, Keeper(queue, **held)


def copy_of(keeper: Keeper, source: StreamSource, stores: dict[int, StreamStore] | None = None) -> Any:
    return copied([source, keeper], stores or {}, {})[id(keeper)]


def test_views_of_one_array_are_views_of_one_array_in_the_copy() -> None:
    whole = np.arange(12, dtype=np.int64).reshape(3, 4)
    source, keeper = plan_with(store_of(1), whole=whole, row=whole[1], column=whole[:, 2], turned=whole.T[::-1])
    copy = copy_of(keeper, source)
    copy.row[2] = 99
    assert copy.whole[1, 2] == copy.column[1] == copy.turned[1, 1] == 99
    assert whole[1, 2] == 6


def test_what_is_held_twice_is_one_object_in_the_copy() -> None:
    shared = [1, {"a": {2}}]
    source, keeper = plan_with(store_of(1), one=shared, two=(shared, "x"))
    copy = copy_of(keeper, source)
    assert copy.one is copy.two[0] and copy.one is not shared
    assert copy.one == shared and copy.one[1] is not shared[1]


def test_rows_in_order_are_so_in_the_copy() -> None:
    rows = Few([(1, b"a"), (3, b"b")])
    source, keeper = plan_with(store_of(1), rows=rows)
    copy = copy_of(keeper, source)
    copy.rows.add((2, b"c"))
    assert copy.rows == [rows[0], (2, b"c"), rows[1]] and len(rows) == 2


def test_a_copy_is_joined_to_the_copies_of_its_producers_and_read_by_nobody() -> None:
    source, keeper = plan_with(store_of(1))
    copies = copied([source, keeper], {}, {})
    copy = copies[id(keeper)]
    assert copy.inputs[0].producer is copies[id(source)]
    assert copies[id(source)].outputs == copy.inputs
    assert copy.outputs == [] and len(source.outputs) == 1


def test_a_producer_that_is_known_is_joined_and_not_copied() -> None:
    source, keeper = plan_with(store_of(1))
    copy = copied([keeper], {}, {id(source): source})[id(keeper)]
    assert copy.inputs[0].producer is source
    assert source.outputs == [keeper.inputs[0], copy.inputs[0]]


def test_readers_claim_in_the_store_that_takes_the_place_of_theirs() -> None:
    store = store_of(10)
    own = StreamStore(SCHEMA)
    own.start_at(8)
    stub = Stub(SCHEMA, store)
    source, keeper = plan_with(store, stub=stub)
    claims = len(store._readers)
    copy = copy_of(keeper, source, {id(store): own})
    assert copy.stub.store is own
    assert len(own._readers) == 2  # that of the window, and what says how far the copied source has come
    assert len(store._readers) == claims + 1  # the copied source still reads the stream's store


def test_what_cannot_be_copied_leaves_no_claim_behind() -> None:
    store = store_of(3)
    source, keeper = plan_with(store, lock=threading.Lock())
    claims = len(store._readers)
    with pytest.raises(CannotCopy):
        copy_of(keeper, source)
    assert len(store._readers) == claims
    assert len(source.outputs) == 1


@pytest.mark.parametrize("n, freed", [(10, 7), (1500, 1400), (5000, 1)])
def test_a_store_takes_elements_back_under_their_numbers(n: int, freed: int) -> None:
    whole, store = store_of(n), store_of(n)
    claim = store.reader(freed)
    store.free()
    append(whole, 700)
    append(store, 700)
    claim.lo = n
    store.free()
    store.take_back(whole, 3)
    assert (store.tail, store.head) == (3, n + 700)
    (ts, columns), (expected, others) = store.arrays(), whole.arrays()
    assert ts.tolist() == expected[3:].tolist()
    assert columns[0].values.tolist() == others[0].values[3:].tolist()
    assert columns[0].valid is not None and others[0].valid is not None
    assert columns[0].valid.tolist() == others[0].valid[3:].tolist()


def test_where_rows_stand_is_looked_up_anew_in_a_copy_and_in_a_copy_of_that() -> None:
    index = WindowIndex([SCHEMA], [[(0,)]], None, [(0,)], bags=[True])
    bag = index.windows[0]
    index.admit([Batch(np.array([1]), None, [Column(np.array([7]))])])
    mark, _ = bag.sources([0])
    source, keeper = plan_with(store_of(1), bag=bag, mark=mark)
    assert bag.stands_at(mark)
    made = copied([source, keeper], {}, {})
    copy: Any = made[id(keeper)]
    assert not copy.bag.stands_at(copy.mark)
    again: Any = copied([made[id(source)], copy], {}, {})[id(copy)]
    assert not again.bag.stands_at(again.mark)
    # It keeps the array that it speaks of: no later one has its identity, and is taken for it.
    assert again.mark is mark


def test_a_copy_keeps_the_codes_of_the_texts_that_it_compares() -> None:
    dictionary = TextDictionary()
    is_held = Call(Type.BOOLEAN, "=", (ColumnRef(Type.TEXT, 0), Literal(Type.TEXT, "held")))
    source, keeper = plan_with(store_of(1), compares=Filter(is_held, Context(dictionary)))
    copy = copy_of(keeper, source)
    del keeper, source
    gc.collect()
    dictionary.sweep([])
    column = dictionary.encode(["other", "held"])
    kept, _ = copy.compares.narrow(Frame(lambda index: column, 2), None, False)
    assert kept.tolist() == [1]
