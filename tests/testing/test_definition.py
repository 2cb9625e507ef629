"""The evaluator by definition on hand-built queries with answers worked out by hand from docs/semantics."""

from __future__ import annotations

import pytest

from minidsms.cql import bound
from minidsms.cql.bound import (
    Aggregate,
    AggregateCall,
    BaseRelation,
    BaseStream,
    Call,
    ColumnRef,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Literal,
    OuterRef,
    Project,
    RelationToStream,
    SetKind,
    SetOperation,
    StreamKind,
    Window,
)
from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import Schema, Type
from minidsms.testing.definition import answer, instants, relation_at
from minidsms.testing.history import Change, Failure, History, Row

INTEGER = Type.INTEGER
KV = Schema.of(("k", INTEGER), ("v", INTEGER))
S = BaseStream(KV, "S")
T = BaseStream(KV, "T")
R = BaseRelation(KV, "R")
K, V = ColumnRef(INTEGER, 0, "k"), ColumnRef(INTEGER, 1, "v")
NOW = WindowSpec(WindowKind.RANGE, range_=0)
UNBOUNDED = WindowSpec(WindowKind.UNBOUNDED)


def window(stream: bound.Node = S, **spec: object) -> Window:
    return Window(stream.schema, stream, WindowSpec(**spec))  # type: ignore[arg-type]


def range_(length: int, slide: int | None = None, stream: bound.Node = S) -> Window:
    return window(stream, kind=WindowKind.RANGE, range_=length, slide=slide)


def rows(n: int, slide: int | None = None, stream: bound.Node = S) -> Window:
    return window(stream, kind=WindowKind.ROWS, rows=n, slide=slide)


def unbounded(stream: bound.Node = S) -> Window:
    return Window(stream.schema, stream, UNBOUNDED)


def call(function: str, *args: bound.Expr, type: Type = Type.BOOLEAN) -> Call:
    return Call(type, function, args)


def number(value: int | None) -> Literal:
    return Literal(INTEGER, value)


def stream_of(op: StreamKind, node: bound.Node, **options: bool) -> RelationToStream:
    return RelationToStream(node.schema, op, node, bound.changing(node), **options)


def global_aggregate(node: bound.Node, *calls: AggregateCall) -> Aggregate:
    schema = Schema.of(*((c.function, c.type) for c in calls))
    return Aggregate(schema, node, (), calls, True, bound.changing(node))


COUNT = AggregateCall("count", None, INTEGER)
SUM = AggregateCall("sum", V, INTEGER)


def fed(*elements: tuple[int, Row], **more: list[tuple[int, Row]]) -> History:
    """S receives the elements; other streams by keyword."""
    return History({"s": list(elements), **{name.lower(): list(e) for name, e in more.items()}})


def plus(ts: int, *row: int | None) -> Change:
    return (ts, +1, row)


def minus(ts: int, *row: int | None) -> Change:
    return (ts, -1, row)


# --------------------------------------------------------------------------------------------------------- windows


def test_w1_a_row_of_instant_t_leaves_a_range_window_at_t_plus_its_length() -> None:
    assert answer(range_(3), fed((1, (0, 1)), (2, (0, 2))), 10) == [
        plus(1, 0, 1),
        plus(2, 0, 2),
        minus(4, 0, 1),
        minus(5, 0, 2),
    ]


def test_instants_after_the_last_closed_one_are_not_spoken_of() -> None:
    assert answer(range_(3), fed((1, (0, 1)), (2, (0, 2))), 4) == [plus(1, 0, 1), plus(2, 0, 2), minus(4, 0, 1)]


def test_equal_rows_that_leave_and_enter_at_one_instant_cancel() -> None:
    assert answer(range_(3), fed((1, (0, 1)), (4, (0, 1))), 9) == [plus(1, 0, 1), minus(7, 0, 1)]


def test_w2_now_holds_a_row_for_one_instant() -> None:
    assert answer(range_(0), fed((1, (0, 1)), (2, (0, 1)), (5, (0, 2))), 9) == [
        plus(1, 0, 1),
        minus(3, 0, 1),
        plus(5, 0, 2),
        minus(6, 0, 2),
    ]


def test_w3_an_unbounded_window_keeps_everything() -> None:
    assert answer(unbounded(), fed((1, (0, 1)), (1, (0, 1))), 99) == [plus(1, 0, 1), plus(1, 0, 1)]


def test_w4_a_rows_window_breaks_ties_by_arrival() -> None:
    history = fed((1, (0, 1)), (2, (0, 2)), (2, (0, 3)), (2, (0, 4)))
    assert answer(rows(2), history, 9) == [plus(1, 0, 1), minus(2, 0, 1), plus(2, 0, 3), plus(2, 0, 4)]


def test_w5_a_partition_window_keeps_rows_per_key_and_null_is_a_key() -> None:
    partition = window(kind=WindowKind.PARTITION, rows=1, keys=(0,))
    history = fed((1, (None, 1)), (2, (7, 2)), (3, (None, 3)), (4, (7, 4)))
    assert relation_at(partition, history, 3) == [(7, 2), (None, 3)]
    assert relation_at(partition, history, 4) == [(None, 3), (7, 4)]


def test_w5_a_partition_window_with_range_also_forgets_by_time() -> None:
    partition = window(kind=WindowKind.PARTITION, rows=2, range_=3, keys=(0,))
    history = fed((1, (7, 1)), (2, (7, 2)), (3, (7, 3)), (3, (8, 4)))
    assert answer(partition, history, 9) == [
        plus(1, 7, 1),
        plus(2, 7, 2),
        minus(3, 7, 1),
        plus(3, 7, 3),
        plus(3, 8, 4),
        minus(5, 7, 2),
        minus(6, 7, 3),
        minus(6, 8, 4),
    ]


def test_w6_a_sliding_range_window_changes_at_multiples_of_its_slide() -> None:
    # At 4: (0, 4] holds 1 and 4; at 6: (2, 6] holds 4 and 5; at 8: (4, 8] holds 5; at 10 nothing.
    history = fed((1, (0, 1)), (4, (0, 4)), (5, (0, 5)))
    assert answer(range_(4, slide=2), history, 12) == [
        plus(2, 0, 1),
        plus(4, 0, 4),
        minus(6, 0, 1),
        plus(6, 0, 5),
        minus(8, 0, 4),
        minus(10, 0, 5),
    ]


def test_w6_rows_between_the_multiples_of_a_hopping_window_are_never_seen() -> None:
    assert answer(range_(1, slide=3), fed((1, (0, 1)), (3, (0, 3))), 9) == [plus(3, 0, 3), minus(6, 0, 3)]


def test_w7_a_sliding_rows_window_moves_by_whole_steps_of_arrivals() -> None:
    history = fed(*((t, (0, t)) for t in range(1, 6)))
    assert answer(rows(3, slide=2), history, 9) == [
        plus(2, 0, 1),
        plus(2, 0, 2),
        minus(4, 0, 1),
        plus(4, 0, 3),
        plus(4, 0, 4),
    ]


# ------------------------------------------------------------------------------------------------------- relations


def test_r1_a_join_pairs_what_both_windows_hold_at_the_instant() -> None:
    join = Join(KV + KV, JoinKind.INNER, range_(2), range_(2, stream=T), None)
    on_key = Filter(join.schema, join, call("=", K, ColumnRef(INTEGER, 2)))
    history = fed((1, (0, 1)), (2, (1, 2)), T=[(2, (0, 5)), (4, (1, 6))])
    assert answer(on_key, history, 9) == [plus(2, 0, 1, 0, 5), minus(3, 0, 1, 0, 5)]


def test_r1_outer_joins_fill_with_null_and_null_equals_nothing() -> None:
    history = fed((1, (0, 1)), (1, (None, 2)), T=[(1, (0, 5)), (1, (None, 6))])
    on = call("=", K, ColumnRef(INTEGER, 2))

    def joined(kind: JoinKind) -> set[Row]:
        return set(relation_at(Join(KV + KV, kind, unbounded(), unbounded(T), on), history, 1))

    pair, left, right = (0, 1, 0, 5), (None, 2, None, None), (None, None, None, 6)
    assert joined(JoinKind.INNER) == {pair}
    assert joined(JoinKind.LEFT) == {pair, left}
    assert joined(JoinKind.RIGHT) == {pair, right}
    assert joined(JoinKind.FULL) == {pair, left, right}


@pytest.mark.parametrize(
    ("op", "all_", "expected"),
    [
        (SetKind.UNION, True, [(0, 1), (0, 1), (0, 1), (0, 2), (0, 3)]),
        (SetKind.UNION, False, [(0, 1), (0, 2), (0, 3)]),
        (SetKind.EXCEPT, True, [(0, 1), (0, 2)]),
        (SetKind.EXCEPT, False, [(0, 2)]),
        (SetKind.INTERSECT, True, [(0, 1)]),
        (SetKind.INTERSECT, False, [(0, 1)]),
    ],
)
def test_r5_set_operators_count_duplicates_only_with_all(op: SetKind, all_: bool, expected: list[Row]) -> None:
    history = fed((1, (0, 1)), (1, (0, 1)), (1, (0, 2)), T=[(1, (0, 1)), (1, (0, 3))])
    node = SetOperation(KV, op, all_, unbounded(), unbounded(T))
    assert sorted(relation_at(node, history, 1)) == expected


def test_r5_distinct_keeps_a_row_until_its_last_copy_leaves() -> None:
    node = Distinct(KV, range_(3))
    assert answer(node, fed((1, (0, 1)), (2, (0, 1))), 9) == [plus(1, 0, 1), minus(5, 0, 1)]


def test_r2_not_in_with_a_null_on_the_right_is_never_true() -> None:
    query = Project(Schema.of(("v", INTEGER)), unbounded(T), (V,))
    node = Filter(KV, unbounded(), call("not", bound.InQuery(Type.BOOLEAN, (V,), query)))
    assert relation_at(node, fed((1, (0, 1)), T=[(1, (0, 2))]), 1) == [(0, 1)]
    assert relation_at(node, fed((1, (0, 1)), T=[(1, (0, 2)), (1, (0, None))]), 1) == []


def test_r1_a_correlated_subquery_is_answered_for_each_row() -> None:
    inner = Filter(KV, unbounded(T), call("=", K, OuterRef(INTEGER, 0, level=1)))
    node = Filter(KV, unbounded(), bound.Exists(Type.BOOLEAN, inner))
    assert relation_at(node, fed((1, (0, 1)), (1, (2, 2)), T=[(1, (2, 0))]), 1) == [(2, 2)]


def test_r1_a_correlated_subquery_over_a_join_is_answered_for_each_row_of_the_join() -> None:
    inner = Filter(KV, R, call("=", K, OuterRef(INTEGER, 3, level=1)))
    join = Join(KV + KV, JoinKind.INNER, unbounded(), unbounded(T), None)
    node = Filter(join.schema, join, call("and", call("=", V, number(7)), bound.Exists(Type.BOOLEAN, inner)))
    history = fed((1, (0, 7)), (1, (0, 8)), T=[(1, (0, 4)), (1, (0, 5))])
    history.relations["r"] = [(1, +1, (5, 0))]
    assert relation_at(node, history, 1) == [(0, 7, 0, 5)]


def test_r3_a_group_without_rows_disappears() -> None:
    schema = Schema.of(("k", INTEGER), ("sum", INTEGER))
    node = Aggregate(schema, range_(2), (K,), (SUM,), False, ())
    assert answer(node, fed((1, (0, 5)), (2, (0, 7))), 9) == [
        plus(1, 0, 5),
        minus(2, 0, 5),
        plus(2, 0, 12),
        minus(3, 0, 12),
        plus(3, 0, 7),
        minus(4, 0, 7),
    ]


def test_r3_a_query_without_group_by_has_one_row_from_the_first_arrival_on() -> None:
    windowed = range_(2)
    node = Aggregate(
        Schema.of(("count", INTEGER), ("sum", INTEGER)),
        Filter(KV, windowed, call(">", V, number(3))),
        (),
        (COUNT, SUM),
        True,
        (windowed,),
    )
    assert answer(node, fed((1, (0, 1)), (2, (0, 7))), 9) == [
        plus(1, 0, None),
        minus(2, 0, None),
        plus(2, 1, 7),
        minus(4, 1, 7),
        plus(4, 0, None),
    ]


def test_r3_the_first_arrival_counts_at_its_own_instant_even_in_a_sliding_window() -> None:
    assert answer(global_aggregate(range_(5, slide=5), COUNT), fed((3, (0, 1))), 11) == [
        plus(3, 0),
        minus(5, 0),
        plus(5, 1),
        minus(10, 1),
        plus(10, 0),
    ]


def test_r3_a_base_relation_beside_a_window_does_not_begin_the_row() -> None:
    windowed = range_(2)
    joined = Join(KV + KV, JoinKind.RIGHT, windowed, R, None)
    node = Aggregate(Schema.of(("count", INTEGER)), joined, (), (COUNT,), True, (windowed,))
    history = History({"s": [(5, (0, 1))]}, {"r": [(1, +1, (0, 1))]})
    assert answer(node, history, 6) == [plus(5, 1)]


def test_r3_first_and_last_are_by_arrival_and_take_nulls_as_values() -> None:
    node = global_aggregate(rows(2), AggregateCall("first", V, INTEGER), AggregateCall("last", V, INTEGER))
    history = fed((1, (0, 9)), (1, (0, None)), (2, (0, 4)))
    assert relation_at(node, history, 1) == [(9, None)]
    assert relation_at(node, history, 2) == [(None, 4)]


def test_r3_variance_is_the_samples_and_null_for_fewer_than_two_rows() -> None:
    spread = (AggregateCall("variance", V, Type.FLOAT), AggregateCall("stddev", V, Type.FLOAT))
    node = global_aggregate(unbounded(), *spread)
    history = fed((1, (0, 2)), (2, (0, 4)), (2, (0, None)), (3, (0, 9)))
    assert [relation_at(node, history, tau)[0][0] for tau in (1, 2, 3)] == [None, 2.0, 13.0]


def test_r4_a_sum_beyond_int64_fails_the_query_at_that_instant_and_earlier_answers_stand() -> None:
    node = global_aggregate(range_(5), SUM)
    with pytest.raises(Failure) as failure:
        answer(node, fed((1, (0, 2**63 - 1)), (3, (0, 1)), (4, (0, -1))), 9)
    assert failure.value.ts == 3
    assert failure.value.changes == [plus(1, 2**63 - 1)]


def test_r4_a_sum_is_judged_at_the_end_of_an_instant_only() -> None:
    node = global_aggregate(unbounded(), SUM)
    assert relation_at(node, fed((1, (0, 2**63 - 1)), (1, (0, 1)), (1, (0, -1))), 1) == [(2**63 - 1,)]


def test_r4_an_error_in_a_conjunction_counts_only_if_all_else_is_true() -> None:
    overflow = call("=", call("+", V, number(2**63 - 1), type=INTEGER), number(0))
    both = call("and", overflow, call("=", K, number(1)))
    node = Filter(KV, unbounded(), both)
    history = fed((1, (0, 5)), (2, (None, 5)), (3, (1, 5)))
    assert relation_at(node, history, 2) == []
    with pytest.raises(Failure) as failure:
        answer(node, history, 9)
    assert (failure.value.ts, failure.value.reason) == (3, "integer overflow")


def test_r4_the_on_of_an_inner_join_is_a_conjunct_like_those_of_where() -> None:
    overflow = call("=", call("+", V, number(2**63 - 1), type=INTEGER), number(0))
    join = Join(KV + KV, JoinKind.INNER, unbounded(), unbounded(T), overflow)
    node = Filter(join.schema, join, call("=", K, number(1)))
    history = fed((1, (0, 5)), (3, (1, 5)), T=[(1, (0, 0))])
    assert relation_at(node, history, 2) == []
    with pytest.raises(Failure):
        relation_at(node, history, 3)


def test_r4_an_error_over_one_input_counts_only_beside_rows_of_the_others_for_which_all_else_is_true() -> None:
    overflow = call("=", call("+", V, number(2**63 - 1), type=INTEGER), number(0))
    join = Join(KV + KV, JoinKind.INNER, unbounded(), unbounded(T), call("=", K, ColumnRef(INTEGER, 2, "k")))
    node = Filter(join.schema, join, overflow)
    history = fed((1, (0, 5)), T=[(2, (1, 0)), (3, (0, 0))])
    assert relation_at(node, history, 2) == []
    with pytest.raises(Failure) as failure:
        answer(node, history, 9)
    assert failure.value.ts == 3


def test_r4_a_subquery_that_depends_on_no_row_is_judged_even_where_there_is_none() -> None:
    total = global_aggregate(unbounded(T), SUM)
    node = Filter(KV, unbounded(), call("=", V, bound.ScalarQuery(INTEGER, total)))
    with pytest.raises(Failure) as failure:
        answer(node, History({"t": [(1, (0, 2**63 - 1)), (2, (0, 1))]}), 9)
    assert failure.value.ts == 2


def test_a_scalar_subquery_of_two_rows_fails_the_query() -> None:
    query = Project(Schema.of(("v", INTEGER)), range_(2, stream=T), (V,))
    node = Filter(KV, unbounded(), call("=", V, bound.ScalarQuery(INTEGER, query)))
    history = fed((1, (0, 5)), T=[(1, (0, 5)), (2, (0, 6))])
    with pytest.raises(Failure) as failure:
        answer(node, history, 9)
    assert (failure.value.ts, failure.value.changes) == (2, [plus(1, 0, 5)])


def test_a_base_relation_holds_the_sum_of_its_changes() -> None:
    history = History({}, {"r": [(1, +1, (0, 1)), (1, +1, (0, 1)), (3, -1, (0, 1)), (3, +1, (0, 2))]})
    assert answer(R, history, 9) == [plus(1, 0, 1), plus(1, 0, 1), minus(3, 0, 1), plus(3, 0, 2)]


# --------------------------------------------------------------------------------------------------------- streams


def test_s1_istream_and_dstream_speak_of_what_enters_and_leaves() -> None:
    history = fed((1, (0, 1)), (2, (0, 2)))
    assert answer(stream_of(StreamKind.ISTREAM, rows(1)), history, 9) == [plus(1, 0, 1), plus(2, 0, 2)]
    assert answer(stream_of(StreamKind.DSTREAM, rows(1)), history, 9) == [plus(2, 0, 1)]


def test_s1_what_leaves_and_enters_equal_is_not_emitted() -> None:
    assert answer(stream_of(StreamKind.ISTREAM, rows(1)), fed((1, (0, 1)), (2, (0, 1))), 9) == [plus(1, 0, 1)]


def test_s2_rstream_speaks_when_a_window_changes_even_if_an_equal_row_replaces_another() -> None:
    history = fed((1, (0, 1)), (2, (0, 1)))
    assert answer(stream_of(StreamKind.RSTREAM, rows(1)), history, 9) == [plus(1, 0, 1), plus(2, 0, 1)]


def test_s2_rstream_speaks_when_a_row_leaves() -> None:
    history = fed((1, (0, 1)), (2, (0, 2)))
    assert answer(stream_of(StreamKind.RSTREAM, range_(2)), history, 9) == [
        plus(1, 0, 1),
        plus(2, 0, 1),
        plus(2, 0, 2),
        plus(3, 0, 2),
    ]


def test_s2_rstream_speaks_at_window_changes_that_a_filter_hides() -> None:
    node = Filter(KV, unbounded(), call("=", K, number(0)))
    history = fed((1, (0, 1)), (4, (9, 2)))
    assert answer(stream_of(StreamKind.RSTREAM, node), history, 9) == [plus(1, 0, 1), plus(4, 0, 1)]


def test_s2_a_sliding_window_speaks_at_every_multiple_from_its_first_arrival_on() -> None:
    node = stream_of(StreamKind.RSTREAM, global_aggregate(range_(2, slide=2), COUNT))
    assert answer(node, fed((3, (0, 1))), 9) == [plus(4, 1), plus(6, 0), plus(8, 0)]


def test_s2_a_sliding_rows_window_speaks_when_it_moves() -> None:
    node = stream_of(StreamKind.RSTREAM, rows(1, slide=2))
    assert answer(node, fed((1, (0, 1)), (2, (0, 2)), (3, (0, 3)), (4, (0, 4))), 9) == [plus(2, 0, 2), plus(4, 0, 4)]


def test_s2_every_change_of_a_base_relation_is_an_event() -> None:
    history = History({"s": [(2, (0, 1))]}, {"r": [(1, +1, (0, 1)), (5, +1, (1, 1))]})
    join = Join(KV + KV, JoinKind.INNER, unbounded(), R, call("=", K, ColumnRef(INTEGER, 2)))
    assert answer(stream_of(StreamKind.RSTREAM, join), history, 9) == [plus(2, 0, 1, 0, 1), plus(5, 0, 1, 0, 1)]


def test_s2_in_ticks_rstream_speaks_at_every_closed_tick() -> None:
    node = stream_of(StreamKind.RSTREAM, range_(3), ticks=True)
    assert answer(node, fed((1, (0, 1))), 9) == [plus(1, 0, 1), plus(2, 0, 1), plus(3, 0, 1)]


# -------------------------------------------------------------------------------------------------- derived streams


def test_t3_a_derived_stream_orders_the_rows_of_an_instant_by_value_null_first() -> None:
    derived = stream_of(StreamKind.ISTREAM, range_(9))
    history = fed((1, (5, 1)), (1, (None, 2)), (1, (3, 3)))
    assert relation_at(rows(1, stream=derived), history, 1) == [(5, 1)]
    assert relation_at(rows(3, stream=derived), history, 1) == [(None, 2), (3, 3), (5, 1)]


def test_t3_filters_and_projections_of_one_stream_keep_its_order() -> None:
    derived = stream_of(StreamKind.ISTREAM, unbounded(), keeps_order=True)
    history = fed((1, (5, 1)), (1, (None, 2)), (1, (3, 3)), (1, (5, 1)), (2, (1, 1)), (2, (0, 0)))
    assert relation_at(rows(2, stream=derived), history, 1) == [(3, 3), (5, 1)]
    assert relation_at(rows(1, stream=derived), history, 2) == [(0, 0)]


def test_the_deletions_of_a_relation_can_be_windowed_again() -> None:
    derived = stream_of(StreamKind.DSTREAM, range_(2))
    assert answer(range_(3, stream=derived), fed((1, (0, 1))), 9) == [plus(3, 0, 1), minus(6, 0, 1)]


def test_a_derived_stream_fails_the_query_even_where_no_row_looks_at_it() -> None:
    derived = stream_of(StreamKind.ISTREAM, global_aggregate(unbounded(T), SUM))
    node = Filter(KV, unbounded(), bound.Exists(Type.BOOLEAN, unbounded(derived)))
    with pytest.raises(Failure) as failure:
        answer(node, History({"t": [(1, (0, 2**63 - 1)), (2, (0, 1))]}), 9)
    assert failure.value.ts == 2


def test_instants_include_arrivals_expiries_and_slides() -> None:
    assert instants(range_(3), fed((1, (0, 1))), 9) == [1, 4]
    assert instants(range_(3, slide=4), fed((1, (0, 1))), 9) == [1, 4, 8]
