"""The grammar's callbacks: from tokens and finished parts to the nodes of the syntax tree.

Every method is called by the LALR parser when its rule is complete, with the rule's parts in order; an optional part
that is missing is None. Nothing here recurses: how deep a text may nest is for `check_tree` to say, not for the
interpreter's stack.

Invariant: a node's span runs from its first to its last character in the text, parentheses included.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

from lark import Token
from lark.visitors import Transformer

from minidsms.cql import syntax
from minidsms.cql.errors import CqlError
from minidsms.cql.lexer import MAX_NESTING
from minidsms.cql.syntax import Span
from minidsms.elements import Type

Part = Any
"""A token, a node, a list of either, or None."""

TYPES = {
    "INTEGER": Type.INTEGER,
    "INT": Type.INTEGER,
    "BIGINT": Type.INTEGER,
    "SMALLINT": Type.INTEGER,
    "FLOAT": Type.FLOAT,
    "DOUBLE": Type.FLOAT,
    "REAL": Type.FLOAT,
    "BOOLEAN": Type.BOOLEAN,
    "BOOL": Type.BOOLEAN,
    "TEXT": Type.TEXT,
    "STRING": Type.TEXT,
    "VARCHAR": Type.TEXT,
    "CHAR": Type.TEXT,
    "CHARACTER": Type.TEXT,
    "BYTE": Type.TEXT,
    "TIMESTAMP": Type.TIMESTAMP,
    "INTERVAL": Type.INTERVAL,
}
"""The names a type goes by."""
_SIZED_TYPES = frozenset({"VARCHAR", "CHAR", "CHARACTER", "TEXT", "STRING", "BYTE"})
SHOWN = ("streams", "relations", "queries", "views", "settings", "functions")
FORMATS = ("csv", "json", "parquet", "arrow")

MAX_INTEGER = 2**63 - 1
_DURATION = re.compile(r"([+-]?)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_COUNT = re.compile(r"[0-9]+")


def span_of(parts: Sequence[Part]) -> Span:
    """From the start of the first part that is there to the end of the last."""
    present = [p for p in parts if p is not None and p != []]
    return _span(present[0])[0], _span(present[-1])[1]


def _span(part: Part) -> Span:
    if isinstance(part, Token):
        return int(part.start_pos or 0), int(part.end_pos or 0)
    if isinstance(part, list):
        return span_of(part)
    return part.span  # type: ignore[no-any-return]


@dataclasses.dataclass(frozen=True)
class _Clause(syntax.Syntax):
    """A clause of a declaration or of CREATE QUERY until the statement takes it. keyword as in an error."""

    field: str
    keyword: str
    value: Part = None


class TreeBuilder(Transformer[Token, Part]):
    """One text's callbacks. `text` is set before each parse; errors quote it."""

    text = ""

    def fail(self, reason: str, part: Part, note: str = "", hint: str = "") -> CqlError:
        """An error whose place is the given part."""
        return CqlError(reason, self.text, _span(part), note, hint)

    def near(self, word: str, candidates: Sequence[str]) -> str:
        """A hint that names the candidate closest to the word, or ""."""
        close = difflib.get_close_matches(word[:40].lower(), [c.lower() for c in candidates], 1, 0.6)
        return f'did you mean "{close[0]}"?' if close else ""

    # ------------------------------------------------------------------------------------------------- numbers

    def integer_of(self, token: Token) -> int:
        """The int64 a NUMBER token spells; one more is let through for the minus before it (see `check_tree`)."""
        digits = token.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > MAX_INTEGER + 1:
            raise self.fail("this integer does not fit in 64 bits", token, hint=f"the greatest is {MAX_INTEGER}")
        return int(digits)

    def count_of(self, token: Token) -> int:
        """A number of rows."""
        if not _COUNT.fullmatch(token):
            raise self.fail(f'"{token}" is not a number of rows', token, hint="ROWS takes a whole number")
        value = self.integer_of(token)
        if value > MAX_INTEGER:
            raise self.fail("this integer does not fit in 64 bits", token, hint=f"the greatest is {MAX_INTEGER}")
        return value

    def number(self, parts: list[Part]) -> syntax.Literal:
        token: Token = parts[0]
        if _COUNT.fullmatch(token):
            return syntax.Literal(self.integer_of(token), span=_span(token))
        value = float(token)
        if math.isinf(value):
            raise self.fail("this number is too large for a FLOAT", token)
        return syntax.Literal(value, span=_span(token))

    def duration_of(self, number: Token, unit: Token | None, span: Span) -> tuple[bool, syntax.Duration]:
        """(is it negative, the length) that a number and a unit spell."""
        match = _DURATION.fullmatch(number.strip())
        if match is None or len(match.group(2)) > 40:
            raise self.fail(
                "this is not a length of time", number, hint="for example: INTERVAL '10' SECOND, 2.5 MINUTES"
            )
        digits = match.group(2)
        whole, point, fraction = digits.partition(".")
        whole = whole.lstrip("0") or "0"
        if len(whole) > 19 or int(whole) > MAX_INTEGER:
            raise self.fail("this length of time does not fit in 64 bits", number)
        fraction = fraction.rstrip("0")
        unit_name = None if unit is None else unit.lower().removesuffix("s")
        text = f"{whole}.{fraction}" if point and fraction else whole
        return match.group(1) == "-", syntax.Duration(text, unit_name, span=span)

    def duration(self, parts: list[Part]) -> syntax.Duration:
        number, unit = parts
        return self.duration_of(number, unit, span_of(parts))[1]

    def interval(self, parts: list[Part]) -> syntax.Expr:
        span = span_of(parts)
        is_negative, duration = self.duration_of(parts[-2], parts[-1], span)
        interval = syntax.Interval(duration, span=span)
        return syntax.Unary("-", interval, span=span) if is_negative else interval

    # --------------------------------------------------------------------------------------------- expressions

    def name(self, parts: list[Part]) -> syntax.Name:
        if len(parts) == 1:
            return syntax.Name(str(parts[0]), span=_span(parts[0]))
        return syntax.Name(str(parts[2]), str(parts[0]), span=span_of(parts))

    def text_(self, parts: list[Part]) -> syntax.Literal:
        return syntax.Literal(str(parts[0]), span=_span(parts[0]))

    def null(self, parts: list[Part]) -> syntax.Literal:
        return syntax.Literal(None, span=_span(parts[0]))

    def true(self, parts: list[Part]) -> syntax.Literal:
        return syntax.Literal(True, span=_span(parts[0]))

    def false(self, parts: list[Part]) -> syntax.Literal:
        return syntax.Literal(False, span=_span(parts[0]))

    def timestamp(self, parts: list[Part]) -> syntax.Cast:
        return syntax.Cast(self.text_(parts[1:]), Type.TIMESTAMP, span=span_of(parts))

    def minus(self, parts: list[Part]) -> syntax.Expr:
        operand, span = parts[1], span_of(parts)
        if isinstance(operand, syntax.Literal) and type(operand.value) in (int, float):
            value = operand.value
            assert isinstance(value, int | float)
            return syntax.Literal(-value or type(value)(0), span=span)
        return syntax.Unary("-", operand, span=span)

    def plus(self, parts: list[Part]) -> syntax.Expr:
        return self._within(parts[1], span_of(parts))

    def group(self, parts: list[Part]) -> syntax.Expr:
        return self._within(parts[1], span_of(parts))

    def _within(self, expr: syntax.Expr, span: Span) -> syntax.Expr:
        return dataclasses.replace(expr, span=span)

    def binary(self, parts: list[Part]) -> syntax.Binary:
        left, op, right = parts
        return syntax.Binary(str(op), left, right, span=span_of(parts))

    def logical(self, parts: list[Part]) -> syntax.Logical:
        op = parts[1].lower()
        operands: list[syntax.Expr] = []
        for operand in parts[::2]:
            # (a AND b) AND c is one chain: reordering conjuncts does not change the answer (R4).
            is_same = isinstance(operand, syntax.Logical) and operand.op == op
            operands.extend(operand.operands if is_same else (operand,))
        return syntax.Logical(op, tuple(operands), span=span_of(parts))

    def negated(self, parts: list[Part]) -> syntax.Unary:
        return syntax.Unary("not", parts[1], span=span_of(parts))

    def is_null(self, parts: list[Part]) -> syntax.IsNull:
        return syntax.IsNull(parts[0], parts[2] is not None, span=span_of(parts))

    def is_truth(self, parts: list[Part]) -> syntax.IsDistinctFrom:
        value = syntax.Literal(parts[3].type == "TRUE", span=_span(parts[3]))
        return syntax.IsDistinctFrom(parts[0], value, parts[2] is None, span=span_of(parts))

    def is_distinct_from(self, parts: list[Part]) -> syntax.IsDistinctFrom:
        return syntax.IsDistinctFrom(parts[0], parts[5], parts[2] is not None, span=span_of(parts))

    def between(self, parts: list[Part]) -> syntax.Between:
        return syntax.Between(parts[0], parts[3], parts[5], parts[1] is not None, span=span_of(parts))

    def like(self, parts: list[Part]) -> syntax.Like:
        escape = None if parts[5] is None else self.text_(parts[5:])
        return syntax.Like(parts[0], parts[3], escape, parts[1] is not None, span=span_of(parts))

    def in_list(self, parts: list[Part]) -> syntax.InList:
        return syntax.InList(parts[0], parts[4], parts[1] is not None, span=span_of(parts))

    def in_query(self, parts: list[Part]) -> syntax.InQuery:
        return syntax.InQuery(parts[0], parts[3], parts[1] is not None, span=span_of(parts))

    def quantified(self, parts: list[Part]) -> syntax.Quantified:
        operand, op, quantifier, query = parts
        return syntax.Quantified(str(op), quantifier.type.lower(), operand, query, span=span_of(parts))

    def exists(self, parts: list[Part]) -> syntax.Exists:
        return syntax.Exists(parts[1], span=span_of(parts))

    def scalar_query(self, parts: list[Part]) -> syntax.ScalarQuery:
        return syntax.ScalarQuery(parts[0], span=span_of(parts))

    def call(self, parts: list[Part]) -> syntax.Call:
        span, name = span_of(parts), str(parts[0])
        if len(parts) == 4:
            return syntax.Call(name, (syntax.Star(span=_span(parts[2])),), span=span)
        return syntax.Call(name, parts[3] or (), parts[2] is not None, span=span)

    def case(self, parts: list[Part]) -> syntax.Case:
        whens = tuple((p[1], p[3]) for p in parts if isinstance(p, list))
        return syntax.Case(parts[1], whens, parts[-2], span=span_of(parts))

    def when(self, parts: list[Part]) -> list[Part]:
        return parts

    def cast(self, parts: list[Part]) -> syntax.Cast:
        return syntax.Cast(parts[2], parts[4], span=span_of(parts))

    def row(self, parts: list[Part]) -> syntax.Row:
        return syntax.Row((parts[1], *parts[3]), span=span_of(parts))

    def exprs(self, parts: list[Part]) -> tuple[syntax.Expr, ...]:
        return tuple(parts[::2])

    names = exprs

    def idents(self, parts: list[Part]) -> tuple[Token, ...]:
        return tuple(parts[::2])

    # ------------------------------------------------------------------------------------------------- windows

    def now_window(self, parts: list[Part]) -> syntax.NowWindow:
        return syntax.NowWindow(span=span_of(parts))

    def unbounded_window(self, parts: list[Part]) -> syntax.UnboundedWindow:
        return syntax.UnboundedWindow(span=span_of(parts))

    def range_window(self, parts: list[Part]) -> syntax.RangeWindow:
        return syntax.RangeWindow(parts[2], parts[4], span=span_of(parts))

    def rows_window(self, parts: list[Part]) -> syntax.RowsWindow:
        slide = None if parts[4] is None else self.count_of(parts[4])
        return syntax.RowsWindow(self.count_of(parts[2]), slide, span=span_of(parts))

    def partition_window(self, parts: list[Part]) -> syntax.PartitionWindow:
        rows = self.count_of(parts[5])
        return syntax.PartitionWindow(parts[3], rows, parts[7], parts[9], span=span_of(parts))

    # ---------------------------------------------------------------------------------------------------- FROM

    def alias(self, parts: list[Part]) -> Token:
        return parts[1]  # type: ignore[no-any-return]

    def table(self, parts: list[Part]) -> syntax.TableRef:
        name, window, alias = parts
        return syntax.TableRef(str(name), window, _text(alias), span=span_of(parts))

    def query_ref(self, parts: list[Part]) -> syntax.QueryRef:
        query, window, alias, columns = parts
        names = () if columns is None else tuple(str(c) for c in columns.names)
        return syntax.QueryRef(query, window, _text(alias), names, span=span_of(parts))

    def parenthesised(self, parts: list[Part]) -> syntax.FromItem:
        item, window, alias = parts[1], parts[3], parts[4]
        span = span_of(parts)
        if window is None and alias is None:
            return dataclasses.replace(item, span=span)  # type: ignore[no-any-return]
        return syntax.ParenthesisedRef(item, window, _text(alias), span=span)

    def join_condition(self, parts: list[Part]) -> _Clause:
        if parts[0].type == "ON":
            return _Clause("on", "ON", parts[1], span=span_of(parts))
        names = tuple(syntax.Name(str(n), span=_span(n)) for n in parts[2])
        return _Clause("using", "USING", names, span=span_of(parts))

    def join(self, parts: list[Part]) -> syntax.Join:
        return self._join("inner", parts)

    def outer_join(self, parts: list[Part]) -> syntax.Join:
        return self._join(parts[1].lower(), parts)

    def _join(self, kind: str, parts: list[Part]) -> syntax.Join:
        condition: _Clause = parts[-1]
        join = syntax.Join(kind, parts[0], parts[-2], span=span_of(parts))
        return dataclasses.replace(join, **{condition.field: condition.value})

    def cross_join(self, parts: list[Part]) -> syntax.Join:
        return syntax.Join("cross", parts[0], parts[3], span=span_of(parts))

    # ------------------------------------------------------------------------------------------------- queries

    def star(self, parts: list[Part]) -> syntax.SelectItem:
        qualifier = None if len(parts) == 1 else str(parts[0])
        span = span_of(parts)
        return syntax.SelectItem(syntax.Star(qualifier, span=span), span=span)

    def item(self, parts: list[Part]) -> syntax.SelectItem:
        return syntax.SelectItem(parts[0], _text(parts[1]), span=span_of(parts))

    def items(self, parts: list[Part]) -> list[syntax.SelectItem]:
        return parts[::2]

    def from_(self, parts: list[Part]) -> _Clause:
        return _Clause("sources", "FROM", tuple(parts[1::2]), span=span_of(parts))

    def where(self, parts: list[Part]) -> _Clause:
        return _Clause("where", "WHERE", parts[1], span=span_of(parts))

    def having(self, parts: list[Part]) -> _Clause:
        return _Clause("having", "HAVING", parts[1], span=span_of(parts))

    def group_by(self, parts: list[Part]) -> _Clause:
        return _Clause("group_by", "GROUP BY", parts[2], span=(_span(parts[0])[0], _span(parts[2][-1])[1]))

    def select(self, parts: list[Part]) -> syntax.Select:
        return self._select(parts, parts[2], [parts[1]], parts[3:])

    def select_stream(self, parts: list[Part]) -> syntax.RelationToStream:
        select = self._select(parts, parts[5], [parts[1], parts[4]], parts[7:])
        return syntax.RelationToStream(parts[2].lower(), select, span=select.span)

    def _select(
        self, parts: list[Part], items: list[syntax.SelectItem], modes: list[Part], clauses: list[Part]
    ) -> syntax.Select:
        distinct = any(mode is not None and mode.type == "DISTINCT" for mode in modes)
        given = {clause.field: clause.value for clause in clauses if clause is not None}
        return syntax.Select(tuple(items), distinct=distinct, span=span_of(parts), **given)

    def query_in_parentheses(self, parts: list[Part]) -> syntax.Query:
        return dataclasses.replace(parts[1], span=span_of(parts))  # type: ignore[no-any-return]

    def stream_of(self, parts: list[Part]) -> syntax.RelationToStream:
        return syntax.RelationToStream(parts[0].lower(), parts[1], span=span_of(parts))

    def named_operand(self, parts: list[Part]) -> syntax.Select:
        span = _span(parts[0])
        item = syntax.SelectItem(syntax.Star(span=span), span=span)
        return syntax.Select((item,), (syntax.TableRef(str(parts[0]), span=span),), span=span)

    def set_operation(self, parts: list[Part]) -> syntax.SetOperation:
        left, op, mode, right = parts
        is_all = mode is not None and mode.type == "ALL"
        return syntax.SetOperation(op.lower(), is_all, left, right, span=span_of(parts))

    # ---------------------------------------------------------------------------------------------- statements

    def query_statement(self, parts: list[Part]) -> syntax.QueryStatement:
        return syntax.QueryStatement(parts[0], span=span_of(parts))

    def type(self, parts: list[Part]) -> Type:
        word, second, _, size, _, scale, _ = parts
        name = word.upper()
        if second is not None and (name, second.upper()) not in (("DOUBLE", "PRECISION"), ("CHARACTER", "VARYING")):
            raise self.fail(f'unexpected "{second}" behind a type', second, 'expected "," or ")"')
        if name not in TYPES:
            known = "INTEGER, FLOAT, BOOLEAN, TEXT, CHAR(n), VARCHAR(n), TIMESTAMP, INTERVAL"
            hint = self.near(word, list(TYPES)).upper().replace("DID YOU MEAN", "did you mean")
            if name in ("DECIMAL", "NUMERIC", "NUMBER"):
                hint = "there is no decimal type: use FLOAT, or INTEGER in the smallest unit"
            if name in ("DATE", "TIME", "DATETIME"):
                hint = "use TIMESTAMP"
            raise self.fail(f'unknown type "{word}"', word, f"types are {known}", hint)
        if size is not None:
            if name not in _SIZED_TYPES:
                raise self.fail(f"{name} takes no length", size)
            if scale is not None:
                raise self.fail(f"{name} takes one length", scale)
            self.count_of(size)
        return TYPES[name]

    def column(self, parts: list[Part]) -> syntax.ColumnDef:
        return syntax.ColumnDef(str(parts[0]), parts[1], span=_span(parts[0]))

    def columns(self, parts: list[Part]) -> tuple[syntax.ColumnDef, ...]:
        return tuple(parts[::2])

    def view_columns(self, parts: list[Part]) -> _Columns:
        return _Columns(parts[1], span=span_of(parts))

    def timestamp_by(self, parts: list[Part]) -> _Clause:
        name = syntax.Name(str(parts[2]), span=_span(parts[2]))
        return _Clause("timestamp_by", "TIMESTAMP BY", name, span=span_of(parts))

    def slack(self, parts: list[Part]) -> _Clause:
        return _Clause("slack", "SLACK", parts[1], span=span_of(parts))

    def late_drop(self, parts: list[Part]) -> _Clause:
        return _Clause("late_drop", "LATE DROP", True, span=span_of(parts))

    def key(self, parts: list[Part]) -> _Clause:
        names = tuple(syntax.Name(str(n), span=_span(n)) for n in parts[2])
        return _Clause("key", "KEY", names, span=span_of(parts))

    def from_path(self, parts: list[Part]) -> _Clause:
        span = span_of(parts)
        return _Clause("source", "FROM", syntax.Source(str(parts[1]), span=span), span=span)

    def from_generator(self, parts: list[Part]) -> _Clause:
        span = span_of([p for p in parts if not isinstance(p, tuple)])
        generator = syntax.Generator(str(parts[2]), parts[4] or (), span=span)
        return _Clause("source", "FROM", generator, span=span)

    def format(self, parts: list[Part]) -> _Clause:
        word = parts[1]
        if word.lower() not in FORMATS:
            formats = ", ".join(FORMATS)
            raise self.fail(f'unknown format "{word}"', word, f"formats are {formats}", self.near(word, FORMATS))
        return _Clause("format", "FORMAT", word.lower(), span=span_of(parts))

    def archive(self, parts: list[Part]) -> _Clause:
        return _Clause("archive", "ARCHIVE", str(parts[1]), span=span_of(parts))

    def into(self, parts: list[Part]) -> _Clause:
        return _Clause("into", "INTO", str(parts[1]), span=span_of(parts))

    def with_history(self, parts: list[Part]) -> _Clause:
        return _Clause("with_history", "WITH HISTORY", True, span=span_of(parts))

    def backfill(self, parts: list[Part]) -> _Clause:
        return _Clause("backfill", "BACKFILL", str(parts[2]), span=span_of(parts))

    def _clauses(self, clauses: Sequence[_Clause], refused: Sequence[str] = ()) -> dict[str, Part]:
        """The clauses by field; each at most once and none of the refused fields."""
        given: dict[str, Part] = {}
        for clause in clauses:
            if clause.field in given:
                raise self.fail(f"{clause.keyword} is given twice", clause)
            if clause.field in refused:
                raise self.fail(
                    f"{clause.keyword} belongs to streams",
                    clause,
                    hint="a relation takes no slack (T6); use CREATE STREAM",
                )
            given[clause.field] = clause.value
        return given

    def _declaration(self, clauses: list[_Clause], refused: Sequence[str]) -> dict[str, Part]:
        given = self._clauses(clauses, refused)
        format_ = given.pop("format", None)
        if format_ is not None:
            if "source" not in given:
                at = next(c for c in clauses if c.field == "format")
                raise self.fail("FORMAT describes the file that FROM names", at, hint="add FROM 'path'")
            given["source"] = dataclasses.replace(given["source"], format=format_)
        return given

    def create_stream(self, parts: list[Part]) -> syntax.CreateStream:
        given = self._declaration(parts[6:], ())
        return syntax.CreateStream(str(parts[2]), parts[4], span=span_of(parts), name_span=_span(parts[2]), **given)

    def create_relation(self, parts: list[Part]) -> syntax.CreateRelation:
        given = self._declaration(parts[6:], ("timestamp_by", "slack", "late_drop"))
        return syntax.CreateRelation(str(parts[2]), parts[4], span=span_of(parts), name_span=_span(parts[2]), **given)

    def create_view(self, parts: list[Part]) -> syntax.CreateView:
        columns = () if parts[3] is None else tuple(str(c) for c in parts[3].names)
        return syntax.CreateView(str(parts[2]), parts[5], columns, span=span_of(parts), name_span=_span(parts[2]))

    def create_query(self, parts: list[Part]) -> syntax.CreateQuery:
        given = self._clauses(parts[5:])
        if "format" in given and "into" not in given:
            at = next(c for c in parts[5:] if c.field == "format")
            raise self.fail("FORMAT describes the file that INTO names", at, hint="add INTO 'path'")
        return syntax.CreateQuery(str(parts[2]), parts[4], span=span_of(parts), name_span=_span(parts[2]), **given)

    def drop(self, parts: list[Part]) -> syntax.Drop:
        return syntax.Drop(parts[1].lower(), str(parts[2]), span=span_of(parts), name_span=_span(parts[2]))

    def alter(self, parts: list[Part]) -> syntax.AlterQuery:
        action = " ".join(p.lower() for p in parts[3:])
        return syntax.AlterQuery(str(parts[2]), action, span=span_of(parts), name_span=_span(parts[2]))

    def alter_set(self, parts: list[Part]) -> syntax.AlterQuery:
        return syntax.AlterQuery(
            str(parts[2]), "set", str(parts[4]), parts[6].value, span=span_of(parts), name_span=_span(parts[2])
        )

    def setting(self, parts: list[Part]) -> syntax.Literal:
        token = parts[-1]
        span = span_of(parts)
        if token.type in ("TRUE", "FALSE"):
            return syntax.Literal(token.type == "TRUE", span=span)
        if token.type != "NUMBER":
            return syntax.Literal(str(token), span=span)
        literal = self.number([token])
        if parts[0] is not None:
            return dataclasses.replace(literal, value=-literal.value, span=span)  # type: ignore[operator]
        if type(literal.value) is int and literal.value > MAX_INTEGER:
            raise self.fail("this integer does not fit in 64 bits", token, hint=f"the greatest is {MAX_INTEGER}")
        return literal

    def set_setting(self, parts: list[Part]) -> syntax.SetSetting:
        return syntax.SetSetting(str(parts[1]), parts[3].value, span=span_of(parts), name_span=_span(parts[1]))

    def show(self, parts: list[Part]) -> syntax.Show:
        what = parts[1].lower()
        if what not in SHOWN:
            names = ", ".join(SHOWN).upper()
            raise self.fail(f'there is no SHOW "{parts[1]}"', parts[1], f"SHOW knows {names}", self.near(what, SHOWN))
        return syntax.Show(what, span=span_of(parts))

    def describe(self, parts: list[Part]) -> syntax.Describe:
        return syntax.Describe(str(parts[1]), span=span_of(parts), name_span=_span(parts[1]))

    def explain(self, parts: list[Part]) -> syntax.Explain:
        target = parts[2]
        if isinstance(target, Token):
            target = str(target)
        return syntax.Explain(target, parts[1] is not None, span=span_of(parts))


@dataclasses.dataclass(frozen=True)
class _Columns(syntax.Syntax):
    """(a, b, ..) behind a view's name or an alias."""

    names: tuple[Token, ...]


def _text(token: Token | None) -> str | None:
    return None if token is None else str(token)


def check_tree(root: syntax.Syntax, text: str) -> None:
    """Refuse a tree deeper than MAX_NESTING expressions, queries and FROM items, or with an integer beyond int64.

    Everything that reads trees recurses over them; this walk does not.
    """
    stack: list[tuple[object, int]] = [(root, 0)]
    counted = (syntax.Expr, syntax.Query, syntax.FromItem)
    while stack:
        node, depth = stack.pop()
        if isinstance(node, tuple):
            stack.extend((part, depth) for part in node)
            continue
        if not isinstance(node, syntax.Syntax):
            continue
        if isinstance(node, syntax.Literal):
            if type(node.value) is int and node.value > MAX_INTEGER:
                hint = f"the greatest is {MAX_INTEGER}"
                raise CqlError("this integer does not fit in 64 bits", text, node.span, hint=hint)
            continue
        depth += isinstance(node, counted)
        if depth > MAX_NESTING:
            raise CqlError(
                f"expressions and queries are nested more than {MAX_NESTING} deep here",
                text,
                node.span,
                hint="a long chain of one operator counts too; give inner queries names with CREATE VIEW",
            )
        stack.extend((value, depth) for name, value in vars(node).items() if name not in ("span", "name_span"))
