"""What people write in other systems, said in CQL: cases in the manner of ksqlDB's and RisingWave's documentation.

Each is a query over one stream and what its relation holds when all rows have come.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
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
    "LISTAGG": ("SELECT LISTAGG(name, '-') WITHIN GROUP (ORDER BY id DESC) FROM S", [("bob-carol-alice-bob-alice",)]),
    "LISTAGG with FILTER": (
        "SELECT LISTAGG(name, '-') WITHIN GROUP (ORDER BY v, id) FILTER (WHERE id > 2) FROM S",
        [("bob-alice-carol",)],
    ),
    "APPROX_PERCENTILE of Trino": ("SELECT APPROX_PERCENTILE(id, 0.5) FROM S", [(3,)]),
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
    "IF": ("SELECT id FROM S WHERE IF(v IS NULL, id = 4, v > 20)", [(3,), (4,)]),
    "IFNULL": ("SELECT COALESCE(v, 0) FROM S WHERE id = 4", [(0,)]),
    "EXPLODE": ("SELECT id, EXPLODE(SPLIT('a,b', ',')) FROM S WHERE id = 1", [(1, "a"), (1, "b")]),
    "TRANSFORM": ("SELECT TRANSFORM(ARRAY[1, 2], x => x * 2) FROM S WHERE id = 1", [([2, 4],)]),
    "STRUCT": ("SELECT STRUCT(a := id, b := name)->a FROM S WHERE id = 1", [(1,)]),
    "MAP": ("SELECT MAP('a' := 1)['a'] FROM S WHERE id = 1", [(1,)]),
    "TRANSFORM of a MAP": (
        "SELECT TRANSFORM(MAP('a' := 1), (k, v) => UCASE(k), (k, v) => v + 1) FROM S WHERE id = 1",
        [({"A": 2},)],
    ),
    "FILTER": ("SELECT FILTER(ARRAY[5, 4, 7], x => x < 6) FROM S WHERE id = 1", [([5, 4],)]),
    "FILTER of a MAP": ("SELECT FILTER(MAP('a' := 1, 'b' := 5), (k, v) => v > 2) FROM S WHERE id = 1", [({"b": 5},)]),
    "REDUCE": ("SELECT REDUCE(ARRAY[2, 3, 4], 1, (s, x) => s * x) FROM S WHERE id = 1", [(24,)]),
    "REDUCE of a MAP": ("SELECT REDUCE(MAP('a' := 1, 'b' := 5), 2, (s, k, v) => s + v) FROM S WHERE id = 1", [(8,)]),
    "STRUCT in a group": (
        "SELECT STRUCT(n := name)->n, COUNT(*) FROM S GROUP BY STRUCT(n := name)",
        [("alice", 2), ("bob", 2), ("carol", 1)],
    ),
    "MAP_KEYS": ("SELECT MAP_KEYS(MAP('x' := 1, 'y' := 2)) FROM S WHERE id = 1", [(["x", "y"],)]),
    "MAP_VALUES": ("SELECT MAP_VALUES(MAP('x' := 1, 'y' := 2)) FROM S WHERE id = 1", [([1, 2],)]),
    "MAP_UNION": ("SELECT MAP_UNION(MAP('x' := 1), MAP('x' := 2)) FROM S WHERE id = 1", [({"x": 2},)]),
    "AS_MAP": ("SELECT AS_MAP(ARRAY['x'], ARRAY[1]) FROM S WHERE id = 1", [({"x": 1},)]),
    "ARRAY_EXCEPT": ("SELECT ARRAY_EXCEPT(ARRAY[1, 2, 3, 1], ARRAY[2]) FROM S WHERE id = 1", [([1, 3],)]),
    "ARRAY_INTERSECT": ("SELECT ARRAY_INTERSECT(ARRAY[1, 2, 3], ARRAY[3, 5]) FROM S WHERE id = 1", [([3],)]),
    "ARRAY_UNION": ("SELECT ARRAY_UNION(ARRAY[1, 2], ARRAY[2, 4]) FROM S WHERE id = 1", [([1, 2, 4],)]),
    "ARRAY_REMOVE": ("SELECT ARRAY_REMOVE(ARRAY[1, 2, 1], 1) FROM S WHERE id = 1", [([2],)]),
    "ARRAY_JOIN of numbers": ("SELECT ARRAY_JOIN(ARRAY[1, 2], ';') FROM S WHERE id = 1", [("1;2",)]),
    "HISTOGRAM as a MAP": ("SELECT HISTOGRAM(name) FROM S", [({"alice": 2, "bob": 2, "carol": 1},)]),
    "COLLECT_SET of one call": ("SELECT COLLECT_SET(v) FROM S WHERE id > 1", [([20, 30, None],)]),
    "COUNT_DISTINCT of one call": ("SELECT COUNT_DISTINCT(name) FROM S", [(3,)]),
    "TOPKDISTINCT of one call": ("SELECT TOPKDISTINCT(v, 2) FROM S", [([30, 20],)]),
    "FORMAT_DATE": ("SELECT FORMAT_DATE(DATE '2024-05-01', 'dd.MM.yyyy') FROM S WHERE id = 1", [("01.05.2024",)]),
    "PARSE_DATE": ("SELECT PARSE_DATE('01.05.2024', 'dd.MM.yyyy') FROM S WHERE id = 1", [(datetime.date(2024, 5, 1),)]),
    "DECIMAL": ("SELECT CAST(f AS DECIMAL(5, 2)) + 1 FROM S WHERE id = 1", [(Decimal("2.50"),)]),
    "TOPK": ("SELECT TOPK(v, 2) FROM S", [([30, 20],)]),
    "TOPKDISTINCT": ("SELECT TOPK(DISTINCT v, 2) FROM S", [([30, 20],)]),
    "EARLIEST_BY_OFFSET of n": ("SELECT FIRST(v, 2) IGNORE NULLS FROM S", [([10, 20],)]),
    "ENTRIES": (
        "SELECT TRANSFORM(MAP_ENTRIES(MAP('a' := 1)), e -> e.key || CAST(e.value AS TEXT)) FROM S WHERE id = 1",
        [(["a1"],)],
    ),
    "FROM_DAYS": ("SELECT DATE '1970-01-01' + 50 FROM S WHERE id = 1", [(datetime.date(1970, 2, 20),)]),
    "DATEADD": ("SELECT DATEADD(DAYS, 1, DATE '2024-02-29') FROM S WHERE id = 1", [(datetime.date(2024, 3, 1),)]),
    "DATESUB": ("SELECT DATEADD(DAYS, -1, DATE '2024-03-01') FROM S WHERE id = 1", [(datetime.date(2024, 2, 29),)]),
    "TIMEADD": ("SELECT TIME '23:30' + 2 * INTERVAL '1' HOUR FROM S WHERE id = 1", [(datetime.time(1, 30),)]),
    "JSON_ITEMS": ("SELECT JSON_ITEMS('[1, \"a\"]') FROM S WHERE id = 1", [(["1", '"a"'],)]),
    "SPLIT_TO_MAP": ("SELECT SPLIT_TO_MAP('a:=1/b:=2', '/', ':=') FROM S WHERE id = 1", [({"a": "1", "b": "2"},)]),
    "ELT and FIELD": ("SELECT ELT(2, 'a', 'b'), FIELD('b', 'a', 'b') FROM S WHERE id = 1", [("b", 2)]),
    "MASK": ("SELECT MASK('My Test $123'), MASK_KEEP_RIGHT('ab12', 2) FROM S WHERE id = 1", [("Xx-Xxxx--nnn", "xx12")]),
    "INSTR of the last": ("SELECT INSTR('foobarfoo', 'foo', -1) FROM S WHERE id = 1", [(7,)]),
    "REGEXP_SPLIT_TO_ARRAY": ("SELECT REGEXP_SPLIT_TO_ARRAY('a1b2', '[0-9]') FROM S WHERE id = 1", [(["a", "b", ""],)]),
    "FORMAT_TIMESTAMP in a zone": (
        "SELECT FORMAT_TIMESTAMP(TO_TIMESTAMP(0), 'HH:mm', 'Europe/Berlin') FROM S WHERE id = 1",
        [("01:00",)],
    ),
    "UNIX_TIMESTAMP": ("SELECT UNIX_TIMESTAMP(TO_TIMESTAMP(1.5)) FROM S WHERE id = 1", [(1500,)]),
    "URL_EXTRACT_PARAMETER": ("SELECT URL_EXTRACT_PARAMETER('https://a.b/?k=v', 'k') FROM S WHERE id = 1", [("v",)]),
    "CBRT and SIGN": ("SELECT CBRT(27), SIGN(-2), TRUNC(1.55, 1) FROM S WHERE id = 1", [(3.0, -1, 1.5)]),
    "buckets of days": (
        "SELECT CAST(TIME_BUCKET(INTERVAL '7 days', DATE '2013-06-01', DATE '2013-05-01') AS TEXT) FROM S WHERE id = 1",
        [("2013-05-29 00:00:00",)],
    ),
    "GROUPING_ID": (
        "SELECT name, GROUPING_ID(name, v), COUNT(*) FROM S GROUP BY ROLLUP (name, v) HAVING GROUPING_ID(v) = 1",
        [("alice", 1, 2), ("bob", 1, 2), ("carol", 1, 1), (None, 3, 5)],
    ),
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
    "struct field": ("SELECT (STRUCT(a := id)).a FROM S WHERE id = 1", [(1,)]),
    "array of structs": ("SELECT ARRAY[STRUCT(a := id)][1].a FROM S WHERE id = 1", [(1,)]),
    "nested array": ("SELECT ARRAY[ARRAY[1, 2], ARRAY[3]][1][2] FROM S WHERE id = 1", [(2,)]),
    "row": ("SELECT ROW(1, 'x') FROM S WHERE id = 1", [({"f1": 1, "f2": "x"},)]),
    "array || array": ("SELECT ARRAY[1] || ARRAY[2] FROM S WHERE id = 1", [([1, 2],)]),
    "array_prepend": ("SELECT ARRAY_PREPEND(1, ARRAY[2]) FROM S WHERE id = 1", [([1, 2],)]),
    "array_positions": ("SELECT ARRAY_POSITIONS(ARRAY[1, 2, 1], 1) FROM S WHERE id = 1", [([1, 3],)]),
    "any of an array": ("SELECT id FROM S WHERE id = ANY(ARRAY[1, 2])", [(1,), (2,)]),
    "array slice": ("SELECT (ARRAY[1, 2, 3])[1:2] FROM S WHERE id = 1", [([1, 2],)]),
    "map_from_entries": (
        "SELECT MAP_FROM_ENTRIES(ARRAY[STRUCT(key := 'a', value := 1)]) FROM S WHERE id = 1",
        [({"a": 1},)],
    ),
    "map_length": (
        "SELECT MAP_LENGTH(MAP('a' := 1)), MAP_CONTAINS(MAP('a' := 1), 'b') FROM S WHERE id = 1",
        [(1, False)],
    ),
    "array_agg of structs": (
        "SELECT ARRAY_AGG(STRUCT(id) ORDER BY id DESC) FROM S WHERE id < 3",
        [([{"id": 2}, {"id": 1}],)],
    ),
    "approx_percentile": ("SELECT APPROX_PERCENTILE(0.5, 0.01) WITHIN GROUP (ORDER BY v) FROM S", [(20,)]),
    "sum of numeric": ("SELECT SUM(f::DECIMAL(9, 1)) FROM S", [(Decimal("16.5"),)]),
    "extract of a date": ("SELECT EXTRACT(MONTH FROM DATE '2024-05-01') FROM S WHERE id = 1", [(5,)]),
    "date - date": ("SELECT DATE '2024-05-01' - DATE '2024-04-01' FROM S WHERE id = 1", [(30,)]),
    "time + interval": ("SELECT TIME '23:30' + INTERVAL '1' HOUR FROM S WHERE id = 1", [(datetime.time(0, 30),)]),
    "approx_count_distinct": ("SELECT APPROX_COUNT_DISTINCT(name) FROM S", [(3,)]),
    "is json": ("SELECT id FROM S WHERE j IS JSON OBJECT AND name IS NOT JSON AND id < 3", [(1,), (2,)]),
    "jsonb": ("SELECT j::jsonb -> 'tags', '[1]'::json IS JSON ARRAY FROM S WHERE id = 3", [('["z"]', True)]),
    "jsonb_extract_path_text": ("SELECT JSONB_EXTRACT_PATH_TEXT(j, 'city') FROM S WHERE id = 1", [("Rome",)]),
    "unnest in the select list": (
        "SELECT id, UNNEST(ARRAY[v, id]) AS u FROM S WHERE id < 3 AND v > 10",
        [(2, 20), (2, 2)],
    ),
    "bit_and": ("SELECT BIT_AND(v), BIT_OR(v), BIT_XOR(v) FROM S", [(0, 30, 20)]),
    "regexp_replace": ("SELECT REGEXP_REPLACE(name, 'a|b', '-', 'g') FROM S WHERE id < 3", [("-lice",), ("-o-",)]),
    "overlay": ("SELECT OVERLAY(name, 'XX', 2) FROM S WHERE id = 1", [("aXXce",)]),
    "position": ("SELECT POSITION('b' IN name), CHAR_LENGTH(name) FROM S WHERE id = 2", [(1, 3)]),
    "substring from": ("SELECT SUBSTRING(name FROM 2 FOR 2), LEFT(name, 1) FROM S WHERE id = 1", [("li", "a")]),
    "trim both": ("SELECT TRIM(BOTH 'b' FROM name), BTRIM(' x ') FROM S WHERE id = 2", [("o", "x")]),
    "concat_ws with NULL": (
        "SELECT CONCAT('a', id), CONCAT_WS('-', 'a', NULL, 'b') FROM S WHERE id = 1",
        [("a1", "a-b")],
    ),
    "greatest": ("SELECT GREATEST(v, 15), LEAST(v, NULL) FROM S WHERE id = 1", [(15, 10)]),
    "is distinct from": ("SELECT id FROM S WHERE v IS NOT DISTINCT FROM NULL", [(4,)]),
    "between and in": ("SELECT id FROM S WHERE v BETWEEN 15 AND 25 AND name IN ('bob', 'carol')", [(2,), (5,)]),
    "case": ("SELECT CASE name WHEN 'bob' THEN 1 ELSE 0 END FROM S WHERE id < 3", [(0,), (1,)]),
    "row_number": (
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY name ORDER BY id DESC) AS n FROM S WHERE id <> 3",
        [(1, 1), (2, 2), (4, 1), (5, 1)],
    ),
    "lag": ("SELECT id, LAG(v) OVER (ORDER BY id) FROM S WHERE id < 3", [(1, None), (2, 10)]),
    "sum over numeric": (
        "SELECT id, SUM(f::DECIMAL(5, 1)) OVER (ORDER BY id) FROM S WHERE id < 3",
        [(1, Decimal("1.5")), (2, Decimal("4.0"))],
    ),
    "sha224": ("SELECT LEFT(SHA224(name), 4), LEFT(SHA384(name), 4) FROM S WHERE id = 1", [("38b7", "96a5")]),
    "array_remove": ("SELECT ARRAY_REMOVE(ARRAY[1, 2, 1], 1), ARRAY_MAX(ARRAY[1, 2]) FROM S WHERE id = 1", [([2], 2)]),
    "date": ("SELECT DATE '2024-05-01' + 1 FROM S WHERE id = 1", [(datetime.date(2024, 5, 2),)]),
}


@pytest.mark.parametrize("cases", [KSQLDB, RISINGWAVE], ids=["ksqlDB", "RisingWave"])
def test_what_other_systems_say_is_said_in_cql(cases: dict[str, tuple[str, list[tuple[Any, ...]]]]) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (id INTEGER, name TEXT, v INTEGER, f FLOAT, j TEXT, ok BOOLEAN)")
        answers = {n: db.query(query.replace("FROM S", "FROM S [RANGE 100]", 1)) for n, (query, _) in cases.items()}
        db.push("S", ROWS, ts=[row[0] for row in ROWS])
        db.advance(5)
        found = {name: sorted(answer.snapshot(), key=repr) for name, answer in answers.items()}
    assert found == {name: sorted(expected, key=repr) for name, (_, expected) in cases.items()}
