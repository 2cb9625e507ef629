"""Bounded sources: files that streams and relations are declared FROM, and the driver that reads them in time order."""

from __future__ import annotations

from minidsms.sources.driver import SourceDriver
from minidsms.sources.opening import open_source
from minidsms.sources.source import Source

__all__ = ["Source", "SourceDriver", "open_source"]
