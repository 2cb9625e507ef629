"""Comparisons and four-valued logic: TRUE, FALSE, NULL and failed.

Invariant: a failed operand makes the result fail, except that AND is FALSE if any operand is, else NULL if any is, and
only then failed; OR mirrors it. So an error counts only where every other conjunct is TRUE and filters may be reordered
(docs/semantics R2, R4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minidsms.dictionary import TextDictionary
from minidsms.elements import Int64Array
from minidsms.expressions.value import Value, any_failed, both_valid, finish

COMPARE: dict[str, Callable[..., np.ndarray]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(function: str) -> Callable[[Value, Value], Value]:
    """A comparison of numbers, BOOLEANs, or (= and <> only) TEXT codes."""
    operator = COMPARE[function]

    def apply(a: Value, b: Value) -> Value:
        return finish(operator(a.values, b.values), both_valid(a, b), any_failed(a, b))

    return apply


def ranked(dictionary: TextDictionary, values: Sequence[Value]) -> list[Int64Array]:
    """The ranks of several TEXT values, comparable with each other."""
    ranks = dictionary.ranks(np.concatenate([v.values for v in values]))
    return np.split(ranks, np.cumsum([len(v.values) for v in values])[:-1])


def compare_text(function: str, dictionary: TextDictionary) -> Callable[[Value, Value], Value]:
    """An ordering comparison of TEXT by code point."""
    operator = COMPARE[function]

    def apply(a: Value, b: Value) -> Value:
        left, right = ranked(dictionary, (a, b))
        return finish(operator(left, right), both_valid(a, b), any_failed(a, b))

    return apply


def conjunction(args: Sequence[Value]) -> Value:
    """AND of two or more."""
    return _junction(args, np.logical_and, lambda v: ~v.values if v.valid is None else v.valid & ~v.values)


def disjunction(args: Sequence[Value]) -> Value:
    """OR of two or more."""
    return _junction(args, np.logical_or, lambda v: v.values)


def _junction(
    args: Sequence[Value],
    operator: Callable[..., np.ndarray],
    decides: Callable[[Value], np.ndarray],
) -> Value:
    """decides: the rows where one operand alone settles the result (FALSE for AND, TRUE for OR)."""
    values = args[0].values
    for arg in args[1:]:
        values = operator(values, arg.values)
    if all(arg.valid is None for arg in args):
        return Value(values)
    decided = decides(args[0])
    null = args[0].null
    for arg in args[1:]:
        decided = decided | decides(arg)
        null = null | arg.null
    failed = any_failed(*args)
    if failed is not None:
        failed = failed & ~decided & ~null
        if not failed.any():
            failed = None
    invalid = null & ~decided
    if failed is not None:
        invalid = invalid | failed
    # A NULL operand counts as FALSE in `values`: right for AND (never TRUE beside a NULL) and OR alike.
    values = values.copy()
    return finish(values, ~invalid, failed)


def negation(a: Value) -> Value:
    """NOT a."""
    return finish(~a.values, a.valid, a.failed)


def is_null(a: Value) -> Value:
    """a IS NULL; a failed operand stays failed."""
    if a.valid is None:
        return Value(np.zeros(1, np.bool_))
    if a.failed is None:
        return Value(~a.valid)
    return finish(a.null.copy(), ~a.failed, a.failed)


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
