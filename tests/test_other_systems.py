"""What people write in other systems, said in CQL: cases in the manner of ksqlDB's and RisingWave's documentation.

Each is a query over one stream and what its relation holds when all rows have come.
"""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import minidsms

ROWS = [
    (1, "alice", 10, 1.5, '{"city": "Rome", "tags": ["x", "y"]}', True),
    (2, "bob", 20, 2.5, '{"city": "Oslo", "tags": []}', False),
    (3, "alice", 30, 4.0, '{"city": "Rome", "tags": ["z"]}', True),
    (4, "carol", None, 0.5, '{"city": null}', None),
    (5, "bob", 20, 8.0, '{"city": "Bern", "tags": ["x"]}', True),
]
KSQLDB: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "COLLECT_LIST": ("SELECT COLLECT_LIST(v) FROM S WHERE name = 'bob'", [([20, 20],)]),
    "COLLECT_SET": ("SELECT ARRAY_AGG(DISTINCT v) FROM S", [([10, 20, 30, None],)]),
    "EARLIEST_BY_OFFSET": ("SELECT FIRST(v) IGNORE NULLS FROM S", [(10,)]),
    "LATEST_BY_OFFSET": ("SELECT LAST(v) IGNORE NULLS FROM S WHERE id < 5", [(30,)]),
    "LATEST_BY_OFFSET, ignoreNulls false": ("SELECT LAST(v) FROM S WHERE id < 5", [(None,)]),
    "COUNT_DISTINCT": ("SELECT COUNT(DISTINCT name) FROM S", [(3,)]),
    "STDDEV_SAMP": ("SELECT STDDEV_SAMP(id) FROM S", [(1.5811388300841898,)]),
    "CORRELATION": ("SELECT CORR(id, id * 2) FROM S", [(1.0,)]),
    "HISTOGRAM": ("SELECT name, COUNT(*) FROM S GROUP BY name", [("alice", 2), ("bob", 2), ("carol", 1)]),
    "EXTRACTJSONFIELD": ("SELECT EXTRACTJSONFIELD(j, '$.city') FROM S WHERE id = 1", [("Rome",)]),
    "EXTRACTJSONFIELD of an element": ("SELECT EXTRACTJSONFIELD(j, '$.tags[1]') FROM S WHERE id = 1", [("y",)]),
    "IS_JSON_STRING": ("SELECT IS_JSON_STRING(j) AND NOT IS_JSON_STRING(name) FROM S WHERE id = 1", [(True,)]),
    "JSON_ARRAY_LENGTH": ("SELECT JSON_ARRAY_LENGTH(j, 'tags') FROM S WHERE id < 3", [(2,), (0,)]),
    "SPLIT": ("SELECT SPLIT('a,b,c', ',')[2] FROM S WHERE id = 1", [("b",)]),
    "ARRAY[..]": ("SELECT ARRAY[id, v] FROM S WHERE id = 2", [([2, 20],)]),
    "array index from the end": ("SELECT ARRAY[1, 2, 3][-1] FROM S WHERE id = 1", [(3,)]),
    "ARRAY_LENGTH": ("SELECT ARRAY_LENGTH(ARRAY[1, NULL]) FROM S WHERE id = 1", [(2,)]),
    "ARRAY_CONTAINS": ("SELECT ARRAY_CONTAINS(ARRAY[1, 2, 3], 3) FROM S WHERE id = 1", [(True,)]),
    "ARRAY_DISTINCT": ("SELECT ARRAY_DISTINCT(ARRAY[1, 1, 2, 3, 1]) FROM S WHERE id = 1", [([1, 2, 3],)]),
    "ARRAY_MAX": ("SELECT ARRAY_MAX(ARRAY[-1, NULL, 7]) FROM S WHERE id = 1", [(7,)]),
    "ARRAY_MIN": ("SELECT ARRAY_MIN(ARRAY['b', 'a']) FROM S WHERE id = 1", [("a",)]),
    "ARRAY_SORT": ("SELECT ARRAY_SORT(ARRAY[3, NULL, 1]) FROM S WHERE id = 1", [([1, 3, None],)]),
    "ARRAY_JOIN": ("SELECT ARRAY_JOIN(ARRAY['a', 'b'], '-') FROM S WHERE id = 1", [("a-b",)]),
    "ARRAY_CONCAT": ("SELECT ARRAY_CONCAT(ARRAY[1], ARRAY[2]) FROM S WHERE id = 1", [([1, 2],)]),
    "SLICE": ("SELECT LIST_SLICE(ARRAY[1, 2, 3], 1, 2) FROM S WHERE id = 1", [([1, 2],)]),
    "GENERATE_SERIES": ("SELECT GENERATE_SERIES(1, 5, 2) FROM S WHERE id = 1", [([1, 3, 5],)]),
    "INITCAP": ("SELECT INITCAP('the quick') FROM S WHERE id = 1", [("The Quick",)]),
    "LPAD": ("SELECT LPAD('Foo', 7, 'Bar') FROM S WHERE id = 1", [("BarBFoo",)]),
    "REGEXP_EXTRACT": ("SELECT REGEXP_EXTRACT('12:34', '([0-9]+):([0-9]+)', 2) FROM S WHERE id = 1", [("34",)]),
    "IFNULL": ("SELECT COALESCE(v, 0) FROM S WHERE id = 4", [(0,)]),
    "EXPLODE": ("SELECT id, EXPLODE(SPLIT('a,b', ',')) FROM S WHERE id = 1", [(1, "a"), (1, "b")]),
    "TRANSFORM": ("SELECT TRANSFORM(ARRAY[1, 2], x => x * 2) FROM S WHERE id = 1", [([2, 4],)]),
    "STRUCT": ("SELECT STRUCT(a := id, b := name)->a FROM S WHERE id = 1", [(1,)]),
    "MAP": ("SELECT MAP('a' := 1)['a'] FROM S WHERE id = 1", [(1,)]),
    "TOPK": ("SELECT TOPK(v, 2) FROM S", [([30, 20],)]),
    "TOPKDISTINCT": ("SELECT TOPK(DISTINCT v, 2) FROM S", [([30, 20],)]),
    "EARLIEST_BY_OFFSET of n": ("SELECT FIRST(v, 2) IGNORE NULLS FROM S", [([10, 20],)]),
    "LATEST_BY_OFFSET of n": ("SELECT LAST(v, 2) FROM S", [([None, 20],)]),
}
RISINGWAVE: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "string_agg": ("SELECT STRING_AGG(name, ', ' ORDER BY id DESC) FROM S WHERE id < 4", [("alice, bob, alice",)]),
    "array_agg": ("SELECT ARRAY_AGG(name ORDER BY f DESC) FROM S WHERE v = 20", [(["bob", "bob"],)]),
    "array_agg of a group": (
        "SELECT name, ARRAY_AGG(id ORDER BY id) FROM S GROUP BY name",
        [("alice", [1, 3]), ("bob", [2, 5]), ("carol", [4])],
    ),
    "bool_and": ("SELECT BOOL_AND(ok), BOOL_OR(ok) FROM S", [(False, True)]),
    "mode": ("SELECT MODE() WITHIN GROUP (ORDER BY v) FROM S", [(20,)]),
    "percentile_cont": ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY f) FROM S", [(2.5,)]),
    "percentile_disc": ("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY v) FROM S", [(20,)]),
    "stddev_pop": ("SELECT STDDEV_POP(id) FROM S", [(1.4142135623730951,)]),
    "var_pop": ("SELECT VAR_POP(id) FROM S", [(2.0,)]),
    "filter": ("SELECT SUM(v) FILTER (WHERE ok) FROM S", [(60,)]),
    "first_value": ("SELECT FIRST(name) FROM S", [("alice",)]),
    "max_by": ("SELECT MAX_BY(name, f) FROM S", [("bob",)]),
    "min_by": ("SELECT MIN_BY(name, f) FROM S", [("carol",)]),
    "jsonb ->>": ("SELECT j ->> 'city' FROM S WHERE id = 2", [("Oslo",)]),
    "jsonb -> ->>": ("SELECT j -> 'tags' ->> 0 FROM S WHERE id = 3", [("z",)]),
    "jsonb null": ("SELECT j ->> 'city' IS NULL FROM S WHERE id = 4", [(True,)]),
    "jsonb_typeof": ("SELECT JSON_TYPE(j, 'tags') FROM S WHERE id = 1", [("ARRAY",)]),
    "jsonb_array_length": ("SELECT JSON_ARRAY_LENGTH(j -> 'tags') FROM S WHERE id = 1", [(2,)]),
    "array_append": ("SELECT ARRAY_APPEND(ARRAY[1, 2], 3) FROM S WHERE id = 1", [([1, 2, 3],)]),
    "array_cat": ("SELECT ARRAY_CAT(ARRAY[1], ARRAY[2, 3]) FROM S WHERE id = 1", [([1, 2, 3],)]),
    "array_position": ("SELECT ARRAY_POSITION(ARRAY['a', 'b'], 'b') FROM S WHERE id = 1", [(2,)]),
    "array_to_string": ("SELECT ARRAY_TO_STRING(ARRAY['a', NULL, 'b'], ',') FROM S WHERE id = 1", [("a,b",)]),
    "string_to_array": ("SELECT STRING_TO_ARRAY('a b', ' ') FROM S WHERE id = 1", [(["a", "b"],)]),
    "cardinality": ("SELECT CARDINALITY(ARRAY[1, 2]) FROM S WHERE id = 1", [(2,)]),
    "split_part": ("SELECT SPLIT_PART('a-b-c', '-', -1) FROM S WHERE id = 1", [("c",)]),
    "cast": ("SELECT (v::FLOAT / 4)::INTEGER FROM S WHERE id = 3", [(7,)]),
    "unnest": ("SELECT u FROM S, UNNEST(ARRAY[1, 2]) AS u WHERE id = 1", [(1,), (2,)]),
    "unnest of a table function": (
        "SELECT id, n FROM S LEFT JOIN UNNEST(GENERATE_SERIES(3, id)) AS t(n) ON TRUE WHERE id > 1 AND id < 5",
        [(2, None), (3, 3), (4, 3), (4, 4)],
    ),
    "grouping sets": (
        "SELECT name, COUNT(*) FROM S GROUP BY GROUPING SETS ((name), ())",
        [("alice", 2), ("bob", 2), ("carol", 1), (None, 5)],
    ),
    "rollup": (
        "SELECT name, ok, COUNT(*), GROUPING(ok) FROM S WHERE id < 4 GROUP BY ROLLUP (name, ok)",
        [
            ("alice", True, 2, 0),
            ("bob", False, 1, 0),
            ("alice", None, 2, 1),
            ("bob", None, 1, 1),
            (None, None, 3, 1),
        ],
    ),
    "cube": (
        "SELECT UPPER(name) AS who, ok, SUM(v) FROM S WHERE id < 3 GROUP BY CUBE (who, ok)",
        [
            ("ALICE", True, 10),
            ("BOB", False, 20),
            ("ALICE", None, 10),
            ("BOB", None, 20),
            (None, True, 10),
            (None, False, 20),
            (None, None, 30),
        ],
    ),
    "approx_count_distinct": ("SELECT APPROX_COUNT_DISTINCT(name) FROM S", [(3,)]),
    "date": ("SELECT DATE '2024-05-01' + 1 FROM S WHERE id = 1", [(datetime.date(2024, 5, 2),)]),
}
UNSAID = {"EXPLODE"}
"""What CQL cannot say, and refuses: a test fails when one of these begins to be understood."""


@pytest.mark.parametrize("name", [*KSQLDB, *RISINGWAVE])
def test_what_other_systems_say_is_said_in_cql_or_refused(name: str) -> None:
    query, expected = (KSQLDB | RISINGWAVE)[name]
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (id INTEGER, name TEXT, v INTEGER, f FLOAT, j TEXT, ok BOOLEAN)")
        written = query.replace("FROM S", "FROM S [RANGE 100]", 1)
        if name in UNSAID:
            with pytest.raises(minidsms.CqlError):
                db.query(written)
            return
        answer = db.query(written)
        db.push("S", ROWS, ts=[row[0] for row in ROWS])
        db.advance(5)
        assert sorted(answer.snapshot(), key=repr) == sorted(expected, key=repr)
