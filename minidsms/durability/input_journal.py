"""What one stream or relation hands to the log: what a push takes, once all of it has been checked.

Invariant: elements are in the log before the input changes; where the log cannot take them, it does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.cql.errors import Error
from minidsms.durability.entry import Fields, Rows, encoded
from minidsms.durability.log import Log
from minidsms.elements import Column, Int8Array, Int64Array, Schema
from minidsms.sources.source import ReadUntil
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.archive.format import Archive


@dataclass
class KeptSource:
    """A source of an input, and how far it has been read. number: among those of the input.  replay: of an archive
    that `Connection.replay` reads, what is replayed, between which arrivals, and whether the input writes it ("own").
    """

    source: Any
    number: int
    until: ReadUntil = field(default_factory=ReadUntil)
    has_ended: bool = False
    replay: Fields | None = None

    def fields(self, until: ReadUntil) -> Fields:
        """As an entry of the log says it."""
        return {"source": self.number, **vars(until)}


class InputJournal:
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
        self.sources: list[KeptSource] = []
        self.first_width = len(schema)
        """How many columns the input had when it was declared: so many have pushes that do not say how many."""
        self._name = name
        self._dictionary = dictionary
        self._told: Fields = {}
        self._coming: Fields | None = None
        self._script: tuple[int, int] | None = None
        self.accepted: Int64Array | None = None
        """Which rows of the push under way are not late; None: all."""
        self._taken = 0
        self._begun = 0
        self._set_heads()

    def _set_heads(self) -> None:
        told = {"kind": "push", "to": self._name, **self._told}
        self._heads = [encoded({**told, "left": left}) for left in (False, True)]

    def widen(self, schema: Schema) -> None:
        """What is pushed from now on has more columns."""
        self.rows = Rows(schema, self._dictionary, self.rows.has_signs)
        self._told = {"width": len(schema)}
        self._set_heads()

    def batch(self, fields: Fields, rows: memoryview) -> Any:
        """What a push has brought, as `Rows.batch`."""
        return self.rows.batch(rows, fields.get("width", self.first_width))

    def add(self, ts: Int64Array, signs: Int8Array | None, columns: Sequence[Column], is_left: bool = False) -> None:
        """Elements are going to be taken. Error where the log cannot take them. is_left: nothing processes them yet."""
        if self.log is not None:
            self._begun = self.log.append(self._head(is_left), *self.rows.encoded(ts, signs, columns))
        self.accepted, self._taken = None, 0
        self.position += len(ts)

    def add_row(self, ts: int, values: Sequence[Any], is_left: bool) -> None:
        """`add` of one element of stored scalars."""
        if self.log is not None:
            self._begun = self.log.append(self._head(is_left), self.rows.encoded_row(ts, values))
        self.accepted, self._taken = None, 0
        self.position += 1

    def _head(self, is_left: bool) -> bytes:
        """What stands before the elements of a push."""
        if self._coming is None and self._script is None:
            return self._heads[is_left]
        told = {"kind": "push", "to": self._name, **self._told, "left": is_left}
        if self._coming is not None:
            told |= self._coming
        if self._script is not None:
            told["script"], self._script = self._script, None
        return encoded(told)

    def pass_over(self, n: int) -> None:
        """So many elements have come that the log does not hold any more."""
        self.position += n

    def retract(self, n: int) -> None:
        """The n elements added last have been refused."""
        if self.log is not None:
            if self.log.next == self._begun + 1:
                self.log.retract(self._begun)
            else:  # some of them have been shed
                with contextlib.suppress(Error):  # what has refused them is raised, and stops the connection
                    self.log.append(encoded({"kind": "undone"}))
        self.position -= n

    def next_rows(self, n: int) -> Int64Array:
        """Which rows of the push under way the next n are that are taken."""
        start, self._taken = self._taken, self._taken + n
        return np.arange(start, start + n) if self.accepted is None else self.accepted[start : start + n]

    @contextlib.contextmanager
    def carrying_out(self, place: tuple[int, int]) -> Iterator[Callable[[], bool]]:
        """The push of the context is a statement of a file (`KeptStatements.script`): its entry says so.

        What is yielded says whether there was one.
        """
        self._script = place
        try:
            yield lambda: self._script is None
        finally:
            self._script = None

    # ------------------------------------------------------------------------------------------------------ sources

    def attach(self, source: Any, replay: Fields | None = None) -> None:
        """One more source of the input."""
        self.sources.append(KeptSource(source, len(self.sources), replay=replay))

    def replay(self, replay: Fields) -> KeptSource:
        """An archive is going to be replayed between two arrivals: what goes on behind the first of them is the same
        source.
        """
        kept = self.replayed(replay) if replay.get("begin", 0) else None
        if kept is None:
            self.attach(None, replay)
            return self.sources[-1]
        kept.replay, kept.until, kept.has_ended = replay, ReadUntil(), False
        return kept

    def replayed(self, told: Mapping[str, Any]) -> KeptSource | None:
        """The replay of this that was begun last, of the same archive as far as is known."""
        for kept in reversed(self.sources):
            if kept.replay is not None and _is_same(kept.replay, told):
                return kept
        return None

    def has_left_another(self, told: Mapping[str, Any]) -> bool:
        """Whether a replay has not ended of another archive, which was in the same place."""
        if self.replayed(told) is not None:
            return False
        return any(
            kept.replay is not None and not kept.has_ended and kept.replay["folder"] == told["folder"]
            for kept in self.sources
        )

    def replay_span(self, archive: Archive, told: Mapping[str, Any], end: int) -> tuple[int, int]:
        """Between which arrivals an archive is to be replayed, which has those before `end`: from where its replay was
        left. Error where it has become shorter.
        """
        begun = self.replayed(told)
        if begun is None or begun.replay is None:
            return 0, end
        until = int(begun.replay["end"])
        if archive.end_arrival is None and archive.reached < until:
            raise Error(
                f"the archive {archive.folder!r} has become shorter since it was replayed into {self._name}\n"
                "help: give it back the files that it had then"
            )
        return (until, max(until, end)) if begun.has_ended else (int(begun.replay.get("begin", 0)), until)

    def of(self, source: Any) -> KeptSource | None:
        """What is known of a source, or None of one that is read but not kept."""
        return next((kept for kept in self.sources if kept.source is source), None)

    @contextlib.contextmanager
    def coming(self, kept: KeptSource, until: ReadUntil) -> Iterator[None]:
        """What the context adds is of a source, which is read so far with it."""
        self._coming = {"from": kept.fields(until)}
        if kept.replay is not None and kept.replay.get("own"):
            self._coming["recorded"] = False
        try:
            yield
        finally:
            self._coming = None
        kept.until = until

    def pass_by(self, ts: int) -> None:
        """Time passes as if an element of this instant had come."""
        if self.log is not None:
            self.log.append(encoded({"kind": "passed", "to": self._name, "ts": ts, "n": 0}))

    def hear(self, ts: int) -> None:
        """A source says, or lets it be known, that nothing up to ts comes any more."""
        if self.log is not None:
            self.log.append(encoded({"kind": "advance", "ts": ts, "stream": self._name.lower()}))

    def end(self, kept: KeptSource | None, until: ReadUntil) -> None:
        """A source has ended, and with it the input."""
        if self.log is not None:
            told = None if kept is None else kept.fields(until)
            self.log.append(encoded({"kind": "ended", "to": self._name, "from": told}))
        if kept is not None:
            kept.until, kept.has_ended = until, True

    def take(self, told: Fields, has_ended: bool = False) -> int:
        """What an entry of the log says of a source; how many more rows of it are rejected than before."""
        kept = self.sources[told["source"]]
        until = ReadUntil(told["at"], told["rows"], told["bad"], told["rejected"])
        new, kept.until, kept.has_ended = until.rejected - kept.until.rejected, until, has_ended
        return new


def _is_same(replay: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether both are the same replay of the same archive; earlier versions kept no "id"."""
    ids = {replay.get("id"), told.get("id")} - {None, ""}
    return len(ids) < 2 and all(replay[name] == told[name] for name in ("folder", "first", "last", "as_of"))
