"""Batches that refer to a store: a run, whose numbers are written out when first read, is what any other batch is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from minidsms.elements import Batch, Choice, Column, Field, Schema, Type
from minidsms.synopses.stream_store import StreamStore

SCHEMA = Schema((Field("a", Type.INTEGER), Field("b", Type.FLOAT)))


def store() -> StreamStore:
    """Of 40 elements, the first of which have been given up; the ring has been written round."""
    made = StreamStore(SCHEMA)
    made.reader(50)
    for start in range(0, 90, 10):
        seq = np.arange(start, start + 10)
        made.append(seq * 2, [Column(seq * 3), Column(seq / 2, seq % 4 != 0)])
        made.free()
    return made


def shown(batch: Batch) -> list[tuple[object, ...]]:
    assert batch.seq is not None
    return list(zip(batch.ts.tolist(), batch.signs.tolist(), batch.seq.tolist(), *values(batch)))


def values(batch: Batch) -> list[list[object]]:
    """Of each column; -1 where it is NULL."""
    return [np.where(c.valid if c.valid is not None else True, c.values, -1.0).tolist() for c in batch.columns]


PARTS: list[Callable[[Batch], Batch]] = [
    lambda batch: batch,
    lambda batch: batch.slice(3, 17),
    lambda batch: batch.slice(3, 17).slice(2, 9),
    lambda batch: batch.slice(5, 5),
    lambda batch: batch.take(np.array([0, 4, 19])),
    lambda batch: batch.take(np.arange(20) % 3 == 0),
    lambda batch: batch.slice(2, 12).take(np.array([1, 2, 9])).slice(1, 3),
    lambda batch: batch.select(Choice([1, 0])).slice(1, 8).select(Choice([1])),
    lambda batch: Batch.concat([batch.slice(0, 4), batch.slice(9, 11)]),
]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("is_read_before", [False, True])
def test_parts_of_a_run_are_those_of_its_numbers(part: Callable[[Batch], Batch], is_read_before: bool) -> None:
    held = store()
    run = held.batch(60, 80)
    numbered = Batch.referring(held.ts(60, 80), None, np.arange(60, 80), held, range(2))
    assert run.is_run and run.first_seq == numbered.first_seq == 60 and run.row_nbytes == numbered.row_nbytes
    if is_read_before:
        assert shown(run) == shown(numbered)
    assert shown(part(run)) == shown(part(numbered))
    rows = np.array([1, 5, 6])
    for run_column, column in zip(run.columns_at([1, 0], rows), numbered.columns_at([1, 0], rows)):
        assert run_column.values.tolist() == column.values.tolist()


def test_no_other_attribute_is_made_up() -> None:
    with pytest.raises(AttributeError, match="sequence"):
        _ = store().batch(60, 61).sequence  # type: ignore[attr-defined]


@pytest.mark.parametrize("rows", [[4], [4, 5], [4, 5, 6], [4, 6]])
def test_columns_of_some_elements_stay_when_the_store_is_written_again(rows: list[int]) -> None:
    held = store()
    parts = held.batch(60, 80), held.batch(60, 80).slice(0, 10)
    found = [part.columns_at([0, 1], np.array(rows)) for part in parts]
    assert not any(np.shares_memory(c.values, held.view(0, 60, 80).values) for columns in found for c in columns)
    assert [columns[0].values.tolist() for columns in found] == [[3 * (60 + row) for row in rows]] * 2


def test_columns_chosen_of_a_store_have_the_numbers_that_the_batch_has_now() -> None:
    held, choice = store(), Choice([1, 0])
    first, second = (held.batch(start, start + 5).select(choice) for start in (60, 70))
    assert first.reference is not None and second.reference is not None
    assert first.reference[1] is second.reference[1]
    turned = held.batch(60, 65).select(Choice([1, 0])).select(choice)
    assert turned.reference is not None and list(turned.reference[1]) == [0, 1]
    assert shown(held.batch(60, 65).select(choice)) == shown(first)
    stamped = held.batch(60, 65).stamped().select(Choice([2, 1]))
    assert stamped.reference is not None and list(stamped.reference[1]) == [2, 1]


def test_rows_of_an_owned_batch_stay_when_their_store_is_written_again() -> None:
    held = store()
    run = held.batch(60, 80)
    owned, before = run.owned(), shown(run)
    for array in (run.ts, *(column.values for column in run.columns)):
        array[:] = 0
    assert [(ts, sign, *row) for ts, sign, _, *row in before] == list(
        zip(owned.ts.tolist(), owned.signs.tolist(), *values(owned))
    )
    assert owned.owned() is owned and owned.seq is None and owned.reference is None
