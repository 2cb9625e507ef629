"""A driver of files that are read into inputs which stay open: more may come when they have ended.

Invariant: when a file has ended, its stream's last instant is closed, so that everything read is answered, and a later
file may go on from there.
"""

from __future__ import annotations

from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.sources.driver import SourceDriver


class Replay(SourceDriver):
    """See the module; otherwise as `SourceDriver`."""

    def _finish(self, target: StreamInput | RelationInput) -> None:
        if isinstance(target, StreamInput) and target.greatest_ts is not None:
            target.advance(target.greatest_ts)
