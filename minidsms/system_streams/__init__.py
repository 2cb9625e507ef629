"""System streams: what the engine tells of itself, as streams that ordinary CQL reads. docs/sys-stream.md."""

from __future__ import annotations

from minidsms.system_streams.registry import Publisher, SystemStreams
from minidsms.system_streams.sys_decisions import SysDecisions
from minidsms.system_streams.sys_stream import SysStream

__all__ = ["Publisher", "SysDecisions", "SysStream", "SystemStreams"]
