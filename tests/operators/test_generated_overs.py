"""OVER with random functions, frames, orders and sources against its definition (docs/semantics R7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from random import Random
from types import ModuleType
from typing import Any

import pytest

from minidsms.synopses import first_rows, frames, sorted_partitions
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration
from tests.seeds import seeds

SOURCES = {
    "Sa": ("Sa", "Sa [NOW]", "Sa [ROWS 9]", "Sa [RANGE 5]", "Sa [RANGE 6 SLIDE 2]", "Sa [PARTITION BY t ROWS 3]"),
    "Rel": ("Rel", "Rel", "(SELECT k, t, MAX(a) AS a, COUNT(*) AS n FROM Rel GROUP BY k, t)"),
}
"""What is read, by the name of the stream or relation. In the last, each change is an update of a row."""
COLUMNS = {"Sa": ("k", "v", "x", "t"), "Rel": ("k", "a", "t")}
NUMBERS = {"Sa": ("k", "v", "x"), "Rel": ("k", "a")}
FRAMES = (
    "",
    "ROWS 2 PRECEDING",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    "RANGE 1 PRECEDING",
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
)
OF_DISTANCE = FRAMES[-3:]


def default_of(rng: Random, arg: str) -> str:
    """Nothing, or what LAG and LEAD of the argument give where there is no row."""
    more = {"k": "2 * k", "v": "k", "x": "k", "a": "k", "t": "t || '!'", "d": "0.5", "k > 2": "k IS NULL"}
    return rng.choice(("", "", f", {arg}", ", NULL", f", {more.get(arg, 'NULL')}"))


def of_objects(rng: Random, any_: str, number: str) -> str:
    """A call whose states are of Python values, and those of an order within the group."""
    descending, nulls = rng.choice(("", " DESC")), rng.choice(("", " IGNORE NULLS"))
    if rng.random() < 0.4:
        return of_several(rng, any_, number)
    return rng.choice(
        (
            f"PERCENTILE_CONT(0.4) WITHIN GROUP (ORDER BY {number}{descending})",
            f"PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY {any_}{descending})",
            f"MODE() WITHIN GROUP (ORDER BY {any_}{descending})",
            f"QUANTILE_CONT({number}, 0.12345678912)",
            f"PRODUCT({rng.choice(('', 'DISTINCT '))}{number})",
            f"ARRAY_AGG({any_}){nulls}",
            f"ARRAY_AGG({any_}) FILTER (WHERE k > 1)",
            f"STRING_AGG(CAST({number} AS TEXT), '-')",
            f"STRING_AGG(CAST({any_} AS TEXT)) FILTER (WHERE k > 1)",
            f"{rng.choice(('FIRST_N', 'LAST_N'))}({any_}, 2){nulls}",
            f"{rng.choice(('MIN', 'MAX', 'APPROX_TOP_K'))}({any_}, 2)",
            "HISTOGRAM(k)",
        )
    )


def of_several(rng: Random, any_: str, number: str) -> str:
    """A call of two values, or of a user's aggregate."""
    of_pairs = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_SXY", "REGR_COUNT")
    return rng.choice(
        (
            f"{rng.choice(of_pairs)}({number}, k)",
            f"{rng.choice(of_pairs)}(k, {number}) FILTER (WHERE k > 1)",
            f"{rng.choice(('ARG_MIN', 'ARG_MAX'))}({any_}, {number})",
            f"{rng.choice(('ARG_MIN', 'ARG_MAX'))}({number}, {any_})",
            f"{rng.choice(('ARG_MIN', 'ARG_MAX'))}({any_}, k, 2)",
            "UA_SPAN(k)",
            "UA_PRODUCTS(k, k + 1)",
        )
    )


def of_groups(rng: Random, any_: str, number: str, has_objects: bool = True) -> str:
    """A call that no kernel of frames computes."""
    if has_objects and rng.random() < 0.4:
        return of_objects(rng, any_, number)
    spread = rng.choice(("VARIANCE", "STDDEV", "VAR_POP", "STDDEV_POP", "MEDIAN", "AVG(DISTINCT", "SUM(DISTINCT"))
    return rng.choice(
        (
            f"{spread}{' ' if '(' in spread else '('}{number})",
            f"QUANTILE_CONT({number}, 0.3)",
            f"QUANTILE_DISC({any_}, 0.25)",
            f"MODE({any_})",
            f"COUNT(DISTINCT {any_})",
            f"COUNT(DISTINCT {any_}, {number})",
            f"BIT_{rng.choice(('AND', 'OR', 'XOR'))}(k)",
            f"{rng.choice(('FIRST_VALUE', 'LAST_VALUE'))}({any_}) IGNORE NULLS",
            f"{rng.choice(('FIRST_VALUE', 'LAST_VALUE'))}({any_} IGNORE NULLS)",
        )
    )


def random_case(seed: int) -> Case:
    """A call over few or many partitions, with and without a bound of the ranks."""
    rng = Random(seed)
    name = rng.choice(("Sa", "Rel"))
    columns = COLUMNS[name]
    source = rng.choice(SOURCES[name])
    by = rng.sample(columns, rng.choice((0, 1, 1, 2, 2)))
    keys = [
        column + rng.choice(("", "", " DESC", " NULLS FIRST", " DESC NULLS FIRST"))
        for column in rng.sample(columns, rng.choice((1, 1, 2)))
    ]
    may_be_in_order = source.startswith("Sa") and rng.random() < 0.3
    keys = ["ts", *keys[1:]] if may_be_in_order else keys
    frame = rng.choice(FRAMES)
    if frame in OF_DISTANCE:
        keys = ["ts" if may_be_in_order else rng.choice(("k", "k DESC NULLS FIRST"))]
    over = f"({'PARTITION BY ' * bool(by)}{', '.join(by)} ORDER BY {', '.join(keys)}"
    rank = rng.choice(("ROW_NUMBER()", "RANK()", "DENSE_RANK()"))
    number, any_ = rng.choice(NUMBERS[name]), rng.choice(columns)
    neighbour = rng.choice(("LAG", "LEAD"))
    call = rng.choice(
        (
            f"{rank} OVER {over})",
            f"{rng.choice(('PERCENT_RANK()', 'CUME_DIST()', 'NTILE(3)'))} OVER {over})",
            f"{neighbour}({any_}, {rng.randint(1, 3)}{default_of(rng, any_)}) OVER {over})",
            f"{neighbour}({any_}, {rng.choice((1, 2))}{default_of(rng, any_)}) IGNORE NULLS OVER {over})",
            f"{rng.choice(('SUM', 'AVG'))}({number}) OVER {over} {frame})",
            f"{rng.choice(('MIN', 'MAX', 'FIRST_VALUE', 'LAST_VALUE', 'COUNT'))}({any_}) OVER {over} {frame})",
            f"{rng.choice((f'NTH_VALUE({any_}, 2)', 'COUNT(*)'))} OVER {over} {frame})",
            f"{of_groups(rng, any_, number)} OVER {over} {frame})",
        )
    )
    shown = ", ".join(rng.sample(columns, rng.randint(1, len(columns))))
    qualify = f" QUALIFY {rank} OVER {over}) <= {rng.randint(0, 3)}" if rng.random() < 0.3 else ""
    select = f"SELECT {shown}, {call} AS r FROM {source}{qualify}"
    return Case((declaration(name),), select, random_feed(rng, [name], 40, may_be_extreme=False))


PRICE = "TRY_CAST(v AS DECIMAL(9, 2))"
WHOLE = ("", "", "", " ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
PARTED_BY = (
    *("", "", "k", "t", "v", "x", "k, t", "t, x", "k, v, t", "k + 1", "k IS NULL", PRICE, f"k, {PRICE}"),
    *("ARRAY[k, v]", "STRUCT(a := k, b := t)"),
)
PARTED_FROM = (
    *("Sa [ROWS 6]", "Sa [RANGE 4]", "Sa [NOW]", "Sa [RANGE 6 SLIDE 2]", "Sa [PARTITION BY t ROWS 2]", "Sa"),
    "(SELECT * FROM Sa [ROWS 5] WHERE v > 0)",
    "(SELECT y.k, y.v, x, y.t FROM Sa [ROWS 3] AS y, Sb [ROWS 2] AS z WHERE y.k = z.k)",
    "(SELECT k, MAX(v) AS v, MIN(x) AS x, t FROM Sa [ROWS 9] GROUP BY k, t)",
    "(SELECT k, MAX(v) OVER (PARTITION BY k) AS v, x, t FROM Sa [ROWS 5])",
)


OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"forced_every": 1},
    {"adaptive": "off"},
    {"forced_every": 3, "compilation": "off"},
    {"threads": 2},
    {"state_reduction": "k-mon"},
)


def case_of_partitions(seed: int) -> Case:
    """Aggregates of whole partitions, whose keys may be NULL: several in a row, of the same rows or of others."""
    rng = Random(seed)
    parted = rng.choices(PARTED_BY, k=2)
    calls = [
        rng.choice(
            (
                "COUNT(*)",
                "COUNT(v)",
                "SUM(v)",
                "AVG(v)",
                "AVG(x)",
                "SUM(x)",
                "MIN(t)",
                "MAX(x)",
                f"SUM({PRICE})",
                f"MIN({PRICE})",
                f"SUM(DISTINCT {PRICE})",
                of_groups(rng, rng.choice(("v", "t", "x", PRICE)), rng.choice(("v", "x", PRICE)), has_objects=False),
            )
        )
        + f" OVER ({f'PARTITION BY {by}' if by else ''}{rng.choice(WHOLE)}) AS r{i}"
        for i, by in enumerate((parted[0], *rng.choices(parted, k=rng.randint(0, 2))))
    ]
    if rng.random() < 0.5:
        call = of_objects(rng, rng.choice(("v", "t", "x", PRICE)), rng.choice(("v", "x", PRICE)))
        calls.append(f"{call} OVER ({f'PARTITION BY {parted[1]}' if parted[1] else ''}{rng.choice(WHOLE)}) AS o")
    inner = f"SELECT k, v, t, {', '.join(calls)} FROM {rng.choice(PARTED_FROM)}"
    compared = "r0 > v" if calls[0].startswith(("COUNT", "SUM", "AVG")) else "r0 IS NOT NULL"
    query = rng.choice(
        (
            inner,
            inner,
            f"SELECT k, v, r0 FROM ({inner}) WHERE {rng.choice(('k = 1', compared, 'v < 3', 'r0 IS NULL'))}",
            f"SELECT t, COUNT(*) AS n, MAX(r0) AS m FROM ({inner}) GROUP BY t",
            f"SELECT RSTREAM(*) FROM ({inner})",
            f"SELECT ISTREAM(*) FROM ({inner})",
        )
    )
    names = ["Sa", "Sb"] if "Sb" in query else ["Sa"]
    return Case(tuple(map(declaration, names)), query, random_feed(rng, names, 40, may_be_extreme=seed % 4 == 0))


BACK = (
    "",
    "ROWS 2 PRECEDING",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    "RANGE 2 PRECEDING",
    "RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING",
)
"""Frames that end at the row or before it."""


def case_of_stream(seed: int) -> Case:
    """Calls over a stream that look at no row behind a row; often many rows of a partition come at one instant."""
    rng = Random(seed)
    calls = []
    for _ in range(rng.randint(1, 2)):
        frame = rng.choice(BACK)
        by = rng.sample(("k", "t", "x"), rng.choice((0, 1, 1, 2)))
        more = rng.sample(("v DESC", "t", "x NULLS FIRST", "k"), rng.choice((0, 0, 1, 2)))
        keys = ["ts", *more] if not frame.startswith("RANGE") or "CURRENT ROW AND" in frame else ["ts"]
        over = f"({'PARTITION BY ' * bool(by)}{', '.join(by)} ORDER BY {', '.join(keys)}"
        any_, number = (
            rng.choice(("k", "v", "x", "t", "k > 2")),
            rng.choice(
                ("k", "v", "x", "CAST(k AS DECIMAL(9, 1))", "CAST(3 * v - 4 AS DECIMAL(38, 18))", "CAST(v AS INTERVAL)")
            ),
        )
        calls.append(
            rng.choice(
                (
                    f"{rng.choice(('ROW_NUMBER()', 'RANK()', 'DENSE_RANK()'))} OVER {over})",
                    f"LAG({any_}, {rng.choice((0, 1, 1, 2, 9))}{default_of(rng, any_)}) OVER {over})",
                    f"LAG({any_}, {rng.choice((1, 3))}{default_of(rng, any_)}) IGNORE NULLS OVER {over})",
                    f"{rng.choice(('SUM', 'AVG'))}({number}) OVER {over} {frame})",
                    f"{rng.choice(('MIN', 'MAX', 'FIRST_VALUE', 'LAST_VALUE', 'COUNT'))}({any_}) OVER {over} {frame})",
                    f"{rng.choice((f'NTH_VALUE({any_}, {rng.randint(1, 3)})', 'COUNT(*)'))} OVER {over} {frame})",
                    f"{of_groups(rng, any_, rng.choice(('k', 'v', 'x', PRICE)))} OVER {over} {frame})",
                )
            )
        )
    shown = rng.sample(("k", "v", "x", "t"), rng.randint(1, 4))
    columns = [*shown, *(f"{call} AS r{i}" for i, call in enumerate(calls))]
    limit = f" QUALIFY RANK() OVER (PARTITION BY k ORDER BY ts, v) <= {rng.randint(0, 4)}" if rng.random() < 0.2 else ""
    select = f"SELECT {', '.join(columns)} FROM Sa{limit}"
    return Case((declaration("Sa"),), select, random_feed(rng, ["Sa"], rng.choice((20, 60)), may_be_extreme=False))


WIDE = "t || CHR(1 + v % 3) || t AS t, CAST(3 * v - 4 AS DECIMAL(38, 18)) AS d, [t, CAST(v AS TEXT)] AS l"
"""Texts with the byte 1, DECIMALs with and without computed codes, lists."""


def source_of_ranks(rng: Random, name: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What is read, its columns, and those that have an order; often some are of types that the dictionary codes."""
    columns = NUMBERS[name]
    if rng.random() < 0.5 and name == "Sa":
        source = f"(SELECT k, v, x, {WIDE} FROM {rng.choice(SOURCES['Sa'][1:])}) AS W"
        return source, (*columns, "t", "d", "l"), (*columns, "t", "t", "d", "d")
    source = rng.choice(("Sa", *SOURCES["Sa"]) if name == "Sa" else SOURCES["Rel"][1:])
    return source, (*columns, "t"), (*columns, "ts" if source == "Sa" else "t")


def sorted_by(rng: Random, columns: Sequence[str]) -> str:
    keys = rng.sample(columns, rng.choice((1, 1, 2)))
    return ", ".join(key + rng.choice(("", " DESC", " NULLS FIRST", " DESC NULLS FIRST")) for key in keys)


def case_of_ranks(seed: int) -> Case:
    """Ranks and neighbours; few columns are shown, so that many rows are equal."""
    rng = Random(seed)
    name = rng.choice(("Sa", "Rel"))
    source, columns, ordered = source_of_ranks(rng, name)
    by = rng.choice(((), ("k",), ("t",), ("t", "k"), (columns[1],)))
    over = f"OVER ({'PARTITION BY ' * bool(by)}{', '.join(by)} ORDER BY {sorted_by(rng, ordered)})"
    rank = rng.choice(("ROW_NUMBER()", "RANK()", "DENSE_RANK()"))
    any_ = rng.choice((*columns, *by))
    distance = rng.choice((0, 1, 1, 2, 5))
    neighbour = f"{rng.choice(('LAG', 'LEAD'))}({any_}, {distance}{default_of(rng, any_)})"
    if distance and any_ != "l" and rng.random() < 0.4:
        neighbour += " IGNORE NULLS"
    shown = rng.sample((*columns, *by), rng.choice((1, 1, 2)))
    qualify = f" QUALIFY {rank} {over} <= {rng.randint(0, 3)}" if rng.random() < 0.4 else ""
    select = f"SELECT {', '.join(shown)}, {rng.choice((rank, neighbour))} {over} AS r FROM {source}{qualify}"
    return Case((declaration(name),), select, random_feed(rng, [name], 60, may_be_extreme=False))


FAR = "CASE k WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775807 ELSE k END"
"""Keys that are farther from each other than an INTEGER says."""


def case_of_frames(seed: int) -> Case:
    """Frames of rows of all types; few columns are shown, so that many rows are equal."""
    rng = Random(seed)
    name = rng.choice(("Sa", "Sa", "Rel"))
    source, columns, ordered = source_of_ranks(rng, name)
    by = rng.choice(((), ("k",), ("t",), (columns[1],)))
    frame, keys = rng.choice(FRAMES), sorted_by(rng, ordered)
    if rng.random() < 0.4:  # rows of streams that look ahead
        name, source, by = "Sa", f"(SELECT ts, k, v, x, {WIDE} FROM Sa) AS W", ("k",)
        columns, keys = ("k", "v", "x", "t", "d"), rng.choice(("ts", "ts, v", "ts, t DESC"))
        frame = f"ROWS BETWEEN {rng.choice(('1', 'UNBOUNDED'))} PRECEDING AND {rng.randint(1, 3)} FOLLOWING"
    if frame in OF_DISTANCE or rng.random() < 0.2:
        key = "ts" if "ts" in keys else rng.choice(("k", "k", FAR))
        keys = key if key == "ts" else f"{key}{rng.choice(('', ' DESC', ' NULLS FIRST', ' DESC NULLS FIRST'))}"
        far = rng.choice((1, 2, 9, 2**63 - 1))
        frame = rng.choice(
            (
                f"RANGE BETWEEN {far} PRECEDING AND CURRENT ROW",
                f"RANGE BETWEEN UNBOUNDED PRECEDING AND {far} FOLLOWING",
                f"RANGE BETWEEN 1 PRECEDING AND {far} FOLLOWING",
                f"RANGE BETWEEN 1 FOLLOWING AND {far} FOLLOWING",
                f"RANGE BETWEEN {far} PRECEDING AND 1 PRECEDING",
            )
        )
    any_, ordered_one = rng.choice((*columns, *by)), rng.choice([c for c in columns if c != "l"])
    number = rng.choice([c for c in columns if c not in ("t", "l")])
    call = rng.choice(
        (
            f"{rng.choice(('SUM', 'SUM', 'AVG'))}({number})",
            f"{rng.choice(('MIN', 'MAX'))}({ordered_one})",
            f"{rng.choice(('FIRST_VALUE', 'LAST_VALUE', 'COUNT'))}({any_})",
            rng.choice((f"NTH_VALUE({any_}, {rng.randint(1, 3)})", "COUNT(*)")),
            of_groups(rng, ordered_one, number),
        )
    )
    shown = rng.sample((*columns, *by), rng.choice((1, 1, 2)))
    over = f"OVER ({'PARTITION BY ' * bool(by)}{', '.join(by)} ORDER BY {keys} {frame})"
    select = f"SELECT {', '.join(shown)}, {call} {over} AS r FROM {source}"
    return Case((declaration(name),), select, random_feed(rng, [name], 60, may_be_extreme=False))


def case_of_first_rows(seed: int) -> Case:
    """ORDER BY .. LIMIT of rows of all types."""
    rng = Random(seed)
    name = rng.choice(("Sa", "Rel"))
    source, columns, ordered = source_of_ranks(rng, name)
    shown = rng.sample(columns, rng.choice((1, 2, 3)))
    by = sorted_by(rng, [column for column in ordered if column != "ts"])
    offset = rng.choice(("", "", " OFFSET 1", " OFFSET 4"))
    select = f"SELECT {', '.join(shown)} FROM {source} ORDER BY {by} LIMIT {rng.choice((0, 1, 2, 3, 8))}{offset}"
    return Case((declaration(name),), select, random_feed(rng, [name], 60, may_be_extreme=False))


SIZES = (1, 2, 7, 65_536)
"""Of batches: seeds take them by turns, and every one in the long runs."""


def agrees(
    case_of: Callable[[int], Case], seed: int, patch: pytest.MonkeyPatch, few: Mapping[ModuleType, Mapping[str, int]]
) -> None:
    """The case of a seed is answered as defined. few: constants of modules for odd seeds: few rows are many."""
    case = case_of(seed)
    with patch.context() as patched:
        for module, constants in few.items() if seed % 2 else ():
            for name, value in constants.items():
                patched.setattr(module, name, value)
        assert check(case, batch_size=SIZES[seed // 2 % 4]) == "agreed", case


@pytest.mark.parametrize("first", seeds(0, 100, 50))
def test_ranks_and_neighbours_are_those_of_the_definition(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {sorted_partitions: {"_FIRST_ROOM": 2, "_LARGEST_OUTPUT": 8, "_WORTH_SHRINKING": 8}}
    for seed in range(first, first + 50):
        agrees(case_of_ranks, seed, monkeypatch, few)


@pytest.mark.parametrize("first", seeds(0, 100, 50))
def test_first_rows_are_those_of_the_definition(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {
        first_rows: {"_LEAST": 1, "_TIMES": 1, "_MANY": 1, "_AT_ONCE": 3},
        sorted_partitions: {"_FIRST_ROOM": 2, "_LARGEST_OUTPUT": 8, "_WORTH_SHRINKING": 2},
    }
    for seed in range(first, first + 50):
        agrees(case_of_first_rows, seed, monkeypatch, few)


@pytest.mark.parametrize("first", seeds(0, 100, 50))
def test_the_answer_over_a_stream_is_that_of_the_definition(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {frames: {"_FEWEST": 4, "_MOST": 4, "_FIRST_ROWS": 2, "_WORTH_SHRINKING": 8}}
    for seed in range(first, first + 50):
        agrees(case_of_stream, seed, monkeypatch, few)


@pytest.mark.parametrize("first", seeds(0, 100, 50))
def test_the_answer_is_that_of_the_definition(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 50):
        agrees(random_case, seed, monkeypatch, {})


@pytest.mark.parametrize("first", seeds(0, 150, 50))
def test_frames_over_rows_of_all_types_are_those_of_the_definition(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {sorted_partitions: {"_FIRST_ROOM": 2, "_LARGEST_OUTPUT": 8, "_WORTH_SHRINKING": 8}}
    for seed in range(first, first + 50):
        agrees(case_of_frames, seed, monkeypatch, few)


@pytest.mark.parametrize("first", seeds(0, 100, 50))
def test_aggregates_of_whole_partitions_are_those_of_the_definition(first: int) -> None:
    for seed in range(first, first + 50):
        case, options = case_of_partitions(seed), OPTIONS[seed % len(OPTIONS)]
        batch_size = SIZES[seed // len(OPTIONS) % 4]
        assert check(case, batch_size=batch_size, **options) == "agreed", case


@pytest.mark.long
@pytest.mark.parametrize(
    "case_of", [case_of_ranks, case_of_first_rows, case_of_frames, case_of_stream, random_case, case_of_partitions]
)
def test_more_answers_are_those_of_the_definition(case_of: Callable[[int], Case]) -> None:
    for seed in range(1_000):
        case = case_of(seed)
        expected = run_definition(case)
        for batch_size, options in product(SIZES, ({}, OPTIONS[seed % len(OPTIONS)])):
            assert check(case, None, expected, batch_size=batch_size, **options) == "agreed", case
