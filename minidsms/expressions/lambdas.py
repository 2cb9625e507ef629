"""TRANSFORM, FILTER and REDUCE: a lambda's body over the elements of all lists of a chunk at once.

The elements stand in columns, each beside the row its list came from. A parameter is read as column -1 - slot, so that
the body is compiled like any other expression, and what it reads of the row is gathered.

Invariant: a row fails if the body fails for one of its elements; for the row's NULL list the body is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from minidsms.cql import bound
from minidsms.elements import BoolArray, Column, Int64Array, Type
from minidsms.expressions.value import Frame, Node, Value, finish, full
from minidsms.values.dictionary import TextDictionary


@dataclass(frozen=True)
class _Elements:
    """The elements of the lists of some rows. rows: those whose list is not NULL; lists, lengths: of each of these."""

    rows: Int64Array
    lists: list[tuple[Any, ...]]
    lengths: Int64Array
    column: Column

    @classmethod
    def of(cls, lists: Value, type_: Type, n: int, dictionary: TextDictionary) -> _Elements:
        column = Column(full(lists.values, n), None if lists.valid is None else full(lists.valid, n))
        rows = np.arange(n) if column.valid is None else np.flatnonzero(column.valid)
        values = dictionary.values(column.take(rows), type_)
        lengths = np.array([len(v) for v in values], np.int64)
        assert type_.element is not None
        return cls(rows, values, lengths, dictionary.column(list(chain.from_iterable(values)), type_.element))


def _within(frame: Frame, rows: Int64Array, first: int, parameters: Sequence[Column]) -> Frame:
    """The frame of a body: a row of `frame` for each element, and parameters from slot `first` on."""

    def column(index: int) -> Column:
        own = -1 - index - first
        return parameters[own] if index < 0 and own >= 0 else frame.column(index).column().take(rows)

    return Frame(column, len(rows))


def per_element(call: bound.Call, listed: Node, body: Node, dictionary: TextDictionary) -> Node:
    """LIST_TRANSFORM and LIST_FILTER: the lambda has an element, and perhaps its position, for parameters."""
    taken = call.args[-1]
    assert isinstance(taken, bound.Lambda)
    type_, keeps = call.args[0].type, call.function == "list_filter"

    def apply(frame: Frame) -> Value:
        lists = listed(frame)
        found = _Elements.of(lists, type_, frame.n, dictionary)
        owner = np.repeat(found.rows, found.lengths)
        positions = np.arange(len(owner)) - np.repeat(np.cumsum(found.lengths) - found.lengths, found.lengths) + 1
        result = body(_within(frame, owner, taken.first, (found.column, Column(positions))))
        m = len(owner)
        given = Column(full(result.values, m), None if result.valid is None else full(result.valid, m))
        values = dictionary.values(given, taken.type)
        cuts = pairwise(accumulate(found.lengths.tolist(), initial=0))
        if keeps:
            made = [tuple(v for v, k in zip(old, values[a:b]) if k) for old, (a, b) in zip(found.lists, cuts)]
        else:
            made = [tuple(values[a:b]) for a, b in cuts]
        bad = np.zeros(frame.n, np.bool_)
        if result.failed is not None:
            bad[owner[full(result.failed, m)]] = True
        return _spread(dictionary.column(made, call.type), found.rows, lists, frame.n, bad)

    return apply


def _spread(made: Column, rows: Int64Array, lists: Value, n: int, bad: BoolArray) -> Value:
    """The results of some rows among n; those of the others, whose list is NULL or failed, are so too."""
    values = np.zeros(n, made.values.dtype)
    valid = np.zeros(n, np.bool_)
    values[rows] = made.values
    valid[rows] = True if made.valid is None else made.valid
    bad &= valid
    return finish(values, valid, None if lists.failed is None else full(lists.failed, n), bad=bad)


def reduced(call: bound.Call, listed: Node, initial: Node, body: Node, dictionary: TextDictionary) -> Node:
    """LIST_REDUCE: the lambda has what was found so far and the next element for parameters."""
    taken = call.args[-1]
    assert isinstance(taken, bound.Lambda)
    type_ = call.args[0].type

    def apply(frame: Frame) -> Value:
        n = frame.n
        lists, start = listed(frame), initial(frame)
        found = _Elements.of(lists, type_, n, dictionary)
        values = np.array(full(start.values, n), call.type.dtype)
        valid = np.ones(n, np.bool_) if start.valid is None else full(start.valid, n).copy()
        failed = np.zeros(n, np.bool_) if start.failed is None else full(start.failed, n).copy()
        begins = np.cumsum(found.lengths) - found.lengths
        for step in range(int(found.lengths.max(initial=0))):
            going = np.flatnonzero((found.lengths > step) & ~failed[found.rows])
            rows = found.rows[going]
            state = Column(values[rows], valid[rows])
            element = found.column.take(begins[going] + step)
            result = body(_within(frame, rows, taken.first, (state, element)))
            values[rows] = result.values
            valid[rows] = True if result.valid is None else result.valid
            if result.failed is not None:
                failed[rows] = result.failed
        present = np.zeros(n, np.bool_)
        present[found.rows] = True
        given = np.zeros(n, np.bool_) if lists.failed is None else full(lists.failed, n)
        failed = (failed & present) | given
        valid &= present & ~failed
        return finish(values, None if valid.all() else valid, failed if failed.any() else None)

    return apply
