"""Every function of the table in every backend: there is none that one of them lacks. Spark's are in
`tests/spark/test_functions.py`.
"""

from __future__ import annotations

from random import Random

import pytest

from minidsms import aggregates
from minidsms.cql import functions
from minidsms.functions import LIBRARY
from minidsms.testing.compare import check
from minidsms.testing.generators import Case, declaration, random_feed
from tests.expressions.samples import AGGREGATES, SAMPLES, stream_of

EXAMPLES = [name for name, function in functions.FUNCTIONS.items() if function.example[0]]


def case_of(*shown: str) -> Case:
    stream = stream_of(shown[0])
    query = f"SELECT {', '.join(f'{call} AS r{i}' for i, call in enumerate(shown))} FROM {stream} [RANGE 3]"
    return Case((declaration(stream),), query, random_feed(Random(3), [stream], 12, may_be_extreme=False))


def test_there_is_a_sample_of_every_function_that_is_no_row_of_the_library() -> None:
    assert set(SAMPLES) == set(functions.FUNCTIONS) - set(LIBRARY)
    assert set(AGGREGATES) == {a.name for a in aggregates.AGGREGATES.values() if a.state is None and not a.like}


@pytest.mark.parametrize("name", SAMPLES)
def test_engine_and_definition_have_the_function(name: str) -> None:
    assert check(case_of(SAMPLES[name])) == "agreed"


def test_engine_and_definition_agree_on_the_examples() -> None:
    assert check(case_of(*(functions.FUNCTIONS[name].example[0] for name in EXAMPLES))) == "agreed"


@pytest.mark.parametrize("name", AGGREGATES)
def test_engine_and_definition_have_the_aggregate(name: str) -> None:
    assert check(case_of(AGGREGATES[name])) == "agreed"
