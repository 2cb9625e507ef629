"""From a bound expression to something that computes columns.

A `bound.Expr` becomes a tree of closures over whole chunks (`value.Node`); no source is generated, nothing is looked up
while rows flow. An `Evaluator` runs a tree in chunks small enough for the processor's cache and writes full columns.
Every node that computes tries a program first (`programs`), so the largest expressions that can be programs are.

Invariant: the result of a row depends on that row only, so chunks, batches and subsets of rows never change it.
docs/design, decision 2; docs/semantics R4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from minidsms.cql import bound
from minidsms.cql.catalog import FunctionDef
from minidsms.elements import INT64_MAX, Batch, BoolArray, Column, Int64Array, Type, has_true, is_all_true
from minidsms.expressions import arithmetic, casts, decimals, lambdas, library, logic, text, timestamps, user
from minidsms.expressions.programs import BESIDE, Programmed
from minidsms.expressions.value import (
    Columns,
    Frame,
    Node,
    Value,
    any_failed,
    both_valid,
    constants,
    finish,
    full,
    take,
)
from minidsms.functions import LIBRARY
from minidsms.functions.function import Function
from minidsms.values.coded import text_of
from minidsms.values.dictionary import TextDictionary

CHUNK = 16_384
"""Rows computed at a time: 128 KB a column, so that a few intermediate columns stay in the second-level cache."""

FLAT_CHUNK = 65_536
"""Rows of an expression that has no intermediate columns, one operator or function over columns and constants."""

_JOINING = frozenset(("||", "concat"))
ORDERINGS = frozenset(("<", "<=", ">", ">="))


@dataclass(frozen=True)
class Context:
    """What expressions need besides rows. functions: user functions by lower-case name.  compilation: what is set now
    for kernels of programs.
    """

    dictionary: TextDictionary
    tick_ns: int = 1_000_000
    functions: Mapping[str, FunctionDef] = field(default_factory=dict)
    compilation: Callable[[], object] = BESIDE


class Evaluator:
    """A compiled expression, without subqueries and outer references. Calling it gives a `Value` of exactly n rows; a
    mask that says nothing is None.

    A column that is merely passed on is passed on itself, not copied.
    """

    def __init__(self, expr: bound.Expr, context: Context) -> None:
        self.expr = expr
        self.type = expr.type
        self._node = _quiet(expr, _by_numpy(expr, context))
        self._programmed = programmed((expr,), context)
        self._chunk = FLAT_CHUNK if _is_flat(expr) else CHUNK
        if isinstance(expr, bound.ColumnRef | bound.Literal):
            self._chunk = INT64_MAX

    def __call__(self, columns: Columns, n: int) -> Value:
        """columns: gives column i of n rows."""
        return self.of(Frame(columns, n))

    def of(self, frame: Frame) -> Value:
        """Of the rows of a frame that is no subset."""
        found = None if self._programmed is None else self._programmed.value(frame)
        if found is not None:
            return found
        return _whole(self._node(frame), frame.n, self.type) if frame.n <= self._chunk else self._chunked(frame)

    def _chunked(self, frame: Frame) -> Value:
        n = frame.n
        values = np.empty(n, self.type.dtype)
        valid: BoolArray | None = None
        failed: BoolArray | None = None
        for start in range(0, n, self._chunk):
            stop = min(start + self._chunk, n)
            part = self._node(frame.slice(start, stop))
            values[start:stop] = part.values
            if part.valid is not None:
                if valid is None:
                    valid = np.ones(n, np.bool_)
                valid[start:stop] = part.valid
            if part.failed is not None:
                if failed is None:
                    failed = np.zeros(n, np.bool_)
                failed[start:stop] = part.failed
        return _whole(Value(values, valid, failed), n, self.type)


def _is_flat(expr: bound.Expr) -> bool:
    match expr:
        case bound.Call(args=args):
            return all(map(_is_ready, args))
        case bound.Cast(arg=arg):
            return _is_ready(arg)
        case bound.Case(whens=whens, otherwise=otherwise):
            return all(_is_ready(e) for e in (otherwise, *(each for when in whens for each in when)))
    return _is_ready(expr)


def _is_ready(expr: bound.Expr) -> bool:
    """It costs nothing and cannot fail."""
    return isinstance(expr, bound.ColumnRef | bound.Literal | bound.Parameter)


def _whole(value: Value, n: int, type_: Type) -> Value:
    """The value written out to n rows of its type's dtype."""
    values = full(value.values, n)
    if values.dtype != type_.dtype:
        values = values.astype(type_.dtype)
    valid, failed = value.valid, value.failed
    if values is value.values and valid is None and failed is None:
        return value
    if valid is not None:
        valid = None if is_all_true(valid) else full(valid, n)
    if failed is not None:
        failed = full(failed, n)
        failed = failed if has_true(failed) else None  # a constant that fails does so in no row where there is none
    return Value(values, valid, failed)


class Projection:
    """Several expressions; one program computes those that can be."""

    def __init__(self, exprs: Sequence[bound.Expr], context: Context) -> None:
        self._columns = [expr.index if isinstance(expr, bound.ColumnRef) else None for expr in exprs]
        self._computed = [Evaluator(expr, context) for expr in exprs if not isinstance(expr, bound.ColumnRef)]
        self._programmed = programmed([each.expr for each in self._computed], context)

    def __call__(self, batch: Batch) -> tuple[list[Column], BoolArray | None]:
        """The columns, and the rows in which one failed (None: no row did); a failed value is NULL in its column."""
        frame = Frame(batch.column, len(batch.ts))
        found = None if self._programmed is None else self._programmed.values(frame)
        if found is None:
            values = [each.of(frame) for each in self._computed]
        elif None in found:
            values = [each.of(frame) if it is None else it for each, it in zip(self._computed, found)]
        else:
            values = found  # type: ignore[assignment]
        computed = iter(values)
        columns = [next(computed).column() if index is None else batch.column(index) for index in self._columns]
        return columns, any_failed(*values)


# ------------------------------------------------------------------------------------------------------- the tree


def compile_node(expr: bound.Expr, context: Context) -> Node:
    """The closure that computes the expression on a frame: by its program, else by numpy."""
    return _by_program(expr, _by_numpy(expr, context), context)


def compile_quietly(expr: bound.Expr, context: Context) -> Node:
    """The same for whoever has not told numpy to be quiet."""
    return _by_program(expr, _quiet(expr, _by_numpy(expr, context)), context)


def _by_program(expr: bound.Expr, node: Node, context: Context) -> Node:
    its = programmed((expr,), context)
    if its is None:
        return node

    def apply(frame: Frame) -> Value:
        found = its.value(frame)
        return node(frame) if found is None else found

    return apply


def programmed(exprs: Sequence[bound.Expr], context: Context, is_condition: bool = False) -> Programmed | None:
    """The expressions to be tried as a program; None where nothing is computed."""
    computes = any(isinstance(e, bound.Call | bound.Case | bound.Cast) for e in exprs)
    return Programmed(exprs, context.dictionary, is_condition, context.compilation) if computes else None


def _by_numpy(expr: bound.Expr, context: Context) -> Node:
    match expr:
        case bound.ColumnRef(index=index):
            return lambda frame: frame.column(index)
        case bound.Parameter(slot=slot):
            return lambda frame: frame.column(-1 - slot)
        case bound.Literal():
            return _literal(expr, context)
        case bound.Call(function="coalesce", args=args):
            return _coalesce([compile_node(a, context) for a in args], expr.type, _is_flat(expr))
        case bound.Call():
            return _call(expr, context)
        case bound.UserCall():
            return _user_call(expr, context)
        case bound.Case():
            return _case(expr, context)
        case bound.Cast(arg=arg, or_null=or_null):
            convert = casts.cast(arg.type, expr.type, context.dictionary, context.tick_ns)
            return _unary(casts.or_null(convert) if or_null else convert, arg, context)
    raise AssertionError(f"{type(expr).__name__} is the planner's, not an expression over a row")


def _literal(expr: bound.Literal, context: Context) -> Node:
    value = expr.value
    if value is None or value != value:
        constant = Value(np.zeros(1, expr.type.dtype), np.zeros(1, np.bool_))
        return lambda frame: constant
    if expr.type.is_coded:
        held = context.dictionary.hold(value, expr.type)
        constant = Value(np.array([held.code], np.int64))
        # The closure keeps `held`, and `held` keeps the code from being given to another text.
        return lambda frame, held=held: constant  # type: ignore[misc]
    array = np.array([value], expr.type.dtype)
    if expr.type is Type.FLOAT:
        array = array + 0.0
    constant = Value(array)
    return lambda frame: constant


def _unary(function: Callable[[Value], Value], arg: bound.Expr, context: Context) -> Node:
    node = compile_node(arg, context)
    return lambda frame: function(node(frame))


def _user_call(expr: bound.UserCall, context: Context) -> Node:
    nodes = [compile_node(a, context) for a in expr.args]
    definition = context.functions[expr.function.lower()]
    dictionary, tick_ns = context.dictionary, context.tick_ns
    return lambda frame: user.call(definition, [node(frame) for node in nodes], frame.n, dictionary, tick_ns)


def _call(expr: bound.Call, context: Context) -> Node:
    name, args = expr.function, expr.args
    if args and isinstance(args[-1], bound.Lambda):
        return _lambda_call(expr, args[-1], context)
    if (exact := decimals.function(name, expr)) is not None:
        return _decimal_call(expr, exact, context)
    if name in LIBRARY:
        return _library_call(expr, context)
    if name in text.FUNCTIONS:
        return _text_call(expr, text.FUNCTIONS[name], context)
    if name in ORDERINGS and args[0].type.is_ranked:
        return _text_ordering(name, args, context)
    if name == "in" and isinstance(args[1], bound.LiteralList):
        return _member_of_constants(args[0], args[1], context)
    nodes = [compile_node(a, context) for a in args]
    first = nodes[0]
    if len(nodes) == 1:
        one = logic_of_one(name) or timestamps.part(name, context.tick_ns) or arithmetic.unary(name, args[0].type)
        if one is not None:
            return lambda frame: one(first(frame))
    if len(nodes) == 2:
        two = logic_of_two(name) or arithmetic.binary(name, args[0].type)
        if expr.type is Type.DATE and two is not None and name in ("+", "-"):
            two = timestamps.within_dates(two)
        if two is not None:
            second = nodes[1]
            return lambda frame: two(first(frame), second(frame))
    match name:
        case "and":
            return lambda frame: logic.conjunction([node(frame) for node in nodes])
        case "or":
            return lambda frame: logic.disjunction([node(frame) for node in nodes])
        case "in":
            return lambda frame: logic.member(first(frame), [node(frame) for node in nodes[1:]])
        case "least" | "greatest":
            return _extreme(name, nodes, expr.type, context)
    raise AssertionError(f"no built-in function {name} of {len(args)} arguments")


def _decimal_call(expr: bound.Call, exact: Callable[..., Any], context: Context) -> Node:
    """Of columns as whole numbers, where that is sure; else value by value."""
    nodes = [compile_node(a, context) for a in expr.args]
    of_columns = decimals.of_columns(expr.function, expr)
    one_by_one = text.per_combination(exact, [a.type for a in expr.args], context.dictionary, expr.type)

    def apply(frame: Frame) -> Value:
        values = [node(frame) for node in nodes]
        found = of_columns(values)
        return one_by_one(values) if found is None else found

    return apply


def _lambda_call(expr: bound.Call, taken: bound.Lambda, context: Context) -> Node:
    listed, *initial = (compile_node(a, context) for a in expr.args[:-1])
    body = compile_node(taken.body, context)
    if initial:
        return lambdas.reduced(expr, listed, initial[0], body, context.dictionary)
    return lambdas.per_element(expr, listed, body, context.dictionary)


def _member_of_constants(operand: bound.Expr, listed: bound.LiteralList, context: Context) -> Node:
    node = compile_node(operand, context)
    words, held = constants(listed.type, listed.values, context.dictionary)
    known = np.unique(words)

    # The closure keeps `held`, and that keeps the codes of texts from being given to others.
    def apply(frame: Frame, held: object = held) -> Value:
        value = node(frame)
        return finish(np.isin(value.values, known), value.valid, value.failed)

    return apply


def logic_of_one(name: str) -> Callable[[Value], Value] | None:
    """NOT, IS NULL, and the planner's "try"."""
    return {"not": logic.negation, "is null": logic.is_null, "try": logic.tried}.get(name)


def logic_of_two(name: str) -> Callable[[Value, Value], Value] | None:
    """Comparisons of words, IS DISTINCT FROM, NULLIF, and the value of a scalar subquery."""
    if name in logic.COMPARE:
        return logic.compare(name)
    return {"is distinct from": logic.is_distinct, "nullif": logic.nullif, "single": logic.single}.get(name)


# ----------------------------------------------------------------------------------------------------------- text


def _constant_text(expr: bound.Expr) -> str | None:
    return text_of(expr.value, expr.type) if isinstance(expr, bound.Literal) and expr.value is not None else None


def _library_call(expr: bound.Call, context: Context) -> Node:
    described = LIBRARY[expr.function]
    of_values = library.value_function(described, context.tick_ns)
    if of_values is not None:
        return _text_call(expr, of_values, context, described.strict, _step(described, expr, context.tick_ns))
    apply = library.array_function(described, expr.args, expr.type, context.tick_ns)
    nodes = [compile_node(a, context) for a in expr.args]
    return lambda frame: apply([node(frame) for node in nodes])


def _step(described: Function, expr: bound.Call, tick_ns: int) -> int:
    """The ticks of the steps within which all instants give the same; 1 where it looks at each."""
    if described.grain_ns is None:
        return 1
    literals = [a.value for i, a in enumerate(expr.args) if i in described.literals and isinstance(a, bound.Literal)]
    ticks, rest = divmod(described.grain_ns(*literals), tick_ns)
    return 1 if rest else ticks


def _text_call(
    expr: bound.Call, function: text.TextFunction, context: Context, is_strict: bool = True, step: int = 1
) -> Node:
    """By code where only one argument varies, and that is a TEXT or a list; else by distinct combination. step: ticks
    within which it gives the same of an instant, the first argument.
    """
    args: Sequence[bound.Expr] = expr.args
    writers: list[Callable[[Any], str] | None] = []
    if expr.function in _JOINING:
        args = _pieces(expr)
        writers = [casts.writer(each.arg.type, context.tick_ns) if _is_written(each) else None for each in args]
        args = [each.arg if _is_written(each) else each for each in args]
    varying = [i for i, a in enumerate(args) if not isinstance(a, bound.Literal)]
    constants = [a.value for a in args if isinstance(a, bound.Literal)]
    by_code = len(varying) == 1 and args[varying[0]].type.is_coded and args[varying[0]].type.kind != "DECIMAL"
    if is_strict and None not in constants and by_code:
        table = text.per_text(function, constants, varying[0], context.dictionary, expr.type, args[varying[0]].type)
        return _unary(table, args[varying[0]], context)
    nodes = [compile_node(a, context) for a in args]
    if step > 1:
        floored, instants = timestamps.floored(step), nodes[0]
        nodes[0] = lambda frame: floored(instants(frame))
    types = [a.type for a in args]
    combined = text.per_combination(function, types, context.dictionary, expr.type, is_strict, writers)
    return lambda frame: combined([node(frame) for node in nodes])


def _pieces(expr: bound.Expr) -> list[bound.Expr]:
    """The texts that a concatenation joins, in their order, of concatenations inside as well."""
    if isinstance(expr, bound.Call) and expr.function in _JOINING:
        return [piece for arg in expr.args for piece in _pieces(arg)]
    return [expr]


def _is_written(expr: bound.Expr) -> TypeGuard[bound.Cast]:
    """It is a value as CAST to TEXT writes it, which never fails."""
    if not isinstance(expr, bound.Cast) or isinstance(expr.arg, bound.Literal):
        return False
    return expr.arg.type.is_basic and expr.arg.type is not Type.TEXT


def _text_ordering(name: str, args: Sequence[bound.Expr], context: Context) -> Node:
    left, right = args
    for varying, constant, operator in ((left, right, name), (right, left, logic.FLIPPED[name])):
        limit = _constant_text(constant)
        if limit is not None and not isinstance(varying, bound.Literal) and varying.type is Type.TEXT:
            return _unary(_against(operator, limit, context.dictionary), varying, context)
    compare = logic.compare_text(name, context.dictionary)
    first, second = compile_node(left, context), compile_node(right, context)
    return lambda frame: compare(first(frame), second(frame))


def _against(operator: str, limit: str, dictionary: TextDictionary) -> text.CodeTable:
    tests: dict[str, Callable[[str], bool]] = {
        "<": lambda t: t < limit,
        "<=": lambda t: t <= limit,
        ">": lambda t: t > limit,
        ">=": lambda t: t >= limit,
    }
    return text.CodeTable(dictionary, tests[operator], Type.BOOLEAN)


def _extreme(name: str, nodes: Sequence[Node], type_: Type, context: Context) -> Node:
    better = np.less_equal if name == "least" else np.greater_equal
    chosen = np.minimum if name == "least" else np.maximum

    def apply(frame: Frame) -> Value:
        values = [node(frame) for node in nodes]
        result = values[0]
        for value in values[1:]:
            if not type_.is_ranked and result.valid is None and value.valid is None:
                result = Value(chosen(result.values, value.values))
                continue
            if type_.is_ranked:
                left, right = logic.ranked(context.dictionary, (result, value))
                wins = better(left, right)
            else:
                wins = better(result.values, value.values)
            result = logic.extreme(result, value, wins)
        return result

    return apply


# ------------------------------------------------------------------------------------------------------ choosing


class _Collected:
    """A result put together from disjoint sets of rows."""

    def __init__(self, n: int, type_: Type) -> None:
        self.n = n
        self.values: Any = np.zeros(n, type_.dtype)
        self.valid = np.zeros(n, np.bool_)
        self.failed = np.zeros(n, np.bool_)

    def put(self, rows: Int64Array, part: Value) -> None:
        self.values[rows] = part.values
        self.valid[rows] = True if part.valid is None else part.valid
        if part.failed is not None:
            self.failed[rows] = part.failed

    def fail(self, rows: Int64Array) -> None:
        self.failed[rows] = True

    def value(self) -> Value:
        return Value(
            self.values,
            None if is_all_true(self.valid) else self.valid,
            self.failed if has_true(self.failed) else None,
        )


def _rows_where(mask: BoolArray, n: int) -> BoolArray:
    return full(mask, n)  # type: ignore[no-any-return]


def _case(expr: bound.Case, context: Context) -> Node:
    """Each branch is evaluated on the rows that chose it, so that the others cannot fail there."""
    if all(_is_ready(e) for e in (expr.otherwise, *(branch for _, branch in expr.whens))) and all(
        _is_flat(condition) for condition, _ in expr.whens
    ):
        return _case_of_columns(expr, context)
    whens = [(compile_node(c, context), compile_node(b, context)) for c, b in expr.whens]
    otherwise = compile_node(expr.otherwise, context)
    type_ = expr.type

    def apply(frame: Frame) -> Value:
        result = _Collected(frame.n, type_)
        rows: Int64Array = np.arange(frame.n)
        for condition, branch in whens:
            if not len(rows):
                break
            test = condition(frame)
            chosen = _rows_where(test.values, frame.n)
            gone = chosen
            if test.failed is not None:
                wrong = _rows_where(test.failed, frame.n)
                result.fail(rows[wrong])
                gone = chosen | wrong
            if is_all_true(chosen):
                result.put(rows, branch(frame))
                return result.value()
            if has_true(chosen):
                inside = chosen.nonzero()[0]
                result.put(rows[inside], branch(frame.subset(inside)))
            if has_true(gone):
                outside = (~gone).nonzero()[0]
                rows, frame = rows[outside], frame.subset(outside)
        if len(rows):
            result.put(rows, otherwise(frame))
        return result.value()

    return apply


def _case_of_columns(expr: bound.Case, context: Context) -> Node:
    """Where it costs less to evaluate everything on all rows."""
    whens = [(compile_node(c, context), compile_node(b, context)) for c, b in reversed(expr.whens)]
    otherwise = compile_node(expr.otherwise, context)

    def apply(frame: Frame) -> Value:
        result = otherwise(frame)
        for condition, branch in whens:
            test, value = condition(frame), branch(frame)
            values = np.where(test.values, value.values, result.values)
            valid, failed = None, None if result.failed is None else result.failed & ~test.values
            if value.valid is not None or result.valid is not None:
                valid = np.where(test.values, *(True if v.valid is None else v.valid for v in (value, result)))
            result = Value(values, valid, failed)
            if test.failed is not None:
                failed, valid = any_failed(test, result), both_valid(Value(values, ~test.failed), result)
                result = finish(values, valid, failed)
        return result

    return apply


def _coalesce(nodes: Sequence[Node], type_: Type, is_flat: bool) -> Node:
    """The first that is not NULL; an argument is evaluated on the rows where those before it were NULL.

    is_flat: all are columns and constants, which cost nothing and do not fail.
    """

    def chosen(frame: Frame) -> Value:
        result = nodes[0](frame)
        for node in nodes[1:]:
            if result.valid is None:
                break
            value = node(frame)
            result = Value(
                np.where(result.valid, result.values, value.values),
                None if value.valid is None else result.valid | value.valid,
            )
        return result

    def apply(frame: Frame) -> Value:
        first = nodes[0](frame)
        if first.valid is None:
            return first
        result = _Collected(frame.n, type_)
        rows: Int64Array = np.arange(frame.n)
        for i, node in enumerate(nodes):
            value = first if i == 0 else node(frame)
            pending = _rows_where(value.null, frame.n).nonzero()[0]
            if len(pending) == len(rows) and len(rows):
                continue
            settled = (~_rows_where(value.null, frame.n)).nonzero()[0]
            result.put(rows[settled], take(value, settled, frame.n))
            if not len(pending):
                break
            rows, frame = rows[pending], frame.subset(pending)
        return result.value()

    return chosen if is_flat else apply


_ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "mod", "neg", "abs"))
_OF_NUMBERS = _ARITHMETIC | frozenset(
    ("and", "or", "not", "in", "is null", "is distinct from", "coalesce", "nullif", "least", "greatest", *logic.COMPARE)
)
"""Functions of columns that read and write nothing else; ..."""
_OF_CODES = frozenset(("=", "<>", "in", "is null", "is distinct from", "coalesce", "nullif"))
"""... of texts and DECIMALs, too."""


def _quiet(expr: bound.Expr, node: Node) -> Node:
    """The node of an expression, without numpy's warnings of results that are NULL or fail. To ask numpy for that takes
    a microsecond: not where there are none.
    """
    return np.errstate(all="ignore")(node) if any(map(_may_warn, bound.walk(expr))) else node


def _may_warn(part: bound.Expr) -> bool:
    """Whether a part of an expression may compute with floats, or calls the application; whole numbers wrap in
    silence.
    """
    match part:
        case bound.Call(function=name, args=args):
            if name in LIBRARY and LIBRARY[name].of_values is not None:
                return False
            is_quiet = name in _OF_NUMBERS and name not in _ARITHMETIC
            return not (is_quiet or name in text.FUNCTIONS or all(a.type is not Type.FLOAT for a in (part, *args)))
        case bound.Cast(arg=arg):
            return arg.type is Type.FLOAT and (not part.type.is_coded or part.type.kind == "DECIMAL")
    return isinstance(part, bound.UserCall)


def is_thread_safe(expr: bound.Expr, context: Context) -> bool:
    """Several threads may compute it at once, each of rows of its own: it asks neither texts, whose dictionary has one
    user at a time, nor functions of the application but universal ones.
    """
    for each in bound.walk(expr):
        match each:
            case bound.ColumnRef() | bound.Literal() | bound.LiteralList():
                pass
            case bound.Call(function=name, args=args) if name in _OF_NUMBERS:
                if name not in _OF_CODES and any(a.type.is_coded for a in args):
                    return False
            case bound.Case():
                pass
            case bound.Cast(type=type_, arg=arg):
                if not (type_.is_basic and arg.type.is_basic) or Type.TEXT in (type_, arg.type):
                    return False
            case bound.UserCall(function=name, args=args):
                definition = context.functions[name.lower()]
                if not (definition.vectorized and user.is_elementwise(definition.function)) or any(
                    each.type.is_coded for each in (expr, *args)
                ):
                    return False
            case _:
                return False
    return True


def constant_value(expr: bound.Expr) -> tuple[bool, Any]:
    """(True, value) of an expression that reads no column and no text; (False, None) when it fails."""
    value = Evaluator(expr, Context(TextDictionary()))(no_columns, 1)
    if value.failed is not None and value.failed[0]:
        return False, None
    return True, None if value.valid is not None and not value.valid[0] else value.values[0].item()


def no_columns(index: int) -> Column:
    """What gives an expression its columns that reads none."""
    raise AssertionError("a constant reads no column")
