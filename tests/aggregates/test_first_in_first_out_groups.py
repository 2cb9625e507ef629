"""Groups whose rows leave in the order in which they came, of windows whose rows do not: by key and by session."""

from __future__ import annotations

from random import Random

import pytest

import minidsms
from minidsms.operators.aggregate import Aggregate
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case
from minidsms.testing.grammar import STREAMS
from tests.seeds import seeds

STREAM = f"CREATE STREAM Sa ({', '.join(f'{column} {type_.name}' for column, type_ in STREAMS['Sa'])})"
WINDOWS = (
    "[PARTITION BY k ROWS 2]",
    "[PARTITION BY k, t ROWS 3]",
    "[PARTITION BY k ROWS 3 RANGE 4]",
    "[SESSION 3 PARTITION BY k]",
    "[SESSION 2 PARTITION BY t]",
)
SOURCES = ("Sa {}", "(SELECT k, v, t, x FROM Sa {} WHERE v > 0)", "(SELECT k AS v, t, v AS k, x FROM Sa {})")


def random_case(seed: int) -> Case:
    rng = Random(seed)
    source = rng.choice(SOURCES).format(rng.choice(WINDOWS))
    keys = rng.choice(("k", "k, t", "t", "k % 2", "v"))
    by_arrival = ("FIRST(v)", "LAST(x)") if source.startswith("Sa") else ()
    calls = ", ".join(rng.sample(("MIN(v)", "MAX(v)", "MAX(t)", "MIN(x)", "COUNT(*)", *by_arrival), 3))
    query = f"SELECT {calls} FROM {source} AS A GROUP BY {keys}"
    return Case((STREAM,), query, random_feed(rng, ["Sa"], 60, may_be_extreme=False))


@pytest.mark.parametrize("batch_size", [1, 7, 65_536])
def test_the_answer_is_that_of_the_definition(batch_size: int) -> None:
    for seed in seeds(60):
        case = random_case(seed)
        assert check(case, None, run_definition(case), batch_size=batch_size) == "agreed", case


@pytest.mark.parametrize(
    ("source", "keys", "in_order"),
    [
        ("S [RANGE 5]", "v", True),
        ("S [PARTITION BY k ROWS 2]", "k", True),
        ("S [PARTITION BY k ROWS 2]", "v, k", True),
        ("S [PARTITION BY k ROWS 2]", "v", False),
        ("S [PARTITION BY k, v ROWS 2]", "k", False),
        ("S [SESSION 5 PARTITION BY k]", "k", True),
        ("(SELECT v AS w, k AS u FROM S [SESSION 5 PARTITION BY k] WHERE v > 1)", "u", True),
        ("(SELECT v AS w, k AS u FROM S [SESSION 5 PARTITION BY k] WHERE v > 1)", "w", False),
        ("(SELECT k + 1 AS u FROM S [PARTITION BY k ROWS 2])", "u", False),
    ],
)
def test_it_is_seen_which_groups_are_such(source: str, keys: str, in_order: bool) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        what = "u" if "u FROM" in source else "v"
        query = db.query(f"SELECT MAX({what}) FROM {source} AS A GROUP BY {keys}")
        (aggregate,) = (op for op in query.network.operators if isinstance(op, Aggregate))
        assert aggregate.groups.is_plain == in_order
