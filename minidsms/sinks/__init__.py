"""Where a query's answers go when they are not fetched: files in the sources' formats, and the lines of STREAM."""

from __future__ import annotations

from minidsms.sinks.opening import FORMATS, function_sink, open_sink
from minidsms.sinks.sink import Sink

__all__ = ["FORMATS", "Sink", "function_sink", "open_sink"]
