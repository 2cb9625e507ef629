"""Comparisons and four-valued logic: TRUE, FALSE, NULL and failed.

Invariant: a failed operand makes the result fail, except that AND is FALSE if any operand is, else NULL if any is, and
only then failed; OR mirrors it. So an error counts only where every other conjunct is TRUE and filters may be reordered
(docs/semantics R2, R4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.value import Value, any_failed, both_valid, finish
from minidsms.values.dictionary import TextDictionary

COMPARE: dict[str, Callable[..., np.ndarray]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What says the same of the operands in the other order."""


def compare(function: str) -> Callable[[Value, Value], Value]:
    """A comparison of numbers, BOOLEANs, or (= and <> only) TEXT codes."""
    operator = COMPARE[function]

    def apply(a: Value, b: Value) -> Value:
        return finish(operator(a.values, b.values), both_valid(a, b), any_failed(a, b))

    return apply


def ranked(dictionary: TextDictionary, values: Sequence[Value]) -> list[Int64Array]:
    """The ranks of several TEXT values, comparable with each other."""
    ranks = dictionary.ranks(np.concatenate([v.values for v in values]))
    ends = accumulate(len(v.values) for v in values)
    return [ranks[end - len(v.values) : end] for v, end in zip(values, ends)]


def compare_text(function: str, dictionary: TextDictionary) -> Callable[[Value, Value], Value]:
    """An ordering comparison of TEXT by code point."""
    operator = COMPARE[function]

    def apply(a: Value, b: Value) -> Value:
        left, right = ranked(dictionary, (a, b))
        return finish(operator(left, right), both_valid(a, b), any_failed(a, b))

    return apply


def conjunction(args: Sequence[Value]) -> Value:
    """AND of two or more: known where all are TRUE or one is FALSE. A NULL has the word of FALSE."""
    values = reduce(np.logical_and, [a.values for a in args])
    if all(a.valid is None for a in args):
        return Value(values)
    return _junction(args, values, [values, *(~a.values if a.valid is None else a.valid ^ a.values for a in args)])


def disjunction(args: Sequence[Value]) -> Value:
    """OR of two or more: known where one is TRUE or none is NULL."""
    values = reduce(np.logical_or, [a.values for a in args])
    valid = both_valid(*args)
    return Value(values) if valid is None else _junction(args, values, [values, valid])


def _junction(args: Sequence[Value], values: BoolArray, known: Sequence[BoolArray]) -> Value:
    """known: masks; the result is TRUE or FALSE in the rows that one of them has."""
    valid = known[0] | known[1]
    for mask in known[2:]:
        valid = np.logical_or(valid, mask, out=valid if len(valid) >= len(mask) else None)
    failed = any_failed(*args)
    if failed is not None:
        failed = reduce(np.logical_and, [~a.null for a in args], failed & ~valid)
    return Value(values, valid, failed if failed is not None and failed.any() else None)


def negation(a: Value) -> Value:
    """NOT a."""
    return Value(~a.values if a.valid is None else a.valid ^ a.values, a.valid, a.failed)


def is_null(a: Value) -> Value:
    """a IS NULL; a failed operand stays failed."""
    if a.valid is None:
        return Value(np.zeros(1, np.bool_))
    if a.failed is None:
        return Value(~a.valid)
    return finish(a.null.copy(), ~a.failed, a.failed)


def tried(a: Value) -> Value:
    """a, NULL where it failed."""
    return a if a.failed is None else Value(a.values, ~a.failed if a.valid is None else a.valid & ~a.failed)


def is_distinct(a: Value, b: Value) -> Value:
    """a IS DISTINCT FROM b: never NULL; two NULLs are alike."""
    values = a.values != b.values
    if a.valid is not None or b.valid is not None:
        # Values under NULL are 0, which may equal a real 0.
        values = values | (a.null != b.null)
    failed = any_failed(a, b)
    return Value(values) if failed is None else finish(values, ~failed, failed)


def member(needle: Value, items: Sequence[Value]) -> Value:
    """needle IN (items): the OR of its equalities."""
    plain = [i for i in items if len(i.values) == 1 and i.valid is None]
    if len(plain) < 3:
        equal = compare("=")
        tests = [equal(needle, item) for item in items]
        return tests[0] if len(tests) == 1 else disjunction(tests)
    known = np.concatenate([i.values for i in plain])
    found = finish(np.isin(needle.values, known), needle.valid, needle.failed)
    rest = [i for i in items if not (len(i.values) == 1 and i.valid is None)]
    if not rest:
        return found
    equal = compare("=")
    return disjunction([found, *(equal(needle, item) for item in rest)])


def extreme(a: Value, b: Value, a_wins: np.ndarray) -> Value:
    """LEAST or GREATEST of two: a where it wins or b is NULL; NULL only where both are."""
    wins = a_wins
    if a.valid is not None:
        wins = wins & a.valid
    if b.valid is not None:
        wins = wins | ~b.valid
    values = np.where(wins, a.values, b.values)
    valid = None if a.valid is None or b.valid is None else a.valid | b.valid
    failed = any_failed(a, b)
    if failed is not None:
        valid = ~failed if valid is None else valid & ~failed
    return finish(values, valid, failed)


def nullif(a: Value, b: Value) -> Value:
    """NULL where a = b, else a."""
    same = compare("=")(a, b)
    values = np.where(same.values, np.zeros(1, a.values.dtype), a.values)
    failed = any_failed(a, b)
    valid = ~same.values if a.valid is None else a.valid & ~same.values
    if failed is not None:
        valid = valid & ~failed
    return finish(values, None if valid.all() else valid, failed)


def single(count: Value, a: Value) -> Value:
    """The value of a scalar subquery that gave `count` rows: more than one is a failure (docs/semantics R4)."""
    several = count.values > 1
    if count.failed is not None:
        several = several | count.failed
    if not several.any():
        return a
    n = max(np.size(several), np.size(a.values))
    failed = np.broadcast_to(several, (n,)).copy()
    values = np.where(failed, 0, a.values).astype(a.values.dtype)
    valid = ~failed if a.valid is None else a.valid & ~failed
    return Value(values, valid, failed if a.failed is None else failed | a.failed)
