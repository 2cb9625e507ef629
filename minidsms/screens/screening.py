"""What screens share of a connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from minidsms.elements import BoolArray, Int64Array
from minidsms.screens.level import Level
from minidsms.settings import SettingValues
from minidsms.values.dictionary import TextDictionary


class LookUps(Protocol):
    """In which order a screen looks at its columns, which may change."""

    @property
    def adaptation(self) -> Any:
        """Its `streamon.loop.Loop`."""

    def take(self, level: Level | None) -> None:
        """A level has become the first."""

    def limit(self, rows: int) -> int:
        """How many rows may pass before the order must be looked at."""

    def passed(self, keys: Int64Array, present: BoolArray, instant: int) -> None:
        """Rows have passed the first level."""


class OrdersLookUps(Protocol):
    """Who says in which order screens look at their columns."""

    def look_ups(self, screening: Screening, operator: str, names: tuple[str, ...]) -> LookUps:
        """Of a new screen.  operator: how the plan log names it.  names: its columns."""


@dataclass(frozen=True)
class Screening:
    """What screens need of a connection."""

    dictionary: TextDictionary
    settings: SettingValues
    adaptivity: OrdersLookUps

    @property
    def is_on(self) -> bool:
        """Filters may be put behind screens."""
        return bool(self.settings["screening"] != "off")

    @property
    def is_by_column(self) -> bool:
        """A screen looks at one column of each filter, and runs no query itself."""
        return bool(self.settings["screening"] == "column")

    def look_ups(self, operator: str, names: tuple[str, ...]) -> LookUps:
        """See `OrdersLookUps.look_ups`."""
        return self.adaptivity.look_ups(self, operator, names)
