"""Generated cases are what they promise: the same for a seed, accepted as they stand, and varied."""

from __future__ import annotations

from hypothesis import given, settings

from minidsms.cql.parser import parse_query
from minidsms.testing.compare import run_definition
from minidsms.testing.generators import Advance, Case, Push, cases, random_case
from minidsms.testing.grammar import RELATIONS
from minidsms.testing.shrink import shrink

SEEDS = range(300)


def test_a_seed_gives_the_same_case_every_time() -> None:
    assert [random_case(seed) for seed in SEEDS] == [random_case(seed) for seed in SEEDS]


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_hypothesis_draws_cases_that_parse(case: Case) -> None:
    parse_query(case.query)


def test_streams_are_fed_in_order_of_time_and_never_at_or_before_a_heartbeat() -> None:
    for seed in SEEDS:
        shown: dict[str, int] = {}
        closed = -1
        for step in random_case(seed).feed:
            if isinstance(step, Advance):
                closed = max(closed, step.ts)
                continue
            for ts, sign, _ in step.rows:
                assert ts > closed and ts >= shown.get(step.name, 0)
                assert sign == +1 or step.name in RELATIONS
                shown[step.name] = ts


def test_a_relations_change_comes_before_the_streams_close_its_instant() -> None:
    for seed in SEEDS:
        case = random_case(seed)
        streams = {step.name for step in case.feed if isinstance(step, Push) and step.name not in RELATIONS}
        shown = dict.fromkeys(streams, -1)
        for step in case.feed:
            if isinstance(step, Push):
                last = step.rows[-1][0]
                if step.name in RELATIONS and streams:
                    assert step.rows[0][0] >= min(shown.values())
                elif step.name in streams:
                    shown[step.name] = last


def test_every_deletion_follows_an_equal_insertion() -> None:
    for seed in SEEDS:
        for changes in random_case(seed).history().relations.values():
            held: list[object] = []
            for _, sign, row in changes:
                held.append(row) if sign > 0 else held.remove(row)


def test_cases_use_the_whole_language() -> None:
    text = "\n".join(str(random_case(seed)) for seed in range(600))
    words = [
        "[NOW]",
        "SLIDE",
        "PARTITION BY",
        "UNBOUNDED",
        "LEFT JOIN",
        "FULL OUTER JOIN",
        "GROUP BY",
        "HAVING",
        "DISTINCT",
    ]
    words += [
        "UNION ALL",
        "EXCEPT",
        "INTERSECT",
        "NOT IN (SELECT",
        "NOT EXISTS",
        " ALL (SELECT",
        " ANY (SELECT",
        "CASE",
    ]
    words += ["ISTREAM", "DSTREAM", "RSTREAM", "CREATE VIEW", "CREATE RELATION", "FIRST(", "STDDEV", "None", "-1, ("]
    assert [word for word in words if word not in text] == []


def test_most_cases_have_an_answer() -> None:
    assert sum(bool(run_definition(random_case(seed)).changes) for seed in range(200)) > 120


def test_shrinking_keeps_only_what_the_difference_needs() -> None:
    case = random_case(3)

    def has_a_late_element(candidate: Case) -> bool:
        return any(ts > 12 for step in candidate.feed if isinstance(step, Push) for ts, _, _ in step.rows)

    small = shrink(case, has_a_late_element)
    assert sum(len(step.rows) for step in small.feed if isinstance(step, Push)) == 1
