"""Buckets of attributes of every type."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from minidsms.elements import Column, Schema, Type
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.classifiers import Classifier, Reading, readings_of
from minidsms.expressions.value import Frame
from minidsms.streamon.content_routing.sample import Sample
from minidsms.values.coded import text_of
from minidsms.values.dictionary import TextDictionary

DAY_MS = 86_400_000


def buckets(type_: Type, classifier: Classifier, column: Column, dictionary: TextDictionary | None = None) -> list[int]:
    attributes = Attributes(Schema.of(("x", type_)), dictionary or TextDictionary(), 1_000_000)
    cells: list[int] = attributes.cells(classifier, Frame(lambda _: column, len(column))).tolist()
    return cells


def test_every_type_but_that_of_null_has_a_reading() -> None:
    types = [*Type.SCALARS, Type.decimal(9, 2), Type.TEXT.list_type, Type.struct((("a", Type.DATE),))]
    assert all(readings_of(t) for t in types) and not readings_of(Type.NULL)


def test_dates_and_times_of_day_are_read_in_their_own_units() -> None:
    monday = 18_260  # 2019-12-30
    days = Column(np.arange(monday, monday + 8))
    assert buckets(Type.DATE, Classifier(0, "x", Reading.WEEKDAY, 8), days) == [1, 2, 3, 4, 5, 6, 7, 1]
    times = Column(np.array([0, 3_599_999_999, 3_600_000_000, 86_399_999_999]))
    assert buckets(Type.TIME, Classifier(0, "x", Reading.HOUR, 25), times) == [1, 1, 2, 24]


def test_decimals_lie_in_ranges_and_nested_values_by_what_they_say() -> None:
    dictionary = TextDictionary()
    type_ = Type.decimal(38, 2)
    prices = [Decimal("-5"), Decimal("0.10"), Decimal("0.20"), Decimal("12345678901234567890.00")]
    column = dictionary.column([None, *prices], type_)
    ranges = Classifier(0, "x", Reading.RANGE, 4, (0.0, 15.0))  # of digits: 0.00 and 0.15
    assert buckets(type_, ranges, column, dictionary) == [0, 1, 2, 3, 3]
    lists = Type.INTEGER.list_type
    same = dictionary.encode([text_of(each, lists) for each in ((1, 2), (3,), (1, 2))])
    seen = buckets(lists, Classifier(0, "x", Reading.VALUE, 24), same, dictionary)
    assert seen[0] == seen[2] != seen[1]


def test_neighbouring_integers_never_share_a_bucket() -> None:
    for first in (-30, 0, 5, 2**31 - 10, 2**62):
        values = np.arange(first, first + 20)
        seen = buckets(Type.INTEGER, Classifier(0, "x", Reading.VALUE, 24), Column(values))
        crosses = any((v >> 32) != (first >> 32) for v in values.tolist())
        assert crosses or len(set(seen)) == 20
        assert min(seen) >= 1 and max(seen) <= 23


def test_the_bucket_of_a_small_integer_is_its_remainder() -> None:
    values = np.array([0, 1, 22, 23, 24, 4711, 2**32 - 1])
    seen = buckets(Type.INTEGER, Classifier(0, "x", Reading.VALUE, 24), Column(values))
    assert seen == [1 + v % 23 for v in values.tolist()]


def test_null_has_a_bucket_of_its_own() -> None:
    column = Column(np.array([0, 5, 0]), np.array([True, True, False]))
    assert buckets(Type.INTEGER, Classifier(0, "x", Reading.VALUE, 4), column) == [1, 3, 0]
    flags = Column(np.array([False, True, False]), np.array([True, True, False]))
    assert buckets(Type.BOOLEAN, Classifier(0, "x", Reading.VALUE, 24), flags) == [1, 2, 0]


def test_ranges_lie_between_bounds() -> None:
    column = Column(np.array([-1e300, -0.1, 0.1, 0.49, 0.51, 0.99, 1.1, 7.0, np.inf]))
    by_ranges = Classifier(0, "x", Reading.RANGE, 5, (0.0, 0.5, 1.0))
    assert buckets(Type.FLOAT, by_ranges, column) == [1, 1, 2, 2, 3, 3, 4, 4, 4]
    halves = Classifier(0, "x", Reading.RANGE, 3, (0.5,))
    assert buckets(Type.FLOAT, halves, column) == [1, 1, 1, 1, 2, 2, 2, 2, 2]
    many = Column(np.tile(column.values, 1000))
    assert buckets(Type.FLOAT, by_ranges, many)[-9:] == [1, 1, 2, 2, 3, 3, 4, 4, 4], "by the grid"
    assert buckets(Type.FLOAT, halves, many)[-9:] == [1, 1, 1, 1, 2, 2, 2, 2, 2]
    far = Classifier(0, "x", Reading.RANGE, 4, (-1e308, 1e308))
    assert set(buckets(Type.FLOAT, far, column)) <= {1, 2, 3}


@pytest.mark.parametrize(
    "values", [[3, 10, 17, 24, 31, 38], [0, 1, 2], [-1, 0, 1000], list(range(40)), [2**40, 2**40 + 1, 2**41]]
)
def test_ranges_of_a_few_values_are_those_of_the_sample_in_chunks_of_any_size(values: list[int]) -> None:
    rng = np.random.default_rng(0)
    column = Column(rng.permutation(np.tile(values, 20_000 // len(values))))
    attributes = Attributes(Schema.of(("x", Type.INTEGER)), TextDictionary(), 1_000_000)
    sample = Sample(1, attributes, 1000)
    sample.take(Frame(lambda _: Column(column.values[:1000]), 1000), np.zeros((1000, 1), np.bool_))
    classifier = sample.classifier(0, Reading.RANGE, 24)
    assert classifier is not None
    found = attributes.cells(classifier, Frame(lambda _: column, len(column)))
    assert found[:1000].tolist() == sample.buckets(classifier).tolist()
    if len(values) <= 6 and max(values) - min(values) < 2**20:
        assert len(set(found.tolist())) == len(values), "each its own"


def test_times_are_read_as_hours_and_weekdays() -> None:
    # 1970-01-01 was a Thursday.
    instants = np.array([0, 3 * 3_600_000, DAY_MS - 1, 4 * DAY_MS, -1])
    assert buckets(Type.TIMESTAMP, Classifier(0, "x", Reading.HOUR, 25), Column(instants)) == [1, 4, 24, 1, 24]
    assert buckets(Type.TIMESTAMP, Classifier(0, "x", Reading.WEEKDAY, 8), Column(instants)) == [4, 4, 4, 1, 3]


def test_a_text_keeps_its_bucket_when_its_code_goes_to_another() -> None:
    dictionary = TextDictionary()
    classifier = Classifier(0, "x", Reading.VALUE, 200)
    attributes = Attributes(Schema.of(("x", Type.TEXT)), dictionary, 1_000_000)

    def bucket(text: str) -> int:
        column = dictionary.encode([text])
        return int(attributes.cells(classifier, Frame(lambda _: column, 1))[0])

    first = {text: bucket(text) for text in ("north", "south", "west")}
    dictionary.sweep([])
    assert {text: bucket(text) for text in ("west", "east", "north", "south")} == {**first, "east": bucket("east")}
