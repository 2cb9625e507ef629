"""What screens share of a connection."""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.dictionary import TextDictionary
from minidsms.streamon.stream_monitor import SettingValues, StreaMon


@dataclass(frozen=True)
class Screening:
    """What screens need of a connection."""

    dictionary: TextDictionary
    settings: SettingValues
    streamon: StreaMon

    @property
    def is_on(self) -> bool:
        """Filters may be put behind screens."""
        return bool(self.settings["screening"] != "off")

    @property
    def is_by_column(self) -> bool:
        """A screen looks at one column of each filter, and runs no query itself."""
        return bool(self.settings["screening"] == "column")
