"""The input manager of one base relation: insertions and deletions with their instants, checked before any is made.

Invariants: changes come in nondecreasing ts and after every closed instant (docs/semantics T4); every deletion cancels
an earlier insertion of an equal row (T2); a call that raises has changed nothing. Relations take no slack and hold no
time back (T6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from minidsms.counted import counted
from minidsms.cql.catalog import RelationDef
from minidsms.cql.errors import DataError, Error, LateElementError, one_line
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Column, Int8Array, Int64Array, Type, has_true
from minidsms.inputs.arrays import ColumnReader
from minidsms.inputs.conversion import Converter
from minidsms.inputs.keyed_rows import KeyedRows, Replacement
from minidsms.inputs.rejected import InputCounters, RejectedRows
from minidsms.inputs.values import ValueRefused, is_integer, show
from minidsms.synopses.relation_store import RelationStore
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.archive.recorder import Recorder
    from minidsms.durability.input_journal import InputJournal
    from minidsms.inputs.stream_input import StreamInput

_SIGNS = {"+": 1, "-": -1, "1": 1, "+1": 1, "-1": -1}


class Follower(Protocol):
    """Somebody who is told of every change as it is made."""

    def add(self, instants: Int64Array, signs: Int8Array | None, columns: Sequence[Column]) -> None:
        """Changes have been made; signs None: all are insertions. It must only note them down."""


class RelationInput:
    """What `push` on a relation, and sources, talk to.

    store: the changes and the rows present.  closed: gives the last instant that is closed for a query which reads the
    relation (MIN_INSTANT where there is none).  memory: asked with the bytes of a call; it may raise.  clock: of what
    comes when it comes.  closes: tells whether a change closes the instants before it for other relations.  is_beside:
    tells whether a query reads the stream and the relation.  last_ts: the instant of the last change, or None.  told:
    nothing at or before it comes any more, for readers of which relations alone may still change.  is_fed: a source
    changes it, or has until it ended.  journal: keeps the changes first, in a connection with a folder.
    """

    def __init__(
        self,
        definition: RelationDef,
        dictionary: TextDictionary,
        tick_ns: int,
        closed: Callable[[], int],
        memory: Callable[[RelationStore, int, Int8Array | None], None] | None = None,
        clock: Callable[[], int] | None = None,
        closes: Callable[[], bool] = lambda: False,
        is_beside: Callable[[StreamInput], bool] = lambda stream: True,
    ) -> None:
        self.definition = definition
        self.schema = definition.schema
        self.store = RelationStore(definition.schema)
        self.last_ts: int | None = None
        self.told = MIN_INSTANT
        self._clock = clock
        self.is_fed = self.ended = False
        self.counters = InputCounters()
        self.rejected = RejectedRows()
        self.closed, self.closes, self.is_beside = closed, closes, is_beside
        self._memory = memory
        self.recorder: Recorder | None = None
        self.journal: InputJournal | None = None
        self.followers: list[Follower] = []
        self._keyed: KeyedRows | None = None
        self._dictionary = dictionary
        self.converter = Converter(f"relation {one_line(definition.name)}", definition.schema, dictionary, tick_ns)
        self._signs = ColumnReader(dictionary, tick_ns)

    @property
    def progress(self) -> int:
        """Relations hold no time back."""
        return MAX_INSTANT

    @property
    def greatest_ts(self) -> int | None:
        """The instant of the last change."""
        return self.last_ts

    def push(self, data: Any, ts: Any = None, sign: Any = 1) -> int:
        """Make changes; returns how many. All or nothing: an error leaves the relation as it was.

        data: as for a stream.  ts: an instant for all, or one per row; without it, the first instant that is still
        open, at or after 0 and the last change.  sign: +1 (insert) or -1 (delete) for all, or one per row ('+' and '-'
        will do). LateElementError where a ts is below one before it or not after the closed instants; DataError where
        a deletion cancels no row.
        """
        n, columns = self.converter.columns(data)
        signs = self._read_signs(sign, n)
        instants = self.converter.instants(self.first_open() if ts is None else ts, n)
        if n == 0:
            return 0
        self._check_order(instants)
        return self._change(instants, signs, columns)

    def advance(self, ts: int) -> None:
        """A heartbeat: no change at or before ts comes any more. It moves queries for which only relations change."""
        self.told = max(self.told, self.converter.instant(ts))

    def heartbeat(self, ts: int) -> None:
        """`advance` by a source: where a folder keeps what comes, it keeps this first."""
        if self.journal is not None and ts > self.told:
            self.journal.hear(ts)
        self.advance(ts)

    def first_open(self) -> int:
        """The first instant, at or after 0 and the last change, at which a change may be made."""
        first = max(0, self.closed() + 1)
        return first if self.last_ts is None else max(first, self.last_ts)

    def next_instant(self) -> int:
        """The clock's instant, or the first that is still open behind it; the first that is open for the first rows."""
        first = max(self.first_open(), self.told + 1)
        return first if self._clock is None or self.last_ts is None else max(first, self._clock())

    def keep_pace(self) -> None:
        """A heartbeat by the clock, where a change waits to be answered: its instant is past."""
        past = self.next_instant() - 1
        if self.last_ts is not None and self.told < self.last_ts <= past:
            self.heartbeat(past)

    def upsert(self, data: Any, ts: Any = None) -> int:
        """Put each row in the place of those with its KEY; returns how many rows were given. data, ts: as for push."""
        if not self.definition.key:
            hint = "declare one: CREATE RELATION R (..) KEY (column)"
            raise self.converter.error("no KEY says which rows a row replaces", hint)
        n, columns = self.converter.columns(data)
        instants = self.converter.instants(self.first_open() if ts is None else ts, n)
        if n == 0:
            return 0
        self._check_order(instants)
        if self._keyed is None:
            self._keyed = KeyedRows(self.schema, self.definition.key, self.store.present())
        made = self._keyed.replacing(instants, columns)
        if len(made.instants):
            self._change(made.instants, made.signs, made.columns, made)
        return n

    def exchange(self, leaving: Sequence[Column], coming: Sequence[Column] | None) -> int:
        """Take out rows that are present, and put others in their places, if any; returns how many were taken out."""
        n = len(leaving[0])
        columns, signs = list(leaving), np.full(n, -1, np.int8)
        if coming is not None:
            columns = [Column.concat(pair) for pair in zip(leaving, coming)]
            signs = np.concatenate([signs, -signs])
        instants = np.full(len(signs), self.first_open(), np.int64)
        self._check_order(instants)
        self._change(instants, signs, columns)
        return n

    def _change(
        self, instants: Int64Array, signs: Int8Array | None, columns: Sequence[Column], made: Replacement | None = None
    ) -> int:
        """made: what the changes are, where rows replace others."""
        n = len(instants)
        if self.recorder is not None:
            self.recorder.check_resumed()
        if self._memory is not None:
            self._memory(self.store, n, signs)
        if self.journal is not None:
            self.journal.add(instants, signs, columns)
        bad = self.store.append(instants, signs, columns, None if made is None else made.words)
        if bad >= 0:
            if self.journal is not None:
                self.journal.retract(n)
            row = self.converter.rows([c.slice(bad, bad + 1) for c in columns])[0]
            raise self.converter.error(
                f"row {bad}: nothing to delete: no row {_short(row)} is present at {int(instants[bad])}",
                "a deletion names a row inserted before, equal in every column",
            )
        if self.recorder is not None:
            self.recorder.add(instants, signs, columns)
        if self._keyed is not None and made is None:
            self._keyed.add(instants, signs, columns)
        elif self._keyed is not None and made is not None:
            self._keyed.replace(made)
        for follower in self.followers:
            follower.add(instants, signs, columns)
        self.last_ts = int(instants[-1])
        self.counters.accepted += n
        return n

    def present(self) -> Any:
        """The rows there now, as insertions at the instants they came at: a Batch in ts order."""
        return self.store.present()

    def begin(self) -> None:
        """A source is going to change it."""
        self.is_fed, self.ended = True, False

    def finish(self) -> None:
        """The source has ended. Changes may still be pushed: a relation holds nothing back, ended or not."""
        self.ended = True

    def reject(self, row: Any, reason: str) -> None:
        """Count and keep a row that could not be taken (sources tell of malformed rows here)."""
        self.counters.rejected += 1
        self.rejected.add(row, reason)

    @property
    def nbytes(self) -> int:
        """Bytes of the store, and of the rows by their key."""
        return self.store.nbytes + (0 if self._keyed is None else self._keyed.nbytes)

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held (0 stands for NULL)."""
        return self.store.live_codes()

    def release(self) -> None:
        """The connection has been closed: what is held goes at once, whoever still refers to this."""
        self.store, self._keyed = RelationStore(self.schema), None

    # --------------------------------------------------------------------------------------------------- checks

    def _check_order(self, ts: Int64Array) -> None:
        first, row = ts.item(0), 0
        before = first if self.last_ts is None else self.last_ts
        if first >= before and len(ts) > 1:
            falls = ts[1:] < ts[:-1]
            if has_true(falls):
                row = 1 + int(np.argmax(falls))
                before = ts.item(row - 1)
        if ts.item(row) < before:
            raise self.converter.error(
                f"row {row}: late: timestamp {ts.item(row)} is below {before}, that of the change before",
                "relations take no slack: push changes in timestamp order",
                LateElementError,
            )
        closed = self.closed()
        if first <= closed:
            raise self.converter.error(
                f"row 0: late: the instant {first} is closed, as all up to {closed}",
                "push changes of a relation before the streams move past their instants",
                LateElementError,
            )

    def _read_signs(self, sign: Any, n: int) -> Int8Array | None:
        """The signs, None where all are +1."""
        try:
            return self._signs_of(sign, n)
        except Error:
            raise
        except Exception as error:
            raise self.converter.raised(error) from error

    def _signs_of(self, sign: Any, n: int) -> Int8Array | None:
        one = _sign(sign)
        if one is not None:
            return None if one == 1 else np.full(n, -1, np.int8)
        if is_integer(sign) or isinstance(sign, str):
            raise self._no_sign(sign, None)
        signs = self._sign_column(sign)
        if len(signs) != n:
            raise self.converter.error(
                f"{counted(len(signs), 'sign')} for {counted(n, 'row')}",
                "give sign one value for all rows, or one per row",
            )
        return None if (signs == 1).all() else signs

    def _sign_column(self, sign: Any) -> Int8Array:
        if isinstance(sign, list | tuple):
            read = [_sign(value) for value in sign]
            if None in read:
                raise self._no_sign(sign[read.index(None)], read.index(None))
            return np.array(read, np.int8)
        try:
            column = self._signs.read(sign, Type.INTEGER)
        except ValueRefused:
            try:
                texts: Sequence[Any] = self._dictionary.decode(self._signs.read(sign, Type.TEXT))
            except ValueRefused as refused:
                raise self.converter.error(f"sign: {refused.reason}", "a sign is +1 or -1") from None
            return self._sign_column(list(texts))
        wrong = np.abs(column.values) != 1
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self._no_sign(column.values.tolist()[row], row)
        return column.values.astype(np.int8)

    def _no_sign(self, value: Any, row: int | None) -> DataError:
        where = "" if row is None else f"row {row}: "
        return self.converter.error(f"{where}{show(value)} is no sign", "a sign is +1 (insert) or -1 (delete)")


def _sign(value: Any) -> int | None:
    """+1 or -1, or None for anything else."""
    if is_integer(value):
        return int(value) if value in (1, -1) else None
    return _SIGNS.get(value.strip()) if isinstance(value, str) else None


def _short(row: Sequence[Any]) -> str:
    text = ascii(tuple(row))
    return text if len(text) <= 200 else text[:197] + "..."
