"""Base relations: insertions, deletions, order of instants, and that a refused call changes nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minidsms
from minidsms.cql.catalog import RelationDef
from minidsms.cql.errors import DataError, Error, LateElementError
from minidsms.elements import MIN_INSTANT, Batch, Schema, Type
from minidsms.inputs import RelationInput
from minidsms.operators.relation_source import in_order
from minidsms.values.dictionary import TextDictionary

SCHEMA = Schema.of(("k", Type.INTEGER), ("name", Type.TEXT))


def relation(schema: Schema = SCHEMA, closed: int = MIN_INSTANT) -> RelationInput:
    return RelationInput(RelationDef("Dim", schema), TextDictionary(), 1_000_000, lambda: closed)


def elements(source: RelationInput, batch: Batch) -> list[tuple[int, int, tuple[Any, ...]]]:
    """(ts, sign, row) of a batch."""
    return list(zip(batch.ts.tolist(), batch.signs.tolist(), source.converter.rows(batch.columns)))


def present(source: RelationInput) -> list[tuple[int, tuple[Any, ...]]]:
    return [(ts, row) for ts, _, row in elements(source, source.present())]


def changes(source: RelationInput) -> list[tuple[int, int, tuple[Any, ...]]]:
    return elements(source, in_order(source.store.batch(source.store.tail, source.store.head)))


def state(source: RelationInput) -> tuple[Any, ...]:
    return present(source), changes(source), source.last_ts, source.store.head, vars(source.counters).copy()


def test_rows_are_present_from_their_insertion_to_their_deletion() -> None:
    source = relation()
    assert source.push([(1, "a"), (2, "b"), (1, "a")], ts=[1, 2, 3]) == 3
    assert source.push((1, "a"), ts=4, sign=-1) == 1
    assert present(source) == [(2, (2, "b")), (3, (1, "a"))]
    assert changes(source)[-1] == (4, -1, (1, "a"))


@pytest.mark.parametrize("sign", [[1, 1, -1], np.array([1, 1, -1], np.int8), pa.array([1, 1, -1]), ["+", "+1", "-"]])
def test_signs_come_in_every_container(sign: Any) -> None:
    source = relation()
    source.push([(1, "a"), (2, None), (1, "a")], ts=1, sign=sign)
    assert present(source) == [(1, (2, None))]


@pytest.mark.parametrize("sign", [0, 2, "x", [1], [1, 0], [1, None], True, 1.0, None, "+-"])
def test_what_is_no_sign_is_refused(sign: Any) -> None:
    source = relation()
    with pytest.raises(DataError, match="sign"):
        source.push([(1, "a"), (1, "a")], ts=1, sign=sign)
    assert present(source) == []


def test_a_deletion_of_no_row_is_refused_with_the_row_and_nothing_changes() -> None:
    source = relation()
    source.push([(1, "a"), (2, None)], ts=1)
    before = state(source)
    for data, sign in (
        ((9, "z"), -1),
        ([(3, "c"), (1, "a"), (1, "a"), (1, "a")], [1, -1, -1, 1]),
        ([(3, "c"), (3, "c")], [-1, 1]),
    ):
        with pytest.raises(DataError, match="nothing to delete"):
            source.push(data, ts=2, sign=sign)
        assert state(source) == before
    source.push((2, None), ts=2, sign=-1)
    assert present(source) == [(1, (1, "a"))]


def test_changes_come_in_timestamp_order_and_after_the_closed_instants() -> None:
    source = relation(closed=5)
    for ts in (5, 4):
        with pytest.raises(LateElementError, match="closed"):
            source.push((1, "a"), ts=ts)
    source.push((1, "a"), ts=8)
    before = state(source)
    for ts in (7, [8, 9]):
        with pytest.raises(LateElementError, match="below"):
            source.push([(1, "a"), (1, "a")], ts=ts[::-1] if isinstance(ts, list) else ts)
        assert state(source) == before


def test_without_a_timestamp_a_change_comes_at_the_first_open_instant() -> None:
    assert present_after(relation()) == [(0, (1, "a"))]
    assert present_after(relation(closed=5)) == [(6, (1, "a"))]


def present_after(source: RelationInput) -> list[tuple[int, tuple[Any, ...]]]:
    source.push((1, "a"))
    return present(source)


def test_a_batch_of_changes_has_deletions_first_and_no_transients() -> None:
    source = relation()
    source.push([(1, "a")], ts=1)
    source.push([(2, "b"), (1, "a"), (3, "c"), (3, "c")], ts=2, sign=[1, -1, 1, -1])
    assert changes(source) == [(1, 1, (1, "a")), (2, -1, (1, "a")), (2, 1, (2, "b"))]
    assert source.store.ts(1, 5).tolist() == [2, 2, 2, 2]


def test_the_log_is_freed_behind_its_readers_and_the_rows_stay_present() -> None:
    source = relation()
    reader = source.store.reader()
    source.push([(1, "a"), (2, "b")], ts=[1, 2])
    reader.lo = 1
    source.store.free()
    assert source.store.tail == 1 and len(source.store) == 1
    source.store.release(reader)
    source.store.free()
    assert len(source.store) == 0 and len(present(source)) == 2


def test_memory_follows_the_rows_present_not_the_changes_ever_made() -> None:
    source = relation(Schema.of(("k", Type.INTEGER)))
    for i in range(40):
        values = np.arange(i * 1000, i * 1000 + 1000)
        source.push({"k": values}, ts=2 * i)
        source.push({"k": values}, ts=2 * i + 1, sign=-1)
        source.store.free()
    assert source.store.size == 0
    assert source.nbytes < 500_000


def test_a_state_taken_as_arrays_can_be_taken_back() -> None:
    source, other = relation(), relation()
    source.push([(1, "a"), (2, None), (1, "a")], ts=[1, 2, 3])
    source.push((2, None), ts=3, sign=-1)
    other.store.restore(source.store.arrays())
    assert [(ts, sign) for ts, sign, _ in elements(source, other.present())] == [(1, 1), (3, 1)]
    assert source.converter.rows(other.present().columns) == [(1, "a"), (1, "a")]


change = st.tuples(st.integers(0, 3), st.sampled_from([None, "a", "b"]), st.sampled_from([1, 1, -1]), st.integers(0, 2))


@settings(deadline=None)
@given(st.lists(st.lists(change, min_size=1, max_size=6), max_size=8))
def test_present_rows_and_netted_changes_are_those_of_a_counter(calls: list[list[tuple[Any, ...]]]) -> None:
    source = relation()
    bag: Counter[tuple[Any, ...]] = Counter()
    per_instant: dict[int, Counter[tuple[Any, ...]]] = {}
    now = 0
    for call in calls:
        rows = [(k, name) for k, name, _, _ in call]
        signs = [sign for _, _, sign, _ in call]
        ts = (now + np.cumsum([step for *_, step in call])).tolist()
        trial, fits = bag.copy(), True
        for row, sign in zip(rows, signs):
            trial[row] += sign
            fits = fits and trial[row] >= 0
        if not fits:
            with pytest.raises(DataError):
                source.push(rows, ts=ts, sign=signs)
        else:
            source.push(rows, ts=ts, sign=signs)
            bag, now = trial, ts[-1]
            for t, row, sign in zip(ts, rows, signs):
                per_instant.setdefault(t, Counter())[row] += sign
        assert Counter(row for _, row in present(source)) == +bag
    netted: dict[int, Counter[tuple[Any, ...]]] = {}
    last = (-1, -1)
    for t, sign, row in changes(source):
        assert (t, sign) >= last
        last = (t, sign)
        netted.setdefault(t, Counter())[row] += sign
    for t, counts in per_instant.items():
        assert {r: c for r, c in counts.items() if c} == dict(netted.get(t, {}))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3) | st.text(max_size=1), st.none() | st.text(max_size=2))), st.integers(-2, 2)
)
def test_only_our_errors_escape_a_push_into_a_relation(rows: list[Any], sign: int) -> None:
    source = relation()
    source.push((1, "a"), ts=1)
    before = state(source)
    try:
        source.push(rows, ts=2, sign=sign)
    except Error:
        assert state(source) == before


@pytest.mark.parametrize("with_stream", [False, True])
def test_a_heartbeat_on_a_relation_closes_instants_for_queries_over_relations_alone(with_stream: bool) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (v INTEGER); CREATE RELATION T (v INTEGER); CREATE STREAM S (v INTEGER)")
        q = db.query("SELECT R.v FROM R, S [NOW]" if with_stream else "SELECT R.v FROM R, T WHERE R.v = T.v")
        db.push("R", (1,), ts=5)
        db.push("T", (1,), ts=5)
        db.advance(5, "R")
        assert q.fetch() == []
        db.advance(7, "T")
        assert [tuple(change) for change in q.fetch()] == ([] if with_stream else [(5, 1, (1,))])
        with pytest.raises(LateElementError):
            db.push("R", (2,), ts=5 if not with_stream else 4)
