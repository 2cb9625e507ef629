"""Generated cases are what they promise: the same for a seed, accepted as they stand, and varied."""

from __future__ import annotations

from hypothesis import given, settings

from minidsms.cql.parser import parse_query
from minidsms.testing.compare import run_definition
from minidsms.testing.feeds import Advance, Progress, Push
from minidsms.testing.generators import Case, cases, random_case
from minidsms.testing.grammar import RELATIONS
from tests.long.shrink import shrink

SEEDS = range(300)


def test_a_seed_gives_the_same_case_every_time() -> None:
    assert [random_case(seed) for seed in SEEDS] == [random_case(seed) for seed in SEEDS]


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_hypothesis_draws_cases_that_parse(case: Case) -> None:
    parse_query(case.query)


def test_streams_are_fed_within_their_slack_and_late_rows_come_only_where_they_are_dropped() -> None:
    dropped = 0
    for seed in SEEDS:
        case = random_case(seed)
        inputs = {name: Progress(slack) for name, slack in case.slack().items()}
        for step in case.feed:
            if isinstance(step, Advance):
                for name in inputs if step.stream is None else (step.stream,):
                    inputs[name].advance(step.ts)
            elif step.name not in RELATIONS:
                late = sum(not inputs[step.name].admits(ts) for ts, _, _ in step.rows)
                assert not late or inputs[step.name].slack.drops
                dropped += late
    assert dropped > 0


def test_a_query_registered_amid_the_feed_sees_what_comes_and_the_rows_present() -> None:
    pushes = (Push("Rel", ((1, 1, (1, 2, "a")), (1, 1, (5, 5, "b")))), Push("Sb", ((4, 1, (1, 1, "a")),)))
    later = (Push("Rel", ((4, -1, (5, 5, "b")),)), Push("Sb", ((6, 1, (2, 2, "b")),)), Advance(9))
    case = Case(("CREATE STREAM Sb (k INTEGER)", "CREATE RELATION Rel (k INTEGER)"), "", pushes + later, 2)
    history = case.history(["Sb"])
    assert history.streams == {"sb": [(6, (2, 2, "b"))]}
    assert history.relations == {"rel": [(4, 1, (1, 2, "a")), (4, 1, (5, 5, "b")), (4, -1, (5, 5, "b"))]}


def test_a_relations_change_comes_before_the_streams_close_its_instant() -> None:
    for seed in SEEDS:
        case = random_case(seed)
        streams = {step.name for step in case.feed if isinstance(step, Push) and step.name not in RELATIONS}
        shown = dict.fromkeys(streams, -1)
        for step in case.feed:
            if isinstance(step, Push):
                last = max(ts for ts, _, _ in step.rows)
                if step.name in RELATIONS and streams:
                    assert step.rows[0][0] >= min(shown.values())
                elif step.name in streams:
                    shown[step.name] = max(last, shown[step.name])


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
    words += ["SLACK", "LATE DROP", "INTERVAL '", "MILLISECONDS", "AS TIMESTAMP", "rstream = 'ticks'", "here the query"]
    words += ["uf_twice(", "uf_tag(", "uf_half(", "uf_odd(", "ua_span(", "ua_products(", "stream='S"]
    words += [
        "LIST_CONCAT(",
        "TRANSFORM(",
        "STRUCT(a := ",
        "['a']",
        "DATE '",
        "TIME '",
        "TRY_CAST(",
        "CAST(NULL AS",
        "UNNEST(",
    ]
    words += ["QUALIFY", "FILTER (WHERE", "GROUPING(", "CUBE (", "USING (k)", ") JOIN (", "VALUES (", "EXCEPT ALL"]
    assert [word for word in words if word not in text] == []


def test_most_cases_have_an_answer() -> None:
    assert sum(bool(run_definition(random_case(seed)).changes) for seed in range(100)) > 60


def test_shrinking_keeps_only_what_the_difference_needs() -> None:
    case = random_case(3)

    def has_a_late_element(candidate: Case) -> bool:
        return any(ts > 12 for step in candidate.feed if isinstance(step, Push) for ts, _, _ in step.rows)

    small = shrink(case, has_a_late_element)
    assert sum(len(step.rows) for step in small.feed if isinstance(step, Push)) == 1
