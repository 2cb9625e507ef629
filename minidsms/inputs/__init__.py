"""The input manager: what is pushed or read becomes typed elements in timestamp order, in the stores queries read.

data -> conversion (types, NULL, instants) -> lateness and slack -> StreamStore
data -> conversion -> the bag of rows present -> RelationStore
"""

from __future__ import annotations

from minidsms.inputs.rejected import InputCounters, RejectedRows
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput

__all__ = ["InputCounters", "RejectedRows", "RelationInput", "StreamInput"]
