"""Sources of a connection with a folder: they are opened when the log has been carried out, where it says they were.

Invariant: the rows of a source and how far it has been read by them are one entry of the log, so that each row is
pushed once, however often the process ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import Error
from minidsms.cql.masking import masked
from minidsms.elements import Schema
from minidsms.sources.frames import is_generator
from minidsms.sources.live_lines import FeederGoesOn, LiveLines
from minidsms.sources.source import BaseSource, GoesOn, ReadUntil, Source

if TYPE_CHECKING:
    from minidsms.durability.input_journal import KeptSource


def address_of(name: str, source: Any, options: Mapping[str, Any]) -> str:
    """The place of a source that `feed` is given, absolute. Error for what a folder cannot name."""
    if not isinstance(source, str | os.PathLike):
        raise Error(
            f"the source of {name} is no path or address: a connection with a folder could not open it again\n"
            f"help: push its rows, and go on at db.position({name!r})"
        )
    try:
        json.dumps(options)
    except TypeError as error:
        raise Error(f"an option of the source of {name} cannot be kept: {error}") from None
    place = os.fspath(source)
    return place if place == "-" or "://" in place or is_generator(place) else os.path.abspath(place)


class SourceToCome(BaseSource):
    """Stands for a source while the log is carried out, and for one that has ended or cannot be opened again."""

    def __init__(self, opening: Callable[[], Source | LiveLines], path: str) -> None:
        super().__init__(path, Schema(()))
        self._opening = opening
        self._failure: Error | None = None
        self.bytes_total = self.bytes_read = 0

    def open(self, name: str, kept: KeptSource, held: Callable[[], Any]) -> list[str]:
        """Let `kept.source` be the source, where it was left; what is to be told. One that cannot be opened says so
        there, and raises it when it is read. held: gives the rows that a relation has.
        """
        try:
            source = self._opening()
        except Error as error:
            self._failure = error
            return [f"the source of {name} cannot be gone on with: {error}"]
        if kept.until.at is not None:
            assert isinstance(source, GoesOn)
            try:
                told = source.go_on({**kept.until.at, "rows": kept.until.rows, "bad": kept.until.bad, "held": held})
            except Error as error:
                source.close()
                self._failure = error
                return [f"the source of {name} cannot be gone on with: {error}"]
            if told:
                kept.until = ReadUntil(rejected=kept.until.rejected)
        elif isinstance(source, LiveLines) and not isinstance(source.feeder, FeederGoesOn):
            told = f"{masked(source.path)} cannot be asked again for what was sent to {name} before"
        else:
            told = ""
        kept.source = source
        return [told] if told else []

    def read(self) -> Iterator[Any]:
        """Nothing. Error where the source could not be opened, as often as it is asked."""
        return iter(self._nothing, None)

    def _nothing(self) -> None:
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """There is nothing to close."""
