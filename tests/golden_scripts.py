"""Golden scripts: what is declared, what is fed, what is expected, instant by instant.

    stream S(k TEXT, v INTEGER)
    query  SELECT ISTREAM(k, SUM(v)) FROM S [RANGE 2] GROUP BY k
    feed   S @1 a,10   @2 a,5   @4 a,1
    expect @1 +a,10    @2 +a,15  @3 +a,5  @4 +a,1

A directive is a word at the start of a line; indented lines continue it, `#` begins a comment. `case TITLE` begins a
case with a connection of its own; what stands before the first case belongs to all of them.

    options name=value ..            of the connection
    stream|relation|view ..          the declaration, without CREATE
    do STATEMENT                     any other statement
    query CQL                        one in a case; before it or after it may stand anything
    feed NAME @1 a,10 b,5 @2 ..      rows of a stream; of a relation with a sign, +a,10 or -a,10; in one push;
                                     `@3..7 a,1` is the row at each of these instants
    advance [STREAM] @5              a heartbeat
    expect @1 +a,10 -b,5 @2 ..       every change since the last expect, or `nothing`
    fails @3 REASON                  the query fails at the instant, for a reason that contains these words
    refused WORDS                    the directive before it is refused with an error that contains these words
    snapshot a,10 b,5                the relation's rows now, or `nothing`
    kind, columns, expanded, plan    what the query is: stream or relation, its columns, its text, its logical plan
    rules                            its logical plan as bound, and after each rule that changed it
    running                          its operators with what each adapts, then the changes of plan so far

Values are written as the column's type wants them: 10, 1.5, true, NULL, a bare word or 'a text'; instants as ticks or
as a quoted ISO time. Before the last expect of a case there is a heartbeat at the greatest instant seen (docs/semantics
T4).

Invariant: answers are compared as docs/semantics "Comparing answers" says: netted per instant, order inside one of no
meaning. `rewritten` changes nothing but the directives that state an outcome.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from minidsms.connection import connect
from minidsms.cql.binder import bind
from minidsms.cql.errors import Error, QueryError
from minidsms.cql.parser import parse_query
from minidsms.cql.times import iso_ticks
from minidsms.elements import MIN_INSTANT, Schema, Type
from minidsms.query import Change, Query
from minidsms.testing.compare import Netted, canonical, netted, shown
from minidsms.testing.definition import answer
from minidsms.testing.history import Failure, History

OUTCOMES = ("expect", "fails", "refused", "snapshot", "kind", "columns", "expanded", "plan", "rules", "running")
ACTIONS = ("options", "stream", "relation", "view", "do", "query", "feed", "advance")

_QUOTED = r"'[^']*(?:''[^']*)*'|\"[^\"]*(?:\"\"[^\"]*)*\""
_TOKEN = re.compile(rf"(?:{_QUOTED}|[^\s'\"])+")
_VALUE = re.compile(rf"({_QUOTED}|[^,'\"]*)(?:,|$)")
_BARE = re.compile(r"[\w.:/-]+")
_COUNTED = re.compile(r"   \[in .*\]$| \[drops [^]]*\]| \[cost [^]]*\]|: [\d,]+ tuples, [\d,]+ bytes")
"""Figures of EXPLAIN ANALYZE."""
_WIDTH = 110

Row = tuple[Any, ...]


class ScriptError(ValueError):
    """A golden script that cannot be read; the message names the line."""


@dataclass(frozen=True)
class Directive:
    """word: what is to be done.  text: the rest, lines kept.  first, last: its lines, from 0, last exclusive."""

    word: str
    text: str
    first: int
    last: int


@dataclass(frozen=True)
class Script:
    """One case."""

    title: str
    directives: tuple[Directive, ...]


@dataclass(frozen=True)
class Outcome:
    """What a directive stated, and what came out: as text, and whether the two agree."""

    directive: Directive
    actual: str
    agrees: bool


# --------------------------------------------------------------------------------------------------------- reading


def parse_scripts(text: str, title: str = "") -> list[Script]:
    """The cases of a file; one, under the given title, where it has no `case`."""
    shared: list[Directive] = []
    scripts: list[tuple[str, list[Directive]]] = []
    for directive in _directives(text):
        if directive.word == "case":
            scripts.append((directive.text.strip(), []))
        else:
            (scripts[-1][1] if scripts else shared).append(directive)
    if not scripts:
        return [Script(title, tuple(shared))]
    return [Script(name, (*shared, *own)) for name, own in scripts]


def _directives(text: str) -> Iterator[Directive]:
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.strip() and not line[0].isspace() and line[0] != "#"]
    for i, start in enumerate(starts):
        end = start + 1
        limit = starts[i + 1] if i + 1 < len(starts) else len(lines)
        while end < limit and lines[end][:1].isspace() and lines[end].strip():
            end += 1
        word, _, rest = lines[start].partition(" ")
        if word not in (*OUTCOMES, *ACTIONS, "case"):
            raise ScriptError(f"line {start + 1}: no directive {word!r}")
        yield Directive(word, "\n".join([rest.strip(), *lines[start + 1 : end]]), start, end)


def _instants(text: str) -> Iterator[tuple[int | None, str]]:
    """(instant, row) of `@1 a,10 b,5 @2 c,1`; rows before any instant have None. `@3..7` are all of these instants."""
    instants: Sequence[int | None] = (None,)
    for token in _TOKEN.findall(text):
        if token[0] == "@":
            first, dots, last = token[1:].replace("_", "").partition("..")
            try:
                instants = range(int(first), int(last if dots else first) + 1)
            except ValueError:
                raise ScriptError(f"{token!r} is no instant") from None
        else:
            yield from ((ts, token) for ts in instants)


def _row(text: str, schema: Schema, tick_ns: int) -> Row:
    values: list[str] = []
    at = 0
    while at <= len(text):
        match = _VALUE.match(text, at)
        if match is None:
            raise ScriptError(f"{text!r} is no row")
        values.append(match.group(1))
        if match.end() == len(text) and text[-1:] != ",":
            break
        at = match.end()
    if len(values) != len(schema):
        raise ScriptError(f"the row {text!r} has {len(values)} values, and the columns are: {schema}")
    return tuple(_value(value, type_, tick_ns) for value, type_ in zip(values, schema.types))


def _value(text: str, type_: Type, tick_ns: int) -> Any:
    if text == "NULL":
        return None
    if text[:1] in ("'", '"'):
        plain = text[1:-1].replace(text[0] * 2, text[0])
        return iso_ticks(plain, tick_ns) if type_ is Type.TIMESTAMP else plain
    if type_ is Type.TEXT:
        return text
    if type_ is Type.BOOLEAN:
        if text in ("true", "false"):
            return text == "true"
    else:
        try:
            return float(text) if type_ is Type.FLOAT else int(text.replace("_", ""))
        except ValueError:
            pass
    raise ScriptError(f"{text!r} is no {type_}")


# --------------------------------------------------------------------------------------------------------- writing


def _written(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if _BARE.fullmatch(value) and value != "NULL":
        return value
    return "'" + value.replace("'", "''") + "'"


def _written_row(row: Row) -> str:
    return ",".join(map(_written, row))


def _written_changes(changes: Sequence[Change]) -> str:
    """Changes netted per instant, deletions first, then by their text."""
    counts: dict[int, Counter[Row]] = {}
    for ts, sign, row in changes:
        counts.setdefault(ts, Counter())[row] += sign
    parts: list[str] = []
    for ts in sorted(counts):
        rows = sorted((n > 0, _written_row(row), n) for row, n in counts[ts].items() if n)
        if rows:
            written = [f"{'+' if n > 0 else '-'}{row}" for _, row, n in rows for _ in range(abs(n))]
            parts.append(f"@{ts} {' '.join(written)}")
    return "  ".join(parts) or "nothing"


def _wrapped(word: str, text: str) -> list[str]:
    """The lines of a directive; long ones are cut between instants."""
    head = f"{word:<6} "
    if "\n" in text:
        return [word, *textwrap.indent(text, "    ").splitlines()]
    lines = [head]
    for part in text.split("  "):
        if len(lines[-1]) > len(head) and len(lines[-1]) + len(part) > _WIDTH:
            lines.append(" " * len(head))
        lines[-1] += part + "  "
    return [line.rstrip() for line in lines]


# --------------------------------------------------------------------------------------------------------- running


class _Run:
    """One case on one connection."""

    def __init__(self, script: Script, options: dict[str, Any], by_definition: bool) -> None:
        given = dict(options)
        for directive in script.directives:
            if directive.word == "options":
                pairs = (pair.partition("=") for pair in directive.text.split())
                given.update({name: int(v) if v.isdigit() else v for name, _, v in pairs})
        self.script = script
        self.db = connect(**given)
        self.query: Query | None = None
        self.text = ""
        self.outcomes: list[Outcome] = []
        self.history = History()
        self.is_comparable = by_definition
        self.waiting: list[Change] = []
        self.all: list[Change] = []
        self.failure: QueryError | None = None
        self.failure_expected = False
        self.until = MIN_INSTANT

    def run(self) -> list[Outcome]:
        directives = self.script.directives
        expects = [i for i, d in enumerate(directives) if d.word in ("expect", "fails")]
        with self.db:
            for i, directive in enumerate(directives):
                after = directives[i + 1] if i + 1 < len(directives) else None
                if directive.word in ACTIONS:
                    self._act(directive, after if after is not None and after.word == "refused" else None)
                elif directive.word != "refused":
                    if expects and i == expects[-1]:
                        self._close()
                    self._state(directive)
            self._drain()
            if self.failure is not None and not self.failure_expected:
                raise AssertionError(f"{self.script.title}: the query failed: {self.failure}")
            if self.is_comparable and self.query is not None:
                self._compare_with_definition()
        return self.outcomes

    # ------------------------------------------------------------------------------------------------- actions

    def _act(self, directive: Directive, refused: Directive | None) -> None:
        if refused is None:
            self._carry_out(directive)
            return
        try:
            self._carry_out(directive)
        except Error as error:
            message = " ".join(str(error).split())
            reason = str(error).splitlines()[0].removeprefix("error: ")
            self.outcomes.append(Outcome(refused, reason, " ".join(refused.text.split()) in message))
        else:
            self.outcomes.append(Outcome(refused, "nothing: it was carried out", False))

    def _carry_out(self, directive: Directive) -> None:
        text = directive.text
        match directive.word:
            case "stream" | "relation" | "view":
                self.db.execute(f"CREATE {directive.word.upper()} {text}")
                # What LATE DROP leaves out is not in the history that the definition is given.
                self.is_comparable &= "LATE" not in text.upper().split()
            case "do":
                self.db.execute(text)
            case "query":
                self.text = text
                # A late query sees the present, not the past (T7); the definition starts with the history.
                gone = any(sign < 0 for changes in self.history.relations.values() for _, sign, _ in changes)
                self.is_comparable &= not self.history.streams and not gone
                self.query = self.db.query(text)
            case "feed":
                self._feed(text)
            case "advance":
                *names, at = text.split()
                ts = int(at.removeprefix("@").replace("_", ""))
                self.db.advance(ts, names[0] if names else None)
                self.until = max(self.until, ts)

    def _feed(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        catalog = self.db.catalog
        key = name.lower()
        is_relation = key in catalog.relations
        declared: Any = catalog.relations[key] if is_relation else catalog.streams[key]
        rows: list[Row] = []
        instants: list[int | None] = []
        signs: list[int] = []
        for ts, token in _instants(rest):
            if is_relation:
                if token[0] not in "+-":
                    raise ScriptError(f"a change of a relation begins with + or -: {token!r}")
                signs.append(1 if token[0] == "+" else -1)
                token = token[1:]
            rows.append(_row(token, declared.schema, self.db.tick_ns))
            instants.append(ts)
        given = None if None in instants else instants
        if is_relation:
            self.db.push(name, rows, ts=given, sign=signs)
            changes = self.history.relations.setdefault(key, [])
            changes.extend((ts, s, r) for ts, s, r in zip(instants, signs, rows) if ts is not None)
        else:
            self.db.push(name, rows, ts=given)
            by = declared.timestamp_by
            at = instants if given is not None or by is None else [row[by] for row in rows]
            elements = self.history.streams.setdefault(key, [])
            elements.extend((ts, r) for ts, r in zip(at, rows) if ts is not None)
            elements.sort(key=lambda element: element[0])
            self.is_comparable &= len(elements) > 0 and None not in at
        greatest = self.db.stream_input(name).greatest_ts
        self.until = max(self.until, MIN_INSTANT if greatest is None else greatest)

    def _close(self) -> None:
        if self.until > MIN_INSTANT:
            self.db.advance(self.until)

    # ------------------------------------------------------------------------------------------------ outcomes

    def _drain(self) -> None:
        if self.query is None or self.failure is not None:
            return
        try:
            while changes := self.query.fetch():
                self.waiting += changes
                self.all += changes
        except QueryError as error:
            self.failure = error

    def _running(self, directive: Directive) -> Query:
        if self.query is None:
            raise ScriptError(f"line {directive.first + 1}: {directive.word} needs a query before it")
        return self.query

    def _state(self, directive: Directive) -> None:
        query = self._running(directive)
        text, tick_ns = directive.text, self.db.tick_ns
        match directive.word:
            case "expect":
                self._drain()
                actual = _written_changes(self.waiting)
                agrees = _expected_changes(text, query.schema, tick_ns) == netted(self.waiting)
                self.waiting = []
            case "fails":
                self._drain()
                actual = "nothing: it runs" if self.failure is None else f"@{self.failure.ts} {self.failure.reason}"
                at, _, reason = text.partition(" ")
                agrees = self.failure is not None and at == f"@{self.failure.ts}" and reason in self.failure.reason
                self.failure_expected = True
            case "snapshot":
                rows = query.snapshot()
                actual = "  ".join(sorted(map(_written_row, rows))) or "nothing"
                agrees = _expected_rows(text, query.schema, tick_ns) == Counter(map(canonical, rows))
            case "plan" | "rules" | "running":
                shows = {"plan": _logical_plan, "rules": _after_each_rule, "running": _running_plan}
                actual = shows[directive.word](query)
                agrees = textwrap.dedent(text.removeprefix("\n")).strip() == actual
            case _:
                actual = {"kind": query.kind, "columns": str(query.schema), "expanded": _one_line(query.expanded)}[
                    directive.word
                ]
                agrees = _one_line(text) == actual
        self.outcomes.append(Outcome(directive, actual, agrees))

    def _compare_with_definition(self) -> None:
        """The engine's whole answer beside the one by definition."""
        assert self.query is not None
        node = bind(parse_query(self.text), self.db.catalog, self.text).node
        failed_at = None
        try:
            changes = answer(node, self.history, self.until)
        except Failure as failure:
            changes, failed_at = failure.changes, failure.ts
        defined, answered = netted(changes), netted(self.all)
        for ts in sorted({*defined, *answered}):
            assert defined.get(ts) == answered.get(ts), (
                f"{self.script.title}: at instant {ts}\n  by definition {shown(defined.get(ts))}"
                f"\n  the engine    {shown(answered.get(ts))}"
            )
        assert failed_at == (None if self.failure is None else self.failure.ts), (
            f"{self.script.title}: by definition it fails at {failed_at}, in the engine {self.failure}"
        )


def _expected_changes(text: str, schema: Schema, tick_ns: int) -> Netted:
    if text.strip() == "nothing":
        return {}
    changes = []
    for ts, token in _instants(text):
        if ts is None or token[0] not in "+-":
            raise ScriptError(f"expected is `@instant +row` or `-row`, and this is {token!r}")
        changes.append((ts, 1 if token[0] == "+" else -1, _row(token[1:], schema, tick_ns)))
    return netted(changes)


def _expected_rows(text: str, schema: Schema, tick_ns: int) -> Counter[Row]:
    if text.strip() == "nothing":
        return Counter()
    return Counter(canonical(_row(token, schema, tick_ns)) for token in _TOKEN.findall(text))


def _logical_plan(query: Query) -> str:
    """The logical plan; a chain of nodes on one line, root first, else an indented tree."""
    lines = query.explain().splitlines()
    start = lines.index("Logical plan") + 1
    end = next((i for i in range(start, len(lines)) if not lines[i].startswith(" ")), len(lines))
    tree = textwrap.dedent("\n".join(line.rstrip() for line in lines[start:end]))
    nodes = tree.splitlines()
    if all(line == "  " * depth + line.strip() for depth, line in enumerate(nodes)):
        return " / ".join(line.strip() for line in nodes)
    return tree


def _after_each_rule(query: Query) -> str:
    """The logical plan as bound, then after each rule that changed it, each under the rule's name."""
    lines = query.explain(rules=True).splitlines()
    shown = lines[lines.index("Logical plan, as bound") : lines.index("Physical plan")]
    return "\n".join(line.removeprefix("Logical plan, ").rstrip() for line in shown)


def _running_plan(query: Query) -> str:
    """The operators, each over its parts, without what they counted; then every change of plan."""
    lines = query.explain(analyze=True).splitlines()
    root, *below = lines[lines.index("Physical plan") + 1 :]
    tree = [root, *itertools.takewhile(lambda line: line.startswith("    "), below)]
    shown = [_COUNTED.sub("", line.removeprefix("  ")).rstrip() for line in tree]
    return "\n".join([*shown, *(f"{d.technique}: {d.old_plan} -> {d.new_plan}" for d in query.decisions())])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def outcomes(script: Script, by_definition: bool = True, **options: Any) -> list[Outcome]:
    """Run a case and tell how each stated outcome came out. options: those of `connect`.

    by_definition: compare the whole answer with the one by definition as well, where the case can be told to it.
    """
    return _Run(script, options, by_definition).run()


def check(script: Script, **options: Any) -> int:
    """Run a case; AssertionError at the first outcome that differs. Returns how many were stated."""
    found = outcomes(script, **options)
    for outcome in found:
        d = outcome.directive
        assert outcome.agrees, (
            f"{script.title}: line {d.first + 1}: {d.word}\n  stated {_one_line(d.text)}\n  actual {outcome.actual}"
        )
    return len(found)


def rewritten(text: str, title: str = "") -> str:
    """The file with every outcome that differs replaced by what came out."""
    changed: dict[int, Outcome] = {}
    for script in parse_scripts(text, title):
        for outcome in outcomes(script, by_definition=False):
            if not outcome.agrees:
                changed[outcome.directive.first] = outcome
    return "\n".join(_replaced(text.splitlines(), changed.values())) + "\n" if changed else text


def _replaced(lines: list[str], changed: Iterable[Outcome]) -> list[str]:
    for outcome in sorted(changed, key=lambda o: -o.directive.first):
        d = outcome.directive
        lines[d.first : d.last] = _wrapped(d.word, outcome.actual)
    return lines
