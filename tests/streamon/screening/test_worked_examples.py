"""Examples 1 to 7 of Lee and Lee 2012.

The figures with their queries are not in the text; these four queries over four columns are an instance of which
everything is true that the text says. Example 6 divides by k = 4 where definition 3 says the number of filters not
covered: the order of the candidates is the same.
"""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.connection import connect
from minidsms.elements import Batch, Column, Int32Array
from minidsms.plan.screening import box_of
from minidsms.plan.tails import filter_and_columns
from minidsms.screens.level import Found, Level
from minidsms.screens.sequence import Sequence
from minidsms.streamon.screening.arranging import (
    conditional_selectivity,
    dropping_ratio,
    hybrid_sequence,
    looked_at,
    macro_sequence,
)

QUERIES = ("a1 < 40 AND a3 >= 30", "a2 <= 20 AND a4 > 50", "a1 <= 70 AND a3 < 30", "a2 >= 60 AND a4 <= 50")
A1, A2, A3, A4 = range(4)
T1, T2, T3 = (50, 30, 50, 60), (80, 80, 10, 10), (50, 30, 50, 10)
T4, T5 = (80, 30, 10, 60), (80, 80, 10, 60)
T6, T7 = (80, 80, 10, 60), (80, 20, 10, 10)


def level() -> Level:
    db = connect()
    db.execute("CREATE STREAM D (a1 INTEGER, a2 INTEGER, a3 INTEGER, a4 INTEGER)")
    boxes = []
    for text in QUERIES:
        found = filter_and_columns(db.query(f"SELECT ISTREAM(a1) FROM D WHERE {text}").logical)  # type: ignore[arg-type]
        assert found is not None
        box = box_of(found[0].condition)
        assert box is not None and box.is_all
        boxes.append(box)
    return Level(boxes, range(4), db.catalog.streams["d"].schema.types)


def rows(*tuples: tuple[int, ...]) -> Batch:
    columns = [Column(np.array(values, np.int64)) for values in zip(*tuples)]
    return Batch(np.zeros(len(tuples), np.int64), None, columns)


def window(of: Level, *tuples: tuple[int, ...]) -> Int32Array:
    keys, present = of.domains.keys(rows(*tuples), connect().dictionary)
    return of.domains.regions_of(keys, present)


def bits(word: int) -> str:
    """As the paper writes a bitmap: q1 first."""
    return "".join(str(word >> j & 1) for j in range(4))


def qrb(of: Level, column: int, value: int) -> str:
    tuple_ = [0, 0, 0, 0]
    tuple_[column] = value
    return bits(int(of.constructs.bits[window(of, tuple(tuple_))[column, 0], 0]))


def grb(of: Level, tuple_: tuple[int, ...], columns: tuple[int, ...]) -> str:
    at = window(of, tuple_)
    word = np.uint64(0b1111)
    for column in columns:
        word &= of.constructs.bits[at[column, 0], 0]
    return bits(int(word))


def looked(of: Level, sequence: Sequence, tuple_: tuple[int, ...]) -> tuple[list[int], int]:
    """The columns that the kernel looks at for a tuple, and the arrows of regions that it follows."""
    of.follow(sequence)
    before, micro = of.counts[0].copy(), of.micro
    of.run(rows(tuple_), connect().dictionary, Found())
    return np.flatnonzero(of.counts[0] - before).tolist(), of.micro - micro


def test_example_1_bitmaps_of_usage_results_and_candidates() -> None:
    of = level()
    assert [bits(int(word)) for word in of.constructs.qub[:, 0]] == ["1010", "0101", "1010", "0101"]
    assert qrb(of, A2, 20) == "1110"
    between = qrb(of, A2, 30)
    assert between == "1010" and int(between[::-1], 2) & int(of.constructs.qub[A4, 0]) == 0
    assert qrb(of, A1, 71) == "0101"


def test_example_2_tuples_lose_queries_column_by_column() -> None:
    of = level()
    assert [grb(of, T2, tuple(range(n))) for n in range(1, 5)] == ["0101", "0001", "0001", "0001"]
    macro = Sequence((A1, A2, A3, A4))
    assert looked(of, macro, T2) == ([A1, A2, A3, A4], 0)
    assert looked(of, macro, T1) == looked(of, macro, T3) == ([A1, A2, A3], 0)


def test_example_3_two_pairs_of_columns_are_minimal_cover_sets() -> None:
    qub = level().constructs.qub[:, 0]
    pairs = [(i, j) for i in range(4) for j in range(i) if int(qub[i] | qub[j]) == 0b1111]
    assert (A2, A1) in pairs and (A4, A3) in pairs and not any(int(word) == 0b1111 for word in qub)


def test_example_4_two_of_three_tuples_are_dropped() -> None:
    of = level()
    assert dropping_ratio(of.constructs, (A1, A2, A3), window(of, T1, T2, T3)) == pytest.approx(2 / 3)


def test_example_5_a_macro_sequence_from_three_periods() -> None:
    of = level()
    first, second, third = (window(of, t) for t in (T1, T2, T3))
    selectivity = [conditional_selectivity(of.constructs, (), c, first) for c in range(4)]
    assert selectivity == [3 / 4, 1 / 2, 3 / 4, 3 / 4]
    assert [conditional_selectivity(of.constructs, (A2,), c, second) for c in (A1, A3, A4)] == [0, 1 / 2, 1]
    assert [dropping_ratio(of.constructs, (A2, A1, c), third) for c in (A3, A4)] == [1, 0]
    assert macro_sequence(of.constructs, [first, second, third]) == Sequence((A2, A1, A3, A4))


def test_example_6_arrows_from_the_last_regions() -> None:
    of = level()
    fourth, fifth = window(of, T4), window(of, T5)
    assert [conditional_selectivity(of.constructs, (A1,), c, fourth) for c in (A2, A4)] == [0, 1 / 2]
    assert [dropping_ratio(of.constructs, (A1, A2, c), fifth) for c in (A3, A4)] == [0, 1]
    macro = Sequence((A1, A3, A2, A4))
    hybrid = hybrid_sequence(of.constructs, macro, [fourth, fifth])
    assert dict(hybrid.arrows)[int(fourth[A1, 0])] == A2
    assert dict(hybrid.arrows)[int(fifth[A2, 0])] == A4


def test_example_7_arrows_are_followed_and_the_macro_sequence_where_there_is_none() -> None:
    of = level()
    last = {c: int(of.domains.first[c + 1]) - 1 for c in range(4)}
    arrows = tuple(sorted({last[A1]: A2, last[A2]: A4, last[A4]: A3}.items()))
    sequence = Sequence((A1, A2, A3, A4), arrows)
    assert looked(of, sequence, T6) == ([A1, A2, A4], 2)
    assert looked(of, sequence, T7)[0] == [A1, A2, A3, A4]
    assert looked_at(of.constructs, sequence, window(of, T6)) == 3


def test_no_column_is_looked_at_twice() -> None:
    of = level()
    arrows = tuple((region, A1) for region in range(len(of.constructs.bits)))
    for tuple_ in (T1, T2, T3, T4, T5):
        before = int(of.counts[0].max())
        looked(of, Sequence((A4, A3, A2, A1), arrows), tuple_)
        assert int(of.counts[0].max()) <= before + 1
