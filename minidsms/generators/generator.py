"""What a generator is: streams by name, and functions that give their rows in blocks of a fixed size.

Invariants: rows come in the order of their instants; a block is made from the seed and its number, or from the block
before, never from how many rows are asked for; memory is a block, whatever the number of events.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.cql.errors import Error
from minidsms.elements import Int64Array, Schema
from minidsms.sources.source import BaseSource, choose_columns

BLOCK_EVENTS = 8192


@dataclass(frozen=True)
class Parameters:
    """The arguments of one generator.

    stream: which of its streams.  events: how many, over all its streams; None: without end.  rate: events a second of
    event time.  start_s: the first instant, in seconds since 1970.  own: what only this generator knows.
    """

    stream: str
    events: int | None
    seed: int
    rate: float
    start_s: int
    tick_ns: int
    own: Mapping[str, Any] = field(default_factory=dict)

    def blocks(self) -> Iterator[Int64Array]:
        """The numbers of the events, a whole block at a time: fewer events are a beginning of more."""
        first = 0
        while self.events is None or first < self.events:
            yield np.arange(first, first + BLOCK_EVENTS, dtype=np.int64)
            first += BLOCK_EVENTS

    def cut(self, events: Int64Array, columns: dict[str, Any]) -> dict[str, Any]:
        """The rows of a block, one for each of these events, without those beyond the number asked for."""
        if self.events is None or not len(events) or events[-1] < self.events:
            return columns
        n = int(np.searchsorted(events, self.events))
        return {name: column[:n] for name, column in columns.items()}

    def instants(self, events: Int64Array) -> Int64Array:
        """When events happen, in ticks."""
        since_ns = (events / self.rate * 1e9).astype(np.int64)
        instants: Int64Array = (self.start_s * 1_000_000_000 + since_ns) // self.tick_ns
        return instants

    def random(self, events: Int64Array, *what: int) -> np.random.Generator:
        """Randomness for a block of events; what: numbers that tell several uses apart."""
        return np.random.default_rng((self.seed, int(events[0]) if len(events) else 0, *what))


Rows = Callable[[Parameters], Iterator[dict[str, Any]]]
"""Gives the rows of a stream: blocks of columns by name, numpy or Arrow arrays of one length."""


@dataclass(frozen=True)
class Generator:
    """A generator.

    streams: columns, by CQL type, and rows of each.  defaults: of the parameters, its own among them.  without: common
    parameters that mean nothing here.  main: the stream that is meant where none is named.
    """

    name: str
    about: str
    streams: Mapping[str, tuple[Mapping[str, str], Rows]]
    defaults: Mapping[str, Any]
    without: tuple[str, ...] = ()
    main: str | None = None

    def columns(self, stream: str) -> str:
        """A stream's columns as a declaration writes them."""
        return ", ".join(f"{name} {type_}" for name, type_ in self.streams[stream][0].items())


COMMON: dict[str, Any] = {"events": None, "seed": 1, "rate": 1000.0, "start": 0}


def parameters(generator: Generator, args: Sequence[Any], tick_ns: int) -> Parameters:
    """The arguments of FROM GENERATOR, checked. args: the stream's name first, where there are several."""
    values = {**COMMON, **generator.defaults}
    named = [arg for arg in args if isinstance(arg, tuple)]
    positional = [arg for arg in args if not isinstance(arg, tuple)]
    names = tuple(generator.streams)
    stream = positional[0] if positional else generator.main or names[0]
    if len(positional) > 1:
        raise Error(f"{generator.name}: one value without a name, the stream's\nhelp: write the others as name = value")
    if not positional and len(names) > 1 and generator.main is None:
        raise Error(
            f"{generator.name} has several streams: {', '.join(names)}\nhelp: write {generator.name}('{names[-1]}')"
        )
    if not isinstance(stream, str) or stream.lower() not in names:
        raise Error(f"{generator.name} has no stream {stream!r}\nhelp: there are: {', '.join(names)}")
    known = [name for name in values if name not in generator.without]
    for name, value in named:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"there are: {', '.join(known)}"
            raise Error(f'{generator.name} has no argument "{name}"\nhelp: {hint}')
        values[name] = _checked(generator, name, value, values[name])
    common = {name: values.pop(name) for name in ("events", "seed", "rate", "start")}
    return Parameters(
        stream.lower(), common["events"], common["seed"], float(common["rate"]), common["start"], tick_ns, values
    )


def _checked(generator: Generator, name: str, value: Any, default: Any) -> Any:
    """An argument's value. Whole numbers are at least 0, numbers above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Error(f'{generator.name}: "{name}" is a number, not {value!r}')
    if isinstance(default, float):
        if not 0 < value < 1e12:
            raise Error(f'{generator.name}: "{name}" is a number above 0, not {value!r}')
        return float(value)
    if not isinstance(value, int) or not 0 <= value < 2**53:
        raise Error(f'{generator.name}: "{name}" is a whole number of at least 0, not {value!r}')
    return value


class GeneratorSource(BaseSource):
    """The rows of one stream of a generator, as a bounded source, or one without end."""

    def __init__(self, generator: Generator, given: Parameters, schema: Schema) -> None:
        super().__init__(f"{generator.name}('{given.stream}')", schema)
        self._given = given
        types, self._rows = generator.streams[given.stream]
        self._columns = choose_columns(self.path, list(types), schema, False)
        # Events stand for bytes: what the fraction needs is only how much there is and how much is done.
        self.bytes_total = given.events or 0
        self.bytes_read = 0
        self._closed = False

    def close(self) -> None:
        """Make no more."""
        self._closed = True

    def read(self) -> Iterator[Any]:
        """The rows, a batch per block of events."""
        for block in self._rows(self._given):
            if self._closed:
                return
            self.bytes_read = min(self.bytes_total, self.bytes_read + BLOCK_EVENTS)
            arrays = [pa.array(block[c.name]) for c in self._columns]
            if arrays and len(arrays[0]):
                yield pa.RecordBatch.from_arrays(arrays, names=[c.batch_name for c in self._columns])
