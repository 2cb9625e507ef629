"""Where streams and relations come from: files, pipes, sockets, frames, generators; and the driver that reads them in
time order.
"""

from __future__ import annotations

from minidsms.sources.driver import SourceDriver
from minidsms.sources.opening import open_definition, open_source
from minidsms.sources.source import LiveSource, Pace, Source

__all__ = ["LiveSource", "Pace", "Source", "SourceDriver", "open_definition", "open_source"]
