"""The engine against the definition: one case, every closed instant.

Two answers are equal when at every closed instant the net multiset of (sign, row) is equal (docs/semantics, "Comparing
answers"); floats may differ by rounding. A query that fails must fail at the same instant, with equal answers before.
Only the public API of the engine is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from minidsms.cql import syntax
from minidsms.cql.binder import Bound, bind
from minidsms.cql.catalog import Catalog, RelationDef, StreamDef, ViewDef
from minidsms.cql.errors import CqlError, QueryError
from minidsms.cql.parser import parse, parse_query
from minidsms.elements import Field, Schema
from minidsms.testing.definition import answer_and_end, leaves_failures_open
from minidsms.testing.feeds import Push, Step
from minidsms.testing.generators import Case
from minidsms.testing.history import Change, Failure, Row, Value
from minidsms.testing.switching import Before, forced_switching, in_turn, switching
from minidsms.testing.user_definitions import USER_AGGREGATES, USER_FUNCTIONS, create_all

Netted = dict[int, Counter[Row]]
"""Per instant, how often each row entered less how often it left; rows that cancel are absent."""


@dataclass(frozen=True)
class Answer:
    """What came out: changes in order of ts, the instant of failure if there was one, and the relation at the end.

    may_fail: at any instant up to `failed_at`, with no answer from there on (docs/semantics R4).
    """

    changes: tuple[Change, ...]
    failed_at: int | None = None
    reason: str = ""
    snapshot: tuple[Row, ...] | None = field(default=None, compare=False)
    may_fail: bool = field(default=False, compare=False)

    @cached_property
    def netted(self) -> Netted:
        """The changes netted per instant, not to be changed."""
        return netted(self.changes)


def catalog_of(case: Case) -> Catalog:
    """The case's declarations, read without the engine."""
    catalog = Catalog(functions=dict(USER_FUNCTIONS), aggregates=dict(USER_AGGREGATES))
    for text in case.declarations:
        for statement in parse(text):
            match statement:
                case syntax.CreateStream(name=name, columns=columns):
                    catalog.streams[name.lower()] = StreamDef(name, _schema(columns))
                case syntax.CreateRelation(name=name, columns=columns):
                    catalog.relations[name.lower()] = RelationDef(name, _schema(columns))
                case syntax.CreateView(name=name, query=query, columns=names):
                    catalog.views[name.lower()] = ViewDef(name, query, text, names)
                case syntax.SetSetting(name="rstream", value=value):
                    catalog.rstream_ticks = value == "ticks"
                case _:
                    raise TypeError(f"no declaration: {text}")
    return catalog


def _schema(columns: Iterable[syntax.ColumnDef]) -> Schema:
    return Schema(tuple(Field(c.name, c.type) for c in columns))


def bind_case(case: Case) -> Bound:
    """What the case's query means. Raises CqlError."""
    return bind(parse_query(case.query), catalog_of(case), case.query)


_MOST_REMEMBERED = 256
_remembered: dict[str, Answer] = {}
"""The last answers by definition, by their cases as text: tests ask for one under each of their settings."""


def run_definition(case: Case) -> Answer:
    """The answer by definition up to the last closed instant. Raises CqlError where the query is refused."""
    told = repr(case)
    if told not in _remembered:
        found = _defined(case)
        while len(_remembered) >= _MOST_REMEMBERED:
            del _remembered[next(iter(_remembered))]
        _remembered[told] = found
    return _remembered[told]


def _defined(case: Case) -> Answer:
    bound = bind_case(case)
    node, until = bound.node, case.closed()
    history, may_fail = case.history(bound.streams), leaves_failures_open(node)
    try:
        changes, end = answer_and_end(node, history, until)
    except Failure as failure:
        return Answer(tuple(failure.changes), failure.ts, failure.reason, may_fail=may_fail)
    if node.kind != "relation":
        return Answer(tuple(changes), may_fail=may_fail)
    if end.tau < until:
        end.come(until)
    return Answer(tuple(changes), snapshot=tuple(end.rows(node)), may_fail=may_fail)


def run_engine(case: Case, rows_per_push: int | None = None, fetch_each: bool = True, **options: Any) -> Answer:
    """The engine's answer. options: those of `connect`. Raises CqlError where the query is refused.

    rows_per_push: splits the feed's pushes.  fetch_each: fetch after every step rather than once.
    """
    return run_together([case], {}, rows_per_push, fetch_each, **options)[0]


def run_together(
    cases: Sequence[Case],
    dropped: Mapping[int, int],
    rows_per_push: int | None = None,
    fetch_each: bool = True,
    before: Before | None = None,
    forced_every: int | None = None,
    switch_seed: int | None = None,
    **options: Any,
) -> list[Answer]:
    """The engine's answers to the queries of cases that share their declarations and their feed, in one connection.

    dropped: which queries (0, 1, ..) are closed before which call of the feed; their answers end there.  before: is
    called before each call of the feed, and once after the last, with the connection, the number of the call and the
    running queries.
    forced_every: switch plans at every so many elements (`minidsms.testing.switching`).  switch_seed: switch
    sharing at random instants (`minidsms.testing.switching`).
    """
    from minidsms.connection import connect

    declarations, feed = cases[0].declarations, cases[0].feed
    before = in_turn(before, None if switch_seed is None else switching(switch_seed))
    if "scheduler" in options:
        # Slices are tiny here: only of less than a quantum there is nothing to choose.
        options.setdefault("quantum", 2)
    with connect(**options) as db, ExitStack() as forcing:
        if forced_every is not None:
            forcing.enter_context(forced_switching(db, forced_every))
        create_all(db)
        for declaration in declarations:
            db.execute(declaration)
        running: dict[int, _Listener] = {}
        for i, step in enumerate(feed):
            for n, case in enumerate(cases):
                if case.registered == i:
                    running[n] = _Listener(db.query(case.query))
                if dropped.get(n) == i and n in running:
                    running[n].drop()
            if before is not None:
                before(db, i, _running(running))
            for part in _parts(step, rows_per_push):
                _feed(db, part)
            for listener in running.values() if fetch_each else ():
                listener.fetch()
        if before is not None:
            before(db, len(feed), _running(running))
        return [running[n].answer(str(case)) for n, case in enumerate(cases)]


def _running(listeners: Mapping[int, _Listener]) -> list[Any]:
    return [listener.query for listener in listeners.values() if not listener.dropped]


class _Listener:
    """One registered query and what it has said so far."""

    def __init__(self, query: Any) -> None:
        self.query = query
        self.changes: list[Change] = []
        self.failure: QueryError | None = None
        self.dropped = False

    def fetch(self) -> bool:
        """Take what is new; whether there was anything."""
        if self.failure is not None or self.dropped:
            return False
        try:
            fetched = self.query.fetch()
        except QueryError as error:
            self.failure = error
            return False
        self.changes += [(c.ts, c.sign, tuple(c.row)) for c in fetched]
        return bool(fetched)

    def drop(self) -> None:
        """Close the query."""
        while self.fetch():
            pass
        self.query.close()
        self.dropped = True

    def answer(self, story: str) -> Answer:
        """All it has said, in the end."""
        while self.fetch():
            pass
        instants = [ts for ts, _, _ in self.changes]
        assert instants == sorted(instants), f"answers out of order: {self.changes}\n{story}"
        if self.failure is not None:
            return Answer(tuple(self.changes), self.failure.ts, self.failure.reason)
        has_rows = self.query.kind == "relation" and not self.dropped
        return Answer(tuple(self.changes), snapshot=tuple(self.query.snapshot()) if has_rows else None)


def _parts(step: Step, rows: int | None) -> Iterable[Step]:
    if not isinstance(step, Push) or rows is None:
        return (step,)
    return [Push(step.name, step.rows[i : i + rows]) for i in range(0, len(step.rows), rows)]


def _feed(db: Any, step: Step) -> None:
    if not isinstance(step, Push):
        db.advance(step.ts, step.stream)
        return
    rows = [row for _, _, row in step.rows]
    ts = [ts for ts, _, _ in step.rows]
    if step.name.lower() in db.catalog.relations:
        db.push(step.name, rows, ts=ts, sign=[sign for _, sign, _ in step.rows])
    else:
        db.push(step.name, rows, ts=ts)


def check(case: Case, rows_per_push: int | None = None, expected: Answer | None = None, **options: Any) -> str:
    """Compare engine and definition on a case: "agreed", or the reason why a query was refused.

    expected: the answer by definition, where it is known already. Raises AssertionError with a reproduction.
    """
    try:
        expected = expected or run_definition(case)
        actual = run_engine(case, rows_per_push, **options)
    except CqlError as error:
        return f"refused: {error.reason}"
    difference = difference_of(expected, actual)
    if difference:
        settings = ", ".join(f"{k}={v!r}" for k, v in {"rows_per_push": rows_per_push, **options}.items())
        raise AssertionError(f"{difference}\n\nwith {settings}\n{case}")
    return "agreed"


def check_together(cases: Sequence[Case], dropped: Mapping[int, int], **settings: Any) -> str:
    """Compare several queries of one connection with their definitions; those dropped amid the feed must not show.

    Returns and raises as `check` does.
    """
    try:
        expected = [run_definition(case) for case in cases]
        difference = difference_together(cases, dropped, expected, **settings)
    except CqlError as error:
        return f"refused: {error.reason}"
    assert not difference, difference
    return "agreed"


def difference_together(
    cases: Sequence[Case], dropped: Mapping[int, int], expected: Sequence[Answer], **settings: Any
) -> str:
    """Where the answers of several queries part from their definitions', in words; "" where they do not.

    What a dropped query has said until then must be a part of its definition's answer.
    """
    actual = run_together(cases, dropped, **settings)
    for n, case in enumerate(cases):
        difference = (
            difference_until_drop(expected[n], actual[n]) if n in dropped else difference_of(expected[n], actual[n])
        )
        if difference:
            others = "\n".join(f"-- beside {other.query}" for other in cases if other is not case)
            return f"{difference}\n\nwith {settings}, {dropped} dropped\n{case}\n{others}"
    return ""


def difference_until_drop(expected: Answer, actual: Answer) -> str:
    """Where the answer of a query that was dropped parts from its definition's before its last instant."""
    last = actual.changes[-1][0] if actual.changes else None
    if last is None or (expected.failed_at is not None and expected.failed_at <= last):
        return ""
    left, right = ({t: c for t, c in netted(a.changes).items() if t < last} for a in (expected, actual))
    at = next((t for t in sorted({*left, *right}) if left.get(t) != right.get(t)), None)
    return "" if at is None else f"a dropped query differs at {at}: expected {left.get(at)}, got {right.get(at)}"


def difference_of(expected: Answer, actual: Answer) -> str:
    """Where two answers part, in words; "" where they do not."""
    failed_at = actual.failed_at
    if expected.may_fail and failed_at is not None and (expected.failed_at is None or failed_at < expected.failed_at):
        expected = Answer(tuple(change for change in expected.changes if change[0] < failed_at), failed_at)
    left, right = expected.netted, actual.netted
    for ts in sorted({*left, *right}):
        if left.get(ts) != right.get(ts):
            # What came before a failure that the other answer has not seen is told as the failure it is.
            if any(a.failed_at is not None and a.failed_at <= ts for a in (expected, actual)):
                break
            return f"at instant {ts}\n  by definition {shown(left.get(ts))}\n  the engine    {shown(right.get(ts))}"
    if expected.failed_at != actual.failed_at:
        return (
            f"by definition {_failure(expected)}\nthe engine    {_failure(actual)}\n"
            f"its answers {list(actual.changes)}\nexpected {list(expected.changes)}"
        )
    if expected.snapshot is not None and actual.snapshot is not None:
        now, held = Counter(map(canonical, expected.snapshot)), Counter(map(canonical, actual.snapshot))
        if now != held:
            return f"the snapshot at the end\n  by definition {shown(now)}\n  the engine    {shown(held)}"
    return ""


def _failure(answer_: Answer) -> str:
    return "does not fail" if answer_.failed_at is None else f"fails at {answer_.failed_at}: {answer_.reason}"


def netted(changes: Iterable[Change]) -> Netted:
    """The changes netted per instant."""
    result: Netted = {}
    for ts, sign, row in changes:
        result.setdefault(ts, Counter())[canonical(row)] += sign
    for counts in result.values():
        for row in [r for r, n in counts.items() if n == 0]:
            del counts[row]
    return {ts: counts for ts, counts in result.items() if counts}


_PLAIN = frozenset((bool, int, str, type(None)))


def canonical(row: Iterable[Value]) -> Row:
    """The row's values written out: 1, 1.0 and TRUE differ; floats are rounded, for sums in another order are equal."""
    return tuple(_written(value) for value in row)


def _written(value: Value) -> str:
    if type(value) in _PLAIN:
        return repr(value)
    if isinstance(value, dict):
        value = tuple(value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    if not isinstance(value, float):
        return repr(value)
    return "0.0" if abs(value) < 1e-9 else repr(float(f"{value:.9g}"))


def shown(counts: Counter[Row] | None) -> str:
    """Netted rows, readable: +2 (1, 'a')."""
    if not counts:
        return "nothing"
    return ", ".join(f"{n:+d} ({', '.join(map(str, row))})" for row, n in sorted(counts.items(), key=repr))
