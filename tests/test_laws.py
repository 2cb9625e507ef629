"""Laws of answers that need no oracle; for the definition and the engine alike (docs/design, "Reliability")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("minidsms.connection")

from minidsms.cql import syntax
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query
from minidsms.testing.compare import Answer, Netted, canonical, netted, run_definition, run_engine
from minidsms.testing.feeds import Advance, Push, Step, random_feed
from minidsms.testing.generators import Case, declaration, with_feed
from minidsms.testing.grammar import STREAMS, Column, Grammar, Options
from minidsms.testing.history import Row

Runner = Callable[[Case], Answer]
PLAIN = Options(views=False, derived=False, relations=False, extreme=False, times=False)
WITHOUT_NOW = replace(PLAIN, now=False, derived=True)

law = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
randomness = st.randoms(use_true_random=False)
on_both = pytest.mark.parametrize("run", [run_definition, run_engine], ids=["definition", "engine"])


def fed(rng: Random, *names: str) -> Case:
    """A case without a query: the streams and what they receive."""
    return Case(tuple(map(declaration, names)), "", random_feed(rng, list(names), 10, may_be_extreme=False))


def answered(run: Runner, case: Case, query: str) -> Netted:
    """The netted answer to another query over the same feed."""
    return netted(run(replace(case, query=query)).changes)


def added(*answers: Netted) -> Netted:
    """Answers united as bags, instant by instant; what cancels is absent."""
    total: Netted = {}
    for answer in answers:
        for ts, counts in answer.items():
            instant = total.setdefault(ts, Counter())
            for row, n in counts.items():
                instant[row] += n
    kept = {ts: Counter({row: n for row, n in counts.items() if n}) for ts, counts in total.items()}
    return {ts: counts for ts, counts in kept.items() if counts}


@on_both
@law
@given(rng=randomness)
def test_p_and_not_p_and_p_is_null_partition_an_answer(run: Runner, rng: Random) -> None:
    grammar = Grammar(rng, PLAIN)
    condition = grammar.predicate([Column(f"s.{name}", type_) for name, type_ in STREAMS["Sa"]], 2, 0)
    query = f"SELECT s.k, s.v, s.t FROM Sa {grammar.window('k')} AS s"
    case = fed(rng, "Sa")
    parts = [f"{query} WHERE {p}" for p in (condition, f"NOT ({condition})", f"({condition}) IS NULL")]
    assert added(*(answered(run, case, part) for part in parts)) == answered(run, case, query)


@on_both
@law
@given(rng=randomness, length=st.integers(1, 6))
def test_a_range_over_a_union_is_the_union_of_ranges(run: Runner, rng: Random, length: int) -> None:
    case = fed(rng, "Sb", "Sc")

    def united(window: str) -> str:
        return f"SELECT b.k AS k FROM Sb {window} AS b UNION ALL SELECT c.k AS k FROM Sc {window} AS c"

    over_union = f"SELECT u.k AS k FROM (RSTREAM ({united('[NOW]')})) [RANGE {length}] AS u"
    assert answered(run, case, over_union) == answered(run, case, united(f"[RANGE {length}]"))


@on_both
@law
@given(rng=randomness)
def test_rstream_is_the_accumulation_of_istream_minus_dstream(run: Runner, rng: Random) -> None:
    query, _ = Grammar(rng, replace(PLAIN, outputs=False)).body(depth=1, types=None, spread=False)
    case = fed(rng, *(name for name in STREAMS if name in query))
    whole, entered, left = (answered(run, case, f"{op} ({query})") for op in ("RSTREAM", "ISTREAM", "DSTREAM"))
    for tau, rows in whole.items():
        held: Counter[Row] = Counter()
        for ts in (t for t in entered if t <= tau):
            held.update(entered[ts])
        for ts in (t for t in left if t <= tau):
            held.subtract(left[ts])
        assert rows == +held
        assert min(held.values()) >= 0


@on_both
@law
@given(rng=randomness, factor=st.integers(2, 1000))
def test_stretching_time_changes_nothing_else(run: Runner, rng: Random, factor: int) -> None:
    grammar = Grammar(rng, WITHOUT_NOW)
    query = grammar.query()
    case = replace(fed(rng, *(name for name in STREAMS if name in query)), query=query)
    stretched = replace(with_feed(case, stretched_feed(case.feed, factor)), query=stretched_query(query, factor))
    expected = {ts * factor: counts for ts, counts in netted(run(case).changes).items()}
    assert netted(run(stretched).changes) == expected


def stretched_feed(feed: Sequence[Step], factor: int) -> tuple[Step, ...]:
    """Every timestamp, multiplied."""
    return tuple(
        Advance(step.ts * factor, step.stream)
        if isinstance(step, Advance)
        else Push(step.name, tuple((ts * factor, sign, row) for ts, sign, row in step.rows))
        for step in feed
    )


def stretched_query(text: str, factor: int) -> str:
    """Every length of time in a window, multiplied; numbers of rows stay, and the frames of OVER."""

    def stretch(node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(map(stretch, node))
        if isinstance(node, syntax.Duration):
            return replace(node, number=str(int(node.number) * factor))
        if not is_dataclass(node) or isinstance(node, type | syntax.Frame):
            return node
        return replace(node, **{f.name: stretch(getattr(node, f.name)) for f in fields(node) if f.name != "span"})

    return print_query(stretch(parse_query(text)))


@on_both
@law
@given(rng=randomness)
def test_istream_of_an_unbounded_window_is_rstream_of_now(run: Runner, rng: Random) -> None:
    grammar = Grammar(rng, PLAIN)
    columns = [Column(f"s.{name}", type_) for name, type_ in STREAMS["Sa"]]
    shown = ", ".join(f"{grammar.expression(grammar.type(), columns, 1)} AS c{i}" for i in range(2))
    condition = grammar.predicate(columns, 1, 0)
    case = fed(rng, "Sa")
    inserted = answered(run, case, f"SELECT ISTREAM({shown}) FROM Sa [RANGE UNBOUNDED] AS s WHERE {condition}")
    assert inserted == answered(run, case, f"SELECT RSTREAM({shown}) FROM Sa [NOW] AS s WHERE {condition}")


def test_rows_are_written_apart_by_type() -> None:
    assert len({canonical((1,)), canonical((1.0,)), canonical((True,)), canonical(("1",))}) == 4
