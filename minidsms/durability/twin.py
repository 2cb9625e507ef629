"""The connection that a checkpoint leads to, opened to be compared with the one it was made of."""

from __future__ import annotations

from minidsms.durability.connection import DurableConnection


class Twin(DurableConnection):
    """It writes no file and reads no source: those are the other's."""

    def _go_on_with_files(self) -> None:
        self.files.is_reading = False

    def _go_on_with_sources(self) -> None:
        """They are the other's, too."""
