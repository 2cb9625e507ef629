"""Every row of the table of aggregates: its example, and the definition under deletions."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.aggregates import AGGREGATES, OF_DIFFERENT, SYNONYMS, sorting
from minidsms.aggregates.aggregate import Settings
from minidsms.cql.functions import CALLED
from minidsms.elements import Type
from minidsms.testing.compare import bind_case, check
from minidsms.testing.definition import AGGREGATES as DEFINED
from minidsms.testing.definition_aggregates import OF_ROWS
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration
from minidsms.testing.grammar import STREAMS, Column, Grammar

ROWS = [(1, 10, "a", True), (2, 20, "b", False), (2, 40, "b", True), (None, 40, "c", None)]
"""The rows of the examples, as docs/aggregates.md shows them: v, w, t, b."""


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_the_example_of_an_aggregate_comes_out_as_written(name: str) -> None:
    call, value = AGGREGATES[name].example
    assert name.upper() in call and AGGREGATES[name].summary
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, w INTEGER, t TEXT, b BOOLEAN)")
        query = db.query(f"SELECT {call} FROM S [RANGE 10]")
        db.push("S", ROWS, ts=[1, 1, 1, 1])
        db.advance(20)
        first, *_, last = query.fetch()
        assert _shown(first.row[0]) == value
        assert last.row[0] == (0 if "count" in name else None), "all rows have left"


def test_every_aggregate_has_its_definition() -> None:
    kept = {a.kept_as for a in AGGREGATES.values() if a.state is None}
    assert kept == set(DEFINED) | {"count", "first", "last"}
    assert {a.name for a in AGGREGATES.values() if a.state is not None} == set(OF_ROWS)
    assert not set(AGGREGATES) & set(CALLED) and set(SYNONYMS.values()) <= set(AGGREGATES)


def _case(name: str, seed: int) -> Case:
    rng = random.Random(f"{name} {seed}")
    grammar, row = Grammar(rng), AGGREGATES[name]
    source = rng.choice(("Sa [RANGE 4]", "Sa [ROWS 5]", "Sa [RANGE 5 SLIDE 2]", "Sa [PARTITION BY k ROWS 2]", "Sa"))
    one_stream = not row.passes_nulls or rng.random() < 0.7
    columns = [Column(f"s.{column}", type_) for column, type_ in STREAMS["Sa"]]
    if not one_stream:
        source, columns = "Rel AS r, Sa [RANGE 5]", [*columns, Column("r.a", Type.INTEGER), Column("r.t", Type.TEXT)]
    signatures = [
        s for types in ([Type.INTEGER] * 2, [Type.FLOAT] * 2, [Type.TEXT, Type.FLOAT], [Type.BOOLEAN] * 2)
        for s in [row.resolve(types[: row.values])] if s is not None
    ]  # fmt: skip
    # The sum of DECIMALs takes INTEGER, too.
    taken = [[Type.INTEGER if t.kind == "DECIMAL" else t for t in s.args] for s in signatures]
    calls = [grammar.call_of(row, rng.choice(taken), columns, one_stream) for _ in range(2)]
    by = rng.choice((" GROUP BY s.k", "", " GROUP BY s.k"))
    named = f"{source} AS s" if one_stream or "Rel" in source else source
    query = f"SELECT {', '.join(f'{c} AS c{i}' for i, c in enumerate(calls))} FROM {named}{by}"
    names = ["Sa", "Rel"] if "Rel" in source else ["Sa"]
    case = Case(tuple(map(declaration, names)), query, random_feed(rng, names, 20))
    bind_case(case)  # a query that is refused would show nothing
    return case


@pytest.mark.parametrize(
    "name", sorted(a.name for a in AGGREGATES.values() if a.state is not None or a.kept_as != a.name)
)
def test_an_aggregate_is_that_of_the_rows_present(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, batch_size in enumerate((1, 2, 7, 1000)):
        check(_case(name, seed), batch_size=batch_size)
    # Rows are few up to here, and many behind.
    monkeypatch.setattr(sorting, "_FEW", 2)
    for seed, batch_size in enumerate((1, 1000), 4):
        check(_case(name, seed), batch_size=batch_size)


@pytest.mark.parametrize("name", ["first", "last"])
def test_first_and_last_pass_over_nulls_when_told_so(name: str) -> None:
    for seed in range(12):
        check(_case(name, seed), batch_size=random.Random(seed).choice((1, 2, 7, 1000)))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("FIRST(w, 2)", (10, 20)),
        ("LAST(v, 2)", (2, None)),
        ("MIN(DISTINCT v, 5)", (1, 2)),
        ("MAX(t, 2)", ("c", "b")),
        ("ARG_MAX(v, w, 1)", (2,)),
        ("ARRAY_AGG(v) IGNORE NULLS", (1, 2, 2)),
    ],
)
def test_one_argument_more_asks_for_so_many_values(call: str, value: tuple[Any, ...]) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, w INTEGER, t TEXT, b BOOLEAN)")
        query = db.query(f"SELECT {call} FROM S [RANGE 10]")
        db.push("S", ROWS, ts=[1, 1, 1, 1])
        db.advance(2)
        assert query.snapshot() == [(list(value),)]


# --------------------------------------------------------------------------------------------------- what is exact


@pytest.mark.parametrize(("share", "place"), [("0.1", 1), ("0.7", 7), ("1", 10), ("0", 1), ("0.55", 6)])
def test_a_percentage_is_the_decimal_that_was_written(share: str, place: int) -> None:
    state = AGGREGATES["quantile_disc"].state
    assert state is not None
    values = state(Settings(parameters=(float(share),)))
    for value in range(1, 11):
        values.add(value)
    assert values.result() == place


# --------------------------------------------------------------------------------------------------------- how it reads


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("MEDIAN(t)", "MEDIAN does not take TEXT"),
        ("QUANTILE_CONT(v, 2)", "a percentage is a number from 0 to 1"),
        ("QUANTILE_CONT(v, w)", "argument 2 of QUANTILE_CONT must be a literal"),
        ("PERCENTILE_CONT(0.5)", "PERCENTILE_CONT takes one value WITHIN GROUP"),
        ("PERCENTILE_CONT(0.5 ORDER BY v)", "takes no ORDER BY inside"),
        ("SUM(v ORDER BY w)", "SUM takes no ORDER BY inside"),
        ("SUM(v) WITHIN GROUP (ORDER BY w)", "SUM takes no WITHIN GROUP"),
        ("STRING_AGG(DISTINCT t, '-' ORDER BY v)", "the order can only be that of the values"),
        ("STRING_AGG(v)", "STRING_AGG does not take INTEGER"),
        ("MAX(v, w)", "argument 2 of MAX must be a literal"),
        ("FIRST(v, 0)", "the number of values is from 1 to 1,000,000"),
        ("CORR(v)", "CORR takes 2 arguments, not 1"),
        ("MODE(v) WITHIN GROUP (ORDER BY v)", "MODE takes no WITHIN GROUP"),
        ("ARG_MIN(DISTINCT v, w)", "ARG_MIN takes no DISTINCT"),
        ("SUM(v) RESPECT NULLS", "SUM passes over NULLs"),
        ("FIRST(v) FILTER (WHERE b)", "FILTER stands behind an aggregate that passes over NULLs"),
        ("LENGTH(t ORDER BY v)", "LENGTH is no aggregate and takes no ORDER BY"),
    ],
)
def test_a_wrong_call_is_told_when_the_query_is_read(call: str, told: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, w INTEGER, t TEXT, b BOOLEAN)")
        with pytest.raises(minidsms.CqlError, match=re.escape(told)):
            db.query(f"SELECT {call} FROM S [RANGE 5]")


@pytest.mark.parametrize("call", ["FIRST(v) IGNORE NULLS", "FIRST(v IGNORE NULLS)", "FIRST_N(v, 1) IGNORE NULLS"])
def test_a_filter_stands_behind_what_says_that_nulls_do_not_count(call: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, b BOOLEAN)")
        query = db.query(f"SELECT RSTREAM({call} FILTER (WHERE b) AS x) FROM S [RANGE 5]")
        db.push("S", [(1, False), (None, True), (2, True), (3, True)], ts=1)
        db.advance(1)
        assert [c.row for c in query.fetch()] == [(2,) if call.startswith("FIRST(") else ([2],)]


def test_words_of_an_order_are_names_elsewhere() -> None:
    with minidsms.connect() as db:
        db.execute(
            "CREATE STREAM S (order INTEGER, asc INTEGER, desc INTEGER, nulls INTEGER, within INTEGER, ignore TEXT)"
        )
        query = db.query(
            "SELECT RSTREAM(STRING_AGG(ignore ORDER BY desc DESC NULLS FIRST, asc), MAX(order) AS asc, MIN(nulls) desc,"
            " SUM(within) ignore) FROM S [RANGE 5]"
        )
        db.push("S", [(1, 2, 3, 4, 5, "a"), (1, 2, 4, 4, 5, "b")], ts=[1, 1])
        db.advance(1)
        assert [c.row for c in query.fetch()] == [("b,a", 1, 4, 10)]


def test_a_join_needs_an_order_for_texts_put_together() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, t TEXT)")
        joined = "FROM S [RANGE 5] AS a, S [RANGE 5] AS b WHERE a.k = b.k"
        with pytest.raises(minidsms.CqlError, match="needs the arrival order of one windowed stream"):
            db.query(f"SELECT STRING_AGG(a.t) {joined}")
        db.query(f"SELECT STRING_AGG(a.t ORDER BY b.k) {joined}")


def test_explain_shows_the_call_as_written() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, t TEXT)")
        text = "SELECT STRING_AGG(t, '-' ORDER BY v DESC), QUANTILE_DISC(v, 0.5) FROM S [RANGE 5]"
        plan = str(db.execute(f"EXPLAIN {text}"))
        assert "STRING_AGG(t, '-' ORDER BY v DESC)" in plan and "QUANTILE_DISC(v, 0.5)" in plan


# ------------------------------------------------------------------------------------------------------------ the page

PAGE = Path(__file__).parents[2] / "docs" / "aggregates.md"
WRITTEN_OUT = {
    "earliest_by_offset": "FIRST(..) IGNORE NULLS",
    "latest_by_offset": "LAST(..) IGNORE NULLS",
    **dict.fromkeys(("json_agg", "jsonb_agg"), "TO_JSON(ARRAY_AGG(..))"),
    **dict.fromkeys(("json_object_agg", "jsonb_object_agg"), "TO_JSON(MAP_FROM_LISTS(ARRAY_AGG(..), ARRAY_AGG(..)))"),
}
BEGIN, END = "<!-- aggregates -->\n", "<!-- end of aggregates -->"


def _table() -> str:
    lines = ["| | of | gives | |\n|---|---|---|---|\n"]
    for row in AGGREGATES.values():
        call, value = row.example
        lines.append(f"| `{call}` | {row.takes} | `{value}` | {row.summary} |\n")
    names = {
        a: f"{b.upper()}(DISTINCT ..)" if a in OF_DIFFERENT else b.upper() for a, b in SYNONYMS.items()
    } | WRITTEN_OUT
    spellings = ", ".join(f"`{a.upper()}` is `{b}`" for a, b in names.items())
    return "".join(lines) + f"\nOther spellings: {spellings}.\n"


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_spellings_are_written_out_as_the_page_tells(name: str) -> None:
    arguments = ("t", "v") if "object" in name else ("v",)
    told = WRITTEN_OUT[name]
    for argument in arguments:
        told = told.replace("(..)", f"({argument})", 1)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, t TEXT)")
        both = [db.query(f"SELECT {call} FROM S [ROWS 3]") for call in (f"{name}({', '.join(arguments)})", told)]
        db.push("S", [(None, "a"), (2, "b"), (1, "c"), (None, "d")], ts=[1, 2, 3, 4])
        db.advance(4)
        assert list(both[0].fetch()) == list(both[1].fetch())


def test_the_page_has_every_aggregate_with_its_example(rewrite: bool) -> None:
    text = PAGE.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if rewrite:
        PAGE.write_text(text[:start] + _table() + text[end:])
        return
    assert text[start:end] == _table(), "pytest --rewrite writes the page's table again"
