"""The grammar's callbacks for expressions and windows: from tokens and finished parts to nodes of the syntax tree.

Every method is called by the LALR parser when its rule is complete, with the rule's parts in order; an optional part
that is missing is None. Numbers are judged here: an integer fits int64, a duration keeps its digits as text.

Invariant: a node's span runs from its first to its last character in the text, parentheses included.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from lark import Token
from lark.visitors import Transformer

from minidsms.aggregates import AGGREGATES, OF_DIFFERENT, SYNONYMS
from minidsms.aggregates.aggregate import Ordering
from minidsms.cql import syntax
from minidsms.cql.errors import CqlError
from minidsms.cql.long_number import LongNumber, number_of
from minidsms.cql.syntax import Span
from minidsms.cql.words import MONTHS, UNITS
from minidsms.elements import INT64_MAX, Type
from minidsms.values.types import MOST_DIGITS

Part = Any
"""A token, a node, a list of either, or None."""

_DURATION = re.compile(r"([+-]?)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_COUNT = re.compile(r"[0-9]+")
_SHORT_UNITS = {"min": "minute", "sec": "second", "hr": "hour", "mon": "month", "yr": "year"}
_CLOCK = re.compile(r"([+-]?)([0-9]+):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]*)?))?", re.ASCII)
"""What INTERVAL '1 day 02:30:00' ends with."""
_SIDES = {"both": "TRIM", "leading": "LTRIM", "trailing": "RTRIM"}
_FOR_REGEXP = re.compile(r"^\^|\$$|\\[A-Za-z0-9]|\.[*+?{]|\(\?")
"""What gives a regular expression away where a pattern of SIMILAR TO is wanted."""
_OF_SIMILAR = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]])*\]|[%_.^$\\]", re.DOTALL)
"""What a pattern of SIMILAR TO has that means something else in a regular expression, and what it is kept in."""
_DIGITS = re.compile(r"\s*[+-]?([0-9]+)(?:\.([0-9]*))?\s*", re.ASCII)
_TEXT = re.compile(r"'[^']*+(?:''[^']*+)*+'")


def span_of(parts: Sequence[Part]) -> Span:
    """From the start of the first part that is there to the end of the last."""
    present = [p for p in parts if p is not None and p != []]
    return part_span(present[0])[0], part_span(present[-1])[1]


def part_span(part: Part) -> Span:
    if isinstance(part, Token):
        return int(part.start_pos or 0), int(part.end_pos or 0)
    if isinstance(part, list):
        return span_of(part)
    return part.span  # type: ignore[no-any-return]


def _written_for_regexp(part: str) -> str:
    """A part of a pattern of SIMILAR TO: % and _ are any characters, those in brackets and behind \\ stay."""
    if part[0] == "[":
        return part
    return {"%": "(?s:.*)", "_": "(?s:.)"}.get(part, re.escape(part[-1]))


def _number(text: str) -> int | float:
    return number_of(text) if "." in text else int(text)


def node_of(kind: Callable[..., Any], *places: int, negated: int | None = None) -> Callable[[Any, list[Part]], Any]:
    """The callback of a rule that is a node of this kind: the parts at these places are its fields.

    negated: the place of NOT, where the node has a field for it.
    """

    def made(builder: Any, parts: list[Part]) -> Any:
        says = {} if negated is None else {"negated": parts[negated] is not None}
        return kind(*(parts[at] for at in places), span=span_of(parts), **says)

    return made


def literal_of(value: bool | None) -> Callable[[Any, list[Part]], syntax.Literal]:
    """The callback of a word that is a literal."""
    return lambda builder, parts: syntax.Literal(value, span=part_span(parts[0]))


class ExpressionBuilder(Transformer[Token, Part]):
    """The callbacks of expressions, windows and lengths of time.

    `text` is what is being parsed; errors quote it.
    """

    text = ""
    end_of_type = 0
    """Where the type ends that was read last."""

    def fail(self, reason: str, part: Part, note: str = "", hint: str = "") -> CqlError:
        """An error whose place is the given part."""
        return CqlError(reason, self.text, part_span(part), note, hint)

    def near(self, word: str, candidates: Sequence[str]) -> str:
        """A hint that names the candidate closest to the word, or ""."""
        close = difflib.get_close_matches(word[:40].lower(), [c.lower() for c in candidates], 1, 0.6)
        return f'did you mean "{close[0]}"?' if close else ""

    # ------------------------------------------------------------------------------------------------- numbers

    def integer_of(self, token: Token) -> int:
        """The int64 a NUMBER token spells; one more is let through for the minus before it (see `check_tree`)."""
        digits = token.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > INT64_MAX + 1:
            raise self.fail("this integer does not fit in 64 bits", token, hint=f"the greatest is {INT64_MAX}")
        return int(digits)

    def count_of(self, token: Token) -> int:
        """A number of rows."""
        if not _COUNT.fullmatch(token):
            raise self.fail(f'"{token}" is not a number of rows', token, hint="ROWS takes a whole number")
        value = self.integer_of(token)
        if value > INT64_MAX:
            raise self.fail("this integer does not fit in 64 bits", token, hint=f"the greatest is {INT64_MAX}")
        return value

    def number(self, parts: list[Part]) -> syntax.Literal:
        token: Token = parts[0]
        if _COUNT.fullmatch(token):
            return syntax.Literal(self.integer_of(token), span=part_span(token))
        value = number_of(token)
        if math.isinf(value):
            raise self.fail("this number is too large for a FLOAT", token)
        return syntax.Literal(value, span=part_span(token))

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
        if len(whole) > 19 or int(whole) > INT64_MAX:
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

    def interval_text(self, parts: list[Part]) -> syntax.Expr:
        """INTERVAL '1 hour 30 minutes' or INTERVAL '1 day 02:30:00': the sum of its parts."""
        span = span_of(parts)
        place = {"start_pos": span[0], "end_pos": span[1]}
        each = [
            self.interval([Token("TEXT", number, **place), Token("UNIT", unit, **place)])
            for number, unit in self._lengths_in(parts[1])
        ]
        return reduce(lambda left, right: syntax.Binary("+", left, right, span=span), each)

    def _lengths_in(self, text: Token) -> list[tuple[str, str]]:
        """The numbers and units in the text of an INTERVAL."""
        written = text.split()
        clock = _CLOCK.fullmatch(written[-1]) if len(written) % 2 else None
        if clock is not None:
            sign, hours, minutes, seconds = clock.groups("0")
            each_unit = ((hours, "hour"), (minutes, "minute"), (seconds, "second"))
            some = [each for each in each_unit if each[0].strip("0.")] or [("0", "second")]
            written[-1:] = [part for number, unit in some for part in (("-" if sign == "-" else "") + number, unit)]
        units = [word.lower().removesuffix("s") for word in written[1::2]]
        units = [_SHORT_UNITS.get(unit, unit) for unit in units]
        if not written or len(written) % 2 or any(unit not in UNITS and unit not in MONTHS for unit in units):
            hint = (
                "INTERVAL '90' MINUTE, INTERVAL '1 hour 30 minutes' or INTERVAL '1 day 02:30:00'; "
                f"units are {', '.join((*UNITS, *MONTHS))}"
            )
            raise self.fail("this is not a length of time", text, hint=hint)
        return list(zip(written[::2], units))

    def interval_of(self, parts: list[Part]) -> syntax.Expr:
        """INTERVAL (expr) SECOND: so many times the unit."""
        span = span_of(parts)
        one = self.interval([Token("NUMBER", "1", start_pos=span[0], end_pos=span[1]), parts[4]])
        return syntax.Binary("*", dataclasses.replace(one, span=span), parts[2], span=span)

    # --------------------------------------------------------------------------------------------- expressions

    def name(self, parts: list[Part]) -> syntax.Name:
        if len(parts) == 1:
            return syntax.Name(str(parts[0]), span=part_span(parts[0]))
        return syntax.Name(str(parts[2]), str(parts[0]), span=span_of(parts))

    def text_(self, parts: list[Part]) -> syntax.Literal:
        return syntax.Literal(str(parts[0]), span=part_span(parts[0]))

    null, true, false = literal_of(None), literal_of(True), literal_of(False)

    def typed_text(self, parts: list[Part]) -> syntax.Cast:
        kind, text = parts
        if kind.type == "DECIMAL":
            return syntax.Cast(self.text_([text]), self._decimal_of(text), span=span_of(parts))
        type_ = {"TIMESTAMP": Type.TIMESTAMP, "DATE": Type.DATE, "TIME": Type.TIME}[kind.type]
        return syntax.TypedText(self.text_([text]), type_, span=span_of(parts))

    def _decimal_of(self, text: Token) -> Type:
        """DECIMAL with just the digits that are written."""
        match = _DIGITS.fullmatch(text)
        whole, fraction = (match.group(1).lstrip("0"), match.group(2) or "") if match else ("", "")
        if match is None or len(whole) + len(fraction) > MOST_DIGITS:
            raise self.fail(f"this is no DECIMAL of at most {MOST_DIGITS} digits", text, hint="write it like '-12.50'")
        return Type.decimal(max(len(whole) + len(fraction), 1), len(fraction))

    def minus(self, parts: list[Part]) -> syntax.Expr:
        operand, span = parts[1], span_of(parts)
        if isinstance(operand, syntax.Literal) and type(operand.value) in (int, float):
            value = operand.value
            assert isinstance(value, int | float)
            return syntax.Literal(-value or type(value)(0), span=span)
        return syntax.Unary("-", operand, span=span)

    def plus(self, parts: list[Part]) -> syntax.Expr:
        return self._within(parts[1], span_of(parts))

    group = plus

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

    is_null = node_of(syntax.IsNull, 0, negated=2)
    is_distinct_from = node_of(syntax.IsDistinctFrom, 0, 5, negated=2)
    between = node_of(syntax.Between, 0, 3, 5, negated=1)
    in_list = node_of(syntax.InList, 0, 4, negated=1)
    in_query = node_of(syntax.InQuery, 0, 3, negated=1)
    exists = node_of(syntax.Exists, 1)
    scalar_query = node_of(syntax.ScalarQuery, 0)

    def is_truth(self, parts: list[Part]) -> syntax.IsDistinctFrom:
        value = syntax.Literal(parts[3].type == "TRUE", span=part_span(parts[3]))
        return syntax.IsDistinctFrom(parts[0], value, parts[2] is None, span=span_of(parts))

    def is_json(self, parts: list[Part]) -> syntax.Expr:
        """IS [NOT] JSON [VALUE | OBJECT | ARRAY | SCALAR], by functions; what is no JSON is of no kind."""
        span = span_of(parts)
        kind = "VALUE" if parts[4] is None else parts[4].upper()
        found: syntax.Expr = syntax.Call("JSON_VALID", (parts[0],), span=span)
        if kind != "VALUE":
            told = syntax.Call("JSON_TYPE", (parts[0],), span=span)
            kinds = ("OBJECT", "ARRAY") if kind == "SCALAR" else (kind,)
            words = tuple(syntax.Literal(word, span=span) for word in kinds)
            found = syntax.Logical("and", (found, syntax.InList(told, words, kind == "SCALAR", span=span)), span=span)
        return found if parts[2] is None else syntax.Unary("not", found, span=span)

    def like(self, parts: list[Part]) -> syntax.Like:
        escape = None if parts[5] is None else self.text_(parts[5:])
        ignores_case = parts[2].type == "ILIKE"
        return syntax.Like(parts[0], parts[3], escape, parts[1] is not None, ignores_case, span=span_of(parts))

    def matches(self, parts: list[Part]) -> syntax.Expr:
        """x ~ p, x ~* p (case does not count), their negations with !, x RLIKE p, x REGEXP p, by a function."""
        operand, negated, operator, pattern = parts
        span = span_of(parts)
        options = (syntax.Literal("i", span=part_span(operator)),) if operator.endswith("*") else ()
        found = syntax.Call("REGEXP_MATCHES", (operand, pattern, *options), span=span)
        is_negated = (negated is not None) != operator.startswith("!")
        return syntax.Unary("not", found, span=span) if is_negated else found

    def between_symmetric(self, parts: list[Part]) -> syntax.Expr:
        """x BETWEEN SYMMETRIC a AND b: between a and b, or between b and a."""
        operand, negated, _, word, low, _, high = parts
        span = span_of(parts)
        column = part_span(word) if self.text[part_span(low)[0]] in "+-" else None
        ways = [syntax.Between(operand, *ends, column=column, span=span) for ends in ((low, high), (high, low))]
        found = syntax.Logical("or", tuple(ways), span=span)
        return syntax.Unary("not", found, span=span) if negated else found

    def similar(self, parts: list[Part]) -> syntax.Expr:
        """x SIMILAR TO 'a%': the whole text, by a regular expression in which % and _ are what they are for LIKE."""
        operand, negated, _, _, text = parts
        span = span_of(parts)
        if _FOR_REGEXP.search(text):
            written = self.text[slice(*part_span(operand))]
            hint = f"write REGEXP_FULL_MATCH({written}, {self.text[slice(*part_span(text))]})"
            raise self.fail("a pattern of SIMILAR TO has % and _, and no regular expression", text, hint=hint)
        pattern = _OF_SIMILAR.sub(lambda found: _written_for_regexp(found.group()), text)
        literal = syntax.Literal(pattern, span=part_span(text))
        found = syntax.Call("REGEXP_FULL_MATCH", (operand, literal), span=span)
        return found if negated is None else syntax.Unary("not", found, span=span)

    def in_literals(self, parts: list[Part]) -> syntax.InList:
        listed: Token = parts[3]
        values: tuple[int | float, ...] | tuple[str, ...]
        if listed.type == "NUMBERS":
            numbers = listed.split(",")
            values = tuple(map(int, numbers)) if "." not in listed else tuple(map(_number, numbers))
        else:
            values = tuple(t[1:-1].replace("''", "'") for t in _TEXT.findall(listed))
        span = part_span(listed)
        items: tuple[syntax.Expr, ...] = (syntax.LiteralList(values, span=span),)
        if any(isinstance(value, LongNumber) for value in values):
            items = tuple(syntax.Literal(value, span=span) for value in values)
        return syntax.InList(parts[0], items, parts[1] is not None, span=span_of(parts))

    def in_value(self, parts: list[Part]) -> syntax.Expr:
        """x IN l: whether a list has the value."""
        operand, negated, _, listed = parts[:4]
        if isinstance(listed, Token):
            listed = self.text_([listed]) if listed.type == "TEXT" else self.list_value([None, *parts[3:]])
        found = syntax.Call("LIST_CONTAINS", (listed, operand), span=span_of(parts))
        return found if negated is None else syntax.Unary("not", found, span=span_of(parts))

    def call_from(self, parts: list[Part]) -> syntax.Call:
        """SUBSTRING(s FROM n FOR m), TRIM(chars FROM s), TRIM(BOTH FROM s)."""
        name, _, value, _, start, _, count, _ = parts
        span = span_of(parts)
        if name.lower() in ("substring", "substr"):
            return syntax.Call(str(name), (value, start, *([] if count is None else [count])), span=span)
        if name.lower() != "trim" or count is not None:
            raise self.fail(f"{name} takes no FROM", name)
        side = _SIDES.get(value.name.lower()) if isinstance(value, syntax.Name) else None
        return syntax.Call(side or "TRIM", (start,) if side else (start, value), span=span)

    def overlay(self, parts: list[Part]) -> syntax.Call:
        """OVERLAY(s PLACING t FROM n FOR m)."""
        name, _, text, _, new, _, start, _, count, _ = parts
        if name.lower() != "overlay":
            raise self.fail(f"{name} takes no FROM", name)
        return syntax.Call(str(name), (text, new, start, *([] if count is None else [count])), span=span_of(parts))

    def substring_for(self, parts: list[Part]) -> syntax.Call:
        name, _, text, _, count, _, start, _ = parts
        if name.lower() not in ("substring", "substr"):
            raise self.fail(f"{name} takes no FOR", name)
        start = start or syntax.Literal(1, span=part_span(name))
        return syntax.Call(str(name), (text, start, count), span=span_of(parts))

    def trim_from(self, parts: list[Part]) -> syntax.Call:
        name, _, side, characters, _, value, _ = parts
        if name.lower() != "trim" or side.lower() not in _SIDES:
            raise self.fail("this is no call of a function", name, hint="TRIM(BOTH 'x' FROM text)")
        return syntax.Call(_SIDES[side.lower()], (value, self.text_([characters])), span=span_of(parts))

    def quantified(self, parts: list[Part]) -> syntax.Quantified | syntax.InQuery:
        operand, op, quantifier, query = parts
        if isinstance(operand, syntax.Row) and (str(op), quantifier.type) in (("=", "ANY"), ("<>", "ALL")):
            return syntax.InQuery(operand, query, quantifier.type == "ALL", span=span_of(parts))
        return syntax.Quantified(str(op), quantifier.type.lower(), operand, query, span=span_of(parts))

    def quantified_list(self, parts: list[Part]) -> syntax.Call:
        """operand op ALL|ANY (list): whether it is so of every element, or of any."""
        operand, op, quantifier, _, listed, _ = parts
        span = span_of(parts)
        compared = syntax.Binary(str(op), operand, syntax.Name(syntax.ELEMENT, span=part_span(listed)), span=span)
        each = syntax.Lambda((syntax.ELEMENT,), compared, span=span)
        judged = syntax.Call("LIST_TRANSFORM", (listed, each), span=span)
        return syntax.Call(f"LIST_{quantifier.type}", (judged,), span=span)

    def list_of_query(self, parts: list[Part]) -> syntax.ScalarQuery:
        if isinstance(parts[1], syntax.Limited):
            of = ".." if parts[1].limit is None else "(SELECT x, k FROM .. ORDER BY k LIMIT n)"
            hint = f"(SELECT ARRAY_AGG(x ORDER BY k) FROM {of})"
            raise self.fail("ARRAY(..) has its elements in the order of values", parts[1], hint=hint)
        return syntax.ScalarQuery(parts[1], True, span=span_of(parts))

    def call(self, parts: list[Part]) -> syntax.Call:
        span, name = span_of(parts), str(parts[0])
        if len(parts) == 4:
            return syntax.Call(name, (syntax.Star(span=part_span(parts[2])),), span=span)
        _, _, distinct, args, inside, nulls_inside, _, _, within, _, _, behind, _, nulls, _ = parts
        if nulls_inside is not None and nulls is not None:
            raise self.fail("IGNORE NULLS stands inside the parentheses or behind them, not both", nulls)
        nulls = nulls_inside or nulls
        if inside is not None and within is not None:
            raise self.fail("ORDER BY stands inside the parentheses or behind WITHIN GROUP, not both", within)
        said = "" if nulls is None else nulls.lower()
        match args:
            case (syntax.Call(function="LIST_CONTAINS", args=(text, part)),) if name.lower() == "position":
                args = (text, part)
            case (syntax.Literal(value=str()) as width, *others) if name.lower() in ("time_bucket", "date_bin"):
                args = (self._cast(width, Type.INTERVAL, False, width.span), *others)
            case None | () if name.lower() == "count" and distinct is None:  # of DuckDB
                args = (syntax.Star(span=span),)
        order = inside or behind or ()
        is_one = name.lower() in ("first_value", "last_value") or (
            name.lower() in ("first", "last") and len(args or ()) == 1
        )
        if inside is not None and is_one:
            place = syntax.Literal(1 if name.lower().startswith("first") else -1, span=span)
            listed = syntax.Call("ARRAY_AGG", args or (), distinct is not None, order, nulls=said, span=span)
            return syntax.Call("ELEMENT_AT", (listed, place), span=span)
        aggregate = AGGREGATES.get(SYNONYMS.get(name.lower(), name.lower()))
        # STRING_AGG(t, ',') WITHIN GROUP (ORDER BY k) has the order inside.
        is_within = within is not None and (aggregate is None or aggregate.ordering is not Ordering.INSIDE)
        return syntax.Call(name, args or (), distinct is not None, order, is_within, said, span=span)

    def order_by(self, parts: list[Part]) -> tuple[syntax.SortKey, ...]:
        return tuple(parts[2::2])

    def sort_key(self, parts: list[Part]) -> syntax.SortKey:
        expr, direction, nulls, place = parts
        is_first = None if nulls is None else place.type == "FIRST"
        descending = direction is not None and direction.type == "DESC"
        return syntax.SortKey(expr, descending, is_first, span=span_of(parts))

    def filtered(self, parts: list[Part]) -> syntax.Call:
        """An aggregate of the rows that fulfil a condition: of a value that is NULL in the others."""
        call: syntax.Call = parts[0]
        condition, span = parts[4], span_of(parts)
        match call.args:
            case (syntax.Call(function="ARRAY_AGG", span=call.span) as listed, place) if call.function == "ELEMENT_AT":
                # FIRST(x ORDER BY k) is the first of these.
                return dataclasses.replace(call, args=(self.filtered([listed, *parts[1:]]), place), span=span)
        from minidsms.cql.written_out import aggregate_written_out  # reads expressions itself

        key = call.function.lower()
        aggregate = AGGREGATES.get(SYNONYMS.get(key, key))
        made = aggregate_written_out(key, call)
        if made is not None:
            return self._filtered_within(made, parts)
        if aggregate is None or not (call.args or call.within):
            hint = f"one of your own: {call.function}(CASE WHEN condition THEN x END), whose add passes over None"
            raise self.fail("FILTER stands behind an aggregate", call, hint=hint)
        if aggregate.name == "array_agg" and call.nulls != "ignore":
            # NULLs among the chosen values stay: each is a list of its own.
            one = syntax.Call("LIST_VALUE", call.args, span=call.span)
            chosen_lists = (syntax.Case(None, ((condition, one),), None, span=span),)
            order = call.order
            if (
                call.distinct or key in OF_DIFFERENT
            ) and not order:  # of the values, as without FILTER: lists have none
                order = (syntax.SortKey(call.args[0], span=call.span),)
            lists = dataclasses.replace(call, args=chosen_lists, order=order, nulls="ignore", span=span)
            return syntax.Call("FLATTEN", (lists,), span=span)
        if not aggregate.passes_nulls and call.nulls != "ignore":
            raise self.fail(
                "FILTER stands behind an aggregate that passes over NULLs",
                call,
                hint="IGNORE NULLS before FILTER makes it one",
            )

        def chosen(value: syntax.Expr) -> syntax.Case:
            return syntax.Case(None, ((condition, value),), None, span=span)

        if call.within:
            order = tuple(dataclasses.replace(key, expr=chosen(key.expr)) for key in call.order)
            return dataclasses.replace(call, order=order, span=span)
        counts_rows = isinstance(call.args[0], syntax.Star)
        value = syntax.Literal(1, span=call.span) if counts_rows else call.args[0]
        return dataclasses.replace(call, args=(chosen(value), *call.args[1:]), span=span)

    def _filtered_within(self, made: syntax.Expr, parts: list[Part]) -> syntax.Call:
        """An aggregate in other words, of the rows that fulfil the condition."""
        assert isinstance(made, syntax.Call)
        if made.function.lower() in AGGREGATES:
            return self.filtered([made, *parts[1:]])
        args = tuple(self._filtered_within(arg, parts) for arg in made.args)
        return dataclasses.replace(made, args=args, span=span_of(parts))

    def over(self, parts: list[Part]) -> syntax.Over | syntax.Call:
        call: syntax.Call = parts[0]
        rows, span = parts[2], span_of(parts)
        inner = call.args[0] if call.args else None
        if isinstance(inner, syntax.Call) and inner.span == call.span:  # of lists that FILTER has made
            calls = (self.over([arg, *parts[1:]]) if isinstance(arg, syntax.Call) else arg for arg in call.args)
            return dataclasses.replace(call, args=tuple(calls), span=span)
        if isinstance(rows, syntax.Over):
            return dataclasses.replace(rows, call=call, span=span)
        return syntax.Over(call, window=str(rows), span=span)

    def over_rows(self, parts: list[Part]) -> syntax.Over:
        """What stands in the parentheses behind OVER, of a call that is not known yet."""
        window, partition, order, frame = parts[1], parts[4], parts[5], parts[6]
        name = None if window is None else str(window)
        return syntax.Over(syntax.Call("", ()), partition or (), order or (), frame, name, span=span_of(parts))

    def frame(self, parts: list[Part]) -> syntax.Frame:
        unit, start, end = parts[0], parts[1], syntax.FrameBound(0)
        if len(parts) > 2:
            start, end = parts[2], parts[4]
        for bound, wrong in ((start, 1), (end, -1)):
            if bound.direction == wrong and bound.length is None:
                raise self.fail("a frame begins before it ends", bound)
        if start.direction > end.direction:
            raise self.fail("a frame begins before it ends", parts[-1], hint="BETWEEN n PRECEDING AND CURRENT ROW")
        return syntax.Frame(unit.lower(), start, end, span=span_of(parts))

    def frame_bound(self, parts: list[Part]) -> syntax.FrameBound:
        span = span_of(parts)
        direction = -1 if parts[-1].type == "PRECEDING" else 1
        if isinstance(parts[0], syntax.Duration):
            return syntax.FrameBound(direction, parts[0], span=span)
        if parts[0].type == "CURRENT":
            return syntax.FrameBound(0, span=span)
        if parts[0].type == "UNBOUNDED":
            return syntax.FrameBound(direction, span=span)
        number, unit = parts[1:3]
        if len(parts) == 3:
            lengths = self._lengths_in(parts[1])
            if len(lengths) > 1:
                raise self.fail(
                    "the distance of a frame has one unit", parts[1], hint="write it in one: INTERVAL '90' MINUTE"
                )
            place = {"start_pos": parts[1].start_pos, "end_pos": parts[1].end_pos}
            number, unit = (Token(kind, word, **place) for kind, word in zip(("TEXT", "UNIT"), lengths[0]))
        is_negative, length = self.duration_of(number, unit, span)
        if is_negative:
            raise self.fail("the distance of a frame is not negative", parts[1])
        if length.unit in MONTHS:
            raise self.fail(f"a {length.unit} has no fixed length", unit, hint="write it in DAYS")
        return syntax.FrameBound(direction, length, span=span)

    def case(self, parts: list[Part]) -> syntax.Case:
        whens = tuple((p[1], p[3]) for p in parts if isinstance(p, list))
        return syntax.Case(parts[1], whens, parts[-2], span=span_of(parts))

    def when(self, parts: list[Part]) -> list[Part]:
        return parts

    def extract(self, parts: list[Part]) -> syntax.Call:
        part = syntax.Literal(str(parts[2]), span=part_span(parts[2]))
        return syntax.Call("DATE_PART", (part, parts[4]), span=span_of(parts))

    def at_time_zone(self, parts: list[Part]) -> syntax.Call:
        utc = syntax.Literal("UTC", span=part_span(parts[1]))
        return syntax.Call("CONVERT_TZ", (parts[0], utc, self.text_(parts[4:])), span=span_of(parts))

    def list_value(self, parts: list[Part]) -> syntax.Call:
        return syntax.Call("LIST_VALUE", parts[2] or (), span=span_of(parts))

    entry = pair = node_of(syntax.Pair, 0, 2)

    def struct_or_map(self, parts: list[Part]) -> syntax.Call:
        """{'a': 1} and MAP {'a': 1}."""
        name, span = parts[0], span_of(parts)
        entries = [part for part in parts if isinstance(part, syntax.Pair)]
        if name is not None:
            if name.upper() != "MAP":
                raise self.fail(f'"{name}" has no braces', name, hint="a STRUCT is {'a': 1}, a MAP is MAP {'a': 1}")
            return syntax.Call("MAP", tuple(entries), span=span)
        return syntax.Call("STRUCT", tuple(map(self._named_field, entries)), span=span)

    def _named_field(self, entry: syntax.Pair) -> syntax.Pair:
        match entry.name:
            case syntax.Literal(value=str(name)) if name:
                return dataclasses.replace(entry, name=syntax.Name(name, span=entry.name.span))
            case syntax.Name(qualifier=None):
                return entry
            case _:
                raise self.fail("the name of a field is a text", entry.name, hint="a STRUCT is {'a': 1}")

    def index(self, parts: list[Part]) -> syntax.Call:
        return syntax.Call("ELEMENT_AT", (parts[0], parts[2]), span=span_of(parts))

    def slice(self, parts: list[Part]) -> syntax.Call:
        listed, _, first, _, last, _ = parts
        begin = first or syntax.Literal(1, span=part_span(parts[1]))
        return syntax.Call("LIST_SLICE", (listed, begin, *([] if last is None else [last])), span=span_of(parts))

    def arrow(self, parts: list[Part]) -> syntax.Call:
        """What stands in a JSON document: `->` as JSON, `->>` as text."""
        operand, arrow, minus, key = parts
        if key.type == "TEXT" and minus is not None:
            raise self.fail("a member's name takes no sign", minus)
        path = self.text_([key]) if key.type == "TEXT" else self.number([key])
        place = path if minus is None else self.minus([minus, path])
        name = "JSON_EXTRACT" if arrow == "->" else "JSON_EXTRACT_STRING"
        return syntax.Call(name, (operand, place), span=span_of(parts))

    def struct_field(self, parts: list[Part]) -> syntax.Call:
        operand, sign, name = parts
        if sign == "->>":
            raise self.fail('"->>" is followed by a text or a number', name, hint=f"a member of a JSON text: '{name}'")
        field = syntax.Literal(str(name), span=part_span(name))
        return syntax.Call("STRUCT_EXTRACT", (operand, field), span=span_of(parts))

    def lambda_(self, parts: list[Part]) -> syntax.Lambda:
        written, _, body = parts
        names: list[str] = []
        for name in written.items if isinstance(written, syntax.Row) else (written,):
            if not isinstance(name, syntax.Name) or name.qualifier is not None:
                raise self.fail("the parameters of a lambda are names", name, hint="for example x => x + 1")
            names.append(name.name)
        return syntax.Lambda(tuple(names), body, span=span_of(parts))

    def lambda_of(self, parts: list[Part]) -> syntax.Lambda:
        """lambda x, y: x + y, as in DuckDB."""
        return syntax.Lambda(tuple(map(str, parts[1])), parts[3], span=span_of(parts))

    def suffix_cast(self, parts: list[Part]) -> syntax.Expr:
        return self._cast(parts[0], parts[2], False, (part_span(parts[0])[0], self.end_of_type))

    def cast(self, parts: list[Part]) -> syntax.Expr:
        return self._cast(parts[2], parts[4], parts[0].upper() == "TRY_CAST", span_of(parts))

    def _cast(self, operand: syntax.Expr, type_: Type, or_null: bool, span: Span) -> syntax.Expr:
        """CAST, but a text that is written is an INTERVAL as behind that word."""
        if type_ is Type.INTERVAL and isinstance(operand, syntax.Literal) and isinstance(operand.value, str):
            text = Token("TEXT", operand.value, start_pos=operand.span[0], end_pos=operand.span[1])
            return self._within(self.interval_text([text, text]), span)
        return syntax.Cast(operand, type_, or_null, span=span)

    def row(self, parts: list[Part]) -> syntax.Row:
        return syntax.Row((parts[1], *parts[3]), span=span_of(parts))

    def exprs(self, parts: list[Part]) -> tuple[Part, ...]:
        """The parts of a list, without the commas between them."""
        return tuple(parts[::2])

    names = groupings = arguments = idents = columns = exprs

    # ------------------------------------------------------------------------------------------------- windows

    now_window = node_of(syntax.NowWindow)
    unbounded_window = node_of(syntax.UnboundedWindow)
    range_window = node_of(syntax.RangeWindow, 2, 4)
    tumble_window = node_of(syntax.HopWindow, 2)
    hop_window = node_of(syntax.HopWindow, 2, 4)

    def rows_window(self, parts: list[Part]) -> syntax.RowsWindow:
        slide = None if parts[4] is None else self.count_of(parts[4])
        return syntax.RowsWindow(self.count_of(parts[2]), slide, span=span_of(parts))

    def session_window(self, parts: list[Part]) -> syntax.SessionWindow:
        return syntax.SessionWindow(parts[2], parts[5] or (), span=span_of(parts))

    def partition_window(self, parts: list[Part]) -> syntax.PartitionWindow:
        rows = self.count_of(parts[5])
        return syntax.PartitionWindow(parts[3], rows, parts[7], parts[9], span=span_of(parts))
