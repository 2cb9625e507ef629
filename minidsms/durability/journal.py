"""What one stream or relation hands to the log: what a push takes, once all of it has been checked.

Invariant: elements are in the log before the input changes; where the log cannot take them, it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minidsms.dictionary import TextDictionary
from minidsms.durability.entry import Rows, encoded
from minidsms.durability.log import Log
from minidsms.elements import Column, Int8Array, Int64Array, Schema


class Journal:
    """Of one input.

    log: where its elements go; None while they come from there.  position: elements that are in the log, those that
    LATE DROP has dropped among them.
    """

    def __init__(
        self, name: str, schema: Schema, dictionary: TextDictionary, is_relation: bool, log: Log | None
    ) -> None:
        self.log = log
        self.rows = Rows(schema, dictionary, is_relation)
        self.position = 0
        self._heads = [encoded({"kind": "push", "to": name, "left": left}) for left in (False, True)]

    def add(self, ts: Int64Array, signs: Int8Array | None, columns: Sequence[Column], is_left: bool = False) -> None:
        """Elements are going to be taken. Error where the log cannot take them. is_left: nothing processes them yet."""
        if self.log is not None:
            self.log.append(self._heads[is_left], self.rows.encoded(ts, signs, columns))
        self.position += len(ts)

    def add_row(self, ts: int, values: Sequence[Any], is_left: bool) -> None:
        """`add` of one element of stored scalars."""
        if self.log is not None:
            self.log.append(self._heads[is_left], self.rows.encoded_row(ts, values))
        self.position += 1

    def pass_over(self, n: int) -> None:
        """So many elements have come that the log does not hold any more."""
        self.position += n

    def retract(self, n: int) -> None:
        """The n elements added last have been refused."""
        if self.log is not None:
            self.log.retract(self.log.next - 1)
        self.position -= n
