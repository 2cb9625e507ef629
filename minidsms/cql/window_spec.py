"""What stands in the brackets of a window, in ticks and rows, and the columns that a window implies."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass

from minidsms.elements import Schema, Type

INSTANT = Schema.of(("ts", Type.TIMESTAMP))
"""What a stream's elements have beside their declared columns."""
BOUNDS = Schema.of(("window_start", Type.TIMESTAMP), ("window_end", Type.TIMESTAMP))
"""What a window that moves in steps has beside its elements' columns."""
LONGEST_WITH_BOUNDS = 2**62
"""Ticks: the start of a window stays within 64 bits then (T1)."""
SESSIONS = Schema.of(("window_start", Type.TIMESTAMP), ("session_id", Type.INTEGER))
"""What a window of sessions has beside its elements' columns; when a session ends is known of its last element."""


class WindowKind(enum.Enum):
    """The windows of docs/semantics W1 to W7, W9 and W11."""

    RANGE = "RANGE"
    HOP = "HOP"
    ROWS = "ROWS"
    PARTITION = "PARTITION"
    SESSION = "SESSION"
    UNBOUNDED = "UNBOUNDED"


@dataclass(frozen=True)
class WindowSpec:
    """What stands in the brackets, in ticks and rows.

    RANGE: range_ (0 is NOW), slide or None.  HOP: range_, slide.  ROWS: rows, slide or None.  PARTITION: keys (column
    positions), rows, range_ or None. SESSION: range_, keys.  UNBOUNDED: nothing.
    """

    kind: WindowKind
    range_: int | None = None
    rows: int | None = None
    slide: int | None = None
    keys: tuple[int, ...] = ()

    @property
    def is_now(self) -> bool:
        return self.kind is WindowKind.RANGE and self.range_ == 0 and self.slide is None

    @property
    def step(self) -> int | None:
        """L, where the window changes at the multiples of L only (W6, W9); None for all other windows."""
        return self.slide if self.kind in (WindowKind.RANGE, WindowKind.HOP) else None

    @property
    def is_by_key(self) -> bool:
        """What leaves follows from what comes of the same key."""
        return self.kind in (WindowKind.PARTITION, WindowKind.SESSION)

    @property
    def implied(self) -> Schema:
        """The columns that its rows have behind those of the stream."""
        return SESSIONS if self.kind is WindowKind.SESSION else Schema(())

    @property
    def lag(self) -> int:
        """Ticks from an element's instant to the first at which it may be seen: a HOP window ends before its end."""
        return 1 if self.kind is WindowKind.HOP else 0

    @property
    def lookback(self) -> int | str:
        """How many ticks before an instant it depends on; or why on all, in words."""
        if self.kind is WindowKind.SESSION:
            return "a SESSION window reaches back without bound"
        if self.range_ is None:
            words = "UNBOUNDED" if self.kind is WindowKind.UNBOUNDED else f"{self.kind.value} without RANGE"
            return f"a window is {words}, which reaches back without bound"
        return max(self.range_, 1) + (self.slide or 0)

    @property
    def mixes(self) -> str | None:
        """Why rows meet in it whatever their columns, in words."""
        if self.kind is WindowKind.ROWS:
            return "a ROWS window counts the rows of all keys"
        return "a SESSION window numbers the sessions of all keys" if self.kind is WindowKind.SESSION else None

    def text(self, schema: Schema) -> str:
        """The window as CQL writes it, in ticks, over a stream of this schema."""
        if self.is_now:
            return "NOW"
        if self.kind is WindowKind.HOP:
            return f"TUMBLE {self.range_}" if self.range_ == self.slide else f"HOP {self.range_} EVERY {self.slide}"
        if self.kind is WindowKind.UNBOUNDED:
            return "RANGE UNBOUNDED"
        if self.kind is WindowKind.SESSION:
            keys = ", ".join(schema[i].name for i in self.keys)
            return f"SESSION {self.range_}" + (f" PARTITION BY {keys}" if keys else "")
        if self.kind is WindowKind.PARTITION:
            keys = ", ".join(schema[i].name for i in self.keys)
            return f"PARTITION BY {keys} ROWS {self.rows}" + ("" if self.range_ is None else f" RANGE {self.range_}")
        length = f"RANGE {self.range_}" if self.kind is WindowKind.RANGE else f"ROWS {self.rows}"
        return length + ("" if self.slide is None else f" SLIDE {self.slide}")

    def over(self, place: Mapping[int, int]) -> WindowSpec:
        """The window over a stream whose columns stand elsewhere."""
        return dataclasses.replace(self, keys=tuple(place[i] for i in self.keys))
