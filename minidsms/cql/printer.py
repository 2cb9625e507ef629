"""From a syntax tree back to CQL, in one canonical form.

Keywords are upper case, every clause has its line, inner queries are indented, every alias has its AS. EXPLAIN and
`Query.expanded` show queries this way (docs/semantics D4).

Invariant: what is printed parses back to an equal tree, for every tree the parser can give.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from minidsms.aggregates.aggregate import EVERY_ROW
from minidsms.cql import syntax
from minidsms.cql.words import QUOTED_WORDS

_INDENT = "  "
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_MAX_LINE = 100

# How tightly each kind of expression binds; an operand that binds less than its place demands stands in parentheses.
_OR, _AND, _NOT, _PREDICATE, _SUM, _TERM, _FACTOR, _PRIMARY = range(1, 9)
_LEVEL_OF_OPERATOR = {"+": _SUM, "-": _SUM, "||": _SUM, "*": _TERM, "/": _TERM, "%": _TERM}


def print_statement(statement: syntax.Statement) -> str:
    """A statement without semicolon."""
    match statement:
        case syntax.Insert(name=name, columns=columns, rows=exprs, replaces=replaces):
            into = f"INSERT {'OR REPLACE ' if replaces else ''}INTO {print_name(name)}{_name_list(columns)}"
            return f"{into} VALUES {_rows(exprs)}"
        case syntax.Delete(table=table, where=where):
            return f"DELETE FROM {_from_item(table, '')}{_where(where)}"
        case syntax.Update(table=table, assignments=assignments, where=where):
            given = ", ".join(f"{print_name(a.alias or '')} = {print_expression(a.expr)}" for a in assignments)
            return f"UPDATE {_from_item(table, '')} SET {given}{_where(where)}"
        case syntax.QueryStatement(query=query):
            return print_query(query)
        case syntax.CreateStream() | syntax.CreateRelation():
            return _declaration(statement)
        case syntax.CreateView(name=name, query=query, columns=columns):
            keyword = "CREATE OR REPLACE VIEW" if statement.replaces else "CREATE VIEW"
            name = _new_name(name, statement.is_optional)
            return f"{keyword} {name}{_name_list(columns)} AS\n{print_query(query)}"
        case syntax.CreateQuery():
            return _create_query(statement)
        case syntax.Drop(kind=kind, name=name, is_optional=is_optional):
            return f"DROP {kind.upper()} {'IF EXISTS ' if is_optional else ''}{print_name(name)}"
        case syntax.AlterQuery(name=name, action="set", setting=setting, value=value):
            return f"ALTER QUERY {print_name(name)} SET {print_name(setting or '')} = {_value(value)}"
        case syntax.AlterQuery(name=name, action=action):
            return f"ALTER QUERY {print_name(name)} {action.upper()}"
        case syntax.AlterStream(name=name, action=action):
            return f"ALTER STREAM {print_name(name)} {action.upper()}"
        case syntax.AddColumn(name=name, column=column, is_optional=is_optional):
            condition = "IF NOT EXISTS " if is_optional else ""
            return f"ALTER STREAM {print_name(name)} ADD COLUMN {condition}{print_name(column.name)} {column.type}"
        case syntax.Checkpoint():
            return "CHECKPOINT"
        case syntax.Show(what=what):
            return f"SHOW {what.upper()}"
        case syntax.Describe(name=name):
            return f"DESCRIBE {print_name(name)}"
        case syntax.Explain(target=target):
            keyword = _explain(statement)
            return f"{keyword} {print_name(target)}" if isinstance(target, str) else f"{keyword}\n{print_query(target)}"
        case syntax.SetSetting(name=name, value=value):
            return f"SET {print_name(name)} = {_value(value)}"
        case _:
            assert_never(statement)


def _where(condition: syntax.Expr | None) -> str:
    return "" if condition is None else f"\nWHERE {_condition(condition, '')}"


def _rows(rows: Sequence[Sequence[syntax.Expr]]) -> str:
    return ", ".join(f"({', '.join(print_expression(e) for e in row)})" for row in rows)


def _explain(statement: syntax.Explain) -> str:
    options = [f"FORMAT {print_name(statement.format)}"] if statement.format != "text" else []
    options += ["RULES"] if statement.rules else []
    if not options:
        return "EXPLAIN ANALYZE" if statement.analyze else "EXPLAIN"
    return f"EXPLAIN ({', '.join([*(['ANALYZE'] if statement.analyze else []), *options])})"


def print_query(query: syntax.Query, indent: str = "") -> str:
    """A query, one clause a line; every line begins with indent.

    >>> from minidsms.cql.parser import parse_query
    >>> print(print_query(parse_query("select istream(a, count(*)) from S [range 5 seconds] group by a")))
    SELECT ISTREAM(a, count(*))
    FROM S [RANGE 5 SECONDS]
    GROUP BY a
    """
    match query:
        case syntax.Select():
            return _select(query, None, indent)
        case syntax.Limited():
            return _limited(query, None, indent)
        case syntax.Values(rows=rows, is_select=True):
            return f"{indent}SELECT {_list([_item(item, indent) for item in rows[0]], indent, 7)}"
        case syntax.Values(rows=rows):
            return f"{indent}VALUES {_rows([[item.expr for item in row] for row in rows])}"
        case syntax.RelationToStream(op=op, query=syntax.Select() as select):
            return _select(select, op, indent)
        case syntax.RelationToStream(op=op, query=syntax.Limited() as limited):
            return _limited(limited, op, indent)
        case syntax.RelationToStream(op=op, query=inner):
            return f"{indent}{op.upper()} {_nested(inner, indent)}"
        case syntax.With(tables=tables, query=inner):
            named = [f"{print_name(t.name)}{_name_list(t.columns)} AS {_nested(t.query, indent)}" for t in tables]
            last = indent + _nested(inner, indent) if isinstance(inner, syntax.With) else print_query(inner, indent)
            return f"{indent}WITH {', '.join(named)}\n{last}"
        case syntax.SetOperation(op=op, all=all_, left=left, right=right, by_name=by_name):
            keyword = op.upper() + (" ALL" if all_ else "") + (" BY NAME" if by_name else "")
            # Operands group to the left; INTERSECT binds tighter, but parentheses say so more plainly.
            is_chain = isinstance(left, syntax.SetOperation) and (left.op == "intersect") == (op == "intersect")
            first = print_query(left, indent) if is_chain else _operand(left, indent)
            return f"{first}\n{indent}{keyword}\n{_operand(right, indent)}"
        case _:
            assert_never(query)


def _operand(query: syntax.Query, indent: str) -> str:
    inner = query.query if isinstance(query, syntax.RelationToStream) else query
    if isinstance(query, syntax.SetOperation | syntax.With) or isinstance(inner, syntax.Limited):
        return indent + _nested(query, indent)
    return print_query(query, indent)


def _nested(query: syntax.Query, indent: str) -> str:
    """(query), the parentheses at the indent and the query deeper."""
    return f"(\n{print_query(query, indent + _INDENT)}\n{indent})"


def _select(select: syntax.Select, op: str | None, indent: str) -> str:
    items = [_item(item, indent) for item in select.items]
    distinct = "DISTINCT " if select.distinct else ""
    if op is None:
        lines = [f"SELECT {distinct}{_list(items, indent, 7)}"]
    else:
        lines = [f"SELECT {op.upper()}({distinct}{_list(items, indent, 15)})"]
    if select.sources:
        lines.append("FROM " + _list([_from_item(item, indent) for item in select.sources], indent, 5))
    if select.where is not None:
        lines.append("WHERE " + _condition(select.where, indent))
    if select.group_by:
        lines.append("GROUP BY " + _list([_grouping(e, indent) for e in select.group_by], indent, 9))
    if select.having is not None:
        lines.append("HAVING " + _condition(select.having, indent))
    if select.qualify is not None:
        lines.append("QUALIFY " + _condition(select.qualify, indent))
    return "\n".join(indent + line for line in lines)


def _limited(limited: syntax.Limited, op: str | None, indent: str) -> str:
    offset = f" OFFSET {limited.offset}" if limited.offset else ""
    order = _list([_sort_key(key, indent) for key in limited.order], indent, 9)
    first = "" if limited.limit in (None, EVERY_ROW) else f"\n{indent}LIMIT {limited.limit}{offset}"
    return f"{_select(limited.query, op, indent)}\n{indent}ORDER BY {order}{first}"


def _item(item: syntax.SelectItem, indent: str) -> str:
    text = print_expression(item.expr, indent)
    return text if item.alias is None else f"{text} AS {print_name(item.alias)}"


def _list(parts: Sequence[str], indent: str, hanging: int) -> str:
    """Parts behind one another, or one a line under the first where that grows too long."""
    line = ", ".join(parts)
    if len(indent) + hanging + len(line) <= _MAX_LINE and "\n" not in line:
        return line
    return (",\n" + indent + " " * hanging).join(parts)


def _grouping(expr: syntax.Expr, indent: str) -> str:
    if isinstance(expr, syntax.EveryKey):
        return "ALL"
    if not isinstance(expr, syntax.GroupingSets):
        return print_expression(expr, indent)
    return f"GROUPING SETS ({', '.join(_grouping(item, indent) for item in expr.items)})"


def _condition(condition: syntax.Expr, indent: str) -> str:
    """A condition; the conjuncts of a long one stand one a line."""
    line = print_expression(condition, indent)
    is_chain = isinstance(condition, syntax.Logical) and condition.op == "and"
    if not is_chain or (len(indent) + 6 + len(line) <= _MAX_LINE and "\n" not in line):
        return line
    assert isinstance(condition, syntax.Logical)
    return f"\n{indent}  AND ".join(_at(operand, _NOT, indent) for operand in condition.operands)


# ----------------------------------------------------------------------------------------------------------- FROM


def _from_item(item: syntax.FromItem, indent: str) -> str:
    match item:
        case syntax.TableRef(name=name, window=window, alias=alias, columns=columns):
            return print_name(name) + _window_and_alias(window, alias) + _name_list(columns)
        case syntax.QueryRef(query=query, window=window, alias=alias, columns=columns, is_lateral=is_lateral):
            return (
                "LATERAL " * is_lateral
                + _nested(query, indent)
                + _window_and_alias(window, alias)
                + _name_list(columns)
            )
        case syntax.Unnest(list=listed, alias=alias, columns=columns, is_numbered=is_numbered):
            made = f"UNNEST({print_expression(listed, indent)}){' WITH ORDINALITY' * is_numbered}"
            return made + _window_and_alias(None, alias) + _name_list(columns)
        case syntax.ParenthesisedRef(item=inner, window=window, alias=alias, columns=columns):
            return f"({_from_item(inner, indent)})" + _window_and_alias(window, alias) + _name_list(columns)
        case syntax.Join(kind=kind, left=left, right=right, on=on, using=using):
            first, second = _from_item(left, indent), _from_item(right, indent)
            if isinstance(right, syntax.Join):
                second = f"({second})"
            keyword = "JOIN" if kind == "inner" else f"{kind.upper()} JOIN"
            keyword = f"{'NATURAL ' * item.natural}{'ASOF ' * item.as_of}{keyword}"
            condition = ""
            if on is not None:
                written = print_expression(on, indent)
                condition = f" MATCH_CONDITION ({written})" if using else f" ON {written}"
            if using:
                condition += " USING (" + ", ".join(print_name(n.name) for n in using) + ")"
            return f"{first} {keyword} {second}{condition}"
        case _:
            assert_never(item)


def _window_and_alias(window: syntax.Window | None, alias: str | None) -> str:
    text = "" if window is None else f" {print_window(window)}"
    return text if alias is None else f"{text} AS {print_name(alias)}"


def print_window(window: syntax.Window) -> str:
    """A window with its brackets.

    >>> print_window(syntax.RowsWindow(10, slide=2))
    '[ROWS 10 SLIDE 2]'
    """
    match window:
        case syntax.NowWindow():
            return "[NOW]"
        case syntax.UnboundedWindow():
            return "[RANGE UNBOUNDED]"
        case syntax.RangeWindow(range=range_, slide=slide):
            text = f"RANGE {print_duration(range_)}"
            return f"[{text}]" if slide is None else f"[{text} SLIDE {print_duration(slide)}]"
        case syntax.RowsWindow(rows=rows, slide=rows_slide):
            return f"[ROWS {rows}]" if rows_slide is None else f"[ROWS {rows} SLIDE {rows_slide}]"
        case syntax.HopWindow(length=length, step=step):
            step_text = "" if step is None else f" EVERY {print_duration(step)}"
            return f"[{'HOP' if step_text else 'TUMBLE'} {print_duration(length)}{step_text}]"
        case syntax.SessionWindow(gap=gap, keys=keys):
            by = f" PARTITION BY {', '.join(print_expression(k) for k in keys)}" if keys else ""
            return f"[SESSION {print_duration(gap)}{by}]"
        case syntax.PartitionWindow(keys=keys, rows=rows, range=length, slide=slide):
            text = f"PARTITION BY {', '.join(print_expression(k) for k in keys)} ROWS {rows}"
            text += "" if length is None else f" RANGE {print_duration(length)}"
            return f"[{text}]" if slide is None else f"[{text} SLIDE {print_duration(slide)}]"
        case _:
            assert_never(window)


def print_duration(duration: syntax.Duration) -> str:
    """`10 SECONDS`, `1 SECOND`, or a bare number of ticks."""
    if duration.unit is None:
        return duration.number
    return f"{duration.number} {duration.unit.upper()}{'' if duration.number == '1' else 'S'}"


# ----------------------------------------------------------------------------------------------------- expressions


def print_expression(expr: syntax.Expr, indent: str = "") -> str:
    """An expression, on one line unless it holds a query; inner queries' lines begin with indent.

    >>> print_expression(syntax.Binary("*", syntax.Binary("+", syntax.Name("a"), syntax.Literal(1)), syntax.Literal(2)))
    '(a + 1) * 2'
    """
    return _expression(expr, indent)[0]


def _at(expr: syntax.Expr, level: int, indent: str) -> str:
    """The expression where only what binds at least as tightly as level may stand."""
    text, own = _expression(expr, indent)
    return text if own >= level else f"({text})"


def _expression(expr: syntax.Expr, indent: str) -> tuple[str, int]:
    """(text, how tightly it binds)."""
    match expr:
        case syntax.Name(name=name, qualifier=None):
            return print_name(name), _PRIMARY
        case syntax.Name(name=name, qualifier=qualifier):
            return f"{print_name(qualifier or '')}.{print_name(name)}", _PRIMARY
        case syntax.Star(qualifier=qualifier, left_out=left_out, replaced=replaced, renamed=renamed):
            text = "*" if qualifier is None else f"{print_name(qualifier)}.*"
            text += f" EXCLUDE{_name_list([name.name for name in left_out])}" if left_out else ""
            text += f" REPLACE ({', '.join(_item(item, indent) for item in replaced)})" if replaced else ""
            text += f" RENAME ({', '.join(_item(item, indent) for item in renamed)})" if renamed else ""
            return text, _PRIMARY
        case syntax.Literal(value=value):
            text = _value(value)
            return text, _FACTOR if text.startswith("-") else _PRIMARY
        case syntax.LiteralList(values=values):
            return ", ".join(_value(value) for value in values), _PRIMARY
        case syntax.Interval(duration=duration):
            return f"INTERVAL '{duration.number}' {(duration.unit or '').upper()}", _PRIMARY
        case syntax.Unary(op="not", operand=operand):
            return f"NOT {_at(operand, _NOT, indent)}", _NOT
        case syntax.Unary(op=op, operand=operand):
            text = _at(operand, _FACTOR, indent)
            return (f"{op}({text})" if text.startswith("-") else f"{op}{text}"), _FACTOR
        case syntax.Binary(op=op, left=left, right=right):
            level = _LEVEL_OF_OPERATOR.get(op, _PREDICATE)
            # A comparison takes sums on both sides; the other operators group to the left.
            first = _at(left, _SUM if level == _PREDICATE else level, indent)
            return f"{first} {op} {_at(right, level + 1, indent)}", level
        case syntax.Logical(op=op, operands=operands):
            level = _OR if op == "or" else _AND
            return f" {op.upper()} ".join(_at(o, level + 1, indent) for o in operands), level
        case syntax.Call(args=args):
            inner = ", ".join(print_expression(a, indent) for a in args)
            return _printed_call(expr, inner, indent), _PRIMARY
        case syntax.Over():
            return _over(expr, indent), _PRIMARY
        case syntax.Case():
            return _case(expr, indent), _PRIMARY
        case syntax.TypedText(operand=operand, type=type_):
            return f"{type_} {print_expression(operand, indent)}", _PRIMARY
        case syntax.Cast(operand=operand, type=type_, or_null=or_null):
            return f"{'TRY_' if or_null else ''}CAST({print_expression(operand, indent)} AS {type_})", _PRIMARY
        case syntax.Pair(name=name, value=value):
            return f"{print_expression(name, indent)} := {print_expression(value, indent)}", _PREDICATE
        case syntax.Lambda(parameters=parameters, body=body):
            return f"({', '.join(map(print_name, parameters))}) => {print_expression(body, indent)}", _PREDICATE
        case syntax.Row(items=items):
            return f"({', '.join(print_expression(e, indent) for e in items)})", _PRIMARY
        case syntax.ScalarQuery(query=query, is_list=is_list):
            return "ARRAY" * is_list + _nested(query, indent), _PRIMARY
        case syntax.Exists(query=query):
            return f"EXISTS {_nested(query, indent)}", _PRIMARY
        case syntax.GroupingSets() | syntax.EveryKey():
            raise AssertionError("GROUP BY prints its keys itself")
        case _:
            return _predicate(expr, indent), _PREDICATE


def _predicate(expr: syntax.Predicate, indent: str) -> str:
    """The predicates that are words; their operands are sums."""
    match expr:
        case syntax.IsNull(operand=operand, negated=negated):
            return f"{_at(operand, _SUM, indent)} IS {_not(negated)}NULL"
        case syntax.IsDistinctFrom(left=left, right=right, negated=negated):
            return f"{_at(left, _SUM, indent)} IS {_not(negated)}DISTINCT FROM {_at(right, _SUM, indent)}"
        case syntax.Between(operand=operand, low=low, high=high, negated=negated):
            limits = f"{_at(low, _SUM, indent)} AND {_at(high, _SUM, indent)}"
            return f"{_at(operand, _SUM, indent)} {_not(negated)}BETWEEN {limits}"
        case syntax.Like(operand=operand, pattern=pattern, escape=escape, negated=negated):
            word = "ILIKE" if expr.ignores_case else "LIKE"
            text = f"{_at(operand, _SUM, indent)} {_not(negated)}{word} {_at(pattern, _SUM, indent)}"
            return text if escape is None else f"{text} ESCAPE {print_expression(escape, indent)}"
        case syntax.InList(operand=operand, items=items, negated=negated):
            listed = ", ".join(print_expression(e, indent) for e in items)
            if len(items) == 1 and isinstance(items[0], syntax.ScalarQuery):
                # Without the plus this would read as IN (query).
                listed = "+" + listed
            return f"{_at(operand, _SUM, indent)} {_not(negated)}IN ({listed})"
        case syntax.InQuery(operand=operand, query=query, negated=negated):
            return f"{_at(operand, _SUM, indent)} {_not(negated)}IN {_nested(query, indent)}"
        case syntax.Quantified(op=op, quantifier=quantifier, operand=operand, query=query):
            return f"{_at(operand, _SUM, indent)} {op} {quantifier.upper()} {_nested(query, indent)}"
        case _:
            assert_never(expr)


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _printed_call(call: syntax.Call, args: str, indent: str) -> str:
    order = f"ORDER BY {', '.join(_sort_key(key, indent) for key in call.order)}" if call.order else ""
    behind = f" WITHIN GROUP ({order})" if call.within else ""
    inside = f" {order}" if order and not call.within else ""
    nulls = f" {call.nulls.upper()} NULLS" if call.nulls else ""
    distinct = "DISTINCT " if call.distinct else ""
    return f"{print_name(call.function)}({distinct}{args}{inside}){behind}{nulls}"


def _over(over: syntax.Over, indent: str) -> str:
    parts = []
    if over.partition:
        parts.append("PARTITION BY " + ", ".join(print_expression(e, indent) for e in over.partition))
    if over.order:
        parts.append("ORDER BY " + ", ".join(_sort_key(key, indent) for key in over.order))
    if over.window is not None:
        parts.insert(0, print_name(over.window))
    if over.frame is not None:
        unit = over.frame.unit.upper()
        start, end = _frame_bound(over.frame.start), _frame_bound(over.frame.end)
        parts.append(f"{unit} {start}" if over.frame.end.direction == 0 else f"{unit} BETWEEN {start} AND {end}")
    return f"{print_expression(over.call, indent)} OVER ({' '.join(parts)})"


def _frame_bound(bound: syntax.FrameBound) -> str:
    if bound.direction == 0:
        return "CURRENT ROW"
    length = "UNBOUNDED" if bound.length is None else print_duration(bound.length)
    return f"{length} {'PRECEDING' if bound.direction < 0 else 'FOLLOWING'}"


def _sort_key(key: syntax.SortKey, indent: str) -> str:
    nulls = "" if key.nulls_first is None else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return f"{print_expression(key.expr, indent)}{' DESC' if key.descending else ''}{nulls}"


def _case(case: syntax.Case, indent: str) -> str:
    parts = ["CASE"]
    if case.operand is not None:
        parts.append(print_expression(case.operand, indent))
    for condition, result in case.whens:
        parts.append(f"WHEN {print_expression(condition, indent)} THEN {print_expression(result, indent)}")
    if case.otherwise is not None:
        parts.append(f"ELSE {print_expression(case.otherwise, indent)}")
    return " ".join([*parts, "END"])


def print_name(name: str) -> str:
    """A name, in backquotes where it would otherwise not be read as one.

    >>> print_name("speed"), print_name("from"), print_name("two words")
    ('speed', '`from`', '`two words`')
    """
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in QUOTED_WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def _value(value: bool | int | float | str | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return print_text(value) if isinstance(value, str) else repr(value)


def print_text(value: str) -> str:
    """A text in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def _name_list(names: Sequence[str]) -> str:
    return f" ({', '.join(print_name(n) for n in names)})" if names else ""


# ------------------------------------------------------------------------------------------------------ statements


def _new_name(name: str, is_optional: bool) -> str:
    return f"IF NOT EXISTS {print_name(name)}" if is_optional else print_name(name)


def _declaration(statement: syntax.CreateStream | syntax.CreateRelation) -> str:
    columns = ", ".join(f"{print_name(c.name)} {c.type}" for c in statement.columns)
    kind = "STREAM" if isinstance(statement, syntax.CreateStream) else "RELATION"
    lines = [f"CREATE {kind} {_new_name(statement.name, statement.is_optional)} ({columns})"]
    if isinstance(statement, syntax.CreateStream):
        if statement.timestamp_by is not None:
            lines.append(f"TIMESTAMP BY {print_name(statement.timestamp_by.name)}")
        if statement.slack is not None:
            lines.append(f"SLACK {print_duration(statement.slack)}")
        if statement.late_drop:
            lines.append("LATE DROP")
    if statement.key:
        lines.append(f"KEY ({', '.join(print_name(k.name) for k in statement.key)})")
    source = statement.source
    if isinstance(source, syntax.Source):
        lines.append(f"FROM {print_text(source.path)}")
    elif source is not None:
        args = ", ".join(print_expression(a) for a in source.args)
        lines.append(f"FROM GENERATOR {print_name(source.name)}({args})")
    if source is not None:
        lines += _format_and_options(source.format, source.options)
    if statement.archive is not None:
        lines.append(f"ARCHIVE {print_text(statement.archive)}")
    return "\n".join(lines)


def _format_and_options(format_: str | None, options: Sequence[syntax.Option]) -> list[str]:
    lines = [] if format_ is None else [f"FORMAT {format_}"]
    if options:
        shown = ", ".join(f"{print_name(o.name)} = {_option_value(o.value)}" for o in options)
        lines.append(f"WITH ({shown})")
    return lines


def _option_value(value: bool | int | float | str | syntax.Duration) -> str:
    return print_duration(value) if isinstance(value, syntax.Duration) else _value(value)


def _create_query(statement: syntax.CreateQuery) -> str:
    keyword = "CREATE OR REPLACE QUERY" if statement.replaces else "CREATE QUERY"
    lines = [f"{keyword} {_new_name(statement.name, statement.is_optional)} AS", print_query(statement.query)]
    if statement.into is not None:
        lines.append(f"INTO {print_text(statement.into)}")
    lines += _format_and_options(statement.format, statement.options)
    if statement.archive is not None:
        lines.append(f"ARCHIVE {print_text(statement.archive)}")
    if statement.with_history:
        lines.append("WITH HISTORY")
    if statement.backfill is not None:
        lines.append(f"BACKFILL FROM {print_text(statement.backfill)}")
    return "\n".join(lines)
