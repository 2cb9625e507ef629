"""Plans of aggregates OVER whole partitions. Their answers: tests/operators/test_generated_overs.py."""

from __future__ import annotations

import pytest

import minidsms
from minidsms.cql import bound
from minidsms.plan.logical import nodes


def plan(select: str) -> list[bound.Node]:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, g TEXT, v FLOAT)")
        return list(nodes(db.query(select).logical))


def counted(select: str) -> tuple[int, int]:
    """(calls of OVER, aggregations) in the plan."""
    found = plan(select)
    return sum(isinstance(n, bound.Over) for n in found), sum(isinstance(n, bound.Aggregate) for n in found)


@pytest.mark.parametrize(
    ("calls", "overs", "aggregates"),
    [
        ("COUNT(*) OVER ()", 0, 1),
        ("AVG(v) OVER (PARTITION BY k)", 1, 1),
        ("AVG(v) OVER (PARTITION BY k), MAX(g) OVER (PARTITION BY k)", 2, 1),
        ("AVG(v) OVER (PARTITION BY k), COUNT(*) OVER ()", 1, 2),
        ("MIN(v) OVER (ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)", 0, 1),
        ("SUM(v) OVER (PARTITION BY k ORDER BY v)", 1, 0),
        ("FIRST_VALUE(v) OVER (PARTITION BY k)", 1, 0),
        ("COUNT(*) OVER (PARTITION BY NULL)", 1, 1),
        ("MEDIAN(v) OVER (), STDDEV(v) OVER ()", 0, 1),
        ("MODE(v) OVER (PARTITION BY k)", 1, 1),
    ],
)
def test_calls_that_have_the_partitions_in_common_are_one_aggregation(calls: str, overs: int, aggregates: int) -> None:
    """Rows with NULL in what they are partitioned by keep their OVER."""
    assert counted(f"SELECT k, {calls} FROM S [ROWS 9]") == (overs, aggregates)


def test_what_reads_all_of_a_stream_keeps_its_operator() -> None:
    assert counted("SELECT k, AVG(v) OVER (PARTITION BY k), COUNT(*) OVER () FROM S") == (2, 0)
    assert counted("SELECT n, SUM(n) OVER () FROM (SELECT COUNT(*) AS n FROM S GROUP BY k)") == (0, 2)


def test_frames_of_streams_keep_their_operator_whatever_the_aggregate() -> None:
    call = "STDDEV(v) OVER (PARTITION BY k ORDER BY ts"
    assert counted(f"SELECT k, {call}) FROM S") == (1, 0)
    assert counted(f"SELECT k, {call} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM S") == (1, 0)
    assert counted("SELECT k, STDDEV(v) OVER () FROM S") == (0, 1)


def test_what_chooses_partitions_stands_below_the_aggregation() -> None:
    call = "SELECT k, v, AVG(v) OVER (PARTITION BY k) AS m FROM S [RANGE 5]"
    found = plan(f"SELECT * FROM ({call}) WHERE k = 1 AND v > m")
    (join,) = (n for n in found if isinstance(n, bound.Join) or "Join" in type(n).__name__)
    assert "v > " in join.text() or any(isinstance(n, bound.Filter) and join in n.inputs for n in found)
    (stream,) = (n for n in found if isinstance(n, bound.BaseStream))
    (reader,) = (n for n in found if stream in n.inputs)
    assert reader.text() == "Filter k = 1"
