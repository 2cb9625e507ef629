"""Lists, STRUCT, MAP, DECIMAL, DATE and TIME in columns: on their way in, in queries, and on their way out."""

from __future__ import annotations

import contextlib
import datetime
import json
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import minidsms
from minidsms.cql.parser import parse_type
from minidsms.inputs.arrays import ColumnReader
from minidsms.inputs.values import ValueRefused, timestamp_value
from minidsms.testing.compare import check
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration
from minidsms.values.dictionary import TextDictionary
from minidsms.values.types import Type
from tests.seeds import seeds

COLUMNS = (
    'tags TEXT[], near STRUCT(x INTEGER, "y z" FLOAT[]), stock MAP(TEXT, INTEGER), price DECIMAL(38, 2), day DATE, '
    "at TIME"
)
ROWS: list[tuple[Any, ...]] = [
    (
        ["a", None, "ü"], {"x": 1, "y z": [1.5, None]}, {"b": 2, "a": None}, 
        Decimal("123456789012345678901234567890123456.78"), datetime.date(2024, 2, 29), datetime.time(14, 30, 0, 1),
    ),
    ([], {"x": None, "y z": None}, {}, Decimal("-0.50"), datetime.date(1, 1, 1), datetime.time(0)),
    (None, None, None, None, None, None),
]  # fmt: skip
WRITTEN: list[dict[str, Any]] = [
    {
        "tags": ["a", None, "ü"], "near": {"x": 1, "y z": [1.5, None]}, "stock": {"b": 2, "a": None},
        "price": "123456789012345678901234567890123456.78", "day": "2024-02-29", "at": "14:30:00.000001",
    },
    {"tags": [], "near": {}, "stock": {}, "price": "-0.5", "day": "0001-01-01", "at": "00:00:00"},
    dict.fromkeys(("tags", "near", "stock", "price", "day", "at")),
]  # fmt: skip
"""The same as JSON."""


def _shown(answer: Any) -> list[tuple[Any, ...]]:
    return [change.row for change in answer.fetch()]


def _arrow() -> pa.Table:
    columns = list(zip(*ROWS))
    kinds = [
        pa.list_(pa.string()), pa.struct([("x", pa.int32()), ("y z", pa.list_(pa.float32()))]),
        pa.map_(pa.string(), pa.int64()), pa.decimal128(38, 2), pa.date32(), pa.time64("us"),
    ]  # fmt: skip
    columns[2] = [None if v is None else list(v.items()) for v in columns[2]]  # type: ignore[call-overload]
    names = ("tags", "near", "stock", "price", "day", "at")
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds)})


@pytest.mark.parametrize("form", ["tuples", "one by one", "dict by dict", "dicts", "columns", "texts", "arrow"])
def test_values_come_in_from_python_and_arrow_and_go_out_as_they_came(form: str) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S ({COLUMNS})")
        answer = db.query("SELECT ISTREAM(*) FROM S [NOW]")
        names = tuple(WRITTEN[0])
        match form:
            case "one by one":
                for ts, row in enumerate(ROWS):
                    db.push("S", row, ts=ts)
            case "dict by dict":
                for ts, row in enumerate(ROWS):
                    db.push("S", dict(zip(names, row)), ts=ts)
            case "arrow":
                db.push("S", _arrow(), ts=[0, 1, 2])
            case _:
                data: Any = {
                    "tuples": ROWS,
                    "dicts": [dict(zip(names, row)) for row in ROWS],
                    "columns": dict(zip(names, map(list, zip(*ROWS)))),
                    "texts": [
                        tuple(json.dumps(v) if isinstance(v, list | dict) else v for v in row.values())
                        for row in WRITTEN
                    ],
                }[form]
                db.push("S", data, ts=[0, 1, 2])
        db.advance(3)
        assert _shown(answer) == ROWS


def test_a_dict_is_a_row_where_something_in_it_is_no_column() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k TEXT, l INTEGER[], s STRUCT(a INTEGER))")
        answer = db.query("SELECT ISTREAM(*) FROM S [NOW]")
        db.push("S", {"s": {"a": 1}, "k": "x", "l": [1, 2]}, ts=1)
        db.push("S", {"s": None, "k": None, "l": (3,)}, ts=2)
        db.push("S", {"s": [{"a": 5}], "k": ["y"], "l": [[4]]}, ts=3)
        db.advance(4)
        assert [c.row for c in answer.fetch()] == [("x", [1, 2], {"a": 1}), (None, [3], None), ("y", [4], {"a": 5})]
        with pytest.raises(minidsms.DataError, match=r"'x' .* where a column of values is wanted"):
            db.push("S", {"s": [None], "k": "x", "l": pa.array([[1]])}, ts=4)
        with pytest.raises(minidsms.DataError, match="write json"):
            db.push("S", {"s": None, "k": {"a": 1}, "l": None}, ts=4)
        with pytest.raises(minidsms.DataError, match="make JSON of it"):
            db.push("S", pa.table({"k": [{"a": 1}], "l": [[1]], "s": [{"a": 1}]}), ts=4)


def test_arrow_tables_have_the_types_of_arrow() -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S ({COLUMNS}, spans INTERVAL[], instants STRUCT(t TIMESTAMP))")
        answer = db.query("SELECT ISTREAM(*) FROM S [NOW]")
        db.push("S", (*ROWS[0], [1], {"t": "2024-05-01"}), ts=1)
        db.advance(2)
        table = answer.arrow()
    assert [str(table.schema.field(n).type) for n in ("tags", "near", "stock", "price", "day", "at")] == [
        "list<item: string>", "struct<x: int64, y z: list<item: double>>", "map<string, int64>", "decimal128(38, 2)",
        "date32[day]", "time64[us]",
    ]  # fmt: skip
    assert table["price"].to_pylist() == [ROWS[0][3]] and table["near"].to_pylist() == [ROWS[0][1]]
    assert table["stock"].to_pylist() == [[("a", None), ("b", 2)]]
    assert table["spans"].to_pylist() == [[datetime.timedelta(milliseconds=1)]]
    assert table["instants"].to_pylist() == [{"t": datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)}]


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_files_hold_them_and_lines_that_do_not_are_rejected(format: str, tmp_path: Path) -> None:
    path, out = tmp_path / f"in.{format}", tmp_path / f"out.{format}"
    if format == "parquet":
        parquet.write_table(_arrow().append_column("ts", pa.array([1, 2, 3])), path)
    elif format == "jsonl":
        lines = [json.dumps({"ts": i, **row}) for i, row in enumerate(WRITTEN, 1)]
        bad = ['{"ts": 9, "day": "2024-02-30"}', '{"ts": 9, "tags": [1]}', '{"ts": 9, "near": {"x": "q"}}']
        exact = '{"ts": 4, "price": 123456789012345678901234567890123456.78, "near": {"x": 1, "q": 1, "y z": [0.5]}}'
        path.write_text("\n".join([*lines, *bad, exact]) + "\n")
    else:
        rows = [
            ["" if v is None else v if isinstance(v, str) else json.dumps(v) for v in row.values()] for row in WRITTEN
        ]
        quoted = [",".join('"' + v.replace('"', '""') + '"' if v else "" for v in row) for row in rows]
        lines = [f"{i},{line}" for i, line in enumerate(quoted, 1)]
        path.write_text("\n".join(["ts,tags,near,stock,price,day,at", *lines, "9,,,,1.234,,", "9,,,,,,25:00"]) + "\n")
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (ts INTEGER, {COLUMNS}) TIMESTAMP BY ts FROM '{path}'")
        answer = db.query("SELECT ISTREAM(tags, near, stock, price, day, at) FROM S [NOW]")
        if format != "parquet":
            db.execute(f"CREATE QUERY q AS SELECT ISTREAM(*) FROM S [NOW] INTO '{out}'")
        db.run()
        found = _shown(answer)
        assert found[:3] == ROWS
        assert db.stream_input("S").counters.rejected == {"jsonl": 3, "csv": 2, "parquet": 0}[format]
    if format == "jsonl":
        assert found[3][3] == ROWS[0][3] and found[3][1] == {"x": 1, "y z": [0.5]}
    if format != "parquet":
        # What was written is read again.
        with minidsms.connect() as db:
            db.execute(f"CREATE STREAM S (_ts INTEGER, {COLUMNS}) TIMESTAMP BY _ts FROM '{out}'")
            answer = db.query("SELECT ISTREAM(tags, near, stock, price, day, at) FROM S [NOW]")
            db.run()
            assert _shown(answer)[:3] == ROWS


def test_a_folder_keeps_them(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(f"CREATE STREAM S ({COLUMNS})")
        db.execute("CREATE QUERY kept AS SELECT * FROM S [ROWS 3]")
        db.push("S", ROWS[:2], ts=[1, 2])
        db.push("S", ROWS[2], ts=3)
        db.advance(4)
    with minidsms.connect(tmp_path / "db") as db:
        assert sorted(db.queries["kept"].snapshot(), key=repr) == sorted(ROWS, key=repr)


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("TEXT[]", "a", "'a' (str) cannot be read as LIST"),
        ("TEXT[]", [1], "1 (int) cannot be read as TEXT"),
        ("JSON", {"a": 1}, "write json.dumps(value)"),
        ("INTEGER[]", {"a": 1}, "cannot be read as INTEGER[]"),
        ("STRUCT(a INTEGER)", {"b": 1}, "'b' (str) is no field of STRUCT(a INTEGER)"),
        ("STRUCT(a INTEGER)", (1, 2), "cannot be read as STRUCT(a INTEGER)"),
        ("MAP(TEXT, INTEGER)", [("a", 1), ("a", 2)], "the keys of a MAP are different"),
        ("DECIMAL(4, 2)", Decimal("100"), "does not fit DECIMAL(4, 2)"),
        ("DECIMAL(4, 2)", "1.234", "has more than 2 digits behind the point"),
        ("DECIMAL(4, 2)", True, "cannot be read as DECIMAL"),
        ("DECIMAL(4, 2)[]", "[1e99999999999999999999]", "does not fit DECIMAL(4, 2)"),
        ("DATE", datetime.datetime(2024, 5, 1), "write value.date()"),
        ("DATE", "2024-5-1", "write it like 2024-05-01"),
        ("TIME", 86_400_000_000, "cannot be read as TIME"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(column: str, value: Any, told: str) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (c {column})")
        for data in ((value,), [(value,), (value,)]):
            with pytest.raises(minidsms.DataError, match=re.escape(told)):
                db.push("S", data, ts=1)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("STRUCT", "STRUCT takes fields"),
        ("STRUCT(a)", "STRUCT takes fields"),
        ("STRUCT(a INTEGER, A TEXT)", 'two fields are called "A"'),
        ("LIST(INTEGER, TEXT)", "LIST takes 1 type"),
        ("MAP(FLOAT, TEXT)", "the keys of a MAP are TEXT or INTEGER"),
        ("DECIMAL(39, 2)", "DECIMAL has 1 to 38 digits"),
        ("DECIMAL(2, 3)", "DECIMAL has 1 to 38 digits"),
        ("TEXT[][][][][][][][][][][][][][][][]", "a type nests at most 16 deep"),
        ("ARRAY<TEXT)", 'unexpected ")"'),
        ("LIST(5)", "LIST takes types, not numbers"),
    ],
)
def test_a_wrong_type_is_told_with_its_place(written: str, told: str) -> None:
    with minidsms.connect() as db, pytest.raises(minidsms.CqlError, match=re.escape(told)):
        db.execute(f"CREATE STREAM S (c {written})")


def test_there_is_one_object_for_each_type() -> None:
    import copy
    import pickle

    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a ARRAY<STRUCT<x DOUBLE PRECISION, y MAP<VARCHAR, ARRAY<INT>>>>, b LIST(DECIMAL))")
        written = "SELECT a, b, CAST(a[1].y['k'] AS ARRAY<TEXT>) FROM S [NOW]"
        assert list(map(str, db.query(written).schema.types)) == [
            "STRUCT(x FLOAT, y MAP(TEXT, INTEGER[]))[]", "DECIMAL(18, 3)[]", "TEXT[]",
        ]  # fmt: skip
    type_ = Type.struct([("a", Type.decimal(9, 2).list_type), ("select", Type.map(Type.TEXT, Type.DATE))])
    assert str(type_) == 'STRUCT(a DECIMAL(9, 2)[], "select" MAP(TEXT, DATE))'
    assert pickle.loads(pickle.dumps(type_)) is type_ and copy.deepcopy(type_) is type_
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (c {type_})")
        assert db.query("SELECT c FROM S [NOW]").schema.types == (type_,)


EXPRESSIONS = (
    "STRUCT(a := k, b := t)", "STRUCT(a := [v], b := STRUCT(c := t)).b.c", "MAP(t := v, 'k' := k)",
    "MAP('a' := v)['a']",
    "MAP_CONCAT(MAP(k := t), MAP(v := t))", "TRANSFORM([v, k, NULL], x -> x * 2 + k)", "FILTER([v, k, 3], x -> x > k)",
    "TRANSFORM([k, v], (x, i) -> TRANSFORM([x, i], y -> y + x * k))", "REDUCE([v, k, 1], 0, (s, x) -> s + x)",
    "REDUCE([t, 'b'], '', (s, x) -> s || x)", "TRANSFORM([v, 9223372036854775807], x -> x + k)",
    "TRANSFORM(MAP('a' := k, 'b' := v), (n, x) -> n || t, (n, x) -> x * k)",
    "FILTER(MAP(k := v, 7 := 1), (n, x) -> x > k)",
    "REDUCE(MAP('a' := k, 'b' := v), '', (s, n, x) -> s || n || CAST(x AS TEXT))",
    "FILTER(STRING_SPLIT(t, 'a'), x -> x <> '' OR k = 1)", "CAST(v AS DECIMAL(12, 2)) * 1.5 - k",
    "CAST(k AS DECIMAL(2, 1))", "TRY_CAST(k AS DECIMAL(2, 1))", "CAST(CAST(k - 1 AS DECIMAL(9, 2)) AS BOOLEAN)",
    "CAST(k = 1 AS DECIMAL(3, 1))", "CAST([k - 1, NULL] AS BOOLEAN[])",
    "CAST(v AS DECIMAL(9, 3)) % 2.5", "ROUND(CAST(k AS DECIMAL(9, 3)) * 0.125, 2)",
    "FLOOR(CAST(v AS DECIMAL(9, 1)) * -0.5)", 
    "CAST(k AS DECIMAL(38, 0)) * DECIMAL '10000000000000000000' * DECIMAL '10000000000000000000'",
   
    "DATE '2024-02-28' + k", "DATE '9999-12-30' + k", "(DATE '2024-02-28' + v) - (DATE '2024-01-01' - k)",
    "CAST(CAST(k * 100000000 AS TIMESTAMP) AS DATE)", "CAST(CAST(k * 1234567 AS TIMESTAMP) AS TIME)",
    "CAST(STRUCT(a := k, b := [t, NULL]) AS TEXT)", "CAST('[1, ' || CAST(k AS TEXT) || ']' AS FLOAT[])",
    "CAST('{\"a\": ' || CAST(v AS TEXT) || '}' AS STRUCT(a INTEGER, b TEXT))",
    "CAST([v, k] AS DECIMAL(5, 1)[])",
    "CAST('[1e' || CAST(k * 6000000000000000000 AS TEXT) || '00, 0e-' || CAST(k AS TEXT) || '00000]' AS FLOAT[])",
    "TRY_CAST('[1e-' || CAST(k - 1 AS TEXT) || '9999999999999999999]' AS DECIMAL(30, 20)[])",
    "CAST(DATE '2024-02-28' + k AS TIMESTAMP)", "CAST('2024-02-2' || CAST(k AS TEXT) AS DATE)",
    "TIME '23:30' + k * 1000000 * INTERVAL '1' MILLISECOND", "TIME '10:00' - INTERVAL '11' HOUR",
    "DATE '2024-01-01' + TIME '10:30'",
    "CAST(CAST(v * 1234567 AS TIMESTAMP) AS TIME) - TIME '00:10:00.000001'", "EXTRACT(MINUTE FROM TIME '10:31:02')",
    "MAP_ENTRIES(MAP(t := k))", "GENERATE_SERIES(k, v)", "[k, v, NULL, 3][k:v]", "[k, v, 3][-k:]", "[k, v, 3][:v - 1]",
    "v = ANY([k, NULL, 2])", "v <> ALL([k, 2])", "k < ANY(FILTER([v, 1, NULL], x -> x > k))", "[k, v][k + 1 - 1]",
    "k >= ALL(GENERATE_SERIES(k, v))", "DATEADD(MONTH, k, DATE '2024-01-31')",
    "DATE_TRUNC('week', DATE '2024-01-31' + k)",
    "DATEADD(HOUR, k, DATE '2024-01-31')", "LAST_DAY(DATE '2024-01-31' + k)",
    "DATEDIFF(DAY, DATE '2024-01-31', DATE '2024-03-01' - k)",
)  # fmt: skip
QUERIES = (
    *(f"SELECT {e} AS c0 FROM Sb [RANGE 2]" for e in EXPRESSIONS),
    "SELECT x.s AS c0, COUNT(*) AS c1 FROM (SELECT STRUCT(k := k, l := [v]) AS s FROM Sb [RANGE 3]) AS x GROUP BY x.s",
    "SELECT x.s.a AS c0 FROM (SELECT STRUCT(a := k) AS s FROM Sb [ROWS 3]) AS x,"
    " (SELECT STRUCT(a := k) AS s FROM Rel) AS y WHERE x.s = y.s",
    "SELECT MAX(CAST(v AS DECIMAL(9, 2)) * 0.5) AS c0, MIN(DATE '2024-01-01' + k) AS c1 FROM Sb [RANGE 3]",
    "SELECT k AS c0, CAST(v AS DECIMAL(9, 2)) AS c1 FROM Sb [RANGE 3] ORDER BY CAST(v AS DECIMAL(9, 2)) DESC LIMIT 2",
    "SELECT x.d AS c0 FROM (SELECT CAST(v AS DECIMAL(9, 2)) AS d FROM Sb [RANGE 3]) AS x WHERE x.d > 1.5 AND x.d < 100",
    "SELECT SUM(CAST(v AS DECIMAL(9, 2)) * 0.5) AS c0, AVG(CAST(v AS DECIMAL(9, 2))) AS c1 FROM Sb [RANGE 3]"
    " GROUP BY k",
    "SELECT SUM(CAST(v AS DECIMAL(38, 0)) * DECIMAL '10000000000000000000' * DECIMAL '1000000000000000000') AS c0"
    " FROM Sb [RANGE 3]",
    "SELECT k AS c0, SUM(CAST(v AS DECIMAL(9, 2))) OVER (PARTITION BY k ORDER BY v) AS c1,"
    " MIN(CAST(v AS DECIMAL(9, 1))) OVER (PARTITION BY k) AS c2 FROM Sb [RANGE 4]",
    "SELECT k AS c0, SUM(CAST(v AS DECIMAL(9, 2)) * 0.5) OVER (ORDER BY k, v ROWS 2 PRECEDING) AS c1 FROM Sb [ROWS 5]",
    "SELECT SUM(CAST(v AS DECIMAL(38, 0)) * DECIMAL '10000000000000000000' * DECIMAL '1000000000000000000') OVER"
    " (ORDER BY k) AS c0 FROM Sb [RANGE 3]",
    "SELECT s.*, x.s.a AS c2 FROM (SELECT STRUCT(a := k, b := [t]) AS s FROM Sb [RANGE 2]) AS x",
    "SELECT e AS c0 FROM Sb [RANGE 2] AS a, EXPLODE([a.k, a.v]) AS e",
    "SELECT ARRAY_AGG(STRUCT(k, v) ORDER BY k) AS c0, FIRST(STRUCT(v := v)) AS c1, LAST([v], 2) AS c2 FROM Sb [ROWS 4]",
    "SELECT COLLECT_SET(STRUCT(k, t)) AS c0, HISTOGRAM(t)['a'] AS c1, APPROX_TOP_K(k, 2) AS c2 FROM Sb [RANGE 4]",
    "SELECT COUNT_DISTINCT(STRUCT(k, t)) AS c0, APPROX_COUNT_DISTINCT(k) AS c1 FROM Sb [RANGE 4]",
    "SELECT DISTINCT DATE '2024-01-01' + k AS c0, MAP('v' := v) AS c1 FROM Sb [RANGE 3 SLIDE 2]",
    "SELECT u AS c0 FROM Sb [RANGE 2] AS a, UNNEST([STRUCT(k := a.k), STRUCT(k := a.v)]) AS u",
    "SELECT TRANSFORM(ARRAY_AGG(v), x -> x * 2) AS c0, k AS c1 FROM Sb [ROWS 4] GROUP BY k",
    "SELECT x.d AS c0, y.d AS c1 FROM (SELECT CAST(v AS DECIMAL(9, 2)) AS d FROM Sb [RANGE 3]) AS x"
    " FULL JOIN (SELECT CAST(a AS DECIMAL(9, 2)) AS d FROM Rel) AS y ON x.d <> y.d",
    "SELECT x.s AS c0, y.l AS c1 FROM (SELECT STRUCT(a := k, b := t) AS s, [k, v] AS l FROM Sb [RANGE 3]) AS x"
    " LEFT JOIN (SELECT STRUCT(a := k, b := 'a') AS s, [a, k] AS l FROM Rel) AS y ON x.s <> y.s OR x.l = y.l",
    "SELECT x.m AS c0, (SELECT COUNT(*) FROM Rel WHERE Rel.k < x.d AND MAP('v' := Rel.a) <> x.m) AS c1"
    " FROM (SELECT MAP('v' := v) AS m, CAST(k AS DECIMAL(9, 1)) AS d FROM Sb [RANGE 3]) AS x",
    "SELECT x.v AS c0, ROW_NUMBER() OVER (PARTITION BY x.s ORDER BY x.v DESC) AS c1, COUNT(*) OVER (PARTITION BY x.l)"
    " AS c2, x.l AS c3 FROM (SELECT STRUCT(a := k) AS s, [t] AS l, v FROM Sb [RANGE 4]) AS x",
    "SELECT x.m AS c0, x.v AS c1 FROM (SELECT MAP('k' := k) AS m, v FROM Sb [RANGE 4]) AS x"
    " QUALIFY RANK() OVER (PARTITION BY x.m ORDER BY x.v) = 1",
    "SELECT k AS c0, COUNT(x.l) OVER (PARTITION BY k ORDER BY v) AS c1 FROM (SELECT CASE WHEN v > 1 THEN [v] END AS l,"
    " k, v FROM Sb [RANGE 4]) AS x",
    "SELECT x.l AS c0 FROM (SELECT [STRUCT(v := v)] AS l, k FROM Sb [RANGE 3]) AS x"
    " WHERE FILTER(x.l, e -> e.v > x.k)[1] IS NOT NULL",
)


@pytest.mark.parametrize("query", QUERIES)
def test_queries_answer_as_their_definition(query: str) -> None:
    for seed in seeds(2):
        rng = random.Random(f"{query} {seed}")
        names = ["Sb", "Rel"] if "Rel" in query else ["Sb"]
        case = Case(tuple(map(declaration, names)), query, random_feed(rng, names, 14, False))
        assert check(case, batch_size=rng.choice((1, 2, 7, 1000))) == "agreed"


INSIDE = {
    "INTEGER[]": pa.list_(pa.int32()), "TEXT[]": pa.large_list(pa.string()),
    "STRUCT(x FLOAT, y TEXT)": pa.struct([("y", pa.dictionary(pa.int8(), pa.string())), ("x", pa.float64())]),
    "MAP(TEXT, INTEGER)": pa.map_(pa.string(), pa.int64()), "DECIMAL(9, 2)": pa.decimal128(9, 2),
    "STRUCT(a INTEGER[], b MAP(TEXT, DATE))[]": pa.list_(
        pa.struct([("a", pa.list_(pa.int64())), ("b", pa.map_(pa.string(), pa.date32()))])
    ),
    "DATE": pa.date32(), "TIME": pa.time64("us"), "INTEGER[][]": pa.list_(pa.list_(pa.int64(), 2)),
    "STRUCT(t TEXT, u TEXT[])": pa.struct([("t", pa.string_view()), ("u", pa.large_list(pa.string_view()))]),
}  # fmt: skip
"""Types of columns, and Arrow's in which their values come; fixed-size lists are read one by one."""


def _drawn(kind: pa.DataType, rng: random.Random) -> Any:
    """A random value, often one that is alike."""
    if rng.random() < 0.15:
        return None
    if pa.types.is_fixed_size_list(kind):
        return [_drawn(kind.value_type, rng) for _ in range(kind.list_size)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_drawn(kind.value_type, rng) for _ in range(rng.choice((0, 1, 1, 2, 20)))]
    if pa.types.is_map(kind):
        return [(key, _drawn(kind.item_type, rng)) for key in rng.sample("abc", rng.randrange(3))]
    if pa.types.is_struct(kind):
        return {field.name: _drawn(field.type, rng) for field in kind}
    if pa.types.is_date32(kind):
        return datetime.date(2024, 1, rng.randrange(1, 3))
    if pa.types.is_time(kind):
        return datetime.time(rng.randrange(2), 0, 0, rng.randrange(2))
    if pa.types.is_decimal(kind):
        return Decimal(rng.randrange(-2, 3)).scaleb(-2)
    return rng.choice(("x", "é", "")) if "string" in str(kind) else rng.randrange(-1, 2)


@pytest.mark.parametrize("declared", INSIDE)
def test_a_column_read_by_its_buffers_is_that_read_value_by_value(declared: str) -> None:
    kind, rng = INSIDE[declared], random.Random(declared)
    for size in (0, 1, 60):
        whole = pa.array([_drawn(kind, rng) for _ in range(size + 3)], kind)
        reader = ColumnReader(TextDictionary(), 1_000_000)
        type_ = parse_type(declared)
        for array in (whole, whole.slice(2, size)):
            by_values = [v if v is None or not pa.types.is_map(kind) else dict(v) for v in array.to_pylist()]
            one, other = reader.read(array, type_), reader.read(by_values, type_)
            assert reader.dictionary.values(one, type_) == reader.dictionary.values(other, type_)


def test_the_first_row_is_blamed_for_what_does_not_fit_in_a_nested_column() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (l INTEGER[])")
        column = pa.array([[1.0], None, [1.0, 2.5], [1.0, 2.5], [1.5]])
        with pytest.raises(minidsms.DataError, match=r'row 0, column "l": 1.0 \(float\) cannot be read as INTEGER'):
            db.push("S", {"l": column}, ts=1)
        with pytest.raises(minidsms.DataError, match=r'row 2, column "l": \'x\' \(str\) cannot be read as INTEGER'):
            db.push("S", {"l": pa.array([[], None, ["x", "y"], ["x", "y"], ["z"]])}, ts=1)


INSTANTS: list[Any] = [
    *(datetime.datetime(year, 2, 28, 23, 59, 59, 999_999) for year in (1, 1969, 2024, 9999)),
    datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
    datetime.datetime(2024, 6, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")),
    "2024-01-01 00:00:00", "2024-01-01T00:00:00.5Z", "1969-12-31 23:59:59.999999+00:00", "0000-02-29 00:00:00",
    "1500-02-29 00:00:00", "2024-01-01", "2024-01-01 10", "2024-01-01 00:00:00.1234567", "2024-01-01 00:00:00+02:00",
    "2024-01-01 24:00:00", "2024-01-01 00:00:00\n", "x", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("tick_ns", [1, 1_000, 1_000_000, 60 * 10**9])
@pytest.mark.parametrize("value", INSTANTS, ids=ascii)
def test_an_instant_of_a_long_column_is_read_as_alone(tick_ns: int, value: Any) -> None:
    alone: Any = "refused"
    with contextlib.suppress(ValueRefused):
        alone = timestamp_value(value, tick_ns)
    usual = "2024-01-01 00:00:00" if isinstance(value, str) else datetime.datetime(2024, 1, 1)
    for column in ([value] * 40, [None] * 40 + [value], [usual] * 40 + [value]):
        read: Any = "refused"
        with contextlib.suppress(ValueRefused):
            read = ColumnReader(TextDictionary(), tick_ns).read(column, Type.TIMESTAMP).values[-1]
        assert read == alone


@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize("far", ["9999-12-31 00:00:00", datetime.datetime(9999, 12, 31)], ids=str)
def test_an_instant_beyond_its_ticks_is_said_to_be_that_in_columns_of_any_length(n: int, far: Any) -> None:
    with pytest.raises(ValueRefused, match="outside the range of 64-bit ticks") as refused:
        ColumnReader(TextDictionary(), 1).read([None] * n + [far] * n, Type.TIMESTAMP)
    assert refused.value.row == n and refused.value.hint == "connect with a coarser time_unit"
