"""The grammar's callbacks for queries and statements, and the limits of the finished tree.

The parser calls a method when its rule is complete (see `expression_builder`). Nothing here recurses: how deep a text
may nest is for `check_tree` to say, not for the interpreter's stack.

Invariant: a tree that passes `check_tree` is at most MAX_NESTING deep and holds no integer beyond int64.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from lark import Token

from minidsms.cql import syntax
from minidsms.cql.errors import CqlError
from minidsms.cql.expression_builder import ExpressionBuilder, Part, node_of, part_span, span_of
from minidsms.cql.foreign_names import FOREIGN_JOINS, foreign_hint
from minidsms.cql.lexer import MAX_NESTING
from minidsms.cql.words import MAKE_ROWS, SHOWN
from minidsms.elements import INT64_MAX, Type
from minidsms.values.types import MOST_DIGITS

TYPES = {
    "INTEGER": Type.INTEGER,
    "INT": Type.INTEGER,
    "BIGINT": Type.INTEGER,
    "SMALLINT": Type.INTEGER,
    **dict.fromkeys(("INT2", "INT4", "INT8", "TINYINT"), Type.INTEGER),
    "FLOAT": Type.FLOAT,
    "DOUBLE": Type.FLOAT,
    "REAL": Type.FLOAT,
    **dict.fromkeys(("FLOAT4", "FLOAT8"), Type.FLOAT),
    "BOOLEAN": Type.BOOLEAN,
    "BOOL": Type.BOOLEAN,
    "TEXT": Type.TEXT,
    "STRING": Type.TEXT,
    "VARCHAR": Type.TEXT,
    "CHAR": Type.TEXT,
    "CHARACTER": Type.TEXT,
    "BYTE": Type.TEXT,
    "JSON": Type.TEXT,
    "JSONB": Type.TEXT,
    "TIMESTAMP": Type.TIMESTAMP,
    "TIMESTAMPTZ": Type.TIMESTAMP,
    "TIMESTAMP_LTZ": Type.TIMESTAMP,
    "DATETIME": Type.TIMESTAMP,
    "INTERVAL": Type.INTERVAL,
    "DATE": Type.DATE,
    "TIME": Type.TIME,
}
"""The names a type goes by."""
_MOST_NESTED = 16
_FOREIGN_TYPES = {
    "NUMBER": "DECIMAL(p, s)",
    "SERIAL": "INTEGER",
    "KEY": "KEY (a) behind the columns: CREATE STREAM S (a INTEGER) KEY (a)",
    "TIMESTAMP_NTZ": "TIMESTAMP, an instant in UTC",
    **dict.fromkeys(("UUID", "ENUM", "CLOB"), "TEXT"),
    **dict.fromkeys(("BLOB", "BYTEA", "BYTES", "BINARY", "VARBINARY"), "TEXT, and TO_BASE64 or HEX of the bytes"),
}
_OF_TIME = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "DATETIME", "TIME"})
_SIZED_TYPES = _OF_TIME | {"VARCHAR", "CHAR", "CHARACTER", "TEXT", "STRING", "BYTE"}
"""Names of types behind which a number may stand; it changes nothing."""


class _Clause(syntax.Syntax):
    """A clause of a declaration or of CREATE QUERY until the statement takes it. keyword as in an error."""

    field: str
    keyword: str
    value: Part = None


class _TypeWords(syntax.Syntax):
    """A type as it is written, in STRUCT behind the name of its field. lists: how many [] stand behind it."""

    words: Sequence[Token]
    arguments: list[Part] | None
    lists: int


class _Row(syntax.Syntax):
    """A row of VALUES, with its parentheses."""

    values: tuple[syntax.Expr, ...]


def _clause_of(
    field: str, keyword: str, value: Callable[[list[Part]], Part] = itemgetter(1)
) -> Callable[[Any, list[Part]], _Clause]:
    """The callback of a clause. value: what the rule's parts say."""
    return lambda builder, parts: _Clause(field, keyword, value(parts), span=span_of(parts))


class TreeBuilder(ExpressionBuilder):
    """All callbacks of the grammar. `text` is set before each parse."""

    # ---------------------------------------------------------------------------------------------------- FROM

    def alias(self, parts: list[Part]) -> Token:
        as_, name = parts
        start, end = part_span(name)
        if as_ is None and (word := self.text[start:end].upper()) in ("ISNULL", "NOTNULL"):
            from minidsms.cql.ways_out import FOREIGN

            hint = f"{FOREIGN[word]}; an alias of that name stands behind AS"
            raise self.fail(f'unexpected "{name}"', name, hint=hint)
        return name  # type: ignore[no-any-return]

    def table(self, parts: list[Part]) -> syntax.TableRef:
        name, window, alias, columns = parts
        if columns is not None:
            self._check_columns(alias, columns)
        return syntax.TableRef(str(name), window, _text(alias), _names(columns), span=span_of(parts))

    def _check_columns(self, alias: Token, columns: _Columns) -> None:
        """`S WITH (NOLOCK)` would otherwise be an S that is called WITH."""
        from minidsms.cql.ways_out import TAKEN_FOR_NAMES

        start, end = part_span(alias)
        word = self.text[start:end].upper()
        if (word == "WITH" or word in TAKEN_FOR_NAMES) and self.text[:start].split()[-1].upper() != "AS":
            hint = TAKEN_FOR_NAMES.get(word, f"an alias of that name stands behind AS: AS {alias} ({columns.names[0]})")
            raise self.fail(f'unexpected "(" after "{alias}"', columns, hint=hint)

    def table_alias_first(self, parts: list[Part]) -> syntax.TableRef:
        name, alias, columns, window = parts
        return dataclasses.replace(self.table([name, window, alias, columns]), span=span_of(parts))

    def query_ref(self, parts: list[Part]) -> syntax.QueryRef:
        query, window, alias, columns = parts
        return syntax.QueryRef(query, window, _text(alias), _names(columns), span=span_of(parts))

    def query_ref_alias_first(self, parts: list[Part]) -> syntax.QueryRef:
        query, alias, columns, window = parts
        return dataclasses.replace(self.query_ref([query, window, alias, columns]), span=span_of(parts))

    def lateral(self, parts: list[Part]) -> syntax.QueryRef:
        _, query, alias, columns = parts
        return syntax.QueryRef(query, None, _text(alias), _names(columns), True, span=span_of(parts))

    def unnest(self, parts: list[Part]) -> syntax.Unnest:
        """UNNEST(l), EXPLODE(l), GENERATE_SERIES(1, n), RANGE(n)."""
        _, name, _, args, _, with_, ordinality, alias, columns = parts
        word, called = name.lower(), _text(alias)
        if name.upper() not in MAKE_ROWS:
            raise self._no_relation(name, args)
        if with_ is not None and ordinality.upper() != "ORDINALITY":
            raise self.fail(f'unexpected "{ordinality}" after "WITH"', ordinality, hint="UNNEST(list) WITH ORDINALITY")
        listed = args[0]
        if word not in ("unnest", "explode"):
            span = part_span(name)[0], part_span(parts[4])[1]
            listed, called = syntax.Call(str(name), args, span=span), called or word
        elif len(args) > 1:
            raise self.fail(f"{name} takes one list", args[1], hint="a second list is a second item of FROM")
        return syntax.Unnest(listed, called, _names(columns), with_ is not None, span=span_of(parts))

    def _no_relation(self, name: Token, args: Sequence[syntax.Expr]) -> CqlError:
        from minidsms.cql.foreign_windows import window_here

        hint = foreign_hint(name)
        if all(map(_is_condition, args)):
            conditions = (self.text[arg.span[0] : arg.span[1]] for arg in args)
            hint = f"a condition stands in WHERE: FROM {name} WHERE {' AND '.join(conditions)}"
        if window := window_here(self.text, part_span(name)[0]):
            hint = f"the window stands behind the stream: {window}"
        elif not hint and all(isinstance(arg, syntax.Name) and arg.qualifier is None for arg in args):
            columns = self.text[args[0].span[0] : args[-1].span[1]]
            hint = f"names of columns stand behind an alias: FROM {name} AS {name[0].lower()} ({columns})"
        hint = hint or "UNNEST(list) AS name gives a row for each element"
        return self.fail(f"{name} is no relation with arguments", name, hint=hint)

    def parenthesised(self, parts: list[Part]) -> syntax.FromItem:
        item, window, alias, columns = parts[1], parts[3], parts[4], parts[5]
        span = span_of(parts)
        if columns is not None:
            self._check_columns(alias, columns)
        if window is None and alias is None:
            return dataclasses.replace(item, span=span)  # type: ignore[no-any-return]
        return syntax.ParenthesisedRef(item, window, _text(alias), _names(columns), span=span)

    def parenthesised_alias_first(self, parts: list[Part]) -> syntax.FromItem:
        left, item, right, alias, columns, window = parts
        return dataclasses.replace(self.parenthesised([left, item, right, window, alias, columns]), span=span_of(parts))

    def join_condition(self, parts: list[Part]) -> _Clause:
        if parts[0].type == "ON":
            return _Clause("on", "ON", parts[1], span=span_of(parts))
        names = tuple(syntax.Name(str(n), span=part_span(n)) for n in parts[2])
        return _Clause("using", "USING", names, span=span_of(parts))

    def join(self, parts: list[Part]) -> syntax.Join:
        return self._join("inner", parts)

    def outer_join(self, parts: list[Part]) -> syntax.Join:
        return self._join(parts[1].lower(), parts)

    def half_join(self, parts: list[Part]) -> syntax.Join:
        kind = parts[2]
        if self._bare_alias(parts[0]) in ("RIGHT", "FULL", "CROSS", "INNER", "NATURAL"):
            raise self.fail(f"{kind.upper()} JOIN has LEFT before it, or nothing", parts[0], hint="exchange the sides")
        return self._join(kind.lower(), parts)

    def _join(self, kind: str, parts: list[Part]) -> syntax.Join:
        condition: _Clause = parts[-1]
        self._check_alias(parts[0])
        join = syntax.Join(kind, parts[0], parts[-2], span=span_of(parts))
        return dataclasses.replace(join, **{condition.field: condition.value})

    def _check_alias(self, left: syntax.FromItem) -> None:
        """`S ANTI JOIN T` would otherwise be a plain join, of an S that is called ANTI."""
        kind = self._bare_alias(left)
        if kind not in FOREIGN_JOINS:
            return
        from minidsms.cql.foreign_joins import join_here

        meant = join_here(self.text, left.span[1])
        reason = "an ASOF JOIN is inner or LEFT" if kind == "ASOF" else f"CQL has no {kind} JOIN"
        raise self.fail(reason, left, hint=meant or FOREIGN_JOINS[kind])

    def _bare_alias(self, left: syntax.FromItem) -> str:
        """The alias that ends the item without AS, in upper case, or ""."""
        if isinstance(left, syntax.Join) and (left.on is not None or left.using):
            return ""
        written = self.text[left.span[0] : left.span[1]].split()
        return "" if len(written) < 2 or written[-2].upper() == "AS" else written[-1].upper()

    def natural_join(self, parts: list[Part]) -> syntax.Join:
        self._check_alias(parts[0])
        kind, outer = parts[2], parts[3]
        if outer is not None and (kind is None or kind.type == "INNER"):
            raise self.fail("OUTER stands behind LEFT, RIGHT or FULL", outer)
        word = "inner" if kind is None else kind.lower()
        return syntax.Join(word, parts[0], parts[-1], natural=True, span=span_of(parts))

    def as_of(self, parts: list[Part]) -> str:
        return "left" if any(part is not None and part.type == "LEFT" for part in parts) else "inner"

    def matched(self, parts: list[Part]) -> syntax.Expr:
        return parts[2]  # type: ignore[no-any-return]

    def as_of_join(self, parts: list[Part]) -> syntax.Join:
        left, kind, _, right, *conditions = parts
        if self._bare_alias(left) in ("RIGHT", "FULL", "CROSS", "NATURAL"):
            raise self.fail("an ASOF JOIN is inner or LEFT", left, hint=FOREIGN_JOINS["ASOF"])
        clause = next((part for part in conditions if isinstance(part, _Clause)), None)
        matched = [part for part in conditions if part is not None and part is not clause]
        join = syntax.Join(kind, left, right, as_of=True, span=span_of(parts))
        if clause is not None and clause.field == "using":
            return dataclasses.replace(join, using=clause.value, on=matched[0] if matched else None)
        on = [*(() if clause is None else syntax.conjuncts(clause.value)), *matched]
        return dataclasses.replace(join, on=syntax.Logical("and", tuple(on), span=on[0].span) if on[1:] else on[0])

    def cross_join(self, parts: list[Part]) -> syntax.Join:
        self._check_alias(parts[0])
        return syntax.Join("cross", parts[0], parts[3], span=span_of(parts))

    # ------------------------------------------------------------------------------------------------- queries

    def star(self, parts: list[Part]) -> syntax.SelectItem:
        qualifier = None if len(parts) == 4 else str(parts[0])
        span = span_of(parts)
        left_out, replaced, renamed = (tuple(part or ()) for part in parts[-3:])
        return syntax.SelectItem(syntax.Star(qualifier, left_out, replaced, renamed, span=span), span=span)

    def left_out(self, parts: list[Part]) -> list[syntax.Name]:
        names = parts[2] if len(parts) > 2 else parts[1:]
        return [syntax.Name(str(name), span=part_span(name)) for name in names]

    def replaced(self, parts: list[Part]) -> list[syntax.SelectItem]:
        return parts[2::2]

    def replacement(self, parts: list[Part]) -> syntax.SelectItem:
        return syntax.SelectItem(parts[0], str(parts[2]), span=span_of(parts))

    def renamed(self, parts: list[Part]) -> list[syntax.SelectItem]:
        return parts[2::2] or parts[1:]

    def renaming(self, parts: list[Part]) -> syntax.SelectItem:
        name = syntax.Name(str(parts[0]), span=part_span(parts[0]))
        return syntax.SelectItem(name, str(parts[2]), span=span_of(parts))

    def item(self, parts: list[Part]) -> syntax.SelectItem:
        return syntax.SelectItem(parts[0], _text(parts[1]), span=span_of(parts))

    def items(self, parts: list[Part]) -> list[syntax.SelectItem]:
        return parts[::2]

    def from_(self, parts: list[Part]) -> _Clause:
        return _Clause("sources", "FROM", tuple(parts[1::2]), span=span_of(parts))

    where = _clause_of("where", "WHERE")
    having = _clause_of("having", "HAVING")
    qualify = _clause_of("qualify", "QUALIFY")

    def named_windows(self, parts: list[Part]) -> _Clause:
        windows: dict[str, syntax.Over] = {}
        for name, over in parts[1::2]:
            if name.lower() in windows:
                raise self.fail(f'the window "{name}" is defined twice', name)
            windows[name.lower()] = self._with_window(over, windows)
        return _Clause("windows", "WINDOW", windows, span=(part_span(parts[0])[0], parts[-1][1].span[1]))

    def named_window(self, parts: list[Part]) -> tuple[Token, syntax.Over]:
        return parts[0], parts[2]

    def _with_its_window(self, windows: Mapping[str, syntax.Over], part: syntax.Syntax) -> syntax.Syntax | None:
        """An OVER that names no window any more. Queries inside have windows of their own."""
        if isinstance(part, syntax.Over):
            return self._with_window(part, windows)
        return part if isinstance(part, syntax.Query) else None

    def _with_window(self, over: syntax.Over, windows: Mapping[str, syntax.Over]) -> syntax.Over:
        """What stands behind OVER, with the window that it names written out."""
        if over.window is None:
            return over
        named = windows.get(over.window.lower())
        if named is None:
            there = f"there are: {', '.join(windows)}" if windows else ""
            raise self.fail(f'there is no window "{over.window}"', over, there, "FROM .. WINDOW w AS (PARTITION BY ..)")
        doubled = over.partition or (over.order and named.order) or (over.frame and named.frame)
        if doubled:
            raise self.fail(f'"{over.window}" says already what stands behind it', over, "", "write it out")
        order, frame = over.order or named.order, over.frame or named.frame
        return syntax.Over(over.call, named.partition, order, frame, span=over.span)

    def group_by_all(self, parts: list[Part]) -> _Clause:
        every = syntax.EveryKey(span=part_span(parts[2]))
        return _Clause("group_by", "GROUP BY", (every,), span=span_of(parts))

    def group_by(self, parts: list[Part]) -> _Clause:
        return _Clause("group_by", "GROUP BY", parts[2], span=(part_span(parts[0])[0], part_span(parts[2][-1])[1]))

    def grouping_sets(self, parts: list[Part]) -> syntax.GroupingSets:
        first, second = parts[0], parts[1]
        if (first.lower(), second.lower()) != ("grouping", "sets"):
            raise self.fail(f'unexpected "{second}" after "{first}"', second, hint="GROUPING SETS ((a, b), (a), ())")
        return syntax.GroupingSets(parts[3], span=span_of(parts))

    def no_keys(self, parts: list[Part]) -> syntax.Row:
        return syntax.Row((), span=span_of(parts))

    def limited(self, parts: list[Part]) -> _Clause:
        offset = 0 if parts[4] is None else self.count_of(parts[4])
        span = span_of([*parts[0], *parts[1:]])
        return _Clause("limited", "ORDER BY", (parts[0], self.count_of(parts[2]), offset), span=span)

    def fetch_first(self, parts: list[Part]) -> _Clause:
        order, offset, limit = parts[0], parts[2], parts[-3]
        clause = self.limited([order, parts[-5], limit, None, offset])
        return dataclasses.replace(clause, span=(clause.span[0], part_span(parts[-1])[1]))

    def ordered(self, parts: list[Part]) -> _Clause:
        return _Clause("limited", "ORDER BY", (parts[0], None, 0), span=span_of(parts[0]))

    def select(self, parts: list[Part]) -> syntax.Select | syntax.Limited:
        return self._limited(self._select(parts, parts[2], [parts[1]], parts[3:-1]), parts)

    def select_first(self, parts: list[Part]) -> syntax.Select | syntax.Limited:
        """DISTINCT ON: the first row of each key, as QUALIFY ROW_NUMBER() says it."""
        keys, items, last = parts[4], parts[6], parts[-1]
        order = () if last is None else last.value[0]
        aliases: dict[str, syntax.Expr] = {item.alias.lower(): item.expr for item in items if item.alias is not None}

        def meant(expr: syntax.Expr) -> syntax.Expr:
            if isinstance(expr, syntax.Name) and expr.qualifier is None:
                return aliases.get(expr.name.lower(), expr)
            if isinstance(expr, syntax.Literal) and type(expr.value) is int and 1 <= expr.value <= len(items):
                return items[expr.value - 1].expr  # type: ignore[no-any-return]
            return expr

        span = span_of(parts[1:6])
        partition = tuple(map(meant, keys))
        by = (dataclasses.replace(key, expr=meant(key.expr)) for key in order)
        # Within a partition its keys are all equal; without them an order by the instant is seen to be one.
        within = tuple(key for key in by if key.expr not in partition)
        place = syntax.Over(syntax.Call("ROW_NUMBER", (), span=span), partition, within, span=span)
        is_first = syntax.Binary("=", place, syntax.Literal(1), span=span)
        select = self._select(parts, items, [], parts[7:-1])
        if select.qualify is not None:
            hint = "SELECT DISTINCT ON (..) .. FROM (SELECT .. QUALIFY ..)"
            raise self.fail("DISTINCT ON and QUALIFY in one SELECT", select.qualify, hint=hint)
        select = dataclasses.replace(select, qualify=is_first)
        whole = self._limited(select, parts)
        if isinstance(whole, syntax.Limited) and whole.limit is None:
            return dataclasses.replace(select, shown=whole.order)
        return whole

    def select_behind(self, parts: list[Part]) -> syntax.Select | syntax.Limited:
        """FROM .. SELECT ..; without SELECT all columns are meant."""
        items = parts[3]
        if items is None:
            span = part_span(parts[0])
            items = [syntax.SelectItem(syntax.Star(span=span), span=span)]
        select = self._select(parts, items, [parts[2]], [parts[0], *parts[4:-1]])
        return self._limited(select, parts)

    def select_stream(self, parts: list[Part]) -> syntax.RelationToStream:
        select = self._select(parts, parts[5], [parts[1], parts[4]], parts[7:-1])
        return syntax.RelationToStream(parts[2].lower(), self._limited(select, parts), span=select.span)

    def _limited(self, select: syntax.Select, parts: list[Part]) -> syntax.Select | syntax.Limited:
        if parts[-1] is None:
            return select
        order, limit, offset = parts[-1].value
        windows = next((part.value for part in parts if isinstance(part, _Clause) and part.field == "windows"), None)
        if windows:
            order = syntax.rewritten(order, partial(self._with_its_window, windows))
        return syntax.Limited(select, order, limit, offset, span=select.span)

    def _select(
        self, parts: list[Part], items: list[syntax.SelectItem], modes: list[Part], clauses: list[Part]
    ) -> syntax.Select:
        distinct = any(mode is not None and mode.type == "DISTINCT" for mode in modes)
        given = {clause.field: clause.value for clause in clauses if clause is not None}
        windows = given.pop("windows", {})
        if windows:
            written = tuple(items), given.get("qualify")
            items, given["qualify"] = syntax.rewritten(written, partial(self._with_its_window, windows))
        return syntax.Select(tuple(items), distinct=distinct, span=span_of(parts), **given)

    def query_in_parentheses(self, parts: list[Part]) -> syntax.Query:
        return dataclasses.replace(parts[1], span=span_of(parts))  # type: ignore[no-any-return]

    def with_(self, parts: list[Part]) -> syntax.With:
        tables = tuple(part for part in parts[:-1] if isinstance(part, syntax.CommonTable))
        for i, table in enumerate(tables):
            if any(other.name.lower() == table.name.lower() for other in tables[:i]):
                raise self.fail(f'"{table.name}" is defined twice', table, hint="give one of them another name")
        return syntax.With(tables, parts[-1], span=span_of(parts))

    def common_table(self, parts: list[Part]) -> syntax.CommonTable:
        return syntax.CommonTable(str(parts[0]), parts[3], _names(parts[1]), span=span_of(parts))

    def stream_of(self, parts: list[Part]) -> syntax.RelationToStream:
        return syntax.RelationToStream(parts[0].lower(), parts[1], span=span_of(parts))

    def named_operand(self, parts: list[Part]) -> syntax.Select:
        span = part_span(parts[0])
        item = syntax.SelectItem(syntax.Star(span=span), span=span)
        return syntax.Select((item,), (syntax.TableRef(str(parts[0]), span=span),), span=span)

    def ordered_operand(self, parts: list[Part]) -> syntax.Query:
        """A query in parentheses or the last operand of a set operation, and behind it the ORDER BY of the whole."""
        return self._limited(_all_of(parts[0]), parts)

    def set_operation(self, parts: list[Part]) -> syntax.SetOperation | syntax.Limited:
        left, op, mode, *by_name, right = parts
        self._check_whose_limit(left, op)
        ordered = right if isinstance(right, syntax.Limited) and _is_bare(right) else None
        if ordered is None:
            self._check_whose_limit(right, op)
        else:
            right = _below_order(ordered.query)
        is_all, span = mode is not None and mode.type == "ALL", span_of(parts)
        found = syntax.SetOperation(op.lower(), is_all, left, right, any(by_name), span=span)
        if ordered is None:
            return found
        return dataclasses.replace(ordered, query=_all_of(found), span=span)

    def _check_whose_limit(self, operand: syntax.Query, op: Token) -> None:
        """Behind a set operation ORDER BY .. LIMIT is of the whole; of an operand it stands in parentheses."""
        query = operand.query if isinstance(operand, syntax.RelationToStream) else operand
        if isinstance(query, syntax.Limited) and _is_bare(query):
            raise self.fail(
                f"ORDER BY .. LIMIT in an operand of {op.upper()} without parentheses",
                query.order[0],
                hint="of one: (SELECT .. LIMIT n); of the whole it stands behind the last",
            )

    # ---------------------------------------------------------------------------------------------- statements

    query_statement = node_of(syntax.QueryStatement, 0)

    def constant_row(self, parts: list[Part]) -> syntax.Query:
        return self._limited_rows(syntax.Values((tuple(parts[1]),), True, span=span_of(parts[:2])), parts)

    def values(self, parts: list[Part]) -> list[Part]:
        return parts[::2]

    def values_row(self, parts: list[Part]) -> _Row:
        return _Row(tuple(parts[1]), span=span_of(parts))

    def constant_rows(self, parts: list[Part]) -> syntax.Query:
        rows = tuple(tuple(syntax.SelectItem(expr, span=expr.span) for expr in row.values) for row in parts[1])
        values = syntax.Values(rows, span=(part_span(parts[0])[0], parts[1][-1].span[1]))
        return self._limited_rows(values, parts)

    def _limited_rows(self, values: syntax.Values, parts: list[Part]) -> syntax.Query:
        """Rows written out, of which ORDER BY sorts what `*` shows."""
        if parts[-1] is None:
            return values
        return self._limited(_all_of(values), parts)

    def insert(self, parts: list[Part]) -> syntax.Insert:
        first, replaces, name, columns, rows = parts[0], parts[1], parts[4], parts[5], parts[7]
        span = (part_span(first)[0], rows[-1].span[1])
        values = tuple(row.values for row in rows)
        given = _names(columns)
        return syntax.Insert(str(name), given, values, replaces is not None, span=span, name_span=part_span(name))

    def delete(self, parts: list[Part]) -> syntax.Delete:
        _, _, name, alias, where = parts
        return syntax.Delete(self._changed(name, alias), where and where.value, span=span_of(parts))

    def update(self, parts: list[Part]) -> syntax.Update:
        _, name, alias, _, *assignments, where = parts
        return syntax.Update(
            self._changed(name, alias), tuple(assignments[::2]), where and where.value, span=span_of(parts)
        )

    def _changed(self, name: Token, alias: Token | None) -> syntax.TableRef:
        return syntax.TableRef(str(name), None, _text(alias), span=span_of([name, alias]))

    def assignment(self, parts: list[Part]) -> syntax.SelectItem:
        return syntax.SelectItem(parts[2], str(parts[0]), span=span_of(parts))

    def one_word_type(self, parts: list[Part]) -> Type:
        return self.type([parts[0], None, *parts[1:]])

    def type_arguments(self, parts: list[Part]) -> list[Part]:
        return parts

    def words_of_type(self, parts: list[Part]) -> _TypeWords:
        given = None if parts[1] is None else parts[1][1::2]
        return _TypeWords(parts[0], given, len(parts) - 2, span=span_of(parts))

    def words(self, parts: list[Part]) -> list[Token]:
        return parts

    def type(self, parts: list[Part]) -> Type:
        written = self.words_of_type([[p for p in parts[:2] if p is not None], *parts[2:]])
        self.end_of_type = written.span[1]
        return self._type_of(written)

    def _type_of(self, written: _TypeWords) -> Type:
        word, given = written.words[0], written.arguments
        type_ = self._nested_type(word.upper(), given, written) or self._scalar_type(*written.words, arguments=given)
        for _ in range(written.lists):
            type_ = type_.list_type
        if type_.depth > _MOST_NESTED:
            raise self.fail(f"a type nests at most {_MOST_NESTED} deep", written)
        return type_

    def _nested_type(self, name: str, arguments: list[Part] | None, written: _TypeWords) -> Type | None:
        """LIST, STRUCT, MAP or DECIMAL; None for other names."""
        if name not in ("LIST", "ARRAY", "STRUCT", "MAP", "DECIMAL", "NUMERIC", "DEC"):
            return None
        given = arguments or []
        if len(written.words) > 1:
            raise self._after_a_type(written.words[1])
        if name in ("DECIMAL", "NUMERIC", "DEC"):
            return self._decimal(given, written)
        odd = next((g for g in given if not isinstance(g, _TypeWords)), None)
        if odd is not None:
            raise self.fail(f"{name} takes types, not numbers", odd)
        if name == "STRUCT":
            unnamed = next((g for g in given if len(g.words) < 2), None)
            if not given or unnamed is not None:
                raise self.fail("STRUCT takes fields", unnamed or written, hint="for example STRUCT(a INTEGER, b TEXT)")
            names = [g.words[0] for g in given]
            twice = next((n for i, n in enumerate(names) if n.lower() in (m.lower() for m in names[:i])), None)
            if twice is not None:
                raise self.fail(f'two fields are called "{twice}"', twice)
            types = [self._type_of(dataclasses.replace(g, words=g.words[1:])) for g in given]
            return Type.struct([(str(n), t) for n, t in zip(names, types)])
        wanted = 2 if name == "MAP" else 1
        if len(given) != wanted:
            example = "MAP(TEXT, INTEGER)" if name == "MAP" else f"{name}(TEXT), or TEXT[]"
            raise self.fail(f"{name} takes {wanted} type{'s' * (wanted > 1)}", written, hint=f"write {example}")
        types = [self._type_of(g) for g in given]
        if name != "MAP":
            return types[0].list_type
        if types[0] not in (Type.TEXT, Type.INTEGER):
            raise self.fail("the keys of a MAP are TEXT or INTEGER", given[0])
        return Type.map(*types)

    def _decimal(self, given: list[Part], written: _TypeWords) -> Type:
        odd = next((g for g in given if not isinstance(g, Token)), None)
        if odd is not None or len(given) > 2:
            raise self.fail("DECIMAL takes digits and digits behind the point", odd or written, hint="DECIMAL(18, 2)")
        digits, scale = [*(self.count_of(g) for g in given), *((18, 3) if not given else (0,))][:2]
        if not 0 <= scale <= digits <= MOST_DIGITS or digits < 1:
            raise self.fail(f"DECIMAL has 1 to {MOST_DIGITS} digits, and no more behind the point than all", written)
        return Type.decimal(digits, scale)

    def _after_a_type(self, word: Token) -> CqlError:
        return self.fail(f'unexpected "{word}" after a type', word, 'expected "," or ")"', foreign_hint(word))

    def _scalar_type(
        self, word: Token, second: Token | None = None, *more: Token, arguments: list[Part] | None
    ) -> Type:
        size, scale = [*(arguments or []), None, None][:2]
        name = word.upper()
        if more:
            raise self._after_a_type(more[0])
        if second is not None and (name, second.upper()) not in (("DOUBLE", "PRECISION"), ("CHARACTER", "VARYING")):
            raise self._after_a_type(second)
        if name not in TYPES:
            known = (
                "INTEGER, FLOAT, BOOLEAN, TEXT, CHAR(n), VARCHAR(n), TIMESTAMP, INTERVAL, DATE, TIME, DECIMAL(p, s), "
                "t[], STRUCT(a t, ..), MAP(TEXT, t)"
            )
            hint = self.near(word, list(TYPES)).upper().replace("DID YOU MEAN", "did you mean")
            if name in _FOREIGN_TYPES:
                hint = f"use {_FOREIGN_TYPES[name]}"
            raise self.fail(f'unknown type "{word}"', word, f"types are {known}", hint)
        if size is not None:
            if name not in _SIZED_TYPES:
                raise self.fail(f"{name} takes no length", size, hint=f"write {name}")
            if scale is not None:
                raise self.fail(f"{name} takes one length", scale)
            if not isinstance(size, Token):
                raise self.fail(f"{name} takes a length", size)
            self.count_of(size)
        return TYPES[name]

    def column(self, parts: list[Part]) -> syntax.ColumnDef:
        return syntax.ColumnDef(str(parts[0]), parts[1], span=part_span(parts[0]))

    def text_of_type(self, parts: list[Part]) -> syntax.Expr:
        """INTEGER '5', a CAST; of a TEXT the text."""
        name, text = parts
        type_, literal = TYPES[name.upper()], self.text_([text])
        if type_ is Type.TIMESTAMP:
            return syntax.TypedText(literal, type_, span=span_of(parts))
        return self._within(literal if type_ is Type.TEXT else syntax.Cast(literal, type_), span_of(parts))

    def view_columns(self, parts: list[Part]) -> _Columns:
        return _Columns(parts[1], span=span_of(parts))

    def timestamp_by(self, parts: list[Part]) -> _Clause:
        name = syntax.Name(str(parts[2]), span=part_span(parts[2]))
        return _Clause("timestamp_by", "TIMESTAMP BY", name, span=span_of(parts))

    slack = _clause_of("slack", "SLACK")
    late_drop = _clause_of("late_drop", "LATE DROP", lambda parts: True)

    def key(self, parts: list[Part]) -> _Clause:
        names = tuple(syntax.Name(str(n), span=part_span(n)) for n in parts[2])
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
        if word.lower() not in syntax.FORMATS:
            formats = ", ".join(syntax.FORMATS)
            raise self.fail(f'unknown format "{word}"', word, f"formats are {formats}", self.near(word, syntax.FORMATS))
        return _Clause("format", "FORMAT", word.lower(), span=span_of(parts))

    def option(self, parts: list[Part]) -> syntax.Option:
        span = span_of(parts)
        if len(parts) == 4:
            value: Part = self.duration([parts[2], parts[3]])
        else:
            value = parts[2].value
        return syntax.Option(str(parts[0]).lower(), value, span=span)

    def options(self, parts: list[Part]) -> _Clause:
        options = tuple(parts[2::2])
        for i, option in enumerate(options):
            if any(other.name == option.name for other in options[:i]):
                raise self.fail(f'the option "{option.name}" is given twice', option, hint="leave one of them out")
        return _Clause("options", "WITH", options, span=span_of(parts))

    archive = _clause_of("archive", "ARCHIVE", lambda parts: str(parts[1]))
    into = _clause_of("into", "INTO", lambda parts: str(parts[1]))
    with_history = _clause_of("with_history", "WITH HISTORY", lambda parts: True)
    backfill = _clause_of("backfill", "BACKFILL", lambda parts: str(parts[2]))

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
        for field, keyword in (("format", "FORMAT"), ("options", "WITH (..)")):
            value = given.pop(field, None)
            if value is None:
                continue
            if "source" not in given:
                at = next(c for c in clauses if c.field == field)
                words = [option.name for option in at.value] if field == "options" else []
                is_topic = any("kafka" in word or word in ("connector", "topic") for word in words)
                hint = "add FROM 'kafka://host:9092/topic' FORMAT json" if is_topic else "add FROM 'path'"
                raise self.fail(f"{keyword} describes what FROM names", at, hint=hint)
            given["source"] = dataclasses.replace(given["source"], **{field: value})
        return given

    def new_name(self, parts: list[Part]) -> _NewName:
        return _NewName(str(parts[-1]), parts[0] is not None, span=part_span(parts[-1]))

    def create_stream(self, parts: list[Part]) -> syntax.CreateStream:
        given = {**parts[2].given, **self._declaration(parts[6:], ())}
        return syntax.CreateStream(parts[2].name, parts[4], span=span_of(parts), **given)

    def create_relation(self, parts: list[Part]) -> syntax.CreateRelation:
        given = {**parts[2].given, **self._declaration(parts[6:], ("timestamp_by", "slack", "late_drop"))}
        return syntax.CreateRelation(parts[2].name, parts[4], span=span_of(parts), **given)

    def create_view(self, parts: list[Part]) -> syntax.CreateView:
        return syntax.CreateView(parts[2].name, parts[5], _names(parts[3]), span=span_of(parts), **parts[2].given)

    def replace_view(self, parts: list[Part]) -> syntax.CreateView:
        create, _, _, view, name, *rest = parts
        named = _NewName(str(name), False, span=part_span(name))
        return dataclasses.replace(self.create_view([create, view, named, *rest]), replaces=True)

    def create_query(self, parts: list[Part]) -> syntax.CreateQuery:
        given = self._clauses(parts[5:])
        for field, keyword in (("format", "FORMAT"), ("options", "WITH (..)")):
            if field in given and "into" not in given:
                at = next(c for c in parts[5:] if c.field == field)
                raise self.fail(f"{keyword} describes what INTO names", at, hint="add INTO 'path'")
        return syntax.CreateQuery(parts[2].name, parts[4], span=span_of(parts), **parts[2].given, **given)

    def replace_query(self, parts: list[Part]) -> syntax.CreateQuery:
        create, _, _, query, name, *rest = parts
        named = _NewName(str(name), False, span=part_span(name))
        return dataclasses.replace(self.create_query([create, query, named, *rest]), replaces=True)

    def drop(self, parts: list[Part]) -> syntax.Drop:
        _, kind, condition, _, name = parts
        spans = {"span": span_of(parts), "name_span": part_span(name)}
        return syntax.Drop(str(name), kind.lower(), condition is not None, **spans)

    def alter(self, parts: list[Part]) -> syntax.AlterQuery:
        action = parts[3].lower() + (" plan" if parts[3].type in ("PIN", "UNPIN") else "")
        return syntax.AlterQuery(str(parts[2]), action, span=span_of(parts), name_span=part_span(parts[2]))

    def alter_set(self, parts: list[Part]) -> syntax.AlterQuery:
        spans = {"name_span": part_span(parts[2]), "setting_span": part_span(parts[4])}
        return syntax.AlterQuery(str(parts[2]), "set", str(parts[4]), parts[6].value, span=span_of(parts), **spans)

    def alter_stream(self, parts: list[Part]) -> syntax.AlterStream:
        name_span = part_span(parts[2])
        return syntax.AlterStream(str(parts[2]), parts[3].lower(), span=span_of(parts), name_span=name_span)

    def add_column(self, parts: list[Part]) -> syntax.AddColumn:
        spans = {"span": (part_span(parts[0])[0], self.end_of_type), "name_span": part_span(parts[2])}
        return syntax.AddColumn(str(parts[2]), parts[-1], parts[5] is not None, **spans)

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
        if type(literal.value) is int and literal.value > INT64_MAX:
            raise self.fail("this integer does not fit in 64 bits", token, hint=f"the greatest is {INT64_MAX}")
        return literal

    def set_setting(self, parts: list[Part]) -> syntax.SetSetting:
        return syntax.SetSetting(str(parts[1]), parts[3].value, span=span_of(parts), name_span=part_span(parts[1]))

    checkpoint = node_of(syntax.Checkpoint)

    def show(self, parts: list[Part]) -> syntax.Show:
        what = parts[1].lower()
        if what not in SHOWN:
            names = ", ".join(SHOWN).upper()
            raise self.fail(f'there is no SHOW "{parts[1]}"', parts[1], f"SHOW knows {names}", self.near(what, SHOWN))
        return syntax.Show(what, span=span_of(parts))

    def describe(self, parts: list[Part]) -> syntax.Describe:
        return syntax.Describe(str(parts[1]), span=span_of(parts), name_span=part_span(parts[1]))

    def explain(self, parts: list[Part]) -> syntax.Explain:
        _, analyze, options, target = parts
        given: dict[str, Any] = {"analyze": True} if analyze is not None else {}
        for name, value, place in options or ():
            if name in given:
                raise self.fail(f"{name.upper()} is given twice", place)
            given[name] = value
        if isinstance(target, Token):
            return syntax.Explain(str(target), span=span_of(parts), name_span=part_span(target), **given)
        return syntax.Explain(target, span=span_of(parts), **given)

    def explain_options(self, parts: list[Part]) -> list[tuple[str, bool | str, Token]]:
        return [part for part in parts if isinstance(part, tuple)]

    def explain_option(self, parts: list[Part]) -> tuple[str, bool | str, Token]:
        keyword = parts[0]
        if keyword.type != "FORMAT":
            return keyword.type.lower(), True, keyword
        word = parts[1]
        format_ = str(word).lower()
        if format_ not in syntax.PLAN_FORMATS:
            near = self.near(format_, syntax.PLAN_FORMATS)
            raise self.fail(f'no plan format "{word}"', word, f"there are: {', '.join(syntax.PLAN_FORMATS)}", near)
        return "format", format_, keyword


class _NewName(syntax.Syntax):
    """The name of what is created; is_optional: IF NOT EXISTS stands before it."""

    name: str
    is_optional: bool

    @property
    def given(self) -> dict[str, Any]:
        """The fields of a statement that it settles."""
        return {"is_optional": self.is_optional, "name_span": self.span}


class _Columns(syntax.Syntax):
    """(a, b, ..) behind a view's name or an alias."""

    names: tuple[Token, ...]


def _text(token: Token | None) -> str | None:
    return None if token is None else str(token)


def _is_condition(expr: syntax.Expr) -> bool:
    """Whether it is written as one."""
    if isinstance(expr, syntax.Binary | syntax.Unary):
        return expr.op in ("=", "<>", "<", "<=", ">", ">=", "not")
    kinds = syntax.Logical | syntax.Between | syntax.Like | syntax.InList | syntax.IsNull | syntax.IsDistinctFrom
    return isinstance(expr, kinds)


def _all_of(query: syntax.Query) -> syntax.Select:
    """SELECT * FROM (query), at the same place in the text."""
    every = syntax.SelectItem(syntax.Star(span=query.span), span=query.span)
    return syntax.Select((every,), (syntax.QueryRef(query, span=query.span),), span=query.span)


def _is_bare(limited: syntax.Limited) -> bool:
    """Whether it stands without parentheses, which its query's span never has."""
    return limited.span == limited.query.span


def _below_order(select: syntax.Select) -> syntax.Query:
    """What is behind ORDER BY: the query itself, or the set operation or VALUES of which it shows all."""
    match select.sources:
        case (syntax.QueryRef(query=query, span=span),) if span == select.span:
            return query
    return select


def _names(columns: _Columns | None) -> tuple[str, ...]:
    return () if columns is None else tuple(map(str, columns.names))


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
        if not isinstance(node, syntax.Syntax) or isinstance(node, syntax.LiteralList):
            continue
        if isinstance(node, syntax.Literal):
            if type(node.value) is int and node.value > INT64_MAX:
                hint = f"the greatest is {INT64_MAX}"
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
