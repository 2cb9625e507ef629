"""The sources of a connection: which there are, and what reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput

if TYPE_CHECKING:
    from minidsms.sources.driver import SourceDriver
    from minidsms.sources.live_lines import LiveLines
    from minidsms.sources.source import Source


class SourceList:
    """The sources of one connection. Its methods but `stop` are called under the engine's lock.

    sources: (source, input) pairs, in the order of their declaration.  warn: told of what may not have been meant.
    """

    def __init__(self, tick_ns: int, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.sources: list[tuple[Source | LiveLines, StreamInput | RelationInput]] = []
        self._tick_ns = tick_ns
        self._driver: SourceDriver | None = None
        self._is_stopped = False

    def add(self, source: Source | LiveLines, target: StreamInput | RelationInput) -> None:
        """One more source."""
        self.sources.append((source, target))
        if isinstance(target, RelationInput):
            target.begin()
        if target.journal is not None:
            target.journal.attach(source)
        if self._driver is not None:
            self._driver.add(source, target)

    def open_again(self, before: Source | LiveLines, source: Source | LiveLines) -> None:
        """Let a source stand in the place of another, before anything is read."""
        assert self._driver is None
        self.sources = [(source if each is before else each, target) for each, target in self.sources]

    def remove(self, target: StreamInput | RelationInput) -> None:
        """Close and forget the sources of an input that is dropped."""
        for source in self.of(target):
            self.take_back(source)

    def take_back(self, source: Source | LiveLines) -> None:
        """Close and forget a source."""
        source.close()
        for _, target in self.sources:
            if isinstance(target, RelationInput):
                target.is_fed = any(t is target and s is not source for s, t in self.sources)
        self.sources = [(s, t) for s, t in self.sources if s is not source]
        if self._driver is not None:
            self._driver.remove(source)

    def of(self, target: StreamInput | RelationInput) -> list[Source | LiveLines]:
        """The sources of an input."""
        return [source for source, its in self.sources if its is target]

    @property
    def driver(self) -> SourceDriver | None:
        """What reads the sources, or None where there are none."""
        if self._driver is None and self.sources:
            from minidsms.sources.driver import SourceDriver

            self._driver = SourceDriver(self.sources, tick_ns=self._tick_ns, warn=self._warn)
        return self._driver

    def stop(self) -> None:
        """Let `run` return after the block it is at; from any thread or signal handler."""
        # No lock and no event: a handler may interrupt the very code that holds them. Who waits looks again soon.
        self._is_stopped = True

    def take_stop(self) -> bool:
        """Whether somebody said stop; asking takes the word back."""
        was_stopped, self._is_stopped = self._is_stopped, False
        return was_stopped

    @property
    def fraction(self) -> float:
        """How much of the bounded sources has been read, 0 to 1."""
        return 0.0 if self._driver is None else self._driver.fraction

    @property
    def closers(self) -> list[Callable[[], None]]:
        """What closes each source."""
        return [source.close for source, _ in self.sources]
